"""What distinguishes a new content of a table from the stored one, row by row: for commits of no more than that (IV-32, UP-6).

Rows are counted: a row that is stored more often than the new content has it leaves as often as it is surplus.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakelet.base.names import quoted
from lakelet.storage.delta import schemas
from lakelet.storage.delta.batch_metrics import size_of
from lakelet.storage.delta.transaction import Transaction

_COUNT = "__lakelet_count"
_TEXT = "__lakelet_text_"
_FILE = "__lakelet_file"
_VALUE = "__lakelet_value_"

_MOST_REWRITTEN = 0.5
"""If more of the table's bytes must be written again, replacing all is no worse."""


def signed(rows: DataFrame, sign: int) -> DataFrame:
    """The rows, each with how often it counts. Spark takes 0.0 and -0.0 for one value; as texts they differ."""
    texts = [
        F.col(quoted(field.name)).cast("string").alias(f"{_TEXT}{at}")
        for at, field in enumerate(rows.schema.fields)
        if schemas.has_floats(field.dataType)
    ]
    return rows.select(*(F.col(quoted(name)) for name in rows.columns), *texts, F.lit(sign).cast("long").alias(_COUNT))


def balance(*rows: DataFrame) -> DataFrame:
    """Each row of some `signed` ones once, with the sum of its counts; without those whose sum is 0.

    Spark groups by 0.0 where a row has -0.0, so floating-point values are taken from a row of the group.
    """
    both = rows[0]
    for more in rows[1:]:
        both = both.unionByName(more)
    names = [name for name in both.columns if name != _COUNT]
    floats = [both.columns[int(name.removeprefix(_TEXT))] for name in names if name.startswith(_TEXT)]
    values = [F.first(F.col(quoted(name))).alias(f"{_VALUE}{at}") for at, name in enumerate(floats)]
    counted = both.groupBy(*map(quoted, names)).agg(F.sum(_COUNT).alias(_COUNT), *values).where(F.col(_COUNT) != 0)
    kept = {name: f"{_VALUE}{at}" for at, name in enumerate(floats)}
    return counted.select(*(F.col(quoted(kept.get(name, name))).alias(name) for name in (*names, _COUNT)))


def plain(rows: DataFrame) -> DataFrame:
    """The rows of a `balance` without what was added to them, each once."""
    return rows.select(*(quoted(name) for name in rows.columns if name != _COUNT and not name.startswith(_TEXT)))


def repeated(rows: DataFrame) -> DataFrame:
    """The rows of a `balance` that count more than 0, each as often as it counts."""
    return plain(rows.where(F.col(_COUNT) > 0).withColumn(_COUNT, F.explode(F.sequence(F.lit(1), F.col(_COUNT)))))


@dataclass(frozen=True)
class RowDifference:
    """The rows that leave a table and those that come, if its content becomes another one.

    `rows`: a `balance`, kept in memory. `leaving`, `arriving`: how many they are.
    """

    transaction: Transaction
    rows: DataFrame
    leaving: int
    arriving: int

    def actions(self) -> list[Any] | None:
        """The file actions that make the stored content the new one; None where these would rewrite most of the table."""
        if not self.leaving:
            return self.transaction.write(repeated(self.rows)) if self.arriving else []
        touched = self._touched()
        if size_of(touched) > _MOST_REWRITTEN * self.transaction.size:
            return None
        content = balance(signed(self.transaction.rows_of(touched), 1), self.rows)
        return [*(file.remove() for file in touched), *self.transaction.write(repeated(content))]

    def _touched(self) -> Sequence[Any]:
        """The files that hold a row which leaves, in any of its copies."""
        files = self.transaction.all_files()
        stored = signed(self.transaction.rows_of(files).withColumn(_FILE, F.input_file_name()), 1)
        leaving = self.rows.where(F.col(_COUNT) < 0)
        names = [name for name in leaving.columns if name != _COUNT]
        renamed = leaving.select(*(F.col(quoted(name)).alias(f"{name}{_FILE}") for name in names))
        same = F.lit(True)
        for name in names:
            same = same & F.col(quoted(name)).eqNullSafe(F.col(quoted(f"{name}{_FILE}")))
        found = stored.join(F.broadcast(renamed), same, "left_semi").select(_FILE).distinct().collect()
        paths = {unquote(urlsplit(row[0]).path) for row in found}
        return [file for file in files if self.transaction.path_of(file) in paths]


@contextmanager
def row_difference(transaction: Transaction, files: Sequence[Any]) -> Iterator[RowDifference]:
    """What distinguishes the rows of `files`, which no commit names, from the stored rows; usable in the context. Runs one job."""
    rows = balance(signed(transaction.rows_of(files), 1), signed(transaction.rows(), -1)).persist()
    try:
        ends = [F.sum(F.when(F.col(_COUNT) * sign > 0, F.col(_COUNT) * sign)) for sign in (-1, 1)]
        leaving, arriving = (int(value or 0) for value in rows.agg(*ends).collect()[0])
        yield RowDifference(transaction, rows, leaving, arriving)
    finally:
        rows.unpersist()


__all__ = ["RowDifference", "balance", "plain", "repeated", "row_difference", "signed"]
