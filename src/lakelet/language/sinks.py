"""Sinks as declared: `create_sink` and `@foreach_batch_sink` (SK-1).

A sink is a target outside of the pipeline; append flows and update flows write to it. `flows.sinks` runs them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from lakelet.base.errors import Location
from lakelet.base.names import TableName
from lakelet.base.redaction import remember_secrets
from lakelet.base.text import kafka_option, option_text
from lakelet.base.user_code import caller_location, function_location
from lakelet.language.argument_types import F, Settings
from lakelet.language.arguments import invalid
from lakelet.language.model import Dataset, Kind, Sink
from lakelet.language.registry import active_registry
from lakelet.language.wrappers import NO_RULES, NO_RULES_TODO, PENDING, RULELESS, check_signature, function_name

HANDLER = "foreach_batch"
"""The format of a sink whose rows go to a function of the user's."""

_OURS = ("txnappid", "txnversion")
_CHECKPOINT = "checkpointlocation"
_KAFKA_SERVERS = "kafka.bootstrap.servers"


def create_sink(name: str, format: str, options: Settings | None = None) -> None:
    """Declare a sink: a target outside of the pipeline, to which append flows and update flows write (SK-1).

    Args:
        name: of the sink; flows name it as their target.
        format: `delta` with the option `path` or `tableName`, `kafka`, or any other format that Spark can write streams to.
        options: given to Spark's writer as they are.

    Raises ARGUMENT_INVALID for an option that the format needs and that is missing, or that Lakelet sets itself.
    """
    where = caller_location()
    if not isinstance(format, str) or not format.strip():
        raise invalid(f"format must be the name of a data source as text, got {format!r}", where)
    given = _checked_options(options, where)
    table = _delta_table_name(given, where) if format.lower() == "delta" else None
    if format.lower() == "kafka" and _KAFKA_SERVERS not in {key.lower() for key in given}:
        raise invalid(f"a kafka sink needs the option {_KAFKA_SERVERS}", where, f'Write options={{"{_KAFKA_SERVERS}": "host:9092", ...}}.')
    sink = Sink(format, given, table=table)
    if sink.is_files and "path" not in {key.lower() for key in given}:
        raise invalid(f"a {format} sink has no path", where, 'Write options={"path": "..."}.')
    for key in given:
        if key.lower().startswith("databricks."):
            active_registry().note(f"the option {key} of sink {name!r} has no effect here: it belongs to Databricks", where)
    _add_sink(name, sink, where)


def foreach_batch_sink(name: F | str | None = None) -> F | Callable[[F], F]:
    """Declare the decorated function as a sink (SK-1): it is called with each micro-batch, a DataFrame, and its number.

    A decorator, with and without parentheses.

    Args:
        name: of the sink; the function's name by default.

    Raises ARGUMENT_INVALID for a name that is no text, or a function that does not take two arguments.
    """
    if callable(name):
        return _declare_handler(name, None)
    where = caller_location()
    if name is not None and not isinstance(name, str):
        raise invalid(f"name must be text, got {type(name).__name__}", where)
    return lambda function: _declare_handler(function, name)


def _declare_handler(function: F, name: str | None) -> F:
    if not callable(function):
        raise invalid(f"foreach_batch_sink decorates a function, got {function!r}", caller_location())
    where = function_location(function)
    if getattr(function, PENDING, None):
        raise invalid(NO_RULES, where, NO_RULES_TODO)
    what = "a sink's function is called with a DataFrame and a batch id"
    check_signature(function, where, (None, 0), what, "def handler(df, batch_id):")
    _add_sink(name if name is not None else function_name(function, "sink", where), Sink(HANDLER, handler=function), where)

    @functools.wraps(function)
    def call(df: Any, batch_id: int) -> Any:
        return function(df, batch_id)

    setattr(call, RULELESS, True)
    return call  # type: ignore[return-value]


def _add_sink(name: Any, sink: Sink, where: Location) -> None:
    if not isinstance(name, str) or not name.strip():
        raise invalid(f"a sink's name must be text, got {name!r}", where)
    registry = active_registry()
    registry.add_dataset(Dataset(registry.resolve(name, where), Kind.SINK, where, sink=sink))


def _checked_options(options: Any, where: Location) -> dict[str, str]:
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(key, str) for key in options):
        raise invalid(f"options must be a dictionary with text keys, got {type(options).__name__}", where)
    missing = [key for key, value in options.items() if value is None]
    if missing:
        raise invalid(f"the option {missing[0]} has no value", where, "Leave it out, or give it one.")
    ours = [key for key in options if key.lower() in _OURS]
    if ours:
        todo = "Leave it out: the flow's marks are kept in the storage."
        raise invalid(f"the option {ours[0]} of a sink is not the user's to set", where, todo)
    for key in options:
        if key.lower() == _CHECKPOINT:
            active_registry().note(f"the option {key} of a sink has no effect: the flow's checkpoint lies in the storage", where)
    texts = {key: option_text(kafka_option(key, value)) for key, value in options.items() if key.lower() != _CHECKPOINT}
    remember_secrets(texts)
    return texts


def _delta_table_name(options: Mapping[str, str], where: Location) -> TableName | None:
    """The table that a Delta sink names; None for one with a path."""
    given = {key.lower(): value for key, value in options.items()}
    path, table = given.get("path"), given.get("tablename")
    if (path is None) == (table is None):
        what = "neither path nor tableName" if path is None else "both path and tableName"
        raise invalid(f"a delta sink has {what}", where, 'Write options={"path": "..."} or options={"tableName": "catalog.schema.table"}.')
    return active_registry().resolve(table, where) if table is not None else None
