"""Actions inside datasets' functions: who asks for rows while a query is only described (dlt-semantics 1.4, decision 0019).

The reader that is active in the thread is told of each action of user code, and writes are refused: a function is called several times per
update, also when nothing may be written.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

from pyspark.sql import DataFrame
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.group import GroupedData
from pyspark.sql.readwriter import DataFrameWriter, DataFrameWriterV2
from pyspark.sql.streaming.readwriter import DataStreamWriter

from lakelet.base.errors import LakeletError, Location
from lakelet.base.locations import PACKAGE, caller_location
from lakelet.base.user_code import Passing
from lakelet.config import properties
from lakelet.language.registry import active_reader
from lakelet.spark.names.paths import wrapping

STRICT = "lakelet.strictActions"
"""Configuration key: `true` refuses actions inside functions."""

_ACTIONS = (
    *("collect", "count", "first", "head", "take", "tail", "isEmpty", "show", "toPandas", "toArrow", "toLocalIterator"),
    *("checkpoint", "localCheckpoint"),
)
_WRITES: dict[type, tuple[str, ...]] = {
    ClassicDataFrame: ("foreach", "foreachPartition"),
    DataFrameWriter: ("save", "saveAsTable", "insertInto", "json", "csv", "parquet", "orc", "text", "xml", "jdbc"),
    DataFrameWriterV2: ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions"),
    DataStreamWriter: ("start", "toTable"),
}
_working = threading.local()


def strict(parameters: Mapping[str, str]) -> bool:
    """Whether the configuration refuses actions. Raises PROPERTY_INVALID for a value that is neither true nor false."""
    try:
        return properties.switch(properties.look_up(parameters, STRICT) or "false")
    except ValueError as problem:
        raise LakeletError("PROPERTY_INVALID", f"{STRICT}: {problem}", todo="Correct the value in the pipeline's configuration.") from None


class RowsAsked(Passing):
    """A function under analysis asks for rows of tables that have stand-ins. No Exception, so that functions do not catch it."""


@runtime_checkable
class Watching(Protocol):
    """A reader that is told of actions."""

    def acted(self, action: str, frame: DataFrame, where: Location) -> None:
        """`action` is about to be done on `frame`. May raise."""


@contextmanager
def watched() -> Iterator[None]:
    """Tell the active reader of actions, and refuse writes, for the life of the block."""
    with wrapping() as wrap:
        for name in _ACTIONS:
            wrap(ClassicDataFrame, name, _told(name, lambda self, args, kwargs: self))
        wrap(GroupedData, "pivot", _told("pivot", _pivoted))
        for owner, names in _WRITES.items():
            for name in names:
                wrap(owner, name, _refused(f"{owner.__name__}.{name}"))
        yield


def _pivoted(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DataFrame | None:
    """What `pivot` looks at to find its columns; None where they are given."""
    values = args[1] if len(args) > 1 else kwargs.get("values")
    return self._df if values is None else None


def _told(name: str, asked_of: Callable[[Any, tuple[Any, ...], dict[str, Any]], DataFrame | None]) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        def action(self: Any, *args: Any, **kwargs: Any) -> Any:
            reader, frame = _reader_of_user(), asked_of(self, args, kwargs)
            if reader is None or frame is None:
                return original(self, *args, **kwargs)
            reader.acted(name, frame, caller_location())
            _working.busy = True  # an action may use others
            try:
                return original(self, *args, **kwargs)
            finally:
                _working.busy = False

        return action

    return make


def _refused(name: str) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        def write(self: Any, *args: Any, **kwargs: Any) -> Any:
            if _reader_of_user() is None:
                return original(self, *args, **kwargs)
            raise LakeletError(
                "ACTION_IN_FUNCTION",
                f"{name} writes or sends inside a dataset's function",
                where=caller_location(),
                why="the function is called several times per update, also when nothing may be written",
                todo="Return the query: what it should write is the dataset itself, or a sink (create_sink, foreach_batch_sink).",
            )

        return write

    return make


def _reader_of_user() -> Watching | None:
    """The active reader if user code is calling: neither this package nor an action that is told already. Two frames up is the caller."""
    if getattr(_working, "busy", False) or sys._getframe(2).f_code.co_filename.startswith(PACKAGE):
        return None
    reader = active_reader()
    return reader if isinstance(reader, Watching) else None


def refused(action: str, where: Location) -> LakeletError:
    """The error of an action where they are not wanted."""
    return LakeletError(
        "ACTION_IN_FUNCTION",
        f"{action}() runs a query inside a dataset's function, and {STRICT} is true",
        where=where,
        why="the function is called several times per update, and should only describe a query",
        todo="Write it as a part of the query: a join, an aggregate, a window. Actions at the top level of a file are fine.",
    )


__all__ = ["STRICT", "RowsAsked", "Watching", "refused", "strict", "watched"]
