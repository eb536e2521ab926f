"""The session that user code finds: pyspark's own notion of it, its record of the lines that call it, `createDataFrame` and `display`."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

import pyspark
from pyspark.errors import PySparkException, PySparkTypeError
from pyspark.sql.types import StructType, _parse_datatype_string

from lakelet.base.patching import Patch, without_context
from lakelet.base.user_code import user_code_runs
from lakelet.spark.patches import owners
from lakelet.spark.patches.doors import Call, Rest, around
from lakelet.spark.settings import note_once

SESSION: tuple[Patch, ...] = (
    Patch(
        owners.SESSION,
        "_instantiatedSession",
        lambda _, session: session,
        "SparkSession.builder.getOrCreate() of user code means the update's session",
        "2.0.0",
    ),
    Patch(
        owners.SESSION,
        "_activeSession",
        lambda _, session: session,
        "getActiveSession() of user code means the update's session; createDataFrame() sets it, too",
        "3.0.0",
    ),
)
"""Patches that make the update's session that of the process; the context is the session."""


def _calling_frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _lines_outside_pyspark(original: Callable[[int], str]) -> Callable[[int], str]:
    """What pyspark finds, "file:line" of the `depth` innermost frames outside of it, without a search for IPython at each call."""
    inside = os.path.dirname(pyspark.__file__)

    def found(depth: int) -> str:
        shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
        if shell is not None and shell() is not None:  # a notebook, whose cells pyspark names; the innermost frame is this one
            return original(depth + 1).partition("\n")[2]
        outside = (frame for frame in _calling_frames(sys._getframe(1)) if inside not in frame.f_code.co_filename)
        return "\n".join(f"{frame.f_code.co_filename}:{frame.f_lineno}" for frame in itertools.islice(outside, depth))

    return found


REPORTED_LINES: tuple[Patch, ...] = (
    Patch(
        "pyspark.errors.utils",
        "is_debugging_enabled",
        without_context(lambda enabled: lambda: user_code_runs() and enabled()),
        "a call on a column or frame costs eight round trips to Java to report its line, which says something only of user code",
        "4.0.0",
    ),
    Patch(
        "pyspark.errors.utils",
        "_capture_call_site",
        without_context(_lines_outside_pyspark),
        "pyspark tries to import IPython for each line: where it is not installed, a search of all folders of sys.path",
        "4.0.0",
    ),
)
"""Patches that keep pyspark from sending the lines of Lakelet's own calls to Java, and find those of user code quickly."""

CALL_SITES: tuple[Patch, ...] = (
    Patch(
        "pyspark.errors.utils",
        "_enable_debugging_cache",
        lambda _original, _context: False,
        "in analysis: a call on a frame costs eight round trips to Java to report its line; errors are raised where the call stands",
        "4.0.0",
    ),
)
"""Patches that keep pyspark from sending the line of any call to Java."""


# ----------------------------------------------------------------------------------------------------- createDataFrame


_REFUSED_TYPES = ("FIELD_DATA_TYPE_UNACCEPTABLE", "FIELD_DATA_TYPE_UNACCEPTABLE_WITH_NAME")


@around("Spark Connect converts values that a session refuses")
def convert_rows(call: Call, rest: Rest) -> Any:
    """Create the data frame; values that are refused are converted: an `int` for a DOUBLE column, a number for a STRING column.

    Spark's own pipeline tool and serverless compute of Databricks run on Spark Connect, which converts values with Arrow; a session in this
    process checks their classes first.
    """
    try:
        return rest(call)
    except PySparkTypeError as refused:
        schema = call.get("schema")
        table = _rows_as_arrow(call.get("data"), schema) if refused.getCondition() in _REFUSED_TYPES else None
        if table is None:
            raise
        return rest(replace(call, arguments={"data": table, "schema": schema}))


def _rows_as_arrow(rows: Any, schema: Any) -> Any:
    """Return the rows as an Arrow table of the schema, as Spark Connect converts them; None where it refuses them too."""
    import pyarrow as pa
    from pyspark.sql.conversion import LocalDataToArrowConversion

    if not isinstance(rows, Sequence) or not isinstance(schema, StructType | str):
        return None
    try:
        wanted = _parse_datatype_string(schema) if isinstance(schema, str) else schema
        return LocalDataToArrowConversion.convert(rows, wanted, False) if isinstance(wanted, StructType) else None
    except (PySparkException, pa.ArrowException, ValueError, TypeError):
        return None


# ------------------------------------------------------------------------------------------------------------- display


def _display_nothing(_: Any) -> Any:
    def display(self: Any, *args: Any, **kwargs: Any) -> None:
        note_once("display shows nothing in a pipeline")

    return display


DISPLAY: tuple[Patch, ...] = (
    Patch(
        owners.FRAME,
        "display",
        without_context(_display_nothing),
        "notebooks show rows; a pipeline has no reader",
        "4.0.0",
        optional=True,
    ),
)
"""Patches that give data frames the method `display`."""

__all__ = ["CALL_SITES", "DISPLAY", "REPORTED_LINES", "SESSION", "convert_rows"]
