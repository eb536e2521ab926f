"""Rows of a storage's event log for the page: of its newest updates, and later those that came in since. Read with delta-rs.

Definitions are large and the page shows those of today: they are read of two updates of each pipeline only, what is and what was before.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from lakelet.files.delta_log import LOG
from lakelet.files.delta_rs import open_or_none, query
from lakelet.files.paths import AnyPath
from lakelet.storage.eventlog.failures import coded
from lakelet.storage.root import Storage

UPDATES = 1000
"""The newest updates are on the page; older ones stay in the event log."""
_DEFINITIONS = "('dataset_definition', 'sink_definition', 'flow_definition', 'column_lineage')"
_UNUSED = "('user_action', 'runtime_details', 'planning_information', 'stream_progress')"
_COLUMNS = """id, event_type, level, message, "timestamp", details, error, sequence['data_plane_id']['seq_no'] AS seq_no,
    origin['update_id'] AS update_id, origin['pipeline_id'] AS pipeline_id, origin['pipeline_name'] AS pipeline_name,
    origin['dataset_name'] AS dataset_name, origin['sink_name'] AS sink_name, origin['flow_name'] AS flow_name"""
_ORIGIN = ("update_id", "pipeline_id", "pipeline_name", "dataset_name", "sink_name", "flow_name")
_OVERLAP = timedelta(minutes=1)  # events are written in batches: one may carry an earlier time than what was read before


class EventRows:
    """Reads the event log of one storage, again and again; every call gives what may be new since the last one.

    Args:
        updates: how many of the newest updates are read.
        known: ids of updates that need not be read.
    """

    def __init__(self, storage: AnyPath, *, updates: int = UPDATES, known: Collection[str] = ()) -> None:
        self._path, self._updates, self._known = Storage(storage).events, updates, known
        self._version: int | None = None
        self._stamp: int | None = None
        self._newest: datetime | None = None

    def read(self) -> Iterator[dict[str, Any]]:
        """Rows in the form of `lakelet events --json`, in no particular order; some may have been given before.

        Nothing while the log does not exist or has not changed. Raises EVENT_LOG_FAILED for a damaged log.
        """
        with coded(self._path):
            stamp = _stamp(self._path)
            if stamp is not None and stamp == self._stamp:
                return
            table = open_or_none(self._path)
            if table is None or table.version() == self._version:
                return
            self._stamp, self._version = stamp, table.version()
            for batch in query(table, f"SELECT {_COLUMNS} FROM t WHERE {self._condition(table)}"):
                for row in batch.to_pylist():
                    self._newest = max(self._newest or row["timestamp"], row["timestamp"])
                    yield _event(row)

    def _condition(self, table: Any) -> str:
        used = f"event_type NOT IN {_UNUSED}"
        if self._newest is not None:
            return f'{used} AND "timestamp" >= {_literal(self._newest - _OVERLAP)}'
        conditions = [used, f"(event_type NOT IN {_DEFINITIONS} OR origin['update_id'] IN {_in(_defining(table))})"]
        newest = _newest_updates(table, self._updates)
        if self._known:
            conditions.append(f"(origin['update_id'] IS NULL OR origin['update_id'] NOT IN {_in(list(self._known))})")
        return " AND ".join([*conditions, *([f"origin['update_id'] IN {_in(newest)}"] if newest else [])])


def log_id(storage: AnyPath) -> str | None:
    """What names the event log of a storage, and no other; None where there is none yet. Raises EVENT_LOG_FAILED."""
    path = Storage(storage).events
    with coded(path):
        table = open_or_none(path)
        return None if table is None else str(table.metadata().id)


def _stamp(path: AnyPath) -> int | None:
    """When something was last written to a log of this machine; cheaper than to open the table."""
    try:
        return (path / LOG).stat().st_mtime_ns if isinstance(path, Path) else None
    except OSError:
        return None


def _rows(table: Any, sql: str) -> list[dict[str, Any]]:
    return [row for batch in query(table, sql) for row in batch.to_pylist()]


def _defining(table: Any) -> list[str]:
    """The two newest updates of each pipeline that defined datasets."""
    found: dict[str, list[str]] = {}
    sql = f"""SELECT origin['pipeline_id'] AS pipeline, origin['update_id'] AS id, min("timestamp") AS at FROM t
        WHERE event_type IN {_DEFINITIONS} GROUP BY origin['pipeline_id'], origin['update_id'] ORDER BY at DESC"""
    for row in _rows(table, sql):
        found.setdefault(str(row["pipeline"]), []).append(str(row["id"]))
    return [update for ids in found.values() for update in ids[:2]]


def _newest_updates(table: Any, updates: int) -> list[str]:
    """The newest updates, if there are more than `updates`; else nothing, which means all."""
    sql = "SELECT origin['update_id'] AS id, min(\"timestamp\") AS at FROM t GROUP BY origin['update_id'] ORDER BY at DESC"
    ids = [str(row["id"]) for row in _rows(table, sql) if row["id"] is not None]
    return ids[:updates] if len(ids) > updates else []


def _in(texts: list[str]) -> str:
    quoted = ", ".join("'" + text.replace("'", "''") + "'" for text in texts)
    return f"({quoted or 'NULL'})"


def _literal(timestamp: datetime) -> str:
    return f"TIMESTAMP '{timestamp.astimezone(timezone.utc).isoformat()}'"


def _event(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "sequence": int(row["seq_no"] or 0),
        "timestamp": row["timestamp"].isoformat().replace("+00:00", "Z"),
        "event_type": row["event_type"],
        "level": row["level"],
        "message": row["message"],
        "origin": {name: row[name] for name in _ORIGIN if row[name] is not None},
        "details": json.loads(row["details"] or "{}"),
        "error": row["error"],
    }
