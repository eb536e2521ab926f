"""Locks of tables between the flows of one process; the lease keeps other processes out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lakelet.files.paths import AnyPath


class TableLock:
    """Lets many appends run beside each other, and a change of the table's description alone.

    Delta refuses a commit when the columns changed since its transaction began (RE-11).
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._shared = 0
        self._alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._alone)
            self._shared += 1
        try:
            yield
        finally:
            with self._condition:
                self._shared -= 1
                self._condition.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._alone and not self._shared)
            self._alone = True
        try:
            yield
        finally:
            with self._condition:
                self._alone = False
                self._condition.notify_all()


_locks: dict[str, TableLock] = {}
_locks_guard = threading.Lock()


def lock_of(path: AnyPath) -> TableLock:
    """The one lock of a table."""
    with _locks_guard:
        return _locks.setdefault(str(path), TableLock())


__all__ = ["TableLock", "lock_of"]
