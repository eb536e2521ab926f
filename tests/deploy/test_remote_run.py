"""run --remote and stop --remote: one update in a workspace, shown as a local one."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.cli.main import main
from lakelet.deploy import remote_updates
from lakelet.deploy.desired_state import ResourceKey
from tests.deploy.deployed import Deployed
from tests.workspace_double import Workspace, dataset, event, failing_flow, flow

ORDERS, DAYS = "main.sales.orders", "main.sales.orders_by_day"
SCRIPT = (
    dataset(ORDERS),
    dataset(DAYS, "MATERIALIZED_VIEW", inputs=[ORDERS]),
    flow(ORDERS, rows=1234, expectations={"valid_id": (1200, 34), "has_day": (1233, 1)}),
    event("maintenance_progress", "the table cannot be optimised", {"state": "FAILED"}, level="WARN"),
    flow(DAYS, rows=31),
)


@pytest.fixture
def deployed(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployed:
    found = Deployed(workspace, tmp_path / "shop")
    found.pipeline("sales")
    workspace.script("*", SCRIPT)
    workspace.stages_per_poll = 3
    quick = functools.partial(remote_updates.PollingIntervals, first=0.05, find_pauses=(0.05, 0.1))
    monkeypatch.setattr("lakelet.deploy.remote_updates.PollingIntervals", quick)
    found.enter(monkeypatch)
    return found


def starts(workspace: Workspace) -> list[object]:
    """The bodies of the requests that started an update, acted on or not."""
    return [{} if r.body == b"{}" else r.body for r in workspace.requests if r.method == "POST" and r.path.endswith("/updates")]


def test_the_summary_has_the_numbers_that_the_workspace_told(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--remote", "-t", "prod"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    update = deployed.updates("sales")[0]
    assert f"Update {update.id[:6]} of sales COMPLETED" in err
    assert "1,265 rows written, 35 dropped" in err
    assert "orders  valid_id  34  of 1,234 rows" in err
    assert "the table cannot be optimised" in err
    assert f"lakelet events --remote -t prod --update {update.id[:6]}" in err
    assert deployed.workspace.token not in err


def test_json_is_one_event_per_line_and_all_of_them(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--remote", "-t", "prod", "--json"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    update = deployed.updates("sales")[0]
    expected = [e for e in deployed.workspace.events[deployed.ids["sales"]] if e["origin"].get("update_id") == update.id]
    assert [e["id"] for e in told] == [e["id"] for e in expected]
    rules = [e["details"]["flow_progress"]["data_quality"] for e in told if "data_quality" in e["details"].get("flow_progress", {})]
    assert rules[0]["expectations"][0] == {"name": "valid_id", "dataset": ORDERS, "passed_records": 1200, "failed_records": 34}


def test_options_become_the_request(deployed: Deployed) -> None:
    options = ["--select", "orders", "--full-refresh", "orders_by_day", "--reset-checkpoint", "orders", "--param", "day=2026-08-01"]
    assert main(["run", "--remote", "-t", "prod", *options]) == 0
    assert main(["run", "--remote", "-t", "prod", "--full-refresh-all"]) == 0
    assert main(["run", "--remote", "-t", "prod", "--replace-where", "orders=day = '2026-08-01'"]) == 0
    assert main(["run", "--remote", "-t", "prod"]) == 0
    assert starts(deployed.workspace) == [
        {
            "refresh_selection": ["orders"],
            "full_refresh_selection": ["orders_by_day"],
            "reset_checkpoint_selection": ["orders"],
            "parameters": {"day": "2026-08-01"},
        },
        {"full_refresh": True},
        {"replace_where_overrides": [{"flow_name": "orders", "predicate_override": "day = '2026-08-01'"}]},
        {},
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--map", "/Volumes=./data"], "--map has no meaning with --remote"),
        (["--table", "a=b"], "--table has no meaning"),
        (["--storage", "x"], "--storage has no meaning"),
        (["--catalog", "x"], "--catalog has no meaning with --remote: the catalog is the deployed one"),
        (["--schema", "x"], "--schema has no meaning"),
        (["--master", "local"], "--master has no meaning"),
        (["--take-over", "x"], "--take-over has no meaning"),
        (["--continuous"], "--continuous has no meaning"),
        (["--triggered"], "Change `continuous` in the bundle"),
        (["--select", "ord*"], "no patterns and no directions"),
        (["--select", "+orders"], "no patterns and no directions"),
        (["--full-refresh-all", "--select", "orders"], "--full-refresh-all goes neither"),
        (["--refresh-failed", "--select", "orders"], "--refresh-failed goes with no other selection"),
        (["databricks.yml"], "one project folder and one key"),
    ],
)
def test_options_without_a_meaning_are_refused_before_anything_is_asked(
    deployed: Deployed, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.workspace.requests.clear()
    assert main(["run", "--remote", "-t", "prod", *options]) == 2
    assert words in capsys.readouterr().err
    assert deployed.workspace.requests == []


@pytest.mark.parametrize(
    "command", [["run", "--cancel-on-interrupt"], ["run", "--pipeline", "p"], ["events", "-t", "prod"], ["report", "-t", "x"]]
)
def test_options_of_remote_are_refused_without_it(deployed: Deployed, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 2
    assert "with --remote only" in capsys.readouterr().err


def test_an_update_that_fails_is_exit_code_1_with_the_error_of_databricks(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.workspace.script("*", [flow(ORDERS, rows=3), failing_flow(DAYS, "[DIVIDE_BY_ZERO] Division by zero")])
    assert main(["run", "--remote", "-t", "prod"]) == 1
    err = capsys.readouterr().err
    assert "FAILED" in err
    assert f"[REMOTE_FAILED] {DAYS}: [DIVIDE_BY_ZERO] Division by zero" in err
    assert err.partition("\nError\n")[2].count("Division by zero") == 1


def test_an_update_that_the_workspace_tries_again_is_followed_to_its_end(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.workspace.script("*", [failing_flow(ORDERS, "lost a node")], retry=[flow(ORDERS, rows=7)])
    assert main(["run", "--remote", "-t", "prod"]) == 0
    first, second = deployed.updates("sales")
    err = capsys.readouterr().err
    assert f"Update {first.id[:6]} failed; the workspace tries again: update {second.id[:6]}" in err
    assert f"Update {second.id[:6]} of sales COMPLETED" in err
    assert "7 rows written" in err
    assert len(starts(deployed.workspace)) == 1


def test_an_update_that_fails_before_its_flows_tells_why(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--remote", "-t", "prod", "--select", "ordrs"]) == 1
    assert "[REMOTE_FAILED] Unable to resolve the selected tables: ordrs." in capsys.readouterr().err


def test_refresh_failed_asks_for_what_the_last_update_did_not_finish(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.workspace.script("*", [flow(ORDERS, rows=3), failing_flow(DAYS, "no")])
    assert main(["run", "--remote", "-t", "prod"]) == 1
    deployed.workspace.script("*", SCRIPT)
    assert main(["run", "--remote", "-t", "prod", "--refresh-failed"]) == 0
    assert starts(deployed.workspace)[1] == {"refresh_selection": [DAYS]}
    assert main(["run", "--remote", "-t", "prod", "--refresh-failed"]) == 0
    assert "Nothing was started" in capsys.readouterr().err
    assert len(deployed.updates("sales")) == 2


@pytest.mark.parametrize("drop", ["before", "after"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_dropped_connection_starts_exactly_one_update(deployed: Deployed, drop: str, times: int) -> None:
    deployed.workspace.fail("POST", "*/updates", drop=drop, times=times)  # type: ignore[arg-type]
    assert main(["run", "--remote", "-t", "prod"]) == 0
    assert len(deployed.updates("sales")) == 1
    assert len(starts(deployed.workspace)) == (1 if drop == "after" else times + 1)


def test_a_start_that_stays_unanswered_ends_with_a_code_of_its_own(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.workspace.fail("POST", "*/updates", drop="before", times=99)
    assert main(["run", "--remote", "-t", "prod"]) == 1
    assert "[WORKSPACE_UNANSWERED]" in capsys.readouterr().err
    assert deployed.updates("sales") == []
    assert len(starts(deployed.workspace)) == 3


@pytest.mark.in_ci(every=4)
@pytest.mark.long
@pytest.mark.parametrize("fault", [{"status": 503, "retry_after": 1}, {"status": 429}, {"drop": "before"}, {"drop": "after"}])
def test_faults_while_it_is_followed_change_nothing(
    deployed: Deployed, fault: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.workspace.fail("GET", "*/events", skip=1, **fault)  # type: ignore[arg-type]
    deployed.workspace.fail("GET", "*/updates/*", skip=2, **fault)  # type: ignore[arg-type]
    assert main(["run", "--remote", "-t", "prod"]) == 0
    assert "1,265 rows written, 35 dropped" in capsys.readouterr().err


def test_an_active_update_is_named_with_what_to_do(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.workspace.stages_per_poll = 0
    active = deployed.start("sales")
    assert main(["run", "--remote", "-t", "prod"]) == 1
    err = capsys.readouterr().err
    assert f"[WORKSPACE_CONFLICT] update {active[:6]} of this pipeline is active already" in err
    assert "lakelet stop --remote" in err
    assert len(deployed.updates("sales")) == 1


def test_a_token_that_expires_on_the_way_leaves_the_update_and_says_so(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.workspace.fail("GET", "*/events", skip=1, status=401, times=99)
    assert main(["run", "--remote", "-t", "prod"]) == 3
    err = capsys.readouterr().err
    assert "[WORKSPACE_CREDENTIALS]" in err
    assert "may go on in the workspace" in err


def test_the_only_pipeline_is_the_default_and_others_are_chosen_by_key(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.pipeline("stock")
    assert main(["run", "--remote", "-t", "prod"]) == 2
    assert "--pipeline stock" in capsys.readouterr().err
    assert main(["run", "--remote", "-t", "prod", "--pipeline", "stock"]) == 0
    assert main(["run", "--remote", "-t", "prod", "stock"]) == 0
    assert (len(deployed.updates("stock")), deployed.updates("sales")) == (2, [])
    assert main(["run", "--remote", "-t", "prod", "--pipeline", "stocks"]) == 2
    assert 'Did you mean "stock"?' in capsys.readouterr().err


def test_nothing_deployed_says_how_to_deploy(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Deployed(workspace, tmp_path / "shop").enter(monkeypatch)
    assert main(["run", "--remote", "-t", "prod"]) == 2
    assert "lakelet deploy -t prod" in capsys.readouterr().err


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------------------------


def interrupted(deployed: Deployed, *options: str, when: Callable[[], bool]) -> tuple[int, str]:
    """Run a process, send SIGINT as soon as `when`, and return its exit code and what it wrote."""
    command = [sys.executable, "-m", "lakelet", "run", "--remote", "-t", "prod", *options]
    with subprocess.Popen(command, cwd=deployed.root, env=dict(os.environ), stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 30
        while not when():
            assert time.monotonic() < deadline
            assert process.poll() is None, process.stderr and process.stderr.read()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        return process.returncode, err


def looked(workspace: Workspace) -> bool:
    return sum(r.path.endswith("/events") for r in workspace.requests) >= 2


@pytest.mark.long
def test_ctrl_c_leaves_the_update_running_and_says_how_to_stop_it(deployed: Deployed) -> None:
    deployed.workspace.stages_per_poll = 0
    code, err = interrupted(deployed, when=lambda: looked(deployed.workspace))
    assert code == 130
    update = deployed.updates("sales")[0]
    assert update.active
    assert f"Update {update.id[:6]} goes on in the workspace." in err
    assert "stop --remote -t prod" in err
    assert "Traceback" not in err
    assert not any(r.path.endswith("/stop") for r in deployed.workspace.requests)


@pytest.mark.long
def test_ctrl_c_stops_the_update_where_it_was_asked_to(deployed: Deployed) -> None:
    deployed.workspace.script("*", [flow(ORDERS, rows=2)] * 400)
    code, err = interrupted(deployed, "--cancel-on-interrupt", when=lambda: looked(deployed.workspace))
    assert code == 130
    assert deployed.updates("sales")[0].state == "CANCELED"
    assert "CANCELED in" in err
    assert sum(r.path.endswith("/stop") for r in deployed.workspace.requests) == 1


# --- stop -------------------------------------------------------------------------------------------------------------------------------


def test_stop_ends_the_active_update(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.workspace.script("*", [flow(ORDERS, rows=2)] * 400)
    update = deployed.start("sales")
    assert main(["stop", "--remote", "-t", "prod", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"pipeline": "sales", "pipeline_id": deployed.ids["sales"], "update_id": update, "state": "CANCELED"}
    assert "CANCELED" in err
    assert main(["stop", "--remote", "-t", "prod"]) == 0
    assert "has no active update" in capsys.readouterr().err
    assert main(["stop"]) == 2


def test_keys_of_the_state_are_those_of_the_bundle(deployed: Deployed) -> None:
    assert ResourceKey.parse("pipelines.sales") in deployed.state().resources
