"""Maintains the stored tables: OPTIMIZE, ZORDER or clustering, and VACUUM (docs/semantics/maintenance.md).

No answer of a later query or update changes by it, and every step can be repeated: the process may die between any two lines.
"""

from __future__ import annotations

import fnmatch
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.phases import report
from lakelet.files.paths import AnyPath
from lakelet.files.stores import scheme_of, stores_of
from lakelet.maintenance.layout import LEAST_SECONDS
from lakelet.maintenance.results import MaintenanceResult
from lakelet.storage.environments import PinnedVersion, environment_names, environment_root, pinned_versions
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.reading import log_failure
from lakelet.storage.eventlog.states import EventType, Level, OperationState
from lakelet.storage.eventlog.writer import append, ready
from lakelet.storage.lease import MAINTENANCE
from lakelet.storage.promotion import finish_promotion
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakelet.maintenance.table import TableMaintenance


Note = Callable[[str], None]


def maintain(
    storage: AnyPath,
    names: Sequence[str] = (),
    *,
    dry_run: bool = False,
    spark: SparkSession | None = None,
    note: Note = lambda text: None,
    least: float = LEAST_SECONDS,
) -> list[MaintenanceResult]:
    """Maintain the stored tables, or those that `names` (names or globs) mean; return what was done to each, by name.

    Args:
        dry_run: write nothing, say what would be done.
        spark: a session; None starts one when a table needs it.
        note: gets a word when Spark has to be started, and for each table that has work.
        least: seconds that a removed file is kept for readers whatever its table declares.

    A table that fails is in the result, and the others go on. Raises UNKNOWN_TABLE, LAKELET_STORAGE_BUSY while an update runs.
    """
    store = Storage(storage)
    asked = chosen(store.registry(), names)
    if not asked:
        return []
    store.refuse_if_busy()
    maintenance_id, wanted = str(uuid.uuid4()), [d.name for d in asked]
    if dry_run:
        return _maintained(store, wanted, dry_run, spark, note, least)
    with store.lease(f"{MAINTENANCE}{maintenance_id}"):
        finish_promotion(store)
        found = _maintained(store, wanted, dry_run, spark, note, least)
        untold = append_events(store, found, maintenance_id)
    if untold is not None:
        note(f"The event log does not tell of it: {untold.what}")
    return found


def chosen(registry: StorageRegistry, names: Sequence[str]) -> list[StoredDataset]:
    """The stored datasets that names or globs mean, by name; all without any. Raises UNKNOWN_TABLE."""
    if not names:
        return sorted(registry.datasets.values(), key=lambda d: d.name)
    found: dict[str, StoredDataset] = {}
    for name in names:
        try:
            key = registry.namespace.resolve(name).key
        except ValueError as problem:
            raise LakeletError("UNKNOWN_TABLE", str(problem)) from None
        matching = {k: d for k, d in registry.datasets.items() if fnmatch.fnmatchcase(k, key)}
        if not matching:
            nearest = nearest_names(name, [d.name for d in registry.datasets.values()])
            todo = "List all names: lakelet show"
            raise LakeletError("UNKNOWN_TABLE", f"the storage holds no table {name}", nearest=nearest, todo=todo)
        found |= matching
    return sorted(found.values(), key=lambda d: d.name)


def _maintained(
    store: Storage, names: Sequence[str], dry_run: bool, spark: SparkSession | None, note: Note, least: float
) -> list[MaintenanceResult]:
    from lakelet.maintenance.engine import Engine
    from lakelet.maintenance.needed_files import stream_positions
    from lakelet.maintenance.table import TableMaintenance

    def start() -> SparkSession:
        if spark is not None:
            return spark
        from lakelet.spark.launch.session import start_session

        note("Starting Spark, which rewrites files and lists old ones ...")
        return start_session(app_name="lakelet maintain", stores=stores_of(store.root))

    registry, found, pinned = store.reload(), [], pinned_versions(store.root)
    roots = [store.root, *(environment_root(store.root, name) for name in environment_names(store.root))]
    positions = [at for root in roots for at in stream_positions(root / "checkpoints")]
    tables = TableMaintenance(Engine(start), positions, dry_run=dry_run, least=least)
    for number, name in enumerate(names):
        report("Maintaining tables", number, len(names))
        stored = registry.datasets.get(name.lower())
        if stored is not None:
            found.append(_one(store, stored, tables, pinned.get(stored.path, ())))
    return found


def _one(store: Storage, stored: StoredDataset, tables: TableMaintenance, pinned: Sequence[PinnedVersion]) -> MaintenanceResult:
    from pyspark.errors.exceptions.base import PySparkException

    from lakelet.jvm.errors import Py4JError
    from lakelet.spark.errors.diagnosis import first_line

    path = store.at(stored.path) if stored.path else None
    table = MaintenanceResult(stored.name, stored.kind, path.as_uri() if path is not None else "")
    if path is None or scheme_of(stored.path) is not None or stored.path.startswith("/"):
        return replace(table, why="it lies outside of the storage, where others may write to it")
    try:
        return tables.maintained(table, path, pinned)
    except LakeletError as problem:
        return replace(table, error=problem)
    except (PySparkException, Py4JError, ValueError, OSError) as problem:
        error = LakeletError(
            "MAINTENANCE_FAILED", "its maintenance failed; its rows are as before", dataset=stored.name, why=first_line(problem)
        )
        return replace(table, error=error)


# --- events of maintenance (MT-13, EL-24) -------------------------------------------------------------------------------------------------


def append_events(store: Storage, tables: Sequence[MaintenanceResult], maintenance_id: str) -> LakeletError | None:
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


def _event(table: MaintenanceResult, registry: StorageRegistry, maintenance_id: str, number: int) -> Event:
    stored = registry.datasets.get(table.name.lower())
    owner = (stored.owner if stored else None) or registry.pipeline_id
    pipeline = registry.pipelines.get(owner)
    origin = Origin(owner, pipeline.name if pipeline else "", None, table.name, maintenance_id=maintenance_id)
    state = OperationState.COMPLETED if table.error is None else OperationState.FAILED
    facts = table.as_json()
    body = {"state": state, **{name: facts[name] for name in ("before", "after", "optimize", "columns", "removed", "why", "notes")}}
    return Event(
        EventType.MAINTENANCE_PROGRESS,
        f"Maintenance of '{table.name}' has {state}.",
        origin,
        {EventType.MAINTENANCE_PROGRESS: body},
        level=Level.INFO if table.error is None else Level.ERROR,
        error=table.error,
        sequence=number,
    )
