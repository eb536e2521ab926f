"""Flows into sinks: rows that leave the pipeline (SK-1 to SK-9, decision 17).

A Delta sink gets each micro-batch in one commit, under the id of the flow's checkpoint and the batch's number: Delta leaves out what it
has. A folder of files gets it once too (`sent_files`). Handlers of the user's and all other formats get a batch again when the process died
before Spark noted it. Nothing that was written is ever cleaned: a full refresh gives the flow a new checkpoint, and its batches begin with
number 0.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from lakelet.analysis.sink_paths import located_folder
from lakelet.autoloader.rounds import QueryRounds
from lakelet.autoloader.spec import SourceSpec
from lakelet.base import sentences
from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.files.paths import AnyPath, any_path
from lakelet.flows import append, once, sent_files, stream_decisions
from lakelet.flows.attempts import prepare
from lakelet.flows.context import FlowRun, RunReader
from lakelet.flows.handlers import handled
from lakelet.flows.json_growth import begin, growing
from lakelet.flows.metrics import Totals, emit_batch, emit_warnings, event_id
from lakelet.flows.once_markers import has_run, read_marker, write_marker
from lakelet.flows.positions import discard_half_written, read_checkpoint
from lakelet.flows.source_cleanup import clean_sources
from lakelet.flows.spark_file_sources import follow_file_sources
from lakelet.jvm.frames import save
from lakelet.jvm.streams import metrics_of
from lakelet.language.model import Dataset, Sink
from lakelet.language.registry import reading
from lakelet.plan.decisions import Decision
from lakelet.spark.errors.conditions import conditions
from lakelet.spark.errors.diagnosis import first_line, run_failure
from lakelet.spark.errors.user_errors import user_error
from lakelet.spark.expectations.measure import enforced
from lakelet.spark.names.reader import rows_of
from lakelet.spark.session_clones import flow_session
from lakelet.storage.delta import column_mapping
from lakelet.storage.delta.batch_metrics import BatchMetrics
from lakelet.storage.delta.locks import lock_of

_PACKAGES = {"kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13", "avro": "org.apache.spark:spark-avro_2.13"}
_NOT_WRITTEN = frozenset({"path", "tablename"})


class _Reader(RunReader):
    """Judges the rules of views without counting them: sinks have no quality metrics, and what they were given cannot be taken back."""

    def with_rules(self, dataset: Dataset, frame: DataFrame) -> DataFrame:
        return enforced(frame, dataset.expectations, str(dataset.name))


def decide_sink(run: FlowRun, sources: tuple[SourceSpec, ...], *, remember: bool) -> Decision:
    """Whether the flow has something to send now; see `stream_decisions.decide_stream`."""
    if run.flow.flow.once:
        return once.DONE if has_run(run.environment.storage, run.flow.flow) else once.NOT_YET
    return stream_decisions.decide_stream(run, sources, remember=remember)


def run_sink(run: FlowRun) -> None:
    """Send everything that is there to the sink, then stop. Raises LakeletError."""
    environment, entry = run.environment, run.stored()
    if environment.storage.registry().datasets.get(run.dataset.name.key) != entry:
        environment.storage.remember(entry)  # before anything is written: from now on a full refresh must know of it
    if run.flow.flow.once:
        _send_once(run)
        return
    started: list[_Sending] = []
    try:
        append.drained(run, lambda spark: _start(run, spark, started))
    finally:
        _report_progress(run, started)
    reached("flow.drained")
    clean_sources(run)
    reached("flow.finished")


def _sink(run: FlowRun) -> Sink:
    assert run.dataset.sink is not None
    return run.dataset.sink


def _frame(run: FlowRun, reader: RunReader) -> DataFrame:
    try:
        with reading(reader):
            return rows_of(run.flow.flow)
    except (LakeletError, PySparkException):
        raise
    except Exception as problem:  # raised by the flow's function
        raise user_error(problem, run.dataset, run.flow.flow) from problem


def _reader(run: FlowRun, spark: SparkSession, *, batch_query: bool) -> _Reader:
    environment = run.environment
    return _Reader(spark, environment.catalog, label=run.name, environment=environment, flow=run.flow.flow, batch_query=batch_query)


# ------------------------------------------------------------------------------------------------------------- streams


@dataclass
class _Sending:
    """The query of one start of a flow, and its micro-batches where Lakelet hands them over itself."""

    run: FlowRun
    reader: RunReader
    query: Any = None
    started: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None
    reported: bool = False  # whether the batches report their counts themselves
    rounds: QueryRounds | None = None  # a sink's query does not stay for further ones

    def __call__(self, batch: DataFrame, number: int) -> None:
        try:
            reached("batch.started")
            self.started.wait()
            with growing(self.run, self.reader, batch, kept=True) as given:
                rows = _hand_over(self.run, given, number, app_id=str(self.query.id))
            if rows is not None:
                self.reported = True
                emit_batch(self.run.environment.reporter, _metrics(self.run, number, rows))
        except BaseException as failure:  # Spark passes on its text only; kept for the error of the flow
            self.failure = failure
            raise


def _start(run: FlowRun, spark: SparkSession, started: list[_Sending]) -> _Sending:
    sink, reader = _sink(run), _reader(run, spark, batch_query=False)
    state = read_checkpoint(run.checkpoint())
    prepare(run, reader, spark, state)
    frame = _frame(run, reader)
    follow_file_sources(run, frame)
    begin(run, reader, spark, state)
    sending = _Sending(run, reader)
    started.append(sending)
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")  # all of them are reported
    writer = frame.writeStream.queryName(run.name).outputMode("update" if run.flow.flow.update else "append").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(run.checkpoint()))
    if sink.handler is not None or sink.is_delta or sink.is_files:
        writer = writer.foreachBatch(sending)
    else:
        writer = writer.format(sink.format).options(**sink.options)
    discard_half_written(run.checkpoint(), state)
    try:
        sending.query = writer.start()
    except AnalysisException as problem:
        raise _missing_format(run, problem) or problem from None
    sending.started.set()
    return sending


def _report_progress(run: FlowRun, started: Sequence[_Sending]) -> None:
    """Rows of sinks that count for themselves, and warnings about records that did not fit or came too late."""
    totals = Totals()
    for sending in started:
        for progress in sending.query.recentProgress if sending.query is not None else ():
            sent = _metrics(run, progress.batchId, progress.sink.numOutputRows)
            if sent.rows > 0 and not sending.reported:
                emit_batch(run.environment.reporter, sent)
            observed = {name: row.asDict() for name, row in progress.observedMetrics.items()}
            late = sum(operator.numRowsDroppedByWatermark for operator in progress.stateOperators)
            totals.add(replace(sent, late=late, sources=append.seen_of_sources(sending.reader, observed)))
    environment = run.environment
    emit_warnings(environment.reporter, totals, dataset=str(run.dataset.name), flow=run.name)


def _missing_format(run: FlowRun, problem: Exception) -> LakeletError | None:
    """The error for a data source that Spark does not have; None for any other problem."""
    if not sentences.FORMAT_MISSING.is_in(str(problem)):
        return None
    format, version = _sink(run).format, run.environment.spark.version
    package = _PACKAGES.get(format.lower())
    what = f"package {package}:{version} and what it depends on" if package else "package that has it"
    return LakeletError(
        "SINK_FORMAT_MISSING",
        f"Spark has no data source {format!r} here",
        where=run.dataset.where,
        dataset=str(run.dataset.name),
        why=first_line(problem),
        todo=f"Put the jars of the {what} into the folder `jars` of pyspark, or leave the flow {run.name} out with --select.",
    )


def _hand_over(run: FlowRun, batch: DataFrame, number: int, *, app_id: str) -> int | None:
    """Give one batch to the user's handler, a folder of files, a Delta table, or another format; the number of rows, where it is known."""
    sink = _sink(run)
    if sink.handler is not None:
        handled(run, sink.handler, batch, number)
        return None
    if sink.is_files:
        return _send_files(run, sink, batch, number, app_id)
    if not sink.is_delta:
        with lock_of(Path(str(run.dataset.name))).alone():  # nothing is known of what two jobs at the same time do to each other
            return _counted(batch, lambda rows: rows.write.format(sink.format).options(**sink.options).mode("append").save())
    path = run.path()
    with lock_of(path).alone():  # two flows may be about to make the table
        try:
            rows = _append_to(path, sink.options, batch, app_id, number)
        except PySparkException as problem:
            raise _names_refused(run, batch, problem) or problem from None
    reached("batch.committed")
    return rows


