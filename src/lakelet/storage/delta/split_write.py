"""Writes rows of which some go to another table: those that drop rules leave out (docs/decisions/0033-quarantine.md).

Both parts come from one evaluation of the query, so a row cannot be in both or in neither, whatever the query is. A plain table is written
in one job: the files of the rows that leave lie in a partition of their own, and become files of the other table where that has the same
columns. Where Delta enforces or renames something while it writes, the rows are kept by Spark meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.storagelevel import StorageLevel

from lakelet.storage.delta import schemas
from lakelet.storage.delta.table_spec import TableSpec
from lakelet.storage.delta.transaction import Transaction

LEAVING = "__lakelet_leaving"
"""The column that says which rows leave: NULL in rows for the table itself, else a struct about the row (`LEAVING_TYPE`)."""
LEAVING_TYPE = T.StructType([T.StructField("rules", T.ArrayType(T.StringType())), T.StructField("file", T.StringType())])

_FOLDER, _LEAVES = "divided", "lakelet-leaves"  # parts of paths in the table's folder: VACUUM passes over names that begin with _
_WRITERS = "spark.sql.maxConcurrentOutputFileWriters"
_PASSED_ON = ("delta.dataskipping", "delta.autooptimize", "delta.parquet.", "delta.randomprefixlength")


@dataclass(frozen=True)
class Marks:
    """The columns that the other table adds: types, and values from `LEAVING`. `at`: microseconds since 1970, in one of them."""

    fields: T.StructType
    values: Mapping[str, Column]
    at: int


@dataclass(frozen=True)
class LeavingRows:
    """The rows that leave, with the columns of `Marks`. `rows`: to be read. `staged`: the files that have them, in no table."""

    marks: Marks
    rows: Callable[[], DataFrame]
    staged: tuple[Transaction, Sequence[Any]] | None = None

    def moved(self, transaction: Transaction, schema: T.StructType) -> list[Any] | None:
        """The files as those of another, unpartitioned table with the columns `schema`, in its folder; None where they cannot be that."""
        if self.staged is None:
            return None
        theirs = {field.name: field.dataType for field in schema.fields}
        mine, files = self.staged
        if any(theirs.get(f.name) != f.dataType for f in mine.schema.fields if f.name != _LEAVES):
            return None
        actions = [json.loads(file.json()) for file in files]
        for file, action in zip(files, actions, strict=True):
            action["add"]["partitionValues"] = {}
            action["add"]["path"] = mine.move(file, transaction.path)
        return [transaction.action_of(json.dumps(action)) for action in actions]


@dataclass(frozen=True)
class SplitFiles:
    """Files for the table, not committed, and the rows that leave it. Both stay readable in the context."""

    files: Sequence[Any]
    leaving: LeavingRows


@contextmanager
def split_files(transaction: Transaction, rows: DataFrame, spec: TableSpec, marks: Marks) -> Iterator[SplitFiles]:
    """Write the rows whose `LEAVING` is NULL as files of the table `transaction` works on, which it describes as `spec` says."""
    schema = spec.schema
    staged = _staged(transaction, spec, marks)
    if staged is not None:
        yield from _in_one_job(transaction, staged, rows, spec, marks)
        return
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        files = transaction.write(schemas.aligned(kept.where(F.col(LEAVING).isNull()), schema))
        yield SplitFiles(files, LeavingRows(marks, lambda: _marked(kept.where(F.col(LEAVING).isNotNull()), marks)))
    finally:
        kept.unpersist()


def _marked(rows: DataFrame, marks: Marks) -> DataFrame:
    return rows.withColumns(dict(marks.values)).drop(LEAVING)


def _staged(transaction: Transaction, spec: TableSpec, marks: Marks) -> Transaction | None:
    """A transaction that is never committed, on a folder inside of the table; None where files written by it would not be the table's."""
    known = transaction.properties
    special = any(key.lower().startswith("delta.constraints.") or key.lower() == "delta.columnmapping.mode" for key in known)
    if special or spec.cluster_by or not _is_plain(spec.schema) or _LEAVES in map(str.lower, spec.schema.fieldNames()):
        return None
    staged = Transaction(transaction.spark, transaction.path / _FOLDER)
    columns = schemas.storable(_with_marks(spec.schema, marks))
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


def _with_marks(schema: T.StructType, marks: Marks) -> T.StructType:
    return T.StructType([*schema.fields, *marks.fields.fields, T.StructField(_LEAVES, T.BooleanType())])


def _in_one_job(transaction: Transaction, staged: Transaction, rows: DataFrame, spec: TableSpec, marks: Marks) -> Iterator[SplitFiles]:
    marked = _marked(rows.withColumn(_LEAVES, F.col(LEAVING).isNotNull()), marks)
    with nullcontext() if spec.partition_cols else _two_writers(rows.sparkSession):
        files = staged.write(schemas.aligned(marked, _with_marks(spec.schema, marks)))
    leaving = [file for file in files if _partition(file) == "true"]
    kept = [_kept(transaction, file, marks) for file in files if _partition(file) != "true"]
    movable = None if spec.partition_cols else (staged, leaving)
    try:
        yield SplitFiles(kept, LeavingRows(marks, lambda: staged.written_rows(leaving).drop(_LEAVES), movable))
    finally:
        staged.discard(leaving)


def _partition(file: Any) -> str:
    return str(file.partitionValues().apply(_LEAVES))


def _kept(transaction: Transaction, file: Any, marks: Marks) -> Any:
    """The file of the folder inside as one of the table."""
    action = json.loads(file.json())
    add = action["add"]
    add["path"] = f"{_FOLDER}/{add['path']}"
    del add["partitionValues"][_LEAVES]
    if add.get("stats"):
        stats = json.loads(add["stats"])
        for part in ("minValues", "maxValues", "nullCount"):
            for name in marks.values:
                stats.get(part, {}).pop(name, None)
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


__all__ = ["LEAVING", "LEAVING_TYPE", "SplitFiles", "split_files"]
