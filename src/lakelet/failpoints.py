"""Named places at which a test can end the process, to prove that the next update repairs what was left. Layer 0.

`LAKELET_FAILPOINT=name` kills the whole process group (driver, JVM, workers) the first time the point is reached,
`name@N` the N-th time. Costs a dictionary look-up when unset.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

FAILPOINTS: tuple[str, ...] = (
    "lease.acquired",
    "update.repaired",
    "registry.written",
    "reset.recorded",
    "schema_log.before",
    "schema_log.written",
    "ledger.planned",
    "batch.started",
    "batch.files_written",
    "batch.committed",
    "changes.merged",
    "changes.mirrored",
    "flow.drained",
    "flow.finished",
    "view.files_written",
    "view.committed",
    "view.recorded",
    "events.before_flush",
    "events.flushed",
    "update.before_terminal",
)

_hits: Counter[str] = Counter()


def reached(name: str) -> None:
    """Mark that execution is at the point `name`; ends the process group if the environment asks for it."""
    wanted = os.environ.get("LAKELET_FAILPOINT")
    if not wanted:
        return
    point, _, nth = wanted.partition("@")
    if point != name:
        return
    _hits[name] += 1
    if _hits[name] >= int(nth or 1):
        # Set by the driver: a data source's Python process lives in a process group of its own.
        os.killpg(int(os.environ.get("LAKELET_FAILPOINT_GROUP", os.getpgid(0))), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
