"""A stream that stays alive between the rounds of a continuous update (docs/decisions/0050-kept-queries.md).

The query has no end of its own. Its source plans batches until no file is left that was there when the round began, or until the time of
the round is over. Then it says that the round has ended, and keeps Spark waiting in `latestOffset` until the update says that the next one
begins: in between nothing is listed and nothing runs. Both ends are processes of one machine, the driver's.
"""

from __future__ import annotations

import select
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf

from lakelet.files.scratch import scratch_folder

_BEGINS, _ENDED = b"b", b"e"
_LOOK_SECONDS = 0.25
_CLOSED_SECONDS = 0.05


class QueryRounds:
    """The update's end: says when a round begins, and learns when it has ended. The first one begins with the query."""

    def __init__(self) -> None:
        self._folder = scratch_folder("rounds")
        self.address = str(self._folder / "socket")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.address)
        self._listener.listen(1)
        self._source: socket.socket | None = None

    def begin(self) -> None:
        """Let the source list its files. Where its process has ended, `ended` learns that."""
        if self._source is not None:
            with suppress(OSError):
                self._source.sendall(_BEGINS)

    def ended(self, alive: Callable[[], bool]) -> bool:
        """Wait until the round has ended; False if the query did. `alive`: whether the query runs."""
        gone = False
        while not gone:
            waited_for = self._source or self._listener
            ready, _, _ = select.select([waited_for], [], [], _LOOK_SECONDS)
            if ready and self._source is None:
                self._source, _ = self._listener.accept()
            elif ready and self._source is not None:
                if self._received_byte():
                    return True
                gone = True
            elif not alive():
                return False
        while alive():  # Spark finds out that the process of its source has ended
            time.sleep(_CLOSED_SECONDS)
        return False

    def _received_byte(self) -> bytes:
        assert self._source is not None
        try:
            return self._source.recv(1)
        except OSError:
            return b""

    def close(self) -> None:
        """The source plans nothing any more, and does not wait: the query can be stopped."""
        for end in (self._source, self._listener):
            if end is not None:
                end.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class SourceRounds:
    """The source's end, in the process that plans the batches of a stream."""

    def __init__(
        self, address: str, begin: Callable[[], None], *, seconds: float = inf, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Connect to the update. Without a bound a round would not end while files keep coming, and what reads the table would wait.

        Args:
            address: of the update's end.
            begin: called when a round begins; lists what the round may read, where that is the bound.
            seconds: after which a round plans no further batch, whatever waits; at least one batch is planned.
            clock: seconds of a clock that never goes back.
        """
        self._update = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._update.connect(address)
        self._begin, self._seconds, self._clock = begin, seconds, clock
        self._at_work = True
        self._ends_at: float | None = None  # of the round that has begun

    def plan(self, after: int, plan: Callable[[], int]) -> int:
        """The batch after `after`, as `plan` finds it; `after` itself once a round has ended and the next one may begin.

        Spark then asks again: the time of waiting belongs to no micro-batch.
        """
        if self._at_work:
            begins = self._ends_at is None
            if self._ends_at is None:
                self._begin()
                self._ends_at = self._clock() + self._seconds
            batch = plan() if begins or self._clock() < self._ends_at else after
            if batch != after:
                return batch
            self._at_work, self._ends_at = False, None
            with suppress(OSError):
                self._update.sendall(_ENDED)
        self._at_work = self._wait_for_round()
        return after

    def _wait_for_round(self) -> bool:
        """Wait for the next round; False once there is none."""
        with suppress(OSError):
            if self._update.recv(1):
                return True
        time.sleep(_CLOSED_SECONDS)  # Spark asks again until the query is stopped
        return False


__all__ = ["QueryRounds", "SourceRounds"]
