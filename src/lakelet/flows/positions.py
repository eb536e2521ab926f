"""Progress of a streaming flow, read from its checkpoint and its sources' logs without starting a query. No Spark calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath, names_in, remove_tree
from lakelet.flows.moved_sources import SOURCE_MOVED
from lakelet.plan.decisions import SourcePosition


@dataclass(frozen=True)
class Checkpoint:
    """`offsets`: JSON text of each source's end offset in the newest planned batch; `planned` and `completed` are batch numbers or -1."""

    offsets: tuple[str | None, ...]
    planned: int
    completed: int

    @property
    def unfinished(self) -> bool:
        return self.planned > self.completed


def read_checkpoint(folder: AnyPath) -> Checkpoint:
    """The state of Spark's offset and commit logs."""
    planned, completed = _newest(folder / "offsets"), _newest(folder / "commits")
    if planned < 0:
        return Checkpoint((), -1, completed)
    lines = (folder / "offsets" / str(planned)).read_text().splitlines()[2:]
    return Checkpoint(tuple(None if line.strip() == "-" else line for line in lines), planned, completed)


def discard_half_written(folder: AnyPath, state: Checkpoint) -> None:
    """Remove what is left of a first batch that was never planned, as its process died while it wrote the offsets.

    Spark refuses to begin in a checkpoint whose offset log has any file (STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY), so the flow could
    never start again. One that has states or completed batches, but no offsets, stays as it is, for Spark to refuse.
    """
    if state.planned < 0 and names_in(folder / "offsets"):
        remove_tree(folder / "offsets")


def _newest(folder: AnyPath) -> int:
    return max((int(name) for name in names_in(folder) if name.isdigit()), default=-1)


def table_position(
    name: str, log: TableLog, offset: str | None, allowed: Mapping[str, frozenset[str]], examined: int, *, feed: bool = False
) -> tuple[SourcePosition, int]:
    """Whether a Delta source has rows for a flow beyond its offset, and the version up to which that was looked at.

    `allowed`: the flow's filter on partition values. `examined`: version up to which an earlier look found nothing. `feed`: the flow reads
    the table's change feed.
    """
    latest = log.version()
    if latest < 0:
        return SourcePosition(name, True, f"{name} does not exist yet"), examined
    position = json.loads(offset) if offset else None
    read = None if position is None else _read_version(log, position, feed=feed)
    if position is None or read is None:
        return SourcePosition(name, True, f"{name} was read in part"), examined
    known = log.table_id()
    if known is not None and position.get("reservoirId", known) != known:
        return SourcePosition(name, True, f"{name} is not the table it has read so far"), -1
    after = max(read, examined)
    if latest <= after:
        return SourcePosition(name, False, f"{name} has no new version", 0), after
    commits = log.commits(after, latest)
    if commits is None or any(c.changed for c in commits):
        return SourcePosition(name, True, f"{name} changed"), examined
    files = [values for c in commits for values in c.added]
    matching = sum(_may_match(values, allowed) for values in files)
    if matching:
        return SourcePosition(name, True, f"{name} has {matching} new file(s)", matching), examined
    text = f"no new file of {name} can match its filter" if files else f"{name} has no new rows"
    return SourcePosition(name, False, text, 0), latest


def _read_version(log: TableLog, position: Mapping[str, Any], *, feed: bool) -> int | None:
    """Return the version up to which everything was read according to an offset; None if it stopped inside a version.

    Offset (v, -1): everything before version v. Offset (v, i): files 0 to i of version v too. A stream of changes that has read all files
    of change data of a version stays there; after any other version it has the offset (v + 1, -1).
    """
    index = position.get("index")
    if position.get("isStartingVersion") or index is None:  # also the offset of another source, which has no version
        return None
    version = int(position["reservoirVersion"])
    if index == -1:
        return version - 1
    commit = log.commit(version) if feed else None
    return version if commit is not None and commit.change_files == index + 1 else None


def physical_filter(allowed: Mapping[str, frozenset[str]], columns: str | None) -> Mapping[str, frozenset[str]]:
    """The filter with the names that partition values have in the log: other ones where the table maps its columns (Delta column mapping).

    `columns`: Spark schema JSON of the stored table, or None.
    """
    if not columns or "delta.columnMapping.physicalName" not in columns:
        return allowed
    fields = json.loads(columns)["fields"]
    physical = {f["name"].lower(): f["metadata"].get("delta.columnMapping.physicalName", f["name"]).lower() for f in fields}
    return {physical.get(column, column): values for column, values in allowed.items()}


def _may_match(values: Mapping[str, str | None], allowed: Mapping[str, frozenset[str]]) -> bool:
    """Whether a file with these partition values can hold rows that pass the filter."""
    lower = {k.lower(): v for k, v in values.items()}
    return all(column not in lower or lower[column] in wanted for column, wanted in allowed.items())


def files_position(path: str, pending: int, size: int) -> SourcePosition:
    """The position of a cloudFiles source with `pending` new files."""
    if pending:
        return SourcePosition(path, True, f"{path} has {pending} new file(s), {size / 1e6:.1f} MB", pending, size)
    return SourcePosition(path, False, f"{path} has no new file", 0, 0)


def unreadable_position(path: str, problem: LakeletError) -> SourcePosition:
    text = problem.what if problem.code == SOURCE_MOVED else f"{path} cannot be listed: {problem.what}"
    return SourcePosition(path, None, text)


def unknown_position(count: int) -> Sequence[SourcePosition]:
    return [SourcePosition("source", None, "its source cannot be looked at without running it")] * min(count, 1)
