"""Tells in the event log what maintenance did (MT-13, EL-24). No Spark."""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.base.errors import LakeletError
from lakelet.maintenance.results import Maintained
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.reading import log_failure
from lakelet.storage.eventlog.states import EventType, Level, OperationState
from lakelet.storage.eventlog.writer import append, ready
from lakelet.storage.root import Registry, Storage


def report(store: Storage, tables: Sequence[Maintained], maintenance_id: str) -> LakeletError | None:
    """Append an event for each table that was changed or failed; return why that was not possible, which undoes nothing."""
    registry = store.registry()
    changed = [table for table in tables if table.error is not None or not table.left_alone]
    events = [_event(table, registry, maintenance_id, number) for number, table in enumerate(changed, 1)]
    try:
        if events:
            append(ready(store.events), events)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as problem:  # delta-rs panics, too
        return log_failure(problem, store.events)
    return None


def _event(table: Maintained, registry: Registry, maintenance_id: str, number: int) -> Event:
    stored = registry.datasets.get(table.name.lower())
    owner = (stored.owner if stored else None) or registry.pipeline_id
    pipeline = registry.pipelines.get(owner)
    origin = Origin(owner, pipeline.name if pipeline else "", None, table.name, maintenance_id=maintenance_id)
    state = OperationState.COMPLETED if table.error is None else OperationState.FAILED
    told = table.as_json()
    body = {"state": state, **{name: told[name] for name in ("before", "after", "optimize", "columns", "removed", "why", "notes")}}
    return Event(
        EventType.MAINTENANCE_PROGRESS,
        f"Maintenance of '{table.name}' has {state}.",
        origin,
        {EventType.MAINTENANCE_PROGRESS: body},
        level=Level.INFO if table.error is None else Level.ERROR,
        error=table.error,
        sequence=number,
    )
