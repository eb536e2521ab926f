"""Writes rows of which some go to another table: those that drop rules leave out (docs/decisions/0033-quarantine.md).

Both parts come from one evaluation of the query, so a row cannot be in both or in neither, whatever the query is. A plain table is written
in one job: the files of the rows that leave lie in a partition of their own. Where Delta enforces or renames something while it writes, the
rows are kept by Spark meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.storagelevel import StorageLevel

from lakelet.storage.delta import schemas
from lakelet.storage.delta.table_spec import TableSpec
from lakelet.storage.delta.transaction import Transaction

HELD = "__lakelet_held"
"""The column that divides: NULL in rows for the table itself, else a struct about the row (`HELD_TYPE`)."""
HELD_TYPE = T.StructType([T.StructField("rules", T.ArrayType(T.StringType())), T.StructField("file", T.StringType())])

_FOLDER, _LEAVES = "divided", "lakelet-leaves"  # parts of paths in the table's folder: VACUUM passes over names that begin with _
_WRITERS = "spark.sql.maxConcurrentOutputFileWriters"
_PASSED_ON = ("delta.dataskipping", "delta.autooptimize", "delta.parquet.", "delta.randomprefixlength")


@dataclass(frozen=True)
class Divided:
    """Files for the table, not committed, and the rows that left it: the table's columns and `HELD`. Both stay readable in the context."""

    files: Sequence[Any]
    held: Callable[[], DataFrame]


@contextmanager
def divided(transaction: Transaction, rows: DataFrame, spec: TableSpec) -> Iterator[Divided]:
    """Write the rows whose `HELD` is NULL as files of the table `transaction` works on, which it describes as `spec` says."""
    schema = spec.schema
    staged = _staged(transaction, spec)
    if staged is not None:
        yield from _in_one_job(transaction, staged, rows, spec)
        return
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        files = transaction.write(schemas.aligned(kept.where(F.col(HELD).isNull()), schema))
        yield Divided(files, lambda: kept.where(F.col(HELD).isNotNull()))
    finally:
        kept.unpersist()


def _staged(transaction: Transaction, spec: TableSpec) -> Transaction | None:
    """A transaction that is never committed, on a folder inside of the table; None where files written by it would not be the table's."""
    known = transaction.properties
    special = any(key.lower().startswith("delta.constraints.") or key.lower() == "delta.columnmapping.mode" for key in known)
    if special or spec.cluster_by or not _is_plain(spec.schema) or _LEAVES in map(str.lower, spec.schema.fieldNames()):
        return None
    staged = Transaction(transaction.spark, transaction.path / _FOLDER)
    columns = schemas.storable(_with_marks(spec.schema))
    properties = {key: value for key, value in known.items() if key.lower().startswith(_PASSED_ON)}
    staged.describe(TableSpec(columns, (_LEAVES, *spec.partition_cols), properties=properties), replace=False)
    return None if any(key.lower() == "delta.columnmapping.mode" for key in staged.properties) else staged


def _is_plain(data_type: T.DataType) -> bool:
    """Whether Delta writes values of a type as they are: it enforces no NOT NULL, length or expression, and knows of no other type."""
    if isinstance(data_type, T.StructType):
        return all(f.nullable and set(f.metadata or {}) <= {"comment"} and _is_plain(f.dataType) for f in data_type.fields)
    if isinstance(data_type, T.ArrayType):
        return _is_plain(data_type.elementType)
    if isinstance(data_type, T.MapType):
        return _is_plain(data_type.keyType) and _is_plain(data_type.valueType)
    return not isinstance(data_type, T.CharType | T.VarcharType)


def _with_marks(schema: T.StructType) -> T.StructType:
    return T.StructType([*schema.fields, T.StructField(HELD, HELD_TYPE), T.StructField(_LEAVES, T.BooleanType())])


def _in_one_job(transaction: Transaction, staged: Transaction, rows: DataFrame, spec: TableSpec) -> Iterator[Divided]:
    marked = rows.withColumn(_LEAVES, F.col(HELD).isNotNull())
    with nullcontext() if spec.partition_cols else _two_writers(rows.sparkSession):
        files = staged.write(schemas.aligned(marked, _with_marks(spec.schema)))
    leaving = [file for file in files if _partition(file) == "true"]
    kept = [_moved(transaction, file) for file in files if _partition(file) != "true"]
    try:
        yield Divided(kept, lambda: staged.written_rows(leaving).drop(_LEAVES))
    finally:
        staged.discard(leaving)


def _partition(file: Any) -> str:
    return str(file.partitionValues().apply(_LEAVES))


def _moved(transaction: Transaction, file: Any) -> Any:
    """The file of the folder inside as one of the table."""
    action = json.loads(file.json())
    add = action["add"]
    add["path"] = f"{_FOLDER}/{add['path']}"
    del add["partitionValues"][_LEAVES]
    if add.get("stats"):
        stats = json.loads(add["stats"])
        for part in ("minValues", "maxValues", "nullCount"):
            stats.get(part, {}).pop(HELD, None)
        add["stats"] = json.dumps(stats)
    return transaction.action_of(json.dumps(action))


@contextmanager
def _two_writers(spark: SparkSession) -> Iterator[None]:
    """Let each task have the files of both parts open at the same time; else Spark sorts its rows first."""
    before = spark.conf.get(_WRITERS, None)
    spark.conf.set(_WRITERS, "2")
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(_WRITERS)
        else:
            spark.conf.set(_WRITERS, before)


__all__ = ["HELD", "HELD_TYPE", "Divided", "divided"]
