"""Events of Databricks as the console, the summary and the page take them."""

from __future__ import annotations

import io
from datetime import datetime, timezone
from typing import Any

import pytest

from lakelet.base.redaction import remember
from lakelet.cli.console import PlainLines
from lakelet.dashboard.catalog import dataset_views
from lakelet.deploy.remote_updates import error_of, event_of, json_of
from lakelet.storage.eventlog.fold import reduce_events
from lakelet.storage.eventlog.states import EventType, FlowState, Level, UpdateState
from lakelet.storage.rule_counts import RuleCount


def row(kind: str, body: dict[str, Any] | None = None, *, number: int = 1, **fields: Any) -> dict[str, Any]:
    """One event in the form of the REST answer."""
    origin = {"cloud": "AWS", "pipeline_id": "p", "pipeline_name": "sales", "update_id": "u1", "host": None}
    origin |= {name: fields.pop(name) for name in ("dataset_name", "flow_name", "batch_id") if name in fields}
    return {
        "id": f"e{number}",
        "sequence": {"data_plane_id": {"instance": "execution", "seq_no": number}},
        "origin": origin,
        "timestamp": f"2026-08-01T12:00:{number:02d}.123Z",
        "message": fields.pop("message", f"event {number}"),
        "level": fields.pop("level", "INFO"),
        "details": {kind: body} if body is not None else {},
        "event_type": kind,
        "maturity_level": "STABLE",
        **fields,
    }


QUALITY = {"dropped_records": 2, "expectations": [{"name": "valid_id", "dataset": "orders", "passed_records": 8, "failed_records": 2}]}


def flow(status: str, number: int, **fields: Any) -> dict[str, Any]:
    body = {"status": status, **fields.pop("body", {})}
    return row("flow_progress", body, number=number, dataset_name="orders", flow_name="orders", **fields)


UPDATE = [
    row("create_update", {"cause": "API_CALL"}, number=1),
    row("update_progress", {"state": "WAITING_FOR_RESOURCES"}, number=2),
    row("cluster_resources", {"num_task_slots": 4}, number=3),
    row("update_progress", {"state": "RUNNING"}, number=4),
    flow("STARTING", 5),
    flow("RUNNING", 6, body={"metrics": {"num_output_rows": 8}, "data_quality": QUALITY}, level="METRICS"),
    flow("COMPLETED", 7, message="Flow 'orders' has COMPLETED."),
    row("update_progress", {"state": "COMPLETED"}, number=8),
]


def test_the_console_counts_a_hosted_update_as_a_local_one() -> None:
    out = io.StringIO()
    shown = PlainLines(out)
    for one in UPDATE:
        event = event_of(one)
        if event is not None:
            shown(event)
    update = shown.update.value()
    assert (update.pipeline, update.id, update.state) == ("sales", "u1", UpdateState.COMPLETED)
    assert (update.total("rows"), update.total("dropped")) == (8, 2)
    assert update.counts_by_rule == {("orders", "valid_id"): RuleCount("valid_id", "orders", 8, 2)}
    assert update.all_datasets["orders"].state is FlowState.COMPLETED
    assert "COMPLETED  orders  8 rows, 2 dropped, 2 violations" in out.getvalue()


def test_the_page_reads_the_same_numbers() -> None:
    found = reduce_events(json_of(one) for one in UPDATE).updates[0]
    assert found.state is UpdateState.COMPLETED
    assert [(run.dataset, run.written, run.dropped) for run in found.runs] == [("orders", 8, 2)]
    assert found.runs[0].rules[0].failed == 2


def test_the_page_shows_rules_that_the_definitions_do_not_name() -> None:
    defined = row("dataset_definition", {"dataset_type": "STREAMING_TABLE"}, number=9, dataset_name="orders")
    views = dataset_views(reduce_events(json_of(one) for one in [*UPDATE, defined]))
    assert [series.points[-1][1] for view in views for series in view.rules] == [RuleCount("valid_id", "orders", 8, 2)]


