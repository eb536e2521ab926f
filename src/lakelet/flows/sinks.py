"""Flows into sinks: rows that leave the pipeline (SK-1 to SK-9, decision 17).

A Delta sink gets each micro-batch in one commit, under the id of the flow's checkpoint and the batch's number: Delta leaves out what it
has. A folder of files gets it once too (`send`). Handlers of the user's and all other formats get a batch again when the process died
before Spark noted it. Nothing that was written is ever cleaned: a full refresh gives the flow a new checkpoint, and its batches begin with
number 0.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from lakelet.analysis.sink_paths import located_folder
from lakelet.autoloader.continuous_rounds import QueryRounds
from lakelet.base import sentences
from lakelet.base.errors import LakeletError, unknown_format
from lakelet.base.failpoints import reached
from lakelet.files.durable import sync_folder, write_atomically
from lakelet.files.paths import AnyPath, any_path, moved, names_in, remove_tree
from lakelet.flows import once, streams
from lakelet.flows.checkpoints import discard_half_written, has_run, read_checkpoint, read_marker, write_marker
from lakelet.flows.context import FileReads, FlowTask, RunFiles, RunReader, event_id
from lakelet.flows.handlers import handled
from lakelet.flows.json_growth import begin, growth_checked
from lakelet.flows.metrics import Totals, emit_batch, emit_warnings
from lakelet.flows.micro_batches import seen_of_sources
from lakelet.flows.source_upkeep import clean_sources, follow_file_sources
from lakelet.flows.streams import file_reads
from lakelet.jvm.frames import save
from lakelet.jvm.streams import metrics_of
from lakelet.language.model import Dataset, Sink
from lakelet.language.registry import reading
from lakelet.plan.decisions import Decision
from lakelet.plan.kinds import SINK_UPDATES
from lakelet.spark.errors.conditions import conditions
from lakelet.spark.errors.diagnosis import first_line, run_failure
from lakelet.spark.errors.user_errors import user_error
from lakelet.spark.expectations.measure import enforced
from lakelet.spark.names.reader import rows_of
from lakelet.spark.session_clones import flow_session
from lakelet.storage.delta import column_mapping
from lakelet.storage.delta.batch_metrics import BatchMetrics
from lakelet.storage.delta.locks import lock_of

_NOT_WRITTEN = frozenset({"path", "tablename"})


class _Reader(RunReader):
    """Judges the rules of views without counting them: sinks have no quality metrics, and what they were given cannot be taken back."""

    def with_rules(self, dataset: Dataset, frame: DataFrame) -> DataFrame:
        return enforced(frame, dataset.expectations, str(dataset.name), self.samples)


def run_sink(task: FlowTask) -> None:
    """Send everything that is there to the sink, then stop. Raises LakeletError."""
    _register(task)
    started: list[_Sending] = []
    try:
        streams.drained(task, lambda spark: _start(task, spark, started))
    finally:
        _report_progress(task, started)
    reached("flow.drained")
    clean_sources(task)
    reached("flow.finished")


def _register(task: FlowTask) -> None:
    """Note the sink before anything is written: from now on a full refresh must know of it."""
    storage, entry = task.environment.storage, task.stored()
    if storage.registry().datasets.get(task.target) != entry:
        storage.remember(entry)


def _sink(task: FlowTask) -> Sink:
    assert task.dataset.sink is not None
    return task.dataset.sink


def _frame(task: FlowTask, reader: RunReader) -> DataFrame:
    try:
        with reading(reader):
            return rows_of(task.declared)
    except (LakeletError, PySparkException):
        raise
    except Exception as problem:  # raised by the flow's function
        raise user_error(problem, task.dataset, task.declared) from problem


def _reader(task: FlowTask, spark: SparkSession, reads: FileReads | None = None) -> _Reader:
    """As `run_reader`."""
    environment = task.environment
    files = RunFiles(spark, environment, reads or FileReads())
    return _Reader(spark, environment.catalog, environment=environment, flow=task.declared, files=files, batch_query=reads is None)


# ------------------------------------------------------------------------------------------------------------- streams


@dataclass
class _Sending:
    """The query of one start of a flow, and its micro-batches where Lakelet hands them over itself."""

    task: FlowTask
    reader: RunReader
    query: Future[Any] = field(default_factory=Future)
    failure: BaseException | None = None
    reported: bool = False  # whether the batches report their counts themselves
    rounds: QueryRounds | None = None  # a sink's query does not stay for further ones

    def __call__(self, batch: DataFrame, number: int) -> None:
        try:
            reached("batch.started")
            query = self.query.result()
            with growth_checked(self.task, self.reader, batch, kept=True) as given:
                rows = _hand_over(self.task, given, number, app_id=str(query.id))
            if rows is not None:
                self.reported = True
                emit_batch(self.task.environment.reporter, _metrics(self.task, number, rows))
        except BaseException as failure:  # Spark passes on its text only; kept for the error of the flow
            self.failure = failure
            raise


def _start(task: FlowTask, spark: SparkSession, started: list[_Sending]) -> _Sending:
    sink, state = _sink(task), read_checkpoint(task.checkpoint())
    reader = _reader(task, spark, file_reads(task, spark, state))
    frame = _frame(task, reader)
    follow_file_sources(task, frame)
    begin(task, reader, spark, state)
    sending = _Sending(task, reader)
    started.append(sending)
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "10000")  # all of them are reported
    writer = (
        frame.writeStream.queryName(task.name)
        .outputMode("update" if task.flow.kind is SINK_UPDATES else "append")
        .trigger(availableNow=True)
    )
    writer = writer.option("checkpointLocation", str(task.checkpoint()))
    if sink.handler is not None or sink.is_delta or sink.is_files:
        writer = writer.foreachBatch(sending)
    else:
        writer = writer.format(sink.format).options(**sink.options)
    discard_half_written(task.checkpoint(), state)
    try:
        sending.query.set_result(writer.start())
    except Exception as problem:  # of Java itself where no format of Spark's has that name
        raise _missing_format(task, problem) or problem from None
    return sending


def _report_progress(task: FlowTask, started: Sequence[_Sending]) -> None:
    """Rows of sinks that count for themselves, and warnings about records that did not fit or came too late."""
    totals = Totals()
    for sending in started:
        for progress in sending.query.result().recentProgress if sending.query.done() else ():
            sent = _metrics(task, progress.batchId, progress.sink.numOutputRows)
            if sent.rows > 0 and not sending.reported:
                emit_batch(task.environment.reporter, sent)
            observed = {name: row.asDict() for name, row in progress.observedMetrics.items()}
            late = sum(operator.numRowsDroppedByWatermark for operator in progress.stateOperators)
            totals.add(replace(sent, late=late, sources=seen_of_sources(sending.reader, observed)))
    environment = task.environment
    emit_warnings(environment.reporter, totals, dataset=str(task.dataset.name), flow=task.name)


def _missing_format(task: FlowTask, problem: Exception) -> LakeletError | None:
    """The error for a data source that Spark does not have; None for any other problem."""
    if not sentences.FORMAT_MISSING.is_in(str(problem)):
        return None
    return LakeletError(
        "SINK_FORMAT_MISSING",
        f"Spark has no data source {_sink(task).format!r} here",
        where=task.dataset.where,
        dataset=str(task.dataset.name),
        why=first_line(problem),
        todo=f"Put the jars of the package that has it into the folder `jars` of pyspark, or leave the flow {task.name} out with --select.",
    )


def _hand_over(task: FlowTask, batch: DataFrame, number: int, *, app_id: str) -> int | None:
    """Give one batch to the user's handler, a folder of files, a Delta table, or another format; the number of rows, where it is known."""
    sink = _sink(task)
    if sink.handler is not None:
        handled(task, sink.handler, batch, number)
        return None
    if sink.is_files:
        return _send_files(task, sink, batch, number, app_id)
    if not sink.is_delta:
        with lock_of(Path(str(task.dataset.name))).alone():  # nothing is known of what two jobs at the same time do to each other
            return _counted(batch, lambda rows: rows.write.format(sink.format).options(**sink.options).mode("append").save())
    path = task.path()
    with lock_of(path).alone():  # two flows may be about to make the table
        try:
            rows = _append_to(path, sink.options, batch, app_id, number)
        except PySparkException as problem:
            raise _names_refused(task, batch, problem) or problem from None
    reached("batch.committed")
    return rows


