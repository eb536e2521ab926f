"""Change flows that read a batch: `once`, and snapshots, periodic or given by a function (dlt-semantics 6.2, 6.3). Layer 4.

What was applied last is kept in the commit that applied it: its number, and the version of a snapshot.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from lakelet import schemas
from lakelet.cdc import writing
from lakelet.cdc.changes import END, Layout, col, layout, same_values
from lakelet.cdc.mirror import INTERNAL
from lakelet.cdc.versions import copy_of, sequence_of
from lakelet.clones import flow_session
from lakelet.diagnosis import run_failure
from lakelet.errors import LakeletError
from lakelet.expectations.measure import counts, data_quality, judged, violation_error
from lakelet.flows import once
from lakelet.flows.context import FlowRun, run_reader
from lakelet.flows.measured import Totals, emit_batch, event_id
from lakelet.flows.oncenotes import has_run, noted, put_note
from lakelet.mistakes import user_error
from lakelet.model import ChangeSpec
from lakelet.plan import Decision, Strategy
from lakelet.reads import data_frame
from lakelet.registry import reading
from lakelet.tables import TableLog, Transaction

_GONE = "__lakelet_gone"
_KINDS: Mapping[str, Any] = {"int": int, "str": str, "float": float, "Decimal": Decimal}


def decide(run: FlowRun) -> Decision:
    """Whether the flow has something to do: `once` only until it was done, snapshots in every update."""
    spec = run.flow.flow.changes
    if spec is not None and spec.once:
        return once.DONE if has_run(run.environment.storage, run.flow.flow) or _newest(run) is not None else once.NOT_YET
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
                if spec.once:
                    frame = data_frame(run.flow.flow.query(), run.flow.flow)
                    _apply(run, spec, frame, layout(spec, frame), totals, None)
                else:
                    for snapshot, version in _snapshots(run, spec):
                        _apply_snapshot(run, spec, snapshot, version, totals)
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
        yield data_frame(run.flow.flow.query(), run.flow.flow), datetime.now(timezone.utc)
        return
    assert callable(spec.snapshots)
    last = _last_version(run)
    while True:
        given = copy_of(spec.snapshots(last))
        if given is None:
            return
        frame, version = given
        if last is not None and not version > last:
            raise LakeletError(
                "CDC_SNAPSHOT_INVALID",
                f"the snapshot has version {version!r}, and {last!r} has been applied already",
                todo="Return snapshots in ascending order of their versions, and None after the last one.",
            )
        yield data_frame(frame, run.flow.flow), version
        last = version


def _apply_snapshot(run: FlowRun, spec: ChangeSpec, snapshot: DataFrame, version: Any, totals: Totals) -> None:
    """A snapshot as the events that lead to it (6.3): what is new or differs, and what is no more."""
    dated = replace(spec, sequence_by=sequence_of(version), snapshots=None)
    shape = layout(dated, snapshot)
    repeated = snapshot.groupBy(*map(col, shape.keys)).count().where("count > 1").first()
    if repeated is not None:
        keys = ", ".join(f"{key}={repeated[key]!r}" for key in shape.keys)
        raise LakeletError("CDC_SNAPSHOT_INVALID", f"the key {keys} occurs {repeated['count']} times in the snapshot of {version!r}")
    wanted = snapshot.select(*map(col, shape.columns.fieldNames())).withColumn(_GONE, F.lit(False))
    changed = replace(dated, apply_as_deletes=F.col(_GONE))
    _apply(run, changed, wanted, shape, totals, version)


def _differences(run: FlowRun, wanted: DataFrame, shape: Layout) -> DataFrame:
    """The rows of a snapshot that the target does not have like that, and its open rows that the snapshot does not have."""
    target = Transaction(wanted.sparkSession, run.path())
    if target.read_version < 0 or target.outdated(run.table_spec(shape.visible)):
        return wanted
    now = wanted.sparkSession.read.format("delta").load(str(run.path()))
    now = now.where(F.col(END).isNull()) if shape.history else now
    keys, columns = [col(key) for key in shape.keys], shape.columns.fieldNames()
    known = now.select(*keys, same_values(F.struct(*(_or_null(now, name) for name in columns))).alias("__now"))
    told = wanted.select(*keys, F.struct(*map(col, columns)).alias("__row"), same_values(F.struct(*map(col, columns))).alias("__told"))
    both = told.join(known, list(shape.keys), "full_outer").where(~F.col("__told").eqNullSafe(F.col("__now")))
    values = [col(name) if name in shape.keys else F.col("__row")[name].alias(name) for name in columns]
    return both.select(*values, F.col("__told").isNull().alias(_GONE))


def _or_null(frame: DataFrame, name: str) -> Any:
    known = {column.lower(): column for column in frame.columns}
    return col(known[name.lower()]).alias(name) if name.lower() in known else F.lit(None).alias(name)


def _apply(run: FlowRun, spec: ChangeSpec, frame: DataFrame, shape: Layout, totals: Totals, version: Any) -> None:
    """One batch, in one commit with its counts and the snapshot's version."""
    before = _newest(run)
    number = 0 if before is None else before["batch_id"] + 1
    observation = Observation(f"lakelet_{uuid.uuid4().hex}")
    rules = run.dataset.expectations
    facts: dict[str, Any] = {}

    def measure() -> tuple[Mapping[str, Any], bool]:
        found = counts(rules, observation.get)
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
            snapshot=None if version is None else _stored_version(version),
        )
        return {"lakelet": facts}, True

    rows = judged(frame, rules, observation)
    events = rows if version is None else _differences(run, rows, shape)
    app = (f"{run.name}/{run.generation()}", number)
    wanted = run.table_spec(shape.visible)
    applied = writing.apply(spec, run.path(), events, shape, wanted, app=app, measure=measure, replayed=False)
    kept = {"batch_id": number, "snapshot": facts.get("snapshot")}
    put_note(run.environment.storage, run.flow.flow, done=True, facts=kept)  # Delta cleans its log up after a month
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
    return _version_of(facts["snapshot"]) if facts and facts.get("snapshot") else None


def _stored_version(version: Any) -> Mapping[str, str]:
    """A version as JSON. Raises CDC_SNAPSHOT_INVALID for a kind of value that cannot be kept."""
    kind = type(version).__name__
    if isinstance(version, datetime | date):
        return {"type": kind, "value": version.isoformat()}
    if kind in _KINDS:
        return {"type": kind, "value": str(version)}
    todo = "Return a number, a text, a date or a timestamp as version."
    raise LakeletError("CDC_SNAPSHOT_INVALID", f"a snapshot has a version of type {kind}", todo=todo)


def _version_of(stored: Mapping[str, str]) -> Any:
    kind, value = stored["type"], stored["value"]
    if kind in ("datetime", "date"):
        return (datetime if kind == "datetime" else date).fromisoformat(value)
    return _KINDS[kind](value)
