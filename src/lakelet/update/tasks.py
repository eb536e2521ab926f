"""The flows of an update as tasks: their order, what is to be done for each and why, and how each is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakelet.analysis.analyzed import Analysis, AnalyzedDataset, AnalyzedFlow
from lakelet.flows import append, complete, once, once_streams, replaced_part, sinks, snapshots, stream_decisions
from lakelet.flows.context import FlowRun
from lakelet.flows.environment import Environment
from lakelet.language.model import Kind
from lakelet.plan.decisions import Decision, Plan, Step, Strategy
from lakelet.plan.selection import Selection


@dataclass(frozen=True)
class FlowTask:
    """One flow to bring up to date. `inputs`: keys of the stored datasets it reads."""

    key: str
    analyzed: AnalyzedDataset | None
    flow: AnalyzedFlow | None
    target: str
    kind: Kind
    inputs: tuple[str, ...]


def flow_tasks(analysis: Analysis) -> list[FlowTask]:
    """Every flow into a stored dataset, inputs first. A dataset that could not be analysed has one entry without a flow."""
    found = []
    for node in analysis.graph.nodes:
        if node.kind is Kind.VIEW:
            continue
        key = node.name.key
        inputs = tuple(i for i in analysis.graph.stored_inputs(key) if i != key)
        analyzed = analysis.datasets.get(key)
        if analyzed is None:
            found.append(FlowTask(str(node.name), None, None, key, node.kind, inputs))
            continue
        found += [FlowTask(f.flow.name, analyzed, f, key, analyzed.kind, inputs) for f in analyzed.flows]
    return found


def decide_flow(environment: Environment, task: FlowTask, *, remember: bool) -> Decision:
    """Return the decision for one flow by the current facts."""
    if task.analyzed is None or task.flow is None:
        return Decision(_strategy(task), "it failed when it was analysed")
    run = FlowRun(environment, task.analyzed, task.flow)
    if task.kind is Kind.MATERIALIZED_VIEW:
        return complete.decide_view(run, task.inputs)
    if task.kind is Kind.SINK:
        return sinks.decide_sink(run, environment.sources.of(run.name), remember=remember)
    if task.flow.flow.once:
        return once.decide_once(run)
    if computes_part(task.flow):
        return replaced_part.decide_part(run, task.inputs)
    if not task.flow.streaming:
        return snapshots.decide_snapshots(run)
    if task.flow.flow.changes is not None and task.flow.flow.changes.once:
        return once_streams.decide_once_stream(run)
    return stream_decisions.decide_stream(run, environment.sources.of(run.name), remember=remember)


def computes_part(flow: AnalyzedFlow) -> bool:
    """Whether each run of a flow computes the part of its table that a condition names."""
    return flow.flow.replaces is not None and not flow.flow.replaces.streams


def _strategy(task: FlowTask) -> Strategy:
    """How a flow is run when there is something to do."""
    if task.flow is not None and computes_part(task.flow):
        return Strategy.REPLACE
    return Strategy.FULL if task.kind is Kind.MATERIALIZED_VIEW else Strategy.STREAM


def planned(environment: Environment, everything: Sequence[FlowTask], selection: Selection) -> Plan:
    """The plan as far as it is known before anything runs: what changes above a flow gives it something to do."""
    busy: set[str] = set()
    names = {w.target: str(environment.catalog.datasets[w.target].name) for w in everything}
    steps = []
    for task in everything:
        if task.target not in selection.refresh:
            decision = Decision(Strategy.EXCLUDED, "it was not selected")
        elif task.key in selection.checkpoints:
            decision = Decision(Strategy.STREAM, "its checkpoint is to be cleared")
        elif task.target in selection.reset:
            decision = Decision(_strategy(task), "full refresh was asked for")
        else:
            decision = decide_flow(environment, task, remember=False)
            above = [names[i] for i in task.inputs if i in busy]
            if decision.strategy is Strategy.SKIP and above and decision != once.DONE:
                decision = Decision(_strategy(task), f"{', '.join(above[:3])} will be updated first")
        if decision.strategy in (Strategy.FULL, Strategy.PARTITIONS, Strategy.REPLACE, Strategy.STREAM):
            busy.add(task.target)
        inputs = tuple(names[i] for i in task.inputs)
        transforms = task.flow.transforms if task.flow is not None else ()
        steps.append(Step(names[task.target], task.kind, task.key, decision.strategy, decision.reason, inputs, transforms))
    return Plan(tuple(steps))


def bring_up_to_date(run: FlowRun, task: FlowTask) -> None:
    """Run one flow to its end. Raises what it fails with."""
    if task.kind is Kind.MATERIALIZED_VIEW:
        complete.run_complete(run, task.inputs)
    elif task.kind is Kind.SINK:
        sinks.run_sink(run)
    elif run.flow.flow.once:
        once.run_once(run)
    elif computes_part(run.flow):
        replaced_part.run_part(run, task.inputs)
    elif not run.flow.streaming:
        snapshots.run_batches(run)
    elif run.flow.flow.changes is not None and run.flow.flow.changes.once:
        once_streams.run_once_stream(run)
    else:
        append.run_append(run, alone=not task.inputs)
