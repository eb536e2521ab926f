"""Compiles Java classes of our own by the compiler that comes with Spark, where Spark and Delta have no setting for what is needed."""

from __future__ import annotations

from typing import Any


def compiled(context: Any, source: str) -> Any:
    """Return a class loader that has the classes of `source` and all of Spark's. Raises Py4JError where they cannot be compiled.

    `context`: pyspark's SparkContext. It takes half a second the first time in a process.
    """
    jvm: Any = context._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(context._jsc.hadoopConfiguration().getClassLoader())
    compiler.cook(source)
    return compiler.getClassLoader()


__all__ = ["compiled"]
