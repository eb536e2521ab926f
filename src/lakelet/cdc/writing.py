"""One micro-batch of changes into its table: one commit in the internal log, then the target's log follows (decision 0012). Layer 4."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet import schemas, tables
from lakelet.cdc import changes, hint, history, latest
from lakelet.cdc.changes import AUTHORED, BURIED, DELETED, HIDDEN, OUTSIDE, SEQ, START, Layout, Seen, col, keeps_events
from lakelet.cdc.counts import BURY, CLEAR, TRUNCATE, Applied, counted, of_merge, to_be_counted
from lakelet.cdc.latest import ACTION, DELETE, UPSERT
from lakelet.cdc.mirror import INTERNAL, PART, ROWS, STATE, mirror
from lakelet.cdc.retention import Retention
from lakelet.errors import LakeletError
from lakelet.failpoints import reached
from lakelet.model import ChangeSpec
from lakelet.places import Place
from lakelet.tables import TableLog, TableSpec

_MADE_WITH = "lakelet.changes"  # table property: keys, type and sequence that the state belongs to
_CHECKPOINT_EVERY = 10
_TINY, _SMALL, _SHARE = 2 << 20, 32 << 20, 20  # bytes, bytes, one in so many rows: see `_small`
_LARGE = 64 << 20  # bytes; above it a merge marks rows as deleted instead of writing their files anew
_VECTORS = "delta.enableDeletionVectors"
_TXN = "spark.databricks.delta.write"
_MATERIALIZE = "spark.databricks.delta.merge.materializeSource"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass(frozen=True)
class _Batch:
    """One micro-batch on its way: events as they came, what a look at them told, and the mark and counts that its commit keeps."""

    spec: ChangeSpec
    shape: Layout
    events: DataFrame
    seen: Seen
    retention: Retention | None
    app: tuple[str, int]
    kept: Mapping[str, Any]

    @property
    def folded(self) -> DataFrame:
        """Of each key the event that counts, for tables of latest events."""
        return latest.folded(self.events, self.shape)

    def truncation(self, stored: DataFrame) -> tuple[Any, bool]:
        """The highest truncate's sequence so far, None if there was none, and whether it is of this batch."""
        if self.spec.apply_as_truncates is None:
            return None, False
        before, now = latest.last_truncate(stored, self.shape), self.seen.truncate
        marks = now is not None and (before is None or now > before)
        return (now if marks else before), marks


def internal_spec(spec: ChangeSpec, shape: Layout, wanted: TableSpec) -> TableSpec:
    """The internal table of a target that is wanted like `wanted`."""
    authored = [T.StructField(AUTHORED, T.ArrayType(T.StringType()))] if spec.columns_to_update is not None else []
    marks = [T.StructField(SEQ, shape.sequence), T.StructField(DELETED, T.BooleanType())]
    dates = [T.StructField(BURIED, T.TimestampType())] if not keeps_events(spec) and Retention.of(wanted.properties or {}) else []
    state = [*marks, *authored, *dates, T.StructField(PART, T.StringType())]
    visible = wanted.schema if wanted.schema.fields else shape.visible
    loose = [T.StructField(f.name, f.dataType, True, f.metadata) for f in visible.fields]  # tombstones have keys only
    made_with = json.dumps([[k.lower() for k in shape.keys], spec.scd_type, shape.sequence.simpleString()])
    # Its commits hold what was applied and counted, so they are kept; the target's log is cleaned up as usual.
    properties = {**(wanted.properties or {}), _MADE_WITH: made_with, "delta.enableExpiredLogCleanup": "false"}
    columns = T.StructType([*loose, *state])
    return replace(wanted, schema=columns, partition_cols=(PART, *wanted.partition_cols), cluster_by=(), properties=properties)


def catch_up(target: Place) -> None:
    """Bring the target's log up to date with what a process that died left in the internal one."""
    if TableLog(target / INTERNAL).version() >= 0:
        mirror(target, HIDDEN)


def create_if_absent(session: SparkSession, target: Place, spec: TableSpec) -> None:
    """Make the empty table of a flow that has seen no event."""
    tables.create_if_absent(session, target / INTERNAL, spec, user_metadata={})
    mirror(target, HIDDEN)


