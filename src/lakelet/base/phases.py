"""What a command is doing before it has results: `Analysing 14/25`. Whoever works reports it, the command line shows it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_lock = threading.Lock()
_listeners: list[Callable[[Phase], None]] = []


@dataclass(frozen=True)
class Phase:
    """A part of the work, and how far it is; `total` is None where that is not known."""

    text: str
    done: int = 0
    total: int | None = None

    def __str__(self) -> str:
        return self.text if self.total is None else f"{self.text} {self.done:,}/{self.total:,}"


def report(text: str, done: int = 0, total: int | None = None) -> None:
    """Say what is done now. Without a listener nothing happens."""
    with _lock:
        listeners = tuple(_listeners)
    for listener in listeners:
        listener(Phase(text, done, total))


@contextmanager
def reported_to(listener: Callable[[Phase], None]) -> Iterator[None]:
    """Let `listener` know of every phase that is reported in the block, from any thread."""
    with _lock:
        _listeners.append(listener)
    try:
        yield
    finally:
        with _lock:
            _listeners.remove(listener)


__all__ = ["Phase", "report", "reported_to"]
