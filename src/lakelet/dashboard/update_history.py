"""The updates that the page shows: rows of a storage's event log, and updates that have ended, kept beside the log for the next report.

Definitions are large and the page shows those of today: all of them are read of two updates of each pipeline only, what is and what was
before. Of older updates those are read that differ from the ones before, so that edited rules are known.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
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
from lakelet.storage.eventlog.appended import AppendedRows, appended_since
from lakelet.storage.eventlog.reading import ROW_COLUMNS, coded, open_log, row_of
from lakelet.storage.eventlog.summaries import History, UpdateSummary
from lakelet.storage.root import Storage

UPDATES = 1000
"""The newest updates are on the page; older ones stay in the event log."""
_DEFINITIONS = ("dataset_definition", "sink_definition", "flow_definition", "column_lineage")
_WITH_RULES = ("dataset_definition", "flow_definition")
_UNUSED = ("user_action", "runtime_details", "planning_information", "stream_progress")
_OVERLAP = timedelta(minutes=1)  # events are written in batches: one may carry an earlier time than what was read before


class EventRows:
    """Reads the event log of one storage, again and again; every call gives what may be new since the last one.

    Args:
        updates: how many of the newest updates are read.
        known: ids of updates that need not be read.
        position: version of the log up to which only `known` updates have events; None where that is not known.
    """

    def __init__(self, storage: AnyPath, *, updates: int = UPDATES, known: Collection[str] = (), position: int | None = None) -> None:
        self._path, self._updates, self._known = Storage(storage).events, updates, frozenset(known)
        self._position = position
        self._first_versions: dict[str, int] | None = {}
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
            appended = appended_since(self._path, self._position) if self._version is None and self._position is not None else None
            rows = self._rows_of_log() if appended is None else self._rows_of_commits(appended)
            self._stamp = stamp
            for row in rows:
                self._newest = max(self._newest or row["timestamp"], row["timestamp"])
                yield row_of(row)

    def position(self, running: Collection[str]) -> int | None:
        """The version up to which a later reader that knows all updates but the `running` ones need not read; None if that is not known."""
        if self._version is None or not running:
            return self._version
        if self._first_versions is None:
            return None
        return min(self._first_versions.get(id, 0) for id in running) - 1

    def _rows_of_log(self) -> Iterator[Mapping[str, Any]]:
        """The rows that a scan of the whole log gives."""
        table = open_log(self._path)
        if table is None or table.version() == self._version:
            return
        self._version, self._first_versions = table.version(), None
        yield from query_rows(table, f"SELECT {ROW_COLUMNS} FROM t WHERE {self._row_condition(table)}")

    def _rows_of_commits(self, appended: AppendedRows) -> Iterator[Mapping[str, Any]]:
        """The rows that the commits since the last report appended."""
        self._version, self._first_versions = appended.version, {}
        found = [(version, row) for version, row in appended.rows if row["update_id"] and row["update_id"] not in self._known]
        defined: dict[str, list[str]] = {}
        in_order = sorted(found, key=lambda one: one[1]["timestamp"])
        for _, row in reversed(in_order):
            ids = defined.setdefault(row["pipeline_id"], [])
            if row["event_type"] in _DEFINITIONS and row["update_id"] not in ids:
                ids.append(row["update_id"])
        changed = _changed_definitions(row for _, row in in_order)
        for version, row in found:
            self._first_versions.setdefault(row["update_id"], version)
            is_old = row["event_type"] in _DEFINITIONS and row["update_id"] not in defined[row["pipeline_id"]][:_WITH_DEFINITIONS]
            if row["event_type"] not in _UNUSED and (not is_old or row["id"] in changed):
                yield row

    def _row_condition(self, table: Any) -> str:
        used = f"event_type NOT IN {_in_list(_UNUSED)}"
        if self._newest is not None:
            return f'{used} AND "timestamp" >= {_timestamp_literal(self._newest - _OVERLAP)}'
        with_definitions = _in_list(_updates_with_definitions(table))
        changed = f"id IN {_in_list(_ids_of_changed_definitions(table))}"
        conditions = [used, f"(event_type NOT IN {_in_list(_DEFINITIONS)} OR origin['update_id'] IN {with_definitions} OR {changed})"]
        newest = _newest_updates(table, self._updates)
        if self._known:
            conditions.append(f"(origin['update_id'] IS NULL OR origin['update_id'] NOT IN {_in_list(self._known)})")
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
        WHERE event_type IN {_in_list(_DEFINITIONS)} GROUP BY origin['pipeline_id'], origin['update_id'] ORDER BY at DESC"""
    for row in query_rows(table, sql):
        found.setdefault(str(row["pipeline"]), []).append(str(row["id"]))
    return [update for ids in found.values() for update in ids[:_WITH_DEFINITIONS]]


