"""Effects of earlier starts of a flow on the files that it reads (docs/semantics/sources.md).

A batch that was planned and perhaps not completed is read again. If the table has it, its files stay those that were planned; if it has
not, they are read as they are now. Files that change while they are read make the flow start again, a few times.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress

from pyspark.sql import SparkSession

from lakelet.autoloader.discovery.versions import is_change
from lakelet.autoloader.state.offsets import is_offset
from lakelet.autoloader.types.growth import texts_of
from lakelet.base import sentences
from lakelet.files.delta_log import TableLog
from lakelet.flows.context import FlowRun, RunReader
from lakelet.flows.file_sources import check_sources
from lakelet.flows.positions import Checkpoint
from lakelet.spark.errors.conditions import conditions, java_class
from lakelet.storage.delta.transaction import Transaction, Txn
from lakelet.storage.root import INTERNAL

_STEADY_TRIES = 2  # starts that wait for the files of a batch to stop changing


def prepare(run: FlowRun, reader: RunReader, spark: SparkSession, state: Checkpoint) -> None:
    """Tell the reader of a streaming query what the sources of files must know; `state`: of the checkpoint.

    Raises STREAM_SOURCES_CHANGED.
    """
    if run.environment.sources.of(run.name):
        check_sources(run)
        reader.committed = _committed_offsets(run, spark, state)
        batch, failures = run.environment.memory.unsteady.get(run.name, (-1, 0))
        reader.changing = batch == state.planned and failures >= _STEADY_TRIES


def changed_files(run: FlowRun, failure: BaseException, state: Checkpoint) -> bool:
    """Whether a query failed because its files changed while they were read, and is to be started again."""
    found = next((text for text in texts_of(failure) if is_change(text)), None)
    if found is None:
        return False
    batch, failures = run.environment.memory.unsteady.get(run.name, (-1, 0))
    failures = failures + 1 if batch == state.planned else 1
    run.environment.memory.unsteady[run.name] = state.planned, failures
    if failures == _STEADY_TRIES:
        text = "its files keep changing while they are read: they are read as they are; what is added to them later is not, unless "
        text += "cloudFiles.allowOverwrites is true"
        dataset = str(run.dataset.name)
        run.environment.reporter.notice(f"Flow '{run.name}': {text}.", text=text, dataset=dataset, flow=run.name)
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


def _committed_offsets(run: FlowRun, spark: SparkSession, state: Checkpoint) -> Mapping[int, str]:
    """The offsets of the file sources, by their numbers, in the newest planned batch, if the table has it."""
    files = run.flow.stream.files if run.flow.stream else ()
    if not state.unfinished or len(files) != len(state.offsets) or not has_batch(run, spark, state.planned):
        return {}
    return {n: offset for n, offset in zip(files, state.offsets, strict=True) if n is not None and offset is not None and is_offset(offset)}


def has_batch(run: FlowRun, spark: SparkSession, number: int) -> bool:
    """Whether the target has committed batch `number` of the flow; False for a target that keeps no record of batches."""
    app_id: str | None = f"{run.name}/{run.generation()}"
    path = run.path() / INTERNAL if run.flow.flow.changes is not None else run.path()
    if run.dataset.sink is not None:
        app_id = _query_id(run) if run.dataset.sink.is_delta else None
    if app_id is None or TableLog(path).version() < 0:
        return False
    return Transaction(spark, path).done(Txn(app_id, number))


def _query_id(run: FlowRun) -> str | None:
    """The id of the flow's query, which marks its batches in a Delta sink."""
    with suppress(FileNotFoundError, ValueError, KeyError):
        return str(json.loads((run.checkpoint() / "metadata").read_text())["id"])
    return None


__all__ = ["changed_files", "has_batch", "interruption", "prepare"]
