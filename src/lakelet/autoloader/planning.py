"""Offsets, batches and partitions: which files a micro-batch reads, and how they are spread over tasks (spec 5.1, 5.2)."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakelet.autoloader.discovery import Filters, Listing, in_plan_order, list_files
from lakelet.autoloader.files import files_for
from lakelet.autoloader.formats import format_of
from lakelet.autoloader.ledger import Ledger, Limits, now, take
from lakelet.autoloader.spec import FAIL, ReaderSpec
from lakelet.errors import LakeletError

OFFSET_FORMAT = 1
_SPLIT_BYTES = 32 << 20
_SMALLEST_TASK = 2 << 20
_OPEN_COST = 64 << 10


@dataclass(frozen=True)
class FilePart:
    """A byte range of one file; `length` None means all of it."""

    path: str
    size: int
    modified: int
    start: int = 0
    length: int | None = None


def offset_of(batch: int) -> dict[str, int]:
    """The offset that Spark logs after planning `batch`; -1 means nothing was planned."""
    return {"v": OFFSET_FORMAT, "batch": batch}


def batch_of(offset: dict[str, Any] | str | None) -> int:
    """The batch number in an offset. Raises FORMAT_NEWER or CF_STATE_DAMAGED."""
    if offset is None:
        return -1
    try:
        fields = json.loads(offset) if isinstance(offset, str) else offset
        version, batch = int(fields["v"]), int(fields["batch"])
    except (ValueError, KeyError, TypeError):
        raise LakeletError("CF_STATE_DAMAGED", f"{offset!r} is not an offset of Auto Loader", todo="Do a full refresh.") from None
    if version != OFFSET_FORMAT:
        raise LakeletError("FORMAT_NEWER", f"an offset has format {version}, this Lakelet reads {OFFSET_FORMAT}", todo="Update Lakelet.")
    return batch


def is_offset(line: str) -> bool:
    """Whether a line of Spark's offset log is an offset of Auto Loader."""
    try:
        fields = json.loads(line)
    except ValueError:
        return False
    return isinstance(fields, dict) and set(fields) == {"v", "batch"}


def filters_of(spec: ReaderSpec) -> Filters:
    """The discovery filters of a source."""
    return Filters(spec.name_glob, spec.hidden_segments, spec.modified_after, spec.modified_before, spec.strict_glob)


class Planner:
    """Plans one batch after the other. With `freeze` the files are those of that moment (availableNow), otherwise each plan looks anew."""

    def __init__(self, spec: ReaderSpec) -> None:
        self._spec, self._ledger = spec, Ledger(spec.state)
        self._frozen: tuple[Listing, int] | None = None
        self._queue: Any | None = None
        self._queue_after: int | None = None
        self._discovered = 0
        self._first_planned: int | None = None
        self._cleaned = False

    def freeze(self) -> None:
        self._frozen = self._listed()
        self._queue, self._queue_after = None, None

    def plan(self, after: int, limits: Limits) -> int:
        """Plan the batch after `after`; returns its number, or `after` when there is nothing to read."""
        if self._spec.evolve_here and self._spec.clean and not self._cleaned:
            self._clean(after)
        waiting = self._waiting(after)
        if not len(waiting):
            return after
        rows = take(waiting, limits)
        batch = after + 1
        self._ledger.plan(batch, rows, discovered=self._discovered)
        self._queue, self._queue_after = waiting.slice(len(rows)), batch
        self._first_planned = batch if self._first_planned is None else min(batch, self._first_planned)
        return batch

    def _waiting(self, after: int) -> Any:
        if self._frozen is not None and self._queue is not None and self._queue_after == after:
            return self._queue
        if after < 0:
            self._ledger.restart()
        listing, self._discovered = self._frozen or self._listed()
        return in_plan_order(self._ledger.unseen(listing.found, after, by_time=self._spec.allow_overwrites))

    def _clean(self, committed: int) -> None:
        """`cleanSource` of a stream that Lakelet does not run: once per start, for what is committed then. Trouble is a warning."""
        from lakelet.autoloader.clean import clean_files
        from lakelet.autoloader.clean_options import CleanSource

        self._cleaned = True
        try:
            self._ledger.mark_committed(committed)
            problems = clean_files(self._spec.path, self._spec.state, CleanSource(**(self._spec.clean or {})), committed).problems
        except (LakeletError, OSError) as error:
            problems = [str(error)]
        if problems:
            warnings.warn("cloudFiles.cleanSource: " + "; ".join(problems), stacklevel=2)

    def _listed(self) -> tuple[Listing, int]:
        moment = now()
        return list_files(self._spec.path, filters_of(self._spec)), moment

    def parts(self, after: int, up_to: int) -> list[list[FilePart]]:
        """The file parts of batches `after`+1 … `up_to`, one list per task."""
        if self._spec.mode == FAIL:
            self._let_go_of_missing(after, up_to)
        return spread(self._ledger.planned(after, up_to), self._spec)

    def _let_go_of_missing(self, after: int, up_to: int) -> None:
        """A batch that an earlier start planned and could not commit is freed of files that were removed since (spec 9, note on E04).

        They leave the ledger as well: a file that is put back is a new one.
        """
        files, _ = files_for(self._spec.path)
        for batch in range(after + 1, up_to + 1):
            if self._first_planned is not None and batch >= self._first_planned:
                return
            entries = self._ledger.planned(batch - 1, batch)
            there = [files.status(path) is not None for path in entries["path"].to_pylist()]
            if not all(there):
                self._ledger.replan(batch, entries.filter(pa.array(there, pa.bool_())))


def spread(files: Any, spec: ReaderSpec) -> list[list[FilePart]]:
    """The parts of listed files, one list per task."""
    columns = (files[name].to_pylist() for name in ("path", "size", "modified"))
    parts = [FilePart(path, size, modified) for path, size, modified in zip(*columns, strict=True)]
    format = format_of(spec.format)
    return pack(parts, spec.parallelism, lambda path: format is not None and format.splittable(spec, path))


def pack(files: Sequence[FilePart], parallelism: int, splittable: Callable[[str], bool]) -> list[list[FilePart]]:
    """Spread files over tasks: large ones are split, small ones share a task; every core gets work when there is enough of it."""
    total = sum(f.size + _OPEN_COST for f in files)
    target = min(_SPLIT_BYTES, max(_SMALLEST_TASK, -(-total // max(1, parallelism * 2))))
    tasks: list[list[FilePart]] = []
    room = 0
    for part in (part for f in files for part in _split(f, target, splittable)):
        cost = (part.size if part.length is None else part.length) + _OPEN_COST
        if not tasks or cost > room:
            tasks.append([])
            room = target + _OPEN_COST
        tasks[-1].append(part)
        room -= cost
    return tasks


def _split(file: FilePart, target: int, splittable: Callable[[str], bool]) -> list[FilePart]:
    if file.size <= target + target // 2 or not splittable(file.path):
        return [file]
    count = -(-file.size // target)
    step = -(-file.size // count)
    return [FilePart(file.path, file.size, file.modified, at, min(step, file.size - at)) for at in range(0, file.size, step)]
