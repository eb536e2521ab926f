"""Adds up the events of updates: what each update did, as a value.

It takes rows of an event log as `lakelet events --json` prints them, in any order and any number of times, and gives a `History`. Rows of
an event log on Databricks, whose `details` is JSON text and whose `sequence` is a struct, do as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any, TypeVar

from lakelet.storage.eventlog.definitions import DefinitionEvents
from lakelet.storage.eventlog.states import EventType, FlowState, Level, UpdateState
from lakelet.storage.eventlog.summaries import (
    Backlog,
    DatasetDefinition,
    Failure,
    FirstViolation,
    FlowSummary,
    History,
    RecordPlace,
    RuleEdit,
    SchemaChangeEvent,
    TableCheckResult,
    UpdateSummary,
    UpdateWarning,
    seconds_between,
)
from lakelet.storage.rule_counts import RowSample, RuleCount, summed

Row = Mapping[str, Any]
"""One row of the event log."""
Value = TypeVar("Value")
Counts = dict[tuple[str, str], RuleCount]
"""What each rule counted, by dataset and name."""
Key = tuple[int, int]
"""Place of an event in its update: its sequence number and its time."""
_BECAUSE = re.compile(r"^Flow '[^']*' (?:is|has|was) [A-Z]+ because ", re.DOTALL)
NO_FLOW = "pipelines.flowTimeMetrics.missingFlowName"
"""Name that Databricks gives to progress that is of no flow."""
AT_ONCE = 100
"""So many updates leave a history with a limit together: the numbers of the others change only then."""
_MOST_SAMPLES = 20
"""Rows of one rule, flow and update that a history keeps: those of the earliest batches."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NEVER = (1 << 62, 0)
_UNREAD = ("corrupt", "left_out", "rescued", "passed_over", "undecodable")
"""Counts of `source_records`."""
_COUNTED = frozenset((EventType.SOURCE_RECORDS, EventType.LATE_RECORDS))
_SHOWN_AS_VALUES = frozenset(
    (
        *(EventType.UPDATE_PROGRESS, EventType.TABLE_CHECK, EventType.SCHEMA_CHANGE, EventType.COLUMN_LINEAGE),
        *(EventType.DATASET_DEFINITION, EventType.SINK_DEFINITION, EventType.FLOW_DEFINITION),
    )
)
"""Types whose warnings are values of their own: states, checks, columns."""


@dataclass
class _Flow:
    """One flow of one update while its events come in."""

    flow: str
    dataset: str
    to_sink: bool = False
    first: Key = _NEVER
    newest: Key = (-1, -1)
    explained: Key = (-1, -1)
    status: FlowState = FlowState.QUEUED
    reason: str = ""
    failure: Failure | None = None
    queued: int | None = None
    started: int | None = None
    ended: int | None = None
    written_at: int | None = None
    failed_attempts: int = 0
    rows_reported: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    rules: Counts = field(default_factory=dict)
    unwritten_rules: Counts = field(default_factory=dict)
    backlog: dict[str, int] = field(default_factory=dict)
    backlog_read: Key = (-1, -1)
    unread_place: tuple[Key, RecordPlace] | None = None
    unread_reason: tuple[Key, str] | None = None
    places: dict[str, tuple[Key, RecordPlace]] = field(default_factory=dict)
    violation: FirstViolation | None = None
    samples: dict[tuple[str, str], dict[RowSample, Key]] = field(default_factory=dict)

    def add(self, name: str, number: Any) -> None:
        if number:
            self.counts[name] = self.counts.get(name, 0) + int(number)

    def value(self) -> FlowSummary:
        return FlowSummary(
            self.flow,
            self.dataset,
            self.status,
            self.queued,
            self.started,
            self.ended if self.status.has_ended else None,
            attempts=self.failed_attempts + (self.status is not FlowState.FAILED) or 1,
            last_rows_at=self.written_at,
            reason=self.reason,
            rules=_in_order_of_names(self.rules),
            unwritten_rules=_in_order_of_names(self.unwritten_rules),
            failure=self.failure if self.status is FlowState.FAILED else None,
            backlog=Backlog(**self.backlog) if self.backlog else None,
            to_sink=self.to_sink,
            rows_known=not self.to_sink or self.rows_reported,
            unread_place=self.unread_place[1] if self.unread_place else None,
            unread_reason=self.unread_reason[1] if self.unread_reason else "",
            corrupt_place=self.places["corrupt"][1] if "corrupt" in self.places else None,
            rescued_place=self.places["rescued"][1] if "rescued" in self.places else None,
            violation=self.violation if self.status is FlowState.FAILED else None,
            samples=tuple(sample for _, kept in sorted(self.samples.items()) for sample in _first_samples(kept)),
            **self.counts,
        )


