"""`lakelet new transforms`: a copy of the library in a project, which the installed package hides wherever there is one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakelet.cli.main import main
from lakelet.scaffold import LIBRARY, new_project, write_library
from tests.paths import ROOT

SOURCES = ROOT / "src" / "lakelet" / "transforms"


def library() -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in SOURCES.glob("*.py")}


def copied(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (folder / LIBRARY).iterdir()}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a folder for code; the current folder is that one."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    return tmp_path


def test_the_copy_lies_in_the_projects_folder_or_in_the_one_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "transforms"]) == 0
    assert copied(project) == library()
    assert not (project / "lakelet" / "__init__.py").exists()
    capsys.readouterr()
    assert main(["new", "transforms", ".", "--json"]) == 0
    assert sorted(json.loads(capsys.readouterr().out)) == sorted(f"lakelet/transforms/{name}" for name in library())
    assert copied(project / "src") == library()


def test_a_copy_that_is_there_is_left_and_an_incomplete_one_completed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_library(project)
    assert main(["new", "transforms", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert main(["new", "transforms"]) == 0
    assert "is the library of the installed Lakelet already" in capsys.readouterr().err
    (project / LIBRARY / "pii.py").unlink()
    assert main(["new", "transforms"]) == 0
    assert copied(project) == library()


def test_another_text_is_replaced_only_where_that_is_asked_for(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_library(project)
    (project / LIBRARY / "pii.py").write_text("mine = True\n")
    (project / LIBRARY / "parsing.py").unlink()
    before = copied(project)
    assert main(["new", "transforms"]) == 2
    told = capsys.readouterr().err
    assert "[FILE_EXISTS] the installed Lakelet has other texts of lakelet/transforms/pii.py; nothing was written" in told
    assert copied(project) == before
    assert main(["new", "transforms", "--overwrite"]) == 0
    assert copied(project) == library()


def test_a_folder_that_is_a_package_named_lakelet_or_not_there_is_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "lakelet").mkdir()
    (project / "lakelet" / "__init__.py").touch()
    assert main(["new", "transforms"]) == 2
    assert "would hide the installed Lakelet" in capsys.readouterr().err
    assert main(["new", "transforms", "nowhere"]) == 2
    assert "nowhere is not a folder" in capsys.readouterr().err
    assert [path.name for path in (project / "lakelet").iterdir()] == ["__init__.py"]


def test_where_lakelet_is_installed_python_takes_it_and_not_the_copy_that_lies_before_it(tmp_path: Path) -> None:
    write_library(tmp_path)
    path = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
    code = "import lakelet.transforms; print(lakelet.__file__); print(lakelet.transforms.__file__)"
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(ROOT / "src/lakelet/__init__.py"), str(SOURCES / "__init__.py")]
    started = subprocess.run([sys.executable, "-m", "lakelet", "--version"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert started.stdout.startswith("lakelet ")


def test_a_new_project_from_the_web_example_has_the_copy_and_the_example_none(tmp_path: Path) -> None:
    assert not (ROOT / "examples" / "web" / LIBRARY).exists()
    created = new_project(tmp_path / "web", "web").folder
    assert copied(created) == library()
    assert not [path for path in created.rglob("*") if path.is_symlink()]  # the Databricks CLI passes over links
