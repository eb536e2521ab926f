"""Which keys differ between two sets of rows. Pure: texts in, differences out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lakelet.deploy.compare.values import KeyDifference, Sides, Text

Row = tuple[Text, ...]


class Keyed:
    """Rows of one side by key. `key`: positions of the columns that identify a row."""

    def __init__(self, key: Sequence[int]) -> None:
        self._key = tuple(key)
        self.rows: dict[Row, Counter[Row]] = {}
        self.number = 0

    def key_of(self, row: Row) -> Row:
        return tuple(row[position] for position in self._key)

    def add(self, rows: Iterable[Row]) -> Keyed:
        for row in rows:
            self.rows.setdefault(self.key_of(row), Counter())[row] += 1
            self.number += 1
        return self


def differences(local: Keyed, hosted: Keyed, columns: Sequence[str], key: Sequence[str], *, complete: bool) -> list[KeyDifference]:
    """The keys whose rows are not the same, in the order of their texts.

    complete: whether both sides are whole. Else `hosted` is a sample, and of any of its keys it may lack rows; `local` has the rows that
    the sample should have.
    """
    found = []
    for each in sorted(local.rows.keys() | hosted.rows.keys(), key=_sortable):
        here, there = local.rows.get(each, Counter()), hosted.rows.get(each, Counter())
        if here == there or (not complete and there and not there - here):
            continue
        found.append(KeyDifference(dict(zip(key, each, strict=True)), here.total(), there.total(), _values(here, there, columns)))
    return found


def _values(here: Counter[Row], there: Counter[Row], columns: Sequence[str]) -> Mapping[str, Sides]:
    if here.total() != 1 or there.total() != 1:
        return {}
    ours, theirs = next(iter(here)), next(iter(there))
    return {name: Sides(a, b) for name, a, b in zip(columns, ours, theirs, strict=True) if a != b}


def _sortable(key: Row) -> tuple[tuple[bool, int, str], ...]:
    """NULL first, numbers by their length before their digits."""
    return tuple((value is not None, len(value) if value and value.lstrip("-").isdigit() else 0, value or "") for value in key)