def _first_samples(kept: Mapping[RowSample, Key]) -> list[RowSample]:
    return sorted(kept, key=lambda sample: (kept[sample], sample.row_json, sample.file or ""))[:_MOST_SAMPLES]


def _in_order_of_names(counts: Counts) -> tuple[RuleCount, ...]:
    return tuple(count for _, count in sorted(counts.items()))


@dataclass
class UpdateFold:
    """One update while its events come in, in any order. An event that was taken already changes nothing."""

    id: str
    pipeline_id: str = ""
    pipeline: str = ""
    newest: Key = (-1, -1)
    state: UpdateState = UpdateState.QUEUED
    cause: str = ""
    first: int | None = None
    last: int | None = None
    created: int | None = None
    ended: int | None = None
    full_refresh: tuple[str, ...] = ()
    failure: Failure | None = None
    flows: dict[tuple[str, str], _Flow] = field(default_factory=dict)
    changes: dict[str, tuple[Key, SchemaChangeEvent]] = field(default_factory=dict)
    checks: dict[str, tuple[Key, TableCheckResult]] = field(default_factory=dict)
    warnings: dict[str, tuple[Key, UpdateWarning]] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)
    definitions: DefinitionEvents = field(default_factory=DefinitionEvents)
    seen: set[str] = field(default_factory=set)

    def take(self, row: Row) -> bool:
        """Take one event of the update into account; returns whether it was new."""
        if row["id"] in self.seen:
            return False
        self.seen.add(row["id"])
        origin, timestamp = row["origin"], timestamp_of(row["timestamp"])
        self.pipeline_id = self.pipeline_id or str(origin.get("pipeline_id") or "")
        self.pipeline = self.pipeline or str(origin.get("pipeline_name") or "")
        self.first = timestamp if self.first is None else min(timestamp, self.first)
        self.last = timestamp if self.last is None else max(timestamp, self.last)
        handler = _HANDLERS.get(row["event_type"])
        if handler is not None:
            handler(self, row, _event_body(row), timestamp)
        self._take_warning(row, timestamp)
        return True

    def flow(self, row: Row, body: Row) -> _Flow:
        """The flow that an event is about."""
        target, name = _flow_key(row["origin"], body)
        found = self.flows.get((target, name))
        if found is None:
            found = self.flows[target, name] = _Flow(name, target, to_sink=bool(row["origin"].get("sink_name")))
        return found

    def flow_run(self, row: Row) -> FlowSummary:
        """What the flow of an event did so far."""
        return self.flow(row, _event_body(row)).value()

    def datasets(self) -> list[str]:
        """The names of the datasets that events were about."""
        return list(dict.fromkeys(dataset for dataset, _ in self.flows))

    @property
    def seconds(self) -> float:
        """Time from the first event to the newest one."""
        return seconds_between(self.first, self.last) or 0.0

    def is_repeated(self, message: str) -> bool:
        """Whether several warnings have this text."""
        return message in self.repeated

    def _take_warning(self, row: Row, timestamp: int) -> None:
        kind = row["event_type"]
        failed = kind == EventType.NOTICE and row.get("level") == Level.ERROR
        if kind in _COUNTED or failed or (row.get("level") == Level.WARN and kind not in _SHOWN_AS_VALUES):
            skipped = kind == EventType.FLOW_PROGRESS and _event_body(row).get("status") == FlowState.SKIPPED
            text, key = str(row.get("message") or ""), (_sequence_number(row), timestamp)
            if text in self.warnings:
                self.repeated.add(text)
                key = min(key, self.warnings[text][0])
            self.warnings[text] = key, UpdateWarning(text, counted=skipped or failed or kind in _COUNTED)

    def value(self, number: int = 0) -> UpdateSummary:
        """What the update did so far. `number`: its place in the log."""
        return UpdateSummary(
            number,
            self.id,
            self.pipeline_id,
            self.pipeline,
            self.state,
            self.cause,
            self.first if self.created is None else self.created,
            self.ended if self.state.has_ended else None,
            self.full_refresh,
            tuple(flow.value() for flow in sorted(self.flows.values(), key=lambda f: (f.first, f.dataset, f.flow))),
            tuple(_in_order(self.changes)),
            tuple(_in_order(self.checks)),
            tuple(_in_order(self.warnings)),
            self.failure,
            self.definitions.value(self.pipeline),
            self.last,
        )


