"""Repair what the last update left undone when its process died.

Tables need no repair: a commit exists as a whole or not at all, and Spark repeats batches that were planned but not committed. What can be
missing is what is written after a commit: events and entries of the registry. Both are derived from the commits and the schema logs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from lakelet.autoloader.spec import SchemaChange
from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.cdc.counts import completed
from lakelet.cdc.mirror import INTERNAL
from lakelet.cdc.writing import catch_up
from lakelet.files.paths import Place
from lakelet.flows.context import Environment, FlowRun
from lakelet.flows.metrics import Totals, emit_batch, emit_change, emit_warnings, event_id
from lakelet.language.model import Kind
from lakelet.storage.delta import tables
from lakelet.storage.delta.tables import TableLog
from lakelet.storage.eventlog import writer
from lakelet.storage.eventlog.events import ERROR, INFO, Event, Origin
from lakelet.storage.root import LastUpdate, Registry, StoredDataset

MakeOrigin = Callable[[str, str | None, str | None, int | None], Origin]
"""(update id, dataset, flow, batch number) → origin of an event."""


@dataclass
class _Log:
    """Collects events in the name of an earlier update, those left out that the log already has."""

    update_id: str
    known: writer.Logged
    origin: MakeOrigin
    events: list[Event] = field(default_factory=list)

    def emit(
        self,
        event_type: str,
        message: str,
        body: Mapping[str, Any],
        *,
        id: str,
        dataset: str | None = None,
        flow: str | None = None,
        level: str = INFO,
        batch_id: int | None = None,
    ) -> None:
        if id in self.known.ids:
            return
        number = self.known.sequence + len(self.events) + 1
        origin = self.origin(self.update_id, dataset, flow, batch_id)
        self.events.append(Event(event_type, message, origin, {event_type: dict(body)}, level=level, id=id, sequence=number))


@dataclass(frozen=True)
class Repaired:
    """`registry`: as it should have been left. `died`: the last update if its process ended before it did. `told`: how many events."""

    registry: Registry
    died: LastUpdate | None = None
    told: int = 0


def repair(environment: Environment, registry: Registry, flows: Iterable[FlowRun], origin: MakeOrigin) -> Repaired:
    """Write the events that the last update did not get to, and return the registry as it should be; the caller saves it."""
    last = registry.last_update
    if last is None or last.clean:
        return Repaired(registry)
    storage = environment.storage
    log = _Log(last.id, writer.logged(storage.events, last.id), origin)
    datasets = dict(registry.datasets)
    totals: dict[tuple[str, str], Totals] = defaultdict(Totals)
    for internal in storage.root.glob(f"tables/*/*/*/{INTERNAL}"):
        catch_up(internal.parent)
    for path in _table_folders(storage.root, registry):
        commits = _commits_of(_log_with_facts(storage.root / path), last.id)
        for _, facts in commits:
            emit_batch(log.emit, facts)
            totals[facts["dataset"], facts["flow"]].add(facts)
        if commits:
            stored = _entry(environment, datasets, path, *commits[-1])
            datasets[stored.name.lower()] = stored
    for (dataset, flow), found in totals.items():
        emit_warnings(log.emit, found, update_id=last.id, dataset=dataset, flow=flow)
    for run in flows:
        _tell_changes(log, run, last.started)
    if not log.known.ended:
        message = f"Update {last.id[:6]} is FAILED: its process ended."
        log.emit("update_progress", message, {"state": "FAILED"}, level=ERROR, id=event_id(last.id, "ended"))
    if log.events:
        writer.append(storage.events, log.events)
    reached("update.repaired")
    return Repaired(replace(registry, datasets=datasets), None if log.known.ended else last, len(log.events))


def _table_folders(root: Place, registry: Registry) -> Sequence[str]:
    """Folders of all tables, also of those whose first update did not get to register them."""
    found = {stored.path for stored in registry.datasets.values() if stored.kind != Kind.SINK.value}
    found |= {str(log.parent)[len(str(root)) + 1 :] for log in root.glob("tables/*/*/*/_delta_log")}
    return sorted(found)


def _log_with_facts(table: Place) -> TableLog:
    """The log whose commits keep what was measured: of a change table the internal one, which others do not write to."""
    inner = TableLog(table / INTERNAL)
    return inner if inner.version() >= 0 else TableLog(table)


def _commits_of(log: TableLog, update_id: str) -> list[tuple[int, Mapping[str, Any]]]:
    """Versions that one update made, and their facts, oldest first. It was the last update, so they are the newest ones."""
    found: list[tuple[int, Mapping[str, Any]]] = []
    for version in range(log.version(), -1, -1):
        commit = log.commit(version)
        facts = (commit.user_metadata or {}).get("lakelet") if commit else None
        if commit is None or (facts and facts["update_id"] != update_id):
            break
        if facts:
            found.append((version, completed(facts, log.actions(version))))
    return found[::-1]


def _entry(
    environment: Environment, datasets: Mapping[str, StoredDataset], path: str, version: int, facts: Mapping[str, Any]
) -> StoredDataset:
    """The registry's entry of a table whose newest commit is `version`."""
    view = facts.get("view")
    kind = Kind.MATERIALIZED_VIEW if view else Kind.STREAMING_TABLE
    defined = environment.catalog.datasets.get(facts["dataset"].lower())
    owner = environment.storage.registry().owner
    unknown = StoredDataset(name=facts["dataset"], kind=kind.value, path=path, owner=owner)
    fresh = environment.stored(defined, kind.value) if defined else unknown
    stored = datasets.get(facts["dataset"].lower(), fresh)
    if view:
        return replace(stored, fingerprint=view["fingerprint"], input_versions=view["inputs"], version=version)
    return replace(stored, columns=tables.stored_schema(environment.spark, environment.storage.root / path).json())


def _tell_changes(log: _Log, run: FlowRun, since: str) -> None:
    """Tell about schema versions that the update stored. A schema log that cannot be read is the flow's own failure."""
    for number, spec in enumerate(run.environment.sources.get(run.name, ())):
        source = run.environment.open_source(run.flow.flow, number, spec, dry=True)
        changes: list[SchemaChange] = []
        with suppress(LakeletError):
            changes = source.changes(since)
        for change in changes:
            id = run.change_id(number, change.version_after)
            emit_change(log.emit, change, dataset=str(run.dataset.name), flow=run.name, id=id)
