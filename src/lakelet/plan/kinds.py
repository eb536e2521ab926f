"""Kinds of flows, as values: how the rows of a flow get into its target, and what follows from that. No Spark.

In: a declared flow, and what its analysed query is. Out: its kind, which analysis keeps with the flow (`kind_of` alone tells kinds apart).
`lakelet.flows.kinds` has for each kind how it is decided and run; the table is in docs/decisions/0088-kinds-of-flows.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from lakelet.language.model import Flow
from lakelet.plan.decisions import Strategy


@dataclass(frozen=True)
class FlowKind:
    """One kind of flows.

    Attributes:
        name: of the kind, in lower case.
        streams: its query is a stream with a checkpoint; else it is a batch.
        strategy: how it is run when there is something to do.
        whole: each run, or micro-batch, replaces all rows of the table.
        changes: its rows are change events, which an internal log beside the table keeps.
        commit_completes: its one commit is also what says that it has COMPLETED (EL-7).
    """

    name: str
    streams: bool = True
    strategy: Strategy = Strategy.STREAM
    whole: bool = False
    changes: bool = False
    commit_completes: bool = False

    @property
    def adds_again(self) -> bool:
        """Whether rows that are read a second time come a second time."""
        return not (self.whole or self.changes)


APPEND = FlowKind("append")
COMPLETE = FlowKind("complete", whole=True)
VIEW = FlowKind("view", streams=False, strategy=Strategy.FULL, whole=True, commit_completes=True)
ONCE = FlowKind("once", streams=False)
CHANGE = FlowKind("change", changes=True)
CHANGE_ONCE = FlowKind("change, once", streams=False, changes=True)
CHANGE_STREAM_ONCE = FlowKind("change, once, of a stream", changes=True)
SNAPSHOT = FlowKind("snapshot", streams=False, changes=True)
REPLACE_KEYS = FlowKind("replace using")
REPLACE_PART = FlowKind("replace where", streams=False, strategy=Strategy.REPLACE)
SINK = FlowKind("sink")
SINK_UPDATES = FlowKind("sink, updates")
SINK_ONCE = FlowKind("sink, once", streams=False)

KINDS = (
    *(APPEND, COMPLETE, VIEW, ONCE, CHANGE, CHANGE_ONCE, CHANGE_STREAM_ONCE, SNAPSHOT),
    *(REPLACE_KEYS, REPLACE_PART, SINK, SINK_UPDATES, SINK_ONCE),
)
"""All kinds."""


def kind_of(flow: Flow, *, to_sink: bool, streams: bool, complete: bool = False) -> FlowKind:
    """The kind of a flow. `streams`: its query is a stream; `complete`: one whose whole result replaces the table."""
    if flow.changes is not None:
        if flow.changes.snapshots is not None:
            return SNAPSHOT
        once = CHANGE_STREAM_ONCE if streams else CHANGE_ONCE
        return once if flow.changes.once else CHANGE
    if to_sink:
        return SINK_ONCE if flow.once else SINK_UPDATES if flow.update else SINK
    if flow.once:
        return ONCE
    if flow.replaces is not None:
        return REPLACE_KEYS if flow.replaces.streams else REPLACE_PART
    if not streams:
        return VIEW
    return COMPLETE if complete else APPEND


__all__ = ["KINDS", "FlowKind", "kind_of"]
