"""Counts of the rules of views: each row of a view counts once in each flow that reads it (UP-5).

Spark counts where the rows pass. A sort passes them twice: a first time to find out how they spread. There the view's rows are kept
while the query runs. A view that a query reads several times is counted each time, and one of the counts is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession

from lakelet.analysis.plan_facts import has_range_partitioning
from lakelet.flows.context import FlowTask, RunReader, run_reader
from lakelet.jvm.expressions import with_children
from lakelet.jvm.frames import analyzed, replanned
from lakelet.jvm.streams import metrics_of
from lakelet.language.registry import reading
from lakelet.spark.errors.diagnosis import run_failure
from lakelet.spark.expectations.measure import Counts, JudgedRows, counts
from lakelet.spark.expectations.violations import violation_error
from lakelet.spark.names.reader import Watch, rows_of
from lakelet.storage.delta.batch_metrics import BatchMetrics, ComputedFrom, SnapshotBatch


@contextmanager
def counted_query(task: FlowTask, spark: SparkSession) -> Iterator[tuple[RunReader, DataFrame]]:
    """The query of a batch flow and the reader that opened its tables; raises what the flow's function raises."""
    reader = run_reader(task, spark)
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


__all__ = ["batch_metrics", "counted_query", "query_metrics", "sorted_in_parts"]
