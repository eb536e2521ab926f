"""A promoting update: what an environment has computed is taken over where it is what this update would compute, the rest is computed.

In: the opened pipeline over the main storage, and an environment. Out: an update of the datasets that the environment has written. A
dataset with the present definition, computed from the present versions of what it reads, is swapped in. Its flows go on from there, and
have nothing to do without new input.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lakelet.analysis.results import UnanalyzedDataset
from lakelet.cdc.counts import completed
from lakelet.files.delta_log import TableLog
from lakelet.flows.metrics import emit_batch
from lakelet.plan.decisions import Strategy
from lakelet.plan.selection import Selection
from lakelet.storage.delta.batch_metrics import KEY, BatchMetrics
from lakelet.storage.eventlog.states import FlowState, Level, UpdateState
from lakelet.storage.eventlog.writer import EventWriter
from lakelet.storage.promotion import is_there, promote, written_datasets
from lakelet.storage.recorded_definitions import load_definitions
from lakelet.storage.root import INTERNAL, Storage, StoredDataset
from lakelet.update.opened import OpenedPipeline
from lakelet.update.tasks import Task
from lakelet.update.update import Update


@dataclass(frozen=True)
class PromotedDataset:
    """What a promotion does with one dataset. `reason`: why it is computed; None where it is swapped in, or is there already."""

    name: str
    reason: str | None = None
    there: bool = False

    @property
    def action(self) -> str:
        return "computed" if self.reason else "there" if self.there else "swapped in"


def promoted_selection(opened: OpenedPipeline, environment: Storage) -> Selection:
    """The datasets of the pipeline that an environment has written; no other one takes part."""
    written = {(d.quarantine_of or d.name).lower() for d in written_datasets(environment)}
    return Selection(frozenset(written & opened.analysis.results.keys()) - opened.environment.catalog.sinks(), frozenset())


class Promotion(Update):
    """Promotes an environment. `found`: what it did with each dataset."""

    def __init__(self, opened: OpenedPipeline, events: EventWriter, environment: Storage) -> None:
        super().__init__(opened, events)
        self._over, self.found = environment, tuple[PromotedDataset, ...]()

    def _flows(self, everything: Sequence[Task]) -> UpdateState:
        opened = self._opened
        with self._over.lease(opened.id):
            self._over.reload()
            written = {d.name.lower(): d for d in written_datasets(self._over)}
            self.found = self._decided(written)
            chosen = {found.name.lower() for found in self.found if found.action == "swapped in"}
            swapped = [d for d in written.values() if (d.quarantine_of or d.name).lower() in chosen]
            measured = [metrics for stored in swapped for metrics in _measured(self._over, stored)]
            if swapped:
                promote(opened.storage, self._over, swapped, owner=opened.owner.id)
        for found in self.found:
            how = f"it is computed, because {found.reason}" if found.reason else f"it is {found.action}"
            text = f"{found.name} was computed in the environment {self._over.root.name}; {how}"
            opened.reporter.notice(text, dataset=found.name, level=Level.INFO)
        for metrics in measured:
            emit_batch(opened.reporter, metrics)
        state = super()._flows(everything)
        self._report_swapped(everything, chosen)
        return state

    def _report_swapped(self, everything: Sequence[Task], swapped: Collection[str]) -> None:
        """Report the flows as completed whose tables were swapped in, and which had nothing to do after that."""
        for task in everything:
            step = self._progress.steps.get(task.name)
            if task.target in swapped and step is not None and step.strategy is Strategy.SKIP:
                message = f"Flow '{task.name}' has COMPLETED: its table was swapped in from the environment {self._over.root.name}."
                self._progress.flow_is(task, FlowState.COMPLETED, message)

    def _decided(self, written: Mapping[str, StoredDataset]) -> tuple[PromotedDataset, ...]:
        """What is done with each dataset, those that are read before those that read them."""
        found: dict[str, PromotedDataset] = {}
        for node in self._opened.analysis.graph.nodes:
            key = node.name.key
            if key in self._opened.selection.refresh:
                name = str(node.name)
                if key not in written:
                    found[key] = PromotedDataset(name, "the environment has written its quarantine alone")
                elif is_there(self._opened.storage, self._over, written[key]):
                    found[key] = PromotedDataset(name, there=True)
                else:
                    found[key] = PromotedDataset(name, self._reason(key, written, found))
        return tuple(found.values())

    def _reason(self, key: str, written: Mapping[str, StoredDataset], found: Mapping[str, PromotedDataset]) -> str | None:
        """Why a dataset is computed; None for one that would be computed as it was in the environment."""
        opened, base = self._opened, self._over.base
        result = opened.analysis.results[key]
        if base is None or isinstance(result, UnanalyzedDataset):
            return "what it reads is not known before it runs"
        if load_definitions(self._over).get(key) != opened.definitions.get(key):
            return "its definition is not the one that the environment ran"
        own = [d.path for d in written.values() if key in (d.name.lower(), (d.quarantine_of or "").lower())]
        if any(map(base.has_moved, own)):
            return "the main storage has updated it since the environment began"
        catalog = opened.environment.catalog
        others = [name.lower() for name in opened.analysis.graph.by_key[key].external if name.lower() in catalog.other_tables]
        for source in (*result.inputs, *others):
            if source in found:
                if found[source].reason:
                    return f"{found[source].name}, which it reads, is computed"
            elif source in written:
                return f"{written[source].name}, which it reads, was written in the environment and is not defined now"
            else:
                stored = opened.storage.registry().datasets.get(source)
                if stored is None or base.has_moved(stored.path):
                    return f"{stored.name if stored else source}, which it reads, has another version in the main storage"
        return None


def _measured(environment: Storage, stored: StoredDataset) -> list[BatchMetrics]:
    """What was measured of the rows that the environment has committed to a table."""
    known = environment.base.versions.get(stored.path, {}) if environment.base else {}
    name = INTERNAL if TableLog(environment.root / stored.path / INTERNAL).version() >= 0 else ""
    log, found = TableLog(environment.root / stored.path / name), []
    for version in range(known.get(name, -1) + 1, log.version() + 1):
        commit = log.commit(version)
        facts = (commit.user_metadata or {}).get(KEY) if commit else None
        found += [BatchMetrics.from_json(completed(facts, log.actions(version)))] if facts else []
    return found


__all__ = ["PromotedDataset", "Promotion", "promoted_selection"]
