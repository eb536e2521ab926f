"""The event log as a table to be read: events, ids, one update summed up; its failures as coded errors (ST-17). No Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.files.delta_rs import open_or_none, query_rows, sql_literal
from lakelet.files.durable import storage_failure
from lakelet.files.paths import AnyPath
from lakelet.storage.eventlog.states import EventType, Level, UpdateState
from lakelet.storage.eventlog.summaries import UpdateSummary
from lakelet.storage.root import Storage

_TODO = "Repair the folder, or move it away: the next update makes a new event log, and the tables stay as they are."
ROW_COLUMNS = """id, event_type, level, message, "timestamp", details, error, sequence['data_plane_id']['seq_no'] AS seq_no,
    origin['update_id'] AS update_id, origin['pipeline_id'] AS pipeline_id, origin['pipeline_name'] AS pipeline_name,
    origin['dataset_name'] AS dataset_name, origin['sink_name'] AS sink_name, origin['flow_name'] AS flow_name"""
"""The columns that summaries are made of; `row_of` gives them the form of an event."""
ORIGIN_COLUMNS = ("update_id", "pipeline_id", "pipeline_name", "dataset_name", "sink_name", "flow_name")
"""Those of ROW_COLUMNS that are in `origin`, by its names."""


@contextmanager
def coded(path: AnyPath) -> Iterator[None]:
    """Raise STORAGE_FAILED or EVENT_LOG_FAILED for what fails while the log at `path` is used; coded errors pass."""
    try:
        yield
    except LakeletError:
        raise
    except Exception as problem:
        raise log_failure(problem, path) from problem


def log_failure(problem: BaseException, path: AnyPath) -> LakeletError:
    """The coded error for what failed while the log at `path` was used."""
    if isinstance(problem, LakeletError):
        return problem
    lines = str(problem).strip().splitlines()
    what = f"the event log {path} cannot be read or written"
    why = f"{type(problem).__name__}: {lines[0][:300]}" if lines else type(problem).__name__
    return storage_failure(problem, path) or LakeletError("EVENT_LOG_FAILED", what, why=why, todo=_TODO)


def open_log(path: AnyPath) -> Any:
    """The Delta table of the log at `path`, None where there is none yet. Raises EVENT_LOG_FAILED where its folder is a file."""
    if isinstance(path, Path) and path.exists() and not path.is_dir():
        raise log_failure(NotADirectoryError(f"{path} is a file, not the folder of a table"), path)
    return open_or_none(path)


def row_of(columns: Mapping[str, Any]) -> dict[str, Any]:
    """An event in the form of `lakelet events --json`, from ROW_COLUMNS."""
    return {
        "id": columns["id"],
        "sequence": int(columns["seq_no"] or 0),
        "timestamp": columns["timestamp"].isoformat().replace("+00:00", "Z"),
        "event_type": columns["event_type"],
        "level": columns["level"],
        "message": columns["message"],
        "origin": {name: columns[name] for name in ORIGIN_COLUMNS if columns[name] is not None},
        "details": json.loads(columns["details"] or "{}"),
        "error": columns["error"],
    }


def known_ids(path: AnyPath, event_type: EventType, ids: Collection[str]) -> frozenset[str]:
    """Those of the ids under which the log at `path` has an event of the type. Raises EVENT_LOG_FAILED for a damaged log."""
    if not ids:
        return frozenset()
    listed = ", ".join(f"'{uuid.UUID(one)}'" for one in sorted(ids))
    return frozenset(row["id"] for row in _log_rows(path, "id", f"event_type = '{event_type}' AND id IN ({listed})"))


@dataclass(frozen=True)
class UpdateRecord:
    """What the log holds of one update: ids of its events, their highest number, and whether its end is among them.

    `failed`: names of the flows that failed and were not tried again.
    """

    ids: frozenset[str] = frozenset()
    sequence: int = 0
    ended: bool = False
    failed: frozenset[str] = frozenset()


def logged(path: AnyPath, update_id: str) -> UpdateRecord:
    """Look up one update in the log."""
    progress, failed = EventType.UPDATE_PROGRESS, f"event_type = '{EventType.FLOW_PROGRESS}' AND level = '{Level.ERROR}'"
    columns = f"""id, sequence['data_plane_id']['seq_no'] AS number, CASE WHEN event_type = '{progress}' THEN details END AS state,
        CASE WHEN {failed} THEN origin['flow_name'] END AS failed"""
    rows = _log_rows(path, columns, f"origin['update_id'] = '{uuid.UUID(update_id)}'")
    states = {json.loads(row["state"])[progress]["state"] for row in rows if row["state"]}
    ended = any(state in UpdateState.ends() for state in states)
    flows = frozenset(row["failed"] for row in rows if row["failed"])
    return UpdateRecord(frozenset(row["id"] for row in rows), max((row["number"] for row in rows), default=0), ended, flows)


def progress_of(path: AnyPath, update_id: str) -> UpdateSummary:
    """What the log at `path` says of an update and of its flows, definitions left out. An update without events there did not end."""
    from lakelet.storage.eventlog.fold import UpdateFold

    fold = UpdateFold(update_id)
    types = ", ".join(f"'{one}'" for one in (EventType.FLOW_PROGRESS, EventType.UPDATE_PROGRESS))
    for row in _log_rows(path, ROW_COLUMNS, f"origin['update_id'] = '{uuid.UUID(update_id)}' AND event_type IN ({types})"):
        fold.take(row_of(row))
    return fold.value()


def _log_rows(path: AnyPath, columns: str, where: str) -> list[dict[str, Any]]:
    """Rows of the log at `path`, none where there is none. Raises EVENT_LOG_FAILED for a damaged log."""
    with coded(path):
        table = open_or_none(path)
        return [] if table is None else list(query_rows(table, f"SELECT {columns} FROM t WHERE {where}"))


def read_events(storage: AnyPath, *, update: str | None = None, every: bool = False, event_type: str | None = None) -> list[dict[str, Any]]:
    """Rows of the event log in sequence order, in the form of `Event.as_json`.

    Of the latest update, of the one whose id begins with `update`, or of `every` one. Raises USAGE if no update has that id, and
    EVENT_LOG_FAILED if the log is damaged.
    """
    with coded(Storage(storage).events):
        return _selected_events(storage, update, every, event_type)


def _selected_events(storage: AnyPath, update: str | None, every: bool, event_type: str | None) -> list[dict[str, Any]]:
    table = open_log(Storage(storage).events)
    if table is None:
        return []
    conditions = [f"event_type = {sql_literal(event_type)}"] if event_type else []
    if not every:
        conditions.append(f"origin['update_id'] = {sql_literal(_update_id(table, update))}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    rows = list(query_rows(table, f"SELECT * FROM t{where}"))
    began: dict[str, int] = {}
    for row in rows:
        update_id, moment = _update_or_maintenance(row), row["sequence"]["control_plane_seq_no"]
        began[update_id] = min(moment, began.get(update_id, moment))
    rows.sort(key=lambda row: (began[_update_or_maintenance(row)], _update_or_maintenance(row), _event_number(row)))
    return [_event_json(row) for row in rows]


def _update_or_maintenance(row: Mapping[str, Any]) -> str:
    """The update that an event belongs to, or the maintenance."""
    return str(row["origin"]["update_id"] or row["origin"].get("maintenance_id"))


def _event_number(row: Mapping[str, Any]) -> int:
    return int(row["sequence"]["data_plane_id"]["seq_no"])


def _update_id(table: Any, prefix: str | None) -> str:
    sql = "SELECT origin['update_id'] AS id, max(\"timestamp\") AS last FROM t GROUP BY origin['update_id'] ORDER BY last DESC"
    known = [str(row["id"]) for row in query_rows(table, sql) if row["id"] is not None]
    found = [i for i in known if prefix is None or i.startswith(prefix)]
    if not found or (prefix is not None and len(found) > 1 and prefix not in found):
        what = f"{'several updates have' if found else 'no update has'} an id that begins with {prefix}"
        raise LakeletError("USAGE", what, todo="Known, newest first: " + ", ".join(i[:6] for i in known[:5]))
    return prefix if prefix in found else found[0]


def _event_json(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "sequence": _event_number(row),
        "timestamp": row["timestamp"].isoformat().replace("+00:00", "Z"),
        "event_type": row["event_type"],
        "level": row["level"],
        "message": row["message"],
        "maturity_level": row["maturity_level"],
        "origin": {k: v for k, v in row["origin"].items() if v is not None},
        "details": json.loads(row["details"] or "{}"),
        "error": row["error"],
    }
