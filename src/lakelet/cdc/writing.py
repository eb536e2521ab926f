"""One micro-batch of changes into its table: one commit in the internal log, then the target's log follows (decision 0012)."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.failpoints import reached
from lakelet.base.names import quoted
from lakelet.cdc import changes, foreign_commits, history, identity, latest, target_declarations, where_condition
from lakelet.cdc import state as states
from lakelet.cdc.change_table import ChangeTable, Retention
from lakelet.cdc.changes import AUTHORED, BURIED, DELETED, HIDDEN, OUTSIDE, RULE, SEQ, SYSTEM, BatchSummary, Layout, stored_layout
from lakelet.cdc.counts import BURY, CLEAR, TRUNCATE, of_merge, to_be_counted
from lakelet.cdc.generated_columns import completed, given
from lakelet.cdc.identity import MADE_WITH
from lakelet.cdc.latest import ACTION, DELETE, UPSERT
from lakelet.cdc.literals import literal
from lakelet.cdc.mirror import PART, ROWS, STATE, mirror, position
from lakelet.cdc.state import ChangeState
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.jvm.delta import write_checkpoint
from lakelet.jvm.streams import metrics_of
from lakelet.language.model import ChangeSpec
from lakelet.language.sql.values import ColumnDefinition
from lakelet.spark.small_inputs import one_task
from lakelet.storage.delta import column_mapping, schemas, tables
from lakelet.storage.delta.batch_metrics import BatchMetrics, RowChanges, size_of
from lakelet.storage.delta.locks import lock_of
from lakelet.storage.delta.table_spec import CHANGE_FEED, TableSpec
from lakelet.storage.delta.transaction import Transaction, Txn
from lakelet.storage.root import INTERNAL

_CHECKPOINT_EVERY = 10
_TINY, _SMALL, _SHARE = 2 << 20, 32 << 20, 20  # bytes, bytes, one in so many rows: see `_small`
_FEW = 2_000  # events that are read in one task, as the rows of a table of their size
_LARGE = 64 << 20  # bytes; above it a merge marks rows as deleted instead of writing their files again
_VECTORS = "delta.enableDeletionVectors"
_PHYSICAL = "delta.columnMapping.physicalName"
_TXN = "spark.databricks.delta.write"
_MATERIALIZE = "spark.databricks.delta.merge.materializeSource"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass(frozen=True)
class _Batch:
    """One micro-batch to be applied: its events, their summary, and the txn and counts that its commit keeps.

    state: of the table after the batch. everything: all keys are computed again, not only those of the batch.
    computed: columns that rows get when they are written; `shape` does not have them.
    """

    state: ChangeState
    shape: Layout
    events: DataFrame
    seen: BatchSummary
    retention: Retention | None
    txn: Txn
    metrics: BatchMetrics
    everything: bool
    streamed: bool
    computed: tuple[ColumnDefinition, ...]

    @property
    def flow(self) -> str:
        """Name of the flow that the batch belongs to."""
        return self.txn.app_id.rpartition("/")[0]

    @property
    def folded(self) -> DataFrame:
        """Return the latest event of each key, for tables of latest rows."""
        return latest.folded(self.events, self.shape)

    def truncation(self, stored: DataFrame) -> tuple[Any, bool]:
        """The highest truncate's sequence so far, None if there was none, and whether it is of this batch."""
        return latest.last_truncate(stored, self.shape, self.seen.truncate) if self.state.truncates else (None, False)


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
    return metrics


