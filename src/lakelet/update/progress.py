"""How far an update is: everything about it that changes while it runs, each change of a state with its event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakelet.base.errors import ExpectationFailed, LakeletError
from lakelet.flows.environment import Environment
from lakelet.language.model import Kind
from lakelet.plan.decisions import Decision, Step, Strategy
from lakelet.storage.eventlog.states import EventType, FlowState, Level, UpdateState
from lakelet.update.planning_events import backlog, emit_technique
from lakelet.update.tasks import FlowTask, computes_part


class UpdateProgress:
    """State of an update and of its flows. `errors`: of flows that failed for good; `steps`: by flow, what was decided last."""

    def __init__(self, environment: Environment) -> None:
        self._datasets, self._reporter = environment.catalog.datasets, environment.reporter
        self._flows: dict[str, FlowState] = {}
        self.state = UpdateState.QUEUED
        self.errors: list[LakeletError] = []
        self.steps: dict[str, Step] = {}

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
        task: FlowTask,
        state: FlowState,
        message: str,
        *,
        level: Level = Level.INFO,
        error: BaseException | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """`more`: what the event says beside the state."""
        self._flows[task.key] = state
        body, dataset = {"status": state, **(more or {})}, str(self._datasets[task.target].name)
        self._reporter.emit(EventType.FLOW_PROGRESS, message, body, dataset=dataset, flow=task.key, level=level, error=error)

    def flow_is_idle(self, task: FlowTask, decision: Decision) -> None:
        """Report that a flow has nothing to do."""
        self.flow_is(task, FlowState.IDLE, f"Flow '{task.key}' is IDLE: {decision.reason}.", more=backlog(decision.sources))

    def view_completed(self, task: FlowTask) -> None:
        """A materialized view is computed; the event of its commit has said so, with its numbers (EL-7)."""
        self._flows[task.key] = FlowState.COMPLETED

    def flow_stopped(self, task: FlowTask) -> None:
        self.flow_is(task, FlowState.STOPPED, f"Flow '{task.key}' was STOPPED.")

    def flow_failed(self, task: FlowTask, problem: LakeletError) -> None:
        """A flow failed and is not tried again. What rules counted in the batch that failed is in the event (EP-8)."""
        self.errors.append(problem)
        judged = problem.data_quality if isinstance(problem, ExpectationFailed) else None
        more = {"data_quality": judged} if judged else None
        self.flow_is(task, FlowState.FAILED, f"Flow '{task.key}' has FAILED: {problem.what}", level=Level.ERROR, error=problem, more=more)

    def flow_skipped(self, task: FlowTask, roots: tuple[str, ...]) -> None:
        """A flow lies below failed ones. Also for a flow whose analysis failed because of them."""
        self.flow_is(task, FlowState.SKIPPED, f"Flow '{task.key}' was SKIPPED because {', '.join(roots)} failed.", level=Level.WARN)

    def flow_has_ended(self, task: FlowTask) -> bool:
        return self._flows.get(task.key, FlowState.QUEUED).has_ended

    def decided(self, task: FlowTask, decision: Decision) -> None:
        inputs = tuple(str(self._datasets[i].name) for i in task.inputs)
        target = str(self._datasets[task.target].name)
        computed = task.kind is Kind.MATERIALIZED_VIEW or (task.flow is not None and computes_part(task.flow))
        if computed and decision.strategy is not Strategy.EXCLUDED:
            emit_technique(self._reporter, decision, dataset=target, flow=task.key)
        transforms = task.flow.transforms if task.flow is not None else ()
        self.steps[task.key] = Step(target, task.kind, task.key, decision.strategy, decision.reason, inputs, transforms)
