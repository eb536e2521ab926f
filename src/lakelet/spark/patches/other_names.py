"""SQL functions of Databricks that Spark has under another name: `iff` is its `if`, `getdate` its `now`, `charindex` its `locate`."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lakelet.base.patching import Patch
from lakelet.spark.patches.text_functions import builtin, of_text

_OF_SPARK = {"iff": "if", "getdate": "now", "charindex": "locate"}


def _register(session: SparkSession) -> None:
    """Give the JVM session of this thread Spark's functions by their other names too."""
    registry = session._jsparkSession.sessionState().functionRegistry()
    for name, known in _OF_SPARK.items():
        found = builtin(session, known)
        registry.registerFunction(builtin(session, name), registry.lookupFunction(found).get(), registry.lookupFunctionBuilder(found).get())


OTHER_NAMES: tuple[Patch, ...] = of_text(_OF_SPARK, _register, "Spark has these functions of Databricks under other names only")
"""Patches that register functions by other names."""

__all__ = ["OTHER_NAMES"]
