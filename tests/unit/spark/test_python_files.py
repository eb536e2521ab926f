"""Python's own functions see mapped paths, whoever calls them but Lakelet. No Spark session."""

from __future__ import annotations

import builtins
import importlib
import io
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakelet.base.patching import patched_with
from lakelet.base.user_code import PACKAGE
from lakelet.config.path_map import PathMap
from lakelet.files.reads import Reads
from lakelet.spark.names.outside import Outside, using
from lakelet.spark.patches.python_files import PYTHON_FILES, mapped_files

CALLS = """
import os
from pathlib import Path

RAW = "/Volumes/main/raw"
found = {
    "open": open(f"{RAW}/a.csv").read(),
    "named": open(file=f"{RAW}/a.csv").read(),
    "dbfs": open(f"/dbfs{RAW}/a.csv").read(),
    "path": Path(RAW, "a.csv").read_text(),
    "opened": open(Path(RAW, "a.csv")).read(),
    "listdir": os.listdir(RAW),
    "iterdir": [file.name for file in Path(RAW).iterdir()],
    "globbed": [file.name for file in Path(RAW).glob("*.csv")],
    "is": (os.path.exists(RAW), os.path.isdir(RAW), os.path.isfile(f"{RAW}/a.csv")),
    "not": (os.path.exists("/Volumes/main/other"), os.path.exists("s3://cloud/x"), os.path.exists("relative")),
    "here": os.path.isdir(os.getcwd()) and bool(os.listdir()),
}
with open(f"{RAW}/b.csv", "w") as file:
    file.write("new")
Path(RAW, "made").mkdir()
Path(RAW, "made").chmod(0o755)
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.csv").write_text("id\n")
    return folder


def test_python_opens_and_finds_files_at_their_mapped_place_for_user_code(data: Path, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    paths = PathMap.of([("/Volumes/main/raw", str(data)), ("s3a://cloud", str(data))], tmp_path)
    with using(Outside(paths)), patched_with(PYTHON_FILES, None):
        exec(compile(CALLS, str(tmp_path / "pipeline.py"), "exec"), names)
    assert names["found"] == {
        **dict.fromkeys(("open", "dbfs", "path", "opened", "named"), "id\n"),
        "listdir": ["a.csv"],
        "iterdir": ["a.csv"],
        "globbed": ["a.csv"],
        "is": (True, True, True),
        "not": (False, False, False),
        "here": True,
    }
    assert (data / "b.csv").read_text() == "new"
    assert (data / "made").is_dir()


LIBRARIES = """
import configparser, fileinput, glob, os, shutil
from pathlib import Path
import pandas as pd

