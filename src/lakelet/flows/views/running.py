"""Brings one materialized view up to date in the way that was decided, or as a whole where that turns out not to be right."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, Observation, SparkSession

from lakelet.base.failpoints import reached
from lakelet.flows.context import FlowTask, RunReader
from lakelet.flows.failures import failures_of
from lakelet.flows.metrics import Totals, counted_query, emit_batch, new_observation, query_metrics
from lakelet.flows.planning_events import turned_to_full
from lakelet.flows.target_table import emit_mapping, quarantine_of
from lakelet.flows.views.deciding import RefreshPlan, decided
from lakelet.flows.views.query_runs import QueryRuns, WholeRefresh
from lakelet.flows.views.sizes import computed_bytes, input_bytes, set_by_size
from lakelet.flows.views.techniques import CHANGED, InPart, Outcome
from lakelet.language.model import RefreshPolicy
from lakelet.plan.refresh_choice import Learned
from lakelet.plan.refreshes import Refresh, Technique
from lakelet.spark.expectations.measure import judged
from lakelet.spark.expectations.samples import SamplePolicy, with_earlier
from lakelet.spark.session_clones import flow_session
from lakelet.storage.delta import tables
from lakelet.storage.delta.batch_metrics import BatchMetrics, ComputedFrom
from lakelet.storage.delta.replaced_rows import overwrite_partitions
from lakelet.storage.delta.table_spec import TableSpec
from lakelet.storage.rule_counts import RuleCount

_LONG_SECONDS = 2.0
"""Comparing the content of a view takes about as long as computing one that takes less."""


def run_view(task: FlowTask) -> Totals:
    """Bring the view up to date: in part, by partitions (UP-8), by adding to it where a stream reads it (UP-6), or as a whole.

    Raises LakeletError; then the table is as before.
    """
    run = ViewRun(task, decided(task))
    totals = Totals()
    with flow_session(task.environment.spark, task.conf) as spark:
        size = input_bytes(task)
        set_by_size(task, size, spark)
        with failures_of(task):
            outcome = run.done(spark)
    metrics = outcome.written.metrics if outcome.written is not None else run.unchanged()
    totals.add(metrics)
    emit_batch(task.environment.reporter, metrics)  # before anything else can fail: a failure is reported after it
    whole = outcome.refresh.technique is Technique.FULL
    task.environment.storage.remember(
        replace(
            task.stored(),
            columns=None,
            fingerprint=run.plan.versions.state.fingerprint,
            input_versions=dict(run.plan.versions.state.inputs),
            version=run.version(outcome),
            read_bytes=computed_bytes(task, size, None if whole else metrics.bytes),
        )
    )
    reached("view.recorded")
    return totals


@dataclass(frozen=True)
class ViewRun:
    """One run of a view. `clock`: counts seconds, for what the next choice is made by."""

    task: FlowTask
    plan: RefreshPlan
    clock: Callable[[], float] = time.perf_counter

    def done(self, spark: SparkSession) -> Outcome:
        """Carry out what was decided."""
        started, refresh = self.clock(), self.plan.refresh
        if refresh.technique is Technique.PARTITIONS:
            found = self._partitions(spark, refresh, started)
            if found is not None:
                return found
            refresh = turned_to_full(self.task, refresh, CHANGED)
        elif refresh.technique is not Technique.FULL:
            try:
                return InPart(QueryRuns(self.task, self.plan, spark), partial(self._metrics, started=started)).run(refresh)
            except WholeRefresh as problem:
                refresh = turned_to_full(self.task, refresh, problem.issue)
        return self._whole(spark, refresh, started)

    def _metrics(
        self, reader: RunReader, observation: Observation, refresh: Refresh, *, started: float, plus: BatchMetrics | None = None
    ) -> BatchMetrics:
        """What the commit keeps (`techniques.Measures`)."""
        learned = self.plan.facts.learned if self.plan.facts is not None else Learned()
        read = None if refresh.technique is not Technique.FULL else input_bytes(self.task)
        changed = sum(change.added + change.removed for change in refresh.changes)
        learned = learned.after(refresh, seconds=self.clock() - started, bytes_read=changed if read is None else read)
        state, technique = self.plan.versions.state, refresh.technique
        found = query_metrics(self.task, reader, observation, event_id=str(uuid.uuid4()))
        view = ComputedFrom(state.fingerprint, state.inputs, technique.name.lower(), self._rows(technique, found.rows), learned)
        return replace(found if plus is None else _with_earlier(found, plus, self.task.samples), view=view)

    def _rows(self, technique: Technique, written: int) -> int | None:
        """About how many rows the view has; groups that come or go by a refresh by key are not counted."""
        before = self.plan.last.view.rows if self.plan.last is not None and self.plan.last.view is not None else None
        if technique is Technique.FULL:
            return written
        return before + written if before is not None and technique is Technique.APPEND else before

    def _partitions(self, spark: SparkSession, refresh: Refresh, started: float) -> Outcome | None:
        """Replace the partitions that can have changed; None where the whole view must be computed."""
        affected = self.plan.partitions
        if affected is None:
            return None
        of, observation = affected.condition(), new_observation()
        with counted_query(self.task, spark, versions=self.plan.versions.read) as (reader, frame):
            spec = self.task.table_spec(frame.schema)
            rows = partial(judged, frame.where(of), (), observation)
            measure = partial(self._metrics, reader, observation, refresh, started=started)
            written = overwrite_partitions(spark, self.task.path(), rows, spec, of=of, measure=measure)
        return None if written is None else Outcome(refresh, written)

    def _whole(self, spark: SparkSession, refresh: Refresh, started: float) -> Outcome:
        """Replace the whole content of the view."""
        task, observation = self.task, new_observation()
        with counted_query(task, spark, versions=self.plan.versions.read) as (reader, frame):
            spec = task.table_spec(frame.schema)
            measure = partial(self._metrics, reader, observation, refresh, started=started)
            written = self._overwritten(frame, observation, spec, measure, started)
        if written.mapped:
            emit_mapping(task, spec.schema)
        return Outcome(refresh, written)

    def _is_worth_comparing(self, started: float) -> bool:
        """Whether comparing the content with the stored one may cost less than it saves where the view is read."""
        return self.task.dataset.refresh_policy is not RefreshPolicy.AUTO or self.clock() - started > _LONG_SECONDS

    def _overwritten(
        self, frame: DataFrame, observation: Observation, spec: TableSpec, measure: tables.Measure, started: float
    ) -> tables.WriteResult:
        task, spark, quarantine = self.task, frame.sparkSession, quarantine_of(self.task)
        rows = judged(
            frame, task.dataset.expectations, observation, hold=quarantine is not None and quarantine.active, samples=task.samples
        )
        is_read = quarantine is None and task.target in task.environment.catalog.reads.queried
        written = tables.overwrite(
            *(spark, task.path(), rows, spec),
            measure=measure,
            streamed=task.is_streamed(),
            followed=partial(self._is_worth_comparing, started) if is_read else None,
            quarantine=quarantine,
        )
        if quarantine is not None:
            quarantine.create(spec, spark)
        return written

    def unchanged(self) -> BatchMetrics:
        """What is reported where no row of the view changed: its rules count what they counted."""
        task, last = self.task, self.plan.last
        return BatchMetrics(
            event_id=str(uuid.uuid4()),
            update_id=task.environment.reporter.update_id,
            dataset=str(task.dataset.name),
            flow=task.name,
            batch_id=None,
            rows=0,
            dropped=last.dropped if last is not None else 0,
            expectations=last.expectations if last is not None else (),
            samples=with_earlier((), last.samples if last is not None else (), task.samples),
            view=ComputedFrom(self.plan.versions.state.fingerprint, self.plan.versions.state.inputs),
        )

    def version(self, outcome: Outcome) -> int | None:
        """The version of the table that the registry's entry is about: the last one with facts about the view."""
        written, stored = outcome.written, self.plan.stored.version
        if written is None or written.version is None:
            return stored
        commit = self.task.environment.memory.log(self.task.path()).commit(written.version)
        found = BatchMetrics.of_commit(commit.user_metadata) if commit is not None else None
        return written.version if stored is None or (found is not None and found.event_id == written.metrics.event_id) else stored


def _with_earlier(found: BatchMetrics, earlier: BatchMetrics, policy: SamplePolicy) -> BatchMetrics:
    """The counts of rules on new rows and on those that were there before, and samples of both. The rows are the new ones."""
    before = {(rule.dataset, rule.name): rule for rule in earlier.expectations}
    rules = [
        RuleCount(
            *(rule.name, rule.dataset),
            rule.passed + (before[rule.dataset, rule.name].passed if (rule.dataset, rule.name) in before else 0),
            rule.failed + (before[rule.dataset, rule.name].failed if (rule.dataset, rule.name) in before else 0),
        )
        for rule in found.expectations
    ]
    judged = {(rule.dataset, rule.name) for rule in rules}
    samples = with_earlier(found.samples, [one for one in earlier.samples if (one.dataset, one.name) in judged], policy)
    return replace(found, dropped=found.dropped + earlier.dropped, expectations=tuple(rules), samples=samples)


__all__ = ["ViewRun", "run_view"]
