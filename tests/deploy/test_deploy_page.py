"""Executes docs/deploy.md and the workflow of .github: every command, in order, against one workspace on loopback."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakelet.cli.main import main
from tests.paths import ROOT
from tests.workspace_double import Workspace, flow

COPIED = ("Makefile", "pyproject.toml", "databricks.yml", "resources", "pipelines", "expectations", "README.md", "src")
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXIT_CODE = '; echo "exit code $?"'
RULES = {"known_agent": (9, 1), "has_time": (10, 0)}


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    """The workspace as the page finds it: catalogs and the warehouse of the dashboard are there, updates write what rules counted."""
    workspace.catalogs.update({"main", "staging", "prod"})
    workspace.add_warehouse("Serverless Starter Warehouse")
    workspace.script("*", [flow("main.comms.events", rows=10, expectations=RULES)])
    return workspace


@pytest.fixture
def folder(tmp_path: Path, filled: Workspace, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project as the current folder, with the workspace in the environment."""
    copy = tmp_path / "lakelet"
    for name in COPIED:
        origin, there = ROOT / name, copy / name
        if origin.is_dir():
            shutil.copytree(origin, there, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(origin, there)
    monkeypatch.chdir(copy)
    for name in [n for n in os.environ if n.startswith(("LAKELET_", "BUNDLE_VAR_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LAKELET_PROGRESS", "off")
    for name, value in filled.environment.items():
        monkeypatch.setenv(name, value)
    return copy


@pytest.mark.long
def test_the_ten_commands_lead_from_a_laptop_to_production(
    folder: Path, filled: Workspace, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    printed: dict[str, str] = {}
    for body in BLOCK.findall(page):
        (command,) = body.splitlines()
        line, look, _ = command.partition(EXIT_CODE)
        code = main(shlex.split(line.removeprefix(".venv/bin/lakelet ")))
        out, err = capsys.readouterr()
        printed[command] = out
        assert code == (4 if look else 0), f"{command}\n{out}{err}"
        if command == ".venv/bin/lakelet deploy":
            _check_sources(folder, filled)
            before = len(filled.writes)
            assert main(["deploy", "--no-validate"]) == 0
            locks = [w for w in filled.writes[before:] if "deploy.lock" not in str(w.body) and "deploy.lock" not in str(w.query)]
            assert locks == [], "a second deployment wrote something"
            capsys.readouterr()
    assert "known_agent" in printed[".venv/bin/lakelet events --remote --type flow_progress --json"]
    names = sorted(p.spec["name"] for p in filled.pipelines.values())
    assert len(names) == 2, names
    assert any(name.startswith("[dev ") for name in names)
    assert sorted(len(p.updates) for p in filled.pipelines.values()) == [1, 1]


def _check_sources(folder: Path, workspace: Workspace) -> None:
    """Every deployed source is byte for byte the project's."""
    deployed = {path: content for path, content in workspace.files.items() if "/dev/files/" in path}
    found = {path.split("/dev/files/", 1)[1]: content for path, content in deployed.items()}
    wanted = {
        str(f.relative_to(folder)): f.read_bytes()
        for part in ("pipelines", "expectations")
        for f in (folder / part).rglob("*")
        if f.is_file() and "__pycache__" not in f.parts
    }
    assert wanted.items() <= found.items()


@pytest.fixture
def steps() -> dict[str, list[str]]:
    """The commands of each job of the workflow that deploys."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "deploy.yml").read_text(encoding="utf-8"))
    return {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in workflow["jobs"].items()}


@pytest.mark.slow
def test_the_steps_of_the_workflow_plan_and_deploy(folder: Path, filled: Workspace, steps: dict[str, list[str]], tmp_path: Path) -> None:
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "lakelet").symlink_to(Path(sys.executable).with_name("lakelet"))
    summary = tmp_path / "summary.md"
    for job in ("plan", "staging", "prod"):
        for step in steps[job]:
            if step.startswith(("make ", "gh ")):
                continue
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step],
                cwd=folder, env={**os.environ, "GITHUB_STEP_SUMMARY": str(summary)},
                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            assert done.returncode == 0, f"{job}: {step}\n{done.stdout}"
    assert "pipelines.system_a" in summary.read_text()
    assert len(filled.pipelines) == 2
    assert sorted(len(p.updates) for p in filled.pipelines.values()) == [0, 1]


def test_only_jobs_that_sign_in_may_ask_for_a_token_and_prod_comes_last(steps: dict[str, list[str]]) -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "deploy.yml").read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    for name, job in jobs.items():
        signs_in = any("lakelet deploy" in step or "--remote" in step for step in steps[name])
        assert ("id-token" in job.get("permissions", {})) == signs_in, name
        assert signs_in == ("environment" in job), name
    assert (jobs["prod"]["needs"], jobs["staging"]["needs"], jobs["dev"]["needs"]) == ("staging", "dev", "test")
    assert "secrets." not in (ROOT / ".github" / "workflows" / "deploy.yml").read_text()
