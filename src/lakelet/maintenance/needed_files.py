"""Files that a stream or an environment has still to read, and files that a reader may have open (MT-7). No Spark."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lakelet.files.delta_log import TableLog
from lakelet.files.delta_rs import open_table
from lakelet.files.paths import AnyPath, names_in
from lakelet.storage.environments import PinnedVersion


@dataclass(frozen=True)
class StreamPosition:
    """Where a stream over a Delta table stands: it has read all before `version`; `snapshot`: that version itself is read as a whole.

    `flow`: folder names of its table and of the flow.
    """

    flow: str
    table_id: str
    version: int
    snapshot: bool


@dataclass(frozen=True)
class NeededFiles:
    """Paths of files below the table's folder, decoded. `readers`: who needs them; `unknown`: for whom that cannot be found out."""

    paths: frozenset[str] = frozenset()
    readers: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def __or__(self, other: NeededFiles) -> NeededFiles:
        return NeededFiles(self.paths | other.paths, (*self.readers, *other.readers), (*self.unknown, *other.unknown))


def stream_positions(checkpoints: AnyPath) -> list[StreamPosition]:
    """The positions of all streams in a storage: after the last batch that each one completed."""
    found: list[StreamPosition] = []
    for catalog in names_in(checkpoints):
        for schema in names_in(checkpoints / catalog):
            for table in names_in(checkpoints / catalog / schema):
                for flow in names_in(checkpoints / catalog / schema / table):
                    folder = checkpoints / catalog / schema / table / flow
                    for checkpoint in _newest(folder):
                        found += _positions(checkpoint, f"{table}/{flow}")
    return found


def _newest(flow: AnyPath) -> list[AnyPath]:
    """The checkpoint that a flow uses, which is the one written last; on an object store all of them."""
    used = [flow / name for name in names_in(flow) if _batches(flow / name / "offsets")]
    if all(isinstance(folder, Path) for folder in used) and used:
        return [max(used, key=lambda folder: (Path(str(folder)) / "offsets").stat().st_mtime_ns)]
    return used


def _batches(folder: AnyPath) -> list[int]:
    """Numbers of the batches that a folder of a checkpoint has, ascending. Spark writes under a name with a dot before it renames."""
    return sorted(int(name) for name in names_in(folder) if name.isdigit())


def _positions(checkpoint: AnyPath, flow: str) -> Iterator[StreamPosition]:
    batches = _batches(checkpoint / "offsets")
    completed = set(_batches(checkpoint / "commits"))
    done = max((batch for batch in batches if batch in completed), default=None)
    for line in (checkpoint / "offsets" / str(done if done is not None else batches[-1])).read_text().splitlines()[2:]:
        with suppress(ValueError, AttributeError):
            offset: Any = json.loads(line)
            if isinstance(offset, dict) and "reservoirId" in offset:
                first = done is None  # nothing was completed: the flow must read all rows
                version = 0 if first else int(offset["reservoirVersion"])
                yield StreamPosition(flow, str(offset["reservoirId"]), version, first or bool(offset.get("isStartingVersion")))


def needed_by_streams(table: AnyPath, positions: Collection[StreamPosition]) -> NeededFiles:
    """The files of `table` that streams at `positions` have still to read."""
    paths: set[str] = set()
    flows, unknown = [], []
    log = TableLog(table)
    newest = log.version()
    for at in positions:
        if at.version > newest:  # a stream in an environment, which has commits of its own
            continue
        own: set[str] = set()
        try:
            if at.snapshot and at.version > 0:
                own |= _files_of(table, at.version)
            for version in range(at.version, newest + 1):
                own |= _brought(log, version)
        except Exception:  # its log file is gone, or delta-rs cannot read that version
            unknown.append(at.flow)
        paths |= own
        flows += [at.flow] if own else []
    return NeededFiles(frozenset(paths), tuple(flows), tuple(unknown))


def needed_by_environments(table: AnyPath, pinned: Collection[PinnedVersion]) -> NeededFiles:
    """The files of the versions of `table` that environments read."""
    found = NeededFiles()
    for pin in pinned:
        reader = (f"environment {pin.environment}",)
        try:
            files = frozenset(f"{pin.log}/{path}" if pin.log else path for path in _files_of(table / pin.log, pin.version))
            found |= NeededFiles(files, reader if files else ())
        except Exception:  # its log file is gone, or delta-rs cannot read that version
            found |= NeededFiles(unknown=reader)
    return found


def _files_of(table: AnyPath, version: int) -> frozenset[str]:
    import pyarrow as pa

    snapshot = pa.table(open_table(table, version=version).get_add_actions())
    return frozenset(unquote(str(path)) for path in snapshot["path"].to_pylist())


def _brought(log: TableLog, version: int) -> set[str]:
    """Files with rows that one commit brought, and those of its change feed."""
    found = set()
    for action in log.actions(version):
        for kind in ("add", "cdc", "remove"):
            if kind in action and (kind == "cdc" or action[kind].get("dataChange", True)):
                found.add(unquote(action[kind]["path"]))
    return found


def removed_since(table: AnyPath, moment: float) -> frozenset[str]:
    """Files that commits took out of the table after `moment` (seconds since 1970), by the time at which each commit was made."""
    found: set[str] = set()
    log = TableLog(table)
    for version in range(log.version(), -1, -1):
        try:
            if log.written_before(version, moment):
                break
            found |= {unquote(action["remove"]["path"]) for action in log.actions(version, "remove")}
        except FileNotFoundError:
            break
    return frozenset(found)