def _names_refused(task: FlowTask, batch: DataFrame, problem: PySparkException) -> LakeletError | None:
    """The error for names of columns that a Delta sink's table does not take (SK-11); None for any other problem."""
    if "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES" not in conditions(problem):
        return None
    names = column_mapping.shown(list(column_mapping.odd_names(batch.schema)))
    return LakeletError(
        "SINK_COLUMNS_REFUSED",
        f"the table of the sink {task.dataset.name} has no column mapping, which it needs for {names}",
        dataset=str(task.dataset.name),
        where=task.declared.where,
        why=f"the table at {task.path()} is not the pipeline's, so nothing about it is changed",
        todo=f"Rename them in the flow {task.name}. Or give the table column mapping: a new one with the flow's "
        f'spark_conf={{"spark.databricks.delta.properties.defaults.columnMapping.mode": "name"}}, one that is there with ALTER TABLE '
        f"delta.`{task.path()}` SET TBLPROPERTIES ('{column_mapping.MODE}' = 'name').",
    )


def _send_files(task: FlowTask, sink: Sink, batch: DataFrame, number: int, app_id: str) -> int | None:
    """Send a batch into a folder of files, once; return the number of rows, None if unknown.

    Spark's own sink of files goes by the numbers of batches in the folder. It would take the first batches of a second flow, or of a flow
    that was reset, for batches that it has.
    """

    def write(folder: AnyPath) -> int | None:
        return _counted(batch, lambda rows: _save(rows, sink.format, sink.options, folder))

    sender = f"{task.environment.storage.root}\n{task.dataset.name}\n{task.name}"
    outbox = Outbox(any_path(located_folder(task.dataset, sink)), task.checkpoint() / "sent.json", sender)
    rows = send(outbox, number, write, id=app_id)
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


