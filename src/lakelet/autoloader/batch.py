"""Batch reads: all files of a folder, pattern or single file, nothing remembered (`read_files`, AL-29)."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from lakelet.autoloader.detect import with_format
from lakelet.autoloader.discovery.files import files_for
from lakelet.autoloader.discovery.globs import is_pattern
from lakelet.autoloader.discovery.listing import list_files
from lakelet.autoloader.driver import check_types
from lakelet.autoloader.options import parse_options
from lakelet.autoloader.part_reader import FilesPartition, PartReader, joined
from lakelet.autoloader.planning import filters_of, spread
from lakelet.autoloader.schema.source_schema import SourceSchema, reader_spec
from lakelet.autoloader.spec import ADD_WIDEN, NONE, RESCUE, SPEC_OPTION, ReaderSpec, SourceSpec
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
        table = list_files(self._spec.path, filters_of(self._spec), file_allowed=True).table
        if self._spec.newest:
            table = table.sort_by([("modified", "descending"), ("path", "descending")]).slice(0, self._spec.newest)
        return [FilesPartition(parts, -1, -1) for parts in spread(table, self._spec)] or [FilesPartition((), -1, -1)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, FilesPartition)
        return joined(PartReader(self._spec, partition).batches())


def open_files(spec: SourceSpec, confs: Mapping[str, str]) -> tuple[ReaderSpec, tuple[str, ...]]:
    """What readers of a batch read get, and sentences about options without effect. Nothing is written.

    All files are looked at for the schema, so an evolution mode decides about the rescued column and the merging of types only (AL-30).

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

    from lakelet.autoloader.metadata import hide_metadata

    description = replace(description, parallelism=spark.sparkContext.defaultParallelism)
    reader = plain_reader(spark, options={SPEC_OPTION: description.to_json()})
    return hide_metadata(loaded(spark, reader, "cloudFiles"), StructType.fromJson(json.loads(description.schema_json)))


def _check_path(spec: SourceSpec) -> None:
    files, path = files_for(spec.path)
    if not is_pattern(path) and not files.is_file(path) and not files.is_folder(path):
        raise LakeletError(
            "CF_PATH_DOES_NOT_EXIST_FOR_READ_FILES", f"read_files: {spec.path} does not exist", where=spec.where, todo="Correct the path."
        )