def apply(
    spec: ChangeSpec,
    target: Place,
    batch: DataFrame,
    shape: Layout,
    wanted: TableSpec,
    *,
    app: tuple[str, int],
    measure: tables.Measure,
    replayed: bool,
) -> Applied | None:
    """Apply one micro-batch; None if it had been applied before (only looked up when `replayed`).

    Args:
        batch: the source's rows as `judged` gives them.
        wanted: the target as declared, with the columns of `shape.visible`.
        measure: called when the rows have been looked at and before anything is written: what to keep in the commit, and whether that is
            worth a commit when there are no events. May raise.

    Raises CDC_NULL_SEQUENCE, CDC_NULL_KEY, CDC_STATE_CHANGED, schemas.Incompatible; then the target is as before.
    """
    session = batch.sparkSession
    inner = target / INTERNAL
    catch_up(target)
    made = internal_spec(spec, shape, wanted)
    with tables.lock_of(inner).alone():
        transaction = tables.Transaction(session, inner)
        if replayed and transaction.read_version >= 0 and transaction.done(*app):
            return None
        fresh = transaction.read_version < 0 or transaction.outdated(made)
        if not fresh:
            _same_state(transaction, made)
        retention = None if keeps_events(spec) else Retention.of(wanted.properties or {})
        events = changes.events(spec, batch, shape).persist()
        try:
            seen = changes.look(spec, events, shape)
            kept, anything = measure()
            now = _Batch(spec, shape, events.drop(OUTSIDE), seen, retention, app, kept)
            if not seen.events and not (anything and fresh):
                if anything:
                    transaction.commit([], user_metadata=kept, app=app)
                result = Applied(0, 0, 0)
            elif fresh or transaction.is_empty():
                result = _load(transaction, now, made, truncate=transaction.read_version >= 0 and transaction.outdated(made))
            elif _small(transaction, seen):
                result = _rewrite(transaction, now, _grown(transaction, made))
            else:
                made = _grown(transaction, made)
                if not transaction.described(made, replace=False):
                    transaction.describe(made, replace=False)
                    transaction.commit([], user_metadata={})
                result = _merge(session, inner, now, hint.of_keys(spec, batch, shape, "t"))
        finally:
            events.unpersist()
    reached("changes.merged")
    version = mirror(target, HIDDEN)
    if version and version % _CHECKPOINT_EVERY == 0:
        _checkpoint(session, target)
    return result


def _same_state(transaction: tables.Transaction, made: TableSpec) -> None:
    found = transaction.properties.get(_MADE_WITH)
    now = (made.properties or {})[_MADE_WITH]
    if found != now:
        raise LakeletError(
            "CDC_STATE_CHANGED",
            f"the table was made with [keys, SCD type, type of the sequence] {found}, the flow now has {now}",
            todo="Change it back, or do a full refresh of the table: its state cannot be carried over.",
        )


def _small(transaction: tables.Transaction, seen: Seen) -> bool:
    """Whether all rows are written anew in one pass, which costs less than to look for what to change where that is much of the table.

    A change feed tells of changed rows, so its table is merged.
    """
    feeds = transaction.properties.get(tables.CHANGE_FEED, "false").lower() == "true"
    if feeds or transaction.size > _SMALL:
        return False
    return transaction.size <= _TINY or seen.events * _SHARE >= transaction.records()


def _grown(transaction: tables.Transaction, made: TableSpec) -> TableSpec:
    """The internal table with what it has and what it is to have."""
    made = replace(made, schema=schemas.merge(transaction.schema, made.schema))
    if transaction.size > _LARGE:  # not before: fewer readers know deletion vectors
        made = replace(made, properties={_VECTORS: "true", **(made.properties or {})})
    return made


def _load(transaction: tables.Transaction, now: _Batch, made: TableSpec, *, truncate: bool) -> Applied:
    """The first batch of a table: there is nothing to merge with."""
    highest = now.seen.truncate
    if keeps_events(now.spec):
        rows = history.actions(now.spec, now.events, None, now.shape, highest, marks=highest is not None).drop(ACTION)
    else:
        rows = latest.first_rows(now.folded, now.shape, highest, now.retention)
    removed = transaction.removals() if truncate else []
    transaction.describe(made, replace=truncate)
    files = transaction.write(tables.aligned(rows, made.schema))
    reached("batch.files_written")
    visible = int(sum(f.numLogicalRecords().get() for f in files if str(f.partitionValues().apply(PART)) == ROWS))
    done = Applied(visible, 0, visible)
    transaction.commit([*removed, *files], user_metadata=counted(now.kept, done), app=now.app, replace=truncate)
    return done


def _rewrite(transaction: tables.Transaction, now: _Batch, made: TableSpec) -> Applied:
    """A batch into a small table: every row is written anew, with one look at the table instead of MERGE's two."""
    stored = _completed(transaction.rows(), made.schema)
    truncate, marks = now.truncation(stored)
    observed = Observation()
    if keeps_events(now.spec):
        rows = history.rewritten(now.spec, now.events, stored, now.shape, truncate, observed, marks=marks)
    else:
        rows = latest.refolded(now.events, stored, now.shape, truncate, now.retention, observed, marks=marks)
    transaction.describe(made, replace=False)
    removed, files = transaction.removals(), transaction.write(tables.aligned(rows, made.schema))
    reached("batch.files_written")
    found = {name: int(count or 0) for name, count in observed.get.items()}
    done = Applied(found["upserted"], found["deleted"], int(sum(f.numLogicalRecords().get() for f in files)))
    transaction.commit([*removed, *files], user_metadata=counted(now.kept, done), app=now.app)
    return done


