"""Python's own functions see mapped paths where user code calls them, and nowhere else. No Spark session."""

from __future__ import annotations

import fileinput
import os
from pathlib import Path
from typing import Any

import pytest

from lakelet.base.patching import patched_with
from lakelet.config.path_map import PathMap
from lakelet.spark.names.outside import Outside, using
from lakelet.spark.patches.python_files import PYTHON_FILES

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
    "is": (os.path.exists(RAW), os.path.isdir(RAW), os.path.isfile(f"{RAW}/a.csv")),
    "not": (os.path.exists("/Volumes/main/other"), os.path.exists("s3://cloud/x"), os.path.exists("relative")),
    "here": os.path.isdir(os.getcwd()) and bool(os.listdir()),
}
with open(f"{RAW}/b.csv", "w") as file:
    file.write("new")
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
        "is": (True, True, True),
        "not": (False, False, False),
        "here": True,
    }
    assert (data / "b.csv").read_text() == "new"


def test_libraries_see_this_machine_as_it_is(data: Path, tmp_path: Path) -> None:
    paths = PathMap.of([("/Volumes/main/raw", str(data))], tmp_path)
    with using(Outside(paths)), patched_with(PYTHON_FILES, None):
        with pytest.raises(FileNotFoundError), fileinput.input("/Volumes/main/raw/a.csv") as lines:
            next(lines)
        assert os.path.exists("/Volumes/main/raw/a.csv")  # this file is user code
    assert not os.path.exists("/Volumes/main/raw/a.csv")
