"""IDENTITY columns: a number for each row, which no other row of the table has or had (DS-28).

The numbers are given when the rows of a commit are written, and the span of all of them is kept in that commit's user metadata. So a
write that never became a commit used none. The column is an ordinary one of Delta's: only Lakelet numbers its rows.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakelet.base.names import quoted
from lakelet.jvm.delta import identity_values
from lakelet.storage.delta.table_spec import IdentityColumn
from lakelet.storage.delta.transaction import Transaction

KEY = "lakelet_identities"
"""The key in a commit's user metadata: by the name of each column, in lower case, the smallest and the greatest number so far."""


class Span(NamedTuple):
    """The smallest and the greatest number that rows of a column have or had."""

    low: int
    high: int

    def over(self, other: Span | None) -> Span:
        return self if other is None else Span(min(self.low, other.low), max(self.high, other.high))


class IdentityValues:
    """Numbers the rows of one commit. `spans`: the numbers that rows have or had before it, by column; a column without rows has none."""

    def __init__(self, columns: Sequence[IdentityColumn], spans: Mapping[str, Span]) -> None:
        self._columns, self._spans = tuple(columns), dict(spans)

    @classmethod
    def begun(cls, transaction: Transaction, columns: Sequence[IdentityColumn], kept: Mapping[str, Sequence[int]]) -> IdentityValues:
        """What numbers the rows of a transaction. `kept`: the spans that commits of the table keep; others are looked up in its rows."""
        spans: dict[str, Span] = {}
        for column in columns:
            if column.key in kept:
                spans[column.key] = Span(*kept[column.key])
            elif transaction.read_version >= 0 and (stored := _span(transaction.rows(), column)) is not None:
                spans[column.key] = stored
        return cls(columns, spans)

    def numbered(self, rows: DataFrame) -> DataFrame:
        """The rows with a number in each of the columns."""
        return functools.reduce(self._with_numbers, self._columns, rows)

    def user_metadata(self, transaction: Transaction, files: Sequence[Any]) -> dict[str, Any]:
        """What is kept in the commit that adds the `files` of the rows."""
        kept = dict(self._spans)
        for column in self._columns if files else ():
            if (written := _of_files(transaction, column, files)) is not None:
                kept[column.key] = written.over(kept.get(column.key))
        return {KEY: {key: list(span) for key, span in kept.items()}} if kept else {}

    def _with_numbers(self, rows: DataFrame, column: IdentityColumn) -> DataFrame:
        span = self._spans.get(column.key)
        begin = column.start if span is None else column.after(span.high if column.step > 0 else span.low)
        number = identity_values(rows.sparkSession, begin, column.step)
        return rows.withColumn(column.name, number if column.always else F.coalesce(F.col(quoted(column.name)), number))


def newest_spans(user_metadata: Iterable[Mapping[str, Any] | None]) -> Mapping[str, Sequence[int]]:
    """The spans that the first of these commits with any keeps."""
    return next((metadata[KEY] for metadata in user_metadata if metadata and KEY in metadata), {})


def _of_files(transaction: Transaction, column: IdentityColumn, files: Sequence[Any]) -> Span | None:
    """The numbers of rows that were written, from the statistics of their files where each has them."""
    field = next(field for field in transaction.schema.fields if field.name.lower() == column.key)
    name = str(field.metadata.get("delta.columnMapping.physicalName", field.name))
    found = [json.loads(file.stats() or "{}") for file in files]
    ends = [one.get(end, {}).get(name) for one in found for end in ("minValues", "maxValues")]
    if all(isinstance(end, int) for end in ends):
        return Span(min(ends), max(ends))
    return _span(transaction.written_rows(files), column)


def _span(rows: DataFrame, column: IdentityColumn) -> Span | None:
    if column.key not in (name.lower() for name in rows.columns):
        return None
    number = F.col(quoted(column.name))
    low, high = rows.agg(F.min(number), F.max(number)).collect()[0]
    return None if low is None else Span(int(low), int(high))


__all__ = ["KEY", "IdentityValues", "Span", "newest_spans"]
