"""Counts of the events of one update: states, rows, violations, warnings. Pure state, no output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.plan.graph import layers
from lakelet.storage.eventlog.events import Event
from lakelet.storage.eventlog.states import WORST_FIRST, EventType, FlowState, Level, UpdateState
from lakelet.storage.rule_counts import RuleCount, summed


@dataclass
class FlowTally:
    """One flow: its state, when it was at work, and the rows that it has written so far."""

    state: FlowState = FlowState.QUEUED
    rows: int = 0
    counted: bool = False  # whether an event has said how many rows
    dropped: int = 0
    quarantined: int = 0
    failed: int = 0
    began: datetime | None = None
    ended: datetime | None = None

    def seconds(self, now: datetime) -> float | None:
        """Time from the first start to the last end, or to `now` while it is at work; None before the start."""
        if self.began is None:
            return None
        end = now if self.state.is_at_work or self.ended is None else self.ended
        return max(0.0, (end - self.began).total_seconds())


@dataclass
class DatasetTally:
    """One dataset, and all its flows together."""

    name: str
    flows: dict[str, FlowTally] = field(default_factory=dict)
    reason: str = ""
    readable: bool = True  # false for a sink
    files: int | None = None  # input that was waiting when it began
    bytes: int | None = None

    @property
    def state(self) -> FlowState:
        return min((flow.state for flow in self.flows.values()), key=WORST_FIRST.index, default=FlowState.QUEUED)

    @property
    def rows(self) -> int:
        return sum(flow.rows for flow in self.flows.values())

    @property
    def rows_known(self) -> bool:
        """Whether the number of rows means something: nobody counts what the function of a sink does with its batches."""
        return self.readable or any(flow.counted for flow in self.flows.values())

    @property
    def dropped(self) -> int:
        return sum(flow.dropped for flow in self.flows.values())

    @property
    def quarantined(self) -> int:
        return sum(flow.quarantined for flow in self.flows.values())

    @property
    def failed(self) -> int:
        return sum(flow.failed for flow in self.flows.values())

    @property
    def began(self) -> datetime | None:
        return min((flow.began for flow in self.flows.values() if flow.began is not None), default=None)

    @property
    def ended(self) -> datetime | None:
        return max((flow.ended for flow in self.flows.values() if flow.ended is not None), default=None)

    def seconds(self, now: datetime) -> float | None:
        """Time from the first start of a flow to the last end, or to `now` while one is at work; None before the start."""
        return FlowTally(self.state, began=self.began, ended=self.ended).seconds(now)


@dataclass
class SourceTally:
    """Input lines of one flow that did not fit the schema: kept as corrupt records or rescued values, or left out as the source says."""

    corrupt: int = 0
    left_out: int = 0
    rescued: int = 0
    passed_over: int = 0
    undecodable: int = 0
    reason: str | None = None
    first_file: str | None = None
    first_line: int | None = None
    unit: str = "line"


@dataclass(frozen=True)
class SchemaChange:
    """New columns that a file brought to a flow's source."""

    flow: str
    columns: tuple[str, ...]
    first_file: str | None


@dataclass(frozen=True)
class CheckTally:
    """The result of one table check. `success`: None where it was not run; `facts`: the observed value, or why there is none."""

    dataset: str
    name: str
    severity: str
    success: bool | None
    expected: str
    facts: str


