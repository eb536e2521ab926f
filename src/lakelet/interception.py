"""pyspark's reading methods while an update works: `table`, `sql`, `load` and the like ask the reader that is active. Layer 4.

The reader (`reads`) is active in the thread that calls a dataset's function. Without one, top-level code and handlers get what pyspark
gives them, at the places of `--map`, and the tables of `--table`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog as SparkCatalog
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.sql_formatter import SQLStringFormatter
from pyspark.sql.streaming.readwriter import DataStreamReader

from lakelet import namedreads, sqltext
from lakelet.autoloader.loading import batch_usage, given_options, pop_path, remembering, said_to, struct_of
from lakelet.catalog import is_missing_table, parts_of
from lakelet.madetables import sql_outside, wrap_tables
from lakelet.mapping import PathMap
from lakelet.names import Namespace
from lakelet.pathcalls import Wrap, mapping_paths, open_relation, wrapping
from lakelet.reads import Options, QueryReader
from lakelet.registry import active_reader, caller_location


@contextmanager
def intercepted(paths: PathMap | None = None, tables: namedreads.Named | None = None) -> Iterator[None]:
    """Wrap pyspark's reading methods for the life of the block; paths of user code are mapped, named tables can be read."""
    named = tables or namedreads.Named({}, Namespace())
    with wrapping() as wrap, mapping_paths(paths or PathMap(), wrap), namedreads.naming(named):
        _wrap_reads(wrap)
        yield


def _wrap_reads(wrap: Wrap) -> None:
    wrap(SparkSession, "table", lambda original: lambda self, name: _table(self, name, False, None, lambda: original(self, name)))
    wrap(DataFrameReader, "table", _reader_table(streaming=False))
    wrap(DataStreamReader, "table", _reader_table(streaming=True))
    wrap(SparkSession, "sql", _sql)
    wrap(DataFrameReader, "load", _batch_load)
    for name in ("format", "schema", "option", "options"):
        wrap(DataStreamReader, name, remembering(name))
    for name in ("format", "option", "options"):
        wrap(DataFrameReader, name, remembering(name))
    wrap(DataStreamReader, "load", _stream_load)
    wrap(SparkCatalog, "tableExists", _table_exists)
    wrap_tables(wrap)


def _table(
    session: Any, name: Any, streaming: bool, jreader: Any, otherwise: Callable[[], DataFrame], options: Options = None
) -> DataFrame:
    def elsewhere() -> DataFrame:
        files = open_relation(session, parts_of(name), streaming=streaming, jreader=jreader)
        return otherwise() if files is None else files

    reader = active_reader()
    if not isinstance(name, str):
        return otherwise()
    if not isinstance(reader, QueryReader):
        key = namedreads.named().key_of(name)
        known = key in namedreads.named()
        return namedreads.open_outside(session, key, streaming=streaming, jreader=jreader) if known else elsewhere()
    return reader.relation(name, streaming=streaming, jreader=jreader, otherwise=elsewhere, options=options)


def _reader_table(*, streaming: bool) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        def table(self: Any, tableName: str) -> DataFrame:
            asked = said_to(self).get("options", {})
            jreader = self._jreader if asked or not streaming else None  # a stream reader without options is as good as a new one
            return _table(self._spark, tableName, streaming, jreader, lambda: original(self, tableName), asked)

        return table

    return make


def _sql(original: Any) -> Any:
    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
        reader = active_reader()
        answer = reader.sql if isinstance(reader, QueryReader) else functools.partial(sql_outside, self)
        if not kwargs:
            return answer(sqlQuery, lambda text: original(self, text, args))
        formatter = SQLStringFormatter(self)  # as pyspark does it; the text must be complete before names are looked up
        try:
            return answer(formatter.format(sqlQuery, **kwargs), lambda text: original(self, text, args))
        finally:
            formatter.clear()

    return sql


def _table_exists(original: Any) -> Any:
    def exists(self: Any, tableName: str, dbName: str | None = None) -> bool:
        name = tableName if dbName is None else f"{sqltext.quoted(dbName)}.{sqltext.quoted(tableName)}"
        reader = active_reader()
        found = reader.catalog.find(parts_of(name)) if isinstance(reader, QueryReader) else None
        if isinstance(reader, QueryReader) and found and found.key in {*reader.catalog.datasets, *reader.catalog.other_tables}:
            return True
        if (found.key if found else namedreads.named().key_of(name)) in namedreads.named():
            return True
        try:
            return bool(original(self, tableName, dbName))
        except AnalysisException as problem:
            if is_missing_table(problem):
                return False
            raise

    return exists


def _stream_load(original: Any) -> Any:
    def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:
        reader, said = active_reader(), said_to(self)
        wanted = format or said.get("format")
        if not isinstance(reader, QueryReader) or str(wanted).lower() != "cloudfiles":
            frame: DataFrame = original(self, path, format, schema, **options)
            return frame
        given = given_options(self, options)
        declared = struct_of(schema if schema is not None else said.get("schema"), reader.spark)
        return reader.load(path or pop_path(given), given, declared)

    return load


def _batch_load(original: Any) -> Any:
    def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:
        if str(format or said_to(self).get("format")).lower() == "cloudfiles" and isinstance(active_reader(), QueryReader):
            error = batch_usage()
            error.where = caller_location()
            raise error
        frame: DataFrame = original(self, path, format, schema, **options)
        return frame

    return load
