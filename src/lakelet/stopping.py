"""How an update is stopped from outside: Ctrl-C, or SIGTERM of whoever started the process. Layer 0."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Terminated(KeyboardInterrupt):
    """SIGTERM came; treated like Ctrl-C."""


def cancellation_cause(stop: BaseException) -> str:
    """Who stopped the update, in the words of the event log (dlt-semantics 4.3)."""
    return "WORKFLOW_CANCELLATION" if isinstance(stop, Terminated) else "USER_ACTION"


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Terminated` in the main thread when SIGTERM comes inside the block. Outside of the main thread nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
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
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _terminate(*_: Any) -> None:
    raise Terminated
