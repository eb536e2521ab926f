"""Applies manual changes to rows to the state of a change table (docs/semantics/change-tables.md, CT-1 to CT-9).

A hand-made change is an event of its key. Type 1: at the sequence that the key has got to, so before all events if it has none. Type 2: at
the row's `__START_AT`. It is always whole: it sets every column. The state of the keys concerned is computed here from what it was; other
keys are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from lakelet.base.errors import LakeletError
from lakelet.cdc import event_windows, heads, history
from lakelet.cdc.change_table import Retention, dated
from lakelet.cdc.changes import BURIED, DELETED, END, RULE, SEQ, START, Layout, col, same_values
from lakelet.cdc.literals import literal
from lakelet.cdc.mirror import PART, ROWS, STATE
from lakelet.cdc.state import AUTHORS_ALL, ChangeState

_ROW, _COUNT, _WAS, _TEXT = "__row", "__count", "__was", "__text"
_REMOVED, _NOW, _AT, _ACTS, _BY_HAND = "__removed", "__now", "__at", "__acts", "__by_hand"


@dataclass(frozen=True)
class Before:
    """The internal table before the changes are taken over.

    rows: as it is now. seen: events and sequences in the version that the changes were made on; None where that is the one of `rows`.
    same: the changes were made on the internal table's rows, not on those of an older version of the target (RESTORE).
    truncate: the highest truncate's sequence, None if there was none.
    """

    rows: DataFrame
    seen: DataFrame | None
    same: bool
    truncate: Any
    retention: Retention | None


def differences(before: DataFrame, after: DataFrame, columns: list[str]) -> DataFrame:
    """Rows that one of the frames has more often: the row, how many times more `after` has it, and its sequence where `before` knows it."""
    known = [col(name) if name in before.columns else F.lit(None).alias(name) for name in columns]
    was = col(SEQ) if SEQ in before.columns else F.lit(None)
    old = before.select(F.struct(*known).alias(_ROW), F.lit(-1).alias(_COUNT), was.alias(_WAS))
    now = [col(name) if name in after.columns else F.lit(None).alias(name) for name in columns]
    new = after.select(F.struct(*now).alias(_ROW), F.lit(1).alias(_COUNT)).withColumn(_WAS, F.lit(None).cast(old.schema[_WAS].dataType))
    both = old.union(new).groupBy(same_values(col(_ROW)).alias(_TEXT))
    counted = both.agg(F.first(_ROW).alias(_ROW), F.sum(_COUNT).alias(_COUNT), F.max(_WAS).alias(_WAS))
    return counted.where(F.col(_COUNT) != 0)


def keys_of(changes: DataFrame, shape: Layout) -> DataFrame:
    """The keys of changed rows."""
    return changes.select(*(F.col(_ROW)[key].alias(key) for key in shape.keys)).distinct()


def check(changes: DataFrame, shape: Layout) -> None:
    """Refuse rows that cannot be events. Raises CDC_ROW_BY_HAND."""
    if shape.bitemporal:
        changed = changes.select(F.to_json(F.struct(*(F.col(_ROW)[n].alias(n) for n in (*shape.keys, *shape.starts))))).first()
        assert changed is not None
        raise LakeletError(
            "CDC_ROW_BY_HAND",
            f"rows of a bitemporal table were inserted, updated or deleted by hand, for example {changed[0]}",
            why="a statement does not say when its change became known; nothing of this update was applied to the table",
            todo="RESTORE the table to the version before it, and send the change as an event of the source; or do a full refresh.",
        )
    put = changes.where(F.col(_COUNT) > 0).select(f"{_ROW}.*")
    names = ", ".join(shape.keys)
    bad = F.when(reduce(lambda a, b: a | b, [col(key).isNull() for key in shape.keys]), F.lit(f"NULL in a key column ({names})"))
    identity = list(shape.keys)
    if shape.history:
        bad = bad.when(col(START).isNull(), F.lit(f"no {START}")).when(
            col(END) <= col(START), F.lit(f"an {END} that is not after its {START}")
        )
        identity.append(START)
    unfit = put.where(bad.isNotNull()).select(bad.alias("why"), F.to_json(F.struct(*map(col, identity))).alias("row"))
    found: Row | dict[str, Any] | None = unfit.first()
    if found is None:
        twice = put.groupBy(*map(col, identity)).count().where("count > 1")
        repeated = twice.select(F.to_json(F.struct(*map(col, identity))).alias("row")).first()
        found = repeated and {"why": "two rows that differ", "row": repeated["row"]}
    if found:
        raise LakeletError(
            "CDC_ROW_BY_HAND",
            f"a row was written into the table by hand that cannot be an event of its key: {found['why']} for {found['row']}",
            why="rows written by hand take part in the changes; nothing of this update was applied to the table",
            todo="Correct or delete the row with UPDATE or DELETE; or RESTORE the table to the version before it was written.",
        )


def state(now: ChangeState, changes: DataFrame, before: Before, shape: Layout) -> DataFrame:
    """All rows of the internal table for the keys of some changes, after these."""
    if not now.events:
        return _latest(_by_key(changes, before, shape), before, shape)
    after = _versions(changes, before, shape) if shape.history else _leaves(_by_key(changes, before, shape), before, shape)
    if now.ruled:  # events by hand say something about every column
        after = after.withColumn(RULE, F.when(F.col(_BY_HAND), F.lit(now.rules.index(AUTHORS_ALL))).otherwise(F.col(RULE)))
    after = after.drop(_BY_HAND)
    held = history.distinct(now, history.truncated(after, keys_of(changes, shape), before.truncate, shape), shape)
    visible = heads.in_parts(event_windows.visible_rows(now, held, shape), now, shape)
    found = visible.unionByName(after.drop("__fresh").withColumn(PART, F.lit(STATE)), allowMissingColumns=True)
    return found.unionByName(heads.last_events(held, shape).where(DELETED), allowMissingColumns=True) if now.heads else found


# --------------------------------------------------------------------------------------------------------------- type 1


def _by_key(changes: DataFrame, before: Before, shape: Layout) -> DataFrame:
    """One row for each key: whether its row went, the sequence that row had, and the row that is there now."""
    keyed = changes.withColumns({key: F.col(_ROW)[key] for key in shape.keys})
    went, came = F.col(_COUNT) < 0, F.col(_COUNT) > 0
    return keyed.groupBy(*map(col, shape.keys)).agg(
        F.max(went).alias(_REMOVED), F.max(_WAS).alias(_WAS), F.first(F.when(came, F.col(_ROW)), ignorenulls=True).alias(_NOW)
    )


def _latest(changes: DataFrame, before: Before, shape: Layout) -> DataFrame:
    """Type 1 in row mode: the row of a key or its tombstone."""
    keys, inner = list(shape.keys), before.rows
    columns = [field.name for field in inner.schema.fields]
    whole = F.struct(*map(col, columns))
    rows = inner.where(F.col(PART) == ROWS).select(*map(col, keys), whole.alias("__held"))
    graves = inner.where((F.col(PART) == STATE) & col(keys[0]).isNotNull()).select(*map(col, keys), whole.alias("__grave"))
    joined = changes.join(rows, keys, "left").join(graves, keys, "left")
    had, put, grave = F.col("__held").isNotNull(), F.col(_NOW).isNotNull(), F.col("__grave").isNotNull()
    was = F.col(_WAS) if before.same else F.col("__held")[SEQ]
    newer = F.coalesce(F.col("__held")[SEQ] > was, was.isNull() & F.col("__held")[SEQ].isNotNull())
    acts = F.when(F.col(_REMOVED), had & ~newer).otherwise(~had)
    reached = [F.col("__grave")[SEQ]] if before.truncate is None else [F.col("__grave")[SEQ], literal(before.truncate, shape.sequence)]
    last = reached[0] if len(reached) == 1 else F.greatest(*reached)
    found = joined.withColumns({_ACTS: acts, _AT: F.when(F.col(_REMOVED), was).otherwise(last)})
    acts, at = F.col(_ACTS), F.col(_AT)
    fresh = {SEQ: at, DELETED: ~put, PART: F.when(put, F.lit(ROWS)).otherwise(F.lit(STATE))}
    changed = found.where(acts & (put | at.isNotNull())).select(*(_column(name, fresh, shape, inner).alias(name) for name in columns))
    held = found.where(~acts & had).select("__held.*")
    buried = found.where(grave & ~(acts & (put | at.isNotNull()))).select("__grave.*")
    dates = before.retention if BURIED in columns else None
    return dated(changed, dates).unionByName(held).unionByName(buried)


def _column(name: str, fresh: dict[str, Column], shape: Layout, inner: DataFrame) -> Column:
    kind = inner.schema[name].dataType
    if name in fresh:
        return fresh[name].cast(kind)
    if name in shape.keys:
        return col(name)
    if name in shape.columns.fieldNames():
        return F.col(_NOW)[name].cast(kind)
    return F.lit(None).cast(kind)


def _leaves(changes: DataFrame, before: Before, shape: Layout) -> DataFrame:
    """Type 1 from the events of a key: a changed row is a delete, which resets its leaves, and an upsert of the same sequence."""
    keys = list(shape.keys)
    inner = before.rows.join(changes.select(*map(col, keys)), keys, "left_semi")
    events = inner.where(F.col(PART) == STATE).drop(PART, START, END)
    then = events if before.seen is None else before.seen.where(F.col(PART) == STATE)
    had = inner.where(F.col(PART) == ROWS).select(*map(col, keys), F.lit(True).alias("__had"))
    last = [frame.groupBy(*map(col, keys)).agg(F.max(SEQ).alias(name)) for frame, name in ((then, "__then"), (events, "__last"))]
    found = changes.join(had, keys, "left").join(last[0], keys, "left").join(last[1], keys, "left")
    reached = F.col("__last") if before.truncate is None else F.greatest(F.col("__last"), literal(before.truncate, shape.sequence))
    acts = F.col(_REMOVED) | F.col("__had").isNull()
    found = found.withColumns({_ACTS: acts, _AT: F.when(F.col(_REMOVED), F.col("__then")).otherwise(reached)}).where(_ACTS)
    at = found.select(*map(col, keys), _AT, F.lit(True).alias(_ACTS))
    kept = events.join(at, keys, "left").where(F.col(_ACTS).isNull() | ~F.col(SEQ).eqNullSafe(F.col(_AT))).drop(_AT, _ACTS)
    resets = found.where(F.col(_AT).isNotNull()).select(*map(col, keys), F.col(_AT).alias(SEQ), F.lit(True).alias(DELETED))
    now = [F.col(_NOW)[name].alias(name) for name in shape.columns.fieldNames() if name not in keys]
    puts = found.where(F.col(_NOW).isNotNull()).select(*map(col, keys), *now, F.col(_AT).alias(SEQ), F.lit(False).alias(DELETED))
    return _events(kept, resets, puts)


def _events(kept: DataFrame, *made: DataFrame) -> DataFrame:
    found = kept.withColumn(_BY_HAND, F.lit(False))
    for frame in made:
        found = found.unionByName(frame.withColumn(_BY_HAND, F.lit(True)), allowMissingColumns=True)
    return found.withColumn("__fresh", F.lit(False))


# --------------------------------------------------------------------------------------------------------------- type 2


def _versions(changes: DataFrame, before: Before, shape: Layout) -> DataFrame:
    """Type 2: the events of the keys. A row that went is a delete at its start, one that came an upsert there.

    A row that went takes the events that it was made of along; one that came ends where it says, unless an event comes before that.
    """
    keys = list(shape.keys)
    inner = before.rows.join(keys_of(changes, shape), keys, "left_semi")
    events = inner.where(F.col(PART) == STATE).drop(PART, START, END)
    went, came = (changes.where(sign).select(f"{_ROW}.*") for sign in (F.col(_COUNT) < 0, F.col(_COUNT) > 0))
    gone = went.select(*map(col, keys), col(START).alias("__from"), col(END).alias("__to"))
    kept = _not_replaced(events, gone, came, before, shape)
    columns = [*map(col, keys), col(START).alias(SEQ), F.lit(True).alias(DELETED)]
    holes = went.join(came.select(*map(col, keys), START), [*keys, START], "left_anti").select(*columns)
    puts = came.select(*map(col, shape.columns.fieldNames()), col(START).alias(SEQ), F.lit(False).alias(DELETED))
    # An end that the row has by itself, not because another event follows.
    known = kept.select(*map(col, keys), SEQ).unionByName(holes.select(*map(col, keys), SEQ)).unionByName(puts.select(*map(col, keys), SEQ))
    closed = came.where(col(END).isNotNull()).select(*map(col, keys), col(START).alias("__from"), col(END).alias("__to"))
    within = reduce(lambda a, b: a & b, [F.col(f"c.`{key}`") == F.col(f"k.`{key}`") for key in keys])
    within = within & (F.col(f"k.{SEQ}") > F.col("c.__from")) & (F.col(f"k.{SEQ}") <= F.col("c.__to"))
    ended = closed.alias("c").join(known.alias("k"), within, "left_anti")
    ends = ended.select(*map(col, keys), F.col("__to").alias(SEQ), F.lit(True).alias(DELETED)).distinct()
    return _events(kept, holes, puts, ends)


def _not_replaced(events: DataFrame, gone: DataFrame, came: DataFrame, before: Before, shape: Layout) -> DataFrame:
    """The events of the keys without those that the changed rows stand for."""
    keys = list(shape.keys)
    same_key = reduce(lambda a, b: a & b, [F.col(f"e.`{key}`") == F.col(f"g.`{key}`") for key in keys])
    seq, start, end = F.col(f"e.{SEQ}"), F.col("g.__from"), F.col("g.__to")
    inside = (seq >= start) & (end.isNull() | (seq < end)) if before.same else seq == start
    # The delete that ended the row goes too where a row of the same key that came reaches over it.
    over = came.select(*map(col, keys), col(START).alias("__a"), col(END).alias("__b")).alias("o")
    covered = reduce(lambda a, b: a & b, [F.col(f"g.`{key}`") == F.col(f"o.`{key}`") for key in keys])
    covered = covered & (F.col("__a") < end) & (F.col("__b").isNull() | (F.col("__b") > end))
    opened = gone.alias("g").join(over, covered, "left_semi").alias("g")
    at_end = same_key & F.col(f"e.{DELETED}") & (seq == end)
    if before.seen is not None:
        known = before.seen.where(F.col(PART) == STATE).select(*map(col, keys), SEQ, DELETED).distinct()
        events = events.join(known.withColumn("__seen", F.lit(True)), [*keys, SEQ, DELETED], "left")
        inside, at_end = inside & F.col("e.__seen"), at_end & F.col("e.__seen")
    found = events.alias("e").join(gone.alias("g"), same_key & inside, "left_anti")
    found = found.alias("e").join(opened, at_end, "left_anti") if before.same else found
    found = found.join(came.select(*map(col, keys), col(START).alias(SEQ)), [*keys, SEQ], "left_anti")
    return found.drop("__seen") if before.seen is not None else found


__all__ = ["Before", "check", "differences", "keys_of", "state"]
