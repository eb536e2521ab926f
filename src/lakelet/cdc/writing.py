"""One micro-batch of changes into its table: one commit in the internal log, then the target's log follows (decision 0012)."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.failpoints import reached
from lakelet.cdc import changes, compaction, foreign_commits, heads, history, identity, latest, target_declarations, where_condition
from lakelet.cdc import state as states
from lakelet.cdc.batches import Batch, in_ranges
from lakelet.cdc.change_table import ChangeTable, Retention
from lakelet.cdc.changes import AUTHORED, BURIED, DELETED, HIDDEN, OUTSIDE, RULE, SEQ, SYSTEM, BatchSummary, Layout, stored_layout
from lakelet.cdc.generated_columns import completed, given
from lakelet.cdc.heads import Reach
from lakelet.cdc.identity import MADE_WITH
from lakelet.cdc.late_keys import FILE, late_changes
from lakelet.cdc.latest import ACTION
from lakelet.cdc.merging import merge
from lakelet.cdc.mirror import LAST, PART, ROWS, STATE, VISIBLE, mirror, position
from lakelet.cdc.state import ChangeState
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.jvm.delta import write_checkpoint
from lakelet.jvm.scala import value_of
from lakelet.jvm.streams import metrics_of
from lakelet.language.model import ChangeSpec
from lakelet.spark.partitions import sized
from lakelet.storage.delta import column_mapping, schemas, tables
from lakelet.storage.delta.batch_metrics import BatchMetrics, RowChanges, size_of
from lakelet.storage.delta.deferred_upkeep import DEFERRED
from lakelet.storage.delta.locks import lock_of
from lakelet.storage.delta.table_spec import CHANGE_FEED, TableSpec
from lakelet.storage.delta.transaction import Transaction, Txn
from lakelet.storage.root import INTERNAL

_CHECKPOINT_EVERY = 10
TINY, SMALL = 2 << 20, 32 << 20
"""Bytes: a table up to TINY is written again as a whole, one up to SMALL where a batch has many events for it."""

_SHARE = 20  # one event for so many rows are many
_FEW = 2_000  # events that are read in one task, as the rows of a table of their size
_LARGE = 64 << 20  # bytes; above it a merge marks rows as deleted instead of writing their files again
_VECTORS = "delta.enableDeletionVectors"
_PHYSICAL = "delta.columnMapping.physicalName"


def internal_spec(shape: Layout, wanted: TableSpec, state: ChangeState) -> TableSpec:
    """The internal table of a target that is wanted like `wanted`."""
    authored = [T.StructField(AUTHORED, T.ArrayType(T.StringType()))] if state.named else []
    rule = [T.StructField(RULE, T.IntegerType())] if state.ruled else []
    system = [] if shape.system is None else [T.StructField(SYSTEM, shape.system)]
    marks = [T.StructField(SEQ, shape.sequence), *system, T.StructField(DELETED, T.BooleanType())]
    dates = [T.StructField(BURIED, T.TimestampType())] if not state.events and Retention.of(wanted.properties or {}) else []
    hidden = [*marks, *authored, *rule, *dates, T.StructField(PART, T.StringType())]
    if column_mapping.is_mapped(wanted.properties or {}):  # the target's log knows the hidden columns by these names
        hidden = [T.StructField(f.name, f.dataType, True, {_PHYSICAL: f.name}) for f in hidden]
    visible = wanted.schema if wanted.schema.fields else shape.visible
    loose = schemas.storable(visible).fields  # tombstones have keys only; NOT NULL is the target's (TP-20)
    # Its commits hold what was applied and counted, so they are kept; the target's log is cleaned up as usual.
    kept = {MADE_WITH: json.dumps(shape.made_with), states.PROPERTY: state.to_json(), **target_declarations.KEPT}
    columns, properties = T.StructType([*loose, *hidden]), {**(wanted.properties or {}), **kept}
    return replace(wanted, schema=columns, partition_cols=(PART, *wanted.partition_cols), cluster_by=(), properties=properties)


def catch_up(target: AnyPath) -> None:
    """Mirror what a crash left in the internal log only. A target that others wrote to is left as it is; see `reconcile`."""
    if TableLog(target / INTERNAL).version() >= 0:
        mirror(target, HIDDEN)


def reconcile(session: SparkSession, table: ChangeTable, shape: Layout) -> None:
    """Adopt foreign commits, and mirror the internal log (CT-1 to CT-9).

    Raises CDC_STATE_CHANGED, CDC_TABLE_ALTERED, CDC_FILES_GONE, CDC_ROW_BY_HAND; then nothing was written.
    """
    if TableLog(table.internal).version() < 0:
        return
    while mirror(table.path, HIDDEN) is None:  # once more if others commit in the meantime
        transaction = Transaction(session, table.internal)
        wanted = column_mapping.kept(transaction, table.wanted)
        made = internal_spec(shape, wanted, ChangeState.of(table.flows))
        if transaction.outdated(made):
            foreign_commits.adopt(session, table.path, None)
            continue
        identity.same_state(transaction.properties.get(MADE_WITH), shape.made_with)
        state = ChangeState.from_properties(transaction.properties)
        foreign_commits.adopt(session, table.path, foreign_commits.TableState(state, shape, table.retention(state), table.computed))


def create_if_absent(session: SparkSession, table: ChangeTable, shape: Layout) -> None:
    """Make the empty table of a flow that has seen no event."""
    wanted = column_mapping.kept(Transaction(session, table.internal), table.wanted)
    spec = internal_spec(shape, wanted, ChangeState.of(table.flows))
    if position(table.path).foreign and TableLog(table.internal).version() >= 0 and Transaction(session, table.internal).outdated(spec):
        foreign_commits.adopt(session, table.path, None)
    tables.create_if_absent(session, table.internal, spec, user_metadata={})
    mirror(table.path, HIDDEN)


def apply(
    spec: ChangeSpec, table: ChangeTable, batch: DataFrame, shape: Layout, *, txn: Txn, measure: tables.Measure, replayed: bool
) -> BatchMetrics | None:
    """Apply one micro-batch; None if it had been applied before (only checked when `replayed`).

    Args:
        batch: the source's rows as `judged` gives them.
        shape: of the flow's columns.
        measure: called when the rows have been read and before anything is written: what to keep in the commit. May raise.

    Returns what `measure` found, with what the batch did to the rows of the table.
    Raises CDC_NULL_SEQUENCE, CDC_NULL_KEY, CDC_STATE_CHANGED, schemas.Incompatible; then the target is as before.
    """
    session = batch.sparkSession
    reconcile(session, table, shape)
    with lock_of(table.internal).alone():
        transaction = Transaction(session, table.internal)
        if replayed and transaction.read_version >= 0 and transaction.done(txn):
            return None
        metrics = _applied(transaction, spec, table, batch, shape, txn, measure)
        reached("changes.merged")
        version = mirror(table.path, HIDDEN)
    if version is None:
        reconcile(session, table, shape)
    elif version and version % _CHECKPOINT_EVERY == 0:
        _checkpoint(session, table.path)
    if compaction.is_due(TableLog(table.internal).version()):
        DEFERRED.now_or_in_a_pause(session, str(table.internal), lambda spark, _: compaction.compact(spark, table.path, shape))
    return metrics


def _applied(
    transaction: Transaction, spec: ChangeSpec, table: ChangeTable, batch: DataFrame, shape: Layout, txn: Txn, measure: tables.Measure
) -> BatchMetrics:
    """Commit one micro-batch to the internal table, a batch without events only if what was found out is worth it."""
    plan = _planned(transaction, table, shape)
    events = changes.events(spec, batch, shape, plan.shape, plan.state).persist()
    try:
        seen = changes.check_batch(spec, events, plan.shape, plan.reached)
        if not plan.fresh and plan.reached is None:
            seen = replace(seen, highest=None)  # stored events may have a higher sequence
        metrics = measure()
        if seen.events or (metrics.worth_a_commit and plan.fresh):
            retention = table.retention(plan.state)
            now = Batch(
                plan.state,
                plan.shape,
                events.drop(OUTSIDE),
                seen,
                retention,
                txn,
                metrics,
                everything=plan.recomputed,
                streamed=table.streamed,
                computed=table.computed,
            )
            promised = where_condition.of_keys(spec, batch, plan.shape, "t")
            return metrics.with_changes(_write(batch.sparkSession, table.internal, now, plan, promised))
        if metrics.worth_a_commit:
            transaction.commit([], user_metadata=metrics.user_metadata(), txn=txn)
        return metrics.with_changes(RowChanges(0, 0, 0))
    finally:
        events.unpersist()


@dataclass(frozen=True)
class _Plan:
    """What the internal table becomes with a batch.

    shape, made: of the table with the columns that it has and gets. fresh: it has no rows, or rows from before a reset.
    unconverted: it has rows of latest events, and the new state keeps all events. recomputed: rows of all keys depend on what changed.
    reached: the highest stored sequence, None where it is not needed.
    """

    state: ChangeState
    shape: Layout
    made: TableSpec
    fresh: bool
    unconverted: bool = False
    recomputed: bool = False
    reached: Any = None


def _planned(transaction: Transaction, table: ChangeTable, shape: Layout) -> _Plan:
    """The plan for a batch of one of the target's flows. Raises CDC_STATE_CHANGED, schemas.Incompatible."""
    flows, wanted = table.flows, column_mapping.kept(transaction, table.wanted)
    needed = ChangeState.of(flows)
    made = internal_spec(shape, wanted, needed)
    if transaction.read_version < 0 or transaction.outdated(made):
        return _Plan(needed, stored_layout(shape, given(made.schema, table.computed)), made, fresh=True)
    identity.same_state(transaction.properties.get(MADE_WITH), shape.made_with)
    before = ChangeState.from_properties(transaction.properties)
    state = before.joined(needed)
    made = _grown(transaction, internal_spec(shape, wanted, state))
    unconverted = state.events and not before.events
    columns = stored_layout(shape, given(made.schema, table.computed))
    recomputed = shape.history and before.tracked != state.tracked
    return _Plan(state, columns, made, False, unconverted, recomputed, _reached(transaction, before, shape))


