"""Quarantined rows that pass the present rules go back into their dataset, once (QU-20 ff, docs/decisions/0033-quarantine.md).

Two commits: the quarantine's says which rows were released, and by which update; the dataset's appends just these, under a txn of that
update. The first one decides: what died between the two is finished by the next update.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.base.names import quoted
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.flows.context import FlowTask, event_id
from lakelet.flows.metrics import emit_batch
from lakelet.jvm.errors import Py4JJavaError
from lakelet.jvm.streams import metrics_of
from lakelet.language.model import Expectation, Kind
from lakelet.spark.errors.diagnosis import first_line, run_failure
from lakelet.spark.expectations.measure import JudgedRows, counts, judged_again
from lakelet.spark.session_clones import flow_session
from lakelet.storage.delta import schemas, tables
from lakelet.storage.delta.batch_metrics import BatchMetrics
from lakelet.storage.delta.locks import lock_of
from lakelet.storage.delta.quarantine import BROKEN, OWN, RELEASED, QuarantineCommit, of_batches, unfinished_batches
from lakelet.storage.delta.transaction import Transaction, Txn
from lakelet.storage.rule_counts import RuleCount

_KEY = "lakelet_replay"


@dataclass(frozen=True)
class ReplayResult:
    """Result of a replay: quarantined rows judged, those of them released, and the counts of the rules.

    `waiting`: quarantined rows were left out because an update has not finished the batch that they came with.
    """

    judged: int
    released: int
    rules: tuple[RuleCount, ...]
    waiting: bool = False


def check_replay(task: FlowTask) -> None:
    """Raise QUARANTINE_REPLAY for a dataset that rows cannot be added to, or that has no quarantine."""
    name, where = str(task.dataset.name), task.dataset.where
    if task.analyzed.kind is not Kind.STREAMING_TABLE or any(flow.kind.whole for flow in task.analyzed.flows):
        what = "its rows, and those of its quarantine, are computed again as a whole"
        todo = f"Correct the rule or what it reads, then: lakelet run --select {name}"
        raise LakeletError("QUARANTINE_REPLAY", what, dataset=name, where=where, todo=todo)
    if _place(task) is None:
        todo = 'Keep its dropped rows from now on: table_properties={"lakelet.quarantine": "true"}'
        raise LakeletError("QUARANTINE_REPLAY", "it has no quarantine", dataset=name, where=where, todo=todo)


def replay(task: FlowTask) -> ReplayResult:
    """Judge the quarantined rows by the present rules, and give those that pass to the dataset.

    Raises LakeletError; then nothing was released.
    """
    check_replay(task)
    finish_replay(task)
    path = _place(task)
    assert path is not None
    with flow_session(task.environment.spark, task.conf) as spark, lock_of(path).alone():
        try:
            return _replay(task, spark, path)
        except (LakeletError, schemas.Incompatible, PySparkException, Py4JJavaError) as problem:
            name, where = str(task.dataset.name), task.dataset.where
            raise run_failure(problem, dataset=name, where=where, what="the held rows could not be given back") from None


def _place(task: FlowTask) -> AnyPath | None:
    storage = task.environment.storage
    known = storage.registry().datasets.get(task.dataset.quarantine.key)
    return storage.at(known.path) if known is not None and known.quarantine_of is not None else None


def _replay(task: FlowTask, spark: SparkSession, path: AnyPath) -> ReplayResult:
    environment, rules = task.environment, task.dataset.expectations
    spec = task.table_spec(task.analyzed.schema)
    transaction = Transaction(spark, path)
    if transaction.read_version < 0 or transaction.outdated(spec):
        return ReplayResult(0, 0, ())
    stored = transaction.rows()
    held = F.col(RELEASED).isNull()
    files = transaction.files_of(stored.where(held))  # those with nothing but released rows stay as they are
    rows = transaction.rows_of(files) if files else stored.limit(0)
    tried = _tried(task)
    waits = [batch for batch in unfinished_batches(transaction, Transaction(spark, task.path())) if batch.app_id in tried]
    for batch in waits:
        held = held & ~F.coalesce(batch.condition(), F.lit(False))
    _check_rules(task, rows, rules)
    observation, release = Observation(f"lakelet_{uuid.uuid4().hex}"), environment.reporter.update_id
    marked = judged_again(rows, rules, observation, held, broken=BROKEN, released=(RELEASED, release))
    written = transaction.write(schemas.aligned(marked, transaction.schema))
    found = counts(rules, metrics_of(spark, observation))
    quality = JudgedRows(str(task.dataset.name), rules, found).rule_counts()
    metrics = _metrics(task, release, found.kept, quality)
    if not found.kept:
        transaction.discard(written)
        if found.rows:
            emit_batch(environment.reporter, metrics)
        return ReplayResult(found.rows, 0, quality, bool(waits))

    def decide() -> BatchMetrics:
        record = {"update_id": release, "judged": found.rows, "released": found.kept, "rules": [asdict(rule) for rule in quality]}
        transaction.commit([*(file.remove() for file in files), *written], user_metadata={_KEY: record}, txn=Txn(f"replay/{release}", 0))
        reached("quarantine.released")
        return metrics

    released = _of(transaction.rows_of(written), release)
    _append(task, spark, released, release, decide)
    return ReplayResult(found.rows, found.kept, quality, bool(waits))


def _tried(task: FlowTask) -> set[str]:
    """The applications whose unfinished batches the flows of the dataset try again: not those from before a checkpoint was reset."""
    flows = [FlowTask(task.environment, task.analyzed, flow) for flow in task.analyzed.flows]
    return {of_batches(f"{flow.name}/{flow.checkpoint_name()}{once}") for flow in flows for once in ("", "/once")}


def _check_rules(task: FlowTask, rows: DataFrame, rules: Sequence[Expectation]) -> None:
    for rule in rules:
        try:
            rows.select(F.expr(rule.constraint) if isinstance(rule.constraint, str) else rule.constraint)
        except PySparkException as problem:
            what = f"the rule {rule.name!r} needs more than the columns that held rows have: {rule.text}"
            raise LakeletError(
                "QUARANTINE_REPLAY", what, dataset=str(task.dataset.name), where=rule.where, why=first_line(problem)
            ) from None


def _of(rows: DataFrame, release: str) -> DataFrame:
    """The rows that an update released, with the columns of the dataset."""
    own = {field.name for field in OWN.fields}
    return rows.where(_is_released(release)).select(*(F.col(quoted(name)) for name in rows.columns if name not in own))


def _is_released(release: str) -> Column:
    return F.col(RELEASED) == F.lit(release)


def _append(task: FlowTask, spark: SparkSession, rows: DataFrame, release: str, measure: tables.Measure) -> None:
    """Append released rows to the dataset, and report it. `measure`: called when their files are written, before they are committed."""
    spec = task.table_spec(task.analyzed.schema)
    txn = Txn(f"replay/{release}", 0)
    written = tables.append(spark, task.path(), rows, spec, txn=txn, measure=measure, replayed=True)
    if written is not None:
        emit_batch(task.environment.reporter, written.metrics)


def _metrics(task: FlowTask, release: str, released: int, quality: tuple[RuleCount, ...]) -> BatchMetrics:
    return BatchMetrics(
        event_id=event_id(task.stored().path, "replay", release),
        update_id=task.environment.reporter.update_id,
        dataset=str(task.dataset.name),
        flow=task.name,
        batch_id=None,
        rows=released,
        expectations=quality,
        released=released,
    )


def finish_replay(task: FlowTask) -> bool:
    """Append the rows that the last replay has released, if its process died before it had done that. Whether there was something to do."""
    path = _place(task)
    record = last_release(TableLog(path)) if path is not None else None
    if path is None or record is None or _is_done(task, record["update_id"]):
        return False
    release, quality = record["update_id"], tuple(RuleCount(**rule) for rule in record["rules"])
    with flow_session(task.environment.spark, task.conf) as spark:
        transaction = Transaction(spark, path)
        if transaction.outdated(task.table_spec(task.analyzed.schema)):
            return False
        rows = _of(transaction.rows(), release)
        _append(task, spark, rows, release, lambda: _metrics(task, release, record["released"], quality))
    return True


def last_release(log: TableLog) -> Mapping[str, Any] | None:
    """Return the record of the newest replay in the log of a quarantine; None if an update has written there since.

    An update finishes the last replay before its first flow begins, so the log is read back to the newest batch only.
    """
    for number in range(log.version(), -1, -1):
        commit = log.commit(number)
        if commit is None:
            return None
        said = commit.user_metadata or {}
        if _KEY in said:
            found: Mapping[str, Any] = said[_KEY]
            return found
        if QuarantineCommit.of_commit(said) is not None:
            return None
    return None


def _is_done(task: FlowTask, release: str) -> bool:
    """Whether the dataset has got what an update released: by its txn, or, where the table lets these expire, by the commit itself."""
    log = TableLog(task.path())
    if log.version() < 0:
        return False
    if Transaction(task.environment.spark, task.path()).done(Txn(f"replay/{release}", 0)):
        return True
    wanted = event_id(task.stored().path, "replay", release)
    commits = (log.commit(number) for number in range(log.version(), -1, -1))
    return any(
        found.event_id == wanted for c in commits if c is not None and (found := BatchMetrics.of_commit(c.user_metadata)) is not None
    )


__all__ = ["ReplayResult", "check_replay", "finish_replay", "last_release", "replay"]
