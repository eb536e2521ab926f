"""The rows that newer commits appended to an event log on a disk, read from the files of these commits alone. No Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.storage.eventlog.reading import ORIGIN_COLUMNS

_COLUMNS = ["id", "event_type", "level", "message", "timestamp", "details", "error", "sequence", "origin"]
_MOST_COMMITS = 500
"""With more new commits a scan of the whole log is not slower: each file of a commit is opened by itself."""


@dataclass(frozen=True)
class AppendedRows:
    """Rows by the version that brought them, as `reading.ROW_COLUMNS` names their columns. `version`: the newest one."""

    version: int
    rows: tuple[tuple[int, Mapping[str, Any]], ...]


def appended_since(path: AnyPath, version: int) -> AppendedRows | None:
    """Rows of the commits after a version; None where only a scan of the whole log gives them.

    That is so on an object store, after many commits, and where a commit or a file of it was removed. Compaction brings no row, and leaves
    the files of the commits for readers.
    """
    if not isinstance(path, Path):
        return None
    log = TableLog(path)
    newest = log.version()
    if not version <= newest <= version + _MOST_COMMITS:
        return None
    try:
        found = [(number, row) for number in range(version + 1, newest + 1) for row in _rows_of_commit(log, path, number)]
    except FileNotFoundError:
        return None
    return AppendedRows(newest, tuple(found))


def _rows_of_commit(log: TableLog, path: Path, version: int) -> list[Mapping[str, Any]]:
    import pyarrow.parquet as pq

    added = [action["add"] for action in log.actions(version, "add")]
    files = [path / unquote(add["path"]) for add in added if add.get("dataChange", True)]
    return [_flat(row) for file in files for row in pq.read_table(file, columns=_COLUMNS, partitioning=None).to_pylist()]


def _flat(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row of the log with the names of ROW_COLUMNS."""
    origin = row["origin"]
    number = row["sequence"]["data_plane_id"]["seq_no"]
    return {**row, "seq_no": number, **{name: origin.get(name) for name in ORIGIN_COLUMNS}}


__all__ = ["AppendedRows", "appended_since"]
