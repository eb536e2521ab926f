"""Opens tables from outside of the pipeline: those that `--table NAME=PATH` names, and those that code makes while it is loaded.

Inside a dataset's function its reader asks here. What runs while source files are loaded has no reader; for it the wrappers of pyspark ask.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakelet.base.errors import LakeletError
from lakelet.base.locations import caller_location
from lakelet.config.named_tables import NamedTable, table_flag, table_format
from lakelet.files.delta_log import TableLog, streams_from_log
from lakelet.files.remote import scheme_of
from lakelet.jvm.frames import loaded, of_java
from lakelet.jvm.sessions import plain_reader
from lakelet.spark.names.outside import Named, named


def open_outside(spark: SparkSession, key: str, *, streaming: bool, jreader: Any = None) -> DataFrame:
    """The rows of the table from outside that has this full name in lower case. Raises like `open_named`, and TABLE_NOT_KEPT."""
    table = named().by_key(key)
    if table is not None:
        return open_named(spark, table, streaming=streaming, jreader=jreader)
    return _open_made(spark, key, named().made[key], streaming=streaming, jreader=jreader)


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
    return loaded(spark, with_options(reader, found.options), found.format, path)


def _open_made(spark: SparkSession, name: str, spark_name: str, *, streaming: bool, jreader: Any) -> DataFrame:
    """The rows of a table that code made while it was loaded. Raises TABLE_NOT_KEPT for a stream: the next load makes another table."""
    if streaming:
        raise LakeletError(
            "TABLE_NOT_KEPT",
            f"a stream reads {name}, which the code makes again each time it is loaded",
            where=caller_location(),
            todo=f"Make it once in a folder, and name that: {table_flag(name)}. Or read it as a batch.",
        )
    return of_java(spark, (jreader or plain_reader(spark)).table(spark_name))


def with_options(reader: Any, options: Mapping[str, str]) -> Any:
    """A JVM reader with these options."""
    for key, value in options.items():
        reader = reader.option(key, value)
    return reader


__all__ = ["Named", "named", "open_named", "open_outside", "with_options"]
