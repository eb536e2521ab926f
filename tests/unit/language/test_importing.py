"""Modules that source files import from folders which they put on `sys.path` themselves, as on Databricks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.language.loader import loaded

Load = Callable[..., tuple[list[str], list[LakeletError]]]
TABLE = "\nimport dlt\ndlt.table(lambda: None, name=words.NAME)\n"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Load files (path below the project `shop`, text) from a folder beside it; the declared names and the mistakes."""
    project, elsewhere = tmp_path / "shop", tmp_path / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    def run(*sources: str, roots: Sequence[str] = ("",), **helpers: str) -> tuple[list[str], list[LakeletError]]:
        for path, text in helpers.items():
            file = project / path.replace("__", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.with_suffix(".py").write_text(text)
        files = []
        for number, text in enumerate(sources):
            files.append(project / f"etl/bronze/source{number}.py")
            files[-1].parent.mkdir(parents=True, exist_ok=True)
            files[-1].write_text(text.replace("PROJECT", str(project)) + TABLE)
        before = list(sys.path), list(sys.meta_path)
        with loaded(files, import_roots=[project / root for root in roots], namespace=Namespace(), injected={"spark": None}) as found:
            names = [d.name.name for d in found.definitions.datasets]
            assert [m.__name__ for m in found.helpers] == (["words"] if names else []), "a module from there is the user's own"
        assert (list(sys.path), list(sys.meta_path), "words" in sys.modules) == (*before, False), "nothing of it stays"
        return names, list(found.errors)

    return run


@pytest.mark.parametrize(
    "addition",
    [
        'sys.path.append("../../common/lib")',
        'sys.path.insert(0, os.path.abspath("../../common/lib"))',
        'sys.path.append(os.path.join(os.getcwd(), "..", "..", "common", "lib"))',
        'sys.path.append("common/lib")',
        'sys.path.append("PROJECT/common/lib")',
        'sys.path.append("/Workspace" + "PROJECT/common/lib")',
        'sys.path.append("/Workspace/Users/jo@example.org/shop/common/lib")',
        'sys.path.append("/Workspace/Repos/jo@example.org/another name/common/lib")',
    ],
)
def test_a_folder_is_found_however_the_file_names_it(load: Load, addition: str) -> None:
    assert load(f"import os, sys\n{addition}\nimport words", common__lib__words="NAME = 'told'") == (["told"], [])


def test_what_is_found_as_it_stands_wins(load: Load) -> None:
    helpers = {"words": "NAME = 'of the root'", "etl__words": "NAME = 'of the addition'"}
    assert load("import sys\nsys.path.append('..')\nimport words", **helpers) == (["of the root"], [])


def test_the_folder_of_the_file_that_runs_comes_first(load: Load, tmp_path: Path) -> None:
    names, errors = load(
        "import sys\nsys.path.append('../lib')\nimport words",
        roots=("etl/bronze",),
        etl__lib__words="NAME = 'near'",
        lib__words="NAME = 'far'",
    )
    assert (names, errors) == (["near"], [])


def test_a_module_that_is_nowhere_is_a_mistake_of_the_file(load: Load) -> None:
    names, (error, *_) = load("import sys\nsys.path.append('../nothing')\nsys.path.append('/Workspace/Shared')\nimport words")
    assert (names, error.code, error.what) == ([], "SOURCE_FAILED", "loading the file failed: ModuleNotFoundError: No module named 'words'")


@pytest.mark.parametrize("kind", ["module", "package", "folder"])
def test_a_module_of_another_project_in_this_process_is_not_taken_for_the_projects_own(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for project in ("first", "second"):
        folder = tmp_path / project / ("" if kind == "module" else "shared")
        folder.mkdir(parents=True)
        if kind == "package":
            (folder / "__init__.py").write_text("")
        (folder / "words.py").write_text(f"NAME = '{project}'")
    name = "words" if kind == "module" else "shared.words"
    monkeypatch.syspath_prepend(tmp_path / "first")
    theirs = importlib.import_module(name)
    file = tmp_path / "second" / "tables.py"
    file.write_text(f"import {name} as words\n{TABLE}")

    with loaded([file], import_roots=[file.parent], namespace=Namespace(), injected={"spark": None}) as found:
        assert [d.name.name for d in found.definitions.datasets] == ["second"]
        assert [module.__name__ for module in found.helpers][-1:] == [name]

    assert sys.modules.pop(name) is theirs
    sys.modules.pop("shared", None)


def test_a_module_of_the_project_that_the_process_has_imported_is_the_one_that_its_files_see(load: Load, tmp_path: Path) -> None:
    """An exception that a test expects is of the class that the pipeline raises."""
    (tmp_path / "shop" / "given.py").write_text("NAME = 'given'")
    sys.path.insert(0, str(tmp_path / "shop"))
    given = importlib.import_module("given")
    sys.path.remove(str(tmp_path / "shop"))
    given.NAME = "changed"
    try:
        assert load("import given, words\nwords.NAME = given.NAME", words="NAME = 'text'") == (["changed"], [])
    finally:
        assert sys.modules.pop("given") is given
