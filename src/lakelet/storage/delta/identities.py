"""IDENTITY columns: a number for each row, which no other row of the table has or had (DS-28).

The numbers are given when the rows of a commit are written, and the last one is kept in that commit's user metadata, so that a write that
never became a commit used none. The column is an ordinary one of Delta's: only Lakelet numbers its rows.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakelet.base.names import quoted
from lakelet.storage.delta.table_spec import IdentityColumn
from lakelet.storage.delta.transaction import Transaction

KEY = "lakelet_identities"
"""The key in a commit's user metadata under which the last number of each such column stands."""


class Numbering:
    """Numbers the rows of one commit to a table, if it has such columns. `used`: the last numbers that its commits keep, if any does."""

    def __init__(self, transaction: Transaction, columns: Sequence[IdentityColumn], used: Mapping[str, int] | None) -> None:
        self._transaction, self._columns = transaction, tuple(columns)
        self._last = {column.name: self._furthest(column, used) for column in columns}

    def given(self, rows: DataFrame) -> DataFrame:
        """The rows with a number in each of the columns."""
        return functools.reduce(self._numbered, self._columns, rows)

    def used(self, files: Sequence[Any]) -> dict[str, Any]:
        """The user metadata to keep in the commit that adds the `files` of the rows."""
        for column in self._columns if files else ():
            found = [value for value in (self._of_files(column, files), self._last[column.name]) if value is not None]
            self._last[column.name] = _furthest(column, found)
        return {KEY: kept} if (kept := {name: last for name, last in self._last.items() if last is not None}) else {}

    def _numbered(self, rows: DataFrame, column: IdentityColumn) -> DataFrame:
        spark = rows.sparkSession
        jvm: Any = spark._jvm
        delta = jvm.org.apache.spark.sql.delta
        begin = column.next(self._last[column.name])
        generator = delta.PartitionIdentityValueGenerator(begin, column.step, jvm.scala.Option.empty())
        number = Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(delta.GenerateIdentityValues(generator)))
        return rows.withColumn(column.name, number if column.always else F.coalesce(F.col(quoted(column.name)), number))

    def _furthest(self, column: IdentityColumn, used: Mapping[str, int] | None) -> int | None:
        """The last number of the column: as commits tell, else that of the rows that are there."""
        if used is not None and column.name in used:
            return used[column.name]
        stored = self._transaction.schema.fieldNames() if self._transaction.read_version >= 0 else []
        if column.name.lower() not in (name.lower() for name in stored):
            return None
        return _end(self._transaction.rows(), column)

    def _of_files(self, column: IdentityColumn, files: Sequence[Any]) -> int | None:
        """The furthest number of rows that were written, from the statistics of their files where each has them."""
        physical = next(
            str(field.metadata.get("delta.columnMapping.physicalName", field.name))
            for field in self._transaction.schema.fields
            if field.name.lower() == column.name.lower()
        )
        ends = [json.loads(file.stats() or "{}").get("maxValues" if column.step > 0 else "minValues", {}).get(physical) for file in files]
        if all(isinstance(end, int) for end in ends):
            return _furthest(column, ends)
        return _end(self._transaction.written_rows(files), column)


def last_used(user_metadata: Iterable[Mapping[str, Any] | None]) -> Mapping[str, int] | None:
    """The last numbers that the first of these commits with numbers keeps; None if none does."""
    return next((metadata[KEY] for metadata in user_metadata if metadata and KEY in metadata), None)


def _end(rows: DataFrame, column: IdentityColumn) -> int | None:
    function = F.max if column.step > 0 else F.min
    found = rows.agg(function(F.col(quoted(column.name)))).collect()[0][0]
    return None if found is None else int(found)


def _furthest(column: IdentityColumn, numbers: Sequence[int]) -> int:
    return max(numbers) if column.step > 0 else min(numbers)


__all__ = ["KEY", "Numbering", "last_used"]
