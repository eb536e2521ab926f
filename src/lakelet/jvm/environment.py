"""The variables of the environment of a Java process that runs: read, and replaced by those of the command that uses it.

Java gives them to its code (`System.getenv`, `${env:NAME}` in SQL) and to the processes that it starts, such as Spark's Python workers and
the scripts of TRANSFORM. It keeps them in a map of its own, which Spark's options of Java open. What native code has read stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext

_CLASS, _FIELD = "java.lang.ProcessEnvironment", "theUnmodifiableEnvironment"
_NOT_TEXT = "\ufffd"
"""What Java shows of bytes that are not text."""
_WRAPPER, _WRAPPED = "java.util.Collections$UnmodifiableMap", "m"


def variables(context: SparkContext) -> dict[str, str]:
    """The variables as Java's code sees them. Raises Py4JError where Java does not answer."""
    jvm: Any = context._jvm
    text = jvm.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(jvm.java.lang.System.getenv())
    found: dict[str, str] = json.loads(text)
    return found


def replace_variables(context: SparkContext, wanted: Mapping[str, str], without: Callable[[str], bool] = lambda name: True) -> None:
    """Let Java see these variables, and no others for which `without` is true. Raises Py4JError where Java does not allow it.

    A variable whose name is not text for Java stays as it is: all sides have the same.
    """
    before = variables(context)
    changed = {name: value for name, value in wanted.items() if before.get(name) != value}
    gone = [name for name in before if name not in wanted and _NOT_TEXT not in name and without(name)]
    if changed or gone:
        own = _map(context)
        for name, value in changed.items():
            own.put(name, value)
        for name in gone:
            own.remove(name)


def can_replace(context: SparkContext) -> bool:
    """Whether this Java allows to replace them, and gives texts to other processes as UTF-8."""
    from lakelet.jvm.errors import Py4JError

    jvm: Any = context._jvm
    name = "LAKELET_SESSION_COMMAND"
    system = jvm.java.lang.System
    try:
        own = _map(context)
        own.put(name, "")
        seen = system.getenv(name)
        own.remove(name)
        charsets = {jvm.java.nio.charset.Charset.defaultCharset().name(), system.getProperty("sun.jnu.encoding")}
    except Py4JError:
        return False
    return seen == "" and system.getenv(name) is None and charsets == {"UTF-8"}


def _map(context: SparkContext) -> Any:
    """Java's own map behind the one that it shows."""
    jvm = context._jvm
    shown = _value(jvm, _CLASS, _FIELD, None)
    return _value(jvm, _WRAPPER, _WRAPPED, shown)


def _value(jvm: Any, of_class: str, name: str, of: Any) -> Any:
    field = jvm.java.lang.Class.forName(of_class).getDeclaredField(name)
    field.setAccessible(True)
    return field.get(of)


__all__ = ["can_replace", "replace_variables", "variables"]
