"""One pipeline at a time in a process: pyspark's classes are patched for all of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lakelet.base.errors import LakeletError

_guard = threading.Lock()
_holders: list[int] = []  # the thread that works on a pipeline, once for each block that it is in


@contextmanager
def only_pipeline(*, nested: bool = False) -> Iterator[None]:
    """Hold the process for one pipeline for the life of the block.

    `nested`: the block may stand inside another one of the same thread.

    Raises PROCESS_BUSY while another pipeline of this process is loaded, validated, planned or run, in whatever thread: names of one would
    be looked up in the other.
    """
    with _guard:
        if _holders and not (nested and _holders[0] == threading.get_ident()):
            raise LakeletError(
                "PROCESS_BUSY",
                "another pipeline is being loaded or run in this process",
                todo="Run them one after the other, or each in a process of its own.",
            )
        _holders.append(threading.get_ident())
    try:
        yield
    finally:
        with _guard:
            _holders.pop()


__all__ = ["only_pipeline"]
