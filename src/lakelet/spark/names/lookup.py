"""What a name in user code means, and how what it means is opened outside of datasets' functions.

There is one order (`NameTarget`) for `spark.table` and its kin and for SQL text, in functions of datasets and outside of them. Outside of
functions the pipeline's datasets are tables of the storage: what the last update left. Tables from outside are those that `--table
NAME=PATH` names, and those that code creates while it is loaded; `information_schema` describes the tables of the storage and both of
these. A name that neither they nor Spark know is looked up in the catalogs of the settings.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from lakelet.base.errors import LakeletError
from lakelet.base.names import TableName, all_quoted
from lakelet.base.user_code import caller_location
from lakelet.config.named_tables import NamedTable, table_flag, table_format
from lakelet.files.delta_log import TableLog, streams_from_log
from lakelet.files.reads import note_stale_reason
from lakelet.files.stores import scheme_of
from lakelet.jvm.frames import loaded, of_java
from lakelet.jvm.sessions import plain_reader
from lakelet.language.model import Dataset
from lakelet.spark.names.catalog import Catalog, is_missing_table
from lakelet.spark.names.outside import is_view, outside_tables, stored_tables
from lakelet.spark.names.paths import FILE_FORMATS
from lakelet.storage.information_schema import EXTERNAL, MANAGED, RelationDescription, RelationName, asked_for, described, rows_of
from lakelet.storage.root import Storage

# ------------------------------------------------------------------------------------------------- tables from outside


def open_outside(spark: SparkSession, key: str, *, streaming: bool, jreader: Any = None) -> DataFrame:
    """The rows of the table from outside that has this full name in lower case. Raises like `open_named`, and TABLE_NOT_KEPT."""
    table = outside_tables().readable(key)
    if table is not None:
        return open_named(spark, table, streaming=streaming, jreader=jreader)
    return _open_created(spark, key, outside_tables().created[key], streaming=streaming, jreader=jreader)


def open_named(spark: SparkSession, table: NamedTable, *, streaming: bool, jreader: Any = None) -> DataFrame:
    """The rows of a named table, as a batch or as a stream. `jreader`: the JVM reader with the user's options, or None.

    A stream of files has the columns that the files have now. Raises TABLE_PLACE_MISSING or TABLE_PLACE_UNREADABLE.
    """
    found = table_format(table, caller_location())
    reader = jreader or plain_reader(spark, streaming=streaming)
    path = table.path
    if streaming and jreader is None and found.format == "delta" and scheme_of(path) is None and streams_from_log(TableLog(Path(path))):
        reader = reader.option("startingVersion", "0")
    if streaming and found.format != "delta":
        reader = reader.schema(plain_reader(spark, options=found.options).format(found.format).load(path).schema())
        if os.path.isfile(path):  # a stream lists folders only
            path, name = os.path.split(path)
            reader = reader.option("pathGlobFilter", re.sub(r"([*?\[\]{}\\])", r"\\\1", name))
    return loaded(spark, _with_options(reader, found.options), found.format, path)


def _open_created(spark: SparkSession, name: str, spark_name: str, *, streaming: bool, jreader: Any) -> DataFrame:
    """The rows of a table that code created while it was loaded. Raises TABLE_NOT_KEPT for a stream: the next load makes another table."""
    if streaming:
        raise LakeletError(
            "TABLE_NOT_KEPT",
            f"a stream reads {name}, which the code creates again each time it is loaded",
            where=caller_location(),
            todo=f"Create it once in a folder, and name that: {table_flag(name)}. Or read it as a batch.",
        )
    return of_java(spark, (jreader or plain_reader(spark)).table(spark_name))


def _with_options(reader: Any, options: Mapping[str, str]) -> Any:
    """A JVM reader with these options."""
    for key, value in options.items():
        reader = reader.option(key, value)
    return reader


# ------------------------------------------------------------------------------------------ the relations of information_schema (SQ-15)


def information(spark: SparkSession, name: TableName | None, *, streaming: bool = False) -> DataFrame | None:
    """The rows of the relation that a full name means, as things are now; None for a name of anything else.

    A table from outside that has the name comes first. Raises QUERY_KIND for a stream.
    """
    storage, asked = stored_tables().storage, asked_for(name) if name is not None else None
    if name is None or asked is None or storage is None or name.key in outside_tables():
        return None
    if streaming:
        what = f"{name} describes the catalog as it is now, and cannot be read as a stream"
        raise LakeletError("QUERY_KIND", what, where=caller_location(), todo="Read it without STREAM, with spark.read.table.")
    note_stale_reason(f"{caller_location()} reads {name}")
    return _rows_of_relation(spark, asked, storage)


def _rows_of_relation(spark: SparkSession, asked: RelationName, storage: Storage) -> DataFrame:
    stored = described(storage)
    others = [table for table in _described_outside(spark) if table.name.key not in {known.name.key for known in stored}]
    return frame_of(spark, asked, sorted((*stored, *others), key=lambda table: table.name.key))


def frame_of(spark: SparkSession, asked: RelationName, tables: list[RelationDescription]) -> DataFrame:
    """The rows of a relation for Spark."""
    rows = rows_of(asked, tables)
    return spark.createDataFrame([tuple(row.values()) for row in rows.to_pylist()], from_arrow_schema(rows.schema))


def _described_outside(spark: SparkSession) -> Iterator[RelationDescription]:
    created = outside_tables().created
    for name in outside_tables().names():
        kind = MANAGED if name.key in created else EXTERNAL
        try:
            fields = json.loads(open_outside(spark, name.key, streaming=False).schema.json())["fields"]
        except (LakeletError, PySparkException):  # its folder is missing or broken: whoever reads it gets the error
            fields = []
        yield RelationDescription(TableName(*(part.lower() for part in (name.catalog, name.schema, name.name))), kind, fields)


# ----------------------------------------------------------------------------------------------------------- the order


class NameTarget(Enum):
    """Where a name leads to, the first place first."""

    DATASET = "a dataset of the pipeline whose function reads it"
    NO_DATASET = "a name with LIVE before it that no dataset has"
    QUARANTINE = "a quarantine, which no query reads"
    OUTSIDE = "a table from outside (--table), one that code created, or, after all others, a table of a catalog"
    STORED = "another table of the storage"
    INFORMATION = "a relation of information_schema"
    SPARK = "files, or whatever Spark knows"


@dataclass(frozen=True)
class ResolvedName:
    """What a name means.

    Attributes:
        place: where it leads to.
        name: the full name; None for what is not a name of one to three parts.
        dataset: the dataset, where the place is one.
    """

    place: NameTarget
    name: TableName | None
    dataset: Dataset | None = None


def resolve_name(
    parts: Sequence[str],
    catalog: Catalog | None,
    *,
    streaming: bool = False,
    hidden: Callable[[str], bool] = lambda name: False,
    spark: SparkSession | None = None,
) -> ResolvedName:
    """Return what the parts of a name mean.

    Args:
        parts: the parts, without quotes.
        catalog: the names that the function of a dataset can mean; None outside of functions.
        streaming: whether it is read as a stream; outside of functions there is none of a stored table.
        hidden: whether a view of the session has a name of one part; outside of functions it hides a stored table.
        spark: the session, whose own tables and views come before those of catalogs; without one no catalog is asked.

    Raises CATALOG_UNREACHABLE and CATALOG_TABLE_REFUSED for a name that only a catalog can know.
    """
    name = stored_tables().full_name(all_quoted(parts)) if catalog is None else catalog.find(parts)
    if catalog is not None:
        dataset = catalog.dataset(parts)
        if dataset is not None and not catalog.is_foreign(dataset.name):
            return ResolvedName(NameTarget.DATASET, dataset.name, dataset)
        if parts[0].lower() == "live":
            return ResolvedName(NameTarget.NO_DATASET, name)
    if name is None:
        return ResolvedName(NameTarget.SPARK, None)
    if catalog is not None and name.key in catalog.quarantines:
        return ResolvedName(NameTarget.QUARANTINE, name)
    if name.key in outside_tables():
        return ResolvedName(NameTarget.OUTSIDE, name)
    if name.key in catalog.other_tables if catalog is not None else _is_stored(name, streaming, parts, hidden):
        return ResolvedName(NameTarget.STORED, name)
    if stored_tables().storage is not None and asked_for(name) is not None:
        return ResolvedName(NameTarget.INFORMATION, name)
    if spark is not None and _is_in_catalog(spark, parts, name):
        return ResolvedName(NameTarget.OUTSIDE, name)
    return ResolvedName(NameTarget.SPARK, name)


def _is_in_catalog(spark: SparkSession, parts: Sequence[str], name: TableName) -> bool:
    """Whether a catalog has the table of a name that Spark does not know."""
    foreign = outside_tables().foreign
    if not foreign or (len(parts) == 2 and parts[0].lower() in FILE_FORMATS):
        return False
    try:
        plain_reader(spark).table(all_quoted(parts))
    except AnalysisException as problem:
        return is_missing_table(problem) and foreign.find(name) is not None
    return False


def _is_stored(name: TableName, streaming: bool, parts: Sequence[str], hidden: Callable[[str], bool]) -> bool:
    return not streaming and not (len(parts) == 1 and hidden(name.name)) and stored_tables().path(name) is not None


def resolve_name_outside(spark: SparkSession, parts: Sequence[str], *, streaming: bool) -> ResolvedName:
    """Return what a name means to code outside of functions."""
    return resolve_name(parts, None, streaming=streaming, hidden=lambda name: is_view(spark, name), spark=spark)


def open_resolved(spark: SparkSession, meant: ResolvedName, *, streaming: bool, jreader: Any) -> DataFrame | None:
    """Return the rows of what a name means outside of functions, with the options of `jreader`; None for files and what Spark knows.

    Raises as `open_outside` and `information`.
    """
    if meant.name is None or meant.place is NameTarget.SPARK:
        return None
    if meant.place is NameTarget.OUTSIDE:
        return open_outside(spark, meant.name.key, streaming=streaming, jreader=jreader)
    if meant.place is NameTarget.STORED:
        return stored_tables().opened(spark, meant.name, jreader)
    return information(spark, meant.name, streaming=streaming)
