"""Checkpoints of Delta logs, written when nothing waits for them.

Delta writes one within every tenth commit. The tables of a continuous update get a commit per round, so all of them would have theirs in
the same round, and who waits for its rows waits for that too. Inside `LATER.on()` commits leave them out, and pauses make up for it. A log
without its checkpoint is whole; reading it takes longer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from lakelet.files.paths import AnyPath

EVERY = 10
"""Commits between two checkpoints, as Delta's own default is. What a table declares counts again after the update."""
MOST = 50
"""After so many commits without a pause Delta writes one within a commit."""


class LaterCheckpoints:
    """Commits without a checkpoint, by table. There is one of this in the process, as there is one update."""

    def __init__(self) -> None:
        self._on = False
        self._commits: dict[str, int] = {}
        self._lock = threading.Lock()

    @contextmanager
    def on(self) -> Iterator[None]:
        """Leave checkpoints out inside the block."""
        self._on, self._commits = True, {}
        try:
            yield
        finally:
            self._on = False

    def leaves_out(self, path: AnyPath) -> bool:
        """Whether a commit that is about to be made is to have no checkpoint; counts it."""
        if not self._on:
            return False
        with self._lock:
            number = self._commits.get(str(path), 0) + 1
            self._commits[str(path)] = number
            return number < MOST

    def write_one(self, spark: SparkSession) -> None:
        """Write the checkpoint of a table that is due. It is not needed: as with Delta's own, a failure does no harm."""
        with self._lock:
            path = next((path for path, number in self._commits.items() if number >= EVERY), None) if self._on else None
            if path is None:
                return
            self._commits[path] = 0
        java: Any = spark
        with suppress(Py4JError):
            java._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(java._jsparkSession, path).checkpoint()


LATER = LaterCheckpoints()

__all__ = ["LATER", "LaterCheckpoints"]
