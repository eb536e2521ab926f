"""The Spark data source `cloudFiles`: what runs in Spark's Python processes (docs/semantics/auto-loader.md).

Streams plan batches and read them; a batch read (`read_files`, AL-29) lists all files of a folder, pattern or single file and remembers
nothing. A reader lives in a process of its own and sees nothing but its options, so one option carries a `ReaderSpec` as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from lakelet.autoloader.auto_loader_source import check_types
from lakelet.autoloader.continuous_rounds import SourceRounds
from lakelet.autoloader.discovery.files import files_for
from lakelet.autoloader.discovery.listing import files_of
from lakelet.autoloader.discovery.path_patterns import is_pattern
from lakelet.autoloader.format_detection import with_format
from lakelet.autoloader.metadata_column import LINE_FIELD, METADATA_FIELD, emitted_columns
from lakelet.autoloader.micro_batches import Planner, spread
from lakelet.autoloader.part_reader import FilesPartition, PartReader, joined_batches
from lakelet.autoloader.source_options import parse_options
from lakelet.autoloader.source_schema import SourceSchema, reader_spec
from lakelet.autoloader.source_spec import ADD_WIDEN, NONE, RESCUE, SPEC_OPTION, ReaderSpec, SourceSpec
from lakelet.autoloader.state.ledger import Limits, batch_of, offset_of
from lakelet.base.errors import LakeletError
from lakelet.jvm.frames import loaded
from lakelet.jvm.sessions import plain_reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class FilesReader(DataSourceReader):
    """Lists the files when the query runs, and reads them in worker processes."""

    def __init__(self, spec: ReaderSpec) -> None:
        self._spec = spec

    def partitions(self) -> Sequence[InputPartition]:
        table = files_of(self._spec, file_allowed=True).table
        if self._spec.newest:
            table = table.sort_by([("modified", "descending"), ("path", "descending")]).slice(0, self._spec.newest)
        return [FilesPartition(parts, -1, -1) for parts in spread(table, self._spec)] or [FilesPartition((), -1, -1)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, FilesPartition)
        return joined_batches(PartReader(self._spec, partition).batches())


def open_files(spec: SourceSpec, confs: Mapping[str, str]) -> tuple[ReaderSpec, tuple[str, ...]]:
    """What readers of a batch read get, and sentences about options without effect. Nothing is written.

    All files are read for the schema, so an evolution mode decides about the rescued column and the merging of types only (AL-30).

    Raises:
        LakeletError: CF_PATH_DOES_NOT_EXIST_FOR_READ_FILES, CF_UNABLE_TO_DETECT_FILE_FORMAT, CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE, or what
            the options have wrong.
    """
    spec = replace(spec, batch=True)
    _check_path(spec)
    spec = with_format(spec, None, confs)
    options = replace(parse_options(spec, confs), sample_files=sys.maxsize, sample_bytes=sys.maxsize)
    check_types(options, spec)
    read = reader_spec(options, SourceSchema(spec, options, None, store=False), state="")
    if read.mode not in (NONE, ADD_WIDEN):
        read = replace(read, mode=RESCUE)
    return read, options.notices


def read_files(spark: SparkSession, description: ReaderSpec) -> DataFrame:
    """The files as a batch DataFrame with hidden `_metadata`; `description` is that of `open_files`. The data source must be registered."""
    import json

    from pyspark.sql.types import StructType

    from lakelet.autoloader.metadata_column import hide_metadata

    description = replace(description, parallelism=spark.sparkContext.defaultParallelism)
    reader = plain_reader(spark, options={SPEC_OPTION: description.to_json()})
    return hide_metadata(loaded(spark, reader, "cloudFiles"), StructType.fromJson(json.loads(description.schema_json)))


def _check_path(spec: SourceSpec) -> None:
    files, path = files_for(spec.path)
    if not is_pattern(path) and not files.is_file(path) and not files.is_folder(path):
        raise LakeletError(
            "CF_PATH_DOES_NOT_EXIST_FOR_READ_FILES", f"read_files: {spec.path} does not exist", where=spec.where, todo="Correct the path."
        )


NEWEST_FIRST_SECONDS = 5.0
"""A round of `latestFirst` plans no further batch after so long: what reads the table gets the newest rows before the backlog is read."""


class CloudFilesDataSource(DataSource):
    """`format("cloudFiles")`."""

    @classmethod
    def name(cls) -> str:
        return "cloudFiles"

    _opened: ReaderSpec | None = None  # travels from `schema` to `streamReader` with the pickled object

    def _spec(self, schema: StructType | None = None) -> ReaderSpec:
        """What the driver described, else what the options say (a stream outside the Lakelet runtime)."""
        text = self.options.get(SPEC_OPTION)
        if text:
            return ReaderSpec.from_json(text)
        if self._opened is None:
            from lakelet.autoloader.standalone import reader_alone

            self._opened = reader_alone(self.options.get("path") or "", dict(self.options), schema)
        return self._opened

    def schema(self) -> StructType:
        spec = self._spec()
        columns = emitted_columns(StructType.fromJson(json.loads(spec.schema_json)))
        return StructType([*columns.fields, METADATA_FIELD, LINE_FIELD]) if spec.internal else columns

    def reader(self, schema: StructType) -> Any:
        from lakelet.autoloader.source_options import batch_usage

        if self.options.get(SPEC_OPTION) and not self._spec().state:
            return FilesReader(self._spec())
        raise batch_usage()

    def streamReader(self, schema: StructType) -> CloudFilesStreamReader:
        return CloudFilesStreamReader(self._spec(schema))


class CloudFilesStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches (in the driver's helper process) and reads partitions (in worker processes)."""

    def __init__(self, spec: ReaderSpec) -> None:
        self._spec = spec
        self._plans: Planner | None = None
        self._rounds: SourceRounds | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_spec": self._spec, "_plans": None, "_rounds": None}

    @property
    def _planner(self) -> Planner:
        if self._plans is None:
            self._plans = Planner(self._spec)
        return self._plans

    def initialOffset(self) -> dict[str, int]:
        return offset_of(-1)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxFiles(self._spec.max_files or 1000)

    def prepareForTriggerAvailableNow(self) -> None:
        self._planner.freeze()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, int]:
        whole = isinstance(limit, ReadAllAvailable)
        limits = Limits() if whole else Limits(self._spec.max_files, self._spec.max_bytes)
        after = batch_of(start)

        def plan() -> int:
            return self._planner.plan(after, limits)

        if not self._spec.rounds:
            return offset_of(plan())
        if self._rounds is None:
            if self._spec.newest_first:  # the newest may come at any time: each batch lists again
                self._rounds = SourceRounds(self._spec.rounds, lambda: None, seconds=NEWEST_FIRST_SECONDS)
            else:
                self._rounds = SourceRounds(self._spec.rounds, self._planner.freeze)
        return offset_of(self._rounds.plan(after, plan))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        after, up_to = batch_of(start), batch_of(end)
        return [FilesPartition(parts, after, up_to) for parts in self._planner.parts(after, up_to)]

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing depends on it: Spark does not call it for the last batch of availableNow."""

    def read(self, partition: FilesPartition) -> Iterator[Any]:  # type: ignore[override]
        return joined_batches(PartReader(self._spec, partition).batches())
