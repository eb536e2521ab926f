"""Materialized views: decide whether anything changed, compute, replace in one commit.

In: the task of a view. Out: a decision by fingerprint and data versions; a commit of the whole view, or of the partitions that new rows
of its input belong to (UP-8). How Spark computes a view follows from the size of what it reads (docs/decisions/0052-views-by-size.md).
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from lakelet.analysis.plan_facts import PartitionSource
from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.base.text import counted
from lakelet.config.named_tables import files_fingerprint
from lakelet.flows.context import FlowTask
from lakelet.flows.failures import failures_of
from lakelet.flows.metrics import Totals, counted_query, emit_batch, query_metrics
from lakelet.flows.target_table import emit_mapping, is_behind, quarantine_of
from lakelet.plan.decisions import Decision, Strategy, ViewState, view_decision
from lakelet.spark.expectations.measure import judged
from lakelet.spark.names.outside import outside_tables
from lakelet.spark.session_clones import flow_session
from lakelet.spark.small_inputs import IN_ONE_TASK, ONE_TASK_BYTES, made_by_lakelet
from lakelet.storage.delta import tables
from lakelet.storage.delta.batch_metrics import ComputedFrom
from lakelet.storage.delta.replaced_rows import overwrite_partitions
from lakelet.storage.delta.table_spec import TableSpec


def decide_view(task: FlowTask) -> Decision:
    """Whether the view must be computed."""
    stored = task.stored()
    table_exists = task.environment.memory.log(task.path()).version() >= 0
    state = view_state(task, stored.input_versions)
    if table_exists and is_behind(task):
        return Decision(Strategy.FULL, "its quarantine does not have the rows that it left out")
    decision = view_decision(stored.fingerprint if table_exists else None, stored.input_versions, state)
    affected = affected_partitions(task, state) if table_exists and decision.strategy is Strategy.FULL else None
    if affected is None:
        return decision
    return Decision(Strategy.PARTITIONS, f"{decision.reason} in {counted(len(affected.values), 'partition')}")


def view_state(task: FlowTask, known: Mapping[str, int]) -> ViewState:
    """The view's state now. An input's data version moves only when data files were added or removed.

    Versions belong to one table: a table that was created again, in its folder or another one, has another name (UP-3). A table from
    outside has another version whenever its files change.
    """
    environment = task.environment
    versions = {}
    for key in task.inputs:
        path = environment.storage.table_path(environment.catalog.datasets[key].name)
        log = environment.memory.log(path)
        name = f"{key}\n{path.name} {log.table_id()}"
        versions[name] = log.data_version(known.get(name, -1))
    for table in filter(None, map(outside_tables().by_key, task.flow.batch.outside)):
        versions[f"{table.given} ({table.path})"] = files_fingerprint(table) or -1
    batch = task.flow.batch
    return ViewState(batch.fingerprint, versions, batch.always)


def run_view(task: FlowTask) -> Totals:
    """Compute the view and replace its content; or some partitions of it (UP-8), or add to it where a stream reads it (UP-6).

    Raises LakeletError; then the table is as before.
    """
    environment = task.environment
    state = view_state(task, task.stored().input_versions)  # before reading: newer data only means one more run
    if environment.memory.widened:  # its inputs may have columns that were not there when it was analysed; the next update will know them
        state = replace(state, fingerprint=environment.analyzer.fingerprint(task.dataset.name.key) or state.fingerprint)
    totals = Totals()
    with flow_session(environment.spark, task.conf) as spark:
        size = input_bytes(task)
        set_by_size(task, size, spark)
        observation = Observation(f"lakelet_{uuid.uuid4().hex}")
        with failures_of(task):
            with counted_query(task, spark) as (reader, frame):
                view = ComputedFrom(state.fingerprint, state.inputs)
                measure = partial(query_metrics, task, reader, observation, event_id=str(uuid.uuid4()), view=view)
                spec = task.table_spec(frame.schema)
                in_part = _written_in_part(task, state, frame, observation, spec, measure)
                written = in_part or _written(task, frame, observation, spec, measure)
            if written.mapped:
                emit_mapping(task, spec.schema)
    totals.add(written.metrics)
    emit_batch(environment.reporter, written.metrics)  # before anything else can fail: a failure is reported after it
    environment.storage.remember(
        replace(
            task.stored(),
            columns=None,
            fingerprint=state.fingerprint,
            input_versions=dict(state.inputs),
            version=written.version,
            read_bytes=computed_bytes(task, size, in_part.metrics.bytes if in_part else None),
        )
    )
    reached("view.recorded")
    return totals


def _written(task: FlowTask, frame: DataFrame, observation: Observation, spec: TableSpec, measure: tables.Measure) -> tables.WriteResult:
    """Replace the whole content of the view."""
    spark, quarantine, streamed = frame.sparkSession, quarantine_of(task), task.is_streamed()
    rows = judged(frame, task.dataset.expectations, observation, hold=quarantine is not None and quarantine.active)
    written = tables.overwrite(spark, task.path(), rows, spec, measure=measure, streamed=streamed, quarantine=quarantine)
    if quarantine is not None:
        quarantine.create(spec, spark)
    return written


def _written_in_part(
    task: FlowTask, state: ViewState, frame: DataFrame, observation: Observation, spec: TableSpec, measure: tables.Measure
) -> tables.WriteResult | None:
    """Replace the partitions that can have changed; return None where the whole view must be computed."""
    affected = affected_partitions(task, state)
    if affected is None:
        return None
    of = affected.condition()
    rows = partial(judged, frame.where(of), (), observation)
    return overwrite_partitions(frame.sparkSession, task.path(), rows, spec, of=of, measure=measure)


# --- partitions --------------------------------------------------------------------------------------------------------------------------


_MOST = 200
"""With more partitions the whole view is computed, which takes no longer."""


@dataclass(frozen=True)
class AffectedPartitions:
    """Values of one partition column, written as in a Delta log; None is NULL. `type`: Spark's name of the column's type."""

    column: str
    type: str
    values: frozenset[str | None]

    def condition(self) -> Column:
        """Return a condition that is true for the rows of these partitions and false for all others."""
        column = F.col(f"`{self.column.replace('`', '``')}`")
        known = [F.lit(_value(text, self.type)).cast(self.type) for text in sorted(v for v in self.values if v is not None)]
        return column.isNull() if not known else (column.isNull() | column.isin(known) if None in self.values else column.isin(known))


def _value(text: str, type: str) -> Any:
    if type == "date":
        return datetime.date.fromisoformat(text)
    return text if type == "string" else int(text)


def affected_partitions(task: FlowTask, state: ViewState) -> AffectedPartitions | None:
    """Return the partitions that bring a view to `state`; None if the whole view must be computed.

    There are some if only rows of its single input have changed, the table is as the last update left it, and it has no rules.
    """
    source, stored = task.flow.batch.partitions, task.stored()
    if source is None or not _eligible(task, source, state) or stored.version is None or stored.fingerprint != state.fingerprint:
        return None
    memory, (name, version) = task.environment.memory, next(iter(state.inputs.items()))
    known = stored.input_versions.get(name)
    if known is None or name.partition("\n")[0] != source.key or memory.log(task.path()).content_version(stored.version) != stored.version:
        return None
    log = memory.log(task.environment.storage.table_path(task.environment.catalog.datasets[source.key].name))
    commits = log.commits(known, version)
    if commits is None or any(commit.described for commit in commits):
        return None
    values = _values((files for commit in commits for files in (*commit.added, *commit.taken)), source.source_column)
    return AffectedPartitions(source.column, source.type, values) if values and len(values) <= _MOST else None


def _eligible(task: FlowTask, source: PartitionSource, state: ViewState) -> bool:
    """Return whether the view may be computed in part. A declared schema may give its partition column a different type."""
    whole = task.dataset.always_whole or state.always or task.dataset.expectations or task.dataset.identities or task.is_streamed()
    types = {field.name.lower(): field.dataType.simpleString() for field in task.analyzed.schema.fields}
    return not whole and len(state.inputs) == 1 and types.get(source.column.lower()) == source.type


def _values(files: Iterable[Mapping[str, str | None] | None], column: str) -> frozenset[str | None] | None:
    """Return the values of a partition column in some files; None if a file has no value for it."""
    found: set[str | None] = set()
    for file in files:
        values = {name.lower(): value for name, value in (file or {}).items()}
        if column.lower() not in values:
            return None
        found.add(values[column.lower()] or None)  # Delta also writes NULL as an empty text
    return frozenset(found)


# --- settings by size --------------------------------------------------------------------------------------------------------------------


COMPILED_BYTES = 128 * 1024
"""From this much on compiled code pays for itself where it is kept for the next round."""

_WHOLE_STAGE, _FACTORY = "spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode"


def set_by_size(task: FlowTask, size: int | None, spark: SparkSession) -> None:
    """Set in the view's own session what fits the size of its inputs; what the pipeline, or its user, has set stays.

    `size`: that of `input_bytes`. Nothing is set where it is not known.
    """
    if size is None or not (spark.sparkContext.master or "").startswith("local"):
        return
    wanted = dict(IN_ONE_TASK) if size <= ONE_TASK_BYTES else {}
    if size > COMPILED_BYTES and task.environment.memory.queries.on:
        wanted |= {_WHOLE_STAGE: "true", _FACTORY: "FALLBACK"}
    ours = {**made_by_lakelet(), _WHOLE_STAGE: "false", _FACTORY: "NO_CODEGEN"}
    chosen = {*task.conf, *task.environment.spark.given, *task.environment.spark.settings_of_code()}
    for name, value in wanted.items():
        if name not in chosen and spark.conf.get(name, None) == ours[name]:
            spark.conf.set(name, value)


def input_bytes(task: FlowTask) -> int | None:
    """The size of all that the view reads, in bytes of its files; None where it reads something else too, or a size is not known."""
    environment = task.environment
    if not task.inputs or task.flow.batch.always or task.flow.batch.outside:
        return None
    total = 0
    for key in task.inputs:
        size = environment.memory.log(environment.storage.table_path(environment.catalog.datasets[key].name)).bytes()
        if size is None:
            return None
        total += size
    return total


def computed_bytes(task: FlowTask, size: int | None, written: int | None) -> int | None:
    """About how much of its inputs the view was computed from, in bytes; None where that is not known.

    `size`: that of all inputs; `written`: the bytes of the partitions that were computed, which are taken for the same share of the inputs
    as of the view. None where all of the view was.
    """
    if size is None or written is None:
        return size
    try:
        whole = task.environment.memory.log(task.path()).bytes()
    except (LakeletError, OSError):  # the view is written: a guess for the next session must not fail it
        return None
    return round(size * min(1.0, written / whole)) if whole else size


__all__ = [
    "AffectedPartitions",
    "affected_partitions",
    "computed_bytes",
    "decide_view",
    "input_bytes",
    "run_view",
    "set_by_size",
    "view_state",
]