def _names_refused(run: FlowRun, batch: DataFrame, problem: PySparkException) -> LakeletError | None:
    """The error for names of columns that a Delta sink's table does not take (SK-11); None for any other problem."""
    if "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES" not in conditions(problem):
        return None
    names = column_mapping.shown(list(column_mapping.odd_names(batch.schema)))
    return LakeletError(
        "SINK_COLUMNS_REFUSED",
        f"the table of the sink {run.dataset.name} has no column mapping, which it needs for {names}",
        dataset=str(run.dataset.name),
        where=run.flow.flow.where,
        why=f"the table at {run.path()} is not the pipeline's, so nothing about it is changed",
        todo=f"Rename them in the flow {run.name}. Or give the table column mapping: a new one with the flow's "
        f'spark_conf={{"spark.databricks.delta.properties.defaults.columnMapping.mode": "name"}}, one that is there with ALTER TABLE '
        f"delta.`{run.path()}` SET TBLPROPERTIES ('{column_mapping.MODE}' = 'name').",
    )


def _send_files(run: FlowRun, sink: Sink, batch: DataFrame, number: int, app_id: str) -> int | None:
    """Send a batch into a folder of files, once; return the number of rows, None if unknown.

    Spark's own sink of files goes by the numbers of batches in the folder: it would take the first batches of a second flow, or of one that
    was reset, for batches that it has.
    """

    def write(folder: AnyPath) -> int | None:
        return _counted(batch, lambda rows: _save(rows, sink.format, sink.options, folder))

    sender = f"{run.environment.storage.root}\n{run.dataset.name}\n{run.name}"
    outbox = sent_files.Outbox(any_path(located_folder(run.dataset, sink)), run.checkpoint() / "sent.json", sender)
    rows = sent_files.send(outbox, number, write, id=app_id)
    reached("batch.committed")
    return rows


