"""Executes docs/reference/deploy.md, docs/reference/remote.md and docs/ci.md: their commands against a workspace on loopback."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.cli.main import main
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset
from tests.deploy.deployed import Deployed
from tests.paths import ROOT
from tests.workspace_double import Workspace, dataset, flow

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BUNDLE = """\
bundle: {name: shop}
targets:
  dev: {default: true, mode: development}
  staging: {workspace: {root_path: /Workspace/Shared/shop/staging}}
resources:
  schemas: {tables: {catalog_name: main, name: sales}}
  pipelines:
    sales: {name: sales, catalog: main, schema: sales, serverless: true, libraries: [{glob: {include: src/**}}]}
"""
QUERY = "CREATE MATERIALIZED VIEW orders AS SELECT 1 AS id"


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return [body for found, body in BLOCK.findall(page(name)) if found == language]


@pytest.fixture
def shop(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose bundle makes a schema and a pipeline; it is the current folder, the workspace that of the environment."""
    (tmp_path / "src").mkdir()
    (tmp_path / "databricks.yml").write_text(BUNDLE)
    (tmp_path / "src" / "orders.sql").write_text(QUERY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LAKELET_TARGET", raising=False)
    for name, value in workspace.environment.items():
        monkeypatch.setenv(name, value)
    workspace.catalogs.add("main")
    return tmp_path


@pytest.mark.slow
def test_the_commands_of_the_page_about_deployment_deploy_roll_back_and_destroy(
    shop: Path, workspace: Workspace, spark: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = blocks("reference/deploy.md", "sh")
    plan, deploy, rollback, destroy = (shlex.split(line, comments=True)[1:] for line in block.splitlines())
    assert main(plan) == 4
    capsys.readouterr()
    assert main([*plan, "--json"]) == 4
    actions = {line["action"] for line in json.loads(capsys.readouterr().out)}
    documented = re.findall(
        r"`([a-z ]+)`", "".join(re.findall(r"^\| (`[^|]*) \|", page("reference/deploy.md").split("## State")[0], re.MULTILINE))
    )
    assert actions
    assert actions <= set(documented)
    assert main(deploy) == 0
    assert main(plan) == 0
    for name in ("lakelet.json", r"deployments/0*1\.json", r"objects/\w+\.pack"):
        assert any(re.search(f"/state/{name}$", path) for path in workspace.files), (name, list(workspace.files))
    assert not any(path.endswith("deploy.lock") for path in workspace.files)
    (shop / "src" / "orders.sql").write_text(QUERY.replace("1 AS id", "2 AS id"))
    assert main(deploy) == 0
    assert contents(workspace, "orders.sql") == [QUERY.replace("1 AS id", "2 AS id")]
    assert main(rollback) == 0
    assert contents(workspace, "orders.sql") == [QUERY]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True, readline=lambda: "dev\n"))
    assert main(destroy) == 0
    assert workspace.pipelines == {}
    assert contents(workspace, "orders.sql") == []


def contents(workspace: Workspace, name: str) -> list[str]:
    return [content.decode() for path, content in workspace.files.items() if path.endswith(f"/files/src/{name}")]


@pytest.mark.slow
def test_the_step_of_the_page_about_ci_writes_the_plan_and_takes_exit_code_4_as_success(shop: Path, workspace: Workspace) -> None:
    (block,) = blocks("ci.md", "sh")
    (shop / ".venv" / "bin").mkdir(parents=True)
    (shop / ".venv" / "bin" / "lakelet").symlink_to(Path(sys.executable).with_name("lakelet"))
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", block]
    done = subprocess.run(command, cwd=shop, env={**os.environ}, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    plan = (shop / "plan.md").read_text()
    assert "| " in plan
    assert "pipelines.sales" in plan
    assert workspace.writes == []
    (shop / "databricks.yml").write_text(BUNDLE.replace("staging:", "stages:"))
    done = subprocess.run(command, cwd=shop, env={**os.environ}, text=True, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr


@pytest.fixture
def prod(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployed:
    """A deployed pipeline, and its table here and there: one row is only here, a column has another type there."""
    found = Deployed(workspace, tmp_path / "shop")
    found.pipeline("sales")
    found.enter(monkeypatch)
    storage = Storage(found.root / ".lakelet")
    here = pa.table({"id": [1, 2, 3], "weight": pa.array([0.5, 1.0, 2.0], pa.float64())})
    write_deltalake(str(storage.root / "tables/orders"), here)
    name = "main.default.orders"
    storage.save(StorageRegistry(datasets={name: StoredDataset(name, "streaming_table", "tables/orders")}))
    workspace.tables["main.sales.orders"] = pa.table({"id": [1, 2, 4], "weight": pa.array([0.5, 1.0, 2.0], pa.float32())})
    workspace.script("*", [dataset("main.sales.orders"), flow("main.sales.orders", rows=3, expectations={"cheap": (1, 2)})])
    return found


def test_the_commands_of_the_page_about_the_workspace_do_what_the_table_says(
    prod: Deployed, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = re.findall(r"^\| `lakelet ([^`]*)` \|", page("reference/remote.md"), re.MULTILINE)
    assert [words.split()[0] for words in commands] == ["status", "run", "stop", "events", "report", "diff"]
    status, diff = ({}, {})
    for words in commands:
        code = main(shlex.split(words))
        printed = capsys.readouterr()
        assert code == (1 if words.startswith("diff") else 0), (words, printed)
        if words.startswith("run"):
            assert [update.state for update in prod.updates("sales")] == ["COMPLETED"]
    assert main([*shlex.split(commands[0]), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert main([*shlex.split(commands[-1]), "--key", "id", "--json"]) == 1
    diff = json.loads(capsys.readouterr().out)
    shown = [json.loads(text) for text in blocks("reference/remote.md", "json")]
    assert paths(status) == paths(shown[0])
    assert paths(diff) - {"datasets.keys.sample.columns.weight"} == paths(shown[1])
    assert (prod.root / ".lakelet/remote/prod/sales/report/index.html").is_file()


FREE = ("columns", "expectations", "key")
"""Objects whose keys are names of the tables."""


def paths(value: Any, lead: str = "") -> set[str]:
    """The keys of an object of JSON and of those in it."""
    if isinstance(value, list):
        return union(paths(one, lead) for one in value)
    if not isinstance(value, dict) or lead.rpartition(".")[2] in FREE:
        return set()
    return union({f"{lead}.{key}".lstrip("."), *paths(inner, f"{lead}.{key}".lstrip("."))} for key, inner in value.items())


def union(sets: Iterable[set[str]]) -> set[str]:
    return set().union(*sets)
