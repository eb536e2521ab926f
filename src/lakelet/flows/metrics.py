"""What a flow measured, and how the event log reports it. No Spark calls.

`facts` are the counts of one commit, kept in its user metadata. The ids of the events follow from what they tell, so an event that the
update did not get to write is written by the next one (`repair`), and one that it did write is recognised.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakelet.autoloader.spec import SchemaChange
from lakelet.storage.eventlog.events import WARN


@dataclass
class Totals:
    """Sums over the commits of one flow and update."""

    rows: int = 0
    dropped: int = 0
    late: int = 0
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, facts: Mapping[str, Any]) -> None:
        self.rows += facts["rows"]
        self.dropped += facts["dropped"]
        self.late += facts["late"]
        for found in facts["sources"]:
            empty = {"records": 0, "rescued": 0, "corrupt": 0, "first_file": None, "first_line": None}
            total = self.sources.setdefault(found["source"], empty)
            for key in ("records", "rescued", "corrupt"):
                total[key] += int(found.get(key) or 0)
            if total["first_file"] is None:
                total["first_file"], total["first_line"] = found.get("first_file"), found.get("first_line")


def event_id(*parts: object) -> str:
    """The id of the event about just this."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "|".join(str(p) for p in parts)))


def emit_batch(emit: Any, facts: Mapping[str, Any]) -> None:
    """The RUNNING event of one commit. Change flows report upserted and deleted rows, never num_output_rows (EL-7)."""
    metrics: dict[str, Any] = {"num_output_rows": facts["rows"]}
    if "upserted" in facts:
        changed = facts["upserted"] + facts["deleted"]
        metrics = {"num_upserted_rows": facts["upserted"], "num_deleted_rows": facts["deleted"]}
        metrics["rewritten_rows_per_changed_row"] = round(facts["rewritten"] / changed, 3) if changed else 0.0
    body: dict[str, Any] = {"status": "RUNNING", "metrics": metrics}
    if facts["expectations"]:
        body["data_quality"] = {"dropped_records": facts["dropped"], "expectations": facts["expectations"]}
    if facts["late"]:
        body["metrics"]["num_rows_dropped_by_watermark"] = facts["late"]
    emit(
        "flow_progress",
        f"Flow '{facts['flow']}' is RUNNING: {facts['rows']} row(s) written.",
        body,
        dataset=facts["dataset"],
        flow=facts["flow"],
        id=facts["event_id"],
        batch_id=facts["batch_id"],
    )


def emit_warnings(emit: Any, totals: Totals, *, update_id: str, dataset: str, flow: str) -> None:
    """Report records that did not fit and rows that came too late."""
    for source, found in totals.sources.items():
        if found["rescued"] or found["corrupt"]:
            emit(
                "source_records",
                f"Flow '{flow}': {found['corrupt']} broken and {found['rescued']} partly rescued record(s) of {source}; "
                f"the first in {found['first_file']}, line {found['first_line']}.",
                {"flow_name": flow, "source": source, **found},
                dataset=dataset,
                flow=flow,
                level=WARN,
                id=event_id(update_id, flow, "source_records", source),
            )
    if totals.late:
        emit(
            "late_records",
            f"Flow '{flow}': {totals.late} row(s) came later than the watermark allows and were left out.",
            {"flow_name": flow, "dropped_by_watermark": totals.late},
            dataset=dataset,
            flow=flow,
            level=WARN,
            id=event_id(update_id, flow, "late_records"),
        )


def emit_change(emit: Any, change: SchemaChange, *, dataset: str, flow: str, id: str) -> None:
    """Tell about a new version of a source's schema."""
    added = ", ".join(f"{name} {kind}" for name, kind in change.added)
    wider = ", ".join(f"{name} {after} (was {before})" for name, before, after in change.widened)
    told = [f"new columns: {added}"] * bool(added) + [f"wider types: {wider}"] * bool(wider)
    emit(
        "schema_change",
        f"Flow '{flow}' has, from {change.first_file}, {'; '.join(told)}.",
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
        level=WARN,
        id=id,
    )