def _in_order(found: Mapping[str, tuple[Key, Value]]) -> list[Value]:
    """Values by the id of their event, or by their text, in the order of the events."""
    return [value for _, (_, value) in sorted(found.items(), key=lambda item: (item[1][0], item[0]))]


class LiveUpdate:
    """The update whose events come in now. The first event of another update (a retry) begins again. Not thread-safe: the caller locks."""

    def __init__(self) -> None:
        self.fold = UpdateFold("")
        self._value: UpdateSummary | None = None

    def feed(self, row: Row) -> None:
        """Take one event into account."""
        update_id = str(row["origin"].get("update_id") or "")
        if update_id != self.fold.id:
            self.fold = UpdateFold(update_id)
        self.fold.take(row)
        self._value = None

    def value(self) -> UpdateSummary:
        """What the update did so far."""
        if self._value is None:
            self._value = self.fold.value()
        return self._value


class HistoryBuilder:
    """Takes events as they come and gives the history so far. An event that was taken already changes nothing.

    Args:
        known: updates that have ended, whose events do not come.
        limit: so many of the newest updates are in the history, and up to AT_ONCE older ones.
    """

    def __init__(self, known: Mapping[str, UpdateSummary] | None = None, *, limit: int | None = None) -> None:
        self._known, self._limit = known or {}, limit
        self._updates: dict[str, UpdateFold] = {}
        self._values: dict[str, UpdateSummary] = {}

    def feed(self, rows: Iterable[Row]) -> bool:
        """Take rows into account; returns whether any of them was new."""
        changed = False
        for row in rows:
            update_id = (row.get("origin") or {}).get("update_id")
            if update_id and self._updates.setdefault(update_id, UpdateFold(update_id)).take(row):
                changed = True
                self._values.pop(update_id, None)
        return changed

    def history(self) -> History:
        """Everything so far."""
        in_order = sorted(
            [
                *((update.started_at or 0, id) for id, update in self._known.items()),
                *((update.first or 0, id) for id, update in self._updates.items()),
            ]
        )
        found: list[UpdateSummary] = []
        surplus = max(0, len(in_order) - self._limit) if self._limit else 0
        for number, (_, id) in enumerate(in_order[surplus - surplus % AT_ONCE :]):
            value = self._values.get(id)
            if value is None or value.number != number:
                known = self._known.get(id)
                value = replace(known, number=number) if known is not None else self._updates[id].value(number)
                self._values[id] = value
            found.append(value)
        return History(tuple(_with_rule_edits(found)), _definitions_of_today(found))


