"""Flows that append a batch one time (DS-9): rows and txn are one commit.

Done means done since the last reset, also if the query changed. The table's log decides: the txn has the reset epoch in its application id.
A marker file in the flow's checkpoint folder saves later updates from reading the log, and remains where the table lets txns expire.
"""

from __future__ import annotations

import uuid
from typing import Any

from pyspark.sql import Observation

from lakelet.base.failpoints import reached
from lakelet.flows import append
from lakelet.flows.context import FlowRun
from lakelet.flows.counted import counted_query, query_metrics
from lakelet.flows.failures import failures_of
from lakelet.flows.mapping_notice import emit_mapping
from lakelet.flows.metrics import Totals, emit_batch, event_id
from lakelet.flows.once_markers import has_run, write_marker
from lakelet.flows.quarantine import quarantine_of
from lakelet.plan.decisions import Decision, Strategy
from lakelet.spark.expectations.measure import judged
from lakelet.spark.session_clones import flow_session
from lakelet.storage.delta import tables
from lakelet.storage.delta.batch_metrics import BatchMetrics
from lakelet.storage.delta.transaction import Transaction, Txn

DONE = Decision(Strategy.SKIP, "it runs once, and has run")
NOT_YET = Decision(Strategy.STREAM, "it has not run yet")


def decide_once(run: FlowRun) -> Decision:
    """Whether the batch is still to be appended."""
    if has_run(run.environment.storage, run.flow.flow):
        return DONE if run.stored().columns is not None else Decision(Strategy.STREAM, "its last update ended before the table was ready")
    return NOT_YET


def run_once(run: FlowRun) -> Totals:
    """Append what the query gives, unless that was done. Raises LakeletError; then nothing was written."""
    environment, totals = run.environment, Totals()
    txn = Txn(f"{run.name}/{run.generation()}/once", 0)
    if not (has_run(environment.storage, run.flow.flow) or _is_committed(run, txn)):
        reached("batch.started")
        with flow_session(environment.spark, run.conf) as spark, failures_of(run):
            _append(run, spark, txn, totals)
    reached("flow.drained")
    append.finish(run, totals)
    write_marker(environment.storage, run.flow.flow, done=True)
    reached("flow.finished")
    return totals


def _is_committed(run: FlowRun, txn: Txn) -> bool:
    """Whether the table's log says that the batch is in the table, or was, before others removed its rows."""
    if run.environment.memory.log(run.path()).version() < 0:
        return False
    return Transaction(run.environment.spark, run.path()).done(txn)


def _append(run: FlowRun, spark: Any, txn: Txn, totals: Totals) -> None:
    observation = Observation(f"lakelet_{uuid.uuid4().hex}")
    with counted_query(run, spark) as (reader, frame):

        def measure() -> BatchMetrics:  # committed also without a row: the txn must be there
            id = event_id(run.stored().path, run.name, run.generation(), "once")
            return query_metrics(run, reader, observation, batch_id=0, event_id=id)

        quarantine = quarantine_of(run, looks=True)
        hold = quarantine is not None and quarantine.active
        spec, rows = run.table_spec(frame.schema), judged(frame, run.dataset.expectations, observation, hold=hold)
        written = tables.append(spark, run.path(), rows, spec, txn=txn, measure=measure, replayed=False, quarantine=quarantine)
    assert written is not None  # nothing is looked up without `replayed`
    if written.mapped:
        emit_mapping(run, spec.schema)
    totals.add(written.metrics)
    emit_batch(run.environment.reporter, written.metrics)
