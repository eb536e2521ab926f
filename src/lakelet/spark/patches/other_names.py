"""SQL functions of Databricks that Spark has under another name: `iff` is its `if`, `getdate` its `now`, `charindex` its `locate`."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lakelet.jvm.sessions import alias_builtin

_OF_SPARK = {"iff": "if", "getdate": "now", "charindex": "locate"}


def register(session: SparkSession) -> None:
    """Give a session Spark's functions by their other names too; its clones have them as well."""
    for name, known in _OF_SPARK.items():
        alias_builtin(session, name, known)


__all__ = ["register"]