def _merge(session: SparkSession, inner: Place, now: _Batch, promised: Column | None) -> Applied:
    """A batch into a large table. `promised`: what `where` says about the keys, on the table `t`."""
    spec, shape = now.spec, now.shape
    table = DeltaTable.forPath(session, str(inner))
    stored = table.toDF()
    truncate, marks = now.truncation(stored)
    if promised is not None and not marks:
        stored = stored.alias("t").where(promised)
    buries = spec.apply_as_deletes is not None or spec.apply_as_truncates is not None
    if keeps_events(spec):
        found = history.actions(spec, now.events, stored, shape, truncate, marks=marks)
    else:
        found = latest.actions(now.folded, stored, shape, truncate, now.retention, buries=buries, marks=marks)
    source = _completed(found, stored.schema, ACTION).localCheckpoint()
    together = _together(shape, now.seen, both=buries or keeps_events(spec), ranged=not marks)
    if promised is not None and not marks:
        together = together & promised
    if keeps_events(spec):
        built = _merge_history(table, source, shape, together)
    else:
        built = latest.merge(table, source, shape, now.retention, condition=together, truncate=truncate if marks else None)
    hidden = source.where(F.col(ACTION).isin(BURY, CLEAR, TRUNCATE)) if keeps_events(spec) or buries else None
    to_state = {} if hidden is None else {row[ACTION]: row["count"] for row in hidden.groupBy(ACTION).count().collect()}
    metadata = json.dumps(to_be_counted(now.kept, to_state))
    settings = {f"{_TXN}.txnAppId": now.app[0], f"{_TXN}.txnVersion": str(now.app[1]), _USER_METADATA: metadata}
    if session.sparkContext.master.startswith("local"):
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
    same_row = F.col(f"t.{START}").eqNullSafe(F.col(f"s.{START}")) if shape.history else F.lit(True)
    same_event = F.col(f"t.{SEQ}") == F.col(f"s.{SEQ}")
    if not shape.history:  # a delete and an upsert of one sequence are both kept
        same_event = same_event & (F.col(f"t.{DELETED}") == F.col(f"s.{DELETED}"))
    same = ((F.col(f"s.{PART}") == ROWS) & same_row) | ((F.col(f"s.{PART}") == STATE) & same_event)
    action = F.col(f"s.{ACTION}")
    values = {f"`{n}`": F.col(f"s.`{n}`") for n in source.columns if n != ACTION}
    return (
        table.alias("t")
        .merge(source.alias("s"), together & same)
        .whenMatchedDelete(action == DELETE)
        .whenMatchedUpdate(action.isin(UPSERT, BURY), values)
        .whenNotMatchedInsert(action.isin(UPSERT, BURY), values)
    )


def _completed(rows: DataFrame, schema: T.StructType, *more: str) -> DataFrame:
    """The rows with these columns in these types, NULL where they have none, and `more` of their own columns."""
    have = {name.lower(): name for name in rows.columns}
    columns = [(col(have[f.name.lower()]) if f.name.lower() in have else F.lit(None)).cast(f.dataType).alias(f.name) for f in schema.fields]
    return rows.select(*columns, *more)


def _together(shape: Layout, seen: Seen, *, both: bool, ranged: bool = True) -> Column:
    """When a row of the table (`t`) and an action (`s`) are about the same key; literals in it let Delta leave files out."""
    conditions = [F.col(f"t.`{k}`") == F.col(f"s.`{k}`") for k in shape.keys]
    conditions.append(F.col(f"t.{PART}") == (F.col(f"s.{PART}") if both else F.lit(ROWS)))
    for key, (least, greatest) in seen.ranges.items() if ranged else ():
        if least is not None:
            kind = shape.columns[key].dataType
            conditions.append(F.col(f"t.`{key}`").between(F.lit(least).cast(kind), F.lit(greatest).cast(kind)))
    return reduce(lambda a, b: a & b, conditions)


def _newest_merge(inner: Place) -> Applied:
    """What the newest commit, a MERGE of ours, did."""
    log = TableLog(inner)
    found = [of_merge(action["commitInfo"]) for action in log.actions(log.version()) if "commitInfo" in action]
    return next((done for done in found if done is not None), Applied(0, 0, 0))


def _checkpoint(session: SparkSession, target: Place) -> None:
    """Delta makes checkpoints of the logs that it writes; this one is written by us."""
    jvm: Any = session._jvm
    logs = jvm.org.apache.spark.sql.delta.DeltaLog
    log = logs.forTable(session._jsparkSession, str(target))
    none = jvm.scala.Option.empty()
    log.checkpoint(log.update(False, none, none), none)


__all__ = ["Applied", "apply", "catch_up", "create_if_absent", "internal_spec"]
