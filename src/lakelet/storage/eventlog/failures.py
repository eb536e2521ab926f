"""Converts errors of reading or writing the event log into coded ones (ST-17). No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lakelet.base.errors import LakeletError
from lakelet.files.durable import storage_failure
from lakelet.files.paths import AnyPath

_TODO = "Repair the folder, or move it away: the next update makes a new event log, and the tables stay as they are."


@contextmanager
def coded(path: AnyPath, *, passing: type[Exception] = LakeletError) -> Iterator[None]:
    """Raise STORAGE_FAILED or EVENT_LOG_FAILED for what fails while the log at `path` is used; coded errors and `passing` pass."""
    try:
        yield
    except (LakeletError, passing):
        raise
    except Exception as problem:
        raise log_failure(problem, path) from problem


def log_failure(problem: BaseException, path: AnyPath) -> LakeletError:
    """The coded error for what failed while the log at `path` was used."""
    if isinstance(problem, LakeletError):
        return problem
    lines = str(problem).strip().splitlines()
    what = f"the event log {path} cannot be read or written"
    why = f"{type(problem).__name__}: {lines[0][:300]}" if lines else type(problem).__name__
    return storage_failure(problem, path) or LakeletError("EVENT_LOG_FAILED", what, why=why, todo=_TODO)