def _reached(transaction: Transaction, state: ChangeState, shape: Layout) -> Any:
    """The highest sequence of the stored events. It is read from them only if the newest commits do not say it."""
    if not state.heads or not heads.is_kept(shape.sequence):
        return None
    known = heads.reached_by(transaction.path)
    return heads.reached_in(transaction.rows(), shape) if known is None else known


def _write(session: SparkSession, inner: AnyPath, now: Batch, plan: _Plan, promised: Column | None) -> RowChanges:
    """Write a batch that has events, or that is to make the table."""
    transaction = column_mapping.prepared(Transaction(session, inner), plan.made, failpoint="changes.prepared")
    if plan.fresh and column_mapping.is_mapped(plan.made.properties or {}):
        transaction, plan = _made_empty(session, transaction, plan.made), replace(plan, fresh=False)
    if plan.fresh or transaction.is_empty():
        made = plan.made if plan.fresh else _grown(transaction, plan.made)
        return _load(transaction, now, made, truncate=plan.fresh and transaction.read_version >= 0)
    if plan.unconverted:
        _convert(transaction, _grown(transaction, plan.made))
        transaction = Transaction(session, inner)
    made = _grown(transaction, plan.made)  # with what the commits before have set
    small = not now.streamed and _small(transaction, now)
    reach = heads.WHOLE if small and transaction.size <= TINY else _reach(transaction, now, made)
    if small and reach.whole:
        with sized(session, transaction.size) if now.seen.events <= _FEW else nullcontext():
            return _rewrite(transaction, now, made)
    transaction = _described(transaction, made)
    advance = _advance(transaction, now, made, promised, reach)
    if advance is not None:
        return advance
    if transaction.size > _LARGE:  # not before: fewer readers know deletion vectors
        made = replace(made, properties={_VECTORS: "true", **(made.properties or {})})
        _described(transaction, made)
    with sized(session, transaction.size, little=False):
        return merge(session, inner, now, made, promised, reach)


