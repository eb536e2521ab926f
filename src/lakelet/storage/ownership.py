"""Which pipeline owns each table of a storage: decisions about the registry. No Spark.

A table belongs to one pipeline: the first one that defines it. Sinks belong to nobody: several pipelines may write to one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.config.pipeline_identity import PipelineIdentity
from lakelet.language.model import Dataset, Kind
from lakelet.storage.root import StorageRegistry, StoredDataset


@dataclass(frozen=True)
class Owner:
    """The pipeline at work. `id` is its id in the registry and the event log; `ids`: all under which it is recorded.

    `partial`: only some of its sources are loaded, so what they do not define may be defined by the others.
    """

    id: str
    ids: frozenset[str]
    identity: PipelineIdentity
    partial: bool = False

    def owns(self, stored: StoredDataset) -> bool:
        """Whether a stored dataset is this pipeline's, or nobody's yet."""
        return stored.owner is None or stored.owner in self.ids


def recognised(
    registry: StorageRegistry, now: PipelineIdentity, new_id: str, take_over: Sequence[str] = (), *, partial: bool = False
) -> Owner:
    """Find the pipeline among those that the registry knows; a new one gets the id `new_id`, or another if that one is taken.

    `take_over`: names of pipelines whose tables this one takes over. Raises USAGE for a name that no other pipeline has.
    """
    same = [key for key, recorded in registry.pipelines.items() if recorded.is_same(now)]
    others = {key: recorded for key, recorded in registry.pipelines.items() if key not in same}
    formerly = {name for key in same for name in registry.pipelines[key].formerly}
    taken: list[str] = []
    for name in take_over:
        found = [key for key, recorded in others.items() if recorded.name == name]
        if not found and name not in {*formerly, *(registry.pipelines[key].name for key in same)}:
            raise _nothing_to_take(name, [recorded.name for recorded in others.values()])
        taken += found
    id = same[0] if same else new_id if new_id not in registry.pipelines else str(uuid.uuid5(uuid.UUID(new_id), now.root + str(now)))
    names = tuple(sorted({*formerly, *(registry.pipelines[key].name for key in taken)}))
    part = bool(same) and all(now.is_part_of(registry.pipelines[key]) for key in same)
    return Owner(id, frozenset({id, *same, *taken}), replace(now, formerly=names), partial or part)


def _nothing_to_take(name: str, known: Sequence[str]) -> LakeletError:
    todo = f"Other pipelines here: {', '.join(sorted(set(known)))}" if known else "No other pipeline has a table there."
    what = f"--take-over {name}: no other pipeline of that name has tables in the storage"
    return LakeletError("USAGE", what, todo=todo, nearest=nearest_names(name, known))


def refused(registry: StorageRegistry, owner: Owner, datasets: Iterable[Dataset]) -> list[LakeletError]:
    """An error for each dataset whose name, or whose quarantine's, is that of another table: another pipeline's, or a quarantine."""
    errors = []
    for dataset in datasets:
        stored = registry.datasets.get(dataset.name.key)
        if (taken := _name_taken_error(registry, dataset, stored)) is not None:
            errors.append(taken)
            continue
        stays = dataset.kind in (Kind.SINK, Kind.VIEW) or stored is None or stored.kind is Kind.SINK
        if not stays and stored is not None and not owner.owns(stored):
            errors.append(_owned_by_other_error(stored, registry.pipelines.get(stored.owner or ""), owner.identity, dataset))
    return errors


def _name_taken_error(registry: StorageRegistry, dataset: Dataset, stored: StoredDataset | None) -> LakeletError | None:
    """The error for a dataset with the name of a quarantine that is stored, or whose quarantine has the name of another stored table."""
    name, where = str(dataset.name), dataset.where
    if stored is not None and stored.quarantine_of is not None and dataset.kind not in (Kind.SINK, Kind.VIEW):
        what = f"the storage has the quarantine of {stored.quarantine_of} under this name"
        return LakeletError("QUARANTINE_REFUSED", what, dataset=name, where=where, todo="Give the dataset another name.")
    found = registry.datasets.get(dataset.quarantine.key) if dataset.keeps_dropped else None
    if found is None or found.kind is Kind.SINK or (found.quarantine_of or "").lower() == dataset.name.key:
        return None
    what = f"its quarantine would be called {dataset.quarantine}, and the storage has another table of that name"
    todo = "Rename the dataset, or use another storage: --storage"
    return LakeletError("QUARANTINE_REFUSED", what, dataset=name, where=where, todo=todo)


def _owned_by_other_error(stored: StoredDataset, other: PipelineIdentity | None, mine: PipelineIdentity, dataset: Dataset) -> LakeletError:
    name = other.name if other else "?"
    return LakeletError(
        "TABLE_OWNED",
        f"the table belongs to the pipeline {other or name}; this is the pipeline {mine}",
        where=dataset.where,
        dataset=stored.name,
        why="A table belongs to one pipeline: two would mix or drop each other's rows.",
        todo="Keep them apart by another --schema, --catalog or --storage.\n"
        f"If this is that pipeline under a new name, or is to have all of its tables: --take-over {name}",
    )


def claimed(registry: StorageRegistry, owner: Owner, defined: Iterable[str]) -> StorageRegistry:
    """The registry with `owner` recorded, and with what is its own: what it had, what it takes over, what it is the first to define."""
    keys = frozenset(defined)
    recorded = owner.identity
    if owner.partial and owner.id in registry.pipelines:
        recorded = replace(registry.pipelines[owner.id], formerly=recorded.formerly)
    pipelines = {key: known for key, known in registry.pipelines.items() if key not in owner.ids}

    def mine(key: str, stored: StoredDataset) -> bool:
        return stored.owner in owner.ids or (stored.owner is None and key in keys)

    datasets = {key: replace(d, owner=owner.id) if mine(key, d) else d for key, d in registry.datasets.items()}
    return replace(registry, pipeline_id=owner.id, pipelines={**pipelines, owner.id: recorded}, datasets=datasets)