@dataclass
class Tally:
    """Feed it every event of one update, or of all attempts of a command; read it at any time. Not thread-safe: the caller locks.

    rules: passed and failed rows by dataset and name; rules_of_failed: those of batches that fail rules stopped (EP-8).
    actions: of rules, by dataset and name. sources_of, declared_in: what each dataset reads, and the file that declares it.
    """

    update_id: str = ""
    pipeline: str = ""
    state: UpdateState = UpdateState.QUEUED
    began: datetime | None = None
    now: datetime | None = None
    datasets: dict[str, DatasetTally] = field(default_factory=dict)
    rules: dict[tuple[str, str], RuleCount] = field(default_factory=dict)
    rules_of_failed: dict[tuple[str, str], RuleCount] = field(default_factory=dict)
    sources: dict[str, SourceTally] = field(default_factory=dict)
    late: Counter[str] = field(default_factory=Counter)
    changes: list[SchemaChange] = field(default_factory=list)
    checks: list[CheckTally] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)
    actions: dict[tuple[str, str], str] = field(default_factory=dict)
    sources_of: dict[str, set[str]] = field(default_factory=dict)
    declared_in: dict[str, str] = field(default_factory=dict)
    errors: list[LakeletError] = field(default_factory=list)
    _measured: set[str] = field(default_factory=set)

    def feed(self, event: Event) -> None:
        """Take one event into account. The first event of another update (a retry) begins again."""
        if self.update_id and event.origin.update_id != self.update_id:
            vars(self).update(vars(Tally()))
        self.began = self.began or event.timestamp
        self.now = event.timestamp
        self.update_id = self.update_id or event.origin.update_id or ""
        self.pipeline = self.pipeline or event.origin.pipeline_name
        handler = _HANDLERS.get(event.event_type)
        if handler is not None:
            handler(self, event)
        elif event.level is Level.WARN:
            self.warnings[event.message] += 1

    def counts(self) -> Counter[FlowState]:
        """Number of datasets per state."""
        return Counter(dataset.state for dataset in self.datasets.values())

    def layers(self) -> dict[str, str]:
        """The layer of each dataset: bronze, silver or gold."""
        return layers({name: self.declared_in.get(name) for name in self.datasets}, {n: sorted(s) for n, s in self.sources_of.items()})

    @property
    def rows(self) -> int:
        return sum(dataset.rows for dataset in self.datasets.values())

    @property
    def dropped(self) -> int:
        return sum(dataset.dropped for dataset in self.datasets.values())

    @property
    def quarantined(self) -> int:
        return sum(dataset.quarantined for dataset in self.datasets.values())

    @property
    def seconds(self) -> float:
        return (self.now - self.began).total_seconds() if self.began and self.now else 0.0

    def _on_update_progress(self, event: Event) -> None:
        found = UpdateState.read(event.body.get("state", self.state))
        self.state = found if isinstance(found, UpdateState) else self.state

    def _on_flow_progress(self, event: Event) -> None:
        body = event.body
        name = event.origin.target_name or event.origin.flow_name or "?"
        dataset = self.datasets.setdefault(name, DatasetTally(name, readable=event.origin.sink_name is None))
        flow = dataset.flows.setdefault(event.origin.flow_name or name, FlowTally())
        flow.state = flow_state(event)
        if flow.state.is_at_work:
            flow.began = flow.began or event.timestamp
        if flow.state.has_ended:
            flow.ended = event.timestamp
            dataset.reason = event.message
        if event.id not in self._measured:
            self._measured.add(event.id)
            self._measure(dataset, flow, body)
        if isinstance(event.error, LakeletError) and event.level is Level.ERROR:
            self.errors.append(event.error)
        elif event.level is Level.WARN and flow.state is not FlowState.SKIPPED:  # the failure says why it was skipped
            self.warnings[event.message] += 1

    def _measure(self, dataset: DatasetTally, flow: FlowTally, body: Mapping[str, Any]) -> None:
        metrics = body.get("metrics") or {}
        flow.counted |= "num_output_rows" in metrics
        flow.rows += int(metrics.get("num_output_rows") or 0) + int(metrics.get("num_upserted_rows") or 0)
        if metrics.get("backlog_files"):
            dataset.files, dataset.bytes = int(metrics["backlog_files"]), metrics.get("backlog_bytes")
        quality = body.get("data_quality") or {}
        flow.dropped += int(quality.get("dropped_records") or 0)
        flow.quarantined += int(quality.get("quarantined_records") or 0)
        rules = self.rules_of_failed if "scope" in quality else self.rules
        counts = [RuleCount.of_event(rule, dataset.name) for rule in quality.get("expectations") or ()]
        rules.update(summed([*rules.values(), *counts]))
        flow.failed += sum(count.failed for count in counts)

    def _on_dataset_definition(self, event: Event) -> None:
        name, source = str(event.origin.dataset_name), event.body.get("source_code") or {}
        if source.get("file"):
            self.declared_in[name] = str(source["file"])
        for rule in event.body.get("expectations") or ():
            self.actions[name, rule["name"]] = str(rule["action"]).lower()

    def _on_flow_definition(self, event: Event) -> None:
        """Databricks gives inputs as objects with a name. Rules of the views that a flow reads are declared by its definition."""
        for rule in event.body.get("view_expectations") or ():
            self.actions[str(rule["dataset"]), rule["name"]] = str(rule["action"]).lower()
        given = [one.get("name") if isinstance(one, dict) else one for one in event.body.get("input_datasets") or ()]
        self.sources_of.setdefault(str(event.body.get("output_dataset")), set()).update(str(name) for name in given if name)

    def _on_column_lineage(self, event: Event) -> None:
        """Columns look through views, which flows name as their inputs."""
        name = str(event.body.get("output_dataset"))
        found = {i["dataset"] for column in event.body.get("columns") or () for i in column.get("inputs") or ()}
        self.sources_of.setdefault(name, set()).update(found - {name})

    def _on_source_records(self, event: Event) -> None:
        body = event.body
        source = self.sources.setdefault(_about(event), SourceTally())
        source.corrupt += int(body.get("corrupt") or 0) - int(body.get("left_out") or 0)
        source.left_out += int(body.get("left_out") or 0)
        source.rescued += int(body.get("rescued") or 0)
        source.passed_over += int(body.get("passed_over") or 0)
        source.undecodable += int(body.get("undecodable") or 0)
        source.reason = source.reason or body.get("reason")
        if source.first_file is None and body.get("first_file"):
            source.first_file, source.first_line = body["first_file"], body.get("first_line")
            source.unit = body.get("unit") or "line"

    def _on_late_records(self, event: Event) -> None:
        self.late[_about(event)] += int(event.body.get("dropped_by_watermark") or 0)

    def _on_schema_change(self, event: Event) -> None:
        columns = tuple(f"{c['name']} {c.get('type', '')}".strip() for c in event.body.get("added") or ())
        self.changes.append(SchemaChange(_about(event), columns, event.body.get("first_file")))

    def _on_table_check(self, event: Event) -> None:
        body = event.body
        facts = "; ".join(str(one) for one in (body.get("message"), body.get("observed")) if one)
        name, severity = str(body.get("name")), str(body.get("severity"))
        self.checks.append(CheckTally(_about(event), name, severity, body.get("success"), str(body.get("expected")), facts))


_HANDLERS: Mapping[EventType, Callable[[Tally, Event], None]] = {
    EventType.UPDATE_PROGRESS: Tally._on_update_progress,
    EventType.FLOW_PROGRESS: Tally._on_flow_progress,
    EventType.SOURCE_RECORDS: Tally._on_source_records,
    EventType.LATE_RECORDS: Tally._on_late_records,
    EventType.SCHEMA_CHANGE: Tally._on_schema_change,
    EventType.TABLE_CHECK: Tally._on_table_check,
    EventType.DATASET_DEFINITION: Tally._on_dataset_definition,
    EventType.FLOW_DEFINITION: Tally._on_flow_definition,
    EventType.COLUMN_LINEAGE: Tally._on_column_lineage,
}


def flow_state(event: Event) -> FlowState:
    """Return the state in a flow event; RUNNING for one that only a newer Lakelet or Databricks knows."""
    found = FlowState.read(event.body.get("status", FlowState.RUNNING))
    return found if isinstance(found, FlowState) else FlowState.RUNNING


def _about(event: Event) -> str:
    return str(event.origin.target_name or event.body.get("flow_name") or event.origin.flow_name or "?")
