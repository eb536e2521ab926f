"""How an update is stopped from outside: Ctrl-C, or SIGTERM of whoever started the process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

QUICK_SECONDS = 2.0
"""For so long after the first one further interrupts are taken for the same one."""
INTERRUPTED = 130


class TerminationSignal(KeyboardInterrupt):
    """SIGTERM came; treated like Ctrl-C."""


def cancellation_cause(stop: BaseException) -> str:
    """Return the cause of the cancellation, as the event log names it (EL-9)."""
    return "WORKFLOW_CANCELLATION" if isinstance(stop, TerminationSignal) else "USER_ACTION"


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `TerminationSignal` in the main thread when SIGTERM comes inside the block. Outside of the main thread nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _Stopper(TerminationSignal))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def only_interrupting() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt inside the block, and nothing else.

    pyspark's handler first cancels all jobs: their flows would fail before the update knows that it is being stopped.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _Stopper(KeyboardInterrupt))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def end_at_next() -> None:
    """An interrupt was answered and the process is about to end: one more ends it at once, without a traceback."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _Stopper(None))


class _Stopper:
    """Answers a signal: raises `kind` the first time. Later ones would hit the orderly end: quick ones are left out, others end at once.

    An update that ends like this is repaired by the next one, as after any death of a process.
    """

    def __init__(self, kind: type[BaseException] | None) -> None:
        self._kind, self._first = kind, time.monotonic() if kind is None else None

    def __call__(self, *_: Any) -> None:
        now = time.monotonic()
        if self._first is None and self._kind is not None:
            self._first = now
            raise self._kind
        if self._first is not None and now - self._first > QUICK_SECONDS:
            os._exit(INTERRUPTED)
