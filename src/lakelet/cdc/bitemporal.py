"""Bitemporal tables: at each system time the type 2 history of the events known by then (docs/semantics/bitemporal.md, decision 0025).

A batch changes no history before the earliest system sequence of its new events. So of each key the rows that stood just
before that are taken as they are, and the histories from then on are computed again.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lakelet.cdc import event_windows
from lakelet.cdc.changes import END, SEQ, START, SYSTEM, SYSTEM_END, SYSTEM_START, Layout, col, same_values
from lakelet.cdc.state import ChangeState

_SINCE = "__since"  # the earliest system sequence from which on the history of a key may change
_AS_OF = "__as_of"  # struct (number, now, next): a system time of the key from _SINCE on, and the next one; number 0 is the time before
_NUMBER, _NOW, _NEXT = "number", "now", "next"


@dataclass(frozen=True)
class BitemporalRows:
    """The rows of some keys after a batch.

    now: computed rows whose system period reaches `_SINCE` or later. before: the stored rows that they replace.
    unchanged: stored rows whose system period ended before `_SINCE`.
    """

    now: DataFrame
    before: DataFrame
    unchanged: DataFrame


def first_rows(state: ChangeState, events: DataFrame, shape: Layout) -> DataFrame:
    """The rows of keys that have none yet, from all their events (distinct per key and both sequences)."""
    since = _since(events, shape)
    return _joined_in_time(_histories(state, events, since, shape), shape)


def updated_rows(state: ChangeState, events: DataFrame, before: DataFrame, shape: Layout, *, everything: bool) -> BitemporalRows:
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
    return BitemporalRows(_joined_in_time(histories, shape), standing.select(*columns), dated.where(~stands).select(*columns))


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
    known_values = event_windows.carry_forward(state, known, shape, [_AS_OF])
    newest = Window.partitionBy(*map(col, keys), _AS_OF, SEQ).orderBy(F.col(SYSTEM).desc())  # BT-6
    counted = known_values.withColumn("__n", F.row_number().over(newest)).where(F.col("__n") == 1).drop("__n")
    return event_windows.type2_versions(state, counted, shape, [_AS_OF])


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


__all__ = ["BitemporalRows", "first_rows", "updated_rows"]
