"""The one runner of streaming flows into tables: `availableNow`, one Delta commit per micro-batch (`micro_batches`).

In: a task. Out: all that its sources have, committed. A flow that meets new columns is built again and goes on with the same checkpoint.

Earlier starts have an effect on the files that a flow reads (docs/semantics/sources.md). A batch that was planned and perhaps not
completed is read again. If the table has it, its files stay those that were planned; if not, they are read as they are now. Files that
change while they are read make the flow start again, a few times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from typing import Protocol, TypeVar

from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakelet.autoloader.discovery.listing import is_change
from lakelet.autoloader.schema_growth import texts_of
from lakelet.autoloader.source_spec import METADATA_COLUMN
from lakelet.autoloader.state.ledger import is_offset
from lakelet.base import sentences
from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.cdc import writing
from lakelet.cdc.changes import Layout, layout
from lakelet.flows.checkpoints import Checkpoint, discard_half_written, read_checkpoint
from lakelet.flows.context import FileReads, FlowTask, RunReader, run_reader
from lakelet.flows.environment import KeptQuery, may_stay, new_rounds
from lakelet.flows.failures import mode_of, stream_failure
from lakelet.flows.json_growth import begin, emit_json_changes, fields_unknown
from lakelet.flows.metrics import Totals, emit_change, emit_stream_progress, emit_warnings, sorted_in_parts
from lakelet.flows.micro_batches import MicroBatches
from lakelet.flows.source_upkeep import check_sources, clean_sources, follow_file_sources
from lakelet.flows.target_table import finish, has_batch, quarantine_of, with_source_file
from lakelet.flows.topics import check_topics
from lakelet.jvm.streams import end_listening, release
from lakelet.language.registry import reading
from lakelet.spark.errors.conditions import conditions, java_class
from lakelet.spark.errors.diagnosis import run_failure
from lakelet.spark.errors.user_errors import user_error
from lakelet.spark.expectations.measure import with_hidden_results
from lakelet.spark.names.reader import rows_of
from lakelet.spark.session_clones import flow_session

_MAX_RESTARTS = 10
_MAX_INTERRUPTIONS = 5
_SCHEMA_CHANGED = ("DELTA_SCHEMA_CHANGED", "DELTA_STREAMING_METADATA_EVOLUTION")


class RunningQuery(KeptQuery, Protocol):
    """A query that was started, with the reader that opened its sources and what its batches raised."""

    @property
    def reader(self) -> RunReader: ...
    @property
    def failure(self) -> BaseException | None: ...


Query = TypeVar("Query", bound=RunningQuery)


def run_stream(task: FlowTask, *, one_batch: bool = False) -> Totals:
    """Process everything that is there, then stop, or wait for the next round of a continuous update. Raises LakeletError.

    `one_batch`: a checkpoint without a batch gets a single one, whatever the limits of the sources; one that holds an unfinished batch gets
    no further one.
    """
    queries, spark = task.environment.memory.queries, task.environment.spark
    kept: MicroBatches | None = queries.of(task.name, spark)
    totals = Totals() if kept is None else kept.totals
    totals.clear()
    stays = not task.inputs and not one_batch and may_stay(task.dataset, task.flow)
    try:
        batches = drained(task, lambda spark: _start(task, spark, totals, one_batch=one_batch, stays=stays and queries.take_more()), kept)
        reached("flow.drained")
        if batches is kept:  # the table is as this query left it before
            emit_warnings(task.environment.reporter, totals, dataset=str(task.dataset.name), flow=task.name)
        else:
            if unknown := fields_unknown(task, batches.reader):
                raise unknown
            finish(task, totals, batches.shape, batches.columns)
        clean_sources(task)
        reached("flow.finished")
    except BaseException:
        queries.end(task.name, spark)
        raise
    return totals


def drained(task: FlowTask, start: Callable[[SparkSession], Query], kept: Query | None = None) -> Query:
    """Start the flow's query, and again whenever its sources got new columns or its files changed, until it has processed what is there.

    `kept`: the query as the last round left it. Raises LakeletError.
    """
    restarts = interruptions = 0
    while restarts <= _MAX_RESTARTS:
        if kept is not None and kept.rounds is not None:
            before = read_checkpoint(task.checkpoint()).completed
            kept.rounds.begin()
            batches, kept = kept, None
            failure = _wait(task.environment.spark, batches)
            emit_stream_progress(task, batches.query.result(), before)
        else:
            with flow_session(task.environment.spark, task.conf) as spark:
                check_topics(task)
                batches = start(spark)
                failure = _wait(spark, batches)
                emit_stream_progress(task, batches.query.result())
        if failure is None:
            return batches
        interrupted = interruption(failure, in_batch=batches.failure is not None)
        if interrupted and interruptions < _MAX_INTERRUPTIONS:
            interruptions += 1
            _report_interruption(task, interrupted)
            continue
        if changed_files(task, failure, read_checkpoint(task.checkpoint())):
            continue
        restarts += 1
        if not _recovered(task, batches, failure):
            where, name = task.declared.where, str(task.dataset.name)
            what = interrupted or "the flow failed while it ran"
            raise stream_failure(task, failure) or run_failure(failure, dataset=name, where=where, what=what)
    raise LakeletError(
        "EVOLUTION_LIMIT",
        f"the flow was restarted {_MAX_RESTARTS} times because of new columns",
        dataset=str(task.dataset.name),
        where=task.declared.where,
        todo="Run the update again: each start reads further. Hints (cloudFiles.schemaHints, of from_json schemaHints) avoid the restarts.",
    ) from failure


def _report_interruption(task: FlowTask, text: str) -> None:
    message = f"Flow '{task.name}' is started again: {text}."
    task.environment.reporter.notice(message, text=text, dataset=str(task.dataset.name), flow=task.name)


def _start(task: FlowTask, spark: SparkSession, totals: Totals, *, one_batch: bool, stays: bool) -> MicroBatches:
    checkpoint = task.checkpoint()
    state = read_checkpoint(checkpoint)
    with ExitStack() as undo:  # also after Ctrl-C: no function is left behind without its query
        rounds = new_rounds() if stays else None
        if rounds is not None:
            undo.callback(rounds.close)
        reader, frame, shape = opened(task, spark, state, "" if rounds is None else rounds.address)
        if task.flow.kind.whole and reader.watches:
            frame = sorted_in_parts(frame)
        follow_file_sources(task, frame)
        begin(task, reader, spark, state)
        columns = _columns(reader, frame, shape)
        frame, rules = with_hidden_results(frame, task.dataset.expectations)
        quarantine = quarantine_of(task)
        if quarantine is not None and quarantine.active:
            frame = with_source_file(task, frame)
        batches = MicroBatches(task, reader, state.planned if state.unfinished else -1, totals, rules, columns, shape, quarantine, rounds)
        undo.callback(release, spark, batches)
        mode = mode_of(task, checkpoint, started=state.planned >= 0)
        writer = frame.writeStream.queryName(task.name).outputMode(mode).foreachBatch(batches)
        if rounds is None:
            writer = writer.trigger(once=True) if one_batch else writer.trigger(availableNow=True)
        discard_half_written(checkpoint, state)
        batches.query.set_result(writer.option("checkpointLocation", str(checkpoint)).start())
        undo.pop_all()
    if rounds is not None:
        task.environment.memory.queries.add(task.name, batches)
    return batches


def _columns(reader: RunReader, frame: DataFrame, shape: Layout | None) -> StructType | None:
    if not reader.json_columns:
        return None
    return shape.visible if shape is not None else frame.schema


def opened(task: FlowTask, spark: SparkSession, state: Checkpoint, rounds: str = "") -> tuple[RunReader, DataFrame, Layout | None]:
    """Open the sources of the flow and check its columns. Return the reader, the query, and the layout if the target is a change table.

    The target of a change flow gets what its internal log already has. `rounds`: see `ReaderSpec`.
    Raises LakeletError and AnalysisException.
    """
    reader = run_reader(task, spark, file_reads(task, spark, state, rounds))
    try:
        with reading(reader):
            frame = rows_of(task.declared)
    except (LakeletError, AnalysisException):
        raise
    except Exception as problem:  # raised by the flow's function
        raise user_error(problem, task.dataset, task.declared) from problem
    spec = task.declared.changes
    shape = layout(spec, frame) if spec is not None else None
    if not any(call.guessed for call in reader.json_columns.values()):
        task.table_spec(shape.visible if shape is not None else frame.schema)  # refuses new columns before a batch is planned
    if spec is not None:
        writing.catch_up(task.path())
    return reader, frame, shape


def _wait(spark: SparkSession, batches: RunningQuery) -> BaseException | None:
    """Wait until the query has ended, or its round; what it failed with."""
    rounds, query = batches.rounds, batches.query.result()
    try:
        if rounds is not None and rounds.ended(lambda: bool(query.isActive)):
            return None
        query.awaitTermination()
    except PySparkException as failure:
        _let_go(spark, batches)
        return batches.failure or failure
    except BaseException:  # also Ctrl-C: no query goes on without its flow
        with suppress(Exception):
            query.stop()
        _let_go(spark, batches)
        raise
    _let_go(spark, batches)
    return None


def _let_go(spark: SparkSession, batches: RunningQuery) -> None:
    """Release what a query that has ended had."""
    if batches.rounds is not None:
        batches.rounds.close()
    release(spark, batches)
    end_listening(batches.query.result())


def _recovered(task: FlowTask, batches: RunningQuery, failure: BaseException) -> bool:
    """Whether the flow should be built again and go on: the schema of a source or of a `from_json` grew."""
    changed = emit_json_changes(task, batches.reader)
    for number in range(len(batches.reader.sources)):
        change = batches.reader.files.opened[number].evolve(failure)
        if change is not None:
            changed = True
            id = task.change_id(number, change.version_after)
            emit_change(task.environment.reporter, change, dataset=str(task.dataset.name), flow=task.name, id=id)
    return changed or any(condition.startswith(_SCHEMA_CHANGED) for condition in conditions(failure))


_STEADY_TRIES = 2  # starts that wait for the files of a batch to stop changing


def file_reads(task: FlowTask, spark: SparkSession, state: Checkpoint, rounds: str = "") -> FileReads:
    """How a streaming query that begins reads its file sources. `state`: of the checkpoint; `rounds`: see `ReaderSpec`.

    Raises STREAM_SOURCES_CHANGED.
    """
    if not task.flow.sources:
        return FileReads(rounds=rounds)
    check_sources(task)
    batch, failures = task.environment.memory.unsteady.get(task.name, (-1, 0))
    changing = batch == state.planned and failures >= _STEADY_TRIES
    return FileReads(_committed_offsets(task, spark, state), changing, rounds, _plain_sources(task))


def _plain_sources(task: FlowTask) -> frozenset[int]:
    """The file sources of which neither the query nor the rules and the quarantine of its dataset read `_metadata`."""
    dataset = task.dataset
    in_rules = any(METADATA_COLUMN in str(rule.constraint).lower() for rule in dataset.expectations)
    return frozenset() if in_rules or dataset.keeps_dropped else task.flow.stream.plain


def changed_files(task: FlowTask, failure: BaseException, state: Checkpoint) -> bool:
    """Whether a query failed because its files changed while they were read, and must be started again."""
    found = next((text for text in texts_of(failure) if is_change(text)), None)
    if found is None:
        return False
    batch, failures = task.environment.memory.unsteady.get(task.name, (-1, 0))
    failures = failures + 1 if batch == state.planned else 1
    task.environment.memory.unsteady[task.name] = state.planned, failures
    if failures == _STEADY_TRIES:
        text = "its files keep changing while they are read: they are read as they are; what is added to them later is not, unless "
        text += "cloudFiles.allowOverwrites is true"
        dataset = str(task.dataset.name)
        task.environment.reporter.notice(f"Flow '{task.name}': {text}.", text=text, dataset=dataset, flow=task.name)
    return failures <= _STEADY_TRIES


def interruption(failure: BaseException, *, in_batch: bool) -> str | None:
    """What ended a query through no fault of its flow; None if the flow itself failed. A query that is started again goes on from there.

    `in_batch`: the failure was raised while a micro-batch was written, where a Python process that ended ran user code.
    """
    if sentences.SLOW_WORKER.is_in(str(failure)):
        return "a Python process did not connect to Spark in time"
    if in_batch:
        return None
    if "CONCURRENT_STREAM_LOG_UPDATE" in conditions(failure):
        return "another process, which does not own the storage any more, was still writing its checkpoint"
    return "the Python process that plans its batches ended" if java_class(failure) == "java.io.EOFException" else None


def _committed_offsets(task: FlowTask, spark: SparkSession, state: Checkpoint) -> Mapping[int, str]:
    """The offsets of the file sources, by their numbers, in the newest planned batch, if the table has it."""
    files = task.flow.stream.files
    if not state.unfinished or len(files) != len(state.offsets) or not has_batch(task, spark, state.planned):
        return {}
    return {n: offset for n, offset in zip(files, state.offsets, strict=True) if n is not None and offset is not None and is_offset(offset)}


__all__ = ["changed_files", "drained", "file_reads", "interruption", "opened", "run_stream"]
