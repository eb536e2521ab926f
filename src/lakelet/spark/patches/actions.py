"""Actions of user code inside datasets' functions (decision 0019): the active reader notes them, and writes are refused.

A function is called several times per update, also when nothing may be written.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from pyspark.sql import DataFrame

from lakelet.base.errors import LakeletError, Location
from lakelet.base.locations import PACKAGE, caller_location
from lakelet.base.patching import Patch, without_context
from lakelet.language.registry import active_reader
from lakelet.spark.patches import owners

_working = threading.local()


@runtime_checkable
class ActionWatcher(Protocol):
    """A reader that is notified of actions."""

    def on_action(self, action: str, frame: DataFrame, where: Location) -> bool:
        """User code is about to call `action` on `frame`; whether it is to be done. May raise."""

    def on_look(self) -> None:
        """User code reads data in a way that is not observed further."""


def _pivoted(self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> DataFrame | None:
    """Return the frame that `pivot` evaluates to find its columns; None if they are given."""
    values = args[1] if len(args) > 1 else kwargs.get("values")
    return self._df if values is None else None


def _reported(name: str, asked_of: Callable[[Any, tuple[Any, ...], dict[str, Any]], DataFrame | None]) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        def action(self: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(_working, "busy", False):
                return original(self, *args, **kwargs)
            reader, frame = _reader_of_user(), asked_of(self, args, kwargs)
            if reader is not None and frame is not None and not reader.on_action(name, frame, caller_location()):
                return None
            _working.busy = True  # an action may use others, and so may one of this package
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


def _as_rdd(original: Any) -> property:
    """Note the access: actions on an RDD are not observed (decision 0019)."""

    def rdd(self: Any) -> Any:
        reader = _reader_of_user()
        if reader is not None:
            reader.on_look()
        return original.__get__(self, type(self))

    return property(rdd, doc=original.__doc__)


def _reader_of_user() -> ActionWatcher | None:
    """Return the active reader if user code calls; None for calls of this package and within an action. The caller is two frames up."""
    if getattr(_working, "busy", False) or sys._getframe(2).f_code.co_filename.startswith(PACKAGE):
        return None
    reader = active_reader()
    return reader if isinstance(reader, ActionWatcher) else None


ASKING = {
    "collect": "1.3.0",
    "count": "1.3.0",
    "first": "1.3.0",
    "head": "1.3.0",
    "take": "1.3.0",
    "tail": "3.0.0",
    "isEmpty": "3.3.0",
    "show": "1.3.0",
    "toPandas": "1.3.0",
    "toArrow": "4.0.0",
    "toLocalIterator": "2.0.0",
    "checkpoint": "2.1.0",
    "localCheckpoint": "2.3.0",
}
"""Methods of data frames that read rows, with the version of pyspark that added each."""
WRITING: dict[str, dict[str, str]] = {
    owners.FRAME: {"foreach": "1.3.0", "foreachPartition": "1.3.0"},
    owners.BATCH_WRITER: {
        "save": "1.4.0",
        "saveAsTable": "1.4.0",
        "insertInto": "1.4.0",
        "json": "1.4.0",
        "csv": "2.0.0",
        "parquet": "1.4.0",
        "orc": "1.5.0",
        "text": "1.6.0",
        "xml": "4.0.0",
        "jdbc": "1.4.0",
    },
    owners.TABLE_WRITER: dict.fromkeys(("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions"), "3.1.0"),
    owners.STREAM_WRITER: {"start": "2.0.0", "toTable": "3.1.0"},
}
_ASKS, _REFUSED = "analysis is notified of actions in functions", "a dataset's function may not write"

ACTIONS: tuple[Patch, ...] = (
    *(
        Patch(owners.FRAME, name, without_context(_reported(name, lambda self, args, kwargs: self)), _ASKS, since)
        for name, since in ASKING.items()
    ),
    Patch(owners.FRAME, "rdd", without_context(_as_rdd), "analysis is notified that a function looks at rows", "1.3.0"),
    Patch(owners.GROUPED, "pivot", without_context(_reported("pivot", _pivoted)), _ASKS, "1.6.0"),
    *(
        Patch(owner, name, without_context(_refused(f"{owner.rpartition('.')[2]}.{name}")), _REFUSED, since)
        for owner, names in WRITING.items()
        for name, since in names.items()
    ),
)
"""Patches that report actions of user code to the active reader and refuse writes."""

__all__ = ["ACTIONS", "ASKING", "WRITING", "ActionWatcher"]
