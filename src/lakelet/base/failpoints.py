"""Named points at which a test can end the process, to prove that the next update repairs what was left.

`LAKELET_FAILPOINT=name` kills the whole process group (driver, JVM, workers) the first time the point is reached,
`name@N` the N-th time. `name:ENOSPC` lets the step fail instead, that time only, as the system does with this error.
`STOP:folder` stops the group, as SIGSTOP does, at every point for which the folder has an empty file `name@N`; the process id is written
into that file first. The disk is then as a process that dies there leaves it, so that one update shows many deaths. Whoever asked removes
the file and lets the group go on with SIGCONT. Costs a dictionary look-up when unset.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections import Counter
from pathlib import Path

FAILPOINTS: tuple[str, ...] = (
    "environment.begun",
    "environment.begun_again",
    "environment.table_copied",
    "environment.flows_copied",
    "environment.dropped",
    "diff.begun",
    "diff.computed",
    "diff.compared",
    "promotion.files_linked",
    "promotion.staged",
    "promotion.committed",
    "promotion.flows_removed",
    "promotion.flows_moved",
    "promotion.registered",
    "lease.acquired",
    "update.repaired",
    "registry.written",
    "reset.recorded",
    "schema_log.before",
    "schema_log.written",
    "files.written",
    "source.noted",
    "source.journaled",
    "source.log_moved",
    "ledger.planned",
    "ledger.replanned",
    "batch.started",
    "table.prepared",
    "table.described",
    "batch.files_written",
    "batch.committed",
    "quarantine.made",
    "quarantine.written",
    "quarantine.committed",
    "quarantine.released",
    "changes.prepared",
    "changes.converted",
    "changes.merged",
    "changes.mirrored",
    "changes.compacted",
    "changes.taken",
    "changes.adopted",
    "changes.settled",
    "once.started",
    "sink.staged",
    "sink.noted",
    "sink.file_moved",
    "flow.drained",
    "flow.finished",
    "view.keys_found",
    "view.files_written",
    "view.committed",
    "view.recorded",
    "events.before_flush",
    "events.flushed",
    "events.compacted",
    "events.compaction_committed",
    "maintain.optimized",
    "maintain.mirrored",
    "maintain.deleted",
    "upkeep.compacted",
    "upkeep.checkpointed",
    "checks.validated",
    "checks.reported",
    "scaffold.file_written",
    "report.written",
    "report.replaced",
    "publish.begun",
    "publish.registered",
    "update.before_terminal",
    "deploy.locked",
    "deploy.announced",
    "deploy.packed",
    "deploy.uploaded",
    "deploy.updated",
    "deploy.created",
    "deploy.recorded",
    "deploy.granted",
    "deploy.published",
    "deploy.deleted",
    "deploy.file_removed",
    "deploy.kept",
    "deploy.saved",
    "deploy.forgotten",
    "deploy.destroyed",
    "deploy.files_destroyed",
    "deploy.reduced",
    "deploy.history_destroyed",
    "deploy.state_destroyed",
)

_hits: Counter[str] = Counter()


def reached(name: str) -> None:
    """Mark that execution is at the point `name`; ends or stops the process group if the environment asks for it."""
    wanted = os.environ.get("LAKELET_FAILPOINT")
    if not wanted:
        return
    wanted, _, error = wanted.partition(":")
    if wanted == "STOP":
        _hits[name] += 1
        asked = Path(error, f"{name}@{_hits[name]}")
        if asked.exists():
            asked.write_text(str(os.getpid()))
            while asked.exists():  # a SIGCONT meant for the point before undoes a SIGSTOP: only the file says that this one was seen
                _signal_all(signal.SIGSTOP)
                time.sleep(0.01)
        return
    point, _, nth = wanted.partition("@")
    if point != name:
        return
    _hits[name] += 1
    if error and _hits[name] == int(nth or 1):
        number = getattr(errno, error)
        raise OSError(number, os.strerror(number))
    if not error and _hits[name] >= int(nth or 1):
        _signal_all(signal.SIGKILL)


def _signal_all(number: int) -> None:
    own = os.getpgid(0)
    group = int(os.environ.get("LAKELET_FAILPOINT_GROUP", own))
    os.killpg(group, number)
    if group != own:  # set by the driver: a data source's Python process lives in a process group of its own
        os.kill(os.getpid(), number)
