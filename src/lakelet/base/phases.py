"""Phases of a command before it has results, such as `Analysing 14/25`: working code reports them, the command line shows them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_lock = threading.Lock()
_MEGABYTE = 1_000_000
_listeners: list[Callable[[Phase], None]] = []


@dataclass(frozen=True)
class Phase:
    """A part of the work and its progress; `total` is None where it is not known. `in_bytes`: both are bytes, shown as megabytes."""

    text: str
    done: int = 0
    total: int | None = None
    in_bytes: bool = False

    def __str__(self) -> str:
        if self.total is None:
            return f"{self.text} {self.done / _MEGABYTE:.1f} MB" if self.in_bytes and self.done else self.text
        if self.in_bytes:
            return f"{self.text} {self.done / _MEGABYTE:.1f}/{self.total / _MEGABYTE:.1f} MB"
        return f"{self.text} {self.done:,}/{self.total:,}"


def report(text: str, done: int = 0, total: int | None = None) -> None:
    """Pass the current phase to the listeners, if there are any."""
    report_phase(Phase(text, done, total))


def report_phase(phase: Phase) -> None:
    """Pass the phase to the listeners, if there are any."""
    with _lock:
        listeners = tuple(_listeners)
    for listener in listeners:
        listener(phase)


@contextmanager
def reported_to(listener: Callable[[Phase], None]) -> Iterator[None]:
    """Call `listener` with every phase that any thread reports in the block."""
    with _lock:
        _listeners.append(listener)
    try:
        yield
    finally:
        with _lock:
            _listeners.remove(listener)


__all__ = ["Phase", "report", "report_phase", "reported_to"]
