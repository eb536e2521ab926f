"""Change flows that read a batch: `once`, and snapshots, periodic or given by a function (CD-13, CD-17).

What was applied last is kept in the commit that applied it: its number, and the version of a snapshot.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.errors import LakeletError
from lakelet.base.user_code import called
from lakelet.cdc import writing
from lakelet.cdc.changes import END, START, Layout, col, layout, same_values
from lakelet.cdc.mirror import INTERNAL
from lakelet.cdc.versions import copy_of, from_stored, is_after, sequence_of, to_stored
from lakelet.flows import once
from lakelet.flows.context import FlowRun, run_reader
from lakelet.flows.metrics import Totals, emit_batch, event_id
from lakelet.flows.once_marks import has_run, noted, put_note
from lakelet.language.model import ChangeSpec
from lakelet.language.registry import reading
from lakelet.plan.decisions import Decision, Strategy
from lakelet.spark.errors.diagnosis import run_failure
from lakelet.spark.errors.user_errors import user_error
from lakelet.spark.expectations.measure import counts, data_quality, judged, violation_error
from lakelet.spark.expectations.observed import reported
from lakelet.spark.names.reader import data_frame, rows_of
from lakelet.spark.session_clones import flow_session
from lakelet.storage.delta import schemas
from lakelet.storage.delta.tables import TableLog
from lakelet.storage.delta.transaction import Transaction

_GONE = "__lakelet_gone"


def decide(run: FlowRun) -> Decision:
    """Whether the flow has something to do: `once` only until it was done, snapshots in every update."""
    spec = run.flow.flow.changes
    if spec is not None and spec.once:
        applied = not callable(spec.snapshots) and _newest(run) is not None  # a function may have more of them than were applied
        return once.DONE if applied or has_run(run.environment.storage, run.flow.flow) else once.NOT_YET
    return Decision(Strategy.STREAM, "a snapshot is compared in every update")


def run_batches(run: FlowRun) -> Totals:
    """Apply what there is. Raises LakeletError; then the table is as the last complete snapshot left it."""
    spec = run.flow.flow.changes
    assert spec is not None
    totals = Totals()
    writing.catch_up(run.path())
    with flow_session(run.environment.spark, run.conf) as spark:
        reader = run_reader(run, spark, batch_query=True)
        try:
            with reading(reader):
                if spec.once and spec.snapshots is None:
                    frame = rows_of(run.flow.flow)
                    _apply(run, spec, frame, layout(spec, frame), totals, None)
                else:
                    for snapshot, version in _snapshots(run, spec):
                        _apply_snapshot(run, spec, snapshot, version, totals)
                    if spec.once and (last := noted(run.environment.storage, run.flow.flow)):
                        put_note(run.environment.storage, run.flow.flow, done=True, facts=last["facts"])
        except (LakeletError, schemas.Incompatible, PySparkException) as problem:
            where = run.flow.flow.where
            raise run_failure(problem, dataset=str(run.dataset.name), where=where, what="the changes could not be applied") from None
        except Exception as problem:
            raise user_error(problem, run.dataset, run.flow.flow) from problem
    environment = run.environment
    columns = environment.spark.read.format("delta").load(str(run.path())).schema.json()
    environment.storage.remember(replace(run.stored(), columns=columns))
    return totals


def _snapshots(run: FlowRun, spec: ChangeSpec) -> Iterator[tuple[DataFrame, Any]]:
    """(snapshot, version), one after the other. Raises CDC_SNAPSHOT_INVALID for a version that does not ascend."""
    if spec.snapshots == "periodic":
        yield rows_of(run.flow.flow), datetime.now(timezone.utc)
        return
    assert callable(spec.snapshots)
    last = _last_version(run)
    while True:
        given = copy_of(called(spec.snapshots, last))
        if given is None:
            return
        frame, version = given
        if last is not None and not is_after(version, last):
            raise LakeletError(
                "CDC_SNAPSHOT_INVALID",
                f"the snapshot has version {version!r}, and {last!r} has been applied already",
                todo="Return snapshots in ascending order of their versions, and None after the last one.",
            )
        yield data_frame(frame, run.flow.flow), version
        last = version


def _apply_snapshot(run: FlowRun, spec: ChangeSpec, snapshot: DataFrame, version: Any, totals: Totals) -> None:
    """A snapshot as the events that lead to it (CD-17): what is new or differs, and what is no more."""
    dated = replace(spec, sequence_by=sequence_of(version), snapshots=None)
    shape = layout(dated, snapshot)
    counted = snapshot.groupBy(*map(col, shape.keys)).count().where("count > 1")
    repeated = counted.select(F.to_json(F.struct(*map(col, shape.keys))), "count").first()
    if repeated is not None:
        what = f"the key {repeated[0]} occurs {repeated['count']} times in the snapshot of {version!r}"
        raise LakeletError("CDC_SNAPSHOT_INVALID", what)
    wanted = snapshot.select(*map(col, shape.columns.fieldNames())).withColumn(_GONE, F.lit(False))
    changed = replace(dated, apply_as_deletes=F.col(_GONE))
    _apply(run, changed, wanted, shape, totals, version)


def _differences(run: FlowRun, wanted: DataFrame, shape: Layout) -> DataFrame:
    """The rows of a snapshot that the target does not have like that, and its open rows that the snapshot does not have.

    A column or field that only one of them has is NULL in the other.
    """
    target = Transaction(wanted.sparkSession, run.path())
    if target.read_version < 0 or target.outdated(run.table_spec(shape.visible)):
        return wanted
    now = wanted.sparkSession.read.format("delta").load(str(run.path()))
    now = now.where(F.col(END).isNull()) if shape.history else now
    stored = T.StructType([f for f in target.schema.fields if not (shape.history and f.name in (START, END))])
    merged = schemas.merge(stored, shape.columns, widen=schemas.widens(run.table_spec(shape.visible).properties or {}))
    keys, row = [col(key) for key in shape.keys], F.struct(*map(col, merged.fieldNames()))
    known = schemas.conformed(now, merged).select(*keys, same_values(row).alias("__now"))
    told = schemas.conformed(wanted, merged).select(*keys, row.alias("__row"), same_values(row).alias("__told"))
    both = told.join(known, list(shape.keys), "full_outer").where(~F.col("__told").eqNullSafe(F.col("__now")))
    own = {key.lower() for key in shape.keys}
    values = [col(name) if name.lower() in own else F.col("__row")[name].alias(name) for name in merged.fieldNames()]
    return both.select(*values, F.col("__told").isNull().alias(_GONE))


def _apply(run: FlowRun, spec: ChangeSpec, frame: DataFrame, shape: Layout, totals: Totals, version: Any) -> None:
    """One batch, in one commit with its counts and the snapshot's version."""
    before = _newest(run)
    number = 0 if before is None else before["batch_id"] + 1
    observation = Observation(f"lakelet_{uuid.uuid4().hex}")
    rules = run.dataset.expectations
    facts: dict[str, Any] = {}

    def measure() -> tuple[Mapping[str, Any], bool]:
        found = counts(rules, reported(frame.sparkSession, observation))
        if found.violation:
            raise violation_error(run.name, str(run.dataset.name), found, run.dataset.where)
        facts.update(
            event_id=event_id(run.path(), run.name, run.generation(), number),
            update_id=run.environment.update_id,
            dataset=str(run.dataset.name),
            flow=run.name,
            batch_id=number,
            rows=found.kept,
            dropped=found.dropped,
            expectations=data_quality(str(run.dataset.name), rules, found),
            late=0,
            sources=[],
            generation=run.generation(),
            snapshot=None if version is None else to_stored(version),
        )
        return {"lakelet": facts}, True

    rows = judged(frame, rules, observation)
    wanted, flows, streamed = run.table_spec(shape.visible), run.change_specs, run.is_streamed()
    writing.settle(frame.sparkSession, flows, run.path(), shape, wanted)  # what is compared with the snapshot must be the table
    events = rows if version is None else _differences(run, rows, shape)
    app = (f"{run.name}/{run.generation()}", number)
    applied = writing.apply(spec, flows, run.path(), events, shape, wanted, app=app, measure=measure, replayed=False, streamed=streamed)
    kept = {"batch_id": number, "snapshot": facts.get("snapshot")}
    all_of_it = run.flow.flow.changes is None or not callable(run.flow.flow.changes.snapshots)
    put_note(run.environment.storage, run.flow.flow, done=all_of_it, facts=kept)  # Delta cleans its log up after a month
    if applied is not None:
        facts.update(rows=applied.upserted, upserted=applied.upserted, deleted=applied.deleted, rewritten=applied.rewritten)
        totals.add(facts)
        emit_batch(run.environment.emit, facts)


def _newest(run: FlowRun) -> Mapping[str, Any] | None:
    """What the flow kept in its newest commit since the last reset; of a commit whose log file is gone, in its note. None for no commit."""
    log = TableLog(run.path() / INTERNAL)
    for number in range(log.version(), -1, -1):
        commit = log.commit(number)
        if commit is None:
            found: Mapping[str, Any] | None = noted(run.environment.storage, run.flow.flow).get("facts")
            return found
        facts: Mapping[str, Any] | None = (commit.user_metadata or {}).get("lakelet")
        if facts and facts.get("flow") == run.name and facts.get("generation") == run.generation():
            return facts
    return None


def _last_version(run: FlowRun) -> Any:
    facts = _newest(run)
    return from_stored(facts["snapshot"]) if facts and facts.get("snapshot") else None
