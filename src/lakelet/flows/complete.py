"""Materialized views: decide whether anything changed, compute, replace in one commit. Layer 4."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import Observation

from lakelet import namedreads, schemas, tables
from lakelet.clones import flow_session
from lakelet.diagnosis import run_failure
from lakelet.errors import LakeletError
from lakelet.expectations.measure import counts, data_quality, judged, violation_error
from lakelet.failpoints import reached
from lakelet.flows.context import FlowRun, RunReader, run_reader
from lakelet.flows.measured import Totals, emit_batch
from lakelet.mistakes import user_error
from lakelet.named import mark
from lakelet.plan import Decision, ViewState, view_decision
from lakelet.reads import data_frame
from lakelet.registry import reading


def decide(run: FlowRun, inputs: tuple[str, ...]) -> Decision:
    """Whether the view must be computed. `inputs`: keys of the stored datasets it reads, views looked through."""
    stored = run.stored()
    table_exists = run.environment.log(run.path()).version() >= 0
    return view_decision(stored.fingerprint if table_exists else None, stored.input_versions, _state(run, inputs, stored.input_versions))


def _state(run: FlowRun, inputs: tuple[str, ...], known: Mapping[str, int]) -> ViewState:
    """The view's state now. An input's data version moves only when data files were added or removed.

    That of a table from outside is another one whenever its files are.
    """
    environment = run.environment
    versions = {}
    for key in inputs:
        log = environment.log(environment.storage.table_path(environment.catalog.datasets[key].name))
        versions[key] = log.data_version(known.get(key, -1))
    for table in filter(None, map(namedreads.named().by_key, run.flow.outside)):
        versions[f"{table.given} ({table.place})"] = mark(table) or -1
    return ViewState(run.flow.fingerprint, versions, run.flow.always)


def run_complete(run: FlowRun, inputs: tuple[str, ...]) -> Totals:
    """Compute the view and replace its content. Raises LakeletError; then the table is as before."""
    environment = run.environment
    state = _state(run, inputs, run.stored().input_versions)  # before reading: newer data only means one more run
    if environment.widened:  # its inputs may have columns that were not there when it was analysed; the next update will know them
        state = replace(state, fingerprint=environment.fingerprint(run.dataset.name.key) or state.fingerprint)
    totals = Totals()
    with flow_session(environment.spark, run.conf) as spark:
        reader = run_reader(run, spark, batch_query=True)
        try:
            with reading(reader):
                frame = data_frame(run.flow.flow.query(), run.flow.flow)
            observation = Observation(f"lakelet_{uuid.uuid4().hex}")
            rules = run.dataset.expectations
            facts: dict[str, Any] = {}

            def measure() -> tuple[Mapping[str, Any], bool]:
                facts.update(facts_of(run, reader, observation), view={"fingerprint": state.fingerprint, "inputs": dict(state.inputs)})
                return {"lakelet": facts}, True

            spec = run.table_spec(frame.schema)
            written = tables.overwrite(spark, run.path(), judged(frame, rules, observation), spec, measure=measure)
        except (LakeletError, schemas.Incompatible, PySparkException) as problem:
            raise _failed(problem, run) from None
        except Exception as problem:
            if type(problem).__module__.startswith("py4j"):
                raise _failed(problem, run) from problem
            raise user_error(problem, run.dataset, run.flow.flow) from problem
    stored = replace(run.stored(), columns=None, fingerprint=state.fingerprint, input_versions=dict(state.inputs), version=written.version)
    environment.storage.remember(stored)
    reached("view.recorded")
    totals.add(facts)
    emit_batch(environment.emit, facts)
    return totals


def _failed(problem: BaseException, run: FlowRun) -> LakeletError:
    return run_failure(problem, dataset=str(run.dataset.name), where=run.flow.flow.where, what="the query failed while it ran")


def facts_of(run: FlowRun, reader: RunReader, observation: Observation) -> dict[str, Any]:
    """Everything measured while a batch query was written; same shape as a micro-batch. Raises for broken fail rules."""
    found = counts(run.dataset.expectations, observation.get)
    if found.violation:
        raise violation_error(run.name, str(run.dataset.name), found, run.dataset.where)
    quality = data_quality(str(run.dataset.name), run.dataset.expectations, found)
    dropped = found.dropped
    for watch in reader.watches:
        values = _if_reported(reader, watch.name)
        if values is None:
            continue
        seen = counts(watch.rules, values)
        if seen.violation:
            raise violation_error(run.name, str(run.dataset.name), seen, run.dataset.where, view=str(watch.dataset))
        quality += data_quality(str(watch.dataset), watch.rules, seen)
        dropped += seen.dropped
    return {
        "event_id": str(uuid.uuid4()),
        "update_id": run.environment.update_id,
        "dataset": str(run.dataset.name),
        "flow": run.name,
        "batch_id": None,
        "rows": found.kept,
        "dropped": dropped,
        "expectations": quality,
        "late": 0,
        "sources": [],
    }


def _if_reported(reader: RunReader, name: str) -> Mapping[str, Any] | None:
    """Metrics of a view inside a batch query; None if Spark found it did not need to read the view."""
    spark: Any = reader.spark
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    observation: Any = reader.observations[name]
    if observation._jo is None or not observation._jo.future().isCompleted():
        return None
    values: Mapping[str, Any] = observation.get
    return values
