"""Inactive tables: those of datasets that the code no longer defines. They stay readable (RE-8).

`pipelines.dropInactiveTables=true` in the pipeline's configuration drops them in the next update. The process may die during a drop: the
registry entry first gets a newer reset epoch, so that no remaining file counts, and is removed last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from lakelet.base.names import TableName, split_name
from lakelet.config import properties
from lakelet.files.paths import remove_tree
from lakelet.language.model import Kind
from lakelet.plan.graph import Graph
from lakelet.storage.eventlog.states import Level
from lakelet.storage.root import Registry, Storage, StoredDataset


@dataclass(frozen=True)
class Activity:
    """Entries of the registry by activity.

    `datasets`: all entries, with `active` as it is now. `ceased`, `back`: full names of those that became inactive or active. `drop`: keys.
    """

    datasets: dict[str, StoredDataset]
    ceased: tuple[str, ...]
    back: tuple[str, ...]
    drop: tuple[str, ...]


def compare_activity(
    stored: Mapping[str, StoredDataset],
    graph: Graph,
    parameters: Mapping[str, str],
    *,
    owner: str | None = None,
    partial: bool = False,
    quarantines: frozenset[str] = frozenset(),
) -> Activity:
    """Compare the stored datasets with the defined ones.

    A table that a query still reads by its name is not dropped, nor is what a sink wrote. Entries of other pipelines than `owner` do not
    change. `partial`: only some of the sources were loaded, so entries that these do not define do not change either.
    `quarantines`: keys of those that rows are kept in; one that was switched off is dropped with its dataset only.
    """
    datasets = {node.name.key for node in graph.nodes if node.kind is not Kind.VIEW}
    kept = {key for key, d in stored.items() if d.quarantine_of is not None and d.quarantine_of.lower() in datasets}
    defined = datasets | quarantines
    read = {name.lower() for node in graph.nodes for name in node.external}
    dropping = properties.switch(properties.look_up(parameters, properties.DROP_INACTIVE) or "false")
    own = {key: d for key, d in stored.items() if d.owner in (owner, None) and (key in defined or not partial)}
    return Activity(
        {**stored, **{key: replace(d, active=key in defined) for key, d in own.items()}},
        tuple(d.name for key, d in own.items() if d.active and key not in defined),
        tuple(d.name for key, d in own.items() if not d.active and key in defined),
        tuple(
            key for key, d in own.items() if dropping and d.owner == owner and d.kind is not Kind.SINK and key not in defined | kept | read
        ),
    )


def activity_notices(found: Activity) -> Iterator[tuple[str, str, Level]]:
    """Yield (dataset, sentence, level) for each table that became inactive or active again, or is dropped."""
    dropped = {found.datasets[key].name for key in found.drop}
    for name in found.ceased:
        if name not in dropped:
            if found.datasets[name.lower()].quarantine_of is not None:
                yield name, f"{name}: no rows are kept there any more; it keeps those that it has, and can be read", Level.INFO
                continue
            text = "is no longer defined: it keeps its rows and can be read, and is not updated"
            yield name, f"{name} {text}; {properties.DROP_INACTIVE}=true in the configuration drops it", Level.WARN
    for name in found.back:
        yield name, f"{name} is defined again and goes on from where it stopped", Level.INFO
    for name in sorted(dropped):
        yield name, f"{name} is no longer defined and was dropped ({properties.DROP_INACTIVE}=true)", Level.WARN


def drop_inactive(storage: Storage, registry: Registry, keys: Iterable[str]) -> Registry:
    """Remove tables with their checkpoints and source state; return the registry without them, which is saved."""
    gone = {key: registry.datasets[key] for key in keys}
    if not gone:
        return registry
    reset = {key: replace(d, epoch=d.epoch + 1, columns=None, fingerprint=None, input_versions={}) for key, d in gone.items()}
    storage.save(replace(registry, datasets={**registry.datasets, **reset}))
    for dataset in gone.values():
        for folder in storage.flow_folders(TableName(*split_name(dataset.name))):
            remove_tree(folder)
        remove_tree(storage.root / dataset.path)
    kept = replace(registry, datasets={k: d for k, d in registry.datasets.items() if k not in gone})
    storage.save(kept)
    return kept


__all__ = ["Activity", "activity_notices", "compare_activity", "drop_inactive"]
