"""The one runner of streaming flows: `availableNow`, one Delta commit per micro-batch.

One micro-batch: judge the rows, write them, and commit files, counts and txn together (`tables`). A replayed batch
that was committed before is recognised by its txn. A flow that meets new columns is built again and goes on with the same checkpoint.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.types import StructType

from lakelet.autoloader.rounds import QueryRounds
from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.cdc import writing
from lakelet.cdc.change_table import ChangeTable
from lakelet.cdc.changes import Layout, layout
from lakelet.flows.attempts import changed_files, interruption, prepare
from lakelet.flows.context import FlowRun, RunReader, run_reader
from lakelet.flows.counted import batch_metrics, sorted_in_parts
from lakelet.flows.json_growth import begin, check_grown, emit_json_changes, fields_unknown, growing
from lakelet.flows.kept_queries import may_stay, new_rounds
from lakelet.flows.mapping_notice import emit_first_odd_names, emit_mapping
from lakelet.flows.metrics import Totals, emit_batch, emit_change, emit_warnings, event_id
from lakelet.flows.positions import (
    Checkpoint,
    discard_half_written,
    read_checkpoint,
)
from lakelet.flows.quarantine import quarantine_of, with_source_file
from lakelet.flows.remedies import mode_of, stream_failure
from lakelet.flows.replaced_keys import arrived
from lakelet.flows.source_cleanup import clean_sources
from lakelet.flows.spark_file_sources import follow_file_sources
from lakelet.flows.stream_progress import emit_stream_progress
from lakelet.jvm.streams import end_listening, observed_metrics, release, total_of
from lakelet.language.model import ChangeSpec, Expectation, Replacement
from lakelet.language.registry import reading
from lakelet.spark.errors.conditions import conditions
from lakelet.spark.errors.diagnosis import run_failure
from lakelet.spark.errors.user_errors import user_error
from lakelet.spark.expectations.measure import Counts, counts, judged, with_hidden_results
from lakelet.spark.names.reader import rows_of
from lakelet.spark.session_clones import flow_session
from lakelet.storage.delta import tables
from lakelet.storage.delta.batch_metrics import BatchMetrics, SourceRecords
from lakelet.storage.delta.divided import LEAVING
from lakelet.storage.delta.locks import lock_of
from lakelet.storage.delta.quarantine import Quarantine
from lakelet.storage.delta.replaced_rows import replace_rows
from lakelet.storage.delta.transaction import Txn

_MAX_RESTARTS = 10
_MAX_INTERRUPTIONS = 5
_SCHEMA_CHANGED = ("DELTA_SCHEMA_CHANGED", "DELTA_STREAMING_METADATA_EVOLUTION")


@dataclass
class _Batches:
    """Writes the micro-batches of one start of the query; called by Spark in a thread of its own."""

    run: FlowRun
    reader: RunReader
    replay: int  # number of a batch that was planned but perhaps not completed, or -1
    totals: Totals
    rules: tuple[Expectation, ...]
    columns: StructType | None  # of a query with `from_json` without a schema: analysis may have known others
    shape: Layout | None = None  # of a change table
    quarantine: Quarantine | None = None
    rounds: QueryRounds | None = None  # of a query that is to stay for further ones
    query: Any = None
    started: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        try:
            with growing(self.run, self.reader, batch) as rows:
                self._write(rows, number)
        except BaseException as failure:  # Spark passes on its text only; kept for the error of the flow
            self.failure = failure
            raise

    def _write(self, batch: DataFrame, number: int) -> None:
        reached("batch.started")
        run = self.run
        observation = Observation(f"lakelet_{uuid.uuid4().hex}")

        def measure() -> BatchMetrics:
            check_grown(self.reader)
            return self._measured(counts(self.rules, observation.get), number)

        hold = self.quarantine is not None and self.quarantine.active
        rows = judged(batch, self.rules, observation, hold=hold)
        txn = Txn(f"{run.name}/{run.generation()}", number)
        if run.flow.flow.changes is not None:
            self._apply(run.flow.flow.changes, rows, txn, measure)
            return
        if run.flow.flow.replaces is not None:
            self._replace(run.flow.flow.replaces, rows, txn, measure)
            return
        spec = run.table_spec(rows.drop(LEAVING).schema)
        written = tables.append(
            batch.sparkSession,
            run.path(),
            rows,
            spec,
            txn=txn,
            measure=measure,
            replayed=number == self.replay,
            whole=run.flow.complete,
            quarantine=self.quarantine,
        )
        if written is not None and written.mapped:
            emit_mapping(run, spec.schema)
        if written is not None and (written.version is not None or written.metrics.anything):
            self._report(written.metrics)
        if written is None and (run.checkpoint() / "state").is_dir():
            # Committed before the process ended. Its rows are not needed again, but state and watermark move only when they pass by.
            batch.write.format("noop").mode("overwrite").save()

    def _apply(self, spec: ChangeSpec, rows: DataFrame, txn: Txn, measure: tables.Measure) -> None:
        """The micro-batch of a change flow."""
        run = self.run
        shape = layout(spec, rows)
        table = ChangeTable(run.path(), run.change_specs, run.table_spec(shape.visible), run.is_streamed(), run.dataset.computed)
        applied = writing.apply(spec, table, rows, shape, txn=txn, measure=measure, replayed=txn.version == self.replay)
        if applied is not None and ((applied.changed and applied.changed.rewritten) or applied.anything):
            self._report(applied)

    def _replace(self, replaces: Replacement, rows: DataFrame, txn: Txn, measure: tables.Measure) -> None:
        """The micro-batch of a flow whose rows replace those with the same keys."""
        run, spec = self.run, self.run.table_spec(rows.schema)
        with arrived(rows, replaces) as exchange:
            path, replayed = run.path(), txn.version == self.replay
            written = replace_rows(rows.sparkSession, path, exchange, spec, measure=measure, txn=txn, replayed=replayed)
        if written is not None and written.mapped:
            emit_mapping(run, spec.schema)
        if written is not None and (written.version is not None or written.metrics.anything):
            self._report(written.metrics)

    def _report(self, metrics: BatchMetrics) -> None:
        self.totals.add(metrics)
        emit_batch(self.run.environment.reporter, metrics)

    def _measured(self, found: Counts, number: int) -> BatchMetrics:
        """Everything found out about this micro-batch. Raises for broken fail rules."""
        run = self.run
        self.started.wait()
        observed = observed_metrics(self.query)
        id = event_id(run.stored().path, run.name, run.generation(), number)
        metrics = batch_metrics(run, found, self.reader.watches, observed.get, batch_id=number, event_id=id)
        late = total_of(self.query, "numRowsDroppedByWatermark") if run.flow.stream and run.flow.stream.watermark else 0
        return replace(metrics, late=late, sources=seen_of_sources(self.reader, observed)).weighed()


class Running(Protocol):
    """A query that was started, the reader that opened its sources, what its batches raised, and what ends its rounds if it has such."""

    @property
    def query(self) -> Any: ...
    @property
    def reader(self) -> RunReader: ...
    @property
    def failure(self) -> BaseException | None: ...
    @property
    def rounds(self) -> QueryRounds | None: ...
    def __call__(self, batch: DataFrame, number: int) -> None: ...


Query = TypeVar("Query", bound=Running)


def run_append(run: FlowRun, *, one_batch: bool = False, alone: bool = False) -> Totals:
    """Process everything that is there, then stop, or wait for the next round of a continuous update. Raises LakeletError.

    `one_batch`: a checkpoint without a batch gets a single one, whatever the limits of the sources; one that holds an unfinished batch gets
    no further one. `alone`: the flow reads no other dataset.
    """
    totals, queries, spark = Totals(), run.environment.memory.queries, run.environment.spark
    waiting = queries.of(run.name, spark)
    if waiting is not None:
        waiting.run, waiting.totals = run, totals
    may_wait = alone and not one_batch and may_stay(run.dataset, run.flow, run.environment.sources.of(run.name))
    try:
        batches = drained(
            run, lambda spark: _start(run, spark, totals, one_batch=one_batch, stays=may_wait and queries.take_more()), waiting
        )
        reached("flow.drained")
        if batches is waiting:  # the table is as this query left it before
            emit_warnings(run.environment.reporter, totals, dataset=str(run.dataset.name), flow=run.name)
        else:
            if unknown := fields_unknown(run, batches.reader):
                raise unknown
            finish(run, totals, batches.shape, batches.columns)
        clean_sources(run)
        reached("flow.finished")
    except BaseException:
        queries.end(run.name, spark)
        raise
    return totals


def drained(run: FlowRun, start: Callable[[SparkSession], Query], waiting: Query | None = None) -> Query:
    """Start the flow's query, and again whenever its sources got new columns or its files changed, until it has processed what is there.

    `waiting`: the query as the last round left it. Raises LakeletError.
    """
    restarts = interruptions = 0
    while restarts <= _MAX_RESTARTS:
        if waiting is not None and waiting.rounds is not None:
            before = read_checkpoint(run.checkpoint()).completed
            waiting.rounds.begin()
            batches, waiting = waiting, None
            failure = _wait(run.environment.spark, batches)
            emit_stream_progress(run, batches.query, before)
        else:
            with flow_session(run.environment.spark, run.conf) as spark:
                batches = start(spark)
                failure = _wait(spark, batches)
                emit_stream_progress(run, batches.query)
        if failure is None:
            return batches
        interrupted = interruption(failure, in_batch=batches.failure is not None)
        if interrupted and interruptions < _MAX_INTERRUPTIONS:
            interruptions += 1
            _report_interruption(run, interrupted)
            continue
        if changed_files(run, failure, read_checkpoint(run.checkpoint())):
            continue
        restarts += 1
        if not _recovered(run, batches, failure):
            where, name = run.flow.flow.where, str(run.dataset.name)
            what = interrupted or "the flow failed while it ran"
            raise stream_failure(run, failure) or run_failure(failure, dataset=name, where=where, what=what)
    raise LakeletError(
        "EVOLUTION_LIMIT",
        f"the flow was restarted {_MAX_RESTARTS} times because of new columns",
        dataset=str(run.dataset.name),
        where=run.flow.flow.where,
        todo="Run the update again: each start reads further. Hints (cloudFiles.schemaHints, of from_json schemaHints) avoid the restarts.",
    ) from failure


def _report_interruption(run: FlowRun, text: str) -> None:
    message = f"Flow '{run.name}' is started again: {text}."
    run.environment.reporter.notice(message, text=text, dataset=str(run.dataset.name), flow=run.name)


def _start(run: FlowRun, spark: SparkSession, totals: Totals, *, one_batch: bool, stays: bool) -> _Batches:
    checkpoint = run.checkpoint()
    state = read_checkpoint(checkpoint)
    with ExitStack() as undo:  # also after Ctrl-C: no function is left behind without its query
        rounds = new_rounds() if stays else None
        if rounds is not None:
            undo.callback(rounds.close)
        reader, frame, shape = opened(run, spark, state, "" if rounds is None else rounds.address)
        if run.flow.complete and reader.watches:
            frame = sorted_in_parts(frame)
        follow_file_sources(run, frame)
        begin(run, reader, spark, state)
        columns = _columns(reader, frame, shape)
        frame, rules = with_hidden_results(frame, run.dataset.expectations)
        quarantine = quarantine_of(run)
        if quarantine is not None and quarantine.active:
            frame = with_source_file(run, frame)
        batches = _Batches(run, reader, state.planned if state.unfinished else -1, totals, rules, columns, shape, quarantine, rounds)
        undo.callback(release, spark, batches)
        mode = mode_of(run, checkpoint, started=state.planned >= 0)
        writer = frame.writeStream.queryName(run.name).outputMode(mode).foreachBatch(batches)
        if rounds is None:
            writer = writer.trigger(once=True) if one_batch else writer.trigger(availableNow=True)
        discard_half_written(checkpoint, state)
        batches.query = writer.option("checkpointLocation", str(checkpoint)).start()
        undo.pop_all()
    batches.started.set()
    if rounds is not None:
        run.environment.memory.queries.add(run.name, batches)
    return batches


def _columns(reader: RunReader, frame: DataFrame, shape: Layout | None) -> StructType | None:
    if not reader.json_columns:
        return None
    return shape.visible if shape is not None else frame.schema


def opened(run: FlowRun, spark: SparkSession, state: Checkpoint, rounds: str = "") -> tuple[RunReader, DataFrame, Layout | None]:
    """Open the sources of the flow and check its columns. Return the reader, the query, and the layout if the target is a change table.

    The target of a change flow gets what its internal log already has. `rounds`: see `ReaderSpec`.
    Raises LakeletError and AnalysisException.
    """
    reader = run_reader(run, spark, batch_query=False)
    reader.rounds = rounds
    prepare(run, reader, spark, state)
    try:
        with reading(reader):
            frame = rows_of(run.flow.flow)
    except (LakeletError, AnalysisException):
        raise
    except Exception as problem:  # raised by the flow's function
        raise user_error(problem, run.dataset, run.flow.flow) from problem
    spec = run.flow.flow.changes
    shape = layout(spec, frame) if spec is not None else None
    if not any(call.guessed for call in reader.json_columns.values()):
        run.table_spec(shape.visible if shape is not None else frame.schema)  # refuses new columns before a batch is planned
    if spec is not None:
        writing.catch_up(run.path())
    return reader, frame, shape


def _wait(spark: SparkSession, batches: Running) -> BaseException | None:
    """Wait until the query has ended, or its round; what it failed with."""
    rounds = batches.rounds
    try:
        if rounds is not None and rounds.ended(lambda: bool(batches.query.isActive)):
            return None
        batches.query.awaitTermination()
    except PySparkException as failure:
        _let_go(spark, batches)
        return batches.failure or failure
    except BaseException:  # also Ctrl-C: no query goes on without its flow
        with suppress(Exception):
            batches.query.stop()
        _let_go(spark, batches)
        raise
    _let_go(spark, batches)
    return None


def _let_go(spark: SparkSession, batches: Running) -> None:
    """Release what a query that has ended had."""
    if batches.rounds is not None:
        batches.rounds.close()
    release(spark, batches)
    end_listening(batches.query)


def _recovered(run: FlowRun, batches: Running, failure: BaseException) -> bool:
    """Whether the flow should be built again and go on: the schema of a source or of a `from_json` grew."""
    changed = emit_json_changes(run, batches.reader)
    for number, source in enumerate(batches.reader.opened):
        change = source.evolve(failure)
        if change is not None:
            changed = True
            id = run.change_id(number, change.version_after)
            emit_change(run.environment.reporter, change, dataset=str(run.dataset.name), flow=run.name, id=id)
    return changed or any(condition.startswith(_SCHEMA_CHANGED) for condition in conditions(failure))


def finish(run: FlowRun, totals: Totals, shape: Layout | None = None, ran: StructType | None = None) -> None:
    """Make the table if no batch did, remember its columns, and warn about what did not fit.

    `shape`: of a change table. `ran`: the columns of the query that ran, where analysis may have known others.
    """
    environment, path = run.environment, run.path()
    wanted = run.table_spec(run.analyzed.schema if ran is None else ran)
    quarantine = quarantine_of(run)
    if quarantine is not None:
        quarantine.create(wanted, environment.spark)
    if shape is not None and run.flow.flow.changes is not None:
        writing.create_if_absent(
            environment.spark, ChangeTable(path, run.change_specs, wanted, run.is_streamed(), run.dataset.computed), shape
        )
    elif tables.create_if_absent(environment.spark, path, wanted, user_metadata={}):
        emit_mapping(run, wanted.schema)
    with lock_of(path).alone():  # another flow may be adding columns
        found = tables.stored_schema(environment.spark, path)
        columns, stored = found.json(), run.stored()
        if shape is not None:
            emit_first_odd_names(run, found)
        if stored.columns != columns or run.dataset.name.key not in environment.storage.registry().datasets:
            environment.storage.remember(replace(stored, columns=columns))
    environment.memory.widened |= found.simpleString() != run.analyzed.schema.simpleString()
    emit_warnings(environment.reporter, totals, dataset=str(run.dataset.name), flow=run.name)


# ------------------------------------------------------------------------------------------- metrics of the running query


def seen_of_sources(reader: RunReader, observed: Mapping[str, Mapping[str, Any]]) -> tuple[SourceRecords, ...]:
    """Return what the cloudFiles sources of a query reported about the records of one micro-batch, from its observed metrics."""
    counted = ("records", "rescued", "corrupt", "first_file", "first_line", "left_out", "passed_over", "undecodable")
    found = []
    for number, source in enumerate(reader.sources):
        seen = observed.get(f"lakelet_source_{number}")
        if seen is not None:
            records = SourceRecords(source.path, *(seen.get(key) for key in counted))
            if reader.opened[number].unit != "line" and records.first_line:
                records = replace(records, unit=reader.opened[number].unit)
            if records.undecodable and records.first_file:
                records = replace(records, reason=reader.opened[number].explained(records.first_file, records.first_line or 1))
            found.append(records)
    return tuple(found)


__all__ = ["drained", "finish", "opened", "run_append", "seen_of_sources"]
