"""Classes of Java by name, and collections of Scala as those of Python.

Each call to Java costs a fraction of a millisecond, and looking up a dotted name costs one for each of its parts. So classes, methods
and objects that stay the same are looked up once in a Java process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

_PYTHON_UTILS = "org.apache.spark.api.python.PythonUtils"


@functools.lru_cache(maxsize=512)
def java_class(jvm: Any, name: str) -> Any:
    """Return a Java class by its full name."""
    return getattr(jvm, name)


@functools.lru_cache(maxsize=512)
def static(jvm: Any, owner: str, name: str) -> Callable[..., Any]:
    """Return a static method of a Java class, or a method of a Scala object."""
    found: Callable[..., Any] = getattr(java_class(jvm, owner), name)
    return found


def singleton(jvm: Any, name: str) -> Any:
    """Return a Scala object by its full name. Raises Py4JError or TypeError where there is none."""
    return getattr(java_class(jvm, f"{name}$"), "MODULE$")


def items(sequence: Any) -> list[Any]:
    """Return the elements of a Scala sequence."""
    return [sequence.apply(i) for i in range(sequence.size())]


def seq(jvm: Any, elements: Sequence[Any]) -> Any:
    """Return a Scala sequence of these elements."""
    return static(jvm, _PYTHON_UTILS, "toSeq")(list(elements))


def scala_map(jvm: Any, values: dict[str, str]) -> Any:
    """Return an immutable Scala map with these texts."""
    return static(jvm, _PYTHON_UTILS, "toScalaMap")(values)


def mapping(entries: Any) -> dict[str, Any]:
    """Return the entries of a Scala map whose keys are texts."""
    found, iterator = {}, entries.iterator()
    while iterator.hasNext():
        entry = iterator.next()
        found[str(entry._1())] = entry._2()
    return found


def option(jvm: Any, value: Any = None) -> Any:
    """Return Scala's `Some(value)`, or its `None`."""
    return static(jvm, "scala.Option", "apply")(value)


def value_of(found: Any) -> Any:
    """Return the value of a Scala option; None where it has none."""
    return found.get() if found.isDefined() else None


__all__ = ["items", "java_class", "mapping", "option", "scala_map", "seq", "singleton", "static", "value_of"]
