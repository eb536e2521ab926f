"""Targets computed from the events of a key: type 2, type 1 where nulls are ignored (CD-3, CD-7), and bitemporal tables.

The part `state` holds every event once. The rows of the keys that a batch touches are computed again from all their events. A bitemporal
table has at each system time the type 2 history of the events known by then (docs/semantics/bitemporal.md, decision 0025). A batch changes
no history before the earliest system sequence of its new events. So of each key the rows that stood just before that are taken as they
are, and the histories from then on are computed again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Observation, Window
from pyspark.sql import functions as F

from lakelet.cdc.changes import DELETED, END, RULE, SEQ, START, SYSTEM, SYSTEM_END, SYSTEM_START, TIMES, TRUNCATES, Layout, col, same_values
from lakelet.cdc.counts import BURY
from lakelet.cdc.event_windows import carry_forward, one_per_sequence, type2_versions, visible_rows
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
        found = _first_bitemporal_rows(state, events, shape) if shape.bitemporal else visible_rows(state, events, shape)
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
    found = _updated_bitemporal_rows(state, events, before, shape, everything=everything)
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


# --- bitemporal tables --------------------------------------------------------------------------------------------------------------------


_SINCE = "__since"  # the earliest system sequence from which on the history of a key may change
_AS_OF = "__as_of"  # struct (number, now, next): a system time of the key from _SINCE on, and the next one; number 0 is the time before
_NUMBER, _NOW, _NEXT = "number", "now", "next"


@dataclass(frozen=True)
class _BitemporalRows:
    """The rows of some keys after a batch.

    now: computed rows whose system period reaches `_SINCE` or later. before: the stored rows that they replace.
    unchanged: stored rows whose system period ended before `_SINCE`.
    """

    now: DataFrame
    before: DataFrame
    unchanged: DataFrame


def _first_bitemporal_rows(state: ChangeState, events: DataFrame, shape: Layout) -> DataFrame:
    """The rows of keys that have none yet, from all their events (distinct per key and both sequences)."""
    since = _since(events, shape)
    return _joined_in_time(_histories(state, events, since, shape), shape)


def _updated_bitemporal_rows(
    state: ChangeState, events: DataFrame, before: DataFrame, shape: Layout, *, everything: bool
) -> _BitemporalRows:
    """The rows of keys that have some.

    Args:
        events: all events of the keys, distinct per key and both sequences; `__fresh` says which are new.
        before: the rows of the keys.
        everything: all is computed again, whatever is new.
    """
    events, before = events.localCheckpoint(), before.localCheckpoint()  # both are needed several times
    since = _since(events if everything else events.where("__fresh"), shape)
    columns = [col(name) for name in shape.visible.fieldNames()]
    dated = before.join(since, list(shape.keys), "left")
    stands = F.col(_SINCE).isNotNull() & (F.col(SYSTEM_END).isNull() | (F.col(SYSTEM_END) >= F.col(_SINCE)))
    standing = dated.where(stands)
    as_of = F.struct(F.lit(0).alias(_NUMBER), F.col(SYSTEM_START).alias(_NOW), F.col(_SINCE).alias(_NEXT))
    until_then = standing.where(F.col(SYSTEM_START) < F.col(_SINCE)).withColumn(_AS_OF, as_of).drop(SYSTEM_START, SYSTEM_END, _SINCE)
    histories = _histories(state, events, since, shape).unionByName(until_then)
    return _BitemporalRows(_joined_in_time(histories, shape), standing.select(*columns), dated.where(~stands).select(*columns))


def _since(events: DataFrame, shape: Layout) -> DataFrame:
    return events.groupBy(*map(col, shape.keys)).agg(F.min(SYSTEM).alias(_SINCE))


def _histories(state: ChangeState, events: DataFrame, since: DataFrame, shape: Layout) -> DataFrame:
    """Return the type 2 history of each key as of each system time from `since` on (BT-3)."""
    keys = list(shape.keys)
    in_time = Window.partitionBy(*map(col, keys)).orderBy(_NOW)
    times = events.select(*map(col, keys), F.col(SYSTEM).alias(_NOW)).distinct()
    as_of = F.struct(F.row_number().over(in_time).alias(_NUMBER), F.col(_NOW), F.lead(_NOW).over(in_time).alias(_NEXT))
    as_of_times = times.join(since, keys).where(F.col(_NOW) >= F.col(_SINCE)).select(*map(col, keys), as_of.alias(_AS_OF))
    known = events.drop("__fresh").join(as_of_times, keys).where(F.col(SYSTEM) <= F.col(_AS_OF)[_NOW])
    known_values = carry_forward(state, known, shape, [_AS_OF])
    newest = Window.partitionBy(*map(col, keys), _AS_OF, SEQ).orderBy(F.col(SYSTEM).desc())  # BT-6
    counted = known_values.withColumn("__n", F.row_number().over(newest)).where(F.col("__n") == 1).drop("__n")
    return type2_versions(state, counted, shape, [_AS_OF])


def _joined_in_time(histories: DataFrame, shape: Layout) -> DataFrame:
    """Merge the rows of versions that are equal at consecutive system times into one row each (BT-4)."""
    keys = [col(key) for key in shape.keys]
    rest = [name for name in shape.columns.fieldNames() if name not in shape.keys]
    values = F.struct(*map(col, rest), F.col(END))
    same = [*keys, F.col(START), F.col("__text")]
    number = F.col(_AS_OF)[_NUMBER]
    compared = histories.withColumn("__text", same_values(values))
    runs = compared.withColumn("__run", number - F.row_number().over(Window.partitionBy(*same).orderBy(_AS_OF)))
    grouped = runs.groupBy(*same, "__run").agg(
        F.first(values).alias("__values"), F.min(_AS_OF)[_NOW].alias(SYSTEM_START), F.max(_AS_OF)[_NEXT].alias(SYSTEM_END)
    )
    columns = [col(n) if n in shape.keys else F.col("__values")[n].alias(n) for n in shape.columns.fieldNames()]
    return grouped.select(*columns, START, F.col("__values")[END].alias(END), SYSTEM_START, SYSTEM_END)


__all__ = ["actions", "distinct", "rewritten", "truncated"]
