"""Measurements of a flow, and their events. No Spark calls.

`BatchMetrics` are kept in the commit of the batch. The ids of the events follow from what they report, so an event that the
update did not get to write is written by the next one (`repair`), and one that it did write is recognised.
"""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass, field
from typing import Any

from lakelet.autoloader.spec import SchemaChange
from lakelet.storage.delta.batch_metrics import BatchMetrics, SourceRecords
from lakelet.storage.eventlog.reporter import Reporter
from lakelet.storage.eventlog.states import EventType, FlowState, Level


@dataclass
class Totals:
    """Sums over the commits of one flow and update."""

    rows: int = 0
    dropped: int = 0
    late: int = 0
    sources: dict[str, SourceRecords] = field(default_factory=dict)

    def clear(self) -> None:
        """Begin again, for the next round of a query that stays."""
        self.rows = self.dropped = self.late = 0
        self.sources.clear()

    def add(self, metrics: BatchMetrics) -> None:
        self.rows += metrics.rows
        self.dropped += metrics.dropped
        self.late += metrics.late
        for found in metrics.sources:
            self.sources[found.source] = self.sources.get(found.source, SourceRecords(found.source)).plus(found)


def event_id(*parts: object) -> str:
    """The id of the event about just this."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "|".join(str(p) for p in parts)))


def emit_batch(reporter: Reporter, found: BatchMetrics, *, failed: bool = False) -> None:
    """The event of one commit: COMPLETED of a materialized view, which has one, and RUNNING of any other flow (EL-7).

    Change flows report upserted and deleted rows, never num_output_rows. `failed`: the flow has been told as FAILED already.
    """
    completes = found.view is not None and not failed
    metrics: dict[str, Any] = {"num_output_rows": found.rows}
    if found.changed is not None:
        changed = found.changed.upserted + found.changed.deleted
        metrics = {"num_upserted_rows": found.changed.upserted, "num_deleted_rows": found.changed.deleted}
        metrics["rewritten_rows_per_changed_row"] = round(found.changed.rewritten / changed, 3) if changed else 0.0
    metrics |= {} if found.bytes is None else {"num_output_bytes": found.bytes}
    body: dict[str, Any] = {"status": FlowState.COMPLETED if completes else FlowState.RUNNING, "metrics": metrics}
    if found.expectations:
        quality: dict[str, Any] = {"dropped_records": found.dropped}
        quality |= {} if found.quarantined is None else {"quarantined_records": found.quarantined}
        quality |= {} if found.released is None else {"released_records": found.released}
        body["data_quality"] = {**quality, "expectations": [asdict(rule) for rule in found.expectations]}
    if found.late:
        body["metrics"]["num_rows_dropped_by_watermark"] = found.late
    reporter.emit(
        EventType.FLOW_PROGRESS,
        f"Flow '{found.flow}' has COMPLETED." if completes else f"Flow '{found.flow}' is RUNNING: {found.rows} row(s) written.",
        body,
        dataset=found.dataset,
        flow=found.flow,
        id=found.event_id,
        batch_id=found.batch_id,
    )


def emit_warnings(reporter: Reporter, totals: Totals, *, dataset: str, flow: str) -> None:
    """Report records that did not fit and rows that came too late."""
    for source, found in totals.sources.items():
        if found.is_worth_telling:
            unit = found.unit or "line"
            reporter.emit(
                EventType.SOURCE_RECORDS,
                f"Flow '{flow}': {found.corrupt} broken and {found.rescued} partly rescued record(s) of {source}"
                f"{f', of which {found.left_out} left out' if found.left_out else ''}"
                f"{f', and {found.passed_over} with unread text after the JSON value' if found.passed_over else ''}; "
                f"the first in {found.first_file}{f', {unit} {found.first_line}' if found.first_line else ''}."
                f"{f' {found.undecodable} with bytes that are not of the encoding: {found.reason}.' if found.reason else ''}",
                {"flow_name": flow, **asdict(found)},
                dataset=dataset,
                flow=flow,
                level=Level.WARN,
                id=event_id(reporter.update_id, flow, EventType.SOURCE_RECORDS, source),
            )
    if totals.late:
        reporter.emit(
            EventType.LATE_RECORDS,
            f"Flow '{flow}': {totals.late} row(s) came later than the watermark allows and were left out.",
            {"flow_name": flow, "dropped_by_watermark": totals.late},
            dataset=dataset,
            flow=flow,
            level=Level.WARN,
            id=event_id(reporter.update_id, flow, EventType.LATE_RECORDS),
        )


def emit_change(reporter: Reporter, change: SchemaChange, *, dataset: str, flow: str, id: str) -> None:
    """Emit a new version of a source's schema."""
    added = ", ".join(f"{name} {kind}" for name, kind in change.added)
    wider = ", ".join(f"{name} {after} (was {before})" for name, before, after in change.widened)
    changes = [f"new columns: {added}"] * bool(added) + [f"wider types: {wider}"] * bool(wider)
    reporter.emit(
        EventType.SCHEMA_CHANGE,
        f"Flow '{flow}' has, from {change.first_file or f'the texts of {change.source}'}, {'; '.join(changes)}.",
        {
            "flow_name": flow,
            "source": change.source,
            "schema_version_before": change.version_before,
            "schema_version_after": change.version_after,
            "added": [{"name": name, "type": kind} for name, kind in change.added],
            "widened": [{"name": name, "from": before, "to": after} for name, before, after in change.widened],
            "first_file": change.first_file,
        },
        dataset=dataset,
        flow=flow,
        level=Level.WARN,
        id=id,
    )
