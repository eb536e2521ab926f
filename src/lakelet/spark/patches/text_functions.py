"""Gives the session functions that Spark has not, before it gets SQL text that may call them.

These depend on the text or on what holds when it is run; functions that do not are registered once (`other_names`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql import SparkSession

from lakelet.language.sql_text.tokens import may_have
from lakelet.spark.patches import current_names, groups, json_schemas, secret_functions
from lakelet.spark.patches.doors import Call, before

_REGISTERED: Mapping[tuple[str, ...], Callable[[SparkSession, str], None]] = {
    secret_functions.NAMES: secret_functions.register,
    groups.NAMES: lambda session, _: groups.register(session),
    (json_schemas.NAME,): lambda session, _: json_schemas.register(session),
    current_names.NAMES: lambda session, _: current_names.register(session),
}
"""What gives a session functions for a text, by their names."""
_ALL = tuple(name for names in _REGISTERED for name in names)


@before("Spark has no secrets, no groups of users, no schema of many JSON texts, and other names of catalog and schema")
def functions(call: Call) -> Call:
    """Register the functions that the texts of a call name."""
    session = call.target if isinstance(call.target, SparkSession) else call.update
    for text in _texts(call):
        if may_have(text, _ALL):
            for names, register in _REGISTERED.items():
                if may_have(text, names):
                    register(session, text)
    return call


def _texts(call: Call) -> Iterator[str]:
    for value in (*call.arguments.values(), *call.get("kwargs", {}).values()):
        yield from (text for text in _flat(value) if isinstance(text, str))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _flat(item)
    else:
        yield value


__all__ = ["functions"]
