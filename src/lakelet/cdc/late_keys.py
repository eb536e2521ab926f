"""Keys with late events: computed from all their events, while the others of their batch go on from their heads (decision 0094)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakelet.cdc.changes import DELETED, SEQ, TIMES, Layout, col, same_values
from lakelet.cdc.event_windows import visible_rows
from lakelet.cdc.heads import current, in_parts, last_events
from lakelet.cdc.history import compared, distinct, new_events
from lakelet.cdc.mirror import PART, ROWS, STATE
from lakelet.cdc.state import ChangeState

FILE = "__lakelet_file"
"""Column of stored rows: the file that they are in."""


@dataclass(frozen=True)
class LateChanges:
    """What a batch does to the keys that are late.

    Args:
        coming: rows of the internal table, those of the heads of these keys among them.
        gone_rows, gone_events: by their keys and START, or SEQ: stored rows that go, beside heads.
        files: that have them.
        upserted, deleted: rows of the target.
    """

    coming: DataFrame
    gone_rows: DataFrame
    gone_events: DataFrame
    files: Collection[str]
    upserted: int
    deleted: int

    def staying(self, rows: DataFrame) -> DataFrame:
        """The rows of these files without those that go."""
        ended = rows.where(F.col(PART) == ROWS).join(F.broadcast(self.gone_rows), self.gone_rows.columns, "left_anti")
        events = rows.where(F.col(PART) == STATE).join(F.broadcast(self.gone_events), self.gone_events.columns, "left_anti")
        return ended.unionByName(events)


def late_changes(
    state: ChangeState, batch: DataFrame, late: DataFrame, stored: DataFrame, rows: DataFrame | None, shape: Layout
) -> LateChanges:
    """Compute the keys that are late.

    Args:
        stored: the rows of `state`, and ended ones of the target, that have these keys among them, with the column FILE.
        rows: of heads, those of these keys among them; None for none.
    """
    keys, columns = list(shape.keys), [*map(col, shape.visible.fieldNames()), col(PART)]
    known = stored.join(F.broadcast(late), keys, "left_semi").localCheckpoint()
    before_events = known.where(F.col(PART) == STATE)
    new = new_events(batch).join(F.broadcast(late), keys, "left_semi")
    held = before_events.drop(PART, FILE, *TIMES).withColumn("__fresh", F.lit(False))
    events = distinct(state, held.unionByName(new, allowMissingColumns=True), shape).localCheckpoint()
    now = in_parts(visible_rows(state, events, shape), state, shape)
    before = known.where(F.col(PART) != STATE).select(*columns, FILE)
    if rows is not None:
        open_rows = rows.join(F.broadcast(late), keys, "left_semi").select(*columns, F.lit(None).cast("string").alias(FILE))
        before = before.unionByName(open_rows)
    rows_now = compared(before, now, shape, FILE).localCheckpoint()
    fresh = _fresh(events, before_events, shape).localCheckpoint()

    was, is_now, differs = F.col("__old").isNotNull(), F.col("__new").isNotNull(), F.col("__differs")
    shown = rows_now.where(is_now & (differs | (F.col("__new")[PART] == current(shape)))).select("__new.*")
    coming = shown.unionByName(fresh.drop(FILE).withColumn(PART, F.lit(STATE)), allowMissingColumns=True)
    coming = coming.unionByName(last_events(events, shape).where(DELETED), allowMissingColumns=True)
    gone_rows = rows_now.where(was & differs & F.col(FILE).isNotNull()).select(*map(col, keys), *shape.starts, FILE)
    gone_events = fresh.where(F.col(FILE).isNotNull()).select(*map(col, _identity(shape)), FILE)
    sums = {"upserted": is_now & differs, "deleted": ~is_now}
    counts = rows_now.agg(*(F.sum(value.cast("long")).alias(name) for name, value in sums.items())).first()
    assert counts is not None
    names = gone_rows.select(FILE).union(gone_events.select(FILE)).distinct().collect()
    files = frozenset(str(row[0]) for row in names)
    return LateChanges(coming, gone_rows.drop(FILE), gone_events.drop(FILE), files, int(counts[0] or 0), int(counts[1] or 0))


def _identity(shape: Layout) -> list[str]:
    """The columns that identify an event: type 1 keeps a delete and an upsert of one sequence."""
    return [*shape.keys, SEQ, *([] if shape.history else [DELETED])]


def _fresh(events: DataFrame, before: DataFrame, shape: Layout) -> DataFrame:
    """The new events that are not stored yet, with the FILE of a stored one that each replaces."""
    identity = _identity(shape)
    new = events.where("__fresh").drop("__fresh")
    said = same_values(F.struct(*(col(name) for name in new.columns if name not in shape.keys)))
    known = before.select(*map(col, identity), FILE, said.alias("__known"))
    joined = new.withColumn("__said", said).join(known, identity, "left")
    return joined.where(~F.col("__said").eqNullSafe(F.col("__known"))).drop("__said", "__known")


__all__ = ["FILE", "LateChanges", "late_changes"]
