"""The maintenance of one stored table: its files are read without Spark, then OPTIMIZE, then VACUUM where there is something to do."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lakelet.base.failpoints import reached
from lakelet.cdc.changes import HIDDEN
from lakelet.cdc.mirror import mirror, position
from lakelet.files.delta_log import TableLog
from lakelet.files.delta_rs import open_table
from lakelet.files.paths import LOG, AnyPath, RemotePath, any_path
from lakelet.maintenance.engine import Engine
from lakelet.maintenance.layout import DataFile, MaintenanceSettings, OptimizeJob, OptimizeKind, job_for
from lakelet.maintenance.needed_files import NeededFiles, StreamPosition, needed_by_environments, needed_by_streams, removed_since
from lakelet.maintenance.results import Amount, MaintenanceResult
from lakelet.storage.delta.table_spec import Declaration
from lakelet.storage.environments import PinnedVersion
from lakelet.storage.root import INTERNAL

_FOREIGN = "others committed to it since the last update; the next update takes that over first"
_UNFINISHED = "an update ended before its changes became visible; the next update finishes that first"


@dataclass(frozen=True)
class TableFiles:
    """A table as it is: files and properties of its newest version, its columns, partition columns, and Delta's id of it."""

    files: Sequence[DataFile]
    properties: Mapping[str, str]
    id: str

    @property
    def amount(self) -> Amount:
        return Amount(len(self.files), sum(file.size for file in self.files))


class TableMaintenance:
    """Maintains one table after the other.

    Args:
        positions: where the streams of the storage and of its environments stand.
        least: seconds that a removed file is kept whatever its table declares.
    """

    def __init__(self, engine: Engine, positions: Sequence[StreamPosition], *, dry_run: bool, least: float) -> None:
        self._engine, self._positions, self._dry_run, self._least = engine, positions, dry_run, least

    def maintained(self, table: MaintenanceResult, path: AnyPath, pinned: Sequence[PinnedVersion]) -> MaintenanceResult:
        """Maintain the table at `path`; a change table by its internal one, whose log the table's own follows.

        `pinned`: the versions of it that environments read.
        """
        inner = path / INTERNAL
        is_change_table = TableLog(inner).version() >= 0
        if is_change_table and (reason := self._behind(path, inner)):
            return replace(table, why=reason)
        base = inner if is_change_table else path
        if TableLog(base).version() < 0:
            return replace(table, why="nothing was written to it yet")
        newest = self._newest_files(base)
        settings = MaintenanceSettings.of(newest.properties, self._least)
        table = replace(table, before=newest.amount, after=newest.amount, retention=settings.retention)
        job, notes = self._job(newest, settings, TableLog(base))
        table = replace(table, why=job if isinstance(job, str) else job.why, notes=notes)
        if isinstance(job, OptimizeJob):
            table = replace(table, job=job, after=self._optimized(base, path, newest, job, settings))
        for root in dict.fromkeys((base, path)):
            table = self._vacuumed(table, root, path, settings, lambda: self._needed(path, newest.id, pinned))
        return table

    def _behind(self, target: AnyPath, inner: AnyPath) -> str | None:
        """Why a change table must wait for the next update; None if its log shows all of the internal one, or does so now."""
        now, log = position(target), TableLog(inner)
        if now.foreign:
            return _FOREIGN
        if log.version() == now.internal:
            return None
        if log.content_version(now.internal) != now.internal:
            return _UNFINISHED
        if not self._dry_run and mirror(target, HIDDEN) is None:  # what maintenance that died has put together
            return _FOREIGN
        return None

    def _newest_files(self, table: AnyPath) -> TableFiles:
        import pyarrow as pa
        from deltalake.exceptions import DeltaError

        try:
            found = open_table(table)
            rows = pa.table(found.get_add_actions(flatten=False))
            described = found.metadata()
            partitions = rows["partition"].to_pylist() if "partition" in rows.column_names else [None] * rows.num_rows
            files = [
                DataFile(unquote(name), int(size), json.dumps(values, default=str, sort_keys=True))
                for name, size, values in zip(rows["path"].to_pylist(), rows["size_bytes"].to_pylist(), partitions, strict=True)
            ]
            return TableFiles(files, described.configuration or {}, str(described.id))
        except DeltaError:  # features that delta-rs does not know
            return TableFiles(*self._engine.files(table))

    # ------------------------------------------------------------------------------------------------------- OPTIMIZE

    def _job(self, newest: TableFiles, settings: MaintenanceSettings, log: TableLog) -> tuple[OptimizeJob | str, tuple[str, ...]]:
        if not settings.optimized:
            return "pipelines.autoOptimize.managed is false: OPTIMIZE is left out", ()
        known = Declaration.recorded(newest.properties)
        clustered = tuple(known.cluster_by) if known is not None and log.path.name != INTERNAL else ()
        notes = []
        how, columns = OptimizeKind.COMPACT, tuple[str, ...]()
        if clustered:
            how, columns = OptimizeKind.CLUSTER, clustered
            if settings.z_order:
                notes.append("pipelines.autoOptimize.zOrderCols has no effect: the table is clustered")
        elif settings.z_order:
            wrong = self._unsortable(log.path, settings.z_order)
            columns = tuple(name for name in settings.z_order if name not in wrong)
            how = OptimizeKind.ZORDER if columns else OptimizeKind.COMPACT
            notes += [f"pipelines.autoOptimize.zOrderCols: {name} is not a column to sort by" for name in wrong]
        fresh = unsorted(log, how, columns) if how is not OptimizeKind.COMPACT else frozenset[str]()
        new = {file.path for file in newest.files} if fresh is None else fresh
        return job_for(newest.files, target=settings.target_bytes, how=how, columns=columns, unsorted=new), tuple(notes)

    def _unsortable(self, table: AnyPath, names: Sequence[str]) -> list[str]:
        """Those that the table has no column for, or only a partition column."""
        described = TableLog(table).description()
        if described is None:
            return []
        fields = {field["name"].lower() for field in json.loads(described["schemaString"])["fields"]}
        sortable = fields - {name.lower() for name in described["partitionColumns"]}
        return [name for name in names if name.split(".")[0].lower() not in sortable]

    def _optimized(self, base: AnyPath, target: AnyPath, newest: TableFiles, job: OptimizeJob, settings: MaintenanceSettings) -> Amount:
        """The files of the newest version after OPTIMIZE, or about so many as there would be."""
        if self._dry_run:
            return Amount(job.files, newest.amount.bytes)
        self._engine.optimize(base, job, settings.target_bytes)
        reached("maintain.optimized")
        if base != target:
            mirror(target, HIDDEN)  # None: others committed meanwhile; the next update settles that
            reached("maintain.mirrored")
        return self._newest_files(base).amount

    # --------------------------------------------------------------------------------------------------------- VACUUM

    def _needed(self, target: AnyPath, id: str, pinned: Sequence[PinnedVersion]) -> NeededFiles:
        streams = [at for at in self._positions if at.table_id == id]
        return needed_by_streams(target, streams) | needed_by_environments(target, pinned)

    def _vacuumed(
        self,
        table: MaintenanceResult,
        root: AnyPath,
        target: AnyPath,
        settings: MaintenanceSettings,
        find_needed: Callable[[], NeededFiles],
    ) -> MaintenanceResult:
        """Delete the files below `root` that no version of the retention time has, that nobody waits for, and that nobody wrote lately."""
        limit = time.time() - settings.retention
        if not _may_hold_old_files(root, {file.path for file in self._newest_files(root).files}, limit):
            return table
        removable = [any_path(_plain(location)) for location in self._engine.removable(root, settings.retention)]
        if not removable:
            return table
        needed = find_needed()
        if needed.unknown:
            text = f"nothing was deleted: it cannot be told what {', '.join(needed.unknown)} has still to read"
            return replace(table, notes=(*table.notes, text))
        kept = {str(target / path) for path in needed.paths}
        kept |= {str(target / path) for path in removed_since(target, limit)}
        gone, waited = Amount(), 0
        for file in removable:
            if str(file) in kept or (needed.paths and str(file).endswith(".bin")):
                waited += 1
                continue
            gone = _with(gone, self._deleted(file, limit))
        notes = table.notes
        if waited and needed.readers:
            notes = (*notes, f"{waited} old files are kept for {', '.join(sorted(set(needed.readers)))}, which has still to read them")
        removed = Amount(table.removed.files + gone.files, table.removed.bytes + gone.bytes)
        return replace(table, removed=removed, notes=notes)

    def _deleted(self, file: AnyPath, limit: float) -> Amount:
        """Delete one file, or a folder that is empty; the files that are gone by it.

        What was written after `limit` stays: a job of others may be about to commit it.
        """
        found = _written(file)
        if found is None or found[1] > limit:
            return Amount()
        if isinstance(file, Path) and file.is_dir():
            if not self._dry_run and not any(file.iterdir()):
                file.rmdir()
            return Amount()
        if not self._dry_run:
            file.unlink(missing_ok=True)
            reached("maintain.deleted")
        return Amount(1, found[0])


