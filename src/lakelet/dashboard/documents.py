"""The data files of the page as JSON values: an overview, the quality matrix, one document per dataset, per update and per page of updates.

Datasets are numbered by their order in the overview, updates by their order in the log; documents name them by these numbers. Lists of
equal things are kept as columns or tuples to be short: 500 datasets and 1,000 updates must load at once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from lakelet.base import VERSION
from lakelet.base.redaction import HIDDEN, redacted
from lakelet.config.properties import hidden_columns
from lakelet.dashboard.catalog import DatasetView, RuleSeries, columns_read_from, dataset_views, readers
from lakelet.dashboard.change_document import change_document, differing
from lakelet.dashboard.changes import what_changed
from lakelet.dashboard.health_documents import Health
from lakelet.dashboard.tables import Sample, TableFacts
from lakelet.storage.eventlog.faults import Streak, breaking, failing, not_holding
from lakelet.storage.eventlog.states import FlowState
from lakelet.storage.eventlog.summaries import (
    DatasetSummary,
    DefinitionPlace,
    FlowSummary,
    History,
    RuleDefinition,
    SchemaChangeEvent,
    TableCheckResult,
    UpdateSummary,
)
from lakelet.storage.rule_counts import RuleCount, pass_rate

FORMAT = 3
PAGE = 100
"""Updates per page."""
ID_LENGTH = 12
"""Characters of an update's id in addresses: no two updates have the same ones."""
RECENT = 40
"""Number of newest updates in the overview, and of measurements of a rule in the matrix."""

Document = dict[str, Any]


