"""Facts about a flow's decision for its events: the backlog of a stream, the technique of a materialized view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakelet.plan.decisions import Decision, SourcePosition, Strategy
from lakelet.storage.eventlog.events import Reporter
from lakelet.storage.eventlog.states import EventType

NO_OP, RECOMPUTE = "MAINTENANCE_TYPE_NO_OP", "MAINTENANCE_TYPE_COMPLETE_RECOMPUTE"
PARTITION_OVERWRITE = "MAINTENANCE_TYPE_PARTITION_OVERWRITE"
"""The techniques that Lakelet has, in Databricks' words."""

_COUNTS = ("backlog_files", "backlog_bytes")


def backlog(sources: Sequence[SourcePosition], *, processed: bool = False) -> dict[str, Any]:
    """`metrics` of a `flow_progress` event: what waits in the sources that were looked at, nothing once it was `processed` (EL-14).

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


def emit_technique(reporter: Reporter, decision: Decision, *, dataset: str, flow: str) -> None:
    """Report whether a materialized view, or the part of a table that a flow replaces, is computed or left as it is, and why (EL-16)."""
    chosen = {Strategy.SKIP: NO_OP, Strategy.PARTITIONS: PARTITION_OVERWRITE}.get(decision.strategy, RECOMPUTE)
    techniques = [
        {"maintenance_type": one, "is_chosen": one == chosen, "is_applicable": one in (chosen, RECOMPUTE)}
        for one in (NO_OP, PARTITION_OVERWRITE, RECOMPUTE)
    ]
    body = {"technique_information": techniques, "reason": decision.reason}
    text = f"Flow '{flow}' has been planned to be executed as {chosen.removeprefix('MAINTENANCE_TYPE_')} because {decision.reason}."
    reporter.emit(EventType.PLANNING_INFORMATION, text, body, dataset=dataset, flow=flow)
