"""The reducer: rows of an event log, in any order, to updates, flows, rules, definitions."""

from __future__ import annotations

import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelet.dashboard.changes import what_changed
from lakelet.storage.eventlog.fold import UpdateFold, reduce_events
from lakelet.storage.eventlog.states import FlowState, UpdateState
from lakelet.storage.eventlog.summaries import Backlog, ColumnLineage, DefinitionPlace, Failure, RecordPlace
from tests.event_logs import FAILURE, Log, shop

ROWS = shop(4).rows
WHOLE = reduce_events(ROWS)


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_history_does_not_depend_on_the_order_of_the_rows_or_on_rows_that_come_twice(chance) -> None:
    rows = [*ROWS, *chance.sample(ROWS, 40)]
    chance.shuffle(rows)
    assert reduce_events(rows) == WHOLE


def test_rows_of_a_hosted_log_give_the_same_history() -> None:
    def hosted(row):
        sequence = {"data_plane_id": {"instance": "x", "seq_no": row["sequence"]}, "control_plane_seq_no": 1}
        return {**row, "details": json.dumps(row["details"]), "sequence": sequence}

    assert reduce_events([hosted(row) for row in ROWS]) == WHOLE


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (FAILURE, "main.silver.payments: 3 rows broke expectations whose action is fail"),
        ("[FLOW_FAILED] [UNRESOLVED] The column `a.b` is unknown. Did you mean `c`? SQLSTATE: 42703", "The column `a.b` is unknown."),
        ("Job aborted: file /a/b.json is not JSON at 1.5 MB\n  at line 3", "Job aborted: file /a/b.json is not JSON at 1.5 MB"),
        ("e.g. The first word is short. More", "e.g. The first word is short."),
        ("[CODE]", "[CODE]"),
        ("[FLOW_FAILED] a: failed\n  p.py, line 5\n  [X_BY_ZERO] Remainder by zero. Use `try_mod`.", "Remainder by zero."),
        (" \n", "no error was recorded"),
        ("word " * 100, "word " * 47 + "…"),
    ],
)  # fmt: skip
def test_an_error_is_told_by_its_first_sentence(text, sentence) -> None:
    assert Failure("FLOW_FAILED", text).sentence == sentence


def test_beside_its_dataset_an_error_does_not_name_it_again() -> None:
    assert Failure("C", FAILURE).sentence_about("main.silver.payments") == "3 rows broke expectations whose action is fail"


def test_counts_of_a_flow_are_sums_over_its_events() -> None:
    log = Log()
    update = log.update()
    update.flow("orders", 1, 2, status="RUNNING", rows=10, dropped=1, rules={"has_id": (10, 1)})
    update.flow("orders", 2, 4, rows=5, dropped=2, rules={"has_id": (5, 2)})
    (run,) = reduce_events(log.rows).updates[0].runs
    assert (run.status, run.rows, run.dropped, run.seconds) == (FlowState.COMPLETED, 15, 3, 3.0)
    assert [(c.name, c.passed, c.failed, c.pass_rate) for c in run.rules] == [("has_id", 15, 3, 15 / 18)]


def test_what_is_kept_of_a_continuous_update_does_not_grow_with_its_batches() -> None:
    def kept(batches: int) -> int:
        log = Log()
        update = log.update()
        for _ in range(batches):
            update.flow("orders", 1, 2, status="RUNNING", rows=10, rules={"has_id": (10, 1)})
            update.emit("late_records", {"dropped_by_watermark": 1}, dataset="orders", flow="orders", level="WARN")
        fold = UpdateFold(log.rows[0]["origin"]["update_id"])
        for row in log.rows:
            fold.take(row)
        assert [(c.passed, c.failed) for c in fold.value().runs[0].rules] == [(10 * batches, batches)]
        fold.seen.clear()
        return len(pickle.dumps(fold))

    assert kept(500) < kept(50) + 50  # numbers with more digits


def test_a_rule_of_a_view_is_counted_for_the_view() -> None:
    log = Log()
    rule = {"name": "known", "dataset": "main.s.typed", "passed_records": 3, "failed_records": 1}
    body = {"status": "RUNNING", "metrics": {"num_output_rows": 4}, "data_quality": {"dropped_records": 1, "expectations": [rule]}}
    log.update().emit("flow_progress", body, dataset="main.s.orders", flow="main.s.orders")
    (run,) = reduce_events(log.rows).updates[0].runs
    assert [(c.dataset, c.name) for c in run.rules] == [("main.s.typed", "known")]


def test_progress_that_is_of_no_flow_makes_no_dataset_unfinished() -> None:
    log = Log()
    update = log.update()
    update.flow("orders", 1, 2)
    update.emit("flow_progress", {"status": "RUNNING"}, dataset="orders", flow="pipelines.flowTimeMetrics.missingFlowName")
    newest = reduce_events(log.rows).updates[0]
    assert ([(run.dataset, run.status) for run in newest.runs], newest.unfinished) == ([("orders", FlowState.COMPLETED)], ())


