"""How flows of each kind are decided and run: one row for each kind of `lakelet.plan.kinds`.

In: a `FlowTask`, complete. Out of `decide`: a `Decision`, with nothing written; out of `bring_up_to_date`: commits, and their events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakelet.flows.context import FlowTask
from lakelet.flows.once import decide_once, decide_once_stream, run_once, run_once_stream
from lakelet.flows.replacing import decide_part, run_part
from lakelet.flows.sinks import decide_sink_once, run_sink, run_sink_once
from lakelet.flows.snapshots import decide_snapshots, run_batches
from lakelet.flows.stream_decisions import decide_stream
from lakelet.flows.streams import run_stream
from lakelet.flows.views import decide_view, run_view
from lakelet.plan import kinds
from lakelet.plan.decisions import Decision
from lakelet.plan.kinds import FlowKind
from lakelet.storage.eventlog.states import FlowType


@dataclass(frozen=True)
class Execution:
    """What is done for one kind, and what the event log calls it.

    Attributes:
        flow_type: the kind in the words of the event log (EL-6).
        decide: whether there is something to do now, and why.
        run: does it; raises what it fails with.
    """

    flow_type: FlowType
    decide: Callable[[FlowTask], Decision]
    run: Callable[[FlowTask], object]


EXECUTIONS: Mapping[FlowKind, Execution] = {
    kinds.APPEND: Execution(FlowType.APPEND, decide_stream, run_stream),
    kinds.COMPLETE: Execution(FlowType.COMPLETE, decide_stream, run_stream),
    kinds.CHANGE: Execution(FlowType.CHANGE, decide_stream, run_stream),
    kinds.REPLACE_KEYS: Execution(FlowType.REPLACE_USING, decide_stream, run_stream),
    kinds.CHANGE_STREAM_ONCE: Execution(FlowType.CHANGE, decide_once_stream, run_once_stream),
    kinds.CHANGE_ONCE: Execution(FlowType.CHANGE, decide_snapshots, run_batches),
    kinds.SNAPSHOT: Execution(FlowType.SNAPSHOT_CHANGE, decide_snapshots, run_batches),
    kinds.VIEW: Execution(FlowType.MATERIALIZED_VIEW, decide_view, run_view),
    kinds.REPLACE_PART: Execution(FlowType.REPLACE_WHERE, decide_part, run_part),
    kinds.ONCE: Execution(FlowType.APPEND, decide_once, run_once),
    kinds.SINK: Execution(FlowType.APPEND, decide_stream, run_sink),
    kinds.SINK_UPDATES: Execution(FlowType.UPDATE, decide_stream, run_sink),
    kinds.SINK_ONCE: Execution(FlowType.APPEND, decide_sink_once, run_sink_once),
}


def decide(task: FlowTask) -> Decision:
    """The decision for one flow by the current facts. Nothing is written."""
    return EXECUTIONS[task.flow.kind].decide(task)


def bring_up_to_date(task: FlowTask) -> None:
    """Run one flow to its end. Raises what it fails with."""
    EXECUTIONS[task.flow.kind].run(task)


__all__ = ["EXECUTIONS", "Execution", "bring_up_to_date", "decide"]
