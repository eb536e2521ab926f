"""Random commits of others on a change table, as SQL and as what they do to its rows."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.cdc_algebra import Row

MAINTENANCE = (
    "OPTIMIZE {t}",
    "VACUUM {t}",
    "ALTER TABLE {t} SET TBLPROPERTIES ('made.by' = 'hand')",
    "COMMENT ON TABLE {t} IS 'by hand'",
)
_X, _Y = ("x",), ("y",)


@dataclass
class Edits:
    """What others do to a table of (id, x, y), of type 2 with start and end, between two updates. No key is changed twice.

    free: sequences that no event has.
    """

    rng: random.Random
    rows: list[Row]
    free: list[int]
    history: bool
    statements: list[str] = field(default_factory=list)
    changed: set[int] = field(default_factory=set)

    def make(self, count: int, version: int) -> list[Row]:
        """Make up some commits; the rows after them. `version`: the table's version before."""
        before = list(self.rows)
        for _ in range(count):
            self.rng.choice([self._maintain, self._insert, self._update, self._update, self._delete])()
        if self.rng.random() < 0.15:
            self.statements.append(f"RESTORE TABLE {{t}} TO VERSION AS OF {version}")
            return before
        return self.rows

    def _maintain(self) -> None:
        self.statements.append(self.rng.choice(MAINTENANCE))

    def _unchanged(self, keys: Sequence[int]) -> int | None:
        left = sorted(set(keys) - self.changed)
        if not left:
            return None
        key = self.rng.choice(left)
        self.changed.add(key)
        return key

    def _insert(self) -> None:
        key = self._unchanged(range(15))
        if key is None:
            return
        x, y = (self.rng.choice(("a", "h", None)) for _ in "xy")
        row = Row((key,), {_X: x, _Y: y})
        ends = ""
        if self.history:
            start, end = sorted((self.free.pop(), self.free.pop()))
            row = replace(row, start=start, end=self.rng.choice((None, end)))
            ends = f", {row.start}, {_sql(row.end)}"
        self.rows = [*self.rows, row]
        self.statements.append(f"INSERT INTO {{t}} VALUES ({key}, {_sql(x)}, {_sql(y)}{ends})")

    def _one(self) -> Row | None:
        key = self._unchanged([row.key[0] for row in self.rows])
        return None if key is None else self.rng.choice([row for row in self.rows if row.key[0] == key])

    def _update(self) -> None:
        row = self._one()
        if row is None:
            return
        value = self.rng.choice(("h", None))
        self.rows = [replace(r, values={**r.values, _X: value}) if r is row else r for r in self.rows]
        self.statements.append(f"UPDATE {{t}} SET x = {_sql(value)} WHERE {self._is(row)}")

    def _delete(self) -> None:
        row = self._one()
        if row is None:
            return
        self.rows = [r for r in self.rows if r is not row]
        self.statements.append(f"DELETE FROM {{t}} WHERE {self._is(row)}")

    def _is(self, row: Row) -> str:
        return f"id = {row.key[0]}" + (f" AND __START_AT = {row.start}" if self.history else "")


def _sql(value: object) -> str:
    return "NULL" if value is None else repr(value)
