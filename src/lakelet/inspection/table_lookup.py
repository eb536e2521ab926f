"""Finding the tables of a storage by their names. No Spark."""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.names import TableName, split_name
from lakelet.files.paths import AnyPath
from lakelet.language.model import Kind
from lakelet.storage.eventlog import views as event_views
from lakelet.storage.eventlog.views import EVENT_LOG
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset, new_table_path


def path_of(storage: AnyPath, dataset: StoredDataset) -> AnyPath:
    return Storage(storage).at(dataset.path)


def find_dataset(registry: StorageRegistry, name: str) -> StoredDataset:
    """The stored dataset that `name` (one to three parts) means in the pipeline's namespace, else the only one whose name ends so.

    Raises UNKNOWN_TABLE with the nearest names, or with all those that end so.
    """
    try:
        resolved = registry.namespace.resolve(name)
    except ValueError as problem:
        raise LakeletError("UNKNOWN_TABLE", str(problem)) from None
    found = find_stored(registry, resolved)
    elsewhere = [] if found is not None else _datasets_ending_so(registry, split_name(name))
    if len(elsewhere) > 1:
        what, todo = f"several schemas have a table {name}", "Write the whole name of the one that is meant."
        raise LakeletError("UNKNOWN_TABLE", what, why="\n".join(sorted(one.name for one in elsewhere)), todo=todo)
    if found is None and not elsewhere:
        raise unknown_table(name, registry)
    return found or elsewhere[0]


def _datasets_ending_so(registry: StorageRegistry, parts: Sequence[str]) -> list[StoredDataset]:
    """The datasets with a table whose names end with these parts."""
    wanted = [part.lower() for part in parts]
    return [d for d in registry.datasets.values() if d.path and [p.lower() for p in split_name(d.name)][-len(wanted) :] == wanted]


def find_stored(registry: StorageRegistry, name: TableName) -> StoredDataset | None:
    """The dataset of that name, or the Delta sink that writes to one below the storage. Raises UNKNOWN_TABLE for other sinks."""
    found = registry.datasets.get(name.key)
    if found is None:
        path = new_table_path(name)
        found = next((d for d in registry.datasets.values() if d.kind is Kind.SINK and d.path == path), None)
    if found is not None and not found.path:
        todo = "Look where its options point, or at the table that is written to it."
        raise LakeletError("UNKNOWN_TABLE", f"{found.name} is a sink, whose rows are outside of the storage", todo=todo)
    return found


def unknown_table(name: str, registry: StorageRegistry) -> LakeletError:
    known = [d.name for d in registry.datasets.values()]
    nearest = nearest_names(name, [*known, EVENT_LOG, *event_views.NAMES])
    todo = None if nearest and known else "List all names: lakelet show" if known else "Nothing is stored there yet: lakelet run"
    return LakeletError("UNKNOWN_TABLE", f"the storage holds no table {name}", nearest=nearest, todo=todo)


def unwritten(name: str) -> LakeletError:
    """The error for a table that is known by name only."""
    return LakeletError("UNKNOWN_TABLE", f"{name} is known but was not written yet", todo="lakelet run")
