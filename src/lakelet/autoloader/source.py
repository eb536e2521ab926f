"""The Spark data source `cloudFiles`: what runs in Spark's Python processes (spec 2, 3, 4, 5).

The stream reader lives in a process of its own and sees nothing but its options, so one option carries a `ReaderSpec` as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from lakelet.autoloader.evolve import UnknownFieldException, UnknownFieldNote
from lakelet.autoloader.files import files_for
from lakelet.autoloader.json_blocks import BlockReader, Rows, UnknownInLine
from lakelet.autoloader.json_rows import IGNORE, RAISE, RESCUE, Row, RowRules
from lakelet.autoloader.ledger import Limits
from lakelet.autoloader.lines import count_lines, read_blocks
from lakelet.autoloader.metadata import LINE_FIELD, METADATA_FIELD, metadata_arrays
from lakelet.autoloader.options import ADD, FAIL
from lakelet.autoloader.planning import FilePart, Planner, batch_of, offset_of
from lakelet.autoloader.spec import SPEC_OPTION, ReaderSpec
from lakelet.errors import LakeletError

_SMALL_BATCH = 2000  # rows; smaller batches are joined before they go to the JVM


class CloudFilesDataSource(DataSource):  # type: ignore[misc]
    """`format("cloudFiles")`."""

    @classmethod
    def name(cls) -> str:
        return "cloudFiles"

    def _spec(self) -> ReaderSpec:
        text = self.options.get(SPEC_OPTION)
        if not text:
            what = 'format("cloudFiles") is only read through the Lakelet runtime yet'
            raise LakeletError("NOT_SUPPORTED_YET", what, todo="Use lakelet.autoloader.AutoLoaderSource.open(...).read_stream(spark).")
        return ReaderSpec.from_json(text)

    def schema(self) -> StructType:
        public = StructType.fromJson(json.loads(self._spec().schema_json))
        return StructType([*public.fields, METADATA_FIELD, LINE_FIELD])

    def reader(self, schema: StructType) -> Any:
        raise LakeletError("CF_INCORRECT_BATCH_USAGE", "cloudFiles is a streaming source", todo="Use spark.readStream.")

    def streamReader(self, schema: StructType) -> CloudFilesStreamReader:
        return CloudFilesStreamReader(self._spec())


class FilesPartition(InputPartition):  # type: ignore[misc]
    """The work of one task."""

    def __init__(self, parts: Sequence[FilePart], after: int, up_to: int) -> None:
        super().__init__(None)
        self.parts, self.after, self.up_to = tuple(parts), after, up_to


class CloudFilesStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Plans batches (in the driver's helper process) and reads partitions (in worker processes)."""

    def __init__(self, spec: ReaderSpec) -> None:
        self._spec = spec
        self._plans: Planner | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_spec": self._spec, "_plans": None}

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
        return offset_of(self._planner.plan(batch_of(start), limits))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        after, up_to = batch_of(start), batch_of(end)
        return [FilesPartition(parts, after, up_to) for parts in self._planner.parts(after, up_to)]

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing depends on it: Spark does not call it for the last batch of availableNow."""

    def read(self, partition: FilesPartition) -> Iterator[Any]:
        return joined(PartReader(self._spec, partition).batches())


class PartReader:
    """Reads the file parts of one partition into record batches of the source's full schema."""

    def __init__(self, spec: ReaderSpec, partition: FilesPartition) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema

        public = StructType.fromJson(json.loads(spec.schema_json))
        self._spec, self._partition = spec, partition
        self._schema = to_arrow_schema(StructType([*public.fields, METADATA_FIELD, LINE_FIELD]), timezone="UTC")
        self._files, _ = files_for(spec.path)
        names = [f.name for f in public.fields]
        self._rescued_at = names.index(spec.rescued_column) if spec.rescued_column in names else None
        fields = [(f.name, f.dataType, self._schema.field(i).type) for i, f in enumerate(public.fields) if i != self._rescued_at]
        self._reader = BlockReader(fields, rules_of(spec), spec.corrupt_column)

    def batches(self) -> Iterator[Any]:
        for part in self._partition.parts:
            yield from self._read(part)

    def _read(self, part: FilePart) -> Iterator[Any]:
        if self._spec.refuse_path_columns:
            self._refuse_path_columns(part.path)
        before = 0 if part.start == 0 else None  # lines before the block; counted only when it is needed
        passed = 0
        for block in read_blocks(self._files, part.path, part.start, part.length):
            try:
                rows = self._reader.read(block)
            except UnknownInLine as error:
                raise self._unknown(error.blob, part, self._lines_before(part) + passed + error.line + 1) from None
            if rows.columns is not None:
                yield self._clean_batch(rows.columns, part)
            if rows.rows:
                if before is None:
                    before = self._lines_before(part)
                yield self._row_batch(rows, part, before + passed)
            passed += block.count(b"\n")

    def _refuse_path_columns(self, path: str) -> None:
        for segment in path.split("/")[:-1]:
            key, found, _ = segment.partition("=")
            if found and key in self._schema.names:
                what = f"{self._files.uri(path)}: column {key} would come from the folder name; partition columns are not read yet"
                raise LakeletError("NOT_SUPPORTED_YET", what, todo='Set cloudFiles.partitionColumns to "" to take it from the records.')

    def _lines_before(self, part: FilePart) -> int:
        return count_lines(self._files, part.path, part.start - 1) + 1 if part.start > 0 else 0

    def _clean_batch(self, columns: list[Any], part: FilePart) -> Any:
        return self._batch(columns, pa.nulls(len(columns[0]), pa.string()), pa.nulls(len(columns[0]), pa.int64()), part)

    def _row_batch(self, rows: Rows, part: FilePart, before: int) -> Any:
        path = json.dumps(self._files.uri(part.path), ensure_ascii=False)
        suffix = f',"_file_path":{path}}}' if self._spec.file_path_in_rescued else "}"
        rescued = [None if row.rescued is None else "{" + row.rescued + suffix for _, row in rows.rows]
        lines = [_line_mark(row, before + number + 1) for number, row in rows.rows]
        columns = self._reader.arrays([row for _, row in rows.rows])
        return self._batch(columns, pa.array(rescued, pa.string()), pa.array(lines, pa.int64()), part)

    def _batch(self, columns: list[Any], rescued: Any, lines: Any, part: FilePart) -> Any:
        arrays = list(columns)
        if self._rescued_at is not None:
            arrays.insert(self._rescued_at, rescued)
        arrays.append(metadata_arrays(part, self._files.uri(part.path), len(lines)))
        arrays.append(lines)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _unknown(self, blob: str, part: FilePart, line: int) -> UnknownFieldException:
        note = UnknownFieldNote(self._spec.state, self._partition.after, self._partition.up_to, self._files.uri(part.path))
        return UnknownFieldException(blob, retry=self._spec.mode == ADD, line=line, note=note)


def rules_of(spec: ReaderSpec) -> RowRules:
    """The row rules of a source (spec 3.1: which mode does what with an unknown field)."""
    unknown = RAISE if spec.mode in (ADD, FAIL) else RESCUE if spec.rescued_column else IGNORE
    return RowRules(
        unknown=unknown,
        rescue=spec.rescued_column is not None,
        case_sensitive=spec.case_sensitive,
        zone=spec.time_zone,
        reserved=(spec.rescued_column,) if spec.rescued_column else (),
        all_text=not spec.infer_types,
    )


def _line_mark(row: Row, line: int) -> int | None:
    """NULL for a clean row, minus the line number for a broken line."""
    return -line if row.broken else line if row.rescued is not None else None


def joined(batches: Iterator[Any]) -> Iterator[Any]:
    """The same rows in fewer batches: small ones are put together."""
    held: list[Any] = []
    rows = 0
    for batch in batches:
        if len(batch) >= _SMALL_BATCH and not held:
            yield batch
            continue
        held.append(batch)
        rows += len(batch)
        if rows >= _SMALL_BATCH:
            yield pa.concat_batches(held)
            held, rows = [], 0
    if held:
        yield pa.concat_batches(held)
