"""Moves or deletes files some time after they were read (`cloudFiles.cleanSource`, AL-25).

Best effort: a file that cannot be moved or deleted stays, is reported, and is tried again by the next run. A file is touched only while it
is what the ledger says was read, so a content that nobody read is never removed. What was done is recorded after it was done; a run that
died in between is made up for by the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.discovery.files import Files, files_for
from lakelet.autoloader.discovery.partition_folders import source_root
from lakelet.autoloader.state.cleanup_options import MOVE, CleanSource
from lakelet.autoloader.state.ledger import ENTRIES, Archive, Ledger, now, rows_without

_AT_ONCE = 500
_SHOWN = 5


@dataclass
class CleanupResult:
    """What one run of the cleaning did. problems: the first few; changed: files that are not what was read, and stay."""

    mode: str
    files: int = 0
    changed: int = 0
    failed: int = 0
    problems: list[str] = field(default_factory=list)


def clean_files(path: str, state: str, rule: CleanSource, committed: int, clock: Callable[[], int] = now) -> CleanupResult:
    """Move or delete the files of a source whose batch was committed long enough ago.

    Args:
        path: the source's path.
        state: its state folder.
        committed: the number of the newest committed batch.
    """
    ledger = Ledger(state, clock)
    archive = Archive(ledger)
    work = _Work(path, rule, clock)
    due = _due_files(ledger, archive, committed, clock() - rule.retention * 1_000_000)
    for start in range(0, len(due), _AT_ONCE):
        rows = due.slice(start, _AT_ONCE)
        columns = (rows[name].to_pylist() for name in ("path", "size", "modified"))
        done = [record for row in zip(*columns, strict=True) if (record := work.handle(*row)) is not None]
        archive.add(done)
    return work.result


def _due_files(ledger: Ledger, archive: Archive, committed: int, before: int) -> Any:
    """The entries whose batch was committed at `before` or earlier and of which nothing is recorded yet."""
    batches = pa.array([batch for batch, committed_at in ledger.commits(committed).items() if committed_at <= before], pa.int64())
    if not len(batches):
        return ENTRIES.empty_table()
    pieces = [piece.filter(pc.is_in(piece["batch"], value_set=batches)) for piece in ledger.entries(committed)]
    return rows_without(pa.Table.from_batches(pieces, ENTRIES), "path", (piece["path"] for piece in archive.entries()))


class _Work:
    """Handles one file after the other."""

    def __init__(self, path: str, rule: CleanSource, clock: Callable[[], int]) -> None:
        self._files, _ = files_for(path)
        self._root = source_root(path).rstrip("/")
        self._rule, self._clock = rule, clock
        self._destination = files_for(rule.destination)[1].rstrip("/") if rule.destination else ""
        self.result = CleanupResult(rule.mode)

    def handle(self, path: str, size: int, modified: int) -> tuple[str, str | None, int, str | None] | None:
        """What to record about a file; None when it stays and is tried again."""
        target = self._destination + path.removeprefix(self._root) if self._rule.mode == MOVE else None
        try:
            return self._clean_file(path, size, modified, target)
        except OSError as error:
            self.result.failed += 1
            if len(self.result.problems) < _SHOWN:
                self.result.problems.append(f"{self._files.uri(path)}: {error}")
            return None

    def _clean_file(self, path: str, size: int, modified: int, target: str | None) -> tuple[str, str | None, int, str | None] | None:
        found = self._files.status(path)
        if found is None:  # taken away by somebody else, or by a run that died before it could say so
            if target is None:
                return path, self._rule.mode, self._clock(), None
            there = self._files.status(target)
            moved = there is not None and there[0] == size
            return path, MOVE if moved else None, self._clock(), self._files.uri(target) if moved else None
        if found != (size, modified):
            self.result.changed += 1
            return None
        if target is None:
            self._files.remove(path)
        else:
            _move_file(self._files, path, target)
        self.result.files += 1
        return path, self._rule.mode, self._clock(), None if target is None else self._files.uri(target)


def _move_file(files: Files, path: str, target: str) -> None:
    """Move a file; a complete copy that a dead run left at the target counts as the file."""
    try:
        files.move(path, target)
    except FileExistsError:
        if not _same_content(files, path, target):
            raise
        files.remove(path)


def _same_content(files: Files, one: str, other: str) -> bool:
    with files.open(one) as left, files.open(other) as right:
        while chunk := left.read(1 << 20):
            if chunk != right.read(len(chunk)):
                return False
        return not right.read(1)
