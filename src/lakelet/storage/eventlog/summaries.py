"""What an update did, as values: updates, runs of flows, counts of rules, definitions. Read from events by `storage/eventlog/fold.py`.

Timestamps are milliseconds since 1970 (UTC), None where no event says them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from lakelet.storage.eventlog.states import WORST_FIRST, FlowState, UpdateState
from lakelet.storage.rule_counts import RowSample, RuleCount, summed

Timestamp = int | None
LONGEST_SENTENCE = 240
_SENTENCE = re.compile(r"^.{12,}?[.!?](?=\s+[\[(\"'A-Z])")
SINK = "SINK"
"""Kind of a sink's definition."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as the terminal shows it. `code`: of Lakelet's errors or the name of a class; `text`: all its lines."""

    code: str
    text: str

    @property
    def sentence(self) -> str:
        """Its first sentence, without its code; a very long sentence is cut at a word.

        Of a flow that failed while it ran it is the first sentence of Spark's error, which says why.
        """
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        if not lines:
            return "no error was recorded"
        causes = [line for line in lines[1:] if self.code == "FLOW_FAILED" and line.startswith("[")]
        first = (causes or lines)[0]
        line = re.sub(r"^(\[[\w.]+\]\s*)+", "", first) or first
        found = _SENTENCE.match(line)
        sentence = found[0] if found else line
        return sentence if len(sentence) <= LONGEST_SENTENCE else sentence[: LONGEST_SENTENCE - 1].rpartition(" ")[0] + " …"

    def sentence_about(self, dataset: str) -> str:
        """The first sentence where it stands beside the name of the dataset that it is about."""
        return self.sentence.removeprefix(f"{dataset}: ")


@dataclass(frozen=True, slots=True)
class Backlog:
    """What a flow's sources had waiting: the largest values that its events report, and what they report last (`left_…`).

    `listed`: files in the folders that were listed, `new`: of them, those that were new. None for what no event says.
    """

    files: int | None = None
    bytes: int | None = None
    records: int | None = None
    left_files: int | None = None
    left_bytes: int | None = None
    new: int | None = None
    listed: int | None = None


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """The first input record that a flow could not read whole. `line`: counted from 1 in `unit`s, 0 for the file as a whole.

    `text`: the record, or the value in it that does not fit, and `column` its column; "" where no samples are kept.
    """

    file: str
    line: int = 0
    unit: str = "line"
    text: str = ""
    column: str = ""


@dataclass(frozen=True, slots=True)
class FirstViolation:
    """The first row that broke the fail rule `rule` of `dataset`, by the columns that the rule names: (name, value as text)."""

    dataset: str
    rule: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FlowSummary:
    """One flow in one update.

    `written`: rows appended or replaced; `reason`: why it ran, was idle or was skipped, as its events say.
    `rules`: what the rules counted in all rows that they judged; `unwritten_rules`: the part of it in a batch that a fail rule stopped,
    none of whose rows was written (EP-8), `violation` its first row. `samples`: rows that broke rules, a few for each.
    `rows_known`: false for a sink whose rows nobody counts.
    Records of sources: `corrupt` (of them `left_out`), `rescued`, `passed_over`, `undecodable`.
    """

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
    left_out: int = 0
    rescued: int = 0
    passed_over: int = 0
    undecodable: int = 0
    attempts: int = 1
    last_rows_at: Timestamp = None
    reason: str = ""
    rules: tuple[RuleCount, ...] = ()
    unwritten_rules: tuple[RuleCount, ...] = ()
    failure: Failure | None = None
    backlog: Backlog | None = None
    to_sink: bool = False
    rows_known: bool = True
    unread_place: RecordPlace | None = None
    unread_reason: str = ""
    corrupt_place: RecordPlace | None = None
    rescued_place: RecordPlace | None = None
    violation: FirstViolation | None = None
    samples: tuple[RowSample, ...] = ()

    @property
    def rows(self) -> int:
        """Rows that reached the target, upserts included."""
        return self.written + self.upserted

    @property
    def violations(self) -> int:
        """Failed rows, one for each rule that a row breaks."""
        return sum(count.failed for count in self.rules)

    @property
    def seconds(self) -> float | None:
        """From its start to its end; None before either."""
        return seconds_between(self.started_at, self.ended_at)


def seconds_between(started: Timestamp, ended: Timestamp) -> float | None:
    """The time between two timestamps, not below 0; None without either."""
    return None if started is None or ended is None else max(0, ended - started) / 1000


@dataclass(frozen=True, slots=True)
class SchemaChangeEvent:
    """Columns that a file brought. `added` and `widened`: (name, type)."""

    at: Timestamp
    dataset: str
    flow: str
    source: str
    added: tuple[tuple[str, str], ...]
    widened: tuple[tuple[str, str], ...]
    file: str | None


@dataclass(frozen=True, slots=True)
class TableCheckResult:
    """Result of one check of a whole table.

    `success`: None if it was not run; `note`: what the check says of it beside the values; `description`, `owner`, `tags`: as at that time.
    """

    at: Timestamp
    dataset: str
    name: str
    severity: str
    success: bool | None
    table_version: int | None
    observed: str
    expected: str
    message: str
    note: str = ""
    description: str = ""
    owner: str = ""
    tags: tuple[str, ...] = ()

    @property
    def finding(self) -> str:
        """What it found, in a few words: its note, else what was observed and expected."""
        return self.note or (f"{self.observed}, expected {self.expected}" if self.observed else self.message)


@dataclass(frozen=True, slots=True)
class UpdateWarning:
    """A message of level WARN, or a notice of level ERROR.

    `counted`: counts of the summary, the failure that made a flow be skipped, or an error of the update's result say the same.
    """

    text: str
    counted: bool = False


@dataclass(frozen=True, slots=True)
class RuleDefinition:
    """An expectation as it was defined in one update."""

    name: str
    constraint: str
    action: str
    description: str = ""
    owner: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleEdit:
    """An update that defined a rule with another text or action than the update before. `number`: of the update."""

    number: int
    dataset: str
    rule: str
    before: tuple[str, str]
    after: tuple[str, str]

    @property
    def text(self) -> str:
        """What was changed, with what was there before."""
        (old, old_action), (new, new_action) = self.before, self.after
        changes = [f"text: {old} → {new}"] if old != new else []
        return "; ".join([*changes, *([f"action: {old_action} → {new_action}"] if old_action != new_action else [])])

    @property
    def of_text(self) -> bool:
        """Whether what rows must meet is another."""
        return self.before[0] != self.after[0]


@dataclass(frozen=True, slots=True)
class DefinitionPlace:
    """Where something is defined: file relative to the project folder, line counted from 1."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class FlowDefinition:
    """A flow as it was defined in one update.

    `columns`: (name, type) of its query's result; `comments`: (name, comment) of those that have one; `view_rules`: by view that it reads;
    `transforms`: the calls of `lakelet.transforms` that its query is made of, without secrets, in order.
    """

    name: str
    dataset: str
    inputs: tuple[str, ...] = ()
    flow_type: str = ""
    language: str = ""
    comment: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    source: DefinitionPlace | None = None
    view_rules: tuple[tuple[str, RuleDefinition], ...] = ()
    transforms: tuple[str, ...] = ()
    comments: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnLineage:
    """The columns that one output column is computed from: (dataset, column)."""

    flow: str
    dataset: str
    column: str
    inputs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DatasetDefinition:
    """A dataset or sink as it was defined in one update.

    `rules_known`: whether the log said which rules it has; that of Databricks may leave it out.
    """

    name: str
    kind: str
    pipeline: str
    rules: tuple[RuleDefinition, ...] = ()
    source: DefinitionPlace | None = None
    flows: tuple[FlowDefinition, ...] = ()
    lineage: tuple[ColumnLineage, ...] = ()
    rules_known: bool = True
    description: str = ""
    owner: str = ""
    tags: tuple[str, ...] = ()
    personal_columns: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Every dataset that its flows read, itself left out."""
        found = [name for flow in self.flows for name in flow.inputs]
        return tuple(dict.fromkeys(name for name in found if name != self.name))

    @property
    def sources(self) -> tuple[str, ...]:
        """What it reads by its flows, and by its columns: these look through views."""
        by_columns = (dataset for line in self.lineage for dataset, _ in line.inputs)
        return tuple(dict.fromkeys(name for name in (*self.inputs, *by_columns) if name != self.name))


@dataclass(frozen=True, slots=True)
class DatasetSummary:
    """One dataset in one update: its flows together. `number`, `began`: of the update.

    Nearly every dataset has one flow, and a page asks a thousand updates for the numbers of each.
    """

    number: int
    began: Timestamp
    runs: tuple[FlowSummary, ...]

    @property
    def state(self) -> FlowState:
        if len(self.runs) == 1:
            return self.runs[0].status
        return min((run.status for run in self.runs), key=WORST_FIRST.index)

    @property
    def started(self) -> int | None:
        if len(self.runs) == 1:
            return self.runs[0].started_at
        return min((run.started_at for run in self.runs if run.started_at is not None), default=None)

    @property
    def ended(self) -> int | None:
        if len(self.runs) == 1:
            return self.runs[0].ended_at
        return max((run.ended_at for run in self.runs if run.ended_at is not None), default=None)

    @property
    def seconds(self) -> float | None:
        return seconds_between(self.started, self.ended)

    def seconds_at(self, now: int) -> float | None:
        """Time from the first start of a flow to the last end, or to `now` while one is at work; None before the start."""
        return seconds_between(self.started, now if self.state.is_at_work or self.ended is None else self.ended)

    @property
    def to_sink(self) -> bool:
        return self.runs[0].to_sink

    @property
    def rows_known(self) -> bool:
        """Whether the number of rows means something: nobody counts what the function of a sink does with its batches."""
        return any(run.rows_known for run in self.runs)

    def total(self, field: str) -> int:
        """The sum of one count of its flows: `rows`, `dropped`, `violations`, …"""
        if len(self.runs) == 1:
            return int(getattr(self.runs[0], field))
        return sum(getattr(run, field) for run in self.runs)


@dataclass(frozen=True)
class UpdateSummary:
    """One update. `number` counts the updates of the log from 0, oldest first; `definitions` is empty where no event of it is kept.

    `runs` are in the order in which the flows were first reported, `checks` and `warnings` in that of their events. `last_at`: time of the
    newest event. `rule_edits`: against the update of its pipeline before, known within a history.
    """

    number: int
    id: str
    pipeline_id: str
    pipeline: str
    state: UpdateState
    cause: str
    started_at: Timestamp
    ended_at: Timestamp
    full_refresh: tuple[str, ...] = ()
    runs: tuple[FlowSummary, ...] = ()
    schema_changes: tuple[SchemaChangeEvent, ...] = ()
    checks: tuple[TableCheckResult, ...] = ()
    warnings: tuple[UpdateWarning, ...] = ()
    failure: Failure | None = None
    definitions: Mapping[str, DatasetDefinition] = field(default_factory=dict)
    last_at: Timestamp = None
    rule_edits: tuple[RuleEdit, ...] = ()

    @property
    def short(self) -> str:
        """The first characters of its id, as texts name it."""
        return self.id[:6]

    @property
    def seconds(self) -> float | None:
        """From its first event to the one with its last state; None while it runs."""
        return seconds_between(self.started_at, self.ended_at)

    @property
    def seconds_so_far(self) -> float:
        """From its first event to its newest one."""
        return seconds_between(self.started_at, self.last_at) or 0.0

    @cached_property
    def counts_by_rule(self) -> Mapping[tuple[str, str], RuleCount]:
        """The count of each rule that the update measured, by (dataset, rule): the sums over its flows, of all rows that were judged."""
        return summed(count for run in self.runs for count in run.rules)

    @cached_property
    def unwritten_counts_by_rule(self) -> Mapping[tuple[str, str], RuleCount]:
        """The part of `counts_by_rule` in batches that a fail rule stopped: none of their rows was written (EP-8)."""
        return summed(count for run in self.runs for count in run.unwritten_rules)

    @cached_property
    def samples_by_rule(self) -> Mapping[tuple[str, str], tuple[RowSample, ...]]:
        """Rows that broke each rule, each row once, by (dataset, rule); a rule that none broke has no key."""
        found: dict[tuple[str, str], dict[RowSample, None]] = {}
        for sample in (sample for run in self.runs for sample in run.samples):
            found.setdefault((sample.dataset, sample.name), {})[sample] = None
        return {key: tuple(samples) for key, samples in found.items()}

    @property
    def broken_rules(self) -> int:
        """How many of the rules that it measured a row broke."""
        return sum(count.failed > 0 for count in self.counts_by_rule.values())

    @cached_property
    def rule_texts(self) -> Mapping[tuple[str, str], tuple[str, str]]:
        """Text and action of each defined rule, by (dataset, rule); rules of views are defined by the flows that read them."""
        of_views = ((name, rule) for d in self.definitions.values() for flow in d.flows for name, rule in flow.view_rules)
        own = ((d.name, rule) for d in self.definitions.values() for rule in d.rules)
        return {(name, rule.name): (rule.constraint, rule.action) for name, rule in (*of_views, *own)}

    @property
    def written_counts_by_rule(self) -> Mapping[tuple[str, str], RuleCount]:
        """The part of `counts_by_rule` in batches that were written: what failed there was dropped or is in the table."""
        unwritten = self.unwritten_counts_by_rule
        return {key: count.without(unwritten.get(key)) for key, count in self.counts_by_rule.items() if count != unwritten.get(key)}

    @property
    def rule_actions(self) -> Mapping[tuple[str, str], str]:
        """The action of each defined rule, by (dataset, rule)."""
        return {key: action for key, (_, action) in self.rule_texts.items()}

    @cached_property
    def runs_by_start(self) -> tuple[FlowSummary, ...]:
        """Its flows in the order in which they began; those that did not begin come last."""
        return tuple(sorted(self.runs, key=lambda r: (r.started_at if r.started_at is not None else 1 << 62, r.dataset, r.flow)))

    @cached_property
    def all_datasets(self) -> Mapping[str, DatasetSummary]:
        """Every dataset, by name, in the order in which they were first reported."""
        return self._grouped(self.runs)

    @cached_property
    def datasets(self) -> Mapping[str, DatasetSummary]:
        """The datasets that were not excluded, by name."""
        return self._grouped(run for run in self.runs_by_start if run.status is not FlowState.EXCLUDED)

    def _grouped(self, runs: Iterable[FlowSummary]) -> Mapping[str, DatasetSummary]:
        found: dict[str, list[FlowSummary]] = {}
        for run in runs:
            found.setdefault(run.dataset, []).append(run)
        return {name: DatasetSummary(self.number, self.started_at, tuple(its_runs)) for name, its_runs in found.items()}

    @property
    def excluded(self) -> frozenset[str]:
        """Names of the datasets that took no part."""
        return frozenset(name for name, d in self.all_datasets.items() if d.state is FlowState.EXCLUDED)

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Names of the datasets with a flow that failed, was skipped or stopped, or did not get to its end."""
        done = [run.dataset for run in self.runs if not (run.status.is_done or run.status is FlowState.EXCLUDED)]
        return tuple(dict.fromkeys(done))

    @property
    def states(self) -> Counter[FlowState]:
        """Number of datasets per state."""
        return Counter(dataset.state for dataset in self.all_datasets.values())

    def total(self, field: str) -> int:
        """The sum of one count of its flows: `rows`, `dropped`, `violations`, …"""
        return sum(getattr(run, field) for run in self.runs)


@dataclass(frozen=True)
class History:
    """All updates of an event log, oldest first, and the definitions of today: of each pipeline's newest update that has any."""

    updates: tuple[UpdateSummary, ...] = ()
    definitions: Mapping[str, DatasetDefinition] = field(default_factory=dict)

    @cached_property
    def rule_edits(self) -> Mapping[tuple[str, str], tuple[RuleEdit, ...]]:
        """The edits of each rule, oldest first, by (dataset, rule)."""
        found: dict[tuple[str, str], list[RuleEdit]] = {}
        for update in self.updates:
            for edit in update.rule_edits:
                found.setdefault((edit.dataset, edit.rule), []).append(replace(edit, number=update.number))
        return {key: tuple(edits) for key, edits in found.items()}