RAW = "/Volumes/main/raw"
pd.DataFrame({"id": [2]}).to_parquet(f"{RAW}/made/b.parquet")
settings = configparser.ConfigParser()
found = {
    "csv": list(pd.read_csv(f"{RAW}/a.csv").columns),
    "parquet": pd.read_parquet(f"/dbfs{RAW}/made/b.parquet").id.tolist(),
    "lines": list(fileinput.input(f"{RAW}/a.csv")),
    "settings": settings.read(f"{RAW}/settings.ini"),
    "glob": glob.glob(f"{RAW}/**/*.parquet", recursive=True),
    "walk": [(folder, sorted(files)) for folder, _, files in os.walk(RAW)],
    "path": (Path(RAW).exists(), Path(RAW, "a.csv").stat().st_size, os.path.getsize(f"{RAW}/a.csv"), Path(RAW, "no").is_file()),
    "copied": shutil.copy(f"{RAW}/a.csv", f"{RAW}/made/c.csv"),
}
"""


def test_libraries_find_what_user_code_finds(data: Path, tmp_path: Path) -> None:
    (data / "made").mkdir()
    (data / "settings.ini").write_text("[a]\nb = 1\n")
    names: dict[str, Any] = {}
    with using(Outside(PathMap.of([("/Volumes/main/raw", str(data))], tmp_path))), patched_with(PYTHON_FILES, None):
        exec(compile(LIBRARIES, str(tmp_path / "pipeline.py"), "exec"), names)
    raw = "/Volumes/main/raw"
    assert names["found"] == {
        "csv": ["id"],
        "parquet": [2],
        "lines": ["id\n"],
        "settings": [f"{raw}/settings.ini"],
        "glob": [f"{raw}/made/b.parquet"],
        "walk": [(raw, ["a.csv", "settings.ini"]), (f"{raw}/made", ["b.parquet"])],
        "path": (True, 3, 3, False),
        "copied": f"{raw}/made/c.csv",
    }
    assert (data / "made" / "c.csv").read_text() == "id\n"
    assert not Path("/Volumes/main/raw/a.csv").exists()


def test_lakelet_sees_this_machine_as_it_is(data: Path, tmp_path: Path) -> None:
    code = "import os\nfrom pathlib import Path\nfound = os.path.exists('/Volumes/main/raw'), Path('/Volumes/main/raw').exists()"
    names: dict[str, Any] = {}
    with using(Outside(PathMap.of([("/Volumes/main/raw", str(data))], tmp_path))), patched_with(PYTHON_FILES, None):
        exec(compile(code, f"{PACKAGE}elsewhere.py", "exec"), names)
    assert names["found"] == (False, False)


FUNCTIONS = (builtins.open, io.open, os.listdir, os.scandir, os.stat, os.lstat, os.mkdir, os.chmod, os.utime)


def are_replaced() -> bool:
    now = (builtins.open, io.open, os.listdir, os.scandir, os.stat, os.lstat, os.mkdir, os.chmod, os.utime)
    assert now == FUNCTIONS or not set(now) & set(FUNCTIONS)
    return now != FUNCTIONS


CODES = {
    "no path": ("FOUND = 1", False),
    "a path of this machine": ("FOUND = open('/dev/null').read()", False),
    "a text": ("FOUND = open('/Workspace/Users/ada/project/a.txt').read()", True),
    "a name in a repository": ("FOUND = open('/Repos/ada/project/a.txt').read()", True),
    "the beginning of a text": ("WHO = 'ada'\nFOUND = open(f'/Workspace/Users/{WHO}/project/a.txt').read()", True),
    "a part of a path": ("import os\nFOUND = open(os.path.join('/Workspace', 'Users', 'ada', 'project', 'a.txt')).read()", True),
    "one of a list": ("FOUND = [open(one).read() for one in ['/dev/null', '/Repos/ada/project/a.txt', '/dev/null']][1]", True),
    "a text in a function": ("def f():\n    return open('/Repos/ada/project/a.txt').read()\nFOUND = f()", True),
    "a text in a method": ("class A:\n    def f(self):\n        return open('/Repos/ada/project/a.txt').read()\nFOUND = A().f()", True),
    "a text in a helper": ("import helper_of_workspace\nFOUND = open(helper_of_workspace.PATH).read()", True),
    "a default": ("def f(path='/Repos/ada/project/a.txt'):\n    return open(path).read()\nFOUND = f()", True),
}


@pytest.mark.parametrize("name", CODES)
def test_without_a_map_pythons_functions_are_replaced_from_the_first_code_on_that_names_a_workspace(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, expected = CODES[name]
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("here")
    (project / "helper_of_workspace.py").write_text("PATH = '/Workspace/Users/ada/project/a.txt'\n")
    monkeypatch.syspath_prepend(str(project))
    names: dict[str, Any] = {}
    paths = replace(PathMap(), repository=(project,))
    with mapped_files(paths, ["/data", "main"]), using(Outside(paths)):
        assert not are_replaced()
        exec(compile(code, str(project / "pipeline.py"), "exec"), names)
        assert are_replaced() == expected
    assert not are_replaced()
    assert names["FOUND"] == ("here" if expected else names["FOUND"])
    sys.modules.pop("helper_of_workspace", None)


def test_pythons_functions_are_replaced_at_once_where_there_is_a_map_or_a_text_that_names_a_workspace(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = replace(PathMap(), repository=(tmp_path,))
    with mapped_files(PathMap.of([("/Volumes/main/raw", str(data))], tmp_path), []):
        assert are_replaced()
    with mapped_files(here, ["/Workspace/Users/ada/project/conf"]):
        assert are_replaced()
    with mapped_files(PathMap(), ["/Workspace/Users/ada/project/conf"]):
        assert not are_replaced()
    (tmp_path / "imported_before.py").write_text("def path():\n    return '/Repos/ada/project/a.txt'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("imported_before")
    with mapped_files(here, []):
        assert are_replaced()
    sys.modules.pop("imported_before")
    with mapped_files(here, []):
        assert not are_replaced()


@pytest.mark.parametrize(
    ("code", "doubt"),
    [
        ("open('out.txt', 'w').close()", "writes"),
        ("import os\nos.mkdir('new')", "calls os.mkdir"),
        ("import pathlib\npathlib.Path('data').stat()", "asks for facts"),
        ("import os\nos.path.getmtime('data')", "asks for facts"),
        ("open('own/state.json').read()", "reads"),
        ("import os, pathlib\npathlib.Path('data').is_dir(), os.path.exists('data'), os.listdir('data')", None),
    ],
)
def test_what_code_does_by_way_of_the_map_counts_as_done_by_it(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, doubt: str | None
) -> None:
    """It keeps the next update from being answered without Spark (IF-5)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "state.json").write_text("{}")
    compiled = compile(code, str(tmp_path / "pipeline.py"), "exec")
    reads = Reads((str(tmp_path / "own"),))
    with reads.watching(), using(Outside(PathMap())), patched_with(PYTHON_FILES, None):
        exec(compiled, {"__name__": "user"})
    assert (not reads.stale_reasons) if doubt is None else (doubt in reads.stale_reasons[0] and "pipeline.py:" in reads.stale_reasons[0])
