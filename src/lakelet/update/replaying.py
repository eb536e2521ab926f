"""An update that runs no flow: it gives held rows of one dataset back to it (QU-20 ff)."""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.base.errors import LakeletError
from lakelet.flows.context import FlowRun
from lakelet.flows.replays import Replayed, check_replay, replay
from lakelet.language.model import Kind
from lakelet.storage.eventlog.states import FlowState, UpdateState
from lakelet.storage.eventlog.writer import EventWriter
from lakelet.update.opened import OpenedPipeline
from lakelet.update.tasks import FlowTask, flow_tasks
from lakelet.update.update import Update


class Replay(Update):
    """Replays the quarantine of the dataset that is selected. `found`: what it did.

    Raises QUARANTINE_REPLAY for a dataset whose rows cannot be replayed, before anything is written.
    """

    def __init__(self, opened: OpenedPipeline, events: EventWriter) -> None:
        super().__init__(opened, events)
        self.found: Replayed | None = None
        self._task = _flow_of(opened)
        check_replay(_run(opened, self._task))

    def _flows(self, everything: Sequence[FlowTask]) -> UpdateState:
        """Replay as one flow of the dataset; its other flows have nothing to do."""
        progress, task = self._progress, self._task
        progress.flow_is(task, FlowState.RUNNING, f"Flow '{task.key}' is RUNNING: held rows are judged again.")
        try:
            self.found = replay(_run(self._opened, task))
        except LakeletError as problem:
            progress.flow_failed(task, problem)
            return UpdateState.FAILED
        summary = f"{self.found.released} of {self.found.judged} held row(s) were released"
        progress.flow_is(task, FlowState.COMPLETED, f"Flow '{task.key}' has COMPLETED: {summary}.")
        for other in everything:
            if self._opened.selects(other) and other.key != task.key:
                progress.flow_is(other, FlowState.IDLE, f"Flow '{other.key}' is IDLE: a replay reads no source.")
        return UpdateState.COMPLETED


def _flow_of(opened: OpenedPipeline) -> FlowTask:
    """The dataset's default flow, or its first one."""
    (key,) = opened.selection.refresh
    found = [w for w in flow_tasks(opened.analysis) if w.target == key and w.analyzed is not None and w.flow is not None]
    if not found or found[0].kind is Kind.SINK:
        dataset = opened.environment.catalog.datasets[key]
        failure = opened.analysis.failures.get(key)
        raise failure or LakeletError("QUARANTINE_REPLAY", "it stores no rows of its own", dataset=str(dataset.name), where=dataset.where)
    return next((w for w in found if w.flow is not None and w.flow.flow.default), found[0])


def _run(opened: OpenedPipeline, task: FlowTask) -> FlowRun:
    assert task.analyzed is not None
    assert task.flow is not None
    return FlowRun(opened.environment, task.analyzed, task.flow)


__all__ = ["Replay"]