def reduce_events(rows: Iterable[Row]) -> History:
    """The history that the rows of an event log tell, whatever their order."""
    builder = HistoryBuilder()
    builder.feed(rows)
    return builder.history()


def _with_rule_edits(updates: Iterable[UpdateSummary]) -> Iterator[UpdateSummary]:
    """The updates with the edits of rules between them. Known updates keep their edits: their definitions may be left out."""
    texts: dict[str, dict[tuple[str, str], tuple[str, str]]] = {}
    for update in updates:
        known, edits = texts.setdefault(update.pipeline_id, {}), update.rule_edits
        if not edits and update.definitions:
            edits = tuple(
                RuleEdit(update.number, *key, known[key], text)
                for key, text in update.rule_texts.items()
                if key in known and known[key] != text
            )
        known.update(update.rule_texts)
        known.update({(edit.dataset, edit.rule): edit.after for edit in edits})
        yield replace(update, rule_edits=edits) if edits != update.rule_edits else update


def _definitions_of_today(updates: Sequence[UpdateSummary]) -> Mapping[str, DatasetDefinition]:
    newest = {update.pipeline_id: update.definitions for update in updates if update.definitions}
    return {name: definition for found in newest.values() for name, definition in sorted(found.items())}


def timestamp_of(text: str) -> int:
    """ISO 8601 in UTC as milliseconds since 1970."""
    return (datetime.fromisoformat(text.replace("Z", "+00:00")) - _EPOCH) // timedelta(milliseconds=1)


def _event_body(row: Row) -> Row:
    details = row.get("details") or {}
    if isinstance(details, str):
        details = json.loads(details)
    return details.get(row["event_type"]) or {}


def _sequence_number(row: Row) -> int:
    found = row.get("sequence") or 0
    return int(found if not isinstance(found, Mapping) else (found.get("data_plane_id") or {}).get("seq_no") or 0)


def _flow_key(origin: Row, body: Row) -> tuple[str, str]:
    """The target and the name of the flow that an event is about."""
    target = (
        origin.get("dataset_name") or origin.get("sink_name") or body.get("dataset") or body.get("flow_name") or origin.get("flow_name")
    )
    return str(target or "?"), str(origin.get("flow_name") or body.get("flow_name") or target or "?")


def _failure_of_event(row: Row) -> Failure | None:
    """The error of an event in the words of the terminal: its outermost exception."""
    exceptions = (row.get("error") or {}).get("exceptions") or ()
    if not exceptions:
        return None
    return Failure(str(exceptions[0].get("class_name") or ""), str(exceptions[0].get("message") or row.get("message") or ""))


# --- one function per type of event ---------------------------------------------------------------------------------------------------


def _on_create(update: UpdateFold, row: Row, body: Row, timestamp: int) -> None:
    update.cause, update.created = str(body.get("cause") or ""), timestamp
    update.full_refresh = tuple(str(name) for name in body.get("full_refresh_selection") or ())


def _on_update_progress(update: UpdateFold, row: Row, body: Row, timestamp: int) -> None:
    key = (_sequence_number(row), timestamp)
    if key >= update.newest and body.get("state") in UpdateState.__members__:
        update.newest, update.state = key, UpdateState(body["state"])
        update.failure = _failure_of_event(row)
        update.ended = timestamp


