"""Notes calls of Spark by user code during loading and analysis whose results cannot be compared later (IF-5).

Queries that functions return are compared by their plans. The rest are files that code reads with Spark itself, rows that it collects, and
tables that it reads or writes at the top level of a file.
"""

from __future__ import annotations

from lakelet.base.user_code import caller_location
from lakelet.files.reads import note_doubt
from lakelet.language.registry import active_reader
from lakelet.spark.patches.doors import Call, before

_WHY = "an update with nothing to do runs without Spark only where everything that was read is compared"


@before(_WHY)
def noted(call: Call) -> Call:
    """Note a call of user code, wherever it stands."""
    if not call.by_lakelet and not call.by_pyspark:
        note_doubt(f"{caller_location()} calls {call.method}")
    return call


@before(_WHY)
def noted_outside(call: Call) -> Call:
    """Note a call of user code at the top level of a file; functions of datasets describe queries by it."""
    if active_reader() is None and not call.by_lakelet and not call.by_pyspark:
        note_doubt(f"{caller_location()} calls {call.method}")
    return call


__all__ = ["noted", "noted_outside"]
