"""pyspark's reading methods while an update works: `table`, `sql`, `load` and the like ask the reader that is active.

The reader (`spark.names.reader`) is active in the thread that calls a dataset's function. Without one, top-level code and handlers get what
pyspark gives them, at the paths of `--map`, and the tables of `--table`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.sql_formatter import SQLStringFormatter
from pyspark.sql.streaming.readwriter import DataStreamReader

from lakelet.autoloader.reader_arguments import given_options, pop_path, reader_arguments, remember, struct_of
from lakelet.autoloader.source_options import batch_usage
from lakelet.base.names import quoted
from lakelet.base.redaction import remember_secrets
from lakelet.base.text import kafka_option
from lakelet.base.user_code import caller_location
from lakelet.jvm.frames import java_reader
from lakelet.jvm.sessions import plain_reader
from lakelet.language.registry import active_reader
from lakelet.language.sql_text import table_names
from lakelet.spark import settings
from lakelet.spark.names.catalog import is_missing_table, parts_of
from lakelet.spark.names.file_metadata import with_metadata_if_asked
from lakelet.spark.names.lookup import NameTarget, open_resolved, resolve_name, resolve_name_outside
from lakelet.spark.names.paths import open_relation
from lakelet.spark.names.reader import Options
from lakelet.spark.names.sql_queries import QueryReader
from lakelet.spark.patches.created_tables import sql_outside
from lakelet.spark.patches.doors import Call, Rest, around, before

_NAMED = "a name means a dataset of the pipeline or a table from outside first"
_CLOUD_FILES = "cloudFiles is Lakelet's Auto Loader"


def _open_by_name(
    session: Any, name: Any, streaming: bool, jreader: Any, otherwise: Callable[[], DataFrame], options: Options = None
) -> DataFrame:
    def elsewhere() -> DataFrame:
        files = open_relation(session, parts_of(name), streaming=streaming, jreader=jreader)
        return otherwise() if files is None else files

    reader = active_reader()
    if not isinstance(name, str):
        return otherwise()
    if not isinstance(reader, QueryReader):
        meant = resolve_name_outside(session, parts_of(name), streaming=streaming)
        frame = open_resolved(session, meant, streaming=streaming, jreader=jreader)
        return elsewhere() if frame is None else frame
    return reader.relation(name, streaming=streaming, jreader=jreader, otherwise=elsewhere, options=options)


@around(_NAMED)
def resolve_session_table(call: Call, rest: Rest) -> DataFrame:
    """`spark.table`: what the name means."""
    return _open_by_name(call.target, call.get("tableName"), False, None, lambda: rest(call))


@around(_NAMED)
def resolve_reader_table(call: Call, rest: Rest) -> DataFrame:
    """`table` of a reader: what the name means, read with the options of the reader."""
    reader, streaming = call.target, isinstance(call.target, DataStreamReader)
    said = reader_arguments(reader)
    asked = said.get("options", {})
    said_more = asked or ("schema" in said and not streaming)
    jreader = java_reader(reader) if said_more else None  # without options it is as good as a new one
    if streaming and asked and "schema" in said:  # which Spark ignores, and a path to the table would not
        jreader = plain_reader(reader._spark, streaming=True, options=asked)
    return with_metadata_if_asked(_open_by_name(reader._spark, call.get("tableName"), streaming, jreader, lambda: rest(call), asked))


@before("a name in IDENTIFIER(?) is replaced, and a value goes with its name")
def name_parameters(call: Call) -> Call:
    """Give the parameters of a SQL text names."""
    text, args = table_names.with_named_parameters(call.get("sqlQuery"), call.get("args"))
    return call.changed(sqlQuery=text, args=args)


@around("the text must be complete before names are looked up")
def name_frames(call: Call, rest: Rest) -> DataFrame:
    """Replace `{frame}` by the name of a view, as pyspark does it."""
    given = call.get("kwargs")
    if not given:
        return rest(call)  # type: ignore[no-any-return]
    formatter = SQLStringFormatter(call.target)
    try:
        return rest(call.changed(sqlQuery=formatter.format(call.get("sqlQuery"), **given), kwargs={}))  # type: ignore[no-any-return]
    finally:
        formatter.clear()


@around(_NAMED)
def resolve_names(call: Call, rest: Rest) -> DataFrame:
    """Run a SQL text in which names mean what they mean to the reader that is active."""
    reader = active_reader()
    answer = reader.sql if isinstance(reader, QueryReader) else functools.partial(sql_outside, call.target)
    return answer(call.get("sqlQuery"), lambda text: rest(call.changed(sqlQuery=text)), call.get("args"))


@around(_NAMED)
def table_exists(call: Call, rest: Rest) -> bool:
    """`tableExists`: whether a name means a table."""
    tableName, dbName = call.get("tableName"), call.get("dbName")
    name = tableName if dbName is None else f"{quoted(dbName)}.{quoted(tableName)}"
    reader, parts, spark = active_reader(), parts_of(name), call.target._sparkSession
    catalog = reader.catalog if isinstance(reader, QueryReader) else None
    meant = resolve_name(parts, catalog, spark=spark) if catalog is not None else resolve_name_outside(spark, parts, streaming=False)
    if meant.place is NameTarget.QUARANTINE and catalog is not None and meant.name is not None:
        return meant.name.key in catalog.other_tables
    if meant.place not in (NameTarget.SPARK, NameTarget.NO_DATASET):
        return True
    try:
        return bool(rest(call))
    except AnalysisException as problem:
        if is_missing_table(problem):
            return False
        raise


@around("the session belongs to the update, which goes on")
def ignore_stop(call: Call, rest: Rest) -> None:
    """Note that `stop` has no effect."""
    name = "spark" if isinstance(call.target, SparkSession) else "spark.sparkContext"
    settings.note(f"{name}.stop() has no effect here: the session belongs to the update, which goes on")


@around(_CLOUD_FILES)
def load_stream(call: Call, rest: Rest) -> DataFrame:
    """Open a stream of cloudFiles for the reader that is active."""
    reader, said = active_reader(), reader_arguments(call.target)
    wanted = call.get("format") or said.get("format")
    if not isinstance(reader, QueryReader) or str(wanted).lower() != "cloudfiles":
        return with_metadata_if_asked(rest(call))
    given = given_options(call.target, call.get("options", {}))
    schema = call.get("schema")
    declared = struct_of(schema if schema is not None else said.get("schema"), reader.spark)
    return reader.load(call.get("path") or pop_path(given), given, declared)


@before(_CLOUD_FILES)
def refuse_batch_load(call: Call) -> Call:
    """Refuse a batch of cloudFiles. Raises CF_INCORRECT_BATCH_USAGE."""
    wanted = call.get("format") or reader_arguments(call.target).get("format")
    if str(wanted).lower() == "cloudfiles" and isinstance(active_reader(), QueryReader):
        error = batch_usage()
        error.where = caller_location()
        raise error
    return call


@before("classes of Kafka's client have another name on Databricks")
def name_kafka_classes(call: Call) -> Call:
    """Take the names of Kafka's own client in options that begin with `kafka.`."""
    if call.method == "option":
        return call.changed(value=kafka_option(str(call.get("key")), call.get("value")))
    return call.changed(options={key: kafka_option(key, value) for key, value in call.get("options", {}).items()})


@before("pyspark hands it to Java and forgets it; load, table and saveAsTable have to know it")
def remember_arguments(call: Call) -> Call:
    """Keep what a reader or writer is given; what its options hold of secrets is in no message from now on."""
    remember(call.target, call.method, call.arguments)
    if call.method in ("option", "options"):
        remember_secrets(reader_arguments(call.target)["options"])
    return call


__all__ = [
    "ignore_stop",
    "load_stream",
    "name_frames",
    "name_kafka_classes",
    "name_parameters",
    "refuse_batch_load",
    "remember_arguments",
    "resolve_names",
    "resolve_reader_table",
    "resolve_session_table",
    "table_exists",
]