def _described(transaction: Transaction, made: TableSpec) -> Transaction:
    """Give the table its columns and properties in a commit of their own; return the transaction to go on with."""
    if transaction.described(made, replace=False):
        return transaction
    target_declarations.check_stored(transaction, made)
    transaction.describe(made, replace=False)
    transaction.commit([], user_metadata={})
    return Transaction(transaction.spark, transaction.path)


def _reach(transaction: Transaction, now: Batch, made: TableSpec) -> Reach:
    """What the batch needs of the stored events."""
    if now.everything:
        return heads.EVERYTHING
    if not now.state.heads or now.state.truncates:
        return heads.WHOLE
    if now.seen.in_order:
        return heads.IN_ORDER
    stored = transaction.rows().alias("t").where(in_ranges(now.shape, now.seen))
    late = heads.late_keys(now.events, schemas.conformed(stored, given(made.schema, now.computed)), now.shape).localCheckpoint()
    return heads.IN_ORDER if late.isEmpty() else Reach(False, late)


def _advance(transaction: Transaction, now: Batch, made: TableSpec, promised: Column | None, reach: Reach) -> RowChanges | None:
    """A batch whose keys go on from their heads: files of heads are written again, and other rows are added. Late keys are computed.

    None, with nothing written, for what is merged: a change feed, a stream over the rows, few events for many heads, and late events that
    change much of what has ended.
    """
    if reach.whole or now.streamed or _feeds(transaction):
        return None
    near = in_ranges(now.shape, now.seen)
    near = near if promised is None else near & promised
    rows, part = transaction.rows().alias("t"), F.col(f"t.{PART}")
    files = transaction.files_of(rows.where((part == heads.current(now.shape)) & near), counted=True)
    if not _is_much(files, now.seen):
        return None
    columns = given(made.schema, now.computed)
    stored = schemas.conformed(transaction.rows_of(files), columns) if files else None
    late, touched = None, []
    if reach.late is not None:
        others = transaction.files_of(rows.where(part.isin(STATE, *([ROWS] if now.shape.history else [])) & near))
        known = transaction.rows_of(others).withColumn(FILE, F.input_file_name())
        late = late_changes(now.state, now.events, reach.late, schemas.conformed(known, columns, FILE), stored, now.shape)
        touched = _named(transaction, others, late.files)
        if size_of(touched) > _LARGE:
            return None
    observed = Observation()
    found = history.advanced(now.state, now.events, stored, now.shape, observed, reach.late)
    if late is not None:
        found = found.unionByName(late.coming, allowMissingColumns=True)
    if late is not None and touched:
        again = schemas.conformed(transaction.rows_of(touched), columns)
        found = found.unionByName(late.staying(again), allowMissingColumns=True)
    guarded = target_declarations.guarded(schemas.aligned(completed(found, now.computed), made.schema), made, now.flow)
    removed, written = [file.remove() for file in (*files, *touched)], transaction.write(guarded)
    reached("batch.files_written")
    done = _counted(now, observed, written)
    if late is not None:
        done = replace(done, upserted=done.upserted + late.upserted, deleted=done.deleted + late.deleted)
    transaction.commit([*removed, *written], user_metadata=now.user_metadata(done), txn=now.txn)
    return done


