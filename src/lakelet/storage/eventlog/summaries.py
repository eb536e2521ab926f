"""What an update did, as values: updates, runs of flows, counts of rules, definitions. Read from events by `storage/eventlog/fold.py`.

Timestamps are milliseconds since 1970 (UTC), None where no event says them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lakelet.storage.eventlog.states import WORST_FIRST, FlowState, UpdateState
from lakelet.storage.rule_counts import RuleCount, summed

Timestamp = int | None


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as the terminal shows it. `code`: of Lakelet's errors or the name of a class; `text`: all its lines."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a flow's sources had waiting: the largest values that its events report, and what they report last (`left_…`).

    `listed`: files in the folders that were looked at, `new`: of them, those that were new. None for what no event says.
    """

    files: int | None = None
    bytes: int | None = None
    records: int | None = None
    left_files: int | None = None
    left_bytes: int | None = None
    new: int | None = None
    listed: int | None = None


@dataclass(frozen=True, slots=True)
class FlowRun:
    """One flow in one update. `written`: rows appended or replaced; `reason`: why it ran, was idle or was skipped, as its events say."""

    flow: str
    dataset: str
    status: FlowState
    queued_at: Timestamp = None
    started_at: Timestamp = None
    ended_at: Timestamp = None
    written: int = 0
    upserted: int = 0
    deleted: int = 0
    dropped: int = 0
    quarantined: int = 0
    late: int = 0
    corrupt: int = 0
    rescued: int = 0
    attempts: int = 1
    last_rows_at: Timestamp = None
    reason: str = ""
    rules: tuple[RuleCount, ...] = ()
    failure: Failure | None = None
    backlog: Backlog | None = None

    @property
    def rows(self) -> int:
        """Rows that reached the target, upserts included."""
        return self.written + self.upserted

    @property
    def seconds(self) -> float | None:
        """From its start to its end; None before either."""
        return (self.ended_at - self.started_at) / 1000 if self.started_at is not None and self.ended_at is not None else None


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """Columns that a file brought. `added` and `widened`: (name, type)."""

    at: Timestamp
    dataset: str
    flow: str
    source: str
    added: tuple[tuple[str, str], ...]
    widened: tuple[tuple[str, str], ...]
    file: str | None


@dataclass(frozen=True, slots=True)
class TableCheck:
    """Result of one check of a whole table. `success`: None if it was not run."""

    at: Timestamp
    dataset: str
    name: str
    severity: str
    success: bool | None
    table_version: int | None
    observed: str
    expected: str
    message: str


@dataclass(frozen=True, slots=True)
class Rule:
    """An expectation as it was defined in one update."""

    name: str
    constraint: str
    action: str
    description: str = ""
    owner: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """Where something is defined: file relative to the project folder, line counted from 1."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class FlowDefinition:
    """A flow as it was defined in one update.

    `columns`: (name, type) of its query's result; `view_rules`: by view that it reads; `transforms`: the calls of `lakelet.transforms` that
    its query is made of, without secrets, in order.
    """

    name: str
    dataset: str
    inputs: tuple[str, ...] = ()
    flow_type: str = ""
    language: str = ""
    comment: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    source: Source | None = None
    view_rules: tuple[tuple[str, Rule], ...] = ()
    transforms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """The columns that one output column is computed from: (dataset, column)."""

    flow: str
    dataset: str
    column: str
    inputs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Definition:
    """A dataset or sink as it was defined in one update.

    `rules_told`: whether the log said which rules it has; a hosted one may leave that out.
    """

    name: str
    kind: str
    pipeline: str
    rules: tuple[Rule, ...] = ()
    source: Source | None = None
    flows: tuple[FlowDefinition, ...] = ()
    lineage: tuple[ColumnLineage, ...] = ()
    rules_told: bool = True

    @property
    def inputs(self) -> tuple[str, ...]:
        """Every dataset that its flows read, itself left out."""
        found = [name for flow in self.flows for name in flow.inputs]
        return tuple(dict.fromkeys(name for name in found if name != self.name))


@dataclass(frozen=True, slots=True)
class DatasetRun:
    """One dataset in one update: its flows together. `number`, `began`: of the update."""

    number: int
    began: Timestamp
    runs: tuple[FlowRun, ...]

    @property
    def state(self) -> FlowState:
        return min((run.status for run in self.runs), key=WORST_FIRST.index)

    @property
    def started(self) -> int | None:
        return min((run.started_at for run in self.runs if run.started_at is not None), default=None)

    @property
    def ended(self) -> int | None:
        return max((run.ended_at for run in self.runs if run.ended_at is not None), default=None)

    @property
    def seconds(self) -> float | None:
        return None if self.started is None or self.ended is None else max(0, self.ended - self.started) / 1000

    def total(self, field: str) -> int:
        """The sum of one count of its flows: `rows`, `dropped`, …"""
        return sum(getattr(run, field) for run in self.runs)


@dataclass(frozen=True)
class UpdateRun:
    """One update. `number` counts the updates of the log from 0, oldest first; `definitions` is empty where no event of it is kept."""

    number: int
    id: str
    pipeline_id: str
    pipeline: str
    state: UpdateState
    cause: str
    started_at: Timestamp
    ended_at: Timestamp
    full_refresh: tuple[str, ...] = ()
    runs: tuple[FlowRun, ...] = ()
    schema_changes: tuple[SchemaChange, ...] = ()
    checks: tuple[TableCheck, ...] = ()
    warnings: tuple[str, ...] = ()
    failure: Failure | None = None
    definitions: Mapping[str, Definition] = field(default_factory=dict)

    @property
    def seconds(self) -> float | None:
        """From its first event to the one with its last state; None while it runs."""
        return (self.ended_at - self.started_at) / 1000 if self.started_at is not None and self.ended_at is not None else None

    @cached_property
    def counts_by_rule(self) -> Mapping[tuple[str, str], RuleCount]:
        """The count of each rule that the update measured, by (dataset, rule): the sums over its flows."""
        return summed(count for run in self.runs for count in run.rules)

    @cached_property
    def datasets(self) -> Mapping[str, DatasetRun]:
        """The datasets that were not excluded, by name."""
        found: dict[str, list[FlowRun]] = {}
        for run in self.runs:
            if run.status is not FlowState.EXCLUDED:
                found.setdefault(run.dataset, []).append(run)
        return {name: DatasetRun(self.number, self.started_at, tuple(runs)) for name, runs in found.items()}


@dataclass(frozen=True)
class History:
    """All updates of an event log, oldest first, and the definitions of today: of each pipeline's newest update that has any."""

    updates: tuple[UpdateRun, ...] = ()
    definitions: Mapping[str, Definition] = field(default_factory=dict)
