"""Tables from outside of the pipeline: those that `--table NAME=PATH` names, and those that code makes while it is loaded.

Inside a dataset's function its reader asks here. What runs while source files are loaded has no reader; for it the wrappers of pyspark ask.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakelet.base.errors import LakeletError
from lakelet.base.locations import caller_location
from lakelet.base.names import Namespace, TableName
from lakelet.config.named_tables import NamedTable, held, table_flag


class Named:
    """The tables from outside of one update, and the namespace that completes names.

    `made`: what Spark calls the tables that code made while it was loaded, by key.
    """

    def __init__(self, tables: Mapping[str, NamedTable], namespace: Namespace) -> None:
        self._tables, self.namespace = tables, namespace
        self.made: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._tables or self.made)

    def __contains__(self, key: str) -> bool:
        return key in self._tables or key in self.made

    def by_key(self, key: str) -> NamedTable | None:
        """The table with that full name in lower case, or None."""
        return self._tables.get(key)

    def find(self, text: str) -> NamedTable | None:
        """The table that a name of one to three parts means, or None."""
        return self._tables.get(self.key_of(text))

    def key_of(self, text: str) -> str:
        """The full name in lower case that a name of one to three parts means; empty for what is no name."""
        try:
            return self.namespace.resolve(text).key if self else ""
        except ValueError:
            return ""

    def schema_of(self, name: TableName) -> str:
        """The schema in Spark's own catalog for the made tables of one schema of the code."""
        return f"lakelet_made_{zlib.crc32(f'{name.catalog}.{name.schema}'.lower().encode()):08x}"

    def spark_name(self, name: TableName) -> str:
        """What a made table is called there: its own name where Spark takes it."""
        return name.name if re.fullmatch(r"[A-Za-z0-9_]+", name.name) else f"t_{zlib.crc32(name.name.lower().encode()):08x}"

    def forget_made(self) -> None:
        """Drop what code made. Spark's own catalog belongs to the whole process."""
        session = SparkSession.getActiveSession()
        for schema in {spark_name.split(".")[1] for spark_name in self.made.values()} if session is not None else ():
            with suppress(PySparkException, Py4JError):
                session._jsparkSession.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        self.made.clear()


_active = Named({}, Namespace())


def named() -> Named:
    """The named tables of the update that works in this process; none outside of updates."""
    return _active


@contextmanager
def naming(tables: Named) -> Iterator[None]:
    """Make `tables` those of the process for the life of the block."""
    global _active
    before, _active = _active, tables
    try:
        yield
    finally:
        tables.forget_made()
        _active = before


def open_outside(spark: SparkSession, key: str, *, streaming: bool, jreader: Any = None) -> DataFrame:
    """The rows of the table from outside that has this full name in lower case. Raises like `open_named`, and TABLE_NOT_KEPT."""
    table = _active.by_key(key)
    if table is not None:
        return open_named(spark, table, streaming=streaming, jreader=jreader)
    return _open_made(spark, key, _active.made[key], streaming=streaming, jreader=jreader)


def open_named(spark: SparkSession, table: NamedTable, *, streaming: bool, jreader: Any = None) -> DataFrame:
    """The rows of a named table, as a batch or as a stream. `jreader`: the JVM reader with the user's options, or None.

    A stream of files has the columns that the files have now. Raises TABLE_PLACE_MISSING or TABLE_PLACE_UNREADABLE.
    """
    session: Any = spark._jsparkSession
    found = held(table, caller_location())
    reader = jreader or (session.readStream() if streaming else session.read())
    place = table.place
    if streaming and found.format != "delta":
        reader = reader.schema(told(session.read(), found.options).format(found.format).load(place).schema())
        if os.path.isfile(place):  # a stream lists folders only
            place, name = os.path.split(place)
            reader = reader.option("pathGlobFilter", re.sub(r"([*?\[\]{}\\])", r"\\\1", name))
    return DataFrame(told(reader, found.options).format(found.format).load(place), spark)


def _open_made(spark: SparkSession, name: str, spark_name: str, *, streaming: bool, jreader: Any) -> DataFrame:
    """The rows of a table that code made while it was loaded. Raises TABLE_NOT_KEPT for a stream: the next load makes another table."""
    if streaming:
        raise LakeletError(
            "TABLE_NOT_KEPT",
            f"a stream reads {name}, which the code makes anew each time it is loaded",
            where=caller_location(),
            todo=f"Make it once in a folder, and name that: {table_flag(name)}. Or read it as a batch.",
        )
    session: Any = spark._jsparkSession
    return DataFrame((jreader or session.read()).table(spark_name), spark)


def told(reader: Any, options: Mapping[str, str]) -> Any:
    """A JVM reader with these options."""
    for key, value in options.items():
        reader = reader.option(key, value)
    return reader
