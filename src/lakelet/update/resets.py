"""Tables that begin again, and tables that nothing defines any more.

In: the registry, and what was asked for. Out: the registry after it. A reset makes tables begin again, or flows read their sources again
(RE-4, RE-6): both are numbers in the paths of checkpoints and source states, written at once for all. A table gets its new epoch, and
loses its old rows, in the first commit after it.

Inactive tables, which the code no longer defines, stay readable (RE-8). `pipelines.dropInactiveTables=true` in the pipeline's
configuration drops them in the next update. The process may die during a drop: the registry entry first gets a newer reset epoch, so that
no remaining file counts, and is removed last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from lakelet.analysis.results import AnalyzedDataset, AnalyzedFlow, UnanalyzedDataset
from lakelet.base.errors import DefinitionErrors, LakeletError
from lakelet.base.names import TableName, split_name
from lakelet.config import properties
from lakelet.files.paths import AnyPath, remove_tree
from lakelet.flows.checkpoints import read_checkpoint
from lakelet.flows.context import FlowTask
from lakelet.flows.environment import Environment
from lakelet.flows.target_table import remade
from lakelet.language.model import Kind
from lakelet.plan.graph import Graph
from lakelet.plan.selection import Selection
from lakelet.storage.eventlog.states import Level
from lakelet.storage.root import Storage, StorageRegistry, StoredDataset, flow_folders


def with_resets(
    registry: StorageRegistry, selection: Selection, *, root: AnyPath, analyzed: Mapping[str, AnalyzedDataset | UnanalyzedDataset]
) -> StorageRegistry:
    """The registry after the resets that were asked for. `analyzed`: the datasets as they are defined now; `root`: of the storage."""
    datasets, flows = dict(registry.datasets), dict(registry.flows)
    for key in sorted(selection.reset & datasets.keys()):
        stored = remade(root, datasets[key], analyzed[key], taken={d.path for d in datasets.values()})
        datasets[key] = replace(stored, epoch=stored.epoch + 1, columns=None, fingerprint=None, input_versions={}, version=None)
    for key, stored in list(datasets.items()):
        of = datasets.get((stored.quarantine_of or "").lower())
        if of is not None:  # its rows go with the first commit after the reset
            datasets[key] = replace(stored, epoch=of.epoch)
    found = {key: dataset.flows for key, dataset in analyzed.items() if isinstance(dataset, AnalyzedDataset)}
    targets = {flow.name.lower(): key for key, of in found.items() for flow in of}
    for flow in selection.checkpoints:
        known = registry.flow(targets.get(flow.lower(), ""), flow)
        flows[known.key] = replace(known, resets=known.resets + 1)
    return replace(registry, datasets=datasets, flows=flows)


def check_resets(selection: Selection, environment: Environment, analyzed: Mapping[str, AnalyzedDataset]) -> None:
    """Refuse to reset some of the tables that a flow streams from, which has one checkpoint for all its sources (UP-1).

    Tables that are replaced by each micro-batch, and change tables, hold the same after reading twice.
    Raises DefinitionErrors with a RESET_INCOMPLETE for each flow.
    """
    errors = []
    for dataset in analyzed.values() if selection.reset else ():
        for flow in dataset.flows:
            reset, others = _streamed(flow, selection)
            if not reset or not others or dataset.dataset.name.key in selection.reset or flow.name in selection.checkpoints:
                continue
            task = FlowTask(environment, dataset, flow)
            if flow.kind.adds_again and read_checkpoint(task.checkpoint()).planned >= 0:
                errors.append(_incomplete(task, [str(environment.catalog.datasets[key].name) for key in reset]))
    if errors:
        raise DefinitionErrors(errors)


def _streamed(flow: AnalyzedFlow, selection: Selection) -> tuple[list[str], bool]:
    """The tables that a flow streams from and that are reset, and whether it has other streaming sources."""
    leaves = [key for key, _ in flow.stream.leaves]
    reset = list(dict.fromkeys(key for key in leaves if key is not None and key in selection.reset))
    return reset, any(key not in reset for key in leaves)


def _incomplete(task: FlowTask, reset: list[str]) -> LakeletError:
    both = ",".join(dict.fromkeys([*reset, str(task.dataset.name)]))
    rebuild = "" if task.dataset.sink is not None else f"Rebuild both: lakelet run --full-refresh {both}\n"
    return LakeletError(
        "RESET_INCOMPLETE",
        f"{', '.join(reset)} cannot be reset alone: the flow {task.name} streams from more than that",
        dataset=str(task.dataset.name),
        where=task.declared.where,
        why="its sources share one checkpoint, so it would read the other ones again, too, and add their rows a second time",
        todo=f"{rebuild}To keep its rows and read all its sources again, rows come twice: add --reset-checkpoint {task.name}",
    )


@dataclass(frozen=True)
class Activity:
    """StorageRegistry entries by activity.

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
    `quarantines`: keys of those that rows are kept in; a quarantine that was switched off is dropped with its dataset only.
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


def drop_inactive(storage: Storage, registry: StorageRegistry, keys: Iterable[str]) -> StorageRegistry:
    """Remove tables with their checkpoints and source state; return the registry without them, which is saved."""
    gone = {key: registry.datasets[key] for key in keys}
    if not gone:
        return registry
    reset = {key: replace(d, epoch=d.epoch + 1, columns=None, fingerprint=None, input_versions={}) for key, d in gone.items()}
    storage.save(replace(registry, datasets={**registry.datasets, **reset}))
    for dataset in gone.values():
        for folder in flow_folders(TableName(*split_name(dataset.name))):
            remove_tree(storage.root / folder)
        remove_tree(storage.root / dataset.path)
    kept = replace(registry, datasets={k: d for k, d in registry.datasets.items() if k not in gone})
    storage.save(kept)
    return kept


__all__ = ["Activity", "activity_notices", "check_resets", "compare_activity", "drop_inactive", "with_resets"]
