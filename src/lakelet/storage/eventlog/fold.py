"""Adds up the events of updates: what each update did, as a value.

It takes rows of an event log as `lakelet events --json` prints them, in any order and any number of times, and gives a `History`. Rows of
a hosted event log, whose `details` is JSON text and whose `sequence` is a struct, do as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from lakelet.storage.eventlog.definitions import DefinitionEvents
from lakelet.storage.eventlog.states import FlowState, Level, UpdateState
from lakelet.storage.eventlog.summaries import (
    Backlog,
    Definition,
    Failure,
    FlowRun,
    History,
    SchemaChange,
    TableCheck,
    UpdateRun,
)
from lakelet.storage.rule_counts import RuleCount, summed

Row = Mapping[str, Any]
"""One row of the event log."""
_BECAUSE = re.compile(r"^Flow '[^']*' (?:is|has|was) [A-Z]+ because ", re.DOTALL)
_STARTED = frozenset({FlowState.STARTING, FlowState.RUNNING})


@dataclass
class _Flow:
    """One flow of one update while its events come in."""

    flow: str
    dataset: str
    newest: tuple[int, int] = (-1, -1)
    explained: tuple[int, int] = (-1, -1)
    status: FlowState = FlowState.QUEUED
    reason: str = ""
    failure: Failure | None = None
    queued: int | None = None
    started: int | None = None
    ended: int | None = None
    written_at: int | None = None
    failed_attempts: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    rules: list[RuleCount] = field(default_factory=list)
    backlog: dict[str, int] = field(default_factory=dict)
    looked: tuple[int, int] = (-1, -1)

    def add(self, name: str, number: Any) -> None:
        if number:
            self.counts[name] = self.counts.get(name, 0) + int(number)

    def value(self) -> FlowRun:
        rules = tuple(count for _, count in sorted(summed(self.rules).items()))
        ended = self.ended if self.status.has_ended else None
        return FlowRun(
            self.flow,
            self.dataset,
            self.status,
            self.queued,
            self.started,
            ended,
            attempts=self.failed_attempts + (self.status is not FlowState.FAILED) or 1,
            last_rows_at=self.written_at,
            reason=self.reason,
            rules=rules,
            failure=self.failure if self.status is FlowState.FAILED else None,
            backlog=Backlog(**self.backlog) if self.backlog else None,
            **self.counts,
        )


@dataclass
class _Update:
    """One update while its events come in."""

    id: str
    pipeline_id: str = ""
    pipeline: str = ""
    newest: tuple[int, int] = (-1, -1)
    state: UpdateState = UpdateState.QUEUED
    cause: str = ""
    first: int | None = None
    created: int | None = None
    ended: int | None = None
    full_refresh: tuple[str, ...] = ()
    failure: Failure | None = None
    flows: dict[tuple[str, str], _Flow] = field(default_factory=dict)
    changes: dict[str, SchemaChange] = field(default_factory=dict)
    checks: dict[str, TableCheck] = field(default_factory=dict)
    warnings: dict[str, tuple[int, str]] = field(default_factory=dict)
    definitions: DefinitionEvents = field(default_factory=DefinitionEvents)
    seen: set[str] = field(default_factory=set)

    def flow(self, row: Row, body: Row) -> _Flow:
        origin = row["origin"]
        target = str(origin.get("dataset_name") or origin.get("sink_name") or body.get("dataset") or origin.get("flow_name") or "?")
        name = str(origin.get("flow_name") or body.get("flow_name") or target)
        return self.flows.setdefault((target, name), _Flow(name, target))

    def value(self, number: int) -> UpdateRun:
        in_order = sorted(self.flows.values(), key=lambda f: (f.started if f.started is not None else 1 << 62, f.dataset, f.flow))
        return UpdateRun(
            number,
            self.id,
            self.pipeline_id,
            self.pipeline,
            self.state,
            self.cause,
            self.first if self.created is None else self.created,
            self.ended if self.state.has_ended else None,
            self.full_refresh,
            tuple(flow.value() for flow in in_order),
            tuple(change for _, change in sorted(self.changes.items(), key=lambda kv: (kv[1].at or 0, kv[0]))),
            tuple(sorted(self.checks.values(), key=lambda c: (c.dataset, c.name))),
            tuple(dict.fromkeys(text for _, text in sorted(self.warnings.values()))),
            self.failure,
            self.definitions.value(self.pipeline),
        )


class HistoryBuilder:
    """Takes events as they come and gives the history so far. An event that was taken already changes nothing.

    Args:
        known: updates that have ended, whose events do not come.
        limit: so many of the newest updates are in the history.
    """

    def __init__(self, known: Mapping[str, UpdateRun] | None = None, *, limit: int | None = None) -> None:
        self._known, self._limit = known or {}, limit
        self._updates: dict[str, _Update] = {}
        self._values: dict[str, UpdateRun] = {}

    def feed(self, rows: Iterable[Row]) -> bool:
        """Take rows into account; returns whether any of them was new."""
        changed = False
        for row in rows:
            update_id = (row.get("origin") or {}).get("update_id")
            handler = _HANDLERS.get(row["event_type"]) or (_on_warning if row.get("level") == Level.WARN else None)
            if not update_id:
                continue
            update = self._updates.setdefault(update_id, _Update(update_id))
            if row["id"] in update.seen:
                continue
            update.seen.add(row["id"])
            changed = True
            self._values.pop(update_id, None)
            timestamp = timestamp_of(row["timestamp"])
            _about_update(update, row, timestamp)
            if handler is not None:
                handler(update, row, _body(row), timestamp)
        return changed

    def history(self) -> History:
        """Everything so far."""
        in_order = sorted(
            [
                *((update.started_at or 0, id) for id, update in self._known.items()),
                *((update.first or 0, id) for id, update in self._updates.items()),
            ]
        )
        found: list[UpdateRun] = []
        for number, (_, id) in enumerate(in_order[-self._limit :] if self._limit else in_order):
            value = self._values.get(id)
            if value is None or value.number != number:
                known = self._known.get(id)
                value = replace(known, number=number) if known is not None else self._updates[id].value(number)
                self._values[id] = value
            found.append(value)
        return History(tuple(found), _definitions_of_today(found))


def reduce_events(rows: Iterable[Row]) -> History:
    """The history that the rows of an event log tell, whatever their order."""
    builder = HistoryBuilder()
    builder.feed(rows)
    return builder.history()


def _definitions_of_today(updates: Sequence[UpdateRun]) -> Mapping[str, Definition]:
    newest = {update.pipeline_id: update.definitions for update in updates if update.definitions}
    return {name: definition for found in newest.values() for name, definition in sorted(found.items())}


def timestamp_of(text: str) -> int:
    """ISO 8601 in UTC as milliseconds since 1970."""
    value = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return int(value.timestamp() * 1000)


def _body(row: Row) -> Row:
    details = row.get("details") or {}
    if isinstance(details, str):
        details = json.loads(details)
    return details.get(row["event_type"]) or {}


def _sequence(row: Row) -> int:
    found = row.get("sequence") or 0
    return int(found if not isinstance(found, Mapping) else (found.get("data_plane_id") or {}).get("seq_no") or 0)


def _about_update(update: _Update, row: Row, timestamp: int) -> None:
    origin = row["origin"]
    update.pipeline_id = update.pipeline_id or str(origin.get("pipeline_id") or "")
    update.pipeline = update.pipeline or str(origin.get("pipeline_name") or "")
    update.first = timestamp if update.first is None else min(timestamp, update.first)


def _failure(row: Row) -> Failure | None:
    """The error of an event in the words of the terminal: its outermost exception."""
    exceptions = (row.get("error") or {}).get("exceptions") or ()
    if not exceptions:
        return None
    return Failure(str(exceptions[0].get("class_name") or ""), str(exceptions[0].get("message") or row.get("message") or ""))


# --- one function per type of event ---------------------------------------------------------------------------------------------------


def _on_warning(update: _Update, row: Row, body: Row, timestamp: int) -> None:
    update.warnings[row["id"]] = (_sequence(row), str(row.get("message") or ""))


def _on_create(update: _Update, row: Row, body: Row, timestamp: int) -> None:
    update.cause, update.created = str(body.get("cause") or ""), timestamp
    update.full_refresh = tuple(str(name) for name in body.get("full_refresh_selection") or ())


def _on_update_progress(update: _Update, row: Row, body: Row, timestamp: int) -> None:
    key = (_sequence(row), timestamp)
    if key >= update.newest and body.get("state") in UpdateState.__members__:
        update.newest, update.state = key, UpdateState(body["state"])
        update.failure = _failure(row)
        update.ended = timestamp


def _on_flow_progress(update: _Update, row: Row, body: Row, timestamp: int) -> None:
    flow = update.flow(row, body)
    status = FlowState(body["status"]) if body.get("status") in FlowState.__members__ else FlowState.RUNNING
    if status is FlowState.QUEUED:
        flow.queued = timestamp if flow.queued is None else min(timestamp, flow.queued)
    elif status in _STARTED:
        flow.started = timestamp if flow.started is None else min(timestamp, flow.started)
    elif status.has_ended:
        flow.ended = timestamp if flow.ended is None else max(timestamp, flow.ended)
    if status is FlowState.FAILED:
        flow.failed_attempts += 1
    key = (_sequence(row), timestamp)
    if key >= flow.newest:
        flow.newest, flow.status = key, status
        if status is FlowState.FAILED:
            flow.failure = _failure(row) or Failure("", str(row.get("message") or ""))
    reason = _reason(str(row.get("message") or ""))
    if reason and key >= flow.explained:
        flow.explained, flow.reason = key, reason
    if body.get("metrics") or body.get("data_quality"):
        _measure(flow, body, timestamp)
        _on_backlog(flow, body.get("metrics") or {}, key)
    if row.get("level") == Level.WARN:
        _on_warning(update, row, body, timestamp)


def _reason(message: str) -> str:
    """What stands behind the state in a flow's message, without its last full stop."""
    found = _BECAUSE.match(message)
    return message[found.end() :].rstrip(".") if found else ""


