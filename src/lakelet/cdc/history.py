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

from lakelet.cdc.changes import (
    AUTHORED,
    DELETED,
    END,
    RULE,
    SEQ,
    START,
    SYSTEM,
    SYSTEM_END,
    SYSTEM_START,
    TIMES,
    TRUNCATES,
    Layout,
    col,
    same_values,
)
from lakelet.cdc.counts import BURY
from lakelet.cdc.event_windows import ENDS, NEW, carry_forward, one_per_sequence, runs, type2_versions, visible_rows
from lakelet.cdc.heads import SINCE, Reach, as_events, current, in_order_heads, in_parts, last_events
from lakelet.cdc.latest import ACTION, DELETE, UPSERT, truncate_row
from lakelet.cdc.literals import literal
from lakelet.cdc.mirror import LAST, PART, ROWS, STATE, VISIBLE
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
    state: ChangeState, batch: DataFrame, inner: DataFrame | None, shape: Layout, truncate: Any, *, marks: bool, reach: Reach
) -> DataFrame:
    """What a batch does to the internal table: its columns and ACTION.

    Args:
        inner: None while the table is empty.
        truncate: the highest truncate's sequence so far, this batch's included; None if there was none.
        marks: the truncate is of this batch and must be remembered.
        reach: what is read of the stored events.
    """
    new = new_events(batch)
    keys = list(shape.keys)
    touched = new.select(*map(col, keys)).distinct()
    if inner is None:
        events = distinct(state, truncated(new, touched, truncate, shape), shape)
        found = _first_bitemporal_rows(state, events, shape) if shape.bitemporal else visible_rows(state, events, shape)
        changed = in_parts(found, state, shape).withColumn(ACTION, F.lit(UPSERT))
    else:
        if reach.everything:
            touched = inner.where(col(keys[0]).isNotNull()).select(*map(col, keys)).unionByName(touched).distinct()
        old_events, before = _known(state, inner, touched, shape, reach)
        events = distinct(state, truncated(old_events.unionByName(new, allowMissingColumns=True), touched, truncate, shape), shape)
        before, now, _ = _computed(state, events, before, shape, everything=reach.everything)
        changed = _changed(before, in_parts(now, state, shape), shape)
        changed = changed.localCheckpoint() if state.heads else changed  # it is needed twice
    fresh = events.where(F.col("__fresh")).drop("__fresh", SINCE).withColumns({PART: F.lit(STATE), ACTION: F.lit(BURY)})
    found = changed.unionByName(fresh, allowMissingColumns=True)
    if state.heads:
        found = found.unionByName(_unsaid(events, changed, shape, reach), allowMissingColumns=True)
    return found.unionByName(truncate_row(fresh.drop(ACTION), truncate, shape).withColumn(ACTION, F.lit(BURY)), True) if marks else found


def new_events(batch: DataFrame) -> DataFrame:
    """The events of keys in a batch."""
    return batch.where(~F.col(TRUNCATES)).drop(TRUNCATES).withColumn("__fresh", F.lit(True))


def _known(state: ChangeState, inner: DataFrame, touched: DataFrame, shape: Layout, reach: Reach) -> tuple[DataFrame, DataFrame]:
    """The stored events that a batch needs, and the visible rows of the same keys with their parts."""
    keys, columns = list(shape.keys), [*map(col, shape.visible.fieldNames()), col(PART)]
    whole = inner.where(col(keys[0]).isNotNull()) if reach.everything else inner
    if not reach.whole:
        heads = in_order_heads(inner, touched, reach.late, shape)
        events, before = as_events(heads, state, shape), heads.select(*columns)
        if reach.late is None:
            return events, before
        touched = reach.late
    whole = whole if reach.everything else inner.join(touched, keys, "left_semi")
    all_events = whole.where(F.col(PART) == STATE).drop(PART, *TIMES).withColumn("__fresh", F.lit(False))
    rows = whole.where(F.col(PART).isin(*VISIBLE)).select(*columns)
    if reach.whole:
        return all_events, rows
    return all_events.unionByName(events, allowMissingColumns=True), before.unionByName(rows)


def _unsaid(events: DataFrame, changed: DataFrame, shape: Layout, reach: Reach) -> DataFrame:
    """The last events of the keys of a batch that no open row of `changed` says, as rows of the part `last`."""
    said = changed.where((F.col(PART) == current(shape)) & (F.col(ACTION) == UPSERT)).select(*map(col, shape.keys), SEQ)
    last = last_events(events, shape).join(said, [*shape.keys, SEQ], "left_anti")
    return last.withColumn(ACTION, F.lit(BURY))


