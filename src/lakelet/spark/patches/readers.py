"""pyspark's reading methods while an update works: `table`, `sql`, `load` and the like ask the reader that is active.

The reader (`spark.names.reader`) is active in the thread that calls a dataset's function. Without one, top-level code and handlers get what
pyspark gives them, at the paths of `--map`, and the tables of `--table`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.sql_formatter import SQLStringFormatter

from lakelet.autoloader.loading import capturing, given_options, pop_path, reader_arguments, struct_of
from lakelet.autoloader.options import batch_usage
from lakelet.base.locations import caller_location
from lakelet.base.names import quoted
from lakelet.base.patching import Patch, without_context
from lakelet.language.registry import active_reader
from lakelet.language.sql_text import table_names
from lakelet.spark import settings
from lakelet.spark.names import named_tables
from lakelet.spark.names.catalog import is_missing_table, parts_of
from lakelet.spark.names.file_metadata import with_metadata_if_asked
from lakelet.spark.names.information import information
from lakelet.spark.names.json_paths import on_text_too
from lakelet.spark.names.outside import held
from lakelet.spark.names.paths import open_relation
from lakelet.spark.names.reader import Options
from lakelet.spark.names.sql_queries import QueryReader
from lakelet.spark.patches import owners
from lakelet.spark.patches.made_tables import sql_outside
from lakelet.storage.information_schema import asked_for


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
        key = named_tables.named().key_of(name)
        if key in named_tables.named():
            return named_tables.open_outside(session, key, streaming=streaming, jreader=jreader)
        stored = None if streaming else held().find(session, name)
        if stored is not None:
            return held().opened(session, stored, jreader)
        described = information(session, held().full_name(name), streaming=streaming)
        return elsewhere() if described is None else described
    return reader.relation(name, streaming=streaming, jreader=jreader, otherwise=elsewhere, options=options)


def _reader_table(*, streaming: bool) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        def table(self: Any, tableName: str) -> DataFrame:
            said = reader_arguments(self)
            asked = said.get("options", {})
            jreader = self._jreader if asked or not streaming else None  # a stream reader without options is as good as a new one
            if streaming and asked and "schema" in said:  # which Spark ignores, and a path to the table would not
                jreader = self._spark._jsparkSession.readStream()
                for key, value in asked.items():
                    jreader.option(key, value)
            return with_metadata_if_asked(_table(self._spark, tableName, streaming, jreader, lambda: original(self, tableName), asked))

        return table

    return make


def _sql(original: Any) -> Any:
    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
        reader = active_reader()
        answer = reader.sql if isinstance(reader, QueryReader) else functools.partial(sql_outside, self)
        sqlQuery, args = table_names.with_named_parameters(sqlQuery, args)
        run = functools.partial(on_text_too, run=lambda text: original(self, text, args))
        if not kwargs:
            return answer(sqlQuery, run, args)
        formatter = SQLStringFormatter(self)  # as pyspark does it; the text must be complete before names are looked up
        try:
            return answer(formatter.format(sqlQuery, **kwargs), run, args)
        finally:
            formatter.clear()

    return sql


def _table_exists(original: Any) -> Any:
    def exists(self: Any, tableName: str, dbName: str | None = None) -> bool:
        name = tableName if dbName is None else f"{quoted(dbName)}.{quoted(tableName)}"
        reader = active_reader()
        catalog = reader.catalog if isinstance(reader, QueryReader) else None
        found = catalog.find(parts_of(name)) if catalog else None
        if catalog and found and (catalog.dataset(parts_of(name)) or found.key in catalog.other_tables):
            return True
        if (found.key if found else named_tables.named().key_of(name)) in named_tables.named():
            return True
        if catalog is None and held().find(self._sparkSession, name) is not None:
            return True
        full = found or held().full_name(name)
        if full is not None and held().storage is not None and asked_for(full) is not None:
            return True
        try:
            return bool(original(self, tableName, dbName))
        except AnalysisException as problem:
            if is_missing_table(problem):
                return False
            raise

    return exists


def _stop(name: str) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        def stop(self: Any) -> None:
            settings.note(f"{name}.stop() has no effect here: the session belongs to the update, which goes on")

        return stop

    return make


def _stream_load(original: Any) -> Any:
    def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:
        reader, said = active_reader(), reader_arguments(self)
        wanted = format or said.get("format")
        if not isinstance(reader, QueryReader) or str(wanted).lower() != "cloudfiles":
            frame: DataFrame = original(self, path, format, schema, **options)
            return with_metadata_if_asked(frame)
        given = given_options(self, options)
        declared = struct_of(schema if schema is not None else said.get("schema"), reader.spark)
        return reader.load(path or pop_path(given), given, declared)

    return load


def _batch_load(original: Any) -> Any:
    def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:
        if str(format or reader_arguments(self).get("format")).lower() == "cloudfiles" and isinstance(active_reader(), QueryReader):
            error = batch_usage()
            error.where = caller_location()
            raise error
        frame: DataFrame = original(self, path, format, schema, **options)
        return frame

    return load


def _session_table(original: Any) -> Any:
    return lambda self, name: _table(self, name, False, None, lambda: original(self, name))


def _remembered(owner: str, names: Mapping[str, str]) -> list[Patch]:
    why = "pyspark hands it to Java and forgets it; `load` and `table` have to know it"
    return [Patch(owner, name, without_context(capturing(name)), why, since) for name, since in names.items()]


_NAMED = "a name means a dataset of the pipeline or a table from outside first"
_STOPPED = "the session belongs to the update, which goes on"
_CLOUD_FILES = "cloudFiles is Lakelet's Auto Loader"

READERS: tuple[Patch, ...] = (
    Patch(owners.SESSION, "table", without_context(_session_table), _NAMED, "2.0.0"),
    Patch(owners.BATCH_READER, "table", without_context(_reader_table(streaming=False)), _NAMED, "1.4.0"),
    Patch(owners.STREAM_READER, "table", without_context(_reader_table(streaming=True)), _NAMED, "3.1.0"),
    Patch(owners.SESSION, "sql", without_context(_sql), _NAMED, "2.0.0"),
    Patch(owners.BATCH_READER, "load", without_context(_batch_load), _CLOUD_FILES, "1.4.0"),
    *_remembered(owners.STREAM_READER, {"format": "2.0.0", "schema": "2.0.0", "option": "2.0.0", "options": "2.0.0"}),
    *_remembered(owners.BATCH_READER, {"format": "1.4.0", "option": "1.5.0", "options": "1.4.0"}),
    Patch(owners.STREAM_READER, "load", without_context(_stream_load), _CLOUD_FILES, "2.0.0"),
    Patch(owners.CATALOG, "tableExists", without_context(_table_exists), _NAMED, "3.3.0"),
    Patch(owners.SESSION, "stop", without_context(_stop("spark")), _STOPPED, "2.0.0"),
    Patch(owners.CONTEXT, "stop", without_context(_stop("spark.sparkContext")), _STOPPED, "0.7.0"),
)
"""Patches that ask the active reader for the tables and files that user code reads."""

__all__ = ["READERS"]