def _measure(flow: _Flow, body: Row, timestamp: int) -> None:
    metrics, quality = body.get("metrics") or {}, body.get("data_quality") or {}
    for name, key in (("written", "num_output_rows"), ("upserted", "num_upserted_rows"), ("deleted", "num_deleted_rows")):
        flow.add(name, metrics.get(key))
    if any(metrics.get(key) for key in ("num_output_rows", "num_upserted_rows", "num_deleted_rows")):
        flow.written_at = max(timestamp, flow.written_at or 0)
    flow.add("dropped", quality.get("dropped_records"))
    flow.add("quarantined", quality.get("quarantined_records"))
    flow.rules += [RuleCount.of_event(rule, flow.dataset) for rule in quality.get("expectations") or ()]


def _on_backlog(flow: _Flow, metrics: Row, key: tuple[int, int]) -> None:
    for name in ("files", "bytes", "records"):
        _largest(flow, name, metrics.get(f"backlog_{name}"))
    if metrics.get("backlog_files") is not None and key >= flow.looked:
        flow.looked = key
        flow.backlog |= {f"left_{name}": int(metrics[f"backlog_{name}"]) for name in ("files", "bytes") if f"backlog_{name}" in metrics}


def _largest(flow: _Flow, name: str, number: Any) -> None:
    if number is not None:
        flow.backlog[name] = max(int(number), flow.backlog.get(name, 0))


