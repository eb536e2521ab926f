"""The first session of a context, without what Spark does then and few updates need."""

from __future__ import annotations

import contextlib
import os
import pkgutil
import sys
from typing import TYPE_CHECKING, Any

from lakelet.base.imports import after_import
from lakelet.jvm.errors import MISSING
from lakelet.jvm.scala import java_class, option, singleton

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_ML = "pyspark.ml"
_SESSION = "org.apache.spark.sql.classic.SparkSession"
_EXTENSIONS = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"


def look_up_sources(context: SparkContext) -> None:
    """Tell Spark that no package named `pyspark_…` brings a data source, where none does: it would start Python to look for them."""
    if any(module.name.startswith("pyspark_") for module in pkgutil.iter_modules()):
        return
    jvm = context._jvm
    with contextlib.suppress(*MISSING):  # of another Spark, which looks for them then
        manager = singleton(jvm, "org.apache.spark.sql.execution.datasources.DataSourceManager")
        getattr(manager, "dataSourceBuilders_$eq")(option(jvm, _nothing(jvm)))


def session_of(context: SparkContext) -> SparkSession:
    """Make the context's first session.

    Spark registers two functions of `pyspark.ml.functions` with each first session, for which it starts Scala's reflection (0.5 s). They
    are registered when `pyspark.ml` is imported. A context with jars of its own gets them at once: their code may use them too. So does
    one whose class path has another jar that extends sessions.
    """
    from pyspark.sql import SparkSession

    if _ML not in sys.modules and not context.getConf().contains("spark.jars"):
        with contextlib.suppress(*MISSING):  # of another Spark
            made = _without_ml(context)
            if made is not None:
                process = os.getpid()
                after_import(_ML, lambda: _register_ml(context, process))
                return SparkSession(context, made)
    return SparkSession.builder.getOrCreate()


def _without_ml(context: SparkContext) -> Any:
    """A session in Java without the extensions that jars register for a service loader; None where there are others than Spark's own."""
    java: Any = context._jsc
    jvm, spark = context._jvm, java.sc()
    registered = java_class(jvm, "java.lang.Thread").currentThread().getContextClassLoader().getResources(_EXTENSIONS)
    registered.nextElement()  # of Spark's jar for pyspark.ml
    if registered.hasMoreElements():
        return None
    apply = getattr(singleton(jvm, _SESSION), "org$apache$spark$sql$classic$SparkSession$$applyExtensions")
    extensions = apply(spark, java_class(jvm, "org.apache.spark.sql.SparkSessionExtensions")())
    none = option(jvm)
    return java_class(jvm, _SESSION)(spark, none, none, extensions, _nothing(jvm), _nothing(jvm))


def _nothing(jvm: Any) -> Any:
    return singleton(jvm, "scala.collection.immutable.Map").empty()


def _register_ml(context: SparkContext, process: int) -> None:
    """Register them, unless the context has stopped, Java is gone, or this is a fork of the process: the connection is not its own."""
    jvm = context._jvm
    if jvm is not None and context._jsc is not None and os.getpid() == process:
        with contextlib.suppress(*MISSING, OSError):
            singleton(jvm, "org.apache.spark.sql.ml.InternalFunctionRegistration").apply()


__all__ = ["look_up_sources", "session_of"]
