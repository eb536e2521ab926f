"""Python's audit events, for those that listen.

Python keeps an audit hook for the life of the process. This module installs one, once; it does nothing while nobody listens. Events of all
threads are heard: code of the user may start some.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

__lakelet_passes_on__ = True
"""See `lakelet.files.reads.PASSES_ON`."""

Heard = Callable[[tuple[Any, ...]], None]
"""Called with the arguments of an event, before what it announces happens. What it raises ends the call that is announced."""


class Listener:
    """One part of Lakelet that hears events, from `begin` to `end`. `heard`: what to call, by the name of the event."""

    def __init__(self, heard: Mapping[str, Heard]) -> None:
        self.heard = heard

    def begin(self) -> None:
        """Hear events from now on."""
        global _installed, _listeners
        with _lock:
            _listeners = (*_listeners, self)
            if not _installed:
                sys.addaudithook(_audit)
                _installed = True

    def end(self) -> None:
        """Hear nothing more. Does nothing the second time."""
        global _listeners
        with _lock:
            _listeners = tuple(one for one in _listeners if one is not self)


_listeners: tuple[Listener, ...] = ()
_installed = False
_lock = threading.Lock()
_thread = threading.local()


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    for listener in _listeners:
        heard = listener.heard.get(event)
        if heard is not None and not is_unheard():
            with unheard():
                heard(arguments)


def is_unheard() -> bool:
    """Return whether this thread is in a block of `unheard`, or hears an event."""
    return getattr(_thread, "unheard", False)


@contextmanager
def unheard() -> Iterator[None]:
    """Let nobody hear the events of this thread for the life of the block."""
    before, _thread.unheard = is_unheard(), True
    try:
        yield
    finally:
        _thread.unheard = before


__all__ = ["Heard", "Listener", "is_unheard", "unheard"]
