"""Change flows that run once and read a stream: what is there when they run is applied, and nothing that comes later (CD-13, CD-21).

All of it is one micro-batch, so the commit of that batch decides that the flow has run. The marker file beside the checkpoint records it
for later updates. A stream with a watermark needs further batches to emit the rows that it holds back: there the marker alone decides.
"""

from __future__ import annotations

from lakelet.base.failpoints import reached
from lakelet.flows import append, once
from lakelet.flows.attempts import has_batch
from lakelet.flows.context import FlowTask
from lakelet.flows.metrics import Totals
from lakelet.flows.once_markers import has_run, read_marker, write_marker
from lakelet.flows.positions import read_checkpoint
from lakelet.flows.source_cleanup import clean_sources
from lakelet.plan.decisions import Decision
from lakelet.spark.session_clones import flow_session

_ONE_BATCH = "one_batch"  # in the marker file: the flow was started in this way, and its first batch is all of it


def decide_once_stream(task: FlowTask) -> Decision:
    """Whether the flow has something to do: until it has run."""
    return once.DONE if has_run(task.environment.storage, task.declared) else once.NOT_YET


def run_once_stream(task: FlowTask) -> Totals:
    """Process everything that is there, one time. Raises LakeletError."""
    storage, flow = task.environment.storage, task.declared
    first = read_checkpoint(task.checkpoint()).planned < 0
    if first and not task.flow.stream.watermark:
        write_marker(storage, flow, done=False, **{_ONE_BATCH: True})
        reached("once.started")
    one_batch = bool(read_marker(storage, flow).get(_ONE_BATCH))  # not in the storage of a Lakelet that made several batches
    totals = _run(task, first=first) if one_batch else append.run_append(task)
    write_marker(storage, flow, done=True)
    return totals


def _run(task: FlowTask, *, first: bool) -> Totals:
    """Process everything that is there, unless a batch was committed before; a failed batch is repeated, with what came since."""
    state = read_checkpoint(task.checkpoint())
    if state.completed < 0:
        with flow_session(task.environment.spark, task.conf) as spark:
            committed = state.unfinished and has_batch(task, spark, state.planned)
        return append.run_append(task, one_batch=first or committed)
    with flow_session(task.environment.spark, task.conf) as spark:
        _, _, shape = append.opened(task, spark, state)
    totals = Totals()
    append.finish(task, totals, shape)
    clean_sources(task)
    return totals