def _on_flow_progress(update: UpdateFold, row: Row, body: Row, timestamp: int) -> None:
    if row["origin"].get("flow_name") == NO_FLOW:
        return
    flow, key = update.flow(row, body), (_sequence_number(row), timestamp)
    flow.first = min(key, flow.first)
    status = FlowState(body["status"]) if body.get("status") in FlowState.__members__ else FlowState.RUNNING
    if status is FlowState.QUEUED:
        flow.queued = timestamp if flow.queued is None else min(timestamp, flow.queued)
    elif status.is_at_work:
        flow.started = timestamp if flow.started is None else min(timestamp, flow.started)
    elif status.has_ended:
        flow.ended = timestamp if flow.ended is None else max(timestamp, flow.ended)
    if status is FlowState.FAILED:
        flow.failed_attempts += 1
    if key >= flow.newest:
        flow.newest, flow.status = key, status
        if status is FlowState.FAILED:
            flow.failure = _failure_of_event(row) or Failure("", str(row.get("message") or ""))
    reason = _reason_in_message(str(row.get("message") or ""))
    if reason and key >= flow.explained:
        flow.explained, flow.reason = key, reason
    if body.get("metrics") or body.get("data_quality"):
        _add_measurements(flow, body, timestamp)
        _add_samples(flow, (body.get("data_quality") or {}).get("samples") or (), key)
        _on_backlog(flow, body.get("metrics") or {}, key)


def _reason_in_message(message: str) -> str:
    """What stands behind the state in a flow's message, without its last full stop."""
    found = _BECAUSE.match(message)
    return message[found.end() :].rstrip(".") if found else ""


def _add_measurements(flow: _Flow, body: Row, timestamp: int) -> None:
    metrics, quality = body.get("metrics") or {}, body.get("data_quality") or {}
    for name, key in (("written", "num_output_rows"), ("upserted", "num_upserted_rows"), ("deleted", "num_deleted_rows")):
        flow.add(name, metrics.get(key))
    if any(metrics.get(key) for key in ("num_output_rows", "num_upserted_rows", "num_deleted_rows")):
        flow.written_at = max(timestamp, flow.written_at or 0)
    flow.rows_reported |= "num_output_rows" in metrics
    flow.add("dropped", quality.get("dropped_records"))
    flow.add("quarantined", quality.get("quarantined_records"))
    counts = [RuleCount.of_event(rule, flow.dataset) for rule in quality.get("expectations") or ()]
    if counts:  # added up at once: a continuous update has events without end
        flow.rules = summed([*flow.rules.values(), *counts])
    if counts and "scope" in quality:
        flow.unwritten_rules = summed([*flow.unwritten_rules.values(), *counts])
        flow.violation = _first_violation(quality.get("first_violation")) or flow.violation


def _add_samples(flow: _Flow, samples: Iterable[Row], key: Key) -> None:
    """Rows that broke rules, in the order of their batches; a batch that was tried again reports the same ones."""
    for sample in (RowSample.of_event(one, flow.dataset) for one in samples):
        kept = flow.samples.setdefault((sample.dataset, sample.name), {})
        kept[sample] = min(key, kept.get(sample, key))
        if len(kept) > 2 * _MOST_SAMPLES:
            flow.samples[sample.dataset, sample.name] = {one: kept[one] for one in _first_samples(kept)}


def _first_violation(found: Row | None) -> FirstViolation | None:
    if not found:
        return None
    values = tuple((str(name), "NULL" if value is None else str(value)) for name, value in (found.get("values") or {}).items())
    return FirstViolation(str(found.get("dataset")), str(found.get("rule")), values)


def _on_backlog(flow: _Flow, metrics: Row, key: tuple[int, int]) -> None:
    for name in ("files", "bytes", "records"):
        _keep_largest(flow, name, metrics.get(f"backlog_{name}"))
    if metrics.get("backlog_files") is not None and key >= flow.backlog_read:
        flow.backlog_read = key
        flow.backlog |= {f"left_{name}": int(metrics[f"backlog_{name}"]) for name in ("files", "bytes") if f"backlog_{name}" in metrics}


def _keep_largest(flow: _Flow, name: str, number: Any) -> None:
    if number is not None:
        flow.backlog[name] = max(int(number), flow.backlog.get(name, 0))


