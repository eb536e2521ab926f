"""What a new content adds to a table whose rows a stream reads: a stream fails at a commit that takes rows away.

So a materialized view that is streamed gets the rows it lacks, in a commit that only adds, wherever its new content holds all that it has
(docs/semantics/updates.md, UP-6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as T

from lakelet.storage.delta.table_spec import TableSpec
from lakelet.storage.delta.transaction import Transaction


def can_grow(transaction: Transaction, spec: TableSpec) -> bool:
    """Whether rows may stay as they are: the table has these columns and partitions and is of this reset epoch, and rows compare."""
    if transaction.read_version < 0 or transaction.outdated(spec):
        return False
    stored = transaction.spec()
    same = stored.schema.simpleString() == spec.schema.simpleString() and stored.partition_cols == tuple(spec.partition_cols)
    return same and _comparable(spec.schema)


def lacks(transaction: Transaction, files: Sequence[Any]) -> list[Any] | None:
    """Files with the rows that the table lacks of those in `files`, which no commit names; None if the table has others than they hold.

    Rows are counted: one that is there twice and comes once is one that goes.
    """
    stored, wanted = transaction.rows(), transaction.rows_of(files)
    if not stored.exceptAll(wanted).isEmpty():
        return None
    added = wanted.exceptAll(stored)
    return [] if added.isEmpty() else transaction.write(added)


def _comparable(kind: T.DataType) -> bool:
    """Whether Spark compares values of a type, and finds those equal only that are."""
    if isinstance(kind, T.StructType):
        return all(_comparable(field.dataType) for field in kind.fields)
    if isinstance(kind, T.ArrayType):
        return _comparable(kind.elementType)
    if isinstance(kind, T.StringType):
        return bool(kind.isUTF8BinaryCollation())
    return isinstance(kind, T.AtomicType) and not isinstance(kind, T.VariantType)
