"""What deployed code imports of Lakelet: only a copy of `lakelet.transforms` in the project is there on Databricks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lakelet.base.errors import DefinitionErrors, LakeletError
from lakelet.scaffold import write_library
from tests.unit.deploy.bundles import SOURCE, Folder

BUNDLE = """\
bundle: {name: shop}
resources:
  pipelines:
    p:
      root_path: .
      libraries: [{glob: {include: tables/**}}]
"""
TRANSFORMS = "from lakelet.transforms import flatten\n"
CODE = "DEPLOY_NEEDS_LAKELET"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path).put({"tables/a.py": TRANSFORMS + SOURCE}).bundle(BUNDLE)


def remarks(folder: Folder) -> list[str]:
    return [f"{where}: {text}" for text, where in folder.state().remarks]


def errors(folder: Folder) -> list[LakeletError]:
    with pytest.raises(DefinitionErrors) as raised:
        folder.state()
    return raised.value.errors


@pytest.mark.parametrize(
    "line",
    [
        "from lakelet.transforms import flatten",
        "from lakelet import transforms",
        "import lakelet.transforms as t",
        "from lakelet.transforms.flattening import flatten",
    ],
)
def test_the_library_is_refused_without_its_copy_and_taken_with_it(folder: Folder, line: str) -> None:
    folder.put({"tables/a.py": f"# the shop\n{line}\n{SOURCE}"})
    what = "tables/a.py imports lakelet.transforms, and the files of the deployment have no copy of it"
    assert folder.mistakes() == [f"{CODE} tables/a.py, line 2: {what}"]
    write_library(folder.root)
    assert remarks(folder) == []
    assert "lakelet/transforms/pii.py" in {file.path for file in folder.state().files}


def test_the_copy_belongs_below_root_path_and_into_sync_paths(folder: Folder) -> None:
    folder.put({"src/tables/a.py": TRANSFORMS + SOURCE})
    folder.bundle(BUNDLE.replace("root_path: .", "root_path: src").replace("tables/**", "src/tables/**") + "sync: {paths: [src/tables]}\n")
    (error,) = errors(folder)
    assert error.todo == (
        "Write a copy into the project, and add its folder to sync.paths (- src/lakelet/transforms): lakelet new transforms src"
    )
    write_library(folder.root / "src")
    (error,) = errors(folder)  # one file stands for the fifteen of the library
    assert error.code == "FILE_NOT_COVERED"
    assert error.todo == "Add its folder to sync.paths: - src/lakelet/transforms"
    folder.bundle((folder.root / "databricks.yml").read_text().replace("[src/tables]", "[src/tables, src/lakelet/transforms]"))
    assert remarks(folder) == []


def test_a_copy_that_root_path_does_not_reach_is_refused(folder: Folder) -> None:
    write_library(folder.root)
    folder.put({"src/tables/a.py": TRANSFORMS + SOURCE})
    folder.bundle(BUNDLE.replace("root_path: .", "root_path: src").replace("tables/**", "src/tables/**") + "sync: {exclude: [/tables]}\n")
    assert [error.code for error in errors(folder)] == ["FILE_NOT_COVERED"]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("import lakelet", ["lakelet"]),
        ("from lakelet import load, transforms, Pipeline", ["lakelet.load", "lakelet.Pipeline"]),
        ("import lakelet.testing.row_comparison", ["lakelet.testing.row_comparison"]),
        ("from lakelet.autoloader import source", ["lakelet.autoloader"]),
        ("def later():\n    from lakelet.base.errors import LakeletError", ["lakelet.base.errors"]),
    ],
)
def test_lakelet_itself_is_refused_by_name_with_and_without_the_copy(folder: Folder, line: str, names: list[str]) -> None:
    folder.put({"tables/a.py": f"{line}\n{SOURCE}"})
    where = f"tables/a.py, line {line.count(chr(10)) + 1}"
    expected = [f"{CODE} {where}: tables/a.py imports {name}, which Databricks does not have" for name in names]
    assert sorted(folder.mistakes()) == sorted(expected)
    write_library(folder.root)
    assert sorted(folder.mistakes()) == sorted(expected)


def test_an_import_in_a_helper_module_is_refused_too(folder: Folder) -> None:
    folder.put({"tables/a.py": "from helpers import steps\n" + SOURCE, "helpers/steps.py": "\n" + TRANSFORMS})
    assert [str(error.where) for error in errors(folder)] == ["helpers/steps.py, line 2"]


def test_imports_that_the_code_survives_or_that_are_for_type_checkers_are_taken(folder: Folder) -> None:
    code = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from lakelet import Pipeline\n"
    folder.put({"tables/a.py": f"{code}try:\n    import lakelet\nexcept ImportError:\n    lakelet = None\n{SOURCE}"})
    assert remarks(folder) == []


def test_a_notebook_that_installs_lakelet_itself_gets_a_remark(folder: Folder) -> None:
    wheel = "# MAGIC %pip install --no-deps /Volumes/main/tools/wheels/lakelet-0.1.0-py3-none-any.whl\n# COMMAND ----------\n"
    folder.put({"tables/a.py": "# Databricks notebook source\n" + wheel + TRANSFORMS + SOURCE})
    (remark,) = remarks(folder)
    assert remark.startswith("tables/a.py, line 4: only here, unless something else puts it there: tables/a.py imports lakelet.transforms")


@pytest.mark.parametrize("line", ["lakelet", "lakelet[deploy]==0.1.0", "./dist/lakelet-0.1.0-py3-none-any.whl", "-r requirements.txt"])
def test_an_environment_that_installs_lakelet_is_refused_with_its_line(folder: Folder, line: str) -> None:
    folder.put({"dist/lakelet-0.1.0-py3-none-any.whl": "", "requirements.txt": "pyyaml\nlakelet>=0.1\n", "tables/a.py": SOURCE})
    folder.bundle(BUNDLE + f"      environment: {{dependencies: ['pyyaml', '{line}']}}\n")
    (mistake,) = folder.mistakes()
    assert mistake.startswith(f"{CODE} databricks.yml, line 7: environment.dependencies: ")
    assert mistake.endswith("installs Lakelet on Databricks")


def test_a_package_whose_name_only_begins_like_lakelet_is_taken(folder: Folder) -> None:
    folder.put({"tables/a.py": SOURCE}).bundle(BUNDLE + "      environment: {dependencies: [lakelet-extras]}\n")
    assert remarks(folder) == []


def test_a_copy_that_is_not_the_installed_library_gets_one_remark_with_the_command(folder: Folder) -> None:
    write_library(folder.root)
    folder.put({"lakelet/transforms/pii.py": "SECRETS = ()\n", "tables/b.py": TRANSFORMS + SOURCE.replace("orders", "more")})
    (remark,) = remarks(folder)
    assert remark.startswith("lakelet/transforms/__init__.py, line 1: lakelet/transforms is not the library of the installed Lakelet")
    assert "(pii.py)" in remark
    assert remark.endswith("to renew the copy: lakelet new transforms --overwrite")
    write_library(folder.root, overwrite=True)
    assert remarks(folder) == []
    shutil.rmtree(folder.root / "lakelet")
    assert [error.code for error in errors(folder)] == [CODE]
