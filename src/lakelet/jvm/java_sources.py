"""Compiles Java classes of our own by the compiler that comes with Spark, where Spark and Delta have no setting for what is needed."""

from __future__ import annotations

import threading
from collections.abc import MutableMapping
from typing import Any
from weakref import WeakKeyDictionary

_lock = threading.Lock()
_loaders: MutableMapping[Any, dict[str, Any]] = WeakKeyDictionary()  # by gateway, which is one Java process, and source


def compiled(context: Any, source: str) -> Any:
    """Return a class loader that has the classes of `source` and all of Spark's. Raises Py4JError where they cannot be compiled.

    `context`: pyspark's SparkContext. It takes half a second the first time in a Java process, which has the classes once: py4j remembers
    methods by the name of their class, and would call those of another class of that name.
    """
    with _lock:
        known = _loaders.setdefault(context._gateway, {})
        if source not in known:
            jvm: Any = context._jvm
            compiler = jvm.org.codehaus.janino.SimpleCompiler()
            compiler.setParentClassLoader(context._jsc.hadoopConfiguration().getClassLoader())
            compiler.cook(source)
            known[source] = compiler.getClassLoader()
        return known[source]


__all__ = ["compiled"]
