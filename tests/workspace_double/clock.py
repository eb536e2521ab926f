"""The time of a workspace: it passes by itself a little with every look, or is set by a test."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timezone


class Clock:
    """Milliseconds since 1970. Two looks never give the same time, so that what was changed later is later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        self._shift = 0

    def now(self) -> int:
        with self._lock:
            self._last = max(self._last + 1, int(time.time() * 1000) + self._shift)
            return self._last

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._shift += int(seconds * 1000)


def iso(milliseconds: int) -> str:
    """A time as answers write it: `2026-08-01T12:00:00.000Z`."""
    moment = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03d}Z"
