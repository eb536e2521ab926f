"""Notes calls of Spark by user code during loading and analysis whose results cannot be compared later (IF-5).

Queries that functions return are compared by their plans. The rest are files that code reads with Spark itself, rows that it collects, and
tables that it reads or writes at the top level of a file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from lakelet.base.locations import PACKAGE, caller_location
from lakelet.base.patching import Patch, without_context
from lakelet.files.reads import note_doubt
from lakelet.language.registry import active_reader
from lakelet.spark.patches import owners
from lakelet.spark.patches.actions import ASKING, WRITING

_PATCHES = os.path.dirname(os.path.abspath(__file__)) + os.sep
_WHY = "an update with nothing to do runs without Spark only where everything that was read is compared"
_READS = {
    "load": "1.4.0",
    "csv": "2.0.0",
    "json": "1.4.0",
    "jdbc": "1.4.0",
    "orc": "1.5.0",
    "parquet": "1.4.0",
    "text": "1.6.0",
    "xml": "4.0.0",
}
_NAMED = ((owners.SESSION, "sql", "2.0.0"), (owners.SESSION, "table", "2.0.0"), (owners.BATCH_READER, "table", "1.4.0"))


def _noted(name: str, *, also_in_functions: bool = True) -> Callable[[Any], Any]:
    """`also_in_functions`: not only at the top level of a file."""

    def make(original: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if (also_in_functions or active_reader() is None) and _is_called_by_user():
                note_doubt(f"{caller_location()} calls {name}")
            return original(self, *args, **kwargs)

        return call

    return make


def _is_called_by_user() -> bool:
    """Return whether neither Lakelet nor pyspark called the patched method; other patches of it, which pass the call on, do not count."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PATCHES):
        frame = frame.f_back
    module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return not frame.f_code.co_filename.startswith(PACKAGE) and module != "pyspark"


UNRECORDED: tuple[Patch, ...] = (
    *(Patch(owners.BATCH_READER, name, without_context(_noted(name)), _WHY, since) for name, since in _READS.items()),
    *(Patch(owner, name, without_context(_noted(name, also_in_functions=False)), _WHY, since) for owner, name, since in _NAMED),
    *(Patch(owners.FRAME, name, without_context(_noted(name)), _WHY, since) for name, since in ASKING.items()),
    *(Patch(owner, name, without_context(_noted(name)), _WHY, since) for owner, names in WRITING.items() for name, since in names.items()),
)
"""Patches that note calls of user code other than the description of queries."""

__all__ = ["UNRECORDED"]
