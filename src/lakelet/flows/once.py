"""Flows that append a batch one time (DS-9): in one commit with the mark that it is done.

Done means done since the last reset, whatever became of the query meanwhile. The truth is the mark in the table's own log, which carries
the reset epoch in its name; a note beside the flow's checkpoint spares the next updates the look into the log, and outlives the mark where
the table lets marks expire.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import Observation

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.flows import append
from lakelet.flows.complete import facts_of
from lakelet.flows.context import FlowRun
from lakelet.flows.counted import counted_query
from lakelet.flows.mapping_notice import emit_mapping
from lakelet.flows.metrics import Totals, emit_batch, event_id
from lakelet.flows.once_marks import has_run, put_note
from lakelet.plan.decisions import Decision, Strategy
from lakelet.spark.errors.diagnosis import run_failure
from lakelet.spark.errors.user_errors import user_error
from lakelet.spark.expectations.measure import judged
from lakelet.spark.session_clones import flow_session
from lakelet.storage.delta import schemas, tables
from lakelet.storage.delta.transaction import Transaction

DONE = Decision(Strategy.SKIP, "it runs once, and has run")
NOT_YET = Decision(Strategy.STREAM, "it has not run yet")


def decide(run: FlowRun) -> Decision:
    """Whether the batch is still to be appended."""
    if has_run(run.environment.storage, run.flow.flow):
        return DONE if run.stored().columns is not None else Decision(Strategy.STREAM, "its last update ended before the table was ready")
    return NOT_YET


def run_once(run: FlowRun) -> Totals:
    """Append what the query gives, unless that was done. Raises LakeletError; then nothing was written."""
    environment, totals = run.environment, Totals()
    app = (f"{run.name}/{run.generation()}/once", 0)
    if not (has_run(environment.storage, run.flow.flow) or _marked(run, app)):
        reached("batch.started")
        with flow_session(environment.spark, run.conf) as spark:
            try:
                _append(run, spark, app, totals)
            except (LakeletError, schemas.Incompatible, PySparkException) as problem:
                where = run.flow.flow.where
                raise run_failure(problem, dataset=str(run.dataset.name), where=where, what="the query failed while it ran") from None
            except Exception as problem:
                raise user_error(problem, run.dataset, run.flow.flow) from problem
    reached("flow.drained")
    append.finish(run, totals)
    put_note(environment.storage, run.flow.flow, done=True)
    reached("flow.finished")
    return totals


def _marked(run: FlowRun, app: tuple[str, int]) -> bool:
    """Whether the table's log says that the batch is in the table, or was, before others removed its rows."""
    if run.environment.log(run.path()).version() < 0:
        return False
    return Transaction(run.environment.spark, run.path()).done(*app)


def _append(run: FlowRun, spark: Any, app: tuple[str, int], totals: Totals) -> None:
    observation = Observation(f"lakelet_{uuid.uuid4().hex}")
    facts: dict[str, Any] = {}
    with counted_query(run, spark) as (reader, frame):

        def measure() -> tuple[Mapping[str, Any], bool]:
            id = event_id(run.path(), run.name, run.generation(), "once")
            facts.update({**facts_of(run, reader, observation), "event_id": id, "batch_id": 0})
            return {"lakelet": facts}, True  # also without a row: the mark must be there

        spec, rows = run.table_spec(frame.schema), judged(frame, run.dataset.expectations, observation)
        written = tables.append(spark, run.path(), rows, spec, app=app, measure=measure, replayed=False)
    if written is not None and written.mapped:
        emit_mapping(run, spec.schema)
    totals.add(facts)
    emit_batch(run.environment.emit, facts)
