"""What py4j raises where a call to Java fails: `Py4JJavaError` if Java raised what pyspark does not convert, `Py4JError` always."""

from __future__ import annotations

from py4j.protocol import Py4JError, Py4JJavaError

MISSING = (Py4JError, TypeError, AttributeError)
"""What a reach raises where another version of Spark, Delta, Hadoop or py4j has not what it is about."""

__all__ = ["MISSING", "Py4JError", "Py4JJavaError"]
