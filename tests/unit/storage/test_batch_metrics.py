"""What commits keep of their batches: read as it was written, written as before, told as events."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from lakelet.cdc.counts import complete, completed
from lakelet.flows.metrics import Totals, emit_batch
from lakelet.storage.delta.batch_metrics import BatchMetrics, RowChanges, SourceRecords
from lakelet.storage.eventlog.events import Event, Reporter
from lakelet.storage.root import Storage
from lakelet.storage.rule_counts import RuleCount

HEAD = '{"event_id": "e", "update_id": "u", "dataset": "main.shop.t", "flow": "f", "batch_id": 3, "rows": 7, "dropped": 1, '
RULES = '"expectations": [{"name": "r", "dataset": "main.shop.t", "passed_records": 7, "failed_records": 1}], "late": 2, '
SOURCES = (
    '"sources": [{"source": "/in", "records": 8, "rescued": 1, "corrupt": null, "first_file": "a.json", "first_line": 4}], "anything": true'
)
BATCH = f'{HEAD}"expectations": [], "late": 0, "sources": []'
STORED = {
    "stream": HEAD + RULES + SOURCES + "}",
    "view": BATCH.replace(": 3", ": null") + ', "view": {"fingerprint": "abc", "inputs": {"main.shop.raw": 4}}}',
    "view in part": BATCH.replace(": 3", ": null")
    + ', "view": {"fingerprint": "abc", "inputs": {"main.shop.raw": 4}, "technique": "groups", "rows": 9, '
    + '"learned": {"full_seconds": 2.5}}}',
    "once": BATCH + "}",
    "left out": BATCH.replace("[]}", "[]").replace('"sources": []', SOURCES.replace('4}], "anything": true', '4, "left_out": 2}]')) + "}",
    "quarantine": BATCH + ', "quarantined": 4}',
    "replay": BATCH.replace(": 3", ": null") + ', "released": 7}',
    "sized": BATCH + ', "anything": true, "bytes": 812}',
    "changes": BATCH + ', "anything": true, "upserted": 7, "deleted": 2, "rewritten": 40}',
    "sized changes": BATCH + ', "anything": true, "upserted": 7, "deleted": 2, "rewritten": 40, "bytes": 812}',
    "snapshot": BATCH + ', "generation": "0", "snapshot": {"type": "int", "value": 5}, "upserted": 7, "deleted": 0, "rewritten": 7}',
}
"""What the commits of each kind of flow have held since there are storages, key by key."""


@pytest.mark.parametrize("kind", STORED)
def test_what_a_commit_keeps_is_written_as_before(kind: str) -> None:
    found = BatchMetrics.from_json(json.loads(STORED[kind]))
    assert json.dumps(found.as_json()) == STORED[kind]
    assert BatchMetrics.of_commit({"lakelet": json.loads(STORED[kind])}) == found


def test_a_commit_of_a_newer_version_is_read_and_one_of_others_is_none_of_ours() -> None:
    newer = json.loads(STORED["stream"])
    newer["sources"][0]["bytes"] = newer["expectations"][0]["action"] = newer["more"] = 1
    assert BatchMetrics.from_json(newer) == BatchMetrics.from_json(json.loads(STORED["stream"]))
    assert [BatchMetrics.of_commit(found) for found in (None, {}, {"lakelet_adopted": {"version": 3}})] == [None, None, None]


def test_the_commit_of_a_merge_tells_its_rows_once_delta_has_counted_them() -> None:
    kept = {**json.loads(BATCH + ', "anything": true}'), "to_state": {"bury": 1, "truncate": 0}}
    counted = {"numTargetRowsInserted": "5", "numTargetRowsUpdated": "3", "numTargetRowsDeleted": "2", "numOutputRows": "40"}
    info = {"userMetadata": json.dumps({"lakelet": kept}), "operationMetrics": counted}
    assert json.loads(complete(info)["userMetadata"])["lakelet"] == json.loads(STORED["changes"])
    found = BatchMetrics.from_json(completed(kept, [{"add": {}}, {"commitInfo": info}]))
    assert (found.rows, found.changed) == (7, RowChanges(7, 2, 40))
    sized = {**info, "operationMetrics": {**counted, "numTargetBytesAdded": "812"}}
    assert json.loads(complete(sized)["userMetadata"])["lakelet"] == json.loads(STORED["sized changes"])


METRICS = BatchMetrics("e", "u", "main.shop.t", "f", 3, rows=0)


@pytest.mark.parametrize(
    ("found", "worth"),
    [
        ({}, False),
        ({"rows": 1}, True),
        ({"dropped": 1}, True),
        ({"late": 1}, True),
        ({"expectations": (RuleCount("r", "t", 0, 0),)}, False),
        ({"expectations": (RuleCount("r", "view", 1, 0),)}, True),
        ({"sources": (SourceRecords("/in", 0, 0, 0),)}, False),
        ({"sources": (SourceRecords("/in", 1, 0, 1),)}, True),
    ],
    ids=str,
)
def test_a_micro_batch_is_committed_when_anything_in_it_counts(found: dict[str, Any], worth: bool) -> None:
    assert dataclasses.replace(METRICS, **found).with_anything().worth_a_commit is worth


def test_a_batch_that_is_not_weighed_is_committed_in_any_case_and_says_nothing_about_it() -> None:
    assert METRICS.worth_a_commit
    assert "anything" not in METRICS.as_json()


def test_records_of_one_source_add_up_and_name_the_first_file_with_one_that_did_not_fit() -> None:
    totals = Totals()
    for source in (
        SourceRecords("/in", 5, None, 0),
        SourceRecords("/in", 4, 1, 2, "b.json", 7),
        SourceRecords("/in", 3, 1, 0, "c.json", 1),
    ):
        totals.add(dataclasses.replace(METRICS, rows=2, dropped=1, late=1, sources=(source,)))
    assert (totals.rows, totals.dropped, totals.late) == (6, 3, 3)
    assert totals.sources == {"/in": SourceRecords("/in", 12, 2, 2, "b.json", 7)}


def test_the_event_of_a_batch_has_the_shape_that_is_documented(tmp_path: Path) -> None:
    events: list[Event] = []
    reporter = Reporter("p", "shop", "u", Storage(tmp_path), frozenset(), events.append)
    for kind in ("stream", "changes", "sized", "sized changes"):
        emit_batch(reporter, BatchMetrics.from_json(json.loads(STORED[kind])))
    quality = {"dropped_records": 1, "expectations": json.loads(STORED["stream"])["expectations"]}
    metrics = {"num_output_rows": 7, "num_rows_dropped_by_watermark": 2}
    changed = {"num_upserted_rows": 7, "num_deleted_rows": 2, "rewritten_rows_per_changed_row": 4.444}
    assert [json.loads(event.details_json())["flow_progress"] for event in events] == [
        {"status": "RUNNING", "metrics": metrics, "data_quality": quality},
        {"status": "RUNNING", "metrics": changed},
        {"status": "RUNNING", "metrics": {"num_output_rows": 7, "num_output_bytes": 812}},
        {"status": "RUNNING", "metrics": {**changed, "num_output_bytes": 812}},
    ]
    assert {(e.message, e.id, e.origin.batch_id, e.origin.dataset_name, e.origin.flow_name) for e in events} == {
        ("Flow 'f' is RUNNING: 7 row(s) written.", "e", 3, "main.shop.t", "f")
    }
