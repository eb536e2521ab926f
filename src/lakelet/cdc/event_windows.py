"""The events of keys in the order of their sequences, by window functions: the leaves they set, and the versions they make (CD-3, CD-7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.cdc.changes import AUTHORED, DELETED, END, RULE, SEQ, START, SYSTEM, Layout, col, same_values
from lakelet.cdc.heads import SINCE
from lakelet.cdc.state import ALL_LEAVES, ChangeState

Leaf = tuple[str, ...]
Pick = Callable[[Column], Column]
"""What events say of a leaf, NULL where they say nothing → what counts."""

OPENS, ENDS, NEW = "__opens", "__ends", "__begins_new"
"""Columns of `runs`: whether an event is the first one of a version, whether it is the last one, and whether the first one is new."""


def visible_rows(state: ChangeState, events: DataFrame, shape: Layout) -> DataFrame:
    """The visible rows of some keys from all their events (distinct per key and sequence), with the sequence of each one's last event.

    Bitemporal tables have rows of another kind (see `history`).
    """
    found = carry_forward(state, events, shape, [])
    if shape.history:
        return type2_versions(state, found, shape, [])
    latest = Window.partitionBy(*map(col, shape.keys)).orderBy(F.col(SEQ).desc(), DELETED)
    last = found.withColumn("__n", F.row_number().over(latest)).where((F.col("__n") == 1) & ~F.col(DELETED))
    return last.select(*map(col, shape.columns.fieldNames()), SEQ)


def type2_versions(state: ChangeState, events: DataFrame, shape: Layout, more: Sequence[str]) -> DataFrame:
    """The type 2 history of each key from events that `carry_forward` gave, one for each sequence.

    `more`: columns that, with the keys, distinguish histories; the result has them too, and the sequence of each version's last event.
    """
    found = runs(state, events, shape, more).where(ENDS)
    return found.select(*map(col, shape.columns.fieldNames()), *more, START, END, SEQ)


def runs(state: ChangeState, events: DataFrame, shape: Layout, more: Sequence[str]) -> DataFrame:
    """The events with START and END of the version that they belong to, and ENDS: whether they are the last one of a version, its row.

    END counts for these only. An event that stands for a head begins its version at SINCE. Where `__fresh` says which events are new, NEW
    says whether the version began with one of them.
    """
    keys = [*map(col, shape.keys), *map(col, more)]
    order = Window.partitionBy(*keys).orderBy(SEQ)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    compared = [_value(leaf).alias(f"_{i}") for i, leaf in enumerate(_tracked(state, shape))]
    tracked = same_values(F.struct(*compared)) if compared else F.lit("")
    begins = F.coalesce(F.col(SINCE), F.col(SEQ)) if SINCE in events.columns else F.col(SEQ)
    marked = events.withColumns({"__tracked": tracked, END: F.lead(SEQ).over(order)})
    follows = F.lag(DELETED).over(order).isNull() | F.lag(DELETED).over(order)
    opens = ~F.col(DELETED) & (follows | ~F.col("__tracked").eqNullSafe(F.lag("__tracked").over(order)))
    opened = marked.withColumn(OPENS, opens).drop("__tracked")
    start = F.last(F.when(F.col(OPENS), begins), ignorenulls=True).over(so_far)
    last = F.coalesce(F.lead(F.col(OPENS) | F.col(DELETED)).over(order), F.lit(True))
    found = {START: start, ENDS: ~F.col(DELETED) & last}
    if "__fresh" in events.columns:
        found[NEW] = F.last(F.when(F.col(OPENS), F.col("__fresh")), ignorenulls=True).over(so_far)
    return opened.withColumns(found)


def _tracked(state: ChangeState, shape: Layout) -> list[Leaf]:
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


def carry_forward(state: ChangeState, events: DataFrame, shape: Layout, more: Sequence[str]) -> DataFrame:
    """The events with every leaf that an upsert did not author taken from before it; a delete resets all of them.

    `more`: as of `type2_versions`.
    """
    if not state.ruled and not state.named:
        return events
    keys = [*map(col, shape.keys), *map(col, more)]
    in_order = (F.col(SEQ), *([F.col(SYSTEM)] if shape.bitemporal else []), F.col(DELETED).desc())
    order = Window.partitionBy(*keys).orderBy(*in_order)
    segments = events.withColumn("__segment", F.sum(F.col(DELETED).cast("long")).over(order))
    since = Window.partitionBy(*keys, "__segment").orderBy(*in_order).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return segments.withColumns(_leafwise(state, shape, lambda said: F.last(said, ignorenulls=True).over(since))).drop("__segment")


def one_per_sequence(state: ChangeState, events: DataFrame, shape: Layout) -> DataFrame:
    """One event per key and sequence, of two upserts the later one (`__fresh`); of a delete and an upsert, type 2 keeps the delete.

    Type 1 keeps both: the upsert makes the row, but no leaf from before the delete comes through. Where events leave something unsaid, two
    upserts become one that says what they both say: of each leaf the value of the last one that authored it.
    """
    same = Window.partitionBy(*map(col, shape.keys), SEQ, *([] if shape.history else [DELETED]))
    order = same.orderBy(F.col(DELETED).desc(), F.col("__fresh").desc())
    numbered = events.withColumn("__n", F.row_number().over(order))
    if state.ruled or state.named:
        whole = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
        several = ~F.col(DELETED) & (F.sum((~F.col(DELETED)).cast("long")).over(whole) > 1)
        said = _leafwise(state, shape, lambda said: F.first(said, ignorenulls=True).over(whole)) | _options(state, shape, whole)
        numbered = numbered.withColumns({name: F.when(several, value).otherwise(col(name)) for name, value in said.items()})
    return numbered.where(F.col("__n") == 1).drop("__n")


def _options(state: ChangeState, shape: Layout, whole: Any) -> dict[str, Column]:
    """What the upserts of one key and sequence leave unsaid together, in the columns that say so of an event.

    Upserts of one rule leave unsaid what the rule does; beside one that authors every leaf, nothing is unsaid. What those of several
    rules, or with names, author is named leaf by leaf (`ChangeState.named`).
    """
    upsert, number = ~F.col(DELETED), F.coalesce(F.col(RULE), F.lit(ALL_LEAVES)) if state.ruled else F.lit(ALL_LEAVES)
    least, most = (pick(F.when(upsert, number)).over(whole) for pick in (F.min, F.max))
    if not state.named:
        return {RULE: least}
    unnamed = F.col(AUTHORED).isNull()
    uniform = (least == most) & F.min(F.when(upsert, unnamed)).over(whole)
    everything = F.max(upsert & unnamed & (number == ALL_LEAVES)).over(whole)
    leaves = [leaf for f in shape.columns.fields if f.name not in shape.keys for leaf in _leaves((f.name,), f.dataType)]
    listed = [(".".join(leaf).lower(), _authored(state, leaf)) for leaf in leaves]
    said = [F.when(F.max(upsert if says is None else upsert & says).over(whole), F.lit(path)) for path, says in listed]
    names = F.when(~uniform & ~everything, F.array_compact(F.array(*said)))
    return {AUTHORED: names, **({RULE: F.when(uniform, least).otherwise(F.lit(ALL_LEAVES))} if state.ruled else {})}


def _leaves(leaf: Leaf, kind: T.DataType) -> list[Leaf]:
    """The leaves of a column: its fields, at every depth, or itself."""
    if isinstance(kind, T.StructType):
        return [inner for f in kind.fields for inner in _leaves((*leaf, f.name), f.dataType)]
    return [leaf]


def _leafwise(state: ChangeState, shape: Layout, pick: Pick) -> dict[str, Column]:
    """The columns of the target in which events leave something unsaid, by name, each put together from its leaves."""
    found = {f.name: _picked(state, (f.name,), f.dataType, pick) for f in shape.columns.fields if f.name not in shape.keys}
    return {name: value for name, value in found.items() if value is not None}


def _picked(state: ChangeState, leaf: Leaf, kind: T.DataType, pick: Pick) -> Column | None:
    """A column with picked leaves; None where every leaf is taken as it comes."""
    if isinstance(kind, T.StructType):
        inner = [(f, _picked(state, (*leaf, f.name), f.dataType, pick)) for f in kind.fields]
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
    return pick(said)["v"]


def _authored(state: ChangeState, leaf: Leaf) -> Column | None:
    """Whether an event says something about a leaf; None: each event does."""
    conditions = []
    if state.named:
        paths = F.array(*(F.lit(".".join(leaf[: n + 1]).lower()) for n in range(len(leaf))))
        listed = F.arrays_overlap(F.transform(F.col(AUTHORED), F.lower), paths)
        conditions.append(F.col(AUTHORED).isNull() | F.coalesce(listed, F.lit(False)))
    ignoring = state.ignoring(leaf)
    if ignoring:
        number = F.coalesce(F.col(RULE), F.lit(ALL_LEAVES))
        conditions.append(_value(leaf).isNotNull() | ~number.isin(ignoring))
    return _all(conditions) if conditions else None


def _all(conditions: Sequence[Column]) -> Column:
    result = conditions[0]
    for condition in conditions[1:]:
        result = result & condition
    return result


__all__ = ["ENDS", "NEW", "OPENS", "carry_forward", "one_per_sequence", "runs", "type2_versions", "visible_rows"]
