"""Targets computed from the events of a key: type 2, and type 1 where nulls are ignored (CD-3, CD-7).

The part `state` holds every event once. The rows of the keys that a batch touches are computed again from all their events.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, Observation, Window
from pyspark.sql import functions as F

from lakelet.cdc import bitemporal
from lakelet.cdc.changes import DELETED, RULE, SEQ, SYSTEM, TIMES, TRUNCATES, Layout, col, same_values
from lakelet.cdc.counts import BURY
from lakelet.cdc.event_windows import one_per_sequence, visible_rows
from lakelet.cdc.latest import ACTION, DELETE, UPSERT, truncate_row
from lakelet.cdc.literals import literal
from lakelet.cdc.mirror import PART, ROWS, STATE
from lakelet.cdc.state import ChangeState


def distinct(state: ChangeState, events: DataFrame, shape: Layout) -> DataFrame:
    """One event per key and sequence (`one_per_sequence`); for bitemporal tables per key and both, whichever came first (BT-7)."""
    if shape.bitemporal:
        values = [n for n in shape.columns.fieldNames() if n not in shape.keys]
        text = F.when(~F.col(DELETED), same_values(F.struct(*map(col, values)))) if values else F.lit("")
        ruled = [RULE] if RULE in events.columns else []
        order = Window.partitionBy(*map(col, shape.keys), SEQ, SYSTEM).orderBy(F.col(DELETED).desc(), text.desc(), *ruled, "__fresh")
        return events.withColumn("__n", F.row_number().over(order)).where(F.col("__n") == 1).drop("__n")
    return one_per_sequence(state, events, shape)


def actions(
    state: ChangeState, batch: DataFrame, inner: DataFrame | None, shape: Layout, truncate: Any, *, marks: bool, everything: bool
) -> DataFrame:
    """What a batch does to the internal table: its columns and ACTION.

    Args:
        inner: None while the table is empty.
        truncate: the highest truncate's sequence so far, this batch's included; None if there was none.
        marks: the truncate is of this batch and must be remembered.
        everything: all keys are computed again, not only those of the batch.
    """
    new = batch.where(~F.col(TRUNCATES)).drop(TRUNCATES).withColumn("__fresh", F.lit(True))
    keys = list(shape.keys)
    touched = new.select(*map(col, keys)).distinct()
    if inner is None:
        events = distinct(state, truncated(new, touched, truncate, shape), shape)
        found = bitemporal.first_rows(state, events, shape) if shape.bitemporal else visible_rows(state, events, shape)
        changed = _tagged(found, ROWS, UPSERT)
    else:
        known = inner.where(col(keys[0]).isNotNull()) if everything else inner.join(touched, keys, "left_semi")
        touched = known.select(*map(col, keys)).unionByName(touched).distinct() if everything else touched
        old_events = known.where(F.col(PART) == STATE).drop(PART, *TIMES).withColumn("__fresh", F.lit(False))
        events = distinct(state, truncated(old_events.unionByName(new, allowMissingColumns=True), touched, truncate, shape), shape)
        before = known.where(F.col(PART) == ROWS).select(*map(col, shape.visible.fieldNames()))
        before, now, _ = _computed(state, events, before, shape, everything=everything)
        changed = _changed(before, now, shape)
    fresh = _tagged(events.where(F.col("__fresh")), STATE, BURY)
    found = changed.unionByName(fresh, allowMissingColumns=True)
    return found.unionByName(truncate_row(fresh.drop(ACTION), truncate, shape).withColumn(ACTION, F.lit(BURY)), True) if marks else found


def rewritten(
    state: ChangeState,
    batch: DataFrame,
    inner: DataFrame,
    shape: Layout,
    truncate: Any,
    counted: Observation,
    *,
    marks: bool,
    everything: bool,
) -> DataFrame:
    """All rows of the internal table after a batch, in one pass; for small tables.

    Args: as of `actions`. counted: gets `upserted` and `deleted`, rows of the target.
    """
    new = batch.where(~F.col(TRUNCATES)).drop(TRUNCATES).withColumn("__fresh", F.lit(True))
    keys = list(shape.keys)
    touched = new.select(*map(col, keys)).distinct()
    keyed = inner.where(col(keys[0]).isNotNull())
    known = keyed if everything else keyed.join(touched, keys, "left_semi")
    old_events = known.where(F.col(PART) == STATE).drop(PART, *TIMES).withColumn("__fresh", F.lit(False))
    held = distinct(state, old_events.unionByName(new, allowMissingColumns=True), shape)
    events = held
    if truncate is not None:
        events = distinct(state, truncated(held, held.select(*map(col, keys)).distinct(), truncate, shape), shape)
    before = known.where(F.col(PART) == ROWS).select(*map(col, shape.visible.fieldNames()))
    before, now, unchanged = _computed(state, events, before, shape, everything=everything)
    joined = _compared(before, now, shape)
    counts = {"upserted": F.col("__new").isNotNull() & F.col("__differs"), "deleted": F.col("__new").isNull()}
    observed = joined.observe(counted, *(F.sum(value.cast("long")).alias(name) for name, value in counts.items()))
    shown = observed.where(F.col("__new").isNotNull()).select("__new.*")
    visible = (shown if unchanged is None else shown.unionByName(unchanged)).withColumn(PART, F.lit(ROWS))
    found = visible.unionByName(held.drop("__fresh").withColumn(PART, F.lit(STATE)), allowMissingColumns=True)
    if not everything:
        found = found.unionByName(keyed.join(touched, keys, "left_anti"), allowMissingColumns=True)
    remembered = truncate_row(found, truncate, shape) if marks else inner.where(col(keys[0]).isNull())
    return found.unionByName(remembered, allowMissingColumns=True)


def _computed(
    state: ChangeState, events: DataFrame, before: DataFrame, shape: Layout, *, everything: bool
) -> tuple[DataFrame, DataFrame, DataFrame | None]:
    """The rows of the touched keys: those that may change as they were and as they are now, and those that stay (None: there are none)."""
    if not shape.bitemporal:
        return before, visible_rows(state, events, shape), None
    found = bitemporal.updated_rows(state, events, before, shape, everything=everything)
    return found.before, found.now, found.unchanged


def truncated(events: DataFrame, keys: DataFrame, truncate: Any, shape: Layout) -> DataFrame:
    """The events with a delete of each key at the highest truncate; those before it matter no more (CD-6)."""
    if truncate is None:
        return events
    resets = keys.withColumns({SEQ: literal(truncate, shape.sequence), DELETED: F.lit(True), "__fresh": F.lit(False)})
    return events.unionByName(resets, allowMissingColumns=True)


def _tagged(rows: DataFrame, part: str, action: str) -> DataFrame:
    return rows.drop("__fresh").withColumns({PART: F.lit(part), ACTION: F.lit(action)})


def _changed(before: DataFrame, now: DataFrame, shape: Layout) -> DataFrame:
    """Return upserts for rows that are new or differ, and deletes for rows that disappear."""
    kept = F.when(F.col("__new").isNotNull(), F.col("__new")).otherwise(F.col("__old"))
    action = F.when(F.col("__new").isNull(), F.lit(DELETE)).otherwise(F.lit(UPSERT))
    found = _compared(before, now, shape).where("__differs").select(kept.alias("__row"), action.alias(ACTION))
    return found.select(*(F.col("__row")[n].alias(n) for n in shape.visible.fieldNames()), F.lit(ROWS).alias(PART), ACTION)


def _compared(before: DataFrame, now: DataFrame, shape: Layout) -> DataFrame:
    """The rows of both side by side, as structs `__old` and `__new` (NULL: absent), and `__differs`; a row is its key and its starts."""
    identity = [*shape.keys, *shape.starts]
    columns = shape.visible.fieldNames()
    packed = [d.select(*map(col, identity), F.struct(*map(col, columns)).alias(a)) for d, a in ((before, "__old"), (now, "__new"))]
    joined = packed[0].join(packed[1], identity, "full_outer")
    differs = F.col("__new").isNull() | F.col("__old").isNull() | ~same_values("__new").eqNullSafe(same_values("__old"))
    return joined.withColumn("__differs", differs)


__all__ = ["actions", "distinct", "rewritten", "truncated"]
