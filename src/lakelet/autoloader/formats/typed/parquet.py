"""Parquet, through pyarrow: row groups are the parts that tasks read on their own (FF-23)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.formats.base import DataField, FormatReader
from lakelet.autoloader.formats.options import flag
from lakelet.autoloader.formats.typed.nested import with_leaves
from lakelet.autoloader.formats.typed.reader import UPCAST, OpenFile, TypedFormat, TypedReader
from lakelet.autoloader.formats.typed.rebase import mode_of, rebase_option
from lakelet.base.errors import LakeletError

if TYPE_CHECKING:
    from lakelet.autoloader.spec import FilePart, ReaderSpec

_ROWS = 64 << 10
_TIMESTAMP = pa.timestamp("us", "UTC")
_VARIANT = re.compile(r"group (?:field_id=-?\d+ )?(.+) \(Variant\(")
_DATES, _INT96 = "datetimeRebaseMode", "int96RebaseMode"


class ParquetFormat(TypedFormat):
    """`cloudFiles.format` parquet."""

    name = "parquet"
    options = (
        flag("mergeSchema", False, notice="the schemas of all sampled files are always merged"),
        rebase_option(_DATES),
        rebase_option(_INT96),
        UPCAST,
    )

    def splittable(self, spec: ReaderSpec, path: str) -> bool:
        return True

    def schema(self, spec: ReaderSpec, files: Files, path: str) -> Any | None:
        with files.open(path) as stream:
            return None if _empty(stream) else schema_of_file(_opened(stream))

    def reader(self, spec: ReaderSpec, fields: Sequence[DataField], files: Files, ignored: frozenset[str]) -> FormatReader:
        return ParquetReader(spec, fields, files, ignored)


class ParquetReader(TypedReader):
    """Reads the row groups that begin inside a part."""

    def open(self, part: FilePart) -> OpenFile | None:
        stream = self.files.open(part.path)
        if _empty(stream):
            stream.close()
            return None
        file = _opened(stream)
        schema = schema_of_file(file)
        groups = _groups(file.metadata, part)

        def read(positions: Sequence[int]) -> Iterator[tuple[int, Any]]:
            wanted = pa.schema([schema.field(at) for at in positions])
            with stream:
                for group, before in groups:
                    for batch in file.iter_batches(_ROWS, row_groups=[group], columns=_paths(file, positions)):
                        yield before, _typed(batch, file.schema_arrow, positions, wanted)
                        before += len(batch)

        return OpenFile(schema, read, self._modes(file, schema))

    def _modes(self, file: Any, schema: Any) -> list[str]:
        metadata, options = file.metadata.metadata or {}, self.spec.format_options
        dates = mode_of(metadata, options[_DATES.lower()], since=(3, 0), legacy_key=b"org.apache.spark.legacyDateTime")
        timestamps = mode_of(metadata, options[_INT96.lower()], since=(3, 1), legacy_key=b"org.apache.spark.legacyINT96")
        return [dates if field.type == known.type else timestamps for field, known in zip(schema, file.schema_arrow, strict=True)]


def _opened(stream: Any) -> Any:
    return pq.ParquetFile(stream, coerce_int96_timestamp_unit="us", pre_buffer=False)


def _empty(stream: Any) -> bool:
    at_end = not stream.read(1)
    stream.seek(0)
    return at_end


def schema_of_file(file: Any) -> Any:
    """The Arrow schema of a file, INT96 as timestamps in UTC. Raises NOT_SUPPORTED_YET for VARIANT columns."""
    variant = _VARIANT.search(str(file.schema))
    if variant is not None:
        raise LakeletError(
            "NOT_SUPPORTED_YET",
            f"the parquet column {variant[1]} is a VARIANT, which is not read yet",
            todo="Write it as text (to_json), or leave the column out of the files.",
        )
    int96 = iter([file.schema.column(at).physical_type == "INT96" for at in range(len(file.schema))])
    return pa.schema([pa.field(f.name, with_leaves(f, lambda leaf: _TIMESTAMP if next(int96) else leaf.type)) for f in file.schema_arrow])


def _paths(file: Any, positions: Sequence[int]) -> list[str] | None:
    """What to name to pyarrow so that it reads these columns only; None: all of them, where names would be ambiguous."""
    names = file.schema_arrow.names
    odd = len(set(names)) < len(names) or any("." in name for name in names)
    return None if odd or len(positions) == len(names) else [names[at] for at in positions]


def _typed(batch: Any, whole: Any, positions: Sequence[int], wanted: Any) -> Any:
    if batch.num_columns == len(whole) and len(positions) < len(whole):
        batch = batch.select(list(positions))
    columns = [
        column if column.type == field.type else column.cast(field.type) for column, field in zip(batch.columns, wanted, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wanted) if columns else batch.select([])


def _groups(metadata: Any, part: FilePart) -> list[tuple[int, int]]:
    """(row group, records before it) of the groups that begin inside the part."""
    found = []
    before = 0
    for at in range(metadata.num_row_groups):
        group = metadata.row_group(at)
        start = _start(group)
        if part.length is None or part.start <= start < part.start + part.length:
            found.append((at, before))
        before += group.num_rows
    return found


def _start(group: Any) -> int:
    if not group.num_columns:
        return 0
    column = group.column(0)
    offsets = (column.dictionary_page_offset, column.data_page_offset)
    return min((offset for offset in offsets if offset), default=0)
