"""SQL functions of Databricks that Spark has under another name: `iff` is its `if`, `getdate` its `now`, `charindex` its `locate`."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

_OF_SPARK = {"iff": "if", "getdate": "now", "charindex": "locate"}


def register(session: SparkSession) -> None:
    """Give a session Spark's functions by their other names too; its clones have them as well."""
    registry = session._jsparkSession.sessionState().functionRegistry()
    for name, known in _OF_SPARK.items():
        found = builtin(session, known)
        registry.registerFunction(builtin(session, name), registry.lookupFunction(found).get(), registry.lookupFunctionBuilder(found).get())


def builtin(session: SparkSession, name: str) -> Any:
    """Return Spark's identifier of a function of its own."""
    jvm = session._jvm
    assert jvm is not None
    some = jvm.scala.Option.apply
    return jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name, some("builtin"), some("system"))


__all__ = ["builtin", "register"]
