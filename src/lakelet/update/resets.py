"""Effects of a reset on the registry: tables begin again, or flows read their sources again (RE-4, RE-6).

Both are numbers in the paths of checkpoints and source states, written at once for all. A table gets its new epoch, and loses its old rows,
in the first commit after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lakelet.analysis.analyzed import AnalyzedDataset, AnalyzedFlow
from lakelet.base.errors import DefinitionErrors, LakeletError
from lakelet.files.paths import AnyPath
from lakelet.flows.context import FlowRun
from lakelet.flows.environment import Environment
from lakelet.flows.positions import read_checkpoint
from lakelet.flows.target_kind import remade
from lakelet.plan.selection import Selection
from lakelet.storage.root import Registry


def with_resets(registry: Registry, selection: Selection, *, root: AnyPath, analyzed: Mapping[str, AnalyzedDataset]) -> Registry:
    """The registry after the resets that were asked for. `analyzed`: the datasets as they are defined now; `root`: of the storage."""
    datasets, flows = dict(registry.datasets), dict(registry.flows)
    for key in sorted(selection.reset & datasets.keys()):
        stored = remade(root, datasets[key], analyzed.get(key), taken={d.path for d in datasets.values()})
        datasets[key] = replace(stored, epoch=stored.epoch + 1, columns=None, fingerprint=None, input_versions={}, version=None)
    for key, stored in list(datasets.items()):
        of = datasets.get((stored.quarantine_of or "").lower())
        if of is not None:  # its rows go with the first commit after the reset
            datasets[key] = replace(stored, epoch=of.epoch)
    targets = {flow.flow.name.lower(): key for key, dataset in analyzed.items() for flow in dataset.flows}
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
            if not reset or not others or dataset.dataset.name.key in selection.reset or flow.flow.name in selection.checkpoints:
                continue
            run = FlowRun(environment, dataset, flow)
            if not flow.complete and flow.flow.changes is None and read_checkpoint(run.checkpoint()).planned >= 0:
                errors.append(_incomplete(run, [str(environment.catalog.datasets[key].name) for key in reset]))
    if errors:
        raise DefinitionErrors(errors)


def _streamed(flow: AnalyzedFlow, selection: Selection) -> tuple[list[str], bool]:
    """The tables that a flow streams from and that are reset, and whether it has other streaming sources."""
    leaves = [key for key, _ in flow.stream.leaves] if flow.stream else []
    reset = list(dict.fromkeys(key for key in leaves if key is not None and key in selection.reset))
    return reset, any(key not in reset for key in leaves)


def _incomplete(run: FlowRun, reset: list[str]) -> LakeletError:
    both = ",".join(dict.fromkeys([*reset, str(run.dataset.name)]))
    rebuild = "" if run.dataset.sink is not None else f"Rebuild both: lakelet run --full-refresh {both}\n"
    return LakeletError(
        "RESET_INCOMPLETE",
        f"{', '.join(reset)} cannot be reset alone: the flow {run.name} streams from more than that",
        dataset=str(run.dataset.name),
        where=run.flow.flow.where,
        why="its sources share one checkpoint, so it would read the other ones again, too, and add their rows a second time",
        todo=f"{rebuild}To keep its rows and read all its sources again, rows come twice: add --reset-checkpoint {run.name}",
    )
