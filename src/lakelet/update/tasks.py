"""The flows of an update as tasks, in their order; and the plan: what is done for each and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakelet.analysis.results import Analysis, AnalyzedDataset
from lakelet.base.errors import LakeletError
from lakelet.flows import kinds, once
from lakelet.flows.context import FlowTask
from lakelet.flows.environment import Environment
from lakelet.flows.views.deciding import expected_refresh
from lakelet.language.model import Kind
from lakelet.plan.decisions import Decision, Plan, Strategy, ViewFacts, step_of, strategy_of
from lakelet.plan.graph import GraphNode
from lakelet.plan.selection import Selection


@dataclass(frozen=True)
class UnanalyzedTask:
    """A stored dataset that could not be analysed: its flows are known when its turn has come (decision 19).

    `inputs`: keys of the stored datasets that it is known to read.
    """

    node: GraphNode
    inputs: tuple[str, ...]

    @property
    def name(self) -> str:
        return str(self.node.name)

    @property
    def target(self) -> str:
        return self.node.name.key

    @property
    def dataset_kind(self) -> Kind:
        return self.node.kind

    @property
    def strategy(self) -> Strategy:
        return Strategy.FULL if self.node.kind is Kind.MATERIALIZED_VIEW else Strategy.STREAM

    @property
    def transforms(self) -> tuple[str, ...]:
        return ()


Task = FlowTask | UnanalyzedTask


def flow_tasks(analysis: Analysis, environment: Environment) -> list[Task]:
    """Every flow into a stored dataset, inputs first. A dataset that could not be analysed has one entry."""
    found: list[Task] = []
    for node in analysis.graph.nodes:
        if node.kind is Kind.VIEW:
            continue
        key = node.name.key
        result = analysis.results[key]
        if isinstance(result, AnalyzedDataset):
            found += [FlowTask(environment, result, flow) for flow in result.flows]
        else:
            found.append(UnanalyzedTask(node, tuple(i for i in analysis.graph.stored_inputs(key) if i != key)))
    return found


def decide(task: Task) -> Decision:
    """The decision for one task by the current facts. Nothing is written."""
    if isinstance(task, UnanalyzedTask):
        return Decision(task.strategy, "it failed when it was analysed")
    return kinds.decide(task)


def planned(environment: Environment, everything: Sequence[Task], selection: Selection) -> Plan:
    """The plan as far as it is known before anything runs: what changes above a flow gives it something to do."""
    busy: set[str] = set()
    names = {task.target: str(environment.catalog.datasets[task.target].name) for task in everything}
    steps = []
    for task in everything:
        if task.target not in selection.refresh:
            decision = Decision(Strategy.EXCLUDED, "it was not selected")
        elif task.name in selection.checkpoints:
            decision = Decision(Strategy.STREAM, "its checkpoint is to be cleared")
        elif task.target in selection.reset:
            decision = Decision(task.strategy, "full refresh was asked for")
        else:
            decision = _decided(task)
            above = [i for i in task.inputs if i in busy]
            if decision.strategy is Strategy.SKIP and above and decision != once.DONE:
                decision = _expected(task, above, f"{', '.join(names[i] for i in above[:3])} will be updated first")
        if decision.strategy not in (Strategy.SKIP, Strategy.EXCLUDED):
            busy.add(task.target)
        inputs = tuple(names[i] for i in task.inputs)
        step = step_of(decision, names[task.target], task.dataset_kind, task.name, inputs, task.transforms)
        steps.append(replace(step, view=_view_facts(task)))
    return Plan(tuple(steps))


def _decided(task: Task) -> Decision:
    """The decision for one task; of a view that its policy lets fail, that it fails."""
    try:
        return decide(task)
    except LakeletError as problem:
        if problem.code != "REFRESH_WOULD_BE_FULL":
            raise
        return Decision(task.strategy, f"the update fails it: {problem.what} {problem.why}")


def _expected(task: Task, above: Sequence[str], reason: str) -> Decision:
    """What will be done for a flow whose inputs change before its turn; of a view how, if they only get a few rows."""
    refresh = expected_refresh(task, above) if isinstance(task, FlowTask) and task.dataset_kind is Kind.MATERIALIZED_VIEW else None
    return Decision(task.strategy if refresh is None else strategy_of(refresh), reason, refresh=refresh)


def _view_facts(task: Task) -> ViewFacts | None:
    if isinstance(task, UnanalyzedTask) or task.dataset_kind is not Kind.MATERIALIZED_VIEW:
        return None
    return ViewFacts(task.dataset.refresh_policy, tuple(task.analyzed.schema.names), task.flow.batch.shape)


__all__ = ["FlowTask", "Task", "UnanalyzedTask", "decide", "flow_tasks", "planned"]
