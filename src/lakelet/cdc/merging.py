"""A micro-batch into its internal table by MERGE: for tables with a change feed, late events, and few events for large tables."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelet.base.masters import is_local
from lakelet.base.names import quoted
from lakelet.cdc import heads, history, latest, target_declarations
from lakelet.cdc.batches import Batch, in_ranges
from lakelet.cdc.changes import DELETED, SEQ, SYSTEM, BatchSummary, Layout
from lakelet.cdc.counts import BURY, CLEAR, TRUNCATE, of_merge, to_be_counted
from lakelet.cdc.generated_columns import completed
from lakelet.cdc.heads import Reach
from lakelet.cdc.latest import ACTION, DELETE, UPSERT
from lakelet.cdc.mirror import PART, ROWS, STATE, VISIBLE
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.storage.delta import schemas
from lakelet.storage.delta.batch_metrics import RowChanges
from lakelet.storage.delta.table_spec import TableSpec

_TXN = "spark.databricks.delta.write"
_MATERIALIZE = "spark.databricks.delta.merge.materializeSource"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def merge(session: SparkSession, inner: AnyPath, now: Batch, made: TableSpec, promised: Column | None, reach: Reach) -> RowChanges:
    """A batch into a large table. `promised`: what `where` says about the keys, on the table `t`."""
    state, shape = now.state, now.shape
    table = DeltaTable.forPath(session, str(inner))
    stored = table.toDF().drop(*(column.name for column in now.computed))
    truncate, marks = now.truncation(stored)
    everything = marks or now.everything
    reach = heads.EVERYTHING if everything else reach
    if not everything:
        near = [in_ranges(shape, now.seen)] if now.retention is None else []  # tombstones of any key expire
        near += [] if promised is None else [promised]
        stored = stored.alias("t").where(reduce(lambda a, b: a & b, near, F.lit(True)))
    buries = state.deletes or state.truncates
    if state.events:
        found = history.actions(state, now.events, stored, shape, truncate, marks=marks, reach=reach)
    else:
        found = latest.actions(now.folded, stored, shape, truncate, now.retention, buries=buries, marks=marks)
        found = latest.changing(found, stored, shape) if now.streamed or target_declarations.is_needed(made) else found
    source = completed(schemas.conformed(found, stored.schema, ACTION), now.computed)
    source = target_declarations.guarded(source, made, now.flow).localCheckpoint()
    if state.events:
        together = _same_key(shape) if everything else _same_key(shape) & in_ranges(shape, now.seen)
    else:
        together = _together(shape, now.seen, both=buries, ranged=not everything)
    if promised is not None and not everything:
        together = together & promised
    if state.events:
        built = _merge_history(table, source, shape, together, in_order=reach.in_order)
    else:
        built = latest.merge(table, source, shape, now.retention, condition=together, truncate=truncate if marks else None)
    hidden = source.where(F.col(ACTION).isin(BURY, CLEAR, TRUNCATE)) if state.events or buries else None
    to_state = {} if hidden is None else {row[ACTION]: row["count"] for row in hidden.groupBy(ACTION).count().collect()}
    metadata = json.dumps({**to_be_counted(now.metrics, to_state), **now.reached})
    settings = {f"{_TXN}.txnAppId": now.txn.app_id, f"{_TXN}.txnVersion": str(now.txn.version), _USER_METADATA: metadata}
    if is_local(session.sparkContext.master):
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


def _merge_history(table: Any, source: DataFrame, shape: Layout, together: Column, *, in_order: bool) -> Any:
    """The MERGE, ready to be executed. `in_order`: the only stored rows that can change are those of heads."""
    same_row = reduce(lambda a, b: a & b, [F.col(f"t.{name}").eqNullSafe(F.col(f"s.{name}")) for name in shape.starts], F.lit(True))
    same_row = F.col(f"s.{PART}").isin(*VISIBLE) & same_row
    if in_order:
        same = (F.col(f"t.{PART}") == heads.current(shape)) & same_row
    else:
        same_event = F.col(f"t.{SEQ}") == F.col(f"s.{SEQ}")
        if shape.bitemporal:
            same_event = same_event & (F.col(f"t.{SYSTEM}") == F.col(f"s.{SYSTEM}"))
        if not shape.history:  # a delete and an upsert of one sequence are both kept
            same_event = same_event & (F.col(f"t.{DELETED}") == F.col(f"s.{DELETED}"))
        same_event = (F.col(f"s.{PART}") == STATE) & (F.col(f"t.{PART}") == STATE) & same_event
        same = (F.col(f"t.{PART}").isin(*VISIBLE) & same_row) | same_event
    action = F.col(f"s.{ACTION}")
    values = {quoted(n): F.col(f"s.{quoted(n)}") for n in source.columns if n != ACTION}
    return (
        table.alias("t")
        .merge(source.alias("s"), together & same)
        .whenMatchedDelete(action == DELETE)
        .whenMatchedUpdate(action.isin(UPSERT, BURY), values)
        .whenNotMatchedInsert(action.isin(UPSERT, BURY), values)
    )


def _same_key(shape: Layout) -> Column:
    return reduce(lambda a, b: a & b, [F.col(f"t.{quoted(k)}") == F.col(f"s.{quoted(k)}") for k in shape.keys])


def _together(shape: Layout, seen: BatchSummary, *, both: bool, ranged: bool = True) -> Column:
    """When a row of the table `t` and an action `s` of latest events are about the same key and part."""
    same = _same_key(shape) & (F.col(f"t.{PART}") == (F.col(f"s.{PART}") if both else F.lit(ROWS)))
    return same & in_ranges(shape, seen) if ranged else same


def _newest_merge(inner: AnyPath) -> RowChanges:
    """What the newest commit, a MERGE by Lakelet, did."""
    log = TableLog(inner)
    found = [of_merge(action["commitInfo"]) for action in log.actions(log.version()) if "commitInfo" in action]
    return next((done for done in found if done is not None), RowChanges(0, 0, 0))


__all__ = ["merge"]