def _is_much(files: Sequence[Any], seen: BatchSummary) -> bool:
    """Whether files of heads are written again for a batch, rather than merged with it."""
    records = [value_of(file.numLogicalRecords()) for file in files]
    many = None not in records and seen.events * _SHARE >= sum(map(int, records))
    return many or size_of(files) <= TINY


def _named(transaction: Transaction, files: Sequence[Any], names: Collection[str]) -> list[Any]:
    """Those of a table's files that Spark calls by these names."""
    paths = {unquote(urlsplit(name).path) for name in names}
    found = [file for file in files if transaction.path_of(file) in paths]
    if len(found) != len(paths):
        raise RuntimeError(f"of {len(paths)} file(s) with rows that go, the log of {transaction.path} names {len(found)}")
    return found


def _made_empty(session: SparkSession, transaction: Transaction, made: TableSpec) -> Transaction:
    """Make the table, or empty it, in commits before its first batch; return the transaction to go on with.

    For a table with a change feed, Delta takes no files in the commit that gives its columns other physical names.
    """
    exists = transaction.read_version >= 0
    if exists:
        transaction.commit(transaction.removals(), user_metadata={}, replace=True)
        transaction = Transaction(session, transaction.path)
    transaction.describe(made, replace=exists)
    transaction.commit([], user_metadata={}, replace=exists)
    reached("changes.prepared")
    return Transaction(session, transaction.path)


def _convert(transaction: Transaction, made: TableSpec) -> None:
    """Turn a state of latest events into one of all events: the event that made a row is added, a tombstone is an event already.

    Both author every leaf, so that the events before them, which are forgotten, could not matter any more.
    """
    stored = schemas.conformed(transaction.rows(), made.schema)
    events = stored.where(F.col(PART) == ROWS).withColumns({PART: F.lit(STATE), DELETED: F.lit(False)})
    buried = stored.where((F.col(PART) == STATE) & F.col(DELETED)).withColumn(PART, F.lit(LAST))
    transaction.describe(made, replace=False)
    transaction.commit(transaction.write(events.unionByName(buried)), user_metadata={})
    reached("changes.converted")


