"""`lakelet new project`: a folder with a project that runs. No Spark."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lakelet.cli.main import main
from lakelet.config.rule_files import read_rule_file, rule_files
from lakelet.config.tool_settings import tomllib
from lakelet.config.update_config import load_config
from lakelet.deploy.bundle import desired_state
from lakelet.deploy.desired_state import User
from lakelet.project.editor import stubs
from lakelet.scaffold import new_project, starting_points
from lakelet.scaffold.projects import files_of
from tests.paths import ROOT


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_new_project_has_files_of_each_layer_rules_a_bundle_a_test_and_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "project", "my-shop", "--json"]) == 0
    printed = capsys.readouterr()
    written = json.loads(printed.out)
    assert sorted(written) == sorted(f"my-shop/{name}" for name in files(tmp_path / "my-shop"))
    assert {
        "databricks.yml",
        "README.md",
        ".gitignore",
        ".vscode/settings.json",
        "expectations/orders.yml",
        "tests/test_orders.py",
    } <= files(tmp_path / "my-shop")
    assert {Path(name).suffix for name in written if "landing" in name} == {".csv", ".json"}
    assert set(stubs()) >= {"dlt/__init__.pyi", "pyspark/pipelines/__init__.pyi", "__builtins__.pyi"}
    assert {name for name in files(tmp_path / "my-shop") if name.startswith("typings/")} == {f"typings/{stub}" for stub in stubs()}
    configured = tomllib.loads((tmp_path / "my-shop" / "pyproject.toml").read_text())["tool"]
    assert (configured["mypy"]["mypy_path"], configured["pyright"]["reportMissingModuleSource"]) == ("typings", "none")
    settings = json.loads((tmp_path / "my-shop" / ".vscode" / "settings.json").read_text())
    assert settings["python.analysis.extraPaths"] == ["."], "modules of the project are found"
    assert "python.analysis.stubPath" not in settings, "typings is where Pylance looks by itself"
    assert [line.split("/")[-1].strip() for line in printed.err.splitlines()[1:]] == ["cd my-shop", "lakelet run", "lakelet test"]

    config = load_config((), cwd=tmp_path / "my-shop")
    assert (config.name, config.namespace.schema, config.parameters["landing"]) == ("my_shop", "my_shop", "data/landing")
    layers = [(file.parent.name, file.suffix) for file in config.files]
    assert layers == [("bronze", ".sql"), ("bronze", ".py"), ("gold", ".sql"), ("silver", ".py")]


def test_an_empty_current_folder_becomes_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert main(["new", "project", "."]) == 0
    assert load_config(()).name == "here"


@pytest.mark.parametrize(
    ("name", "options", "code", "told"),
    [
        ("used", [], "FILE_EXISTS", "is not empty: it holds notes.txt"),
        ("again", [], "FILE_EXISTS", "is not empty"),
        ("a-file", [], "FILE_EXISTS", "is a file"),
        ("my shop", [], "NAME_INVALID", "For example: my-shop"),
        ("2026", [], "NAME_INVALID", "Choose another name"),
        ("shop", ["--from", "contact-centre"], "USAGE", 'Did you mean "contact-center"?'),
    ],
)
def test_what_cannot_become_a_project_is_refused_and_nothing_written(
    name: str, options: list[str], code: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "notes.txt").write_text("mine")
    (tmp_path / "a-file").write_text("")
    new_project(tmp_path / "again")
    before = files(tmp_path)
    assert main(["new", "project", name, *options]) == 2
    printed = capsys.readouterr().err
    assert f"[{code}]" in printed
    assert told in printed
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", [*starting_points()])
def test_a_project_from_each_starting_point_holds_a_pipeline_tests_and_a_readme(name: str, tmp_path: Path) -> None:
    created = new_project(tmp_path / "begun", name)
    config = load_config((), cwd=created.folder)
    assert config.files
    assert config.root == created.folder
    found = files(created.folder)
    assert {"README.md", ".gitignore", ".vscode/settings.json", "pyproject.toml"} <= found
    assert any(name.startswith("tests/test_") for name in found)
    assert not {name for name in found if "__pycache__" in name or ".lakelet/" in name}
    assert created.point.next_commands[-1] == "lakelet test"
    for page in created.folder.rglob("*.md"):
        links = re.findall(r"\]\(([^)#\s]+)\)", page.read_text(encoding="utf-8"))
        assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


@pytest.mark.parametrize("target", ["dev", "prod"])
@pytest.mark.parametrize("name", [*starting_points()])
def test_a_project_from_each_starting_point_is_a_bundle_with_one_pipeline(name: str, target: str, tmp_path: Path) -> None:
    root = new_project(tmp_path / "begun", name).folder
    user = User("ada.l@example.com", "ada_l")
    desired = desired_state(root, target, user, environ={}, cwd=root, lookup=lambda kind, name: f"{kind}-1")
    assert [resource.key.kind for resource in desired.resources].count("pipelines") == 1
    assert any(file.path.startswith("pipelines/") for file in desired.files)
    assert not [file.path for file in desired.files if file.path.startswith((".lakelet", "landing"))]


def test_the_files_of_every_starting_point_are_in_the_wheel() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    shipped = build["hooks"]["custom"]["shipped"]
    assert (ROOT / build["hooks"]["custom"]["path"]).is_file()
    for point in starting_points().values():
        for part in point.parts:
            assert any(part == source or part.startswith(f"{source}/") for source in shipped), part
            assert (ROOT / part).exists()


def test_the_command_line_names_every_starting_point() -> None:
    from lakelet.cli.new import POINTS

    assert POINTS.split("|") == [*starting_points()]


def test_the_projects_name_stands_where_the_starting_points_name_stood() -> None:
    renamed = files_of(starting_points()["starter"], name="demo")
    assert [str(file.path) for file in renamed if "starter" in file.text] == []


def test_a_project_whose_writing_was_killed_is_finished_by_the_same_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lakelet", "new", "project", "demo"]
    environment = {**os.environ, "LAKELET_FAILPOINT": "scaffold.file_written@5"}
    assert subprocess.run(command, env=environment, cwd=tmp_path, start_new_session=True).returncode == -signal.SIGKILL
    assert len(files(tmp_path / "demo")) == 5
    assert subprocess.run(command, cwd=tmp_path).returncode == 0
    own = {name for name in files(tmp_path / "demo") if not name.startswith("typings/")}
    assert own == {str(file.path) for file in files_of(starting_points()["starter"], name="demo")}


def test_without_great_expectations_a_project_has_no_check_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "project", "whole", "--from", "contact-center"]) == 0
    assert "left out" not in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "great_expectations", None)
    assert main(["new", "project", "bare", "--from", "contact-center"]) == 0
    assert "bare/expectations/channel_funnel.yml is left out" in (told := capsys.readouterr().err)
    assert "pip install 'lakelet[quality]'" in told
    assert files(tmp_path / "whole") - files(tmp_path / "bare") == {"expectations/channel_funnel.yml"}
    for point in starting_points():
        folder = new_project(tmp_path / f"one-{point}", point).folder / "expectations"
        found = [read_rule_file(path) for path in rule_files(folder)]
        assert [check.name for file in found for check in file.checks] == [], point


def test_the_help_of_new_loads_nothing_heavy() -> None:
    heavy = "print(sorted({'pyspark', 'deltalake', 'pandas'} & {*sys.modules}))"
    code = f"import sys; from lakelet.cli.main import main; main(['new', '--help']); {heavy}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
