"""Materialized views: decide whether anything changed, compute, replace in one commit."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, Observation

from lakelet.base.failpoints import reached
from lakelet.base.text import counted
from lakelet.config.named_tables import files_fingerprint
from lakelet.flows.context import FlowRun
from lakelet.flows.counted import counted_query, query_metrics
from lakelet.flows.failures import failures_of
from lakelet.flows.mapping_notice import emit_mapping
from lakelet.flows.metrics import Totals, emit_batch
from lakelet.flows.partitions import affected_partitions
from lakelet.flows.quarantine import is_behind, quarantine_of
from lakelet.flows.view_settings import computed_bytes, input_bytes, set_by_size
from lakelet.plan.decisions import Decision, Strategy, ViewState, view_decision
from lakelet.spark.expectations.measure import judged
from lakelet.spark.names import named_tables
from lakelet.spark.session_clones import flow_session
from lakelet.storage.delta import tables
from lakelet.storage.delta.batch_metrics import BatchMetrics, ComputedFrom
from lakelet.storage.delta.replaced_rows import overwrite_partitions
from lakelet.storage.delta.table_spec import TableSpec


def decide_view(run: FlowRun, inputs: tuple[str, ...]) -> Decision:
    """Whether the view must be computed. `inputs`: keys of the stored datasets it reads, views looked through."""
    stored = run.stored()
    table_exists = run.environment.memory.log(run.path()).version() >= 0
    state = view_state(run, inputs, stored.input_versions)
    if table_exists and is_behind(run):
        return Decision(Strategy.FULL, "its quarantine does not have the rows that it left out")
    decision = view_decision(stored.fingerprint if table_exists else None, stored.input_versions, state)
    affected = affected_partitions(run, state) if table_exists and decision.strategy is Strategy.FULL else None
    if affected is None:
        return decision
    return Decision(Strategy.PARTITIONS, f"{decision.reason} in {counted(len(affected.values), 'partition')}")


def view_state(run: FlowRun, inputs: tuple[str, ...], known: Mapping[str, int]) -> ViewState:
    """The view's state now. An input's data version moves only when data files were added or removed.

    Versions belong to one table: one that was made again, in its folder or another one, has another name (UP-3). A table from outside has
    another version whenever its files change.
    """
    environment = run.environment
    versions = {}
    for key in inputs:
        path = environment.storage.table_path(environment.catalog.datasets[key].name)
        log = environment.memory.log(path)
        name = f"{key}\n{path.name} {log.table_id()}"
        versions[name] = log.data_version(known.get(name, -1))
    for table in filter(None, map(named_tables.named().by_key, run.flow.outside)):
        versions[f"{table.given} ({table.path})"] = files_fingerprint(table) or -1
    return ViewState(run.flow.fingerprint, versions, run.flow.always, run.flow.earlier_fingerprint)


def run_complete(run: FlowRun, inputs: tuple[str, ...]) -> Totals:
    """Compute the view and replace its content; or some partitions of it (UP-8), or add to it where a stream reads it (UP-6).

    Raises LakeletError; then the table is as before.
    """
    environment = run.environment
    state = view_state(run, inputs, run.stored().input_versions)  # before reading: newer data only means one more run
    if environment.memory.widened:  # its inputs may have columns that were not there when it was analysed; the next update will know them
        state = replace(state, fingerprint=environment.analyses.fingerprint(run.dataset.name.key) or state.fingerprint)
    totals = Totals()
    with flow_session(environment.spark, run.conf) as spark:
        size = input_bytes(run, inputs)
        set_by_size(run, size, spark)
        observation = Observation(f"lakelet_{uuid.uuid4().hex}")
        with failures_of(run):
            with counted_query(run, spark) as (reader, frame):

                def measure() -> BatchMetrics:
                    found = query_metrics(run, reader, observation, batch_id=None, event_id=str(uuid.uuid4()))
                    return replace(found, view=ComputedFrom(state.fingerprint, state.inputs))

                spec = run.table_spec(frame.schema)
                in_part = _written_in_part(run, state, frame, observation, spec, measure)
                written = in_part or _written(run, frame, observation, spec, measure)
            if written.mapped:
                emit_mapping(run, spec.schema)
    totals.add(written.metrics)
    emit_batch(environment.reporter, written.metrics)  # before anything else can fail: a failure is told after it
    environment.storage.remember(
        replace(
            run.stored(),
            columns=None,
            fingerprint=state.fingerprint,
            input_versions=dict(state.inputs),
            version=written.version,
            read_bytes=computed_bytes(run, size, in_part.metrics.bytes if in_part else None),
        )
    )
    reached("view.recorded")
    return totals


def _written(run: FlowRun, frame: DataFrame, observation: Observation, spec: TableSpec, measure: tables.Measure) -> tables.Written:
    """Replace the whole content of the view."""
    spark, quarantine, streamed = frame.sparkSession, quarantine_of(run), run.is_streamed()
    rows = judged(frame, run.dataset.expectations, observation, hold=quarantine is not None and quarantine.active)
    written = tables.overwrite(spark, run.path(), rows, spec, measure=measure, streamed=streamed, quarantine=quarantine)
    if quarantine is not None:
        quarantine.create(spec, spark)
    return written


def _written_in_part(
    run: FlowRun, state: ViewState, frame: DataFrame, observation: Observation, spec: TableSpec, measure: tables.Measure
) -> tables.Written | None:
    """Replace the partitions that can have changed; return None where the whole view must be computed."""
    affected = affected_partitions(run, state)
    if affected is None:
        return None
    of = affected.condition()
    rows = partial(judged, frame.where(of), (), observation)
    return overwrite_partitions(frame.sparkSession, run.path(), rows, spec, of=of, measure=measure)
