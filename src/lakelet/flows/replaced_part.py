"""Flows that compute a part of their table anew in each update: REPLACE WHERE (docs/semantics/replacing.md, RP-1)."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from lakelet.base.failpoints import reached
from lakelet.flows.append import finish
from lakelet.flows.complete import view_state
from lakelet.flows.context import FlowRun
from lakelet.flows.counted import counted_query, query_metrics
from lakelet.flows.failures import failures_of
from lakelet.flows.mapping_notice import emit_mapping
from lakelet.flows.metrics import Totals, emit_batch
from lakelet.jvm.expressions import by_names, column, with_constants
from lakelet.jvm.frames import analyzed, without_rows
from lakelet.plan.decisions import Decision, Strategy, view_decision
from lakelet.spark.expectations.measure import judged
from lakelet.spark.session_clones import flow_session
from lakelet.storage.delta.batch_metrics import BatchMetrics
from lakelet.storage.delta.replaced_rows import GOES, replace_rows

_ROW = "__lakelet_row"


def decide_part(run: FlowRun, inputs: tuple[str, ...]) -> Decision:
    """Whether the part of the table that the condition names must be computed. `inputs`: keys of the stored datasets it reads."""
    stored, log = run.stored(), run.environment.memory.log(run.path())
    exists = log.version() >= 0 and stored.version is not None
    found = view_state(run, inputs, stored.input_versions)
    decision = view_decision(stored.fingerprint if exists else None, stored.input_versions, found)
    if decision.strategy is Strategy.SKIP and stored.version is not None and log.content_version(stored.version) != stored.version:
        return Decision(Strategy.REPLACE, "its table changed")
    return decision if decision.strategy is Strategy.SKIP else Decision(Strategy.REPLACE, decision.reason)


def run_part(run: FlowRun, inputs: tuple[str, ...]) -> Totals:
    """Compute the rows for which the condition is true, and put them in the place of those that the table has (RP-1).

    Raises LakeletError; then the table is as before.
    """
    environment, totals = run.environment, Totals()
    replaces = run.flow.flow.replaces
    assert replaces is not None
    state = view_state(run, inputs, run.stored().input_versions)  # before reading: newer data only means one more run
    with flow_session(environment.spark, run.conf) as spark:
        observation = Observation(f"lakelet_{uuid.uuid4().hex}")
        with failures_of(run), counted_query(run, spark) as (reader, frame):

            def measure() -> BatchMetrics:
                return query_metrics(run, reader, observation, batch_id=None, event_id=str(uuid.uuid4()))

            condition = at_one_time(frame, replaces.where)
            rows = judged(frame.alias(_ROW).where(condition), run.dataset.expectations, observation)
            spec = run.table_spec(frame.schema)
            written = replace_rows(spark, run.path(), _Part(condition, rows), spec, measure=measure)
    assert written is not None  # nothing is looked up without `replayed`
    if written.mapped:
        emit_mapping(run, spec.schema)
    totals.add(written.metrics)
    finish(run, totals)
    version = environment.memory.log(run.path()).version() if written.version is None else written.version
    stored = replace(run.stored(), fingerprint=state.fingerprint, input_versions=dict(state.inputs), version=version)
    environment.storage.remember(stored)
    reached("view.recorded")
    emit_batch(environment.reporter, written.metrics)
    return totals


def at_one_time(frame: DataFrame, condition: Any) -> Column:
    """The condition as a Column for every frame with these columns and the alias `_ROW`; `current_date()` and its like are constants in it.

    Spark evaluates them once for each query: if midnight passed between two queries, rows would be left out or doubled.
    """
    spark = frame.sparkSession
    plan = with_constants(spark, analyzed(without_rows(frame).where(condition)), at_one_time=True)
    return column(spark, by_names(spark, plan.condition(), _ROW))


@dataclass(frozen=True)
class _Part:
    """One exchange of a part of a table (`replaced_rows.Exchange`): `rows` replace those for which `condition` is true."""

    condition: Column
    rows: DataFrame

    def within(self, stored: DataFrame) -> DataFrame:
        return stored.alias(_ROW).where(self.condition)

    def looked(self, stored: DataFrame) -> _Part:
        return self

    def leaving(self, stored: DataFrame) -> DataFrame:
        return stored.alias(_ROW).withColumn(GOES, F.coalesce(self.condition, F.lit(False)))

    def arriving(self) -> DataFrame:
        return self.rows