def _applied(
    transaction: Transaction, spec: ChangeSpec, table: ChangeTable, batch: DataFrame, shape: Layout, txn: Txn, measure: tables.Measure
) -> BatchMetrics:
    """Commit one micro-batch to the internal table, a batch without events only if what was found out is worth it."""
    plan = _planned(transaction, table, shape)
    events = changes.events(spec, batch, shape, plan.shape, plan.state).persist()
    try:
        seen = changes.check_batch(spec, events, plan.shape)
        metrics = measure()
        if seen.events or (metrics.worth_a_commit and plan.fresh):
            retention = table.retention(plan.state)
            now = _Batch(
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
    """

    state: ChangeState
    shape: Layout
    made: TableSpec
    fresh: bool
    unconverted: bool = False
    recomputed: bool = False


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
    return _Plan(state, columns, made, False, unconverted, shape.history and before.tracked != state.tracked)


def _write(session: SparkSession, inner: AnyPath, now: _Batch, plan: _Plan, promised: Column | None) -> RowChanges:
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
    if not now.streamed and _small(transaction, now.seen):
        with one_task(session, transaction.size) if now.seen.events <= _FEW else nullcontext():
            return _rewrite(transaction, now, made)
    if not transaction.described(made, replace=False):
        target_declarations.check_stored(transaction, made)
        transaction.describe(made, replace=False)
        transaction.commit([], user_metadata={})
    return _merge(session, inner, now, made, promised)


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
    # Before states were described, tables could have rows of both kinds; those that were computed from events have no sequence.
    latest_one = F.lit(True) if states.PROPERTY in transaction.properties else F.col(SEQ).isNotNull()
    events = stored.where((F.col(PART) == ROWS) & latest_one).withColumns({PART: F.lit(STATE), DELETED: F.lit(False)})
    transaction.describe(made, replace=False)
    transaction.commit(transaction.write(events), user_metadata={})
    reached("changes.converted")


def _small(transaction: Transaction, seen: BatchSummary) -> bool:
    """Whether all rows are written again in one pass, which costs less than to look for what to change where that is much of the table.

    A change feed has the changed rows, so its table is merged.
    """
    feeds = transaction.properties.get(CHANGE_FEED, "false").lower() == "true"
    if feeds or transaction.size > _SMALL:
        return False
    return transaction.size <= _TINY or seen.events * _SHARE >= transaction.records()


def _grown(transaction: Transaction, made: TableSpec) -> TableSpec:
    """The internal table with what it has and what it is to have."""
    made = replace(made, schema=schemas.merge(transaction.schema, made.schema, widen=schemas.widens(made.properties or {})))
    if transaction.size > _LARGE:  # not before: fewer readers know deletion vectors
        made = replace(made, properties={_VECTORS: "true", **(made.properties or {})})
    return made


def _load(transaction: Transaction, now: _Batch, made: TableSpec, *, truncate: bool) -> RowChanges:
    """The first batch of a table: there is nothing to merge with."""
    highest = now.seen.truncate
    if now.state.events:
        marks = highest is not None
        rows = history.actions(now.state, now.events, None, now.shape, highest, marks=marks, everything=True).drop(ACTION)
    else:
        rows = latest.first_rows(now.folded, now.shape, highest, now.retention)
    removed = transaction.removals() if truncate else []
    transaction.describe(made, replace=truncate)
    files = transaction.write(target_declarations.guarded(schemas.aligned(completed(rows, now.computed), made.schema), made, now.flow))
    reached("batch.files_written")
    visible = int(sum(f.numLogicalRecords().get() for f in files if str(f.partitionValues().apply(PART)) == ROWS))
    done = RowChanges(visible, 0, visible, size_of(files))
    metadata = now.metrics.with_changes(done).user_metadata()
    transaction.commit([*removed, *files], user_metadata=metadata, txn=now.txn, replace=truncate, whole=True)
    return done


def _rewrite(transaction: Transaction, now: _Batch, made: TableSpec) -> RowChanges:
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
    found = metrics_of(now.events.sparkSession, observed) or {}
    rewritten = int(sum(f.numLogicalRecords().get() for f in files))
    done = RowChanges(int(found.get("upserted") or 0), int(found.get("deleted") or 0), rewritten, size_of(files))
    metadata = now.metrics.with_changes(done).user_metadata()
    transaction.commit([*removed, *files], user_metadata=metadata, txn=now.txn, whole=True)
    return done


def _merge(session: SparkSession, inner: AnyPath, now: _Batch, made: TableSpec, promised: Column | None) -> RowChanges:
    """A batch into a large table. `promised`: what `where` says about the keys, on the table `t`."""
    state, shape = now.state, now.shape
    table = DeltaTable.forPath(session, str(inner))
    stored = table.toDF().drop(*(column.name for column in now.computed))
    truncate, marks = now.truncation(stored)
    everything = marks or now.everything
    if promised is not None and not everything:
        stored = stored.alias("t").where(promised)
    buries = state.deletes or state.truncates
    if state.events:
        found = history.actions(state, now.events, stored, shape, truncate, marks=marks, everything=everything)
    else:
        found = latest.actions(now.folded, stored, shape, truncate, now.retention, buries=buries, marks=marks)
        found = latest.changing(found, stored, shape) if now.streamed or target_declarations.is_needed(made) else found
    source = completed(schemas.conformed(found, stored.schema, ACTION), now.computed)
    source = target_declarations.guarded(source, made, now.flow).localCheckpoint()
    together = _together(shape, now.seen, both=buries or state.events, ranged=not everything)
    if promised is not None and not everything:
        together = together & promised
    if state.events:
        built = _merge_history(table, source, shape, together)
    else:
        built = latest.merge(table, source, shape, now.retention, condition=together, truncate=truncate if marks else None)
    hidden = source.where(F.col(ACTION).isin(BURY, CLEAR, TRUNCATE)) if state.events or buries else None
    to_state = {} if hidden is None else {row[ACTION]: row["count"] for row in hidden.groupBy(ACTION).count().collect()}
    metadata = json.dumps(to_be_counted(now.metrics, to_state))
    settings = {f"{_TXN}.txnAppId": now.txn.app_id, f"{_TXN}.txnVersion": str(now.txn.version), _USER_METADATA: metadata}
    if str(session.sparkContext.master).startswith("local"):
        settings[_MATERIALIZE] = "none"  # the actions are kept already, and no executor can be lost
    conf = session.conf
    for key, value in settings.items():
        conf.set(key, value)
    try:
        built.execute()
    finally:
        for key in settings:
            conf.unset(key)
    return _newest_merge(inner)


def _merge_history(table: Any, source: DataFrame, shape: Layout, together: Column) -> Any:
    same_row = reduce(lambda a, b: a & b, [F.col(f"t.{name}").eqNullSafe(F.col(f"s.{name}")) for name in shape.starts], F.lit(True))
    same_event = F.col(f"t.{SEQ}") == F.col(f"s.{SEQ}")
    if shape.bitemporal:
        same_event = same_event & (F.col(f"t.{SYSTEM}") == F.col(f"s.{SYSTEM}"))
    if not shape.history:  # a delete and an upsert of one sequence are both kept
        same_event = same_event & (F.col(f"t.{DELETED}") == F.col(f"s.{DELETED}"))
    same = ((F.col(f"s.{PART}") == ROWS) & same_row) | ((F.col(f"s.{PART}") == STATE) & same_event)
    action = F.col(f"s.{ACTION}")
    values = {quoted(n): F.col(f"s.{quoted(n)}") for n in source.columns if n != ACTION}
    return (
        table.alias("t")
        .merge(source.alias("s"), together & same)
        .whenMatchedDelete(action == DELETE)
        .whenMatchedUpdate(action.isin(UPSERT, BURY), values)
        .whenNotMatchedInsert(action.isin(UPSERT, BURY), values)
    )


def _together(shape: Layout, seen: BatchSummary, *, both: bool, ranged: bool = True) -> Column:
    """When a row of the table (`t`) and an action (`s`) are about the same key; literals in it let Delta leave files out."""
    conditions = [F.col(f"t.{quoted(k)}") == F.col(f"s.{quoted(k)}") for k in shape.keys]
    conditions.append(F.col(f"t.{PART}") == (F.col(f"s.{PART}") if both else F.lit(ROWS)))
    for key, (least, greatest) in seen.ranges.items() if ranged else ():
        if least is not None:
            kind = shape.columns[key].dataType
            conditions.append(F.col(f"t.{quoted(key)}").between(literal(least, kind), literal(greatest, kind)))
    return reduce(lambda a, b: a & b, conditions)


def _newest_merge(inner: AnyPath) -> RowChanges:
    """What the newest commit, a MERGE by Lakelet, did."""
    log = TableLog(inner)
    found = [of_merge(action["commitInfo"]) for action in log.actions(log.version()) if "commitInfo" in action]
    return next((done for done in found if done is not None), RowChanges(0, 0, 0))


def _checkpoint(session: SparkSession, target: AnyPath) -> None:
    """Delta makes checkpoints of the logs that it writes; Lakelet writes this one, and its checkpoint too."""
    write_checkpoint(session, str(target))


__all__ = ["apply", "catch_up", "create_if_absent", "internal_spec", "reconcile"]