def _ids_of_changed_definitions(table: Any) -> list[str]:
    """The events that define rules in another way than the event before about the same dataset, and the first one about each."""
    subject = "origin['pipeline_id'], event_type, origin['dataset_name'], origin['flow_name']"
    before = f'lag(md5(details)) OVER (PARTITION BY {subject} ORDER BY "timestamp")'
    sql = f"""SELECT id FROM (SELECT id, md5(details) AS said, {before} AS before FROM t WHERE event_type IN {_in_list(_WITH_RULES)})
        WHERE before IS NULL OR before <> said"""
    return [str(row["id"]) for row in query_rows(table, sql)]


def _changed_definitions(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """The same of rows that were appended, oldest first."""
    before, found = dict[tuple[Any, ...], Any](), set[str]()
    for row in rows:
        if row["event_type"] in _WITH_RULES:
            subject = row["pipeline_id"], row["event_type"], row["dataset_name"], row["flow_name"]
            if before.get(subject) != row["details"]:
                found.add(row["id"])
            before[subject] = row["details"]
    return found


def _newest_updates(table: Any, updates: int) -> list[str]:
    """The newest updates, if there are more than `updates`; else nothing, which means all."""
    sql = "SELECT origin['update_id'] AS id, min(\"timestamp\") AS at FROM t GROUP BY origin['update_id'] ORDER BY at DESC"
    ids = [str(row["id"]) for row in query_rows(table, sql) if row["id"] is not None]
    return ids[:updates] if len(ids) > updates else []


def _in_list(texts: Iterable[str]) -> str:
    return f"({', '.join(map(sql_literal, texts)) or 'NULL'})"


def _timestamp_literal(timestamp: datetime) -> str:
    return f"TIMESTAMP '{timestamp.astimezone(timezone.utc).isoformat()}'"


_FORMAT = 8
_WITH_DEFINITIONS = 2
"""Number of newest updates of a pipeline that keep their definitions: the page compares the last one with those before."""


@dataclass(frozen=True)
class EndedUpdates:
    """Updates that have ended, by their ids, and the lines of the file that hold them.

    `position`: that of `EventRows`, for who knows these updates.
    """

    updates: Mapping[str, UpdateSummary] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    position: int | None = None


def load_ended_updates(file: AnyPath, log: str) -> EndedUpdates:
    """The ended updates of the event log with this id; none if the file does not have them."""
    try:
        head, *lines = file.read_text().splitlines()
        found = json.loads(head)
        if (found["format"], found["version"], found["log"]) != (_FORMAT, VERSION, log):
            return EndedUpdates()
        updates = [_instance(UpdateSummary, json.loads(line)) for line in lines]
        return EndedUpdates({u.id: u for u in updates}, {u.id: line for u, line in zip(updates, lines, strict=True)}, found["position"])
    except (OSError, ValueError, KeyError, TypeError, LakeletError):  # not there, or not as this version writes it
        return EndedUpdates()


def save_ended_updates(file: AnyPath, log: str, history: History, known: EndedUpdates, position: int | None) -> None:
    """Keep the updates of a history that have ended, those that were known by their lines. Raises STORAGE_FAILED."""
    left: dict[str, int] = {}
    kept = []
    for update in reversed(history.updates):
        if not update.state.has_ended:
            continue
        line = known.lines.get(update.id)
        if update.definitions:
            left[update.pipeline_id] = left.get(update.pipeline_id, 0) + 1
            if left[update.pipeline_id] > _WITH_DEFINITIONS:
                update, line = replace(update, definitions={}), None
        kept.append(_line_of(_json_value(update)) if line is None else line)
    head = _line_of({"format": _FORMAT, "version": VERSION, "log": log, "position": position})
    write_atomically(file, "\n".join([head, *reversed(kept)]) + "\n")


def _line_of(value: Any) -> str:
    """JSON on one line for `str.splitlines`, which ends lines at characters of other alphabets, too."""
    return json.dumps(value, separators=(",", ":"))


@dataclass(frozen=True)
class _StoredField:
    """A field of a dataclass. `default`: with which it is left out; `made`: its value from JSON, None where that is the value itself."""

    name: str
    default: Any
    made: Callable[[Any], Any] | None


_fields_by_class: dict[Any, tuple[_StoredField, ...]] = {}
_converters: dict[Any, Mapping[str, Callable[[Any], Any]]] = {}
"""Of the fields of a class that JSON has in another form."""


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
    if kind not in _converters:
        _converters[kind] = {stored.name: stored.made for stored in _fields_of(kind) if stored.made is not None}
    made = _converters[kind]
    return kind(**{name: made[name](value) if name in made else value for name, value in given.items()})


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
