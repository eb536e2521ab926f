"""The updates that the page shows: rows of a storage's event log, and updates that have ended, kept beside the log for the next report.

Definitions are large and the page shows those of today: they are read of two updates of each pipeline only, what is and what was before.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from lakelet.base import VERSION
from lakelet.base.errors import LakeletError
from lakelet.files.delta_rs import query_rows, sql_literal
from lakelet.files.durable import write_atomically
from lakelet.files.paths import AnyPath
from lakelet.storage.eventlog.reading import ROW_COLUMNS, coded, open_log, row_of
from lakelet.storage.eventlog.summaries import History, UpdateSummary
from lakelet.storage.root import Storage

UPDATES = 1000
"""The newest updates are on the page; older ones stay in the event log."""
_DEFINITIONS = "('dataset_definition', 'sink_definition', 'flow_definition', 'column_lineage')"
_UNUSED = "('user_action', 'runtime_details', 'planning_information', 'stream_progress')"
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
            stamp = _log_change_time(self._path)
            if stamp is not None and stamp == self._stamp:
                return
            table = open_log(self._path)
            if table is None or table.version() == self._version:
                return
            self._stamp, self._version = stamp, table.version()
            for row in query_rows(table, f"SELECT {ROW_COLUMNS} FROM t WHERE {self._row_condition(table)}"):
                self._newest = max(self._newest or row["timestamp"], row["timestamp"])
                yield row_of(row)

    def _row_condition(self, table: Any) -> str:
        used = f"event_type NOT IN {_UNUSED}"
        if self._newest is not None:
            return f'{used} AND "timestamp" >= {_timestamp_literal(self._newest - _OVERLAP)}'
        conditions = [used, f"(event_type NOT IN {_DEFINITIONS} OR origin['update_id'] IN {_in_list(_updates_with_definitions(table))})"]
        newest = _newest_updates(table, self._updates)
        if self._known:
            conditions.append(f"(origin['update_id'] IS NULL OR origin['update_id'] NOT IN {_in_list(list(self._known))})")
        return " AND ".join([*conditions, *([f"origin['update_id'] IN {_in_list(newest)}"] if newest else [])])


def log_id(storage: AnyPath) -> str | None:
    """What names the event log of a storage, and no other; None where there is none yet. Raises EVENT_LOG_FAILED."""
    path = Storage(storage).events
    with coded(path):
        table = open_log(path)
        return None if table is None else str(table.metadata().id)


def _log_change_time(path: AnyPath) -> int | None:
    """When something was last written to a log of this machine; cheaper than to open the table."""
    try:
        return (path / "_delta_log").stat().st_mtime_ns if isinstance(path, Path) else None
    except OSError:
        return None


def _updates_with_definitions(table: Any) -> list[str]:
    """The two newest updates of each pipeline that defined datasets."""
    found: dict[str, list[str]] = {}
    sql = f"""SELECT origin['pipeline_id'] AS pipeline, origin['update_id'] AS id, min("timestamp") AS at FROM t
        WHERE event_type IN {_DEFINITIONS} GROUP BY origin['pipeline_id'], origin['update_id'] ORDER BY at DESC"""
    for row in query_rows(table, sql):
        found.setdefault(str(row["pipeline"]), []).append(str(row["id"]))
    return [update for ids in found.values() for update in ids[:2]]


def _newest_updates(table: Any, updates: int) -> list[str]:
    """The newest updates, if there are more than `updates`; else nothing, which means all."""
    sql = "SELECT origin['update_id'] AS id, min(\"timestamp\") AS at FROM t GROUP BY origin['update_id'] ORDER BY at DESC"
    ids = [str(row["id"]) for row in query_rows(table, sql) if row["id"] is not None]
    return ids[:updates] if len(ids) > updates else []


def _in_list(texts: list[str]) -> str:
    return f"({', '.join(map(sql_literal, texts)) or 'NULL'})"


def _timestamp_literal(timestamp: datetime) -> str:
    return f"TIMESTAMP '{timestamp.astimezone(timezone.utc).isoformat()}'"


_FORMAT = 4
_WITH_DEFINITIONS = 2
"""Number of newest updates of a pipeline that keep their definitions: the page compares the last one with those before."""


def load_ended_updates(file: AnyPath, log: str) -> dict[str, UpdateSummary]:
    """The ended updates of the event log with this id, by their own ids; none if the file does not have them."""
    try:
        found = json.loads(file.read_text())
        if (found["format"], found["version"], found["log"]) != (_FORMAT, VERSION, log):
            return {}
        return {update["id"]: _instance(UpdateSummary, update) for update in found["updates"]}
    except (OSError, ValueError, KeyError, TypeError, LakeletError):  # not there, or not as this version writes it
        return {}


def save_ended_updates(file: AnyPath, log: str, history: History) -> None:
    """Keep the updates of a history that have ended. Raises STORAGE_FAILED."""
    left: dict[str, int] = {}
    kept = []
    for update in reversed(history.updates):
        if not update.state.has_ended:
            continue
        if update.definitions:
            left[update.pipeline_id] = left.get(update.pipeline_id, 0) + 1
        kept.append(update if left.get(update.pipeline_id, 0) <= _WITH_DEFINITIONS else replace(update, definitions={}))
    content = {"format": _FORMAT, "version": VERSION, "log": log, "updates": [_json_value(update) for update in reversed(kept)]}
    write_atomically(file, json.dumps(content, ensure_ascii=False, separators=(",", ":")))


@dataclass(frozen=True)
class _StoredField:
    """A field of a dataclass. `default`: with which it is left out; `made`: its value from JSON, None where that is the value itself."""

    name: str
    default: Any
    made: Callable[[Any], Any] | None


_fields_by_class: dict[Any, tuple[_StoredField, ...]] = {}


def _fields_of(kind: Any) -> tuple[_StoredField, ...]:
    if kind not in _fields_by_class:
        types_of = get_type_hints(kind)
        _fields_by_class[kind] = tuple(_StoredField(f.name, f.default, _converter(types_of[f.name])) for f in fields(kind))
    return _fields_by_class[kind]


def _json_value(value: Any) -> Any:
    """A value of the page for JSON: dataclasses as objects without the fields that have their defaults."""
    if isinstance(value, tuple):
        return [_json_value(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _json_value(one) for key, one in value.items()}
    if not is_dataclass(value):
        return value
    found = ((f.name, getattr(value, f.name), f.default) for f in _fields_of(type(value)))
    return {name: _json_value(one) for name, one, default in found if one is not default and one != default}


def _instance(kind: Any, given: Mapping[str, Any]) -> Any:
    """A dataclass from an object of JSON. Raises TypeError and ValueError where it is none."""
    values = dict(given)
    for field in _fields_of(kind):
        if field.made is not None and field.name in values:
            values[field.name] = field.made(values[field.name])
    return kind(**values)


def _converter(kind: Any) -> Callable[[Any], Any] | None:
    """What makes a value of a type from JSON; None for the types that JSON has."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (one,) = [_converter(k) for k in inner if k is not type(None)]
        return None if one is None else lambda given: None if given is None else one(given)
    if origin is tuple and inner[-1] is ...:
        return partial(_tuple_of, _converter(inner[0]))
    if origin is tuple:
        parts = [_converter(k) or (lambda given: given) for k in inner]
        return lambda given: tuple(part(one) for part, one in zip(parts, given, strict=True))
    if origin is Mapping:
        return partial(_mapping_of, _converter(inner[1]))
    if is_dataclass(kind):
        return partial(_instance, kind)
    return kind if issubclass(kind, Enum) else None


def _tuple_of(each: Callable[[Any], Any] | None, given: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(given) if each is None else tuple(map(each, given))


def _mapping_of(each: Callable[[Any], Any] | None, given: Mapping[str, Any]) -> dict[str, Any]:
    return dict(given) if each is None else {key: each(one) for key, one in given.items()}
