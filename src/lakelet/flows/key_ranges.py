"""Least and greatest values of key columns, as conditions by which Delta leaves out files.

In: rows with keys. Out: their number, and a `KeyRange` for each key column of a type whose ends Delta keeps of each file. One job finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.cdc.literals import literal, portable

_RANGED = ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz", "string")
"""Types of which Delta has the least and greatest value of each file."""


@dataclass(frozen=True)
class KeyRange:
    """The values of a key column: from `least` to `greatest`, as `portable` gives them, and NULL if `nulls`. No value but NULL if None."""

    kind: T.DataType
    least: Any
    greatest: Any
    nulls: bool

    def condition(self, column: Column) -> Column:
        """A condition on a column of the same type that is true for all the values."""
        inside = F.lit(False) if self.least is None else column.between(literal(self.least, self.kind), literal(self.greatest, self.kind))
        return inside | column.isNull() if self.nulls else inside


@dataclass(frozen=True)
class KeyRanges:
    """Number of rows, the range of each key column (None for a type without one), and what else was asked for."""

    count: int
    ranges: tuple[KeyRange | None, ...]
    more: tuple[Any, ...] = ()

    @classmethod
    def of(cls, rows: DataFrame, columns: Sequence[Column], kinds: Sequence[T.DataType], *more: Column) -> KeyRanges:
        """Those of some columns of the rows, of these types; `more`: aggregates whose values are wanted too. Runs a job."""
        ranged = [(column, kind) for column, kind in zip(columns, kinds, strict=True) if kind.simpleString() in _RANGED]
        ends = [portable(end(column), kind) for column, kind in ranged for end in (F.min, F.max)]
        nulls = [F.coalesce(F.sum(column.isNull().cast("long")), F.lit(0)) for column, _ in ranged]
        count, *found = rows.agg(F.count(F.lit(1)), *ends, *nulls, *more).collect()[0]
        values = iter(found[: 2 * len(ranged)])
        known = iter([KeyRange(kind, next(values), next(values), found[2 * len(ranged) + at] > 0) for at, (_, kind) in enumerate(ranged)])
        ranges = tuple(next(known) if kind.simpleString() in _RANGED else None for kind in kinds)
        return cls(int(count), ranges, tuple(found[3 * len(ranged) :]))

    def condition(self, columns: Sequence[Column]) -> Column:
        """A condition that is true for all the rows; `columns`: those of the keys elsewhere."""
        result = F.lit(self.count > 0)
        for found, column in zip(self.ranges, columns, strict=True):
            if found is not None:
                result = result & found.condition(column)
        return result


__all__ = ["KeyRange", "KeyRanges"]
