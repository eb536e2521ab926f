"""Measurements of a flow, and their events.

In: what Spark counted while rows were written. Out: the `BatchMetrics` that the commit keeps, and events. The ids of the events follow
from what they report. So the next update writes an event that this one did not get to write (`repair`), and recognises an event that this
one did write.

Each row of a view counts once in each flow that reads it (UP-5). Spark counts where the rows pass. A sort passes them twice: a first time
to find out how they spread. There the view's rows are kept while the query runs. A view that a query reads several times is counted each
time, and one of the counts is taken.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession

from lakelet.analysis.plan_facts import has_range_partitioning
from lakelet.autoloader.source_spec import SchemaEvolution
from lakelet.flows.context import Bindings, FlowTask, RunReader, event_id, run_reader
from lakelet.jvm.errors import Py4JError
from lakelet.jvm.expressions import with_children
from lakelet.jvm.frames import analyzed, replanned
from lakelet.jvm.streams import metrics_of, progress_since
from lakelet.language.registry import reading
from lakelet.spark.errors.diagnosis import run_failure
from lakelet.spark.expectations.measure import Counts, JudgedRows, counts
from lakelet.spark.expectations.violations import violation_error
from lakelet.spark.names.reader import Watch, rows_of
from lakelet.storage.delta.batch_metrics import BatchMetrics, ComputedFrom, SnapshotBatch, SourceRecords
from lakelet.storage.eventlog.events import Reporter
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


def emit_batch(reporter: Reporter, found: BatchMetrics, *, failed: bool = False) -> None:
    """The event of one commit: COMPLETED of a materialized view, which has one, and RUNNING of any other flow (EL-7).

    Change flows report upserted and deleted rows, never num_output_rows. `failed`: the flow has been reported as FAILED already.
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
        body["data_quality"] |= {"samples": [asdict(sample) for sample in found.samples]} if found.samples else {}
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
                {"flow_name": flow, **found.as_event()},
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


def emit_change(reporter: Reporter, change: SchemaEvolution, *, dataset: str, flow: str, id: str) -> None:
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


_NEWEST: Mapping[str, int] = {}
_UNBOUND: Bindings = {}


@contextmanager
def counted_query(
    task: FlowTask, spark: SparkSession, *, versions: Mapping[str, int] = _NEWEST, bound: Bindings = _UNBOUND
) -> Iterator[tuple[RunReader, DataFrame]]:
    """The query of a batch flow and the reader that opened its tables; raises what the flow's function raises.

    `versions`, `bound`: see `RunReader`.
    """
    reader = run_reader(task, spark, versions=versions, bound=bound)
    with reading(reader):
        frame = rows_of(task.declared)
    views = [view for view in reader.judged if not view.isStreaming]
    kept = views if views and has_range_partitioning(frame) else []
    try:
        for view in kept:
            view.persist()  # Spark finds it in the query by its plan
        yield reader, frame
    except OSError as problem:  # the function has returned: it is the write that failed
        what = "the table could not be written"
        raise run_failure(problem, dataset=str(task.dataset.name), where=task.declared.where, what=what) from problem
    finally:
        for view in kept:
            view.unpersist()


def sorted_in_parts(frame: DataFrame) -> DataFrame:
    """Replace a global sort at the end of a streaming query by one within each partition; a table has no order.

    A global sort reads its rows twice, and those of a stream cannot be cached between.
    """
    changed = _sorted_in_parts(frame.sparkSession, analyzed(frame))
    return frame if changed is None else replanned(frame, changed)


def _sorted_in_parts(spark: SparkSession, plan: Any) -> Any:
    """Return the plan with the global sort below its projections made a local one; None if there is none."""
    if plan.nodeName() == "Sort" and getattr(plan, "global")():
        return plan.copy(plan.order(), False, plan.child(), plan.hint())
    if plan.nodeName() not in ("Project", "SubqueryAlias"):
        return None
    below = _sorted_in_parts(spark, plan.child())
    return None if below is None else with_children(spark, plan, [below])


def of_views(watches: Iterable[Watch], observed: Callable[[str], Mapping[str, Any] | None]) -> list[JudgedRows]:
    """What the views' rules counted while a query ran.

    `observed`: the metrics of a watch; None where Spark found that it need not read the view. Several reads of a view see the same rows,
    or the first of them where a limit ends one early: the fullest count is taken, one with a broken fail rule before others.
    """
    found: dict[tuple[str, bool], JudgedRows] = {}
    for watch in watches:
        values = observed(watch.name)
        if values is None:
            continue
        seen, key = JudgedRows(str(watch.dataset), watch.rules, counts(watch.rules, values)), (watch.dataset.key, watch.streaming)
        if key not in found or found[key].fullness < seen.fullness:
            found[key] = seen
    return list(found.values())


def batch_metrics(
    task: FlowTask,
    found: Counts,
    watches: Iterable[Watch],
    observed: Callable[[str], Mapping[str, Any] | None],
    *,
    batch_id: int | None,
    event_id: str,
) -> BatchMetrics:
    """What was counted while the rows of one batch were written: `found` by the rules of the target, `observed` by the
    `watches` of the views that were read.

    Raises for broken fail rules.
    """
    dataset = str(task.dataset.name)
    judged = [JudgedRows(dataset, task.dataset.expectations, found), *of_views(watches, observed)]
    if any(rows.counts.violation for rows in judged):
        raise violation_error(dataset, judged)
    return BatchMetrics(
        event_id=event_id,
        update_id=task.environment.reporter.update_id,
        dataset=dataset,
        flow=task.name,
        batch_id=batch_id,
        rows=found.kept,
        dropped=sum(rows.counts.dropped for rows in judged),
        expectations=tuple(count for rows in judged for count in rows.rule_counts()),
        quarantined=found.dropped if task.dataset.keeps_dropped else None,
        samples=tuple(sample for rows in judged for sample in rows.row_samples()),
    )


def query_metrics(
    task: FlowTask,
    reader: RunReader,
    observation: Observation,
    *,
    event_id: str,
    batch_id: int | None = None,
    view: ComputedFrom | None = None,
    batch: SnapshotBatch | None = None,
) -> BatchMetrics:
    """`batch_metrics` of a batch query, whose rows `observation` watched. `view`, `batch`: what the commit keeps beside the counts."""
    found = counts(task.dataset.expectations, metrics_of(reader.spark, observation))
    metrics = batch_metrics(
        task, found, reader.watches, lambda name: metrics_of(reader.spark, reader.observations[name]), batch_id=batch_id, event_id=event_id
    )
    return replace(metrics, view=view, batch=batch)


def new_observation() -> Observation:
    """Counts the rows that one query writes."""
    return Observation(f"{_OF_LAKELET}{uuid.uuid4().hex}")


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


__all__ = [
    "Totals",
    "batch_metrics",
    "counted_query",
    "emit_batch",
    "emit_change",
    "emit_stream_progress",
    "emit_warnings",
    "new_observation",
    "query_metrics",
    "reported",
    "sorted_in_parts",
]
