"""What Spark and Delta say when a stream cannot go on, told with the remedy."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lakelet.base.errors import Location
from lakelet.base.names import TableName
from lakelet.flows.failures import stream_failure
from lakelet.plan.kinds import APPEND, COMPLETE
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset

HEAD = "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: "
MOVED = (
    HEAD
    + "[{code}] Detected a data update (for example WRITE (Map(mode -> Overwrite))) in the source table at version 4. This is currently "
    "not supported. If you'd like to ignore updates, set the option 'skipChangeCommits' to 'true'. "
    "The source table can be found at path {path}. SQLSTATE: 0AKDC SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: t"
)


@pytest.fixture
def run(tmp_path):
    storage = Storage(tmp_path)
    storage.save(StorageRegistry(datasets={"c.s.src": StoredDataset("c.s.src", "streaming_table", "tables/c/s/src")}))
    declared, flow = SimpleNamespace(where=Location("p.py", 7)), SimpleNamespace(kind=APPEND)
    dataset = SimpleNamespace(name=TableName("c", "s", "t"))
    return SimpleNamespace(name="c.s.t", dataset=dataset, declared=declared, flow=flow, environment=SimpleNamespace(storage=storage))


@pytest.mark.parametrize("code", ["DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE"])
def test_an_updated_source_is_named_by_its_dataset_or_else_by_its_folder(run, tmp_path, code):
    known = stream_failure(run, Exception(MOVED.format(code=code, path=f"file:{tmp_path}/tables/c/s/src")))
    assert (known.code, known.what) == ("STREAM_SOURCE_CHANGED", "it streams from c.s.src, whose rows were updated or deleted")
    assert known.why.startswith("version 4 of c.s.src")
    other = stream_failure(run, Exception(MOVED.format(code=code, path="file:/lake/Sales DWH/other")))
    assert other.what == "it streams from /lake/Sales DWH/other, whose rows were updated or deleted"
    for remedy in ("skipChangeCommits", "readChangeFeed", "as a batch", "lakelet run --full-refresh c.s.t"):
        assert remedy in known.todo


OPERATORS = (
    "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator name does not match with the operator in state "
    "metadata.\nStateful operators in the metadata: [(OperatorId: 0 -> OperatorName: dedupe)]; Stateful operators in current batch: {now}. "
    "SQLSTATE: 42K03 SQLSTATE: XXKST"
)


@pytest.mark.parametrize(
    ("message", "code", "why"),
    [
        (
            OPERATORS.format(now="[(OperatorId: 0 -> OperatorName: stateStoreSave)]"),
            "STREAM_STATE_CHANGED",
            "knows dedupe, the query now has stateStoreSave",
        ),
        (OPERATORS.format(now="[]"), "STREAM_STATE_CHANGED", "the query now has none (SQLSTATE 42K03)"),
        (
            "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match. SQLSTATE: XXKST",
            "STREAM_STATE_CHANGED",
            "key schema",
        ),
        (
            "assertion failed: There are [2] sources in the checkpoint offsets and now there are [1] sources requested by the query.",
            "STREAM_SOURCES_CHANGED",
            "it read 2 source(s) so far, and now it has 1",
        ),
        ("[DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE] an unexpected table", "STREAM_SOURCES_CHANGED", "another table"),
        ("[DELTA_INVALID_SOURCE_VERSION] sourceVersion(0) is invalid", "STREAM_SOURCES_CHANGED", "of another kind"),
        ("No usable value for logOffset\nDid not find value which can be converted into long", "STREAM_SOURCES_CHANGED", "of another kind"),
    ],
)
def test_a_checkpoint_that_does_not_fit_names_what_changed_and_both_ways_out(run, message, code, why):
    found = stream_failure(run, Exception(HEAD + message))
    assert found.code == code
    assert why in found.why
    assert "lakelet run --full-refresh c.s.t" in found.todo
    assert "lakelet run --reset-checkpoint c.s.t" in found.todo
    run.flow.kind = COMPLETE  # all its rows are in the state: there is nothing to keep
    assert "--reset-checkpoint" not in stream_failure(run, Exception(HEAD + message)).todo


def test_any_other_failure_is_left_to_others(run):
    assert stream_failure(run, Exception(HEAD + "[DIVIDE_BY_ZERO] Division by zero.")) is None