def advanced(
    state: ChangeState,
    batch: DataFrame,
    rows: DataFrame | None,
    shape: Layout,
    counted: Observation | None = None,
    late: DataFrame | None = None,
) -> DataFrame:
    """What the rows of some heads and a batch become: rows of the internal table of all these keys, and the new events.

    One pass. Heads of keys that the batch does not touch stay as they are.

    Args:
        rows: of heads, those of all keys of the batch that have one among them; None for none.
        counted: gets `upserted` and `deleted`, rows of the target.
        late: keys that are left out.
    """
    new = new_events(batch)
    both = new if rows is None else new.unionByName(as_events(rows, state, shape), allowMissingColumns=True)
    both = both if late is None else both.join(F.broadcast(late), list(shape.keys), "left_anti")
    events = distinct(state, both.repartition(*map(col, shape.keys)), shape)
    values = [name for name in shape.columns.fieldNames() if name not in shape.keys]
    ruled = state.ruled or state.named
    said = events.withColumn("__said", F.struct(*map(col, values))) if ruled and values else events
    carried = carry_forward(state, said, shape, [])
    found = runs(state, carried, shape, []) if shape.history else _latest(carried, shape)
    fresh, ends, last = F.col("__fresh"), F.col(ENDS), F.col(END).isNull()
    observed = found if counted is None else _observed(state, found, shape, counted)
    place = F.when(last, F.lit(current(shape))).otherwise(F.lit(ROWS)) if shape.history else F.lit(ROWS)
    steps = [F.when(fresh, F.lit(STATE)), F.when(ends, place), F.when(fresh & F.col(DELETED) & last, F.lit(LAST))]
    each = observed.withColumn(PART, F.explode(F.array_compact(F.array(*steps))))
    visible, event = F.col(PART).isin(*VISIBLE), F.col(PART) == STATE
    as_said = {name: F.col("__said")[name] if ruled else col(name) for name in values}
    own = {name: F.when(event, as_said[name]).when(visible, col(name)) for name in values}
    own |= {name: F.when(visible, col(name)) for name in (START, END) if shape.history}
    own[DELETED] = F.when(~visible, F.col(DELETED))
    own |= {name: F.when(event, col(name)) for name in (RULE, AUTHORED) if name in each.columns}
    return each.select(*map(col, shape.keys), SEQ, PART, *(value.alias(name) for name, value in own.items()))


def _latest(events: DataFrame, shape: Layout) -> DataFrame:
    """The events of type 1 with ENDS, whether one makes the row of its key, and END: NULL for the last one of the key, as in `runs`."""
    order = Window.partitionBy(*map(col, shape.keys)).orderBy(SEQ, F.col(DELETED).desc())
    follows = events.withColumn(END, F.lead(SEQ).over(order))
    return follows.withColumn(ENDS, F.col(END).isNull() & ~F.col(DELETED))


def _observed(state: ChangeState, found: DataFrame, shape: Layout, counted: Observation) -> DataFrame:
    """The events of `advanced`, counted: rows of the target that are new or differ from those of the heads, and rows that go."""
    fresh, ends, last = F.col("__fresh"), F.col(ENDS), F.col(END).isNull()
    differs, had = F.lit(False), F.lit(False)
    if not shape.history or state.tracked is not None:  # else a version that goes on has the values that it had
        text = same_values(F.struct(*map(col, shape.columns.fieldNames())))
        before = F.max(F.when(~fresh, text)).over(Window.partitionBy(*map(col, shape.keys)))
        found = found.withColumns({"__text": F.when(ends, text), "__before": before})
        differs, had = fresh & ~F.col("__text").eqNullSafe(F.col("__before")), F.col("__before").isNotNull()
    changed = ends & (F.col(NEW) | ~last | differs) if shape.history else ends & differs
    counts = {"upserted": changed, "deleted": F.lit(False) if shape.history else last & fresh & F.col(DELETED) & had}
    return found.observe(counted, *(F.sum(value.cast("long")).alias(name) for name, value in counts.items())).drop("__text", "__before")


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
    new = new_events(batch)
    keys = list(shape.keys)
    touched = new.select(*map(col, keys)).distinct()
    keyed = inner.where(col(keys[0]).isNotNull())
    known = keyed if everything else keyed.join(touched, keys, "left_semi")
    old_events = known.where(F.col(PART) == STATE).drop(PART, *TIMES).withColumn("__fresh", F.lit(False))
    held = distinct(state, old_events.unionByName(new, allowMissingColumns=True), shape)
    events = held
    if truncate is not None:
        events = distinct(state, truncated(held, held.select(*map(col, keys)).distinct(), truncate, shape), shape)
    before = known.where(F.col(PART).isin(*VISIBLE)).select(*map(col, shape.visible.fieldNames()), PART)
    before, now, unchanged = _computed(state, events, before, shape, everything=everything)
    joined = compared(before, in_parts(now, state, shape), shape)
    counts = {"upserted": F.col("__new").isNotNull() & F.col("__differs"), "deleted": F.col("__new").isNull()}
    observed = joined.observe(counted, *(F.sum(value.cast("long")).alias(name) for name, value in counts.items()))
    shown = observed.where(F.col("__new").isNotNull()).select("__new.*")
    visible = shown if unchanged is None else shown.unionByName(unchanged)
    found = visible.unionByName(held.drop("__fresh").withColumn(PART, F.lit(STATE)), allowMissingColumns=True)
    if state.heads:
        found = found.unionByName(last_events(events, shape).where(DELETED), allowMissingColumns=True)
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


