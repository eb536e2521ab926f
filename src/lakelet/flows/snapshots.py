"""Change flows that read a batch: `once`, and snapshots, periodic or given by a function (CD-13, CD-17).

What was applied last is kept in the commit that applied it: its number, and the version of a snapshot.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.autoloader.reader_arguments import struct_of
from lakelet.base.errors import LakeletError
from lakelet.base.user_code import call_user_code
from lakelet.cdc import writing
from lakelet.cdc.change_table import ChangeTable
from lakelet.cdc.changes import END, START, Layout, col, layout, same_values
from lakelet.cdc.generated_columns import given
from lakelet.cdc.heads import open_rows
from lakelet.cdc.snapshot_versions import copy_of, from_stored, is_after, sequence_of, to_stored
from lakelet.files.delta_log import TableLog
from lakelet.flows import once
from lakelet.flows.checkpoints import has_run, read_marker, write_marker
from lakelet.flows.context import FlowTask, RunReader, event_id, run_reader
from lakelet.flows.failures import failures_of
from lakelet.flows.metrics import Totals, emit_batch, query_metrics
from lakelet.flows.target_table import emit_first_odd_names
from lakelet.language.model import ChangeSpec
from lakelet.language.registry import reading
from lakelet.plan.decisions import Decision, Strategy
from lakelet.spark.expectations.measure import judged
from lakelet.spark.names.reader import data_frame, rows_of
from lakelet.spark.session_clones import flow_session
from lakelet.storage.delta import schemas
from lakelet.storage.delta.batch_metrics import BatchMetrics, SnapshotBatch
from lakelet.storage.delta.transaction import Transaction, Txn
from lakelet.storage.root import INTERNAL

_GONE = "__lakelet_gone"


def decide_snapshots(task: FlowTask) -> Decision:
    """Whether the flow has something to do: `once` only until it was done, snapshots in every update."""
    spec = task.declared.changes
    if spec is not None and spec.once:
        applied = not callable(spec.snapshots) and _newest(task) is not None  # a function may have more of them than were applied
        return once.DONE if applied or has_run(task.environment.storage, task.declared) else once.NOT_YET
    return Decision(Strategy.STREAM, "a snapshot is compared in every update")


def run_batches(task: FlowTask) -> Totals:
    """Apply what there is. Raises LakeletError; then the table is as the last complete snapshot left it."""
    spec = task.declared.changes
    assert spec is not None
    totals = Totals()
    writing.catch_up(task.path())
    with flow_session(task.environment.spark, task.conf) as spark:
        reader = run_reader(task, spark)
        with failures_of(task, "the changes could not be applied"), reading(reader):
            if spec.once and spec.snapshots is None:
                frame = rows_of(task.declared)
                _apply(task, spec, frame, layout(spec, frame), totals, None, reader)
            else:
                for snapshot, version in _snapshots(task, spec, reader):
                    _apply_snapshot(task, spec, snapshot, version, totals, reader)
                if spec.once and (last := read_marker(task.environment.storage, task.declared)):
                    write_marker(task.environment.storage, task.declared, done=True, facts=last["facts"])
    environment = task.environment
    columns = environment.spark.read.format("delta").load(str(task.path())).schema
    emit_first_odd_names(task, columns)
    environment.storage.remember(replace(task.stored(), columns=columns.json()))
    return totals


def _snapshots(task: FlowTask, spec: ChangeSpec, reader: RunReader) -> Iterator[tuple[DataFrame, Any]]:
    """(snapshot, version), one after the other; the `reader` has the watches of one at a time.

    Raises CDC_SNAPSHOT_INVALID for a version that does not ascend.
    """
    if spec.snapshots == "periodic":
        yield rows_of(task.declared), datetime.now(timezone.utc)
        return
    assert callable(spec.snapshots)
    last = _last_version(task)
    while True:
        reader.watches.clear()
        given = copy_of(call_user_code(spec.snapshots, last))
        if given is None:
            return
        frame, version = given
        if last is not None and not is_after(version, last):
            raise LakeletError(
                "CDC_SNAPSHOT_INVALID",
                f"the snapshot has version {version!r}, and {last!r} has been applied already",
                todo="Return snapshots in ascending order of their versions, and None after the last one.",
            )
        yield data_frame(frame, task.declared), version
        last = version


def _apply_snapshot(task: FlowTask, spec: ChangeSpec, snapshot: DataFrame, version: Any, totals: Totals, reader: RunReader) -> None:
    """A snapshot as the events that lead to it (CD-17): what is new or differs, and what is no more."""
    dated = replace(spec, sequence_by=sequence_of(version, struct_of(task.dataset.schema, task.environment.spark)), snapshots=None)
    shape = layout(dated, snapshot)
    counted = snapshot.groupBy(*map(col, shape.keys)).count().where("count > 1")
    repeated = counted.select(F.to_json(F.struct(*map(col, shape.keys))), "count").first()
    if repeated is not None:
        what = f"the key {repeated[0]} occurs {repeated['count']} times in the snapshot of {version!r}"
        raise LakeletError("CDC_SNAPSHOT_INVALID", what)
    wanted = snapshot.select(*map(col, shape.columns.fieldNames())).withColumn(_GONE, F.lit(False))
    changed = replace(dated, apply_as_deletes=F.col(_GONE))
    _apply(task, changed, wanted, shape, totals, version, reader)


def _differences(task: FlowTask, wanted: DataFrame, shape: Layout) -> DataFrame:
    """The rows of a snapshot that the target does not have like that, and its open rows that the snapshot does not have.

    A column or field that only one of them has is NULL in the other.
    """
    target = Transaction(wanted.sparkSession, task.path())
    if target.read_version < 0 or target.outdated(task.table_spec(shape.visible)):
        return wanted
    now = open_rows(wanted.sparkSession, task.path()) if shape.history else target.rows()
    columns = given(target.schema, task.dataset.computed).fields
    stored = T.StructType([f for f in columns if not (shape.history and f.name in (START, END))])
    merged = schemas.merge(stored, shape.columns, widen=schemas.widens(task.table_spec(shape.visible).properties or {}))
    keys, row = [col(key) for key in shape.keys], F.struct(*map(col, merged.fieldNames()))
    known = schemas.conformed(now, merged).select(*keys, same_values(row).alias("__now"))
    arrived = schemas.conformed(wanted, merged).select(*keys, row.alias("__row"), same_values(row).alias("__arrived"))
    both = arrived.join(known, list(shape.keys), "full_outer").where(~F.col("__arrived").eqNullSafe(F.col("__now")))
    own = {key.lower() for key in shape.keys}
    values = [col(name) if name.lower() in own else F.col("__row")[name].alias(name) for name in merged.fieldNames()]
    return both.select(*values, F.col("__arrived").isNull().alias(_GONE))


def _apply(task: FlowTask, spec: ChangeSpec, frame: DataFrame, shape: Layout, totals: Totals, version: Any, reader: RunReader) -> None:
    """One batch, in one commit with its counts, those of the views that the `reader` opened for it, and the snapshot's version."""
    before = _newest(task)
    number = 0 if before is None else before.batch_id + 1
    observation = Observation(f"lakelet_{uuid.uuid4().hex}")
    rules = task.dataset.expectations
    batch = SnapshotBatch(task.checkpoint_name(), None if version is None else to_stored(version))

    id = event_id(task.stored().path, task.name, task.checkpoint_name(), number)
    measure = partial(query_metrics, task, reader, observation, event_id=id, batch_id=number, batch=batch)
    rows = judged(frame, rules, observation, samples=task.samples)
    table = ChangeTable(task.path(), task.change_specs, task.table_spec(shape.visible), task.is_streamed(), task.dataset.computed)
    writing.reconcile(frame.sparkSession, table, shape)  # what is compared with the snapshot must be the table
    events = rows if version is None else _differences(task, rows, shape)
    txn = Txn(f"{task.name}/{task.checkpoint_name()}", number)
    applied = writing.apply(spec, table, events, shape, txn=txn, measure=measure, replayed=False)
    assert applied is not None  # nothing is looked up without `replayed`
    all_of_it = task.declared.changes is None or not callable(task.declared.changes.snapshots)
    kept = _Applied(number, batch.snapshot)
    write_marker(task.environment.storage, task.declared, done=all_of_it, facts=asdict(kept))  # Delta cleans its log up after a month
    totals.add(applied)
    emit_batch(task.environment.reporter, applied)


@dataclass(frozen=True)
class _Applied:
    """A batch that the flow applied: its number, and the version of the snapshot in its stored form; None for a batch that is none."""

    batch_id: int
    snapshot: Any


def _newest(task: FlowTask) -> _Applied | None:
    """What the flow applied in its newest commit since the last reset; of a commit whose log file is gone, by its note. None for none."""
    log = TableLog(task.path() / INTERNAL)
    for number in range(log.version(), -1, -1):
        commit = log.commit(number)
        if commit is None:
            known = read_marker(task.environment.storage, task.declared).get("facts")
            return _Applied(known["batch_id"], known.get("snapshot")) if known else None
        found = BatchMetrics.of_commit(commit.user_metadata)
        if found is not None and found.batch is not None and (found.flow, found.batch.generation) == (task.name, task.checkpoint_name()):
            return _Applied(found.batch_id or 0, found.batch.snapshot)
    return None


def _last_version(task: FlowTask) -> Any:
    found = _newest(task)
    return from_stored(found.snapshot) if found and found.snapshot else None