def _metrics(task: FlowTask, number: int, rows: int) -> BatchMetrics:
    """What is known of a batch that was sent."""
    update_id = task.environment.reporter.update_id
    id = event_id(update_id, task.name, task.checkpoint_name(), number)
    return BatchMetrics(id, update_id, str(task.dataset.name), task.name, number, rows)


# ---------------------------------------------------------------------------------------------------------------- once


def decide_sink_once(task: FlowTask) -> Decision:
    """Whether the batch is still to be sent."""
    return once.DONE if has_run(task.environment.storage, task.declared) else once.NOT_YET


def run_sink_once(task: FlowTask) -> None:
    """Send a batch query's rows, and note that it was done; the note names the batch before it is sent, so that Delta knows it again."""
    _register(task)
    storage, flow = task.environment.storage, task.declared
    id = read_marker(storage, flow).get("id")
    if id is None:
        id = str(uuid.uuid4())
        write_marker(storage, flow, id=id, done=False)
    reached("batch.started")
    with flow_session(task.environment.spark, task.conf) as spark:
        try:
            rows = _hand_over(task, _frame(task, _reader(task, spark)), 0, app_id=str(id))
        except Exception as problem:
            missing = _missing_format(task, problem)
            if missing is None and not isinstance(problem, PySparkException):
                raise
            where, dataset = task.declared.where, str(task.dataset.name)
            raise missing or run_failure(problem, dataset=dataset, where=where, what="the flow failed while it ran") from None
    if rows is not None:
        emit_batch(task.environment.reporter, _metrics(task, 0, rows))
    reached("flow.drained")
    write_marker(storage, flow, id=id, done=True)
    reached("flow.finished")


# --- batches as files, each once (SK-12, decision 42) ------------------------------------------------------------------------------------
#
# A batch is written to a staging folder below the target folder, whose name readers leave out. A note in the flow's checkpoint then names
# its files: that is the commit. After it the files are moved into the target folder, one by one, however often the process dies. A batch
# without a note is written again, one with a note never.


FORMAT = 1
"""Version of the note."""

Write = Callable[[AnyPath], int | None]
"""Function that writes the batch into a folder that does not exist yet and returns the number of rows, None if unknown."""


@dataclass(frozen=True)
class Outbox:
    """Target folder of a flow. `note`: file in the flow's checkpoint; `sender`: text that no other flow into the folder has."""

    folder: AnyPath
    note: AnyPath
    sender: str


@dataclass(frozen=True)
class _Note:
    """Files of the last committed batch, in the order in which they are moved. `id`: that of the batch's query."""

    id: str
    batch: int
    staging: str
    files: tuple[str, ...]
    rows: int | None


def send(outbox: Outbox, batch: int, write: Write, *, id: str) -> int | None:
    """Put a batch into the folder unless it is there; return the number of its rows, None if it was there or they were not counted."""
    note = _read(outbox.note)
    if note is None or (note.id, note.batch) != (id, batch):
        note = _commit(outbox, batch, write, id)
    staging = outbox.folder / note.staging
    if not names_in(staging):
        remove_tree(staging)  # the process died when its files were removed and the folder was not
        return None
    for name in note.files:
        moved(staging / name, outbox.folder / name)
        reached("sink.file_moved")
    if isinstance(outbox.folder, Path):
        sync_folder(outbox.folder)
    remove_tree(staging)
    return note.rows


def _commit(outbox: Outbox, batch: int, write: Write, id: str) -> _Note:
    """Write the batch to the staging folder, then the note about it. A batch without rows has no files."""
    name = f"_lakelet-{hashlib.sha256(outbox.sender.encode()).hexdigest()[:16]}"
    staging = outbox.folder / name
    remove_tree(staging)
    rows = write(staging)
    reached("sink.staged")
    visible = [file for file in names_in(staging) if not file.startswith(".")]
    files = sorted(visible, key=lambda file: (file.startswith("_"), file)) if rows != 0 else []  # _SUCCESS comes last
    note = _Note(id, batch, name, tuple(files), rows)
    write_atomically(outbox.note, json.dumps({"format": FORMAT, **asdict(note)}))
    reached("sink.noted")
    return note


def _read(file: AnyPath) -> _Note | None:
    """Return the note of the last committed batch; None before the first. Raises FORMAT_UNKNOWN."""
    try:
        facts = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    if facts["format"] != FORMAT:
        raise unknown_format(file, facts["format"], FORMAT)
    return _Note(facts["id"], facts["batch"], facts["staging"], tuple(facts["files"]), facts["rows"])
