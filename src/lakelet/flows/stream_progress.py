"""Converts Spark's progress of micro-batches into `stream_progress` events (EL-15)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from lakelet.flows.context import FlowTask
from lakelet.flows.metrics import event_id
from lakelet.jvm.errors import Py4JError
from lakelet.jvm.streams import progress_since
from lakelet.storage.eventlog.states import EventType, Level

_VOLATILE = ("numInputRows", "inputRowsPerSecond", "processedRowsPerSecond")
_OF_LAKELET = "lakelet_"
"""Prefix of the names of Lakelet's own observations, whose counts are in `flow_progress`."""


def emit_stream_progress(task: FlowTask, query: Any, after: int = -1) -> None:
    """Report each micro-batch with rows that the query completed behind micro-batch `after`."""
    with suppress(Py4JError):  # Spark is gone: the batches are committed all the same
        for text in progress_since(query, after):
            progress = json.loads(text)
            if progress.get("numInputRows"):
                _emit(task, progress)


def _emit(task: FlowTask, progress: Mapping[str, Any]) -> None:
    batch = int(progress["batchId"])
    task.environment.reporter.emit(
        EventType.STREAM_PROGRESS,
        f"Flow '{task.name}' has processed micro-batch {batch}.",
        {"progress_json": json.dumps(reported(progress), separators=(",", ":"))},
        dataset=str(task.dataset.name),
        flow=task.name,
        level=Level.METRICS,
        id=event_id(task.environment.reporter.update_id, progress["id"], EventType.STREAM_PROGRESS, batch),
        batch_id=batch,
    )


def reported(progress: Mapping[str, Any]) -> dict[str, Any]:
    """Spark's report without the fields that Databricks leaves out, also of each source, and without observations of Lakelet's own."""
    kept = {key: value for key, value in progress.items() if key not in _VOLATILE}
    kept["sources"] = [{k: v for k, v in source.items() if k not in _VOLATILE} for source in progress.get("sources", ())]
    observed = progress.get("observedMetrics") or {}
    others = {name: values for name, values in observed.items() if not name.startswith(_OF_LAKELET)}
    return {**{k: v for k, v in kept.items() if k != "observedMetrics"}, **({"observedMetrics": others} if others else {})}
