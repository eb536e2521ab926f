"""How old datasets are against their sources, what waits, and who is affected by what failed. Computed from a `History`; no reads.

The views `dataset_sources`, `dataset_freshness` and `affected_datasets` of the event log give the same in SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from lakelet.storage.eventlog.states import FlowState
from lakelet.storage.eventlog.summaries import DatasetSummary, FlowSummary, History, Timestamp

MOST_STEPS = 50
"""Longest way from a source to a dataset that is followed."""


class Problem(str, Enum):
    """Why datasets downstream are affected."""

    FAILED = "failed"
    STOPPED = "stopped"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class SourceFreshness:
    """What of the changes of one dataset upstream has arrived in a dataset.

    `distance`: steps between them; `is_first`: the source reads no dataset. `contains_at`: its newest change that has arrived. The
    first change that has not arrived is the begin of the wait; `waiting_rows`: changed since then.
    """

    dataset: str
    source: str
    distance: int
    is_first: bool
    changed_at: Timestamp
    contains_at: Timestamp
    waiting_since: Timestamp
    waiting_rows: int

    @property
    def lag(self) -> int:
        """Milliseconds between the newest change that arrived and the newest one; 0 where nothing waits."""
        if self.waiting_since is None or self.changed_at is None:
            return 0
        return self.changed_at - (self.waiting_since if self.contains_at is None else self.contains_at)


@dataclass(frozen=True, slots=True)
class DatasetFreshness:
    """How old a dataset is against all that is upstream of it.

    `waiting_rows`: of the sources that read no dataset themselves; `waiting_for`: all sources with changes that have not arrived.
    """

    dataset: str
    sources_changed_at: Timestamp
    contains_at: Timestamp
    behind_since: Timestamp
    lag_seconds: float
    waiting_rows: int
    waiting_for: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AffectedDataset:
    """A dataset downstream of `cause`, which has a problem since a time. `failed_updates`: in how many updates it failed since."""

    cause: str
    problem: Problem
    since: Timestamp
    failed_updates: int
    dataset: str
    distance: int


def source_freshness(history: History) -> tuple[SourceFreshness, ...]:
    """Return one value for each dataset of today and each dataset upstream of it, by name."""
    changes: dict[str, list[tuple[int, int]]] = {}
    for run in (run for update in history.updates for run in update.runs):
        if run.last_rows_at is not None:
            changes.setdefault(run.dataset, []).append((run.last_rows_at, run.rows + run.deleted))
    paths = _paths(history)
    readers = {dataset for dataset, _ in paths}
    found = []
    for (dataset, source), (reach, distance) in sorted(paths.items()):
        arrived = [at for at, _ in changes.get(source, ()) if at <= reach]
        waiting = [(at, rows) for at, rows in changes.get(source, ()) if at > reach]
        newest = max((at for at, _ in changes.get(source, ())), default=None)
        since = min((at for at, _ in waiting), default=None)
        rows = sum(rows for _, rows in waiting)
        found.append(SourceFreshness(dataset, source, distance, source not in readers, newest, max(arrived, default=None), since, rows))
    return tuple(found)


def dataset_freshness(sources: Sequence[SourceFreshness]) -> Mapping[str, DatasetFreshness]:
    """Return how old each dataset is, by name. `sources`: those of the same history."""
    by_dataset: dict[str, list[SourceFreshness]] = {}
    for source in sources:
        by_dataset.setdefault(source.dataset, []).append(source)
    return {
        name: DatasetFreshness(
            name,
            max((s.changed_at for s in its if s.changed_at is not None), default=None),
            max((s.contains_at for s in its if s.contains_at is not None), default=None),
            min((s.waiting_since for s in its if s.waiting_since is not None), default=None),
            max(s.lag for s in its) / 1000,
            sum(s.waiting_rows for s in its if s.is_first),
            tuple(s.source for s in its if s.waiting_since is not None),
        )
        for name, its in by_dataset.items()
    }


def affected_datasets(history: History, sources: Sequence[SourceFreshness]) -> tuple[AffectedDataset, ...]:
    """Return what is downstream of each dataset that failed, was stopped or is late: causes by name, the nearest datasets first.

    `sources`: those of the same history. A dataset is late where a change of what it reads itself has not arrived, and it was not skipped.
    """
    late: dict[str, int] = {}
    for source in sources:
        if source.distance == 1 and source.waiting_since is not None:
            late[source.dataset] = min(source.waiting_since, late.get(source.dataset, source.waiting_since))
    found = []
    for name, runs in _runs(history).items():
        problem = _PROBLEMS.get(runs[-1].state, Problem.LATE)
        since, failed = _failing_since(runs)
        if problem is Problem.LATE:
            since = late.get(name) if runs[-1].state is not FlowState.SKIPPED else None
            if since is None:
                continue
        readers = (source for source in sources if source.source == name)
        found += [AffectedDataset(name, problem, since, failed, reader.dataset, reader.distance) for reader in readers]
    return tuple(sorted(found, key=lambda a: (a.cause, a.distance, a.dataset)))


_PROBLEMS = {FlowState.FAILED: Problem.FAILED, FlowState.STOPPED: Problem.STOPPED}


def _runs(history: History) -> dict[str, list[DatasetSummary]]:
    """The runs of each dataset, oldest first, those in which it was excluded left out."""
    found: dict[str, list[DatasetSummary]] = {}
    for update in history.updates:
        for name, run in update.datasets.items():
            found.setdefault(name, []).append(run)
    return found


def _failing_since(runs: Sequence[DatasetSummary]) -> tuple[Timestamp, int]:
    """When the failures began that no complete refresh ended, and how many updates they are."""
    complete = max((run.ended for run in runs if run.state.is_done and run.ended is not None), default=0)
    failures = [
        (run.number, flow.ended_at)
        for run in runs
        for flow in run.runs
        if flow.status in _PROBLEMS and flow.ended_at is not None and flow.ended_at > complete
    ]
    return min((at for _, at in failures), default=None), len({number for number, _ in failures})


def _paths(history: History) -> dict[tuple[str, str], tuple[int, int]]:
    """By (dataset, dataset upstream): the time up to which changes have come through on the slowest way, and the steps of the shortest."""
    refreshed: dict[tuple[str, str], int] = {}
    for run in (run for update in history.updates for run in update.runs):
        at = _refreshed_at(run)
        if at is not None:
            refreshed[run.flow, run.dataset] = max(at, refreshed.get((run.flow, run.dataset), 0))
    direct: dict[str, dict[str, int]] = {}
    for flow, dataset, source in _reads(history):
        reach = refreshed.get((flow, dataset), 0)
        known = direct.setdefault(dataset, {})
        known[source] = min(reach, known.get(source, reach))
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for dataset in direct:
        _follow(dataset, direct, found)
    return found


def _follow(dataset: str, direct: Mapping[str, Mapping[str, int]], found: dict[tuple[str, str], tuple[int, int]]) -> None:
    """Add all that is upstream of one dataset."""
    step, now = 0, {dataset: 1 << 62}
    while now and step < MOST_STEPS:
        step += 1
        following: dict[str, int] = {}
        for reader, reach in now.items():
            for source, own in direct.get(reader, {}).items():
                following[source] = min(reach, own, following.get(source, reach))
        now = {}
        for source, reach in following.items():
            before = found.get((dataset, source))
            if before is None or reach < before[0]:
                now[source] = reach
                found[dataset, source] = (reach, step if before is None else before[1])


def _reads(history: History) -> Iterator[tuple[str, str, str]]:
    """(flow, dataset, dataset that it reads) of today's definitions; columns look through views."""
    for definition in history.definitions.values():
        for flow in definition.flows:
            yield from ((flow.name, definition.name, source) for source in flow.inputs if source != definition.name)
        for line in definition.lineage:
            yield from ((line.flow, definition.name, source) for source, _ in line.inputs if source != definition.name)


def _refreshed_at(run: FlowSummary) -> Timestamp:
    """The time up to which a run has taken changes: its begin where it ended well, its newest rows while it goes on."""
    if run.status.is_done:
        return run.ended_at if run.started_at is None else run.started_at
    return run.last_rows_at if run.status.is_at_work else None
