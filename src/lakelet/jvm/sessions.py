"""Sessions of Spark in Java: clones, settings, the active one, temporary views and functions, and SQL beside Lakelet's own.

`JavaSession` is Spark's `SparkSession` in Java. pyspark's session stands for one, that of an update for another one in each flow.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lakelet.jvm.errors import MISSING
from lakelet.jvm.scala import items, java_class, option, static

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

JavaSession = Any
_SESSION = "org.apache.spark.sql.classic.SparkSession"
_IDENTIFIER = "org.apache.spark.sql.catalyst.FunctionIdentifier"


def active_context() -> SparkContext | None:
    """The SparkContext of this process, None where it has none: pyspark's own call makes one."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def java_process(spark: SparkSession) -> object:
    """What stands for the Java process of a session: equal for all sessions of one."""
    return spark._jvm


def java_session(spark: SparkSession) -> JavaSession:
    """The session in Java that a session stands for in this thread."""
    return spark._jsparkSession


def cloned(jsession: JavaSession) -> JavaSession:
    """A new session in Java with the settings, functions, views and data sources of this one, which `newSession` leaves out."""
    return jsession.cloneSession()


def session_on(spark: SparkSession, jsession: JavaSession) -> SparkSession:
    """A session of pyspark that stands for one in Java. `spark`: any other one of the process."""
    from pyspark.sql import SparkSession

    context: Any = spark.sparkContext
    return SparkSession(context, jsession)


@contextmanager
def active(spark: SparkSession, jsession: JavaSession) -> Iterator[None]:
    """Make a session in Java the active one of this thread."""
    jclass = java_class(spark._jvm, _SESSION)
    before = jclass.getActiveSession()
    jclass.setActiveSession(jsession)
    try:
        yield
    finally:
        if before.isDefined():
            jclass.setActiveSession(before.get())
        else:
            jclass.clearActiveSession()


# ------------------------------------------------------------------------------------------------------------ settings


def settings_text(spark: SparkSession) -> str:
    """The settings that a session does not have by default, as one text: it differs where they differ. Quicker than to read them all."""
    try:
        return str(spark._jsparkSession.sessionState().conf().settings().toString())
    except MISSING:
        return str(sorted(all_settings(spark).items()))


def all_settings(spark: SparkSession, jsession: JavaSession | None = None) -> dict[str, str]:
    """All settings of a session, in one call: `spark.conf.getAll` makes one for each. `jsession`: another one than that of `spark`."""
    asked = (spark._jsparkSession if jsession is None else jsession).conf().getAllAsJava()
    try:
        text = java_class(spark._jvm, "com.fasterxml.jackson.databind.ObjectMapper")().writeValueAsString(asked)
    except MISSING:
        return dict(asked)
    found: dict[str, str] = json.loads(text)
    return found


# ------------------------------------------------------------------------------------------------------------ SQL


def plain_sql(jsession: JavaSession, text: str) -> Any:
    """Run SQL text as Spark reads it, without the pipeline's names and functions; Java's DataFrame."""
    return jsession.sql(text)


def plain_reader(spark: SparkSession, *, streaming: bool = False, options: Mapping[str, str] | None = None) -> Any:
    """Java's reader of a session. Lakelet replaces methods of pyspark's readers, which resolve the pipeline's names and paths."""
    session = spark._jsparkSession
    reader = session.readStream() if streaming else session.read()
    for key, value in (options or {}).items():
        reader = reader.option(key, value)
    return reader


# ------------------------------------------------------------------------------------------------------------ views and functions


def has_view(jsession: JavaSession, name: str) -> bool:
    """Whether a session has a temporary view. `spark.catalog.tableExists` looks for tables too."""
    return bool(jsession.sessionState().catalog().getTempView(name).isDefined())


def view_names(spark: SparkSession) -> list[str]:
    """The temporary views of a session: `listTables` of Spark 4.2 does not decode their rows."""
    found = spark._jsparkSession.sessionState().catalog().listLocalTempViews("*")
    return [str(view.table()) for view in items(found)]


def has_function(spark: SparkSession, name: str) -> bool:
    """Whether code has registered a function in a session under this name."""
    return bool(spark._jsparkSession.sessionState().catalog().isTemporaryFunction(java_class(spark._jvm, _IDENTIFIER)(name)))


def drop_builtin(spark: SparkSession, name: str) -> None:
    """Take a function of Spark's own out of a session, so that a temporary one of this name is called."""
    spark._jsparkSession.sessionState().functionRegistry().dropFunction(_builtin(spark, name))


def alias_builtin(spark: SparkSession, name: str, known: str) -> None:
    """Give a session the function `known` of Spark's own by another name too."""
    registry, found = spark._jsparkSession.sessionState().functionRegistry(), _builtin(spark, known)
    function, builder = registry.lookupFunction(found).get(), registry.lookupFunctionBuilder(found).get()
    registry.registerFunction(_builtin(spark, name), function, builder)


def _builtin(spark: SparkSession, name: str) -> Any:
    jvm = spark._jvm
    return java_class(jvm, _IDENTIFIER)(name, option(jvm, "builtin"), option(jvm, "system"))


def ddl_as_json(spark: SparkSession, ddl: str) -> str:
    """Columns as SQL writes them, as the JSON of a StructType. Raises pyspark's ParseException."""
    return str(static(spark._jvm, "org.apache.spark.sql.types.StructType", "fromDDL")(ddl).json())