def _on_operation(update: _Update, row: Row, body: Row, timestamp: int) -> None:
    details = body.get("auto_loader_details")
    if details:
        flow = update.flow(row, body)
        _largest(flow, "new", details.get("num_files_new"))
        _largest(flow, "listed", details.get("num_files_listed"))


def _on_stream_progress(update: _Update, row: Row, body: Row, timestamp: int) -> None:
    """Backlog as Databricks reports it: in the metrics of a stream's sources."""
    progress = json.loads(body.get("progress_json") or "{}")
    for source in (source.get("metrics") or {} for source in progress.get("sources") or ()):
        for ours, theirs in (("files", "numFilesOutstanding"), ("bytes", "numBytesOutstanding")):
            _largest(update.flow(row, body), ours, source.get(theirs))


def _on_schema_change(update: _Update, row: Row, body: Row, timestamp: int) -> None:
    added, widened = (tuple(_column(c) for c in body.get(key) or ()) for key in ("added", "widened"))
    flow = str(body.get("flow_name") or row["origin"].get("flow_name") or "")
    dataset = str(row["origin"].get("dataset_name") or flow)
    update.changes[row["id"]] = SchemaChange(
        timestamp, dataset, flow, str(body.get("source") or ""), added, widened, body.get("first_file")
    )


def _column(column: Any) -> tuple[str, str]:
    return (str(column.get("name")), str(column.get("type") or "")) if isinstance(column, Mapping) else (str(column), "")


def _on_source_records(update: _Update, row: Row, body: Row, timestamp: int) -> None:
    flow = update.flow(row, body)
    flow.add("corrupt", body.get("corrupt"))
    flow.add("rescued", body.get("rescued"))
    _on_warning(update, row, body, timestamp)


def _on_late_records(update: _Update, row: Row, body: Row, timestamp: int) -> None:
    update.flow(row, body).add("late", body.get("dropped_by_watermark"))
    _on_warning(update, row, body, timestamp)


def _on_table_check(update: _Update, row: Row, body: Row, timestamp: int) -> None:
    def text(key: str) -> str:
        value = body.get(key)
        return "" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)

    dataset = str(body.get("dataset") or row["origin"].get("dataset_name") or "")
    success, version = body.get("success"), body.get("table_version")
    about = (str(body.get("name")), str(body.get("severity") or ""), None if success is None else bool(success))
    shown = (text("observed"), text("expected"), str(body.get("message") or row.get("message") or ""))
    update.checks[row["id"]] = TableCheck(timestamp, dataset, *about, None if version is None else int(version), *shown)


def _on_definition(update: _Update, row: Row, body: Row, timestamp: int) -> None:
    update.definitions.take(row["event_type"], row["origin"], body)


_HANDLERS: Mapping[str, Callable[[_Update, Row, Row, int], None]] = {
    "create_update": _on_create,
    "update_progress": _on_update_progress,
    "flow_progress": _on_flow_progress,
    "operation_progress": _on_operation,
    "stream_progress": _on_stream_progress,
    "schema_change": _on_schema_change,
    "source_records": _on_source_records,
    "late_records": _on_late_records,
    "table_check": _on_table_check,
    "dataset_definition": _on_definition,
    "sink_definition": _on_definition,
    "flow_definition": _on_definition,
    "column_lineage": _on_definition,
}
