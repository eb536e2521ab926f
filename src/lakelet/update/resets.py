"""Effects of a reset on the registry: tables begin again, or flows read their sources again (RE-4, RE-6).

Both are numbers in the paths of checkpoints and source states, written at once for all. A table gets its new epoch, and loses its old rows,
in the first commit after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lakelet.analysis.analyzed import AnalyzedDataset, AnalyzedFlow, UnanalyzedDataset
from lakelet.base.errors import DefinitionErrors, LakeletError
from lakelet.files.paths import AnyPath
from lakelet.flows.context import FlowTask
from lakelet.flows.environment import Environment
from lakelet.flows.positions import read_checkpoint
from lakelet.flows.target_kind import remade
from lakelet.plan.selection import Selection
from lakelet.storage.root import Registry


def with_resets(
    registry: Registry, selection: Selection, *, root: AnyPath, analyzed: Mapping[str, AnalyzedDataset | UnanalyzedDataset]
) -> Registry:
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
