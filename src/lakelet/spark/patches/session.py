"""pyspark's own notion of the session, and its record of the lines that call it."""

from __future__ import annotations

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

OWN_CALLS: tuple[Patch, ...] = (
    Patch(
        "pyspark.errors.utils",
        "is_debugging_enabled",
        without_context(lambda enabled: lambda: user_code_runs() and enabled()),
        "a call on a column or frame costs eight round trips to Java to report its line, which says something only of user code",
        "4.0.0",
    ),
)
"""Patches that keep pyspark from sending the lines of Lakelet's own calls to Java. Those of user code are in what Spark raises later."""

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

__all__ = ["CALL_SITES", "OWN_CALLS", "SESSION"]
