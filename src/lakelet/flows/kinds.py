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


@dataclass(frozen=True)
class Execution:
    """What is done for one kind. `decide`: whether there is something to do now, and why; `run`: does it, raises what it fails with."""

    decide: Callable[[FlowTask], Decision]
    run: Callable[[FlowTask], object]


EXECUTIONS: Mapping[FlowKind, Execution] = {
    kinds.APPEND: Execution(decide_stream, run_stream),
    kinds.COMPLETE: Execution(decide_stream, run_stream),
    kinds.CHANGE: Execution(decide_stream, run_stream),
    kinds.REPLACE_KEYS: Execution(decide_stream, run_stream),
    kinds.CHANGE_STREAM_ONCE: Execution(decide_once_stream, run_once_stream),
    kinds.CHANGE_ONCE: Execution(decide_snapshots, run_batches),
    kinds.SNAPSHOT: Execution(decide_snapshots, run_batches),
    kinds.VIEW: Execution(decide_view, run_view),
    kinds.REPLACE_PART: Execution(decide_part, run_part),
    kinds.ONCE: Execution(decide_once, run_once),
    kinds.SINK: Execution(decide_stream, run_sink),
    kinds.SINK_UPDATES: Execution(decide_stream, run_sink),
    kinds.SINK_ONCE: Execution(decide_sink_once, run_sink_once),
}


def decide(task: FlowTask) -> Decision:
    """The decision for one flow by the current facts. Nothing is written."""
    return EXECUTIONS[task.flow.kind].decide(task)


def bring_up_to_date(task: FlowTask) -> None:
    """Run one flow to its end. Raises what it fails with."""
    EXECUTIONS[task.flow.kind].run(task)


__all__ = ["EXECUTIONS", "Execution", "bring_up_to_date", "decide"]
