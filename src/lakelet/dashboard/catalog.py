"""The datasets of the page: each with its place in the graph, how its latest update left it, and the series behind its charts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lakelet.base.text import shortener
from lakelet.plan.graph import declared_layer, depths
from lakelet.storage.eventlog.summaries import DatasetDefinition, DatasetSummary, History, TableCheckResult
from lakelet.storage.rule_counts import RuleCount


@dataclass(frozen=True)
class RuleSeries:
    """One rule over the updates that measured it: (number of the update, its count), oldest first."""

    dataset: str
    rule: str
    points: tuple[tuple[int, RuleCount], ...]


@dataclass(frozen=True)
class DatasetView:
    """Everything about one dataset but its table. `layer`: bronze, silver, gold or the depth in the graph as text.

    `runs`: of the updates in which it was not excluded, oldest first. `definition` is None for what is only read: views, outside tables.
    """

    name: str
    short: str
    layer: str
    inputs: tuple[str, ...]
    definition: DatasetDefinition | None
    runs: tuple[DatasetSummary, ...]
    rules: tuple[RuleSeries, ...]
    checks: tuple[tuple[int, TableCheckResult], ...]

    @property
    def last(self) -> DatasetSummary | None:
        return self.runs[-1] if self.runs else None

    @cached_property
    def results_by_check(self) -> Mapping[str, Sequence[tuple[int, TableCheckResult]]]:
        """The results of each check of the table by its name, oldest first, with the numbers of the updates."""
        found: dict[str, list[tuple[int, TableCheckResult]]] = {}
        for number, check in self.checks:
            found.setdefault(check.name, []).append((number, check))
        return found

    @property
    def last_measured(self) -> tuple[int | None, tuple[RuleCount, ...]]:
        """The newest update that measured any of its rules, and what they counted in it: numbers of one update, never of several."""
        newest = max((series.points[-1][0] for series in self.rules if series.points), default=None)
        return newest, tuple(s.points[-1][1] for s in self.rules if s.points and s.points[-1][0] == newest)

    @property
    def last_rows_at(self) -> int | None:
        """When rows were last written to it."""
        return max((r.last_rows_at for d in self.runs[-200:] for r in d.runs if r.last_rows_at is not None), default=None)

    @property
    def completed_at(self) -> int | None:
        """When it was last brought up to date, with new rows or without."""
        return next((d.ended for d in reversed(self.runs) if d.state.is_done), None)


def dataset_views(history: History) -> tuple[DatasetView, ...]:
    """The datasets of today, inputs before readers; after them what has rules in the log but no definition."""
    definitions = history.definitions
    inputs = {name: d.sources for name, d in definitions.items()}
    rules, runs, checks = _rule_points(history), _runs_by_dataset(history), _checks_by_dataset(history)
    read = {i for names in inputs.values() for i in names} | {dataset for dataset, _ in rules if dataset not in runs}
    names = [*definitions, *sorted(read - set(definitions))]
    short, depth = shortener(names), depths(names, inputs)
    by_dataset: dict[str, list[RuleSeries]] = {}
    for (dataset, rule), points in rules.items():
        by_dataset.setdefault(dataset, []).append(RuleSeries(dataset, rule, tuple(points)))
    found = []
    for name in sorted(names, key=lambda n: (depth[n], n)):
        layer = declared_layer(name, _source_file(definitions.get(name))) or str(depth[name])
        its_runs, its_rules = tuple(runs.get(name, ())), tuple(by_dataset.get(name, ()))
        found.append(
            DatasetView(
                name, short(name), layer, inputs.get(name, ()), definitions.get(name), its_runs, its_rules, tuple(checks.get(name, ()))
            )
        )
    return tuple(found)


def _source_file(definition: DatasetDefinition | None) -> str | None:
    return definition.source.file if definition and definition.source else None


def _rule_points(history: History) -> dict[tuple[str, str], list[tuple[int, RuleCount]]]:
    """The points of each rule of today, those without a measurement included.

    The rules of datasets that are not defined, or whose definitions do not name them, are those that were counted.
    """
    found: dict[tuple[str, str], list[tuple[int, RuleCount]]] = {
        (definition.name, rule.name): [] for definition in history.definitions.values() for rule in definition.rules
    }
    known = {name for name, definition in history.definitions.items() if definition.rules_known}
    for update in history.updates:
        for key, count in update.counts_by_rule.items():
            if key in found or key[0] not in known:
                found.setdefault(key, []).append((update.number, count))
    return found


def _runs_by_dataset(history: History) -> dict[str, list[DatasetSummary]]:
    found: dict[str, list[DatasetSummary]] = {}
    for update in history.updates:
        for name, run in update.datasets.items():
            found.setdefault(name, []).append(run)
    return found


def _checks_by_dataset(history: History) -> dict[str, list[tuple[int, TableCheckResult]]]:
    found: dict[str, list[tuple[int, TableCheckResult]]] = {}
    for update in history.updates:
        for check in update.checks:
            found.setdefault(check.dataset, []).append((update.number, check))
    return found


def readers(views: Sequence[DatasetView]) -> Mapping[str, tuple[str, ...]]:
    """By dataset: those that read it directly."""
    found: dict[str, list[str]] = {view.name: [] for view in views}
    for view in views:
        for name in view.inputs:
            found[name].append(view.name)
    return {name: tuple(names) for name, names in found.items()}


def columns_read_from(views: Sequence[DatasetView]) -> Mapping[tuple[str, str], tuple[tuple[str, str], ...]]:
    """By (dataset, column): the columns that are computed from it, in other datasets."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for view, line in _lineage(views):
        for dataset, column in line:
            found.setdefault((dataset, column), []).append(view)
    return {key: tuple(dict.fromkeys(columns)) for key, columns in found.items()}


def _lineage(views: Sequence[DatasetView]) -> Iterator[tuple[tuple[str, str], tuple[tuple[str, str], ...]]]:
    for view in views:
        for line in view.definition.lineage if view.definition else ():
            yield (view.name, line.column), line.inputs
