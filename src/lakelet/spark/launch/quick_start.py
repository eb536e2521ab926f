"""Spares a session what pyspark and pyarrow import when they start, and few updates need."""

from __future__ import annotations

from lakelet.base.imports import after_import, unless_imported
from lakelet.base.patching import patched_with
from lakelet.spark.patches.python_processes import PANDAS_UNTOUCHED


def import_pyspark() -> None:
    """Import what pyspark imports in its first call to Java, where all would wait for it. Raises ImportError.

    That is a module of its tests, which imports pandas only to see whether it can; pandas takes as long as all the rest.
    """
    with patched_with(PANDAS_UNTOUCHED):
        import pyspark.testing.utils  # noqa: F401


def leave_pandas() -> None:
    """Let pyarrow know pandas when somebody else has imported it, and not import it itself to see whether a list is a pandas object.

    Where pyarrow has to find out the type of a list, it imports pandas all the same.
    """
    with unless_imported("pandas"):
        from pyarrow.lib import _pandas_api

        if not _pandas_api.have_pandas:
            after_import("pandas", lambda: _pandas_api.pd)


__all__ = ["import_pyspark", "leave_pandas"]