def test_json_holds_everything_that_the_workspace_said() -> None:
    found = json_of(UPDATE[2])
    assert found["event_type"] == "cluster_resources"
    assert found["details"] == {"cluster_resources": {"num_task_slots": 4}}
    assert found["sequence"] == 3
    assert found["timestamp"] == "2026-08-01T12:00:03.123000Z"
    assert "host" not in found["origin"]
    assert found["origin"]["cloud"] == "AWS"


def test_details_as_text_and_times_with_nanoseconds_are_read() -> None:
    event = event_of(
        row("update_progress", number=1)
        | {"details": '{"update_progress": {"state": "FAILED"}}', "timestamp": "2026-08-01T00:00:00.123456789Z"}
    )
    assert event is not None
    assert event.body == {"state": "FAILED"}
    assert event.timestamp == datetime(2026, 8, 1, 0, 0, 0, 123456, timezone.utc)


@pytest.mark.parametrize("kind", ["autoscale", "maintenance_progress"])
def test_a_type_that_no_update_here_has_is_told_where_it_warns(kind: str) -> None:
    assert event_of(row(kind, {"state": "RUNNING"})) is None
    warned = event_of(row(kind, {"state": "FAILED"}, level="ERROR", message="it failed"))
    assert warned is not None
    assert (warned.event_type, warned.level, warned.message) == (EventType.NOTICE, Level.WARN, "it failed")


def test_unknown_states_and_missing_bodies_break_nothing() -> None:
    out = io.StringIO()
    shown = PlainLines(out)
    for one in (
        row("update_progress", {"state": "NEW_WORD"}),
        flow("NEW_WORD", 2),
        row("flow_progress", number=3, flow_name="f"),
        row("update_progress"),
    ):
        event = event_of(one)
        assert event is not None
        shown(event)
    assert shown.update.value().all_datasets["orders"].state is FlowState.RUNNING


def failed(message: str, class_name: str = "org.apache.spark.sql.AnalysisException") -> dict[str, Any]:
    exceptions = [{"class_name": class_name, "message": message, "stack": []}, {"class_name": "java.io.IOException", "message": "gone"}]
    return flow("FAILED", 1, level="ERROR", error={"fatal": True, "exceptions": exceptions})


def test_an_error_keeps_the_words_of_databricks_and_gets_a_code() -> None:
    error = error_of(failed("Table not found\nat line 3"))
    assert error is not None
    assert (error.code, int(error.exit_code)) == ("REMOTE_FAILED", 1)
    assert error.lines() == [
        "[REMOTE_FAILED] orders: Table not found",
        "  at line 3",
        "  org.apache.spark.sql.AnalysisException",
        "  java.io.IOException: gone",
    ]


@pytest.mark.parametrize("text", ["[EXPECTATION_VIOLATION.VERBOSITY_ALL] Flow 'orders' failed", "[UNKNOWN_FIELD_EXCEPTION] new column"])
def test_an_error_whose_code_lakelet_has_keeps_it(text: str) -> None:
    error = error_of(failed(text))
    assert error is not None
    assert error.code == text[1:].partition("]")[0].partition(".")[0]
    assert "[" not in error.what


def test_secrets_of_a_pipeline_s_configuration_are_in_no_event() -> None:
    config = {"configuration": {"db.password": "hunter3", "api_key": "hunter3", "day": "2026-08-01", "secret_scope": "prod"}}
    told = json_of(row("create_update", {"cause": "API_CALL", "config": config, "tokens": [{"token": "hunter3"}]}))
    assert "hunter3" not in str(told)
    kept = told["details"]["create_update"]["config"]["configuration"]
    assert (kept["day"], kept["secret_scope"], kept["db.password"]) == ("2026-08-01", "prod", "[REDACTED]")


def test_secrets_are_in_no_event() -> None:
    remember("hunter2-hunter2")
    told = row("user_action", {"action": "START", "note": "hunter2-hunter2"}, message="with hunter2-hunter2", level="WARN")
    assert "hunter2-hunter2" not in str(json_of(told))
    event = event_of(told)
    assert event is not None
    assert "hunter2-hunter2" not in f"{event.message}{event.details}"
