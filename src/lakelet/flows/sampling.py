"""Runs the query of a flow as a batch over the stored tables and some files. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakelet.analysis.checks import part_of
from lakelet.autoloader.data_source import read_files
from lakelet.autoloader.evolving_from_json import JsonCall, JsonColumn
from lakelet.autoloader.source_spec import NONE, RESCUE, SourceSpec
from lakelet.base.errors import LakeletError
from lakelet.base.user_code import caller_location
from lakelet.files.delta_log import TableLog
from lakelet.flows.context import FlowTask, RunFiles, RunReader
from lakelet.language.model import Dataset, Flow
from lakelet.language.registry import reading
from lakelet.spark.names.reader import Options, rows_of
from lakelet.spark.session_clones import flow_session

SAMPLE_FILES = 10
"""Number of files of a file source that are read, the newest ones."""


@dataclass
class SampledFiles(RunFiles):
    """Opens each file source as a batch of its newest files."""

    def open(self, flow: Flow, number: int, spec: SourceSpec) -> DataFrame:
        source = self.opened[number] = self.environment.sources.open(flow, number, spec, dry=True)
        found = source.reader_spec(parallelism=self.spark.sparkContext.defaultParallelism)
        mode = found.mode if found.mode == NONE else RESCUE  # columns that are new do not end the query
        return read_files(self.spark, replace(found, state="", mode=mode, newest=SAMPLE_FILES))


@dataclass
class SampleReader(RunReader):
    """Opens everything as a batch: stored tables, tables without rows by their queries, file sources by some of their files.

    `computed`: full names of the tables that were computed by their queries; `learned`: by
    the folder of its log, the schema that a `from_json` needs for these rows.
    """

    reads_batches: ClassVar[bool] = True
    computed: dict[str, None] = field(default_factory=dict)
    learned: dict[str, StructType] = field(default_factory=dict)
    _inside: list[str] = field(default_factory=list)

    def open(self, dataset: Dataset, *, streaming: bool, jreader: Any = None, options: Options = None) -> DataFrame:
        return super().open(dataset, streaming=False, jreader=None if streaming else jreader, options=None if streaming else options)

    def relation(
        self, text: str, *, streaming: bool, jreader: Any, otherwise: Callable[[], DataFrame], options: Options = None
    ) -> DataFrame:
        return super().relation(text, streaming=False, jreader=None if streaming else jreader, otherwise=otherwise, options=options)

    def stream(self, name: str, options: dict[str, str]) -> DataFrame:
        return self.batch(name)

    def table(self, name: str, *, streaming: bool) -> DataFrame:
        return self.spark.read.table(name)

    def open_table(self, dataset: Dataset, *, streaming: bool, jreader: Any, feed: bool) -> DataFrame:
        path = self.environment.storage.table_path(dataset.name)
        if feed:
            raise _refused(f"{dataset.name} is read as a change feed", "Run it: lakelet run")
        if TableLog(path).version() >= 0:
            return self.stored(str(path), False, jreader)
        return self._computed(dataset)

    def json_column(self, call: JsonCall, place: str) -> JsonColumn:
        found = super().json_column(call, place)
        found.learned = self.learned.get(place)
        return found

    def learn(self, frame: DataFrame) -> bool:
        """Look through the rows for the fields that calls of `from_json` have to know; whether there are new ones."""
        frame.write.format("noop").mode("overwrite").save()
        found = self.growth.found()
        columns = [column for column in self.json_columns.values() if column.grows and column.location in found]
        grown = {column.location: fields for column in columns if (fields := column.grown(found[column.location])) is not None}
        self.learned |= grown
        return bool(grown)

    def _computed(self, dataset: Dataset) -> DataFrame:
        """Return the rows of a table that is not stored yet, by its query."""
        flows, key = self.catalog.flows[dataset.name.key], dataset.name.key
        many = "more than one flow writes to it" if len(flows) != 1 else None
        reason = many or ("change events make them" if flows[0].changes is not None else "it reads itself" if key in self._inside else None)
        if reason is not None:
            raise _refused(f"{dataset.name} has no rows yet, and {reason}", f"Run it first: lakelet run --select {dataset.name}")
        self.computed[str(dataset.name)] = None
        outer, self.flow = self.flow, flows[0]
        self._inside.append(key)
        try:
            return part_of(flows[0], self.query_of_view(dataset))
        finally:
            self.flow = outer
            self._inside.pop()


@contextmanager
def sampled(task: FlowTask) -> Iterator[tuple[SparkSession, SampleReader, DataFrame]]:
    """Yield the session, the reader, and the rows of a flow's query as a batch; for a change flow the rows of its source.

    Raises PREVIEW_REFUSED for a query that only a stream can answer, and what the flow's function raises.
    """
    environment, flow = task.environment, task.declared
    if flow.changes is not None and callable(flow.changes.snapshots):
        raise _refused(f"{task.name} asks a function for snapshots", "Run it: lakelet run")
    with flow_session(environment.spark, task.conf) as spark:
        files = SampledFiles(spark, environment)
        reader = SampleReader(spark, environment.catalog, environment=environment, flow=flow, files=files, batch_query=True)
        with reading(reader):
            frame = rows_of(flow)
        if frame.isStreaming:
            raise _refused(f"{task.name} reads a stream that is neither a table nor files", "Run it: lakelet run")
        while reader.json_columns and reader.learn(frame):  # a call may have the texts that another one gives
            with reading(reader):
                frame = rows_of(flow)
        yield spark, reader, frame


def _refused(what: str, todo: str) -> LakeletError:
    return LakeletError("PREVIEW_REFUSED", f"there is no preview: {what}", where=caller_location(), todo=todo)


__all__ = ["SAMPLE_FILES", "SampleReader", "sampled"]
