"""`information_schema` in queries of user code: the tables of the storage, those from outside, and those that code made (SQ-15)."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from lakelet.base.errors import LakeletError
from lakelet.base.names import TableName
from lakelet.base.user_code import caller_location
from lakelet.files.reads import note_doubt
from lakelet.spark.names.named_tables import named, open_outside
from lakelet.spark.names.outside import held
from lakelet.storage.information_schema import EXTERNAL, MANAGED, Described, RelationName, asked_for, described, rows_of
from lakelet.storage.root import Storage


def information(spark: SparkSession, name: TableName | None, *, streaming: bool = False) -> DataFrame | None:
    """The rows of the relation that a full name means, as things are now; None for a name of anything else.

    A table from outside that has the name comes first. Raises QUERY_KIND for a stream.
    """
    storage, asked = held().storage, asked_for(name) if name is not None else None
    if name is None or asked is None or storage is None or name.key in named():
        return None
    if streaming:
        what = f"{name} describes the catalog as it is now, and cannot be read as a stream"
        raise LakeletError("QUERY_KIND", what, where=caller_location(), todo="Read it without STREAM, with spark.read.table.")
    note_doubt(f"{caller_location()} reads {name}")
    return _frame(spark, asked, storage)


def _frame(spark: SparkSession, asked: RelationName, storage: Storage) -> DataFrame:
    stored = described(storage)
    others = [table for table in _from_outside(spark) if table.name.key not in {known.name.key for known in stored}]
    return frame_of(spark, asked, sorted((*stored, *others), key=lambda table: table.name.key))


def frame_of(spark: SparkSession, asked: RelationName, tables: list[Described]) -> DataFrame:
    """The rows of a relation for Spark."""
    rows = rows_of(asked, tables)
    return spark.createDataFrame([tuple(row.values()) for row in rows.to_pylist()], from_arrow_schema(rows.schema))


def _from_outside(spark: SparkSession) -> Iterator[Described]:
    made = named().made
    for name in named().names():
        kind = MANAGED if name.key in made else EXTERNAL
        try:
            fields = json.loads(open_outside(spark, name.key, streaming=False).schema.json())["fields"]
        except (LakeletError, PySparkException):  # its place is missing or broken: whoever reads it is told
            fields = []
        yield Described(TableName(*(part.lower() for part in (name.catalog, name.schema, name.name))), kind, fields)


__all__ = ["frame_of", "information"]
