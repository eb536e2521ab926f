"""Actions of user code with Spark (decision 0019) and reads of it that cannot be compared later (IF-5).

The active reader is notified of actions in datasets' functions, and writes there are refused: a function is called several times per
update, also when nothing may be written. Queries that functions return are compared by their plans. Files that code reads with Spark
itself, rows that it collects, and tables that it reads or writes at the top level of a file are not, so each such call is noted.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Protocol, runtime_checkable

from pyspark.sql import DataFrame

from lakelet.base.errors import LakeletError, Location
from lakelet.base.patching import Patch, without_context
from lakelet.base.user_code import PACKAGE, caller_location
from lakelet.files.reads import note_stale_reason
from lakelet.language.registry import active_reader
from lakelet.spark.patches import owners
from lakelet.spark.patches.doors import Call, Rest, around, before

_thread_state = threading.local()


@runtime_checkable
class ActionWatcher(Protocol):
    """A reader that is notified of actions."""

    def on_action(self, action: str, frame: DataFrame, where: Location) -> bool:
        """User code is about to call `action` on `frame`; whether to do it. May raise."""

    def on_look(self) -> None:
        """User code reads data in a way that is not observed further."""


@around("analysis is notified of actions in functions")
def report_action(call: Call, rest: Rest) -> Any:
    """Notify the active reader, which may say not to do it."""
    if _is_inside_an_action():
        return rest(call)
    reader, frame = _action_watcher(by_lakelet=call.by_lakelet), call.target if call.method != "pivot" else _frame_evaluated_by_pivot(call)
    if reader is not None and frame is not None and not reader.on_action(call.method, frame, caller_location()):
        return None
    _thread_state.busy = True  # an action may use others, and so may one of this package
    try:
        return rest(call)
    finally:
        _thread_state.busy = False


def _frame_evaluated_by_pivot(call: Call) -> DataFrame | None:
    """Return the frame that `pivot` evaluates to find its columns; None if they are given."""
    return call.target._df if call.get("values") is None else None


@before("a dataset's function may not write")
def refuse_write(call: Call) -> Call:
    """Refuse a call of a dataset's function that writes. Raises ACTION_IN_FUNCTION."""
    if _is_inside_an_action() or _action_watcher(by_lakelet=call.by_lakelet) is None:
        return call
    raise LakeletError(
        "ACTION_IN_FUNCTION",
        f"{type(call.target).__name__}.{call.method} writes or sends inside a dataset's function",
        where=caller_location(),
        why="the function is called several times per update, also when nothing may be written",
        todo="Return the query: what it should write is the dataset itself, or a sink (create_sink, foreach_batch_sink).",
    )


def _as_rdd(original: Any) -> property:
    """Note the access: actions on an RDD are not observed (decision 0019)."""

    def rdd(self: Any) -> Any:
        watcher = None if _is_inside_an_action() else _action_watcher(by_lakelet=sys._getframe(1).f_code.co_filename.startswith(PACKAGE))
        if watcher is not None:
            watcher.on_look()
        return original.__get__(self, type(self))

    return property(rdd, doc=original.__doc__)


def _is_inside_an_action() -> bool:
    return getattr(_thread_state, "busy", False)


def _action_watcher(*, by_lakelet: bool) -> ActionWatcher | None:
    """Return the active reader if user code calls; None for calls of this package."""
    reader = active_reader()
    return reader if not by_lakelet and isinstance(reader, ActionWatcher) else None


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
RDD = Patch(owners.FRAME, "rdd", without_context(_as_rdd), "analysis is notified that a function looks at rows", "1.3.0")
"""The one attribute with an action that is no method."""


# --------------------------------------------------------------------------------------- what cannot be compared later


_NOTED_WHY = "an update with nothing to do runs without Spark only where everything that was read is compared"


@before(_NOTED_WHY)
def note_call(call: Call) -> Call:
    """Note a call of user code, wherever it stands."""
    if not call.by_lakelet and not call.by_pyspark:
        note_stale_reason(f"{caller_location()} calls {call.method}")
    return call


@before(_NOTED_WHY)
def note_top_level_call(call: Call) -> Call:
    """Note a call of user code at the top level of a file; functions of datasets describe queries by it."""
    if active_reader() is None and not call.by_lakelet and not call.by_pyspark:
        note_stale_reason(f"{caller_location()} calls {call.method}")
    return call


__all__ = ["ASKING", "RDD", "WRITING", "ActionWatcher", "note_call", "note_top_level_call", "refuse_write", "report_action"]
