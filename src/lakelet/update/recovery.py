"""Repair what the last update left undone when its process died.

Tables need no repair: a commit exists as a whole or not at all, and Spark repeats batches that were planned but not committed. What can be
missing is what is written after a commit: events and entries of the registry. Both are derived from the commits and the schema logs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from lakelet.autoloader.source_spec import SchemaEvolution
from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.cdc.counts import completed
from lakelet.cdc.writing import catch_up
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.flows.context import FlowTask, event_id
from lakelet.flows.environment import Environment
from lakelet.flows.json_growth import report_json_changes
from lakelet.flows.metrics import Totals, emit_batch, emit_change, emit_warnings
from lakelet.language.model import Kind
from lakelet.storage.delta import tables
from lakelet.storage.delta.batch_metrics import KEY, BatchMetrics
from lakelet.storage.eventlog import writer
from lakelet.storage.eventlog.events import Event, Reporter
from lakelet.storage.eventlog.reading import UpdateRecord, logged
from lakelet.storage.eventlog.states import EventType, Level, UpdateState
from lakelet.storage.root import INTERNAL, LastUpdate, StorageRegistry, StoredDataset


@dataclass
class _Log:
    """Collects events of an earlier update, without those that the log already has."""

    known: UpdateRecord
    events: list[Event] = field(default_factory=list)

    def add(self, event: Event) -> None:
        if event.id not in self.known.ids:
            self.events.append(replace(event, sequence=self.known.sequence + len(self.events) + 1))


@dataclass(frozen=True)
class RepairResult:
    """The storage after a repair.

    `registry`: as it should have been left. `died`: the last update if its process ended before it did. `events_added`: how many of its
    events were missing in the log.
    """

    registry: StorageRegistry
    died: LastUpdate | None = None
    events_added: int = 0


def repair(environment: Environment, registry: StorageRegistry, flows: Iterable[FlowTask]) -> RepairResult:
    """Write the events that the last update did not get to, and return the registry as it should be; the caller saves it."""
    last = registry.last_update
    if last is None or last.clean:
        return RepairResult(registry)
    storage = environment.storage
    log = _Log(logged(storage.events, last.id))
    reporter = environment.reporter.of_update(last.id, log.add)
    datasets = dict(registry.datasets)
    totals: dict[tuple[str, str], Totals] = defaultdict(Totals)
    for internal in storage.root.glob(f"tables/*/*/*/{INTERNAL}"):
        catch_up(internal.parent)
    for path in _table_folders(storage.root, registry):
        commits = _commits_of(_log_with_facts(storage.root / path), last.id)
        for _, metrics in commits:
            emit_batch(reporter, metrics, failed=metrics.flow in log.known.failed)
            totals[metrics.dataset, metrics.flow].add(metrics)
        if commits:
            stored = _entry(environment, datasets, path, *commits[-1])
            datasets[stored.name.lower()] = stored
    for (dataset, flow), found in totals.items():
        emit_warnings(reporter, found, dataset=dataset, flow=flow)
    for task in flows:
        _report_changes(reporter, task, last.started)
    if not log.known.ended:
        message = f"Update {last.id[:6]} is {UpdateState.FAILED}: its process ended."
        reporter.emit(EventType.UPDATE_PROGRESS, message, {"state": UpdateState.FAILED}, level=Level.ERROR, id=event_id(last.id, "ended"))
    if log.events:
        writer.append(storage.events, log.events)
    reached("update.repaired")
    return RepairResult(replace(registry, datasets=datasets), None if log.known.ended else last, len(log.events))


def _table_folders(root: AnyPath, registry: StorageRegistry) -> Sequence[str]:
    """Folders of all tables, also of those whose first update did not get to register them."""
    found = {stored.path for stored in registry.datasets.values() if stored.kind is not Kind.SINK}
    found |= {str(log.parent)[len(str(root)) + 1 :] for log in root.glob("tables/*/*/*/_delta_log")}
    return sorted(found)


def _log_with_facts(table: AnyPath) -> TableLog:
    """The log whose commits keep what was measured: of a change table the internal one, which others do not write to."""
    inner = TableLog(table / INTERNAL)
    return inner if inner.version() >= 0 else TableLog(table)


def _commits_of(log: TableLog, update_id: str) -> list[tuple[int, BatchMetrics]]:
    """Versions that one update made, and what they keep, oldest first. It was the last update, so they are the newest ones."""
    found: list[tuple[int, BatchMetrics]] = []
    for version in range(log.version(), -1, -1):
        commit = log.commit(version)
        facts = (commit.user_metadata or {}).get(KEY) if commit else None
        if commit is None or (facts and facts["update_id"] != update_id):
            break
        if facts:
            found.append((version, BatchMetrics.from_json(completed(facts, log.actions(version)))))
    return found[::-1]


def _entry(
    environment: Environment, datasets: Mapping[str, StoredDataset], path: str, version: int, metrics: BatchMetrics
) -> StoredDataset:
    """The registry's entry of a table whose newest commit is `version`."""
    view = metrics.view
    kind = Kind.MATERIALIZED_VIEW if view else Kind.STREAMING_TABLE
    defined = environment.catalog.datasets.get(metrics.dataset.lower())
    owner = environment.storage.registry().owner
    unknown = StoredDataset(name=metrics.dataset, kind=kind, path=path, owner=owner)
    fresh = environment.stored(defined, kind) if defined else unknown
    stored = datasets.get(metrics.dataset.lower(), fresh)
    if view:
        return replace(stored, fingerprint=view.fingerprint, input_versions=view.inputs, version=version)
    return replace(stored, columns=tables.stored_schema(environment.spark, environment.storage.root / path).json())


def _report_changes(reporter: Reporter, task: FlowTask, since: str) -> None:
    """Tell about schema versions that the update stored. A schema log that cannot be read is the flow's own failure."""
    with suppress(LakeletError):
        report_json_changes(reporter, task, since)
    for number, spec in enumerate(task.flow.sources):
        source = task.environment.sources.open(task.declared, number, spec, dry=True)
        changes: list[SchemaEvolution] = []
        with suppress(LakeletError):
            changes = source.changes(since)
        for change in changes:
            id = task.change_id(number, change.version_after)
            emit_change(reporter, change, dataset=str(task.dataset.name), flow=task.name, id=id)
