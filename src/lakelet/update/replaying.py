"""An update that runs no flow: it gives held rows of one dataset back to it (QU-20 ff)."""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.base.errors import LakeletError
from lakelet.flows.replays import Replayed, check_replay, replay
from lakelet.language.model import Kind
from lakelet.storage.eventlog.states import FlowState, UpdateState
from lakelet.storage.eventlog.writer import EventWriter
from lakelet.update.opened import OpenedPipeline
from lakelet.update.tasks import FlowTask, Task, flow_tasks
from lakelet.update.update import Update


class Replay(Update):
    """Replays the quarantine of the dataset that is selected. `found`: what it did.

    Raises QUARANTINE_REPLAY for a dataset whose rows cannot be replayed, before anything is written.
    """

    def __init__(self, opened: OpenedPipeline, events: EventWriter) -> None:
        super().__init__(opened, events)
        self.found: Replayed | None = None
        self._task = _flow_of(opened)
        check_replay(self._task)

    def _flows(self, everything: Sequence[Task]) -> UpdateState:
        """Replay as one flow of the dataset; its other flows have nothing to do."""
        progress, task = self._progress, self._task
        progress.flow_is(task, FlowState.RUNNING, f"Flow '{task.name}' is RUNNING: held rows are judged again.")
        try:
            self.found = replay(task)
        except LakeletError as problem:
            progress.flow_failed(task, problem)
            return UpdateState.FAILED
        summary = f"{self.found.released} of {self.found.judged} held row(s) were released"
        progress.flow_is(task, FlowState.COMPLETED, f"Flow '{task.name}' has COMPLETED: {summary}.")
        for other in everything:
            if self._opened.selects(other) and other.name != task.name:
                progress.flow_is(other, FlowState.IDLE, f"Flow '{other.name}' is IDLE: a replay reads no source.")
        return UpdateState.COMPLETED


def _flow_of(opened: OpenedPipeline) -> FlowTask:
    """The dataset's default flow, or its first one."""
    (key,) = opened.selection.refresh
    tasks = flow_tasks(opened.analysis, opened.environment)
    found = [task for task in tasks if task.target == key and isinstance(task, FlowTask)]
    if not found or found[0].dataset_kind is Kind.SINK:
        dataset = opened.environment.catalog.datasets[key]
        failure = opened.analysis.failures.get(key)
        raise failure or LakeletError("QUARANTINE_REPLAY", "it stores no rows of its own", dataset=str(dataset.name), where=dataset.where)
    return next((task for task in found if task.declared.default), found[0])


__all__ = ["Replay"]
