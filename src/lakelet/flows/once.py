"""Flows that run one time: a batch that is appended (DS-9), and change flows over a stream (CD-13, CD-21).

Done means done since the last reset, also if the query changed. Rows and txn of a batch are one commit, and the table's log decides: the
txn has the reset epoch in its application id. A marker file in the flow's checkpoint folder (`checkpoints`) saves later updates from
reading the log, and stays where the table lets txns expire.

A change flow over a stream applies what is there when it runs, and nothing that comes later. All of it is one micro-batch, so the commit
of that batch decides. A stream with a watermark needs further batches to emit the rows that it holds back: there the marker alone
decides.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

from pyspark.sql import Observation

from lakelet.base.failpoints import reached
from lakelet.flows import streams
from lakelet.flows.checkpoints import has_run, read_checkpoint, read_marker, write_marker
from lakelet.flows.context import FlowTask, event_id
from lakelet.flows.failures import failures_of
from lakelet.flows.metrics import Totals, counted_query, emit_batch, query_metrics
from lakelet.flows.source_upkeep import clean_sources
from lakelet.flows.target_table import emit_mapping, finish, has_batch, quarantine_of
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
    txn = Txn(f"{task.name}/{task.checkpoint_name()}/once", 0)
    if not (has_run(environment.storage, task.declared) or _is_committed(task, txn)):
        reached("batch.started")
        with flow_session(environment.spark, task.conf) as spark, failures_of(task):
            _append(task, spark, txn, totals)
    reached("flow.drained")
    finish(task, totals)
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
        id = event_id(task.stored().path, task.name, task.checkpoint_name(), "once")
        measure = partial(query_metrics, task, reader, observation, batch_id=0, event_id=id)
        quarantine = quarantine_of(task, looks=True)
        hold = quarantine is not None and quarantine.active
        spec = task.table_spec(frame.schema)
        rows = judged(frame, task.dataset.expectations, observation, hold=hold, samples=task.samples)
        # Committed also without a row: the txn must be there.
        written = tables.append(spark, task.path(), rows, spec, txn=txn, measure=measure, replayed=False, quarantine=quarantine)
    assert written is not None  # nothing is looked up without `replayed`
    if written.mapped:
        emit_mapping(task, spec.schema)
    totals.add(written.metrics)
    emit_batch(task.environment.reporter, written.metrics)


_ONE_BATCH = "one_batch"  # in the marker file: the flow was started in this way, and its first batch is all of it


def decide_once_stream(task: FlowTask) -> Decision:
    """Whether the flow has something to do: until it has run."""
    return DONE if has_run(task.environment.storage, task.declared) else NOT_YET


def run_once_stream(task: FlowTask) -> Totals:
    """Process everything that is there, one time. Raises LakeletError."""
    storage, flow = task.environment.storage, task.declared
    first = read_checkpoint(task.checkpoint()).planned < 0
    if first and not task.flow.stream.watermark:
        write_marker(storage, flow, done=False, **{_ONE_BATCH: True})
        reached("once.started")
    one_batch = bool(read_marker(storage, flow).get(_ONE_BATCH))  # not in the storage of a Lakelet that made several batches
    totals = _run(task, first=first) if one_batch else streams.run_stream(task)
    write_marker(storage, flow, done=True)
    return totals


def _run(task: FlowTask, *, first: bool) -> Totals:
    """Process everything that is there, unless a batch was committed before; a failed batch is repeated, with what came since."""
    state = read_checkpoint(task.checkpoint())
    if state.completed < 0:
        with flow_session(task.environment.spark, task.conf) as spark:
            committed = state.unfinished and has_batch(task, spark, state.planned)
        return streams.run_stream(task, one_batch=first or committed)
    with flow_session(task.environment.spark, task.conf) as spark:
        _, _, shape = streams.opened(task, spark, state)
    totals = Totals()
    finish(task, totals, shape)
    clean_sources(task)
    return totals