def _on_operation(update: UpdateFold, row: Row, body: Row, timestamp: int) -> None:
    details = body.get("auto_loader_details")
    if details:
        flow = update.flow(row, body)
        _keep_largest(flow, "new", details.get("num_files_new"))
        _keep_largest(flow, "listed", details.get("num_files_listed"))


def _on_stream_progress(update: UpdateFold, row: Row, body: Row, timestamp: int) -> None:
    """Backlog as Databricks reports it: in the metrics of a stream's sources."""
    progress = json.loads(body.get("progress_json") or "{}")
    for source in (source.get("metrics") or {} for source in progress.get("sources") or ()):
        for ours, theirs in (("files", "numFilesOutstanding"), ("bytes", "numBytesOutstanding")):
            _keep_largest(update.flow(row, body), ours, source.get(theirs))


def _on_schema_change(update: UpdateFold, row: Row, body: Row, timestamp: int) -> None:
    added, widened = (tuple(_column_and_type(c) for c in body.get(key) or ()) for key in ("added", "widened"))
    dataset, _ = _flow_key(row["origin"], body)
    flow = str(body.get("flow_name") or row["origin"].get("flow_name") or "")
    change = SchemaChangeEvent(timestamp, dataset, flow, str(body.get("source") or ""), added, widened, body.get("first_file"))
    update.changes[row["id"]] = (_sequence_number(row), timestamp), change


def _column_and_type(column: Any) -> tuple[str, str]:
    return (str(column.get("name")), str(column.get("type") or "")) if isinstance(column, Mapping) else (str(column), "")


def _on_source_records(update: UpdateFold, row: Row, body: Row, timestamp: int) -> None:
    flow, key = update.flow(row, body), (_sequence_number(row), timestamp)
    for name in _UNREAD:
        flow.add(name, body.get(name))
    if body.get("first_file") and (flow.unread_place is None or key < flow.unread_place[0]):
        flow.unread_place = key, _record_place(body, "first")
    for kind in ("corrupt", "rescued"):
        if body.get(f"{kind}_file") and (kind not in flow.places or key < flow.places[kind][0]):
            flow.places[kind] = key, _record_place(body, kind)
    if body.get("reason") and (flow.unread_reason is None or key < flow.unread_reason[0]):
        flow.unread_reason = key, str(body["reason"])


def _record_place(body: Row, kind: str) -> RecordPlace:
    text, column = (str(body.get(f"{kind}_{part}") or "") for part in ("text", "column"))
    return RecordPlace(str(body[f"{kind}_file"]), int(body.get(f"{kind}_line") or 0), str(body.get("unit") or "line"), text, column)


def _on_late_records(update: UpdateFold, row: Row, body: Row, timestamp: int) -> None:
    update.flow(row, body).add("late", body.get("dropped_by_watermark"))


def _on_table_check(update: UpdateFold, row: Row, body: Row, timestamp: int) -> None:
    def text(key: str) -> str:
        value = body.get(key)
        return "" if value is None else value if isinstance(value, str) else json.dumps(value, default=str)

    dataset = str(body.get("dataset") or row["origin"].get("dataset_name") or "")
    success, version = body.get("success"), body.get("table_version")
    about = (str(body.get("name")), str(body.get("severity") or ""), None if success is None else bool(success))
    shown = (text("observed"), text("expected"), str(body.get("message") or row.get("message") or ""))
    check = TableCheckResult(
        timestamp,
        dataset,
        *about,
        None if version is None else int(version),
        *shown,
        note=text("message"),
        description=text("description"),
        owner=text("owner"),
        tags=tuple(str(tag) for tag in body.get("tags") or ()),
    )
    update.checks[row["id"]] = (_sequence_number(row), timestamp), check


def _on_definition(update: UpdateFold, row: Row, body: Row, timestamp: int) -> None:
    update.definitions.take(row["event_type"], row["origin"], body)


_HANDLERS: Mapping[str, Callable[[UpdateFold, Row, Row, int], None]] = {
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
