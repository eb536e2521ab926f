"""pyspark's own notion of the session, and its record of the lines that call it."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType

import pyspark

from lakelet.base.patching import Patch, without_context
from lakelet.base.user_code import user_code_runs
from lakelet.spark.patches import owners

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


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _found_outside_notebooks(original: Callable[[int], str]) -> Callable[[int], str]:
    """What pyspark finds, "file:line" of the `depth` innermost frames outside of it, without a search for IPython at each call."""
    inside = os.path.dirname(pyspark.__file__)

    def found(depth: int) -> str:
        shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
        if shell is not None and shell() is not None:  # a notebook, whose cells pyspark names; the innermost frame is this one
            return original(depth + 1).partition("\n")[2]
        outside = (frame for frame in _frames(sys._getframe(1)) if inside not in frame.f_code.co_filename)
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
        without_context(_found_outside_notebooks),
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

__all__ = ["CALL_SITES", "REPORTED_LINES", "SESSION"]
