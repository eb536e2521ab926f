"""NOT NULL: columns and nested fields that hold a value in every row (docs/semantics/table-properties.md, TP-20 ff)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.errors import LakeletError
from lakelet.base.names import quoted
from lakelet.storage.delta import table_spec
from lakelet.storage.delta.transaction import Transaction

CODE = "NOT_NULL_VIOLATED"


def is_missing(path: table_spec.Path) -> Column:
    """Whether a row has no value at a path; a field of a struct that is NULL itself is not missed."""
    found = F.col(quoted(path[0]))
    condition = F.lit(True)
    for name in path[1:]:
        condition, found = condition & found.isNotNull(), found.getField(name)
    return condition & found.isNull()


def check_stored(transaction: Transaction, wanted: T.StructType) -> None:
    """Raise NOT_NULL_VIOLATED if the table has rows that its new description does not allow; without a job where it asks for no more."""
    if transaction.read_version >= 0:
        check_rows(transaction.rows, table_spec.tightened(transaction.schema, wanted))


def check_rows(rows: Callable[[], DataFrame], paths: Sequence[table_spec.Path]) -> None:
    """Raise NOT_NULL_VIOLATED if one of the rows has no value at one of the paths; without paths the rows are not asked for."""
    if not paths:
        return
    counts = rows().agg(*(F.sum(is_missing(path).cast("long")) for path in paths)).first()
    assert counts is not None
    found = [(".".join(path), count) for path, count in zip(paths, counts, strict=True) if count]
    if found:
        missing = ", ".join(f"{count} row(s) without {name}" for name, count in found)
        todo = "Correct the rows by hand, leave NOT NULL out of the schema, or do a full refresh of the table."
        raise LakeletError(CODE, f"NOT NULL is declared for {found[0][0]}, and the table has {missing}", todo=todo)