@dataclass(frozen=True)
class Site:
    """All documents, as of one time. `tables`: by dataset; `generated`: milliseconds since 1970; `live`: the page may ask again.

    `diff`: the result of `lakelet diff --json` that the page shows; None leaves it out.
    """

    history: History
    tables: Mapping[str, TableFacts]
    texts: SourceTexts
    generated: int
    live: bool
    diff: Mapping[str, Any] | None = None

    @cached_property
    def views(self) -> tuple[DatasetView, ...]:
        return dataset_views(self.history)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number of each dataset."""
        return {view.name: number for number, view in enumerate(self.views)}

    @cached_property
    def health(self) -> Health:
        """What waits, who is affected, which input was bad."""
        return Health(self.history, self.numbers)

    @cached_property
    def _readers(self) -> Mapping[str, tuple[str, ...]]:
        return readers(self.views)

    @cached_property
    def _columns_below(self) -> Mapping[tuple[str, str], tuple[tuple[str, str], ...]]:
        return columns_read_from(self.views)

    # --- overview, quality, search --------------------------------------------------------------------------------------------------

    def overview(self) -> Document:
        updates = self.history.updates
        return {
            "format": FORMAT,
            "version": VERSION,
            "generated": self.generated,
            "live": self.live,
            "pipelines": list(dict.fromkeys(u.pipeline for u in updates)),
            "updates": len(updates),
            "ids": [update.id[:ID_LENGTH] for update in updates],
            "page": PAGE,
            "recent": [_update_item(update) for update in updates[-RECENT:]],
            "changes": [[c.tone.value, c.about, c.rule, c.text] for c in what_changed(self.history)],
            "datasets": [self._dataset_item(view) for view in self.views],
            "freshness": self.health.freshness_rows(self.views),
            "affected": self.health.affected_rows(),
            **({} if self.diff is None else {"change": differing(self.diff)}),
        }

    def _dataset_item(self, view: DatasetView) -> Document:
        last, facts, definition = view.last, self.tables.get(view.name), view.definition
        number, counts = view.last_measured
        passed, failed = sum(count.passed for count in counts), sum(count.failed for count in counts)
        checks = [found[-1][1] for found in view.results_by_check.values()]
        return {
            "name": view.name,
            "short": view.short,
            "kind": definition.kind if definition else "",
            "owner": definition.owner if definition else "",
            "tags": list(definition.tags) if definition else [],
            "about": definition.description if definition else "",
            "pipeline": definition.pipeline if definition else "",
            "layer": view.layer,
            "in": [self.numbers[name] for name in view.inputs],
            "state": last.state.value if last else "",
            "reason": next((run.reason for run in last.runs if run.reason), "") if last else "",
            "update": last.number if last else None,
            "rows": facts.rows if facts else None,
            "wrote": last.total("rows") if last else 0,
            "dropped": last.total("dropped") if last else 0,
            "held": facts.held if facts else None,
            "measured": number,
            "violations": failed,
            "broken_rules": sum(count.failed > 0 for count in counts),
            "rate": pass_rate(passed, failed),
            "failing": self._streak_document(failing(self.history.updates, view.runs)),
            "rows_at": view.last_rows_at,
            "done_at": view.completed_at,
            "seconds": last.seconds if last else None,
            "rules": len(view.rules),
            "checks": [sum(c.success is False for c in checks), sum(c.success is None for c in checks), len(checks)],
            "wrote_series": [run.total("rows") for run in view.runs[-24:]],
        }

    def quality(self) -> Document:
        """One row per rule: its latest measurements as [update, passed, failed]."""
        rows = []
        for view in self.views:
            defined = self._defined_rules(view)
            for series in view.rules:
                rule = defined.get(series.rule)
                rows.append(
                    {
                        "d": self.numbers[view.name],
                        "rule": series.rule,
                        **_rule_document(rule),
                        **self._rule_state(series, rule),
                        "points": [_rule_point(*point) for point in series.points[-RECENT:]],
                    }
                )
        checks = [{"d": self.numbers[view.name], **check} for view in self.views for check in self._checks_of(view)]
        return {"rows": rows, "checks": checks}

    def change(self) -> Document:
        """What changed code would do to the tables. Only of a site with a result of `lakelet diff`."""
        assert self.diff is not None
        return change_document(self.diff, self.numbers, [update.id for update in self.history.updates])

    def search(self) -> Document:
        """The columns of each dataset, for the search box; rules are in the quality document."""
        return {"columns": [[name for name, _ in self._dataset_columns(view)] for view in self.views]}

    def summary(self) -> Document:
        """What the newest update found, and all that is at fault with its owner: the dataset, the rule or check, since when."""
        newest = self.history.updates[-1] if self.history.updates else None
        counts = (
            "state",
            "rows",
            "dropped",
            "quarantined",
            "violations",
            "broken_rules",
            "measured_rules",
            "check_counts",
            "first_error",
            "first_failed",
        )
        update = newest and {"id": newest.id, **{key: value for key, value in _update_item(newest).items() if key in counts}}
        return {"update": update, "failing": [*self._failing_datasets(), *self._failing_rules()], **self.health.summary()}

    def _failing_datasets(self) -> Iterator[Document]:
        for view in self.views:
            found = self._streak_document(failing(self.history.updates, view.runs))
            if found is not None:
                yield {"dataset": view.name, "owner": view.definition.owner if view.definition else "", **self._since(found)}

    def _failing_rules(self) -> Iterator[Document]:
        """Rules that stopped their flows, then checks, then other rules, the lowest pass rate first."""
        found = self.quality()
        rules = [({"rule": row["rule"], "stopped": row["stops"] is not None}, row) for row in found["rows"]]
        checks = [({"check": check["name"], "severity": check["severity"]}, check) for check in found["checks"]]
        others = [one for one in rules if not one[0]["stopped"] and one[1]["failing"] is not None]
        others.sort(key=lambda one: pass_rate(*one[1]["points"][-1][1:]) or 0)
        for about, row in (*(one for one in rules if one[0]["stopped"]), *checks, *others):
            if row["failing"] is not None:
                dataset = self.views[row["d"]].name
                shown = self._sample_json(dataset, row["rule"], [point[0] for point in row["points"]]) if "rule" in about else {}
                yield {"dataset": dataset, **about, "owner": row["owner"], **self._since(row["failing"]), **shown}

    def _sample_json(self, dataset: str, rule: str, numbers: Sequence[int]) -> Document:
        """The rows that broke a rule in the newest update that has some, for scripts."""
        update = self._newest_sampled(dataset, rule, numbers)
        if update is None:
            return {}
        rows = [{"values": json.loads(one.row_json), "file": one.file} for one in update.samples_by_rule[dataset, rule]]
        return {"sample": {"update": update.id, "rows": rows}}

    def _since(self, streak: Sequence[Any]) -> Document:
        number, updates, text = streak
        return {"since": self.history.updates[number].id, "updates": updates, "text": text}

    # --- one dataset ----------------------------------------------------------------------------------------------------------------

    def dataset(self, number: int) -> Document:
        view = self.views[number]
        definition, facts = view.definition, self.tables.get(view.name)
        runs = [run for run in view.runs if run.state is not FlowState.IDLE]
        text = self.texts.text(definition.source) if definition else None
        return {
            "name": view.name,
            "flows": [[f.name, f.flow_type, f.language, _source_place(f)] for f in definition.flows] if definition else [],
            "transforms": list(dict.fromkeys(call for flow in definition.flows for call in flow.transforms)) if definition else [],
            "readers": [self.numbers[name] for name in self._readers[view.name]],
            "bad_input": self.health.bad_input_rows(view.name),
            "columns": [self._column_document(view, name, kind) for name, kind in self._dataset_columns(view)],
            "lineage": bool(definition and definition.lineage),
            "rules": self._rule_documents(view),
            "checks": self._checks_of(view),
            "runs": _columns_of(runs, _run_of_dataset),
            "idle": len(view.runs) - len(runs),
            "source": text and {"file": text.file, "line": text.line, "first": text.first, "lines": list(text.lines)},
            "schema": [_schema_document(c, u) for u in self.history.updates for c in u.schema_changes if c.dataset == view.name],
            "failures": [_failure_document(run, view.last.number) for run in view.last.runs if run.failure] if view.last else [],
            "table": _table_document(facts, self._hidden_columns),
        }

    @cached_property
    def _hidden_columns(self) -> frozenset[str]:
        """Names of columns, in lower case, whose values the page does not show, of any dataset."""
        return hidden_columns(name for definition in self.history.definitions.values() for name in definition.personal_columns)

    def _dataset_columns(self, view: DatasetView) -> tuple[tuple[str, str], ...]:
        """Of the stored table; before there is one, of the query."""
        facts = self.tables.get(view.name)
        flows = view.definition.flows if view.definition else ()
        return facts.columns if facts else next((flow.columns for flow in flows if flow.columns), ())

    def _column_document(self, view: DatasetView, name: str, kind: str) -> list[Any]:
        lines = [line for line in view.definition.lineage if line.column == name] if view.definition else []
        above = dict.fromkeys(found for line in lines for found in line.inputs)
        below = self._columns_below.get((view.name, name), ())
        comments = dict(pair for flow in view.definition.flows for pair in flow.comments) if view.definition else {}
        places = [self._column_reference(*found) for found in above], [self._column_reference(*found) for found in below]
        return [name, kind, *places, comments.get(name, "")]

    def _column_reference(self, dataset: str, column: str) -> list[Any]:
        """A column of a dataset, which is its number, or its name where the page does not have it."""
        return [self.numbers.get(dataset, dataset), column]

    def _rule_documents(self, view: DatasetView) -> list[Document]:
        defined = self._defined_rules(view)
        found = []
        for series in view.rules:
            points = [_rule_point(*point) for point in series.points]
            rule = defined.get(series.rule)
            found.append(
                {
                    "name": series.rule,
                    **_rule_document(rule),
                    **self._rule_state(series, rule),
                    "points": points,
                    "sample": self._sample_of_rule(series),
                }
            )
        return found

    def _rule_state(self, series: RuleSeries, rule: RuleDefinition | None) -> Document:
        """Since when rows break it; what it was before; the first values of the row by which it stopped its flow, if it did so last.

        `edits` are [update, text, text before, action before], `stops` [name, value] pairs.
        """
        edits = self.history.rule_edits.get((series.dataset, series.rule), ())
        return {
            "failing": self._streak_document(breaking(self.history.updates, series.points, edits)),
            "edits": [[edit.number, edit.text, *edit.before] for edit in edits],
            "stops": self._stopping_values(series, rule),
        }

    def _sample_of_rule(self, series: RuleSeries) -> Document | None:
        """Rows that broke the rule in the newest update that has some: its number and first characters, values and file of each row."""
        update = self._newest_sampled(series.dataset, series.rule, [number for number, _ in series.points])
        if update is None:
            return None
        samples = update.samples_by_rule[series.dataset, series.rule]
        return {"n": update.number, "short": update.short, "rows": [[list(map(list, one.values)), one.file] for one in samples]}

    def _newest_sampled(self, dataset: str, rule: str, numbers: Sequence[int]) -> UpdateSummary | None:
        updates = (self.history.updates[number] for number in reversed(numbers))
        return next((update for update in updates if (dataset, rule) in update.samples_by_rule), None)

    def _stopping_values(self, series: RuleSeries, rule: RuleDefinition | None) -> list[list[str]] | None:
        if rule is None or rule.action.lower() != "fail" or not series.points:
            return None
        update, key = self.history.updates[series.points[-1][0]], (series.dataset, series.rule)
        unwritten = update.unwritten_counts_by_rule.get(key)
        if unwritten is None or not unwritten.failed:
            return None
        shown = [run.violation for run in update.runs if run.violation and (run.violation.dataset, run.violation.rule) == key]
        return [list(pair) for pair in shown[0].values] if shown else []

    def _checks_of(self, view: DatasetView) -> list[Document]:
        """The newest result of each check of a dataset."""
        return [
            {**_check_document(found[-1][1]), "failing": self._streak_document(not_holding(self.history.updates, found))}
            for found in view.results_by_check.values()
        ]

    def _streak_document(self, streak: Streak | None) -> list[Any] | None:
        """The first update of a fault, how many updates have it, and both as a text."""
        return None if streak is None else [streak.since.number, streak.updates, streak.text]

    def _defined_rules(self, view: DatasetView) -> Mapping[str, RuleDefinition]:
        """The rules of a dataset by name; those of a view of the pipeline are in the definitions of its readers."""
        if view.definition is not None:
            return {rule.name: rule for rule in view.definition.rules}
        return self._view_rules.get(view.name, {})

    @cached_property
    def _view_rules(self) -> Mapping[str, Mapping[str, RuleDefinition]]:
        found: dict[str, dict[str, RuleDefinition]] = {}
        for definition in self.history.definitions.values():
            for name, rule in (pair for flow in definition.flows for pair in flow.view_rules):
                found.setdefault(name, {})[rule.name] = rule
        return found

    # --- updates --------------------------------------------------------------------------------------------------------------------

    @property
    def pages(self) -> int:
        """How many pages of updates there are."""
        return -(-len(self.history.updates) // PAGE)

    def page(self, number: int) -> Document:
        """Summaries of `PAGE` updates; page 0 has the oldest ones."""
        return {"updates": [_update_item(update) for update in self.history.updates[number * PAGE : (number + 1) * PAGE]]}

    def update(self, number: int) -> Document:
        update = self.history.updates[number]
        positions: dict[str, list[int]] = {}
        for position, run in enumerate(update.runs_by_start):
            positions.setdefault(run.dataset, []).append(position)
        counts = (count for _, count in sorted(update.counts_by_rule.items()))
        totals = [[self._dataset_reference(count.dataset), count.name, count.passed, count.failed] for count in counts]
        unwritten = [count for _, count in sorted(update.unwritten_counts_by_rule.items()) if count.failed]
        stopping = {(run.violation.dataset, run.violation.rule) for run in update.runs if run.violation}
        checks = sorted(update.checks, key=lambda check: (check.dataset, check.name))
        return {
            **_update_item(update),
            "id": update.id,
            "full_refresh": list(update.full_refresh),
            "runs": _columns_of(update.runs_by_start, lambda run: self._flow_run(run, positions)),
            "rules": totals,
            "unwritten": [[self._dataset_reference(c.dataset), c.name, c.failed, (c.dataset, c.name) in stopping] for c in unwritten],
            "failures": [
                {"d": self._dataset_reference(run.dataset), **_failure_document(run, number)} for run in update.runs_by_start if run.failure
            ],
            "error": update.failure and {"code": update.failure.code, "sentence": update.failure.sentence, "text": update.failure.text},
            "schema": [
                {"d": self._dataset_reference(change.dataset), **_schema_document(change, update)} for change in update.schema_changes
            ],
            "checks": [{"d": self._dataset_reference(check.dataset), **_check_document(check)} for check in checks],
            "warnings": [warning.text for warning in update.warnings],
        }

    def _dataset_reference(self, dataset: str) -> int | str:
        return self.numbers.get(dataset, dataset)

    def _flow_run(self, run: FlowSummary, positions: Mapping[str, Sequence[int]]) -> Document:
        view = self.views[self.numbers[run.dataset]] if run.dataset in self.numbers else None
        waited = [position for name in (view.inputs if view else ()) for position in positions.get(name, ())]
        backlog = list(asdict(run.backlog).values()) if run.backlog else None
        return {
            "flow": "" if run.flow == run.dataset else run.flow,
            "d": self._dataset_reference(run.dataset),
            "status": run.status.value,
            "queued": run.queued_at,
            "start": run.started_at,
            "end": run.ended_at,
            "rows": run.rows,
            "deleted": run.deleted,
            "dropped": run.dropped,
            "quarantined": run.quarantined,
            "late": run.late,
            "corrupt": run.corrupt,
            "attempts": run.attempts,
            "reason": run.reason,
            "waited": waited,
            "backlog": backlog,
        }


def _columns_of(items: Sequence[Any], shape: Any) -> Document:
    """Documents of one shape as lists by field."""
    rows = [shape(item) for item in items]
    return {key: [row[key] for row in rows] for key in rows[0]} if rows else {}


def _rule_document(rule: RuleDefinition | None) -> Document:
    """What a rule is; without values for one of which only counts are known."""
    if rule is None:
        return {"constraint": "", "action": "", "description": "", "owner": "", "tags": []}
    about = {"description": rule.description, "owner": rule.owner, "tags": list(rule.tags)}
    return {"constraint": rule.constraint, "action": rule.action, **about}


def _rule_point(number: int, count: RuleCount) -> list[int]:
    """A measurement of a rule: number of the update, passed, failed."""
    return [number, count.passed, count.failed]


def _update_item(update: UpdateSummary) -> Document:
    failed = next((run for run in update.runs_by_start if run.failure), None)
    error = failed.failure if failed else update.failure
    return {
        "n": update.number,
        "short": update.id[:6],
        "pipeline": update.pipeline,
        "state": update.state.value,
        "cause": update.cause,
        "start": update.started_at,
        "end": update.ended_at,
        "rows": update.total("rows"),
        "dropped": update.total("dropped"),
        "quarantined": update.total("quarantined"),
        "violations": update.total("violations"),
        "broken_rules": update.broken_rules,
        "measured_rules": len(update.counts_by_rule),
        "check_counts": [*(sum(c.success is kind for c in update.checks) for kind in (False, None)), len(update.checks)],
        "flows": dict(Counter(run.status.value for run in update.runs)),
        "schema_changes": len(update.schema_changes),
        "first_error": error.sentence_about(failed.dataset if failed else "") if error else "",
        "first_failed": failed.dataset if failed else "",
    }


def _run_of_dataset(run: DatasetSummary) -> Document:
    return {
        "n": run.number,
        "at": run.started if run.started is not None else run.began,
        "state": run.state.value,
        "seconds": run.seconds,
        "rows": run.total("rows"),
        "deleted": run.total("deleted"),
        "dropped": run.total("dropped"),
        "quarantined": run.total("quarantined"),
    }


def _check_document(check: TableCheckResult) -> Document:
    shown = {"name": check.name, "severity": check.severity, "success": check.success, "version": check.table_version}
    about = {"description": check.description, "owner": check.owner, "tags": list(check.tags)}
    return {**shown, "at": check.at, "observed": check.observed, "expected": check.expected, "message": check.finding, **about}


def _failure_document(run: FlowSummary, update: int) -> Document:
    assert run.failure is not None
    sentence = run.failure.sentence_about(run.dataset)
    return {"flow": run.flow, "code": run.failure.code, "sentence": sentence, "text": run.failure.text, "n": update, "at": run.ended_at}


def _schema_document(change: SchemaChangeEvent, update: UpdateSummary) -> Document:
    added, widened = ([list(column) for column in columns] for columns in (change.added, change.widened))
    return {"n": update.number, "at": change.at, "flow": change.flow, "added": added, "widened": widened, "file": change.file}


def _source_place(flow: Any) -> list[Any] | None:
    return [flow.source.file, flow.source.line] if flow.source else None


def _sample_document(sample: Sample, personal: frozenset[str]) -> Document:
    hidden = [name.lower() in personal for name in sample.columns]
    rows = [[HIDDEN if hides and value is not None else value for value, hides in zip(row, hidden, strict=True)] for row in sample.rows]
    return {"columns": list(sample.columns), "rows": rows, "note": sample.note}


def _table_document(facts: TableFacts | None, personal: frozenset[str]) -> Document | None:
    if facts is None:
        return None
    return {
        "rows": facts.rows,
        "version": facts.version,
        "bytes": facts.bytes,
        "files": facts.files,
        "versions": [[v.number, v.at, v.operation, v.rows] for v in facts.versions],
        "sample": _sample_document(facts.sample, personal),
        "quarantine": facts.quarantine and {**_sample_document(facts.quarantine, personal), "held": facts.held},
    }


LINES = 120
"""Number of lines of a file to show, beginning a few before the definition."""
_BEFORE = 3


@dataclass(frozen=True)
class SourceText:
    """Lines of a file; `first`: the number of the first one."""

    file: str
    line: int
    first: int
    lines: tuple[str, ...]


class SourceTexts:
    """Reads source files below one folder: an event log from elsewhere must not bring other files of this machine onto a page."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._lines = lru_cache(maxsize=None)(self._read_source)

    def text(self, source: DefinitionPlace | None) -> SourceText | None:
        """The lines around a definition; without lines where the file is gone, no text or outside of the folder."""
        if source is None:
            return None
        lines = self._lines(source.file)
        first = max(1, source.line - _BEFORE)
        return SourceText(source.file, source.line, first, lines[first - 1 : first - 1 + LINES])

    def _read_source(self, file: str) -> tuple[str, ...]:
        path = (self._root / file).resolve()
        if not path.is_relative_to(self._root) or path.suffix.lower() not in (".py", ".sql", ".ipynb", ".r", ".scala"):
            return ()
        try:
            return tuple(redacted(path.read_text(encoding="utf-8")).splitlines())
        except (OSError, UnicodeDecodeError, ValueError):
            return ()