def _save(rows: DataFrame, format: str, options: Mapping[str, str], path: AnyPath) -> None:
    """Append rows at a path; options that name a target are left out."""
    writer: Any = rows.write.format(format).mode("append")
    for key, value in options.items():
        if key.lower() not in _NOT_WRITTEN:
            writer = writer.option(key, value)
    save(writer, str(path))


def _append_to(path: AnyPath, options: Mapping[str, str], batch: DataFrame, app_id: str, number: int) -> int | None:
    """Append a batch to a Delta table unless it has it; the number of rows, None if it had it."""
    transaction = {"txnAppId": app_id, "txnVersion": str(number)}
    return _counted(batch, lambda rows: _save(rows, "delta", {**options, **transaction}, path))


def _counted(batch: DataFrame, write: Callable[[DataFrame], None]) -> int | None:
    """Have a batch written, and count its rows on the way; None if they were not read."""
    observation = Observation(f"lakelet_{uuid.uuid4().hex}")
    write(batch.observe(observation, F.count(F.lit(1)).alias("rows")))
    seen = metrics_of(batch.sparkSession, observation)
    return None if seen is None else int(seen["rows"])


def _metrics(run: FlowRun, number: int, rows: int) -> BatchMetrics:
    """What is known of a batch that was sent."""
    update_id = run.environment.reporter.update_id
    id = event_id(update_id, run.name, run.generation(), number)
    return BatchMetrics(id, update_id, str(run.dataset.name), run.name, number, rows)


# ---------------------------------------------------------------------------------------------------------------- once


def _send_once(run: FlowRun) -> None:
    """Send a batch query's rows, and note that it was done; the note names the batch before it is sent, so that Delta knows it again."""
    storage, flow = run.environment.storage, run.flow.flow
    id = read_marker(storage, flow).get("id")
    if id is None:
        id = str(uuid.uuid4())
        write_marker(storage, flow, id=id, done=False)
    reached("batch.started")
    with flow_session(run.environment.spark, run.conf) as spark:
        try:
            rows = _hand_over(run, _frame(run, _reader(run, spark, batch_query=True)), 0, app_id=str(id))
        except PySparkException as problem:
            missing = _missing_format(run, problem)
            where, dataset = run.flow.flow.where, str(run.dataset.name)
            raise missing or run_failure(problem, dataset=dataset, where=where, what="the flow failed while it ran") from None
    if rows is not None:
        emit_batch(run.environment.reporter, _metrics(run, 0, rows))
    reached("flow.drained")
    write_marker(storage, flow, id=id, done=True)
    reached("flow.finished")