def _with(one: Amount, other: Amount) -> Amount:
    return Amount(one.files + other.files, one.bytes + other.bytes)


def _written(file: AnyPath) -> tuple[int, float] | None:
    """Bytes of a file or folder and when it was written (seconds since 1970); None when it is not there."""
    if isinstance(file, RemotePath):
        return file.written()
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime


def _plain(location: str) -> str:
    """A location of Hadoop's as Lakelet writes it."""
    return location.removeprefix("file://").removeprefix("file:")


def _may_hold_old_files(root: AnyPath, current: Collection[str], limit: float) -> bool:
    """Whether a file below `root` was written by `limit` and is in no current version; true for an object store, which Spark lists."""
    if not isinstance(root, Path):
        return True
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        if here == root:
            folders[:] = [name for name in folders if name not in (LOG, INTERNAL)]
        for name in files:
            file = here / name
            if str(file.relative_to(root)) not in current and not name.endswith(".crc") and file.stat().st_mtime <= limit:
                return True
    return False


# --- files since the last OPTIMIZE --------------------------------------------------------------------------------------------------------


_PARAMETER = {OptimizeKind.ZORDER: "zOrderBy", OptimizeKind.CLUSTER: "clusterBy"}


def unsorted(log: TableLog, how: OptimizeKind, columns: Sequence[str]) -> frozenset[str] | None:
    """Paths of the files that were written since OPTIMIZE sorted the table like that; None if its log does not say that it ever was."""
    found: set[str] = set()
    for version in range(log.version(), -1, -1):
        try:
            actions = log.actions(version)
        except FileNotFoundError:
            return None
        commit: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        if commit.get("operation") == "OPTIMIZE":
            sorted_by = json.loads((commit.get("operationParameters") or {}).get(_PARAMETER[how]) or "[]")
            if [str(name).lower() for name in sorted_by] == [name.lower() for name in columns]:
                return frozenset(found)
        found |= {unquote(action["add"]["path"]) for action in actions if "add" in action}
    return None


__all__ = ["TableMaintenance"]
