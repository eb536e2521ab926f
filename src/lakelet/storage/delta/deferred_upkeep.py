"""Checkpoints of Delta logs, and the compaction that a table declares, done when nothing waits for them.

Delta writes a checkpoint within every tenth commit, and puts small files together within the commit that brings the fiftieth. The tables of
a continuous update get a commit per round, so all of them would have theirs in the same round, and who waits for its rows waits for that
too. Inside `DEFERRED.on()` commits leave both out, and pauses make up for it. A table without them is whole; reading it takes longer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lakelet.base.failpoints import reached
from lakelet.files.paths import AnyPath
from lakelet.jvm import delta
from lakelet.jvm.errors import Py4JError

Action = Callable[[SparkSession, str], None]

EVERY = 10
"""Commits between two checkpoints, as Delta's own default is. What a table declares counts again after the update."""
MOST = 50
"""After so many commits without a pause, and so many new files, Delta does it within a commit."""
FILES = 25
"""New files of a table with automatic compaction before they are put together; Delta waits for 50."""


@dataclass
class _Owed:
    """What a table lacks: commits since its last checkpoint, and files since its last compaction."""

    commits: int = 0
    files: int = 0


class DeferredUpkeep:
    """What commits left out, by table. There is one of this in the process, as there is one update."""

    def __init__(self) -> None:
        self.is_on = False
        self._owed: dict[str, _Owed] = {}
        self._left: dict[str, Action] = {}
        self._lock = threading.Lock()

    @contextmanager
    def on(self) -> Iterator[None]:
        """Leave checkpoints and compaction out inside the block."""
        self.is_on, self._owed, self._left = True, {}, {}
        try:
            yield
        finally:
            self.is_on = False

    def leaves_out_checkpoint(self, path: AnyPath) -> bool:
        """Whether a commit that is about to be made is to have no checkpoint; counts it."""
        with self._lock:
            if self.is_on:
                owed = self._owed.setdefault(str(path), _Owed())
                owed.commits += 1
                return owed.commits < MOST
        return False

    def leaves_out_compaction(self, path: AnyPath, files: int) -> bool:
        """Whether a commit leaves out the compaction that is due. `files`: how many more the table has afterwards."""
        with self._lock:
            if self.is_on:
                owed = self._owed.setdefault(str(path), _Owed())
                owed.files = max(0, owed.files + files)
                return owed.files < MOST
        return False

    def now_or_in_a_pause(self, spark: SparkSession, path: str, action: Action) -> None:
        """Do something for a table: in a pause where there are some, else at once. It must not be needed; a failure does no harm."""
        with self._lock:
            if self.is_on:
                self._left[path] = action
                return
        with suppress(Py4JError):
            action(spark, path)

    def do_one(self, spark: SparkSession) -> None:
        """Write one checkpoint, or compact one table, that is due. Neither is needed: as with Delta's own, a failure does no harm."""
        due = self._due()
        if due is not None:
            path, action = due
            with suppress(Py4JError):
                action(spark, path)

    def _due(self) -> tuple[str, Action] | None:
        """A table and what is due there, which counts as done from now on."""
        with self._lock:
            if self.is_on and self._left:
                return self._left.popitem()
            for path, owed in self._owed.items() if self.is_on else ():
                if owed.files >= FILES:
                    owed.files = 0
                    return path, _compact
                if owed.commits >= EVERY:
                    owed.commits = 0
                    return path, _checkpoint
        return None


def _checkpoint(spark: SparkSession, path: str) -> None:
    delta.write_checkpoint(spark, path)
    reached("upkeep.checkpointed")


def _compact(spark: SparkSession, path: str) -> None:
    delta.compact(spark, path)
    reached("upkeep.compacted")


DEFERRED = DeferredUpkeep()

__all__ = ["DEFERRED", "DeferredUpkeep"]
