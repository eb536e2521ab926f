"""How far an update is: everything about it that changes while it runs, each change of a state with its event.

In: decisions and outcomes of flows. Out: `flow_progress` and `update_progress` events, with the backlog of a stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakelet.base.errors import ExpectationFailed, LakeletError
from lakelet.flows.environment import Environment
from lakelet.flows.planning_events import emit_technique, warn_of_full
from lakelet.plan.decisions import Decision, PlanStep, SourcePosition, Strategy, step_of
from lakelet.storage.eventlog.states import EventType, FlowState, Level, UpdateState
from lakelet.update.tasks import Task


class UpdateProgress:
    """State of an update and of its flows. `errors`: of flows that failed for good; `steps`: by flow, what was decided last."""

    def __init__(self, environment: Environment) -> None:
        self._datasets, self._reporter = environment.catalog.datasets, environment.reporter
        self._flows: dict[str, FlowState] = {}
        self.state = UpdateState.QUEUED
        self.errors: list[LakeletError] = []
        self.steps: dict[str, PlanStep] = {}

    @property
    def is_stopping(self) -> bool:
        return self.state is UpdateState.STOPPING

    def update_is(self, state: UpdateState, *, error: BaseException | None = None, again: str = "", cause: str | None = None) -> None:
        """`again`: when the update is tried again after this state, in words. `cause`: who stopped it (EL-9)."""
        self.state = state
        level = Level.INFO if state is not UpdateState.FAILED else Level.WARN if again else Level.ERROR
        body = {"state": state, **({"cancellation_cause": cause} if cause else {})}
        message = f"Update {self._reporter.update_id[:6]} is {state}{again}."
        self._reporter.emit(EventType.UPDATE_PROGRESS, message, body, level=level, error=error)

    def flow_is(
        self,
        task: Task,
        state: FlowState,
        message: str,
        *,
        level: Level = Level.INFO,
        error: BaseException | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """`more`: what the event says beside the state."""
        self._flows[task.name] = state
        body, dataset = {"status": state, **(more or {})}, str(self._datasets[task.target].name)
        self._reporter.emit(EventType.FLOW_PROGRESS, message, body, dataset=dataset, flow=task.name, level=level, error=error)

    def flow_is_idle(self, task: Task, decision: Decision) -> None:
        """Report that a flow has nothing to do."""
        self.flow_is(task, FlowState.IDLE, f"Flow '{task.name}' is IDLE: {decision.reason}.", more=backlog(decision.sources))

    def commit_completed(self, task: Task) -> None:
        """A flow has completed; the event of its commit has said so, with its numbers (EL-7)."""
        self._flows[task.name] = FlowState.COMPLETED

    def flow_stopped(self, task: Task) -> None:
        self.flow_is(task, FlowState.STOPPED, f"Flow '{task.name}' was STOPPED.")

    def flow_failed(self, task: Task, problem: LakeletError) -> None:
        """A flow failed and is not tried again. What rules counted in the batch that failed is in the event (EP-8)."""
        self.errors.append(problem)
        judged = problem.data_quality if isinstance(problem, ExpectationFailed) else None
        more = {"data_quality": judged} if judged else None
        self.flow_is(task, FlowState.FAILED, f"Flow '{task.name}' has FAILED: {problem.what}", level=Level.ERROR, error=problem, more=more)

    def flow_skipped(self, task: Task, roots: tuple[str, ...]) -> None:
        """A flow lies below failed ones. Also for a flow whose analysis failed because of them."""
        self.flow_is(task, FlowState.SKIPPED, f"Flow '{task.name}' was SKIPPED because {', '.join(roots)} failed.", level=Level.WARN)

    def flow_has_ended(self, task: Task) -> bool:
        return self._flows.get(task.name, FlowState.QUEUED).has_ended

    def flow_has_succeeded(self, task: Task) -> bool:
        """Whether a flow completed, or had nothing to do."""
        return self._flows.get(task.name) in (FlowState.COMPLETED, FlowState.IDLE)

    def decided(self, task: Task, decision: Decision) -> None:
        inputs = tuple(str(self._datasets[i].name) for i in task.inputs)
        target = str(self._datasets[task.target].name)
        if task.strategy is not Strategy.STREAM and decision.strategy is not Strategy.EXCLUDED:
            dataset = self._datasets[task.target]
            emit_technique(self._reporter, decision, dataset=target, flow=task.name, names=dict(zip(task.inputs, inputs, strict=True)))
            warn_of_full(self._reporter, decision, dataset.refresh_policy, dataset=target, flow=task.name)
        self.steps[task.name] = step_of(decision, target, task.dataset_kind, task.name, inputs, task.transforms)


_COUNTS = ("backlog_files", "backlog_bytes")


def backlog(sources: Sequence[SourcePosition], *, processed: bool = False) -> dict[str, Any]:
    """`metrics` of a `flow_progress` event: what is pending in the sources that were listed, nothing once it was `processed` (EL-14).

    The sum of all sources is left out where one of them is not known.
    """
    found = [(source.source, _of_source(source, processed)) for source in sources if source.files is not None]
    if not found:
        return {}
    known = [name for name in _COUNTS if len(found) == len(sources) and all(name in counts for _, counts in found)]
    sums = {name: sum(counts[name] for _, counts in found) for name in known}
    return {"metrics": {**sums, "source_metrics": [{"source_name": name, **counts} for name, counts in found]}}


def _of_source(source: SourcePosition, processed: bool) -> dict[str, int]:
    counts = dict(zip(_COUNTS, (source.files, source.bytes), strict=True))
    return {name: 0 if processed else count for name, count in counts.items() if count is not None}
