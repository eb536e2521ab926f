"""`lakelet.transforms` in a deployment: the copy that a project takes along, and a Python without Lakelet that imports it from there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from lakelet.cli.main import main
from lakelet.scaffold import new_project
from tests.paths import ROOT
from tests.workspace_double import Workspace

FILES = "/Workspace/Shared/.bundle/web/prod/files"
DEPLOY = ["deploy", "-t", "prod", "--no-validate"]
INSTALLED = {f"lakelet/transforms/{file.name}": file.read_bytes() for file in (ROOT / "src/lakelet/transforms").glob("*.py")}

HOSTED = """
import json, runpy, sys, types
sys.path[:0] = sys.argv[1:3]
dlt = sys.modules["dlt"] = types.ModuleType("dlt")
dlt.view = dlt.table = dlt.expect = lambda *args, **kwargs: lambda function: function
dbutils = types.SimpleNamespace(secrets=types.SimpleNamespace(get=lambda scope, key: "k" * 32))
found = runpy.run_path(sys.argv[1] + "/pipelines/web_events.py", {"dbutils": dbutils})
import lakelet, lakelet.transforms
masked = str(found["tokenize"]("user", key=found["KEY"], domain="user"))
print(json.dumps([getattr(lakelet, "__file__", None), lakelet.transforms.__file__, found["tokenize"].__module__, masked]))
"""
"""A process as Databricks has it: root_path and a Spark on the import path, no Lakelet. The pipeline's file runs up to its declarations."""


@pytest.fixture
def project(tmp_path: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project from the web example; the current folder. The workspace is that of the environment."""
    folder = new_project(tmp_path / "web", "web").folder
    monkeypatch.chdir(folder)
    for name, value in workspace.environment.items():
        monkeypatch.setenv(name, value)
    return folder


def library(workspace: Workspace) -> dict[str, bytes]:
    """The deployed files below `lakelet`, by path."""
    return {path: content for path, content in workspace.files.below(FILES).items() if path.startswith("lakelet/")}


def test_the_deployed_web_example_has_the_installed_library_and_no_package_around_it(project: Path, workspace: Workspace) -> None:
    assert main(DEPLOY) == 0
    assert library(workspace) == INSTALLED


def test_the_deployed_pipeline_loads_in_a_python_without_lakelet_from_the_deployed_files(
    project: Path, workspace: Workspace, tmp_path: Path
) -> None:
    assert main(DEPLOY) == 0
    there, spark = tmp_path / "there", tmp_path / "spark"
    for path, content in workspace.files.below(FILES).items():
        (there / path).parent.mkdir(parents=True, exist_ok=True)
        (there / path).write_bytes(content)
    spark.mkdir()
    for name in ("pyspark", "py4j"):
        (spark / name).symlink_to(Path(find_spec(name).origin).parent)  # type: ignore[union-attr, arg-type]

    def hosted() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", "-S", "-c", HOSTED, str(there), str(spark)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    done = hosted()
    assert done.returncode == 0, done.stderr
    package, module, owner, masked = json.loads(done.stdout)
    assert (package, module, owner) == (None, str(there / "lakelet/transforms/__init__.py"), "lakelet.transforms.pii")
    assert masked.startswith("tokenize(columns='user'")

    shutil.rmtree(there / "lakelet")  # without the copy nothing else provides the library there
    assert "ModuleNotFoundError: No module named 'lakelet'" in hosted().stderr


def test_a_second_deployment_with_the_library_writes_nothing(
    project: Path, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(DEPLOY) == 0
    writes = len(workspace.writes)
    assert main(DEPLOY) == 0
    assert "Nothing was written." in capsys.readouterr().err
    assert len(workspace.writes) == writes


def test_a_project_without_the_copy_is_refused_and_deploys_after_the_command_that_the_error_names(
    project: Path, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(project / "lakelet")
    assert main(DEPLOY) == 2
    told = capsys.readouterr().err
    assert "[DEPLOY_NEEDS_LAKELET] pipelines/web_events.py imports lakelet.transforms" in told
    assert "pipelines/web_events.py, line 6\n" in told
    assert workspace.writes == []
    (command,) = re.findall(r"Write a copy into the project: lakelet (.*)$", told, re.MULTILINE)
    assert main(command.split()) == 0
    assert main(DEPLOY) == 0
    assert library(workspace) == INSTALLED
