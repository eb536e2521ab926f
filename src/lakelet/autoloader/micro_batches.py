"""Offsets, batches and partitions: which files a micro-batch reads, and how they are spread over tasks (AL-15, AL-18)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lakelet.autoloader.discovery.files import LocalFiles, files_for
from lakelet.autoloader.discovery.listing import FolderListing, checked_again, files_of, in_plan_order
from lakelet.autoloader.formats import format_of
from lakelet.autoloader.source_spec import FAIL, FilePart, ReaderSpec
from lakelet.autoloader.state.ledger import Ledger, Limits, first_that_fit, now
from lakelet.base.errors import LakeletError

_SPLIT_BYTES = 32 << 20
_SMALLEST_TASK = 2 << 20
_OPEN_COST = 64 << 10


class Planner:
    """Plans one batch after the other. After `freeze` (availableNow, the begin of a round) it lists no more; else each plan does."""

    def __init__(self, spec: ReaderSpec) -> None:
        self._spec, self._ledger = spec, Ledger(spec.state)
        self._frozen: tuple[FolderListing, int] | None = None
        self._queue: Any | None = None
        self._queue_after: int | None = None
        self._discovered = 0
        self._first_planned: int | None = None
        self._cleaned = False

    def freeze(self) -> None:
        self._frozen = self._list_now()
        self._queue, self._queue_after = None, None

    def plan(self, after: int, limits: Limits) -> int:
        """Plan the batch after `after`; returns its number, or `after` when there is nothing to read."""
        if self._spec.evolve_here and self._spec.clean and not self._cleaned:
            self._clean_source(after)
        unplanned = self._unplanned_files(after)
        if not len(unplanned):
            return after
        rows = first_that_fit(unplanned, limits)
        batch = after + 1
        self._ledger.plan(batch, rows, discovered=self._discovered)
        self._queue, self._queue_after = unplanned.slice(len(rows)), batch
        self._first_planned = batch if self._first_planned is None else min(batch, self._first_planned)
        return batch

    def _unplanned_files(self, after: int) -> Any:
        if self._frozen is not None and self._queue is not None and self._queue_after == after:
            return self._queue
        if after < 0:
            self._ledger.restart()
        listing, self._discovered = self._frozen or self._list_now()
        unseen = self._ledger.unseen(listing.found, after, by_time=self._spec.allow_overwrites)
        return in_plan_order(unseen, newest_first=self._spec.newest_first)

    def _clean_source(self, committed: int) -> None:
        """`cleanSource` of a stream that Lakelet does not run: once per start. Failures are warnings."""
        from lakelet.autoloader.state.cleanup_options import CleanSource
        from lakelet.autoloader.state.source_cleanup import clean_files

        self._cleaned = True
        try:
            self._ledger.mark_committed(committed)
            problems = clean_files(self._spec.path, self._spec.state, CleanSource(**(self._spec.clean or {})), committed).problems
        except (LakeletError, OSError) as error:
            problems = [str(error)]
        if problems:
            warnings.warn("cloudFiles.cleanSource: " + "; ".join(problems), stacklevel=2)

    def _list_now(self) -> tuple[FolderListing, int]:
        listed_at = now()
        return files_of(self._spec), listed_at

    def parts(self, after: int, up_to: int) -> list[list[FilePart]]:
        """The file parts of batches `after`+1 … `up_to`, one list per task."""
        tables = [self._checked_entries(batch) for batch in range(after + 1, up_to + 1)]
        files = pa.concat_tables([table for table, _ in tables]) if tables else self._ledger.planned(after, up_to)
        unsteady = frozenset().union(*(paths for _, paths in tables))
        committed = up_to <= self._spec.committed
        return spread(files, self._spec, checked=not (committed or self._spec.changing), unsteady=unsteady)

    def _checked_entries(self, batch: int) -> tuple[Any, frozenset[str]]:
        """The entries of a batch as its files are now, and the paths of files that nobody waits for to stop changing.

        A batch that the table has stays as it was planned. In any other one files that are gone leave the ledger where they may be missing:
        a file that is put back is a new one (FS-26).
        """
        spec, entries = self._spec, self._ledger.planned(batch - 1, batch)
        files, _ = files_for(spec.path)
        replayed = self._first_planned is None or batch < self._first_planned
        if batch <= spec.committed or not (replayed or isinstance(files, LocalFiles)):
            return entries, frozenset()
        found, changed = checked_again(files, entries, without_missing=spec.ignore_missing or (replayed and spec.mode == FAIL))
        if changed or len(found) < len(entries):
            self._ledger.replan(batch, found)
        unsteady = found["path"].to_pylist() if spec.changing else changed if spec.evolve_here and replayed else ()
        return found, frozenset(unsteady)


def spread(files: Any, spec: ReaderSpec, *, checked: bool = True, unsteady: frozenset[str] = frozenset()) -> list[list[FilePart]]:
    """The parts of listed files, one list per task. `unsteady`: paths of files that may change meanwhile; each is read in one piece."""
    columns = (files[name].to_pylist() for name in ("path", "size", "modified"))
    parts = [
        FilePart(path, size, modified, checked=checked and path not in unsteady) for path, size, modified in zip(*columns, strict=True)
    ]
    format = format_of(spec.format)
    return pack(parts, spec.parallelism, lambda path: path not in unsteady and format is not None and format.splittable(spec, path))


def pack(files: Sequence[FilePart], parallelism: int, splittable: Callable[[str], bool]) -> list[list[FilePart]]:
    """Spread files over tasks: large ones are split, small ones share a task; every core gets work when there is enough of it."""
    total = sum(f.size + _OPEN_COST for f in files)
    target = min(_SPLIT_BYTES, max(_SMALLEST_TASK, -(-total // max(1, parallelism * 2))))
    tasks: list[list[FilePart]] = []
    room = 0
    for part in (part for f in files for part in _split_file(f, target, splittable)):
        cost = (part.size if part.length is None else part.length) + _OPEN_COST
        if not tasks or cost > room:
            tasks.append([])
            room = target + _OPEN_COST
        tasks[-1].append(part)
        room -= cost
    return tasks


def _split_file(file: FilePart, target: int, splittable: Callable[[str], bool]) -> list[FilePart]:
    if file.size <= target + target // 2 or not splittable(file.path):
        return [file]
    count = -(-file.size // target)
    step = -(-file.size // count)
    return [replace(file, start=at, length=min(step, file.size - at)) for at in range(0, file.size, step)]
