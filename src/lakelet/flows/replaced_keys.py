"""Micro-batches whose rows take the place of those with the same keys: REPLACE USING (docs/semantics/replacing.md, RP-2).

The table itself is the state: of each key it has the rows with the greatest sequence that has arrived, and that is computed from them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakelet.base.errors import LakeletError
from lakelet.base.names import quoted
from lakelet.cdc.literals import literal, portable
from lakelet.language.model import Replacement
from lakelet.storage.delta.replaced_rows import GOES

_SEQUENCE, _NEWEST, _STORED = "__lakelet_sequence", "__lakelet_newest", "__lakelet_stored"
_RANGED = ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "string")
"""Types of which Delta has the least and greatest value of each file."""


@contextmanager
def arrived(batch: DataFrame, replaces: Replacement) -> Iterator[ArrivedKeys]:
    """The exchange of one micro-batch, usable in the context. Raises REPLACE_NULL_SEQUENCE; then nothing was written."""
    rows = batch.withColumn(_SEQUENCE, _sequence(replaces)).persist()
    try:
        ranges = _ranges(rows, replaces.keys)
        newest = rows.groupBy(*(_column(key).alias(_key(at)) for at, key in enumerate(replaces.keys))).agg(F.max(_SEQUENCE).alias(_NEWEST))
        yield ArrivedKeys(replaces, rows, newest, ranges)
    finally:
        rows.unpersist()


@dataclass(frozen=True)
class ArrivedKeys:
    """The exchange of one micro-batch (`replaced_rows.Exchange`).

    rows: the batch, with the sequence of each row. newest: its keys, each with its greatest sequence. ranges: a condition on the keys that
    is true for all of these. compared: `newest` with the greatest sequence that the table has of each key, NULL for none.
    """

    replaces: Replacement
    rows: DataFrame
    newest: DataFrame
    ranges: Column
    compared: DataFrame | None = None

    def within(self, stored: DataFrame) -> DataFrame:
        return stored.where(self.ranges)

    def looked(self, stored: DataFrame) -> ArrivedKeys:
        sequences = stored.withColumn(_SEQUENCE, _sequence(self.replaces))
        known = sequences.join(self.newest, self._same_key()).groupBy(*self._keys()).agg(F.max(_SEQUENCE).alias(_STORED))
        theirs = known.toDF(*(f"{name}_known" for name in self._keys()), _STORED)
        same = reduce(lambda a, b: a & b, [F.col(name).eqNullSafe(F.col(f"{name}_known")) for name in self._keys()])
        compared = self.newest.join(theirs, same, "left").select(*self._keys(), _NEWEST, _STORED)
        return dataclasses.replace(self, compared=compared.localCheckpoint())

    def leaving(self, stored: DataFrame) -> DataFrame:
        """The rows of a key go if all that the table has of it are older than the newest that arrived."""
        assert self.compared is not None
        goes = F.col(_NEWEST).isNotNull() & (F.col(_STORED).isNull() | (F.col(_NEWEST) > F.col(_STORED)))
        joined = stored.join(self.compared, self._same_key(), "left")
        return joined.select(*map(_column, stored.columns), goes.alias(GOES))

    def arriving(self) -> DataFrame:
        """The newest rows of each key that are not older than what the table has of it."""
        newest = F.max(_SEQUENCE).over(Window.partitionBy(*map(_column, self.replaces.keys)))
        rows = self.rows.withColumn(_NEWEST, newest).where(F.col(_SEQUENCE) == F.col(_NEWEST)).drop(_NEWEST)
        if self.compared is not None:
            rows = rows.join(self.compared.where(F.col(_NEWEST) < F.col(_STORED)), self._same_key(), "left_anti")
        return rows.drop(_SEQUENCE)

    def _keys(self) -> list[str]:
        return [_key(at) for at in range(len(self.replaces.keys))]

    def _same_key(self) -> Column:
        """When a row of the batch or table has the key of a row of `newest`; NULL is a value like others."""
        pairs = zip(self.replaces.keys, self._keys(), strict=True)
        return reduce(lambda a, b: a & b, [_column(key).eqNullSafe(F.col(name)) for key, name in pairs])


def _ranges(rows: DataFrame, keys: tuple[str, ...]) -> Column:
    """A condition on the keys that is true for those of all the rows; literals in it let Delta leave files out."""
    kinds = {field.name.lower(): field.dataType for field in rows.schema.fields}
    ranged = [(key, kinds[key.lower()]) for key in keys if kinds[key.lower()].simpleString() in _RANGED]
    ends = [portable(end(_column(key)), kind) for key, kind in ranged for end in (F.min, F.max)]
    nulls = [F.sum(_column(key).isNull().cast("long")) for key, _ in ranged]
    count, unordered, *found = rows.agg(F.count(F.lit(1)), F.sum(F.col(_SEQUENCE).isNull().cast("long")), *ends, *nulls).collect()[0]
    if unordered:
        raise LakeletError(
            "REPLACE_NULL_SEQUENCE",
            f"{unordered} row(s) have no value for SEQUENCE BY",
            todo="Filter them out with an expectation or in the query, or give them a value.",
        )
    condition = F.lit(count > 0)
    for at, (key, kind) in enumerate(ranged):
        least, greatest, missing = found[2 * at], found[2 * at + 1], found[2 * len(ranged) + at]
        inside = F.lit(False) if least is None else _column(key).between(literal(least, kind), literal(greatest, kind))
        condition = condition & (inside | _column(key).isNull() if missing else inside)
    return condition


def _sequence(replaces: Replacement) -> Column:
    given = replaces.sequence_by
    return F.expr(given) if isinstance(given, str) else given


def _column(name: str) -> Column:
    return F.col(quoted(name))


def _key(at: int) -> str:
    return f"__lakelet_key_{at}"


__all__ = ["ArrivedKeys", "arrived"]
