"""Change flows that run once and read a stream: they process what is there at their first update, and nothing after it (CD-13).

The checkpoint says how far such a flow has come, so that one that died goes on; the marker beside it, that it has run.
"""

from __future__ import annotations

from lakelet.flows import append, once
from lakelet.flows.context import FlowRun
from lakelet.flows.metrics import Totals
from lakelet.flows.once_markers import has_run, write_marker
from lakelet.plan.decisions import Decision


def decide_once_stream(run: FlowRun) -> Decision:
    """Whether the flow has something to do: until it has run."""
    return once.DONE if has_run(run.environment.storage, run.flow.flow) else once.NOT_YET


def run_once_stream(run: FlowRun) -> Totals:
    """Process everything that is there, one time. Raises LakeletError."""
    totals = append.run_append(run)
    write_marker(run.environment.storage, run.flow.flow, done=True)
    return totals