def _changed(before: DataFrame, now: DataFrame, shape: Layout) -> DataFrame:
    """Return upserts for rows that are new or differ, and deletes for rows that disappear."""
    action = F.when(F.col("__new").isNull(), F.lit(DELETE)).otherwise(F.lit(UPSERT))
    found = compared(before, now, shape).where("__differs").select("__old", "__new", action.alias(ACTION))
    kept = F.when(F.col("__new").isNotNull(), F.col("__new"))
    columns = shape.visible.fieldNames()
    own = {*shape.keys, *shape.starts}
    values = [(F.coalesce(kept[n], F.col("__old")[n]) if n in own else kept[n]).alias(n) for n in columns]
    sequence = [kept[SEQ].alias(SEQ)] if SEQ in now.columns else []
    return found.select(*values, *sequence, F.coalesce(kept[PART], F.col("__old")[PART]).alias(PART), ACTION)


def compared(before: DataFrame, now: DataFrame, shape: Layout, *with_old: str) -> DataFrame:
    """The rows of both side by side, as structs `__old` and `__new` (NULL: absent), and `__differs`; a row is its key and its starts.

    `with_old`: further columns of `before`.
    """
    identity = [*shape.keys, *shape.starts]
    columns = [*shape.visible.fieldNames(), PART]
    more = [SEQ] if SEQ in now.columns else []
    old = before.select(*map(col, identity), F.struct(*map(col, columns)).alias("__old"), *with_old)
    new = now.select(*map(col, identity), F.struct(*map(col, [*columns, *more])).alias("__new"))
    joined = old.join(new, identity, "full_outer")
    texts = [same_values(F.struct(*(F.col(a)[n].alias(n) for n in columns))) for a in ("__new", "__old")]
    differs = F.col("__new").isNull() | F.col("__old").isNull() | ~texts[0].eqNullSafe(texts[1])
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
    columns = [col(name) for name in (*shape.visible.fieldNames(), PART)]
    dated = before.join(since, list(shape.keys), "left")
    stands = F.col(_SINCE).isNotNull() & (F.col(SYSTEM_END).isNull() | (F.col(SYSTEM_END) >= F.col(_SINCE)))
    standing = dated.where(stands)
    as_of = F.struct(F.lit(0).alias(_NUMBER), F.col(SYSTEM_START).alias(_NOW), F.col(_SINCE).alias(_NEXT))
    until_then = standing.where(F.col(SYSTEM_START) < F.col(_SINCE)).withColumn(_AS_OF, as_of).drop(SYSTEM_START, SYSTEM_END, _SINCE, PART)
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
    return type2_versions(state, counted, shape, [_AS_OF]).drop(SEQ)


def _joined_in_time(histories: DataFrame, shape: Layout) -> DataFrame:
    """Merge the rows of versions that are equal at consecutive system times into one row each (BT-4)."""
    keys = [col(key) for key in shape.keys]
    rest = [name for name in shape.columns.fieldNames() if name not in shape.keys]
    values = F.struct(*map(col, rest), F.col(END))
    same = [*keys, F.col(START), F.col("__text")]
    number = F.col(_AS_OF)[_NUMBER]
    compared = histories.withColumn("__text", same_values(values))
    numbered = compared.withColumn("__run", number - F.row_number().over(Window.partitionBy(*same).orderBy(_AS_OF)))
    grouped = numbered.groupBy(*same, "__run").agg(
        F.first(values).alias("__values"), F.min(_AS_OF)[_NOW].alias(SYSTEM_START), F.max(_AS_OF)[_NEXT].alias(SYSTEM_END)
    )
    columns = [col(n) if n in shape.keys else F.col("__values")[n].alias(n) for n in shape.columns.fieldNames()]
    return grouped.select(*columns, START, F.col("__values")[END].alias(END), SYSTEM_START, SYSTEM_END)


__all__ = ["actions", "advanced", "compared", "distinct", "new_events", "rewritten", "truncated"]
