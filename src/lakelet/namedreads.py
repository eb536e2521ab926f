"""Reading the tables that `--table NAME=PATH` names, in functions of datasets and outside of them. Layer 4.

Inside a dataset's function its reader asks here. What runs while source files are loaded has no reader: `spark.table`, `spark.read.table`,
`spark.readStream.table`, `spark.sql` and `spark.catalog.tableExists` are answered here for names that the user has given.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from lakelet import sqltext
from lakelet.named import NamedTable, held
from lakelet.names import Namespace
from lakelet.pathcalls import located_locations, located_relation
from lakelet.registry import caller_location

_numbers = itertools.count()


class Named:
    """The named tables of an update by key, and the namespace that completes names."""

    def __init__(self, tables: Mapping[str, NamedTable], namespace: Namespace) -> None:
        self._tables, self._namespace = tables, namespace

    def __bool__(self) -> bool:
        return bool(self._tables)

    def by_key(self, key: str) -> NamedTable | None:
        """The table with that full name in lower case, or None."""
        return self._tables.get(key)

    def find(self, text: str) -> NamedTable | None:
        """The table that a name of one to three parts means, or None."""
        try:
            return self._tables.get(self._namespace.resolve(text).key) if self._tables else None
        except ValueError:
            return None


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
        _active = before


def open_named(spark: SparkSession, table: NamedTable, *, streaming: bool, jreader: Any = None) -> DataFrame:
    """The rows of a named table, as a batch or as a stream. `jreader`: the JVM reader with the user's options, or None.

    A stream of files has the columns that the files have now. Raises TABLE_PLACE_MISSING or TABLE_PLACE_UNREADABLE.
    """
    session: Any = spark._jsparkSession
    found = held(table, caller_location())
    reader = jreader or (session.readStream() if streaming else session.read())
    if streaming and found.format != "delta":
        reader = reader.schema(_told(session.read(), found.options).format(found.format).load(table.place).schema())
    return DataFrame(_told(reader, found.options).format(found.format).load(table.place), spark)


def _told(reader: Any, options: Mapping[str, str]) -> Any:
    for key, value in options.items():
        reader = reader.option(key, value)
    return reader


def sql_outside(spark: SparkSession, text: str, run: Callable[[str], DataFrame]) -> DataFrame:
    """Run SQL text of code that stands outside of all functions, with the named tables and the places of paths in it."""
    views: dict[tuple[str, bool], str] = {}

    def replacement(ref: sqltext.RelationRef) -> str | None:
        name = ".".join(sqltext.quoted(part) for part in ref.parts)
        table = _active.find(name)
        if table is None:
            return located_relation(ref.parts)
        key = (table.name.key, ref.streaming)
        if key not in views or ref.options:
            session: Any = spark._jsparkSession
            reader = _told(session.readStream() if ref.streaming else session.read(), ref.options)
            view = views[key] = f"__lakelet_named_{next(_numbers)}"
            open_named(spark, table, streaming=ref.streaming, jreader=reader)._jdf.createOrReplaceTempView(view)
        return views[key]

    if not _active and "`" not in text and "location" not in text.lower():
        return run(text)
    try:
        rewritten = sqltext.rewrite(spark, located_locations(text), replacement)
    except ParseException:
        return run(text)  # Spark says it better
    try:
        return run(rewritten)
    finally:
        for view in views.values():
            spark._jsparkSession.catalog().dropTempView(view)
