"""Events of a hosted pipeline as the values of the local event log. What one side does not have is left out, never made up."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from lakelet.base.errors import CODES, ExitCode, LakeletError
from lakelet.base.redaction import REDACTED, is_secret, redacted_values
from lakelet.base.text import moment_of
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.states import EventType, FlowState, Level, UpdateState

Row = Mapping[str, Any]
"""One event as the workspace answers it: `GET /api/2.0/pipelines/{id}/events`, `details` included."""

_CODED = re.compile(r"^\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_.]+)?\]\s*")
_ALARMS = (Level.WARN, Level.ERROR)


def event_of(row: Row) -> Event | None:
    """Return the event for the listeners of an update, None for one that says nothing to them.

    A warning or an error of a type that no update here has becomes a `notice` with its text.
    """
    level, message = _level(row), str(row.get("message") or "")
    kind, body = str(row.get("event_type")), body_of(row)
    if kind not in EventType.__members__.values() or kind == EventType.MAINTENANCE_PROGRESS:  # which belongs to no update
        if level not in _ALARMS:
            return None
        kind, level, body = EventType.NOTICE, Level.WARN, {"text": message}
    return Event(
        EventType(kind),
        message,
        _origin(row.get("origin") or {}),
        {kind: _readable(kind, body)},
        level=level,
        error=error_of(row),
        timestamp=time_of(row),
        id=str(row.get("id")),
        sequence=sequence_of(row),
    )


def json_of(row: Row) -> dict[str, Any]:
    """The event as plain JSON values, in the form of `lakelet events --json`: everything that the workspace said, without secrets."""
    kind = str(row.get("event_type"))
    found: dict[str, Any] = redacted_values(
        {
            "id": row.get("id"),
            "sequence": sequence_of(row),
            "timestamp": time_of(row).isoformat().replace("+00:00", "Z"),
            "event_type": kind,
            "level": row.get("level"),
            "message": row.get("message") or "",
            "maturity_level": row.get("maturity_level"),
            "origin": {name: value for name, value in (row.get("origin") or {}).items() if value is not None},
            "details": {kind: body_of(row)},
            "error": row.get("error"),
        }
    )
    return found


def error_of(row: Row) -> LakeletError | None:
    """The error of an event: Databricks' own text, under Lakelet's code where the text begins with one that Lakelet has."""
    exceptions = (row.get("error") or {}).get("exceptions") or ()
    if not exceptions:
        return None
    first = exceptions[0]
    text = str(first.get("message") or row.get("message") or "").strip()
    named = _CODED.match(text)
    code = named[1] if named else str(first.get("class_name") or "")
    if code in CODES and CODES[code].exit_code is ExitCode.FAILED:
        text = text[named.end() :] if named else text
    else:
        code = "REMOTE_FAILED"
    what, *more = text.splitlines() or [str(first.get("class_name") or "no text")]
    causes = [f"{e.get('class_name')}: {e.get('message')}" for e in exceptions[1:3]]
    kind = [str(first["class_name"])] if first.get("class_name") and code == "REMOTE_FAILED" else []
    why = "\n".join([*more[:8], *kind, *causes])
    return LakeletError(code, what, dataset=_origin(row.get("origin") or {}).target_name, why=why or None)


def body_of(row: Row) -> Mapping[str, Any]:
    """The part of the event's `details` below its type."""
    details = row.get("details") or {}
    found = (json.loads(details) if isinstance(details, str) else details).get(row.get("event_type"))
    return _without_secrets(found) if isinstance(found, Mapping) else {}


def _without_secrets(value: Any) -> Any:
    """The value without texts under keys that sound like secrets: the configuration of a pipeline stands in its events."""
    if isinstance(value, Mapping):
        return {key: REDACTED if isinstance(item, str) and is_secret(str(key)) else _without_secrets(item) for key, item in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value


def update_of(row: Row) -> str:
    """The update that an event belongs to; empty for one of the pipeline itself."""
    return str((row.get("origin") or {}).get("update_id") or "")


def time_of(row: Row) -> datetime:
    """When it happened, in UTC."""
    moment = moment_of(str(row["timestamp"]))
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def sequence_of(row: Row) -> int:
    """Its number within its update, 0 where it has none."""
    sequence = row.get("sequence") or 0
    return int((sequence.get("data_plane_id") or {}).get("seq_no") or 0) if isinstance(sequence, Mapping) else int(sequence)


def _origin(origin: Mapping[str, Any]) -> Origin:
    def text(name: str) -> str | None:
        return None if origin.get(name) is None else str(origin[name])

    batch = origin.get("batch_id")
    return Origin(
        text("pipeline_id") or "",
        text("pipeline_name") or "",
        text("update_id") or "",
        text("dataset_name"),
        text("flow_name"),
        text("flow_id"),
        None if batch is None else int(batch),
        text("sink_name"),
    )


def _level(row: Row) -> Level:
    return Level(row["level"]) if row.get("level") in Level.__members__.values() else Level.INFO


def _readable(kind: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The body with states that Lakelet has words for: of another one of an update only the message is used, a flow in one is at work."""
    if kind == EventType.UPDATE_PROGRESS and body.get("state") not in UpdateState.__members__.values():
        return {name: value for name, value in body.items() if name != "state"}
    if kind == EventType.FLOW_PROGRESS and body.get("status") not in FlowState.__members__.values():
        return {**body, "status": FlowState.RUNNING}
    return body
