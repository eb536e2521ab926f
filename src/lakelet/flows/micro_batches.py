"""Micro-batches of streaming flows: each becomes one Delta commit with its counts and its txn.

In: the rows that Spark hands over, and the number of the batch. Out: the commit, and its event. How the rows get into the table follows
from the kind of the flow. A replayed batch that was committed before is recognised by its txn.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql.types import StructType

from lakelet.autoloader.continuous_rounds import QueryRounds
from lakelet.base.failpoints import reached
from lakelet.cdc import writing
from lakelet.cdc.change_table import ChangeTable
from lakelet.cdc.changes import Layout, layout
from lakelet.flows.context import FlowTask, RunReader, event_id
from lakelet.flows.json_growth import check_grown, growth_checked
from lakelet.flows.metrics import Totals, batch_metrics, emit_batch
from lakelet.flows.replacing import arrived
from lakelet.flows.target_table import emit_mapping
from lakelet.jvm.streams import observed_metrics, total_of
from lakelet.language.model import Expectation
from lakelet.plan.kinds import APPEND, CHANGE, CHANGE_STREAM_ONCE, COMPLETE, REPLACE_KEYS, FlowKind
from lakelet.spark.expectations.measure import counts, judged
from lakelet.spark.expectations.samples import texts_of_records
from lakelet.storage.delta import tables
from lakelet.storage.delta.batch_metrics import BatchMetrics, SourceRecords
from lakelet.storage.delta.quarantine import Quarantine
from lakelet.storage.delta.replaced_rows import replace_rows
from lakelet.storage.delta.split_write import LEAVING
from lakelet.storage.delta.transaction import Txn


@dataclass
class MicroBatches:
    """Writes the micro-batches of one start of a query; called by Spark in a thread of its own.

    Attributes:
        replay: number of a batch that was planned but perhaps not completed, or -1.
        columns: of a query with `from_json` without a schema: analysis may have known others.
        shape: of a change table.
        rounds: of a query that stays for further ones.
        query: the query, once it has started.
        failure: what the last batch failed with.
    """

    task: FlowTask
    reader: RunReader
    replay: int
    totals: Totals
    rules: tuple[Expectation, ...]
    columns: StructType | None
    shape: Layout | None = None
    quarantine: Quarantine | None = None
    rounds: QueryRounds | None = None
    query: Future[Any] = field(default_factory=Future)
    failure: BaseException | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        try:
            with growth_checked(self.task, self.reader, batch) as rows:
                self._write(rows, number)
        except BaseException as failure:  # Spark passes on its text only; kept for the error of the flow
            self.failure = failure
            raise

    def _write(self, batch: DataFrame, number: int) -> None:
        reached("batch.started")
        observation = Observation(f"lakelet_{uuid.uuid4().hex}")
        hold = self.quarantine is not None and self.quarantine.active
        rows = judged(batch, self.rules, observation, hold=hold, samples=self.task.samples)
        txn = Txn(f"{self.task.name}/{self.task.checkpoint_name()}", number)
        write = _WRITERS[self.task.flow.kind]
        written = write(self, _Batch(batch, rows, txn, txn.version == self.replay, partial(self._measured, observation, number)))
        if written is not None:
            self.totals.add(written)
            emit_batch(self.task.environment.reporter, written)

    def _measured(self, observation: Observation, number: int) -> BatchMetrics:
        """Everything found out about a micro-batch whose rows are written and not committed yet. Raises for broken fail rules."""
        check_grown(self.reader)
        task, query = self.task, self.query.result()
        observed = observed_metrics(query)
        id = event_id(task.stored().path, task.name, task.checkpoint_name(), number)
        found = counts(self.rules, observation.get)
        metrics = batch_metrics(task, found, self.reader.watches, observed.get, batch_id=number, event_id=id)
        late = total_of(query, "numRowsDroppedByWatermark") if task.flow.stream.watermark else 0
        return replace(metrics, late=late, sources=seen_of_sources(self.reader, observed)).with_anything()


@dataclass(frozen=True)
class _Batch:
    """One micro-batch.

    Attributes:
        given: the rows as Spark hands them over.
        rows: those that the rules keep.
        txn: marks the commit.
        replayed: it was planned before, and perhaps committed.
        measure: called when the rows are written, before the commit: what the commit keeps.
    """

    given: DataFrame
    rows: DataFrame
    txn: Txn
    replayed: bool
    measure: tables.Measure


def _append(batches: MicroBatches, batch: _Batch) -> BatchMetrics | None:
    """Append rows, or replace the table by the whole result of a query that aggregates."""
    task, rows = batches.task, batch.rows
    spec = task.table_spec(rows.drop(LEAVING).schema)
    written = tables.append(
        rows.sparkSession,
        task.path(),
        rows,
        spec,
        txn=batch.txn,
        measure=batch.measure,
        replayed=batch.replayed,
        whole=task.flow.kind.whole,
        quarantine=batches.quarantine,
    )
    if written is None and (task.checkpoint() / "state").is_dir():
        # Committed before the process ended. Its rows are not needed again, but state and watermark move only when they pass by.
        batch.given.write.format("noop").mode("overwrite").save()
    return _reported(task, written, spec.schema)


def _replace(batches: MicroBatches, batch: _Batch) -> BatchMetrics | None:
    """Replace the rows with the same keys by the rows of the batch."""
    task, spec, replaces = batches.task, batches.task.table_spec(batch.rows.schema), batches.task.declared.replaces
    assert replaces is not None
    with arrived(batch.rows, replaces) as exchange:
        spark, path = batch.rows.sparkSession, task.path()
        written = replace_rows(spark, path, exchange, spec, measure=batch.measure, txn=batch.txn, replayed=batch.replayed)
    return _reported(task, written, spec.schema)


def _apply(batches: MicroBatches, batch: _Batch) -> BatchMetrics | None:
    """Apply change events."""
    task, spec = batches.task, batches.task.declared.changes
    assert spec is not None
    shape = layout(spec, batch.rows)
    table = ChangeTable(task.path(), task.change_specs, task.table_spec(shape.visible), task.is_streamed(), task.dataset.computed)
    applied = writing.apply(spec, table, batch.rows, shape, txn=batch.txn, measure=batch.measure, replayed=batch.replayed)
    return applied if applied is not None and ((applied.changed and applied.changed.rewritten) or applied.anything) else None


def _reported(task: FlowTask, written: tables.WriteResult | None, schema: StructType) -> BatchMetrics | None:
    """What is reported of a commit: nothing of a batch that the table had, or that changed and counted nothing."""
    if written is None:
        return None
    if written.mapped:
        emit_mapping(task, schema)
    return written.metrics if written.version is not None or written.metrics.anything else None


_WRITERS: Mapping[FlowKind, Callable[[MicroBatches, _Batch], BatchMetrics | None]] = {
    APPEND: _append,
    COMPLETE: _append,
    CHANGE: _apply,
    CHANGE_STREAM_ONCE: _apply,
    REPLACE_KEYS: _replace,
}
"""How a batch is committed, by the kind of its flow. Each returns what is reported of the commit."""


def seen_of_sources(reader: RunReader, observed: Mapping[str, Mapping[str, Any]]) -> tuple[SourceRecords, ...]:
    """Return what the cloudFiles sources of a query reported about the records of one micro-batch, from its observed metrics."""
    counted = ("records", "rescued", "corrupt", "first_file", "first_line", "left_out", "passed_over", "undecodable")
    places = ("corrupt_file", "corrupt_line", "rescued_file", "rescued_line")
    found = []
    for number, source in enumerate(reader.sources):
        opened = reader.files.opened[number]
        seen = observed.get(f"lakelet_source_{number}")
        if seen is not None:
            more: dict[str, Any] = {**{key: seen.get(key) for key in places}, **texts_of_records(seen, reader.samples)}
            records = SourceRecords(source.path, *(seen.get(key) for key in counted), **more)
            if opened.unit != "line" and records.first_line:
                records = replace(records, unit=opened.unit)
            if records.undecodable and records.first_file:
                records = replace(records, reason=opened.explained(records.first_file, records.first_line or 1))
            found.append(records)
    return tuple(found)


__all__ = ["MicroBatches", "seen_of_sources"]
