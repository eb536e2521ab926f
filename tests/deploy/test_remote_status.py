"""status, events --remote and report --remote: what is deployed, and the event log of a deployed pipeline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakelet.cli.main import main
from lakelet.deploy.bundle import desired_state, location_of
from lakelet.deploy.deployment import DeploymentOptions, deploy, prepare
from lakelet.deploy.desired_state import User
from lakelet.deploy.state import locked
from tests.deploy.deployed import BUNDLE, Deployed
from tests.paths import ROOT
from tests.workspace_double import Workspace, dataset, failing_flow, flow

ORDERS = "main.sales.orders"
SCRIPT = (dataset(ORDERS), flow(ORDERS, rows=12, expectations={"valid_id": (10, 2)}))

PIPELINE = """\
resources:
  pipelines:
    sales:
      name: sales ${bundle.target}
      catalog: main
      schema: sales
      serverless: true
      libraries:
        - file:
            path: orders.py
"""


@pytest.fixture
def deployed(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployed:
    """A pipeline with two updates, the second of which failed."""
    found = Deployed(workspace, tmp_path / "shop")
    found.pipeline("sales")
    for script in (SCRIPT, (dataset(ORDERS), failing_flow(ORDERS, "no such file"))):
        workspace.script("*", script)
        found.start("sales")
        workspace.finish(found.ids["sales"])
    found.enter(monkeypatch)
    return found


def test_status_shows_what_is_deployed_and_the_last_updates(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "-t", "prod"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == f"shop in prod: {deployed.workspace.url}"
    assert "deployment 1 of 2026-08-01T12:00:00Z by me@x, 0 files" in out
    assert f"pipelines.sales  sales  {deployed.ids['sales']}" in out
    rows = [line.split() for line in out.splitlines() if line.startswith("  ")]
    newest, older = reversed(deployed.updates("sales"))
    assert [row[:3] for row in rows[1:]] == [[newest.id[:6], "FAILED", "API_CALL"], [older.id[:6], "COMPLETED", "API_CALL"]]


def test_status_as_json_has_the_same_facts(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "-t", "prod", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["bundle"], found["target"], found["serial"], found["lock"]) == ("shop", "prod", 1, None)
    assert found["resources"] == [{"resource": "pipelines.sales", "id": deployed.ids["sales"], "name": "sales"}]
    assert [u["state"] for u in found["pipelines"][0]["updates"]] == ["FAILED", "COMPLETED"]
    assert found["pipelines"][0]["state"] == "IDLE"


def test_status_of_a_pipeline_that_somebody_deleted(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.client.sdk.pipelines.delete(deployed.ids["sales"])
    assert main(["status", "-t", "prod"]) == 0
    assert "sales: MISSING" in capsys.readouterr().out


def test_status_names_who_deploys_now(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    with locked(deployed.client, deployed.place, User("ada@x", "ada"), "deploy"):
        assert main(["status", "-t", "prod"]) == 0
        assert "locked by ada@x on" in capsys.readouterr().out
        assert main(["status", "-t", "prod", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["lock"]["operation"] == "deploy"


def test_what_the_bundle_deploys_is_what_the_commands_find(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = Deployed(workspace, tmp_path / "shop")
    (project.root / "orders.py").write_text("import dlt\n")
    (project.root / "databricks.yml").write_text(BUNDLE + PIPELINE)
    project.enter(monkeypatch)
    user = project.client.user()
    for target in ("dev", "prod"):
        desired = desired_state(project.root, target, user, environ={}, cwd=project.root)
        place = location_of(project.root, target, user, environ={}, cwd=project.root)
        assert (place.bundle, place.target, place.workspace) == (desired.bundle, desired.target, desired.workspace)
        deploy(project.client, prepare(project.client, desired, DeploymentOptions()), user, DeploymentOptions())
        workspace.script("*", [flow(ORDERS, rows=5)])
        assert main(["run", "--remote", "-t", target]) == 0
        assert "5 rows written" in capsys.readouterr().err
    assert main(["status", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["target"], found["files"], [p["name"] for p in found["pipelines"]]) == ("dev", 2, ["sales dev"])


def test_status_before_the_first_deployment(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Deployed(workspace, tmp_path / "shop").enter(monkeypatch)
    assert main(["status", "-t", "prod"]) == 0
    assert "lakelet deploy -t prod" in capsys.readouterr().out


def test_events_of_the_newest_update_of_one_and_of_all(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    written = deployed.workspace.events[deployed.ids["sales"]]
    first, second = (update.id for update in deployed.updates("sales"))

    def told(*options: str) -> list[str]:
        assert main(["events", "--remote", "-t", "prod", "--json", *options]) == 0
        return [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()]

    assert told() == [e["id"] for e in written if e["origin"].get("update_id") == second]
    assert told("--update", first[:6]) == [e["id"] for e in written if e["origin"].get("update_id") == first]
    assert told("--all") == [e["id"] for e in written]
    progress = [e["id"] for e in written if e["event_type"] == "flow_progress" and e["origin"].get("update_id") == first]
    assert told("--update", first, "--type", "flow_progress") == progress
    deployed.workspace.events_per_page = 2
    assert told("--all") == [e["id"] for e in written]


def test_events_as_text_are_those_of_a_local_log(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "--remote", "-t", "prod", "--type", "flow_progress"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2:4] for line in lines] == [["INFO", "flow_progress"], ["INFO", "flow_progress"], ["ERROR", "flow_progress"]]
    assert lines[-1].endswith(f"Flow '{ORDERS}' has FAILED.")
    assert main(["events", "--remote", "-t", "prod", "--update", "nothing"]) == 2


def test_a_hidden_local_option_is_refused(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "--remote", "--storage", "x"]) == 2
    assert "--storage has no meaning with --remote" in capsys.readouterr().err
    assert main(["report", "--remote", "--rows", "0"]) == 2
    assert "--rows has no meaning with --remote" in capsys.readouterr().err


def test_the_report_shows_updates_rules_and_the_failure(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--remote", "-t", "prod", "--out", "page", "--json"]) == 0
    folder = Path(json.loads(capsys.readouterr().out)["path"])
    assert folder == deployed.root / "page"
    assert (folder / "index.html").is_file()
    text = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.suffix in (".json", ".js", ".html"))
    assert "valid_id" in text
    assert "no such file" in text
    assert deployed.workspace.token not in text
    assert main(["report", "--remote", "-t", "prod"]) == 0
    assert (deployed.root / ".lakelet" / "remote" / "prod" / "sales" / "report" / "index.html").is_file()


def test_a_token_in_the_answer_of_a_proxy_is_not_shown(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    echo = f"refused: Authorization: Bearer {deployed.workspace.token}, and another dapi{'ab' * 16}"
    deployed.workspace.fail("GET", "*/updates", status=400, message=echo, times=9)
    for command in (
        ["run", "--remote"],
        ["status"],
        ["stop", "--remote"],
        ["events", "--remote"],
        ["report", "--remote"],
        ["diff", "--remote"],
    ):
        assert main([*command, "-t", "prod", "--debug"]) == 1
        out, err = capsys.readouterr()
        assert "Traceback" in err
        assert "refused: Authorization: [REDACTED]" in err
        assert f'File "{ROOT}' in err
        for secret in (deployed.workspace.token, "ab" * 16):
            assert secret not in out + err


def test_a_secret_in_the_configuration_of_a_pipeline_is_in_no_output(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    project = Deployed(workspace, tmp_path / "shop")
    project.pipeline("sales", configuration={"shop.api_token": "hunter4hunter4"})
    workspace.script("*", SCRIPT)
    project.enter(monkeypatch)
    for command in (["run", "--remote", "--json"], ["events", "--remote", "--all", "--json"], ["status", "--json"], ["report", "--remote"]):
        assert main([*command, "-t", "prod"]) == 0
    written = capfd.readouterr()
    page = "".join(path.read_text(encoding="utf-8") for path in (project.root / ".lakelet").rglob("*") if path.is_file())
    assert "create_update" in written.out
    assert "hunter4" not in written.out + written.err + page


def test_a_wrong_and_an_expired_token_say_so(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.workspace.expire_token()
    assert main(["status", "-t", "prod", "--debug"]) == 3
    err = capsys.readouterr().err
    assert "[WORKSPACE_CREDENTIALS]" in err
    assert "expired" in err
    assert deployed.workspace.token not in err