def test_records_of_a_source_are_those_kept_and_those_left_out_with_the_first_place_in_whatever_order() -> None:
    log = Log()
    update = log.update()
    update.flow("orders", 1, 2)
    first = {"corrupt": 3, "left_out": 2, "first_file": "a.json", "first_line": 4, "reason": "byte 0xE9"}
    for body in (first, {"corrupt": 1, "passed_over": 5, "first_file": "b.json", "unit": "record"}):
        update.emit("source_records", body, dataset="orders", flow="orders", level="WARN")
    (run,) = reduce_events(reversed(log.rows)).updates[0].runs
    assert (run.corrupt, run.left_out, run.passed_over, run.unread_reason) == (4, 2, 5, "byte 0xE9")
    assert run.unread_place == RecordPlace("a.json", 4, "line")
    sentences = [change.text for change in what_changed(reduce_events(log.rows)) if change.about == "orders"]
    assert sentences == ["kept 2 broken lines", "left out 2 broken lines"]


def test_a_failure_has_the_text_of_the_terminal_and_stays_with_its_flow() -> None:
    newest = WHOLE.updates[-1]
    failed = [run for run in newest.runs if run.failure]
    assert [(run.dataset, run.failure.code, run.failure.text) for run in failed] == [
        ("main.silver.payments", "EXPECTATION_VIOLATION", FAILURE)
    ]
    assert newest.state is UpdateState.FAILED
    assert [run.reason for run in newest.runs if run.status is FlowState.SKIPPED] == ["main.silver.payments failed"]


def test_a_flow_that_failed_and_was_tried_again_has_no_failure_left() -> None:
    log = Log()
    update = log.update()
    update.flow("orders", 1, 2, status="FAILED", error=("FLOW_FAILED", "disk full"))
    update.flow("orders", 3, 4, rows=1, rules={})
    (run,) = reduce_events(log.rows).updates[0].runs
    assert (run.status, run.failure, run.attempts) == (FlowState.COMPLETED, None, 2)


def test_an_update_without_its_last_event_still_runs() -> None:
    log = Log()
    log.update().flow("orders", 1, status="RUNNING")
    update = reduce_events(log.rows).updates[0]
    assert (update.state, update.ended_at, update.seconds, update.runs[0].seconds) == (UpdateState.RUNNING, None, None, None)


def test_definitions_are_those_of_the_newest_update_that_has_any() -> None:
    log = Log()
    log.update().define("main.s.old")
    log.update().define("main.s.new", reads=["main.s.raw"], rules={"r": ("id > 0", "drop")}, source=("pipelines/a.py", 7))
    log.update()
    definitions = reduce_events(log.rows).definitions
    assert list(definitions) == ["main.s.new"]
    found = definitions["main.s.new"]
    assert (found.inputs, [(r.name, r.action) for r in found.rules], found.source) == (
        ("main.s.raw",),
        [("r", "drop")],
        DefinitionPlace("pipelines/a.py", 7),
    )


def test_lineage_schema_changes_checks_and_backlog_are_read() -> None:
    newest = WHOLE.updates[-1]
    lineage = WHOLE.definitions["main.gold.customer_value"].lineage
    inputs = (("main.silver.orders", "amount"), ("main.silver.customers", "amount"))
    assert lineage == (ColumnLineage("main.gold.customer_value", "main.gold.customer_value", "amount", inputs),)
    assert [(c.dataset, c.added[0], c.file) for c in newest.schema_changes] == [
        ("main.bronze.orders_raw", ("gift_note", "STRING"), "landing/orders/0302-06.json")
    ]
    assert [(c.name, c.success, c.observed) for c in newest.checks] == [
        ("order_id is unique", False, "17 duplicates"),
        ("fresh", True, "2 h"),
    ]
    assert [r.backlog for r in newest.runs if r.dataset == "main.bronze.orders_raw"] == [Backlog(new=3, listed=43)]


def test_backlog_is_what_waited_and_what_was_left() -> None:
    log = Log()
    update = log.update()
    for status, files, size in (("RUNNING", 4, 900), ("COMPLETED", 0, 0)):
        body = {"status": status, "metrics": {"backlog_files": files, "backlog_bytes": size}}
        update.emit("flow_progress", body, f"Flow 'a' is {status} because 4 files are new.", dataset="a", flow="a")
    (run,) = reduce_events(reversed(log.rows)).updates[0].runs
    assert run.backlog == Backlog(files=4, bytes=900, left_files=0, left_bytes=0)
    assert (run.status, run.reason) == (FlowState.COMPLETED, "4 files are new")


@pytest.mark.parametrize("body", [{}, {"status": "NEW_STATE"}, {"status": "RUNNING", "metrics": None, "data_quality": None}])
def test_an_event_of_an_unknown_form_is_no_error(body) -> None:
    log = Log()
    update = log.update()
    update.emit("flow_progress", body, dataset="orders", flow="orders")
    update.emit("an_event_of_later", {"a": 1})
    assert [run.rows for run in reduce_events(log.rows).updates[0].runs] == [0]
