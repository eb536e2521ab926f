"""Targets computed from the events of a key: type 2, and type 1 where nulls are ignored (dlt-semantics 6.1); see `algebra`.

The part `state` holds every event once. A batch touches some keys; all events of these keys are walked again, in windows over the sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.cdc.changes import AUTHORED, DELETED, END, RULE, SEQ, START, TRUNCATES, Layout, col, same_values
from lakelet.cdc.counts import BURY
from lakelet.cdc.latest import ACTION, DELETE, UPSERT, mark
from lakelet.cdc.literals import literal
from lakelet.cdc.mirror import PART, ROWS, STATE
from lakelet.cdc.state import State

Leaf = tuple[str, ...]


def distinct(events: DataFrame, shape: Layout) -> DataFrame:
    """One event per key and sequence, of two upserts either; of a delete and an upsert, type 2 keeps the delete.

    Type 1 keeps both: the upsert makes the row, but no leaf from before the delete comes through.
    """
    same = Window.partitionBy(*map(col, shape.keys), SEQ, *([] if shape.history else [DELETED]))
    order = same.orderBy(F.col(DELETED).desc(), F.col("__fresh").desc())
    return events.withColumn("__n", F.row_number().over(order)).where(F.col("__n") == 1).drop("__n")


def actions(
    state: State, batch: DataFrame, inner: DataFrame | None, shape: Layout, truncate: Any, *, marks: bool, everything: bool
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
        events = distinct(truncated(new, touched, truncate, shape), shape)
        changed = _tagged(rows(state, events, shape), ROWS, UPSERT)
    else:
        known = inner.where(col(keys[0]).isNotNull()) if everything else inner.join(touched, keys, "left_semi")
        touched = known.select(*map(col, keys)).unionByName(touched).distinct() if everything else touched
        old_events = known.where(F.col(PART) == STATE).drop(PART, START, END).withColumn("__fresh", F.lit(False))
        events = distinct(truncated(old_events.unionByName(new, allowMissingColumns=True), touched, truncate, shape), shape)
        before = known.where(F.col(PART) == ROWS).select(*map(col, shape.visible.fieldNames()))
        changed = _changed(before, rows(state, events, shape), shape)
    fresh = _tagged(events.where(F.col("__fresh")), STATE, BURY)
    found = changed.unionByName(fresh, allowMissingColumns=True)
    return found.unionByName(mark(fresh.drop(ACTION), truncate, shape).withColumn(ACTION, F.lit(BURY)), True) if marks else found


def rewritten(
    state: State,
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
    old_events = known.where(F.col(PART) == STATE).drop(PART, START, END).withColumn("__fresh", F.lit(False))
    held = distinct(old_events.unionByName(new, allowMissingColumns=True), shape)
    events = held
    if truncate is not None:
        events = distinct(truncated(held, held.select(*map(col, keys)).distinct(), truncate, shape), shape)
    before = known.where(F.col(PART) == ROWS).select(*map(col, shape.visible.fieldNames()))
    joined = _compared(before, rows(state, events, shape), shape)
    told = {"upserted": F.col("__new").isNotNull() & F.col("__differs"), "deleted": F.col("__new").isNull()}
    observed = joined.observe(counted, *(F.sum(value.cast("long")).alias(name) for name, value in told.items()))
    visible = observed.where(F.col("__new").isNotNull()).select(F.col("__new.*"), F.lit(ROWS).alias(PART))
    found = visible.unionByName(held.drop("__fresh").withColumn(PART, F.lit(STATE)), allowMissingColumns=True)
    if not everything:
        found = found.unionByName(keyed.join(touched, keys, "left_anti"), allowMissingColumns=True)
    remembered = mark(found, truncate, shape) if marks else inner.where(col(keys[0]).isNull())
    return found.unionByName(remembered, allowMissingColumns=True)


def truncated(events: DataFrame, keys: DataFrame, truncate: Any, shape: Layout) -> DataFrame:
    """The events with a delete of each key at the highest truncate; those before it matter no more (6.1)."""
    if truncate is None:
        return events
    resets = keys.withColumns({SEQ: literal(truncate, shape.sequence), DELETED: F.lit(True), "__fresh": F.lit(False)})
    return events.unionByName(resets, allowMissingColumns=True)


def _tagged(rows: DataFrame, part: str, action: str) -> DataFrame:
    return rows.drop("__fresh").withColumns({PART: F.lit(part), ACTION: F.lit(action)})


def _changed(before: DataFrame, now: DataFrame, shape: Layout) -> DataFrame:
    """Upserts for rows that are new or differ, deletes for rows that are no more."""
    kept = F.when(F.col("__new").isNotNull(), F.col("__new")).otherwise(F.col("__old"))
    action = F.when(F.col("__new").isNull(), F.lit(DELETE)).otherwise(F.lit(UPSERT))
    found = _compared(before, now, shape).where("__differs").select(kept.alias("__row"), action.alias(ACTION))
    return found.select(*(F.col("__row")[n].alias(n) for n in shape.visible.fieldNames()), F.lit(ROWS).alias(PART), ACTION)


def _compared(before: DataFrame, now: DataFrame, shape: Layout) -> DataFrame:
    """The rows of both side by side, as structs `__old` and `__new` (NULL: absent), and `__differs`; a row is its key and __START_AT."""
    identity = [*shape.keys, *([START] if shape.history else [])]
    columns = shape.visible.fieldNames()
    packed = [d.select(*map(col, identity), F.struct(*map(col, columns)).alias(a)) for d, a in ((before, "__old"), (now, "__new"))]
    joined = packed[0].join(packed[1], identity, "full_outer")
    differs = F.col("__new").isNull() | F.col("__old").isNull() | ~same_values("__new").eqNullSafe(same_values("__old"))
    return joined.withColumn("__differs", differs)


def rows(state: State, events: DataFrame, shape: Layout) -> DataFrame:
    """The visible rows of some keys from all their events (distinct per key and sequence)."""
    keys = [col(key) for key in shape.keys]
    filled = _filled(state, events, shape)
    if not shape.history:
        latest = Window.partitionBy(*keys).orderBy(F.col(SEQ).desc(), DELETED)
        last = filled.withColumn("__n", F.row_number().over(latest)).where((F.col("__n") == 1) & ~F.col(DELETED))
        return last.select(*map(col, shape.columns.fieldNames()))
    order = Window.partitionBy(*keys).orderBy(SEQ)
    compared = [_value(leaf).alias(f"_{i}") for i, leaf in enumerate(_tracked(state, shape))]
    tracked = same_values(F.struct(*compared)) if compared else F.lit("")
    marked = filled.withColumns({"__tracked": tracked, "__next": F.lead(SEQ).over(order)}).withColumns(
        {
            "__opens": ~F.col(DELETED)
            & (
                F.lag(DELETED).over(order).isNull()
                | F.lag(DELETED).over(order)
                | ~F.col("__tracked").eqNullSafe(F.lag("__tracked").over(order))
            )
        }
    )
    runs = marked.withColumn("__run", F.sum(F.col("__opens").cast("long")).over(order)).where(~F.col(DELETED))
    others = [n for n in shape.columns.fieldNames() if n not in shape.keys]
    newest = F.max_by(F.struct(*map(col, others), F.col("__next").alias(END)), F.col(SEQ))
    grouped = runs.groupBy(*keys, "__run").agg(F.min(SEQ).alias(START), newest.alias("__last"))
    columns = [col(n) if n in shape.keys else F.col("__last")[n].alias(n) for n in shape.columns.fieldNames()]
    return grouped.select(*columns, START, F.col("__last")[END].alias(END))


def _tracked(state: State, shape: Layout) -> list[Leaf]:
    """Columns whose changes open a version: all selected ones but the keys, unless said otherwise."""
    names = [n for n in shape.columns.fieldNames() if n not in shape.keys]
    if state.tracked is None:
        return [(n,) for n in names]
    kind, listed = state.tracked
    return [(n,) for n in names if (n.lower() in listed) is (kind == "on")]


def _value(leaf: Leaf) -> Column:
    found = col(leaf[0])
    for name in leaf[1:]:
        found = found.getField(name)
    return found


# ------------------------------------------------------------------------------------------------- leaves that say nothing


def _filled(state: State, events: DataFrame, shape: Layout) -> DataFrame:
    """The events with every leaf that an upsert did not author taken from before it; a delete resets all of them."""
    if not state.ruled and not state.named:
        return events
    keys = [col(key) for key in shape.keys]
    in_order = (F.col(SEQ), F.col(DELETED).desc())
    order = Window.partitionBy(*keys).orderBy(*in_order)
    segments = events.withColumn("__segment", F.sum(F.col(DELETED).cast("long")).over(order))
    since = Window.partitionBy(*keys, "__segment").orderBy(*in_order).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    replaced = {}
    for field in shape.columns.fields:
        if field.name not in shape.keys:
            replaced[field.name] = _inherited(state, (field.name,), field.dataType, since)
    return segments.withColumns({name: value for name, value in replaced.items() if value is not None}).drop("__segment")


def _inherited(state: State, leaf: Leaf, kind: T.DataType, since: Any) -> Column | None:
    """A column with inherited leaves; None where every leaf is taken as it comes."""
    if isinstance(kind, T.StructType):
        inner = [(f, _inherited(state, (*leaf, f.name), f.dataType, since)) for f in kind.fields]
        if all(value is None for _, value in inner):
            return None
        fields = [(f.name, _value((*leaf, f.name)) if value is None else value) for f, value in inner]
        whole = F.struct(*(value.alias(name) for name, value in fields))
        nothing = _all([value.isNull() for _, value in fields])
        return F.when(nothing, F.lit(None)).otherwise(whole)
    authored = _authored(state, leaf)
    if authored is None:
        return None
    said = F.when(authored & ~F.col(DELETED), F.struct(_value(leaf).alias("v")))
    return F.last(said, ignorenulls=True).over(since)["v"]


def _authored(state: State, leaf: Leaf) -> Column | None:
    """Whether an event says something about a leaf; None: each event does."""
    conditions = []
    if state.named:
        paths = F.array(*(F.lit(".".join(leaf[: n + 1]).lower()) for n in range(len(leaf))))
        listed = F.arrays_overlap(F.transform(F.col(AUTHORED), F.lower), paths)
        conditions.append(F.col(AUTHORED).isNull() | F.coalesce(listed, F.lit(False)))
    ignoring = state.ignoring(leaf)
    if ignoring:
        number = F.coalesce(F.col(RULE), F.lit(state.before))
        conditions.append(_value(leaf).isNotNull() | ~number.isin(ignoring))
    return _all(conditions) if conditions else None


def _all(conditions: Sequence[Column]) -> Column:
    result = conditions[0]
    for condition in conditions[1:]:
        result = result & condition
    return result


__all__ = ["actions", "distinct", "rows"]
