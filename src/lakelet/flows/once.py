"""Flows that append a batch one time (DS-9): rows and txn are one commit.

Done means done since the last reset, also if the query changed. The table's log decides: the txn has the reset epoch in its application id.
A marker file in the flow's checkpoint folder saves later updates from reading the log, and remains where the table lets txns expire.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

from pyspark.sql import Observation

from lakelet.base.failpoints import reached
from lakelet.flows import append
from lakelet.flows.context import FlowTask
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
from lakelet.storage.delta.transaction import Transaction, Txn

DONE = Decision(Strategy.SKIP, "it runs once, and has run")
NOT_YET = Decision(Strategy.STREAM, "it has not run yet")


def decide_once(task: FlowTask) -> Decision:
    """Whether the batch is still to be appended."""
    if has_run(task.environment.storage, task.declared):
        return DONE if task.stored().columns is not None else Decision(Strategy.STREAM, "its last update ended before the table was ready")
    return NOT_YET


def run_once(task: FlowTask) -> Totals:
    """Append what the query gives, unless that was done. Raises LakeletError; then nothing was written."""
    environment, totals = task.environment, Totals()
    txn = Txn(f"{task.name}/{task.generation()}/once", 0)
    if not (has_run(environment.storage, task.declared) or _is_committed(task, txn)):
        reached("batch.started")
        with flow_session(environment.spark, task.conf) as spark, failures_of(task):
            _append(task, spark, txn, totals)
    reached("flow.drained")
    append.finish(task, totals)
    write_marker(environment.storage, task.declared, done=True)
    reached("flow.finished")
    return totals


def _is_committed(task: FlowTask, txn: Txn) -> bool:
    """Whether the table's log says that the batch is in the table, or was, before others removed its rows."""
    if task.environment.memory.log(task.path()).version() < 0:
        return False
    return Transaction(task.environment.spark, task.path()).done(txn)


def _append(task: FlowTask, spark: Any, txn: Txn, totals: Totals) -> None:
    observation = Observation(f"lakelet_{uuid.uuid4().hex}")
    with counted_query(task, spark) as (reader, frame):
        id = event_id(task.stored().path, task.name, task.generation(), "once")
        measure = partial(query_metrics, task, reader, observation, batch_id=0, event_id=id)
        quarantine = quarantine_of(task, looks=True)
        hold = quarantine is not None and quarantine.active
        spec, rows = task.table_spec(frame.schema), judged(frame, task.dataset.expectations, observation, hold=hold)
        # Committed also without a row: the txn must be there.
        written = tables.append(spark, task.path(), rows, spec, txn=txn, measure=measure, replayed=False, quarantine=quarantine)
    assert written is not None  # nothing is looked up without `replayed`
    if written.mapped:
        emit_mapping(task, spec.schema)
    totals.add(written.metrics)
    emit_batch(task.environment.reporter, written.metrics)
