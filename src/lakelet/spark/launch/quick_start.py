"""Spares a session what pyspark and Spark do when they start only to find out what there is."""

from __future__ import annotations

import contextlib
import pkgutil
from typing import TYPE_CHECKING, Any

from lakelet.base.patching import patched_with
from lakelet.spark.patches.imports import PANDAS_UNTOUCHED

if TYPE_CHECKING:
    from pyspark import SparkContext


def import_pyspark() -> None:
    """Import what pyspark imports in its first call to Java, where all would wait for it. Raises ImportError.

    That is a module of its tests, which imports pandas only to see whether it can; pandas takes as long as all the rest.
    """
    with patched_with(PANDAS_UNTOUCHED):
        import pyspark.testing.utils  # noqa: F401


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


__all__ = ["import_pyspark", "look_up_sources"]
