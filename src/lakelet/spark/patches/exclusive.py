"""One pipeline at a time in a process: pyspark's classes are patched for all of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lakelet.base.errors import LakeletError

_open = threading.Lock()


@contextmanager
def only_pipeline() -> Iterator[None]:
    """Hold the process for one pipeline for the life of the block.

    Raises PROCESS_BUSY while another pipeline of this process is loaded, validated, planned or run, in whatever thread: the patches
    of the two would be taken off in the wrong order, and names of one would be looked up in the other.
    """
    if not _open.acquire(blocking=False):
        raise LakeletError(
            "PROCESS_BUSY",
            "another pipeline is being loaded or run in this process",
            todo="Run them one after the other, or each in a process of its own.",
        )
    try:
        yield
    finally:
        _open.release()


__all__ = ["only_pipeline"]
