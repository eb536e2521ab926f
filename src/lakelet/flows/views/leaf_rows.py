"""Which rows each read of a view's function gives, for one way to run it. Pure.

In: the shape of the query, the datasets that changed. Out: by read (dataset, copy) a `LeafRows`. One read may be in several places of the
plan; where these would need different rows, the greater set is taken if more rows do no harm, else there is no way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum

from lakelet.plan.refreshes import Range, ViewShape

Read = tuple[str, int]
"""One read of a dataset: its key, and how often the function has read it before."""


class LeafRows(IntEnum):
    """The rows of one read. A greater one has all rows of a smaller one.

    NONE. CHANGED: those that came or left, for a query that finds keys; those that came, for one whose result is added. PRESENT: those of
    the table. EVER: those of the table and those that left it.
    """

    NONE = 0
    CHANGED = 1
    PRESENT = 2
    EVER = 3


def reads_of(shape: ViewShape) -> dict[Read, tuple[int, ...]]:
    """The reads, each with the numbers of the leaves that it is in."""
    found: dict[Read, tuple[int, ...]] = {}
    for number, leaf in enumerate(shape.leaves):
        read = leaf.key, leaf.copy
        found[read] = (*found.get(read, ()), number)
    return found


def rows_that_come(shape: ViewShape, changed: Collection[str]) -> dict[Read, LeafRows] | None:
    """What to read for the rows that a query gives in addition, once rows came to the tables of the datasets `changed`.

    None where there is no way: new rows come together with other new rows, or take the place of rows filled with NULL, or one read would
    need different rows in two places.
    """
    numbers = frozenset(number for number, leaf in enumerate(shape.leaves) if leaf.key in changed)
    found: dict[Read, LeafRows] = {}
    for number, leaf in enumerate(shape.leaves):
        together = bool(leaf.joined & numbers)
        if number in numbers and (together or not leaf.preserved):
            return None
        rows = LeafRows.CHANGED if number in numbers else LeafRows.PRESENT if together else LeafRows.NONE
        if found.setdefault((leaf.key, leaf.copy), rows) is not rows:
            return None
    return found


def rows_that_touch(shape: ViewShape, changed: Collection[str]) -> list[dict[Read, LeafRows]] | None:
    """For each read of a changed table what to read for the keys that its changed rows touch.

    None where a read is joined with itself: rows of it that did not change would be missing on the other side.
    """
    reads = reads_of(shape)
    runs = []
    for read, places in reads.items():
        if read[0] not in changed:
            continue
        beside = frozenset(other for place in places for other in shape.leaves[place].joined)
        if beside & frozenset(places):
            return None
        runs.append({other: _beside(other, numbers, read, beside, changed) for other, numbers in reads.items()})
    return runs


def _beside(other: Read, numbers: tuple[int, ...], read: Read, beside: frozenset[int], changed: Collection[str]) -> LeafRows:
    if other == read:
        return LeafRows.CHANGED
    if not beside & frozenset(numbers):
        return LeafRows.NONE
    return LeafRows.EVER if other[0] in changed else LeafRows.PRESENT


def pruned_columns(shape: ViewShape, keys: Collection[int]) -> dict[Read, tuple[dict[str, int], dict[str, Range]]]:
    """By read the columns in which only rows with certain keys count, in every place: as they are, and by a function of them.

    `keys`: positions of `ViewShape.keys` that are known.
    """
    found = {}
    for read, places in reads_of(shape).items():
        first, *others = (shape.leaves[place] for place in places)
        within = {name: key for name, key in first.within.items() if key in keys and all(one.within.get(name) == key for one in others)}
        ranges = {name: one for name, one in first.ranges.items() if one.key in keys and all(o.ranges.get(name) == one for o in others)}
        found[read] = within, ranges
    return found


Bound = Mapping[Read, LeafRows]

__all__ = ["Bound", "LeafRows", "Read", "pruned_columns", "reads_of", "rows_that_come", "rows_that_touch"]