def _small(transaction: Transaction, now: Batch) -> bool:
    """Whether all rows are written again in one pass, which costs less than to look for what to change where that is much of the table.

    A change feed has the changed rows, so its table is merged. Keys with heads need no look at the other rows.
    """
    if _feeds(transaction) or transaction.size > SMALL:
        return False
    if transaction.size <= TINY:
        return True
    by_heads = now.state.heads and not (now.state.truncates or now.everything)
    return not by_heads and now.seen.events * _SHARE >= transaction.records()


def _feeds(transaction: Transaction) -> bool:
    return transaction.properties.get(CHANGE_FEED, "false").lower() == "true"


def _grown(transaction: Transaction, made: TableSpec) -> TableSpec:
    """The internal table with what it has and what it is to have."""
    return replace(made, schema=schemas.merge(transaction.schema, made.schema, widen=schemas.widens(made.properties or {})))


def _load(transaction: Transaction, now: Batch, made: TableSpec, *, truncate: bool) -> RowChanges:
    """The first batch of a table: there is nothing to merge with."""
    highest = now.seen.truncate
    if now.state.heads and not now.state.truncates:
        rows = history.advanced(now.state, now.events, None, now.shape)
    elif now.state.events:
        marks = highest is not None
        rows = history.actions(now.state, now.events, None, now.shape, highest, marks=marks, reach=heads.WHOLE).drop(ACTION)
    else:
        rows = latest.first_rows(now.folded, now.shape, highest, now.retention)
    removed = transaction.removals() if truncate else []
    transaction.describe(made, replace=truncate)
    files = transaction.write(target_declarations.guarded(schemas.aligned(completed(rows, now.computed), made.schema), made, now.flow))
    reached("batch.files_written")
    visible = int(sum(f.numLogicalRecords().get() for f in files if str(f.partitionValues().apply(PART)) in VISIBLE))
    done = RowChanges(visible, 0, visible, size_of(files))
    transaction.commit([*removed, *files], user_metadata=now.user_metadata(done), txn=now.txn, replace=truncate, whole=True)
    return done


def _rewrite(transaction: Transaction, now: Batch, made: TableSpec) -> RowChanges:
    """A batch into a small table: every row is written again, with one look at the table instead of MERGE's two."""
    files = transaction.files_of_newest_commit()  # found without a Spark job, where it replaced all of them
    rows = transaction.rows() if files is None else transaction.rows_of(files)
    stored = schemas.conformed(rows, given(made.schema, now.computed))
    truncate, marks = now.truncation(stored)
    observed = Observation()
    if now.state.events:
        everything = marks or now.everything
        rows = history.rewritten(now.state, now.events, stored, now.shape, truncate, observed, marks=marks, everything=everything)
    else:
        rows = latest.refolded(now.events, stored, now.shape, truncate, now.retention, observed, marks=marks)
    transaction.describe(made, replace=False)
    guarded = target_declarations.guarded(schemas.aligned(completed(rows, now.computed), made.schema), made, now.flow)
    removed, files = transaction.removals(), transaction.write(guarded)
    reached("batch.files_written")
    done = _counted(now, observed, files)
    transaction.commit([*removed, *files], user_metadata=now.user_metadata(done), txn=now.txn, whole=True)
    return done


def _counted(now: Batch, observed: Observation, files: Sequence[Any]) -> RowChanges:
    """What a batch did that has written its files."""
    found = metrics_of(now.events.sparkSession, observed) or {}
    rewritten = int(sum(file.numLogicalRecords().get() for file in files))
    return RowChanges(int(found.get("upserted") or 0), int(found.get("deleted") or 0), rewritten, size_of(files))


def _checkpoint(session: SparkSession, target: AnyPath) -> None:
    """Delta makes checkpoints of the logs that it writes; Lakelet writes this one, and its checkpoint too."""
    write_checkpoint(session, str(target))


__all__ = ["apply", "catch_up", "create_if_absent", "internal_spec", "reconcile"]
