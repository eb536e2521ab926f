"""Reading the event log in the form of its live output. No Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.files.delta_rs import query
from lakelet.files.paths import AnyPath
from lakelet.storage.eventlog.failures import coded
from lakelet.storage.eventlog.reading import open_log
from lakelet.storage.root import Storage


def read_events(storage: AnyPath, *, update: str | None = None, every: bool = False, event_type: str | None = None) -> list[dict[str, Any]]:
    """Rows of the event log in sequence order, in the form of `Event.as_json`.

    Of the latest update, of the one whose id begins with `update`, or of `every` one. Raises USAGE if no update has that id, and
    EVENT_LOG_FAILED if the log is damaged.
    """
    with coded(Storage(storage).events):
        return _events(storage, update, every, event_type)


def _events(storage: AnyPath, update: str | None, every: bool, event_type: str | None) -> list[dict[str, Any]]:
    table = open_log(Storage(storage).events)
    if table is None:
        return []
    conditions = [f"event_type = {_literal(event_type)}"] if event_type else []
    if not every:
        conditions.append(f"origin['update_id'] = {_literal(_update_id(table, update))}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    rows = [row for batch in query(table, f"SELECT * FROM t{where}") for row in batch.to_pylist()]
    began: dict[str, int] = {}
    for row in rows:
        update_id, moment = _group(row), row["sequence"]["control_plane_seq_no"]
        began[update_id] = min(moment, began.get(update_id, moment))
    rows.sort(key=lambda row: (began[_group(row)], _group(row), _number(row)))
    return [_event_json(row) for row in rows]


def _group(row: Mapping[str, Any]) -> str:
    """The update that an event belongs to, or the maintenance."""
    return str(row["origin"]["update_id"] or row["origin"].get("maintenance_id"))


def _number(row: Mapping[str, Any]) -> int:
    return int(row["sequence"]["data_plane_id"]["seq_no"])


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _update_id(table: Any, prefix: str | None) -> str:
    sql = "SELECT origin['update_id'] AS id, max(\"timestamp\") AS last FROM t GROUP BY origin['update_id'] ORDER BY last DESC"
    known = [str(i) for batch in query(table, sql) for i in batch.column(0).to_pylist() if i is not None]
    found = [i for i in known if prefix is None or i.startswith(prefix)]
    if not found or (prefix is not None and len(found) > 1 and prefix not in found):
        what = f"{'several updates have' if found else 'no update has'} an id that begins with {prefix}"
        raise LakeletError("USAGE", what, todo="Known, newest first: " + ", ".join(i[:6] for i in known[:5]))
    return prefix if prefix in found else found[0]


def _event_json(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "sequence": _number(row),
        "timestamp": row["timestamp"].isoformat().replace("+00:00", "Z"),
        "event_type": row["event_type"],
        "level": row["level"],
        "message": row["message"],
        "maturity_level": row["maturity_level"],
        "origin": {k: v for k, v in row["origin"].items() if v is not None},
        "details": json.loads(row["details"] or "{}"),
        "error": row["error"],
    }
