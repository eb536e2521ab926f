"""Spares a session what pyspark, pyarrow and Spark do when they start, and few updates need."""

from __future__ import annotations

import contextlib
import os
import pkgutil
import sys
from typing import TYPE_CHECKING, Any

from lakelet.base.imports import after_import, unless_imported
from lakelet.base.patching import patched_with
from lakelet.spark.patches.imports import PANDAS_UNTOUCHED

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_ML = "pyspark.ml"
_EXTENSIONS = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"


def import_pyspark() -> None:
    """Import what pyspark imports in its first call to Java, where all would wait for it. Raises ImportError.

    That is a module of its tests, which imports pandas only to see whether it can; pandas takes as long as all the rest.
    """
    with patched_with(PANDAS_UNTOUCHED):
        import pyspark.testing.utils  # noqa: F401


def leave_pandas() -> None:
    """Let pyarrow know pandas when somebody else has imported it, and not import it itself to see whether a list is a pandas object.

    Where pyarrow has to find out the type of a list, it imports pandas all the same.
    """
    with unless_imported("pandas"):
        from pyarrow.lib import _pandas_api

        if not _pandas_api.have_pandas:
            after_import("pandas", lambda: _pandas_api.pd)


def look_up_sources(context: SparkContext) -> None:
    """Tell Spark that no package named `pyspark_…` brings a data source, where none does: it would start Python to look for them."""
    from py4j.protocol import Py4JError

    if any(module.name.startswith("pyspark_") for module in pkgutil.iter_modules()):
        return
    jvm: Any = context._jvm
    with contextlib.suppress(Py4JError, TypeError):  # of another Spark, which looks for them then
        nothing = getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
        manager = getattr(getattr(jvm.org.apache.spark.sql.execution.datasources, "DataSourceManager$"), "MODULE$")
        getattr(manager, "dataSourceBuilders_$eq")(jvm.scala.Option.apply(nothing))


def session_of(context: SparkContext) -> SparkSession:
    """Make the context's first session.

    Spark registers two functions of `pyspark.ml.functions` with each first session, for which it starts Scala's reflection (0.5 s). They
    are registered when `pyspark.ml` is imported. A context with jars of its own gets them at once: their code may use them too. So does
    one whose class path has another jar that extends sessions.
    """
    from py4j.protocol import Py4JError
    from pyspark.sql import SparkSession

    if _ML not in sys.modules and not context.getConf().contains("spark.jars"):
        with contextlib.suppress(Py4JError, TypeError):  # of another Spark
            made = _without_ml(context)
            if made is not None:
                process = os.getpid()
                after_import(_ML, lambda: _register_ml(context, process))
                return SparkSession(context, made)
    return SparkSession.builder.getOrCreate()


def _without_ml(context: SparkContext) -> Any:
    """A session in Java without the extensions that jars register for a service loader; None where there are others than Spark's own."""
    jvm: Any = context._jvm
    registered = jvm.java.lang.Thread.currentThread().getContextClassLoader().getResources(_EXTENSIONS)
    registered.nextElement()  # of Spark's jar for pyspark.ml
    if registered.hasMoreElements():
        return None
    sessions, spark = jvm.org.apache.spark.sql.classic, context._jsc.sc()
    companion = getattr(getattr(sessions, "SparkSession$"), "MODULE$")
    apply = getattr(companion, "org$apache$spark$sql$classic$SparkSession$$applyExtensions")
    extensions = apply(spark, jvm.org.apache.spark.sql.SparkSessionExtensions())
    none, empty = jvm.scala.Option.empty(), getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
    return sessions.SparkSession(spark, none, none, extensions, empty, empty)


def _register_ml(context: SparkContext, process: int) -> None:
    """Register them, unless the context has stopped, Java is gone, or this is a fork of the process: the connection is not its own."""
    from py4j.protocol import Py4JError

    jvm: Any = context._jvm
    if jvm is not None and context._jsc is not None and os.getpid() == process:
        with contextlib.suppress(Py4JError, OSError):
            getattr(getattr(jvm.org.apache.spark.sql.ml, "InternalFunctionRegistration$"), "MODULE$").apply()


__all__ = ["import_pyspark", "leave_pandas", "look_up_sources", "session_of"]
