"""Materialized views: decide whether anything changed, compute, replace in one commit."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import Observation

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.config.named_tables import mark
from lakelet.flows.context import FlowRun, RunReader
from lakelet.flows.counted import counted_query, of_views
from lakelet.flows.mapping_notice import emit_mapping
from lakelet.flows.metrics import Totals, emit_batch
from lakelet.plan.decisions import Decision, ViewState, view_decision
from lakelet.spark.errors.diagnosis import run_failure
from lakelet.spark.errors.user_errors import user_error
from lakelet.spark.expectations.measure import counts, data_quality, judged, violation_error
from lakelet.spark.expectations.observed import reported
from lakelet.spark.names import named_tables
from lakelet.spark.session_clones import flow_session
from lakelet.storage.delta import schemas, tables


def decide(run: FlowRun, inputs: tuple[str, ...]) -> Decision:
    """Whether the view must be computed. `inputs`: keys of the stored datasets it reads, views looked through."""
    stored = run.stored()
    table_exists = run.environment.log(run.path()).version() >= 0
    state = _state(run, inputs, stored.input_versions, by_old_names=True)
    return view_decision(stored.fingerprint if table_exists else None, stored.input_versions, state)


def _state(run: FlowRun, inputs: tuple[str, ...], known: Mapping[str, int], *, by_old_names: bool = False) -> ViewState:
    """The view's state now. An input's data version moves only when data files were added or removed.

    Versions belong to one table: one that was made again, in its folder or another one, has another name (UP-3). `by_old_names`: what an
    older Lakelet stored without that is still good. That of a table from outside is another one whenever its files are.
    """
    environment = run.environment
    versions = {}
    for key in inputs:
        path = environment.storage.table_path(environment.catalog.datasets[key].name)
        log = environment.log(path)
        name = f"{key}\n{path.name} {log.table_id()}"
        if by_old_names and name not in known and known.get(key, log.version() + 1) <= log.version():
            name = key
        versions[name] = log.data_version(known.get(name, -1))
    for table in filter(None, map(named_tables.named().by_key, run.flow.outside)):
        versions[f"{table.given} ({table.place})"] = mark(table) or -1
    return ViewState(run.flow.fingerprint, versions, run.flow.always)


def run_complete(run: FlowRun, inputs: tuple[str, ...]) -> Totals:
    """Compute the view and replace its content, or add to it where a stream reads it (UP-6).

    Raises LakeletError; then the table is as before.
    """
    environment = run.environment
    state = _state(run, inputs, run.stored().input_versions)  # before reading: newer data only means one more run
    if environment.widened:  # its inputs may have columns that were not there when it was analysed; the next update will know them
        state = replace(state, fingerprint=environment.fingerprint(run.dataset.name.key) or state.fingerprint)
    totals = Totals()
    with flow_session(environment.spark, run.conf) as spark:
        observation = Observation(f"lakelet_{uuid.uuid4().hex}")
        facts: dict[str, Any] = {}
        try:
            with counted_query(run, spark) as (reader, frame):

                def measure() -> tuple[Mapping[str, Any], bool]:
                    facts.update(facts_of(run, reader, observation), view={"fingerprint": state.fingerprint, "inputs": dict(state.inputs)})
                    return {"lakelet": facts}, True

                spec, rows = run.table_spec(frame.schema), judged(frame, run.dataset.expectations, observation)
                written = tables.overwrite(spark, run.path(), rows, spec, measure=measure, streamed=run.is_streamed())
            if written.mapped:
                emit_mapping(run, spec.schema)
        except (LakeletError, schemas.Incompatible, PySparkException) as problem:
            raise _failed(problem, run) from None
        except Exception as problem:
            if type(problem).__module__.partition(".")[0] == "py4j":
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
    found = counts(run.dataset.expectations, reported(reader.spark, observation))
    if found.violation:
        raise violation_error(run.name, str(run.dataset.name), found, run.dataset.where)
    of_view, dropped = of_views(run, reader.watches, lambda name: reported(reader.spark, reader.observations[name]))
    quality = [*data_quality(str(run.dataset.name), run.dataset.expectations, found), *of_view]
    return {
        "event_id": str(uuid.uuid4()),
        "update_id": run.environment.update_id,
        "dataset": str(run.dataset.name),
        "flow": run.name,
        "batch_id": None,
        "rows": found.kept,
        "dropped": found.dropped + dropped,
        "expectations": quality,
        "late": 0,
        "sources": [],
    }
