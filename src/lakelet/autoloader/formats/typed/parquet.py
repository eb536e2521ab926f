"""Parquet, through pyarrow: row groups are the parts that tasks read on their own (FF-23)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import types as t

from lakelet.autoloader.formats.option_tables import flag
from lakelet.autoloader.formats.typed.arrow_arrays import leaves_of, with_leaves
from lakelet.autoloader.formats.typed.old_calendar import mode_of, rebase_option
from lakelet.autoloader.formats.typed.reader import UPCAST, OpenFile, TypedFormat, TypedReader
from lakelet.autoloader.formats.typed.schema import spark_type
from lakelet.autoloader.session_settings import BINARY_AS_STRING, NANOS_AS_LONG, NO_LOCAL_PARQUET
from lakelet.base.errors import LakeletError

if TYPE_CHECKING:
    from lakelet.autoloader.source_spec import FilePart, ReaderSpec

_ROWS = 64 << 10
_TIMESTAMP = pa.timestamp("us", "UTC")
_VARIANT = re.compile(r"group (?:field_id=-?\d+ )?(.+) \(Variant\(")
_DATES, _INT96 = "datetimeRebaseMode", "int96RebaseMode"


class ParquetReader(TypedReader):
    """Reads the row groups that begin inside a part."""

    def _is_fixed(self, name: str) -> bool:
        """Whether user code chose the type of a column."""
        return self.spec.explicit or any(path.partition(".")[0] == name.lower() for path in self.spec.hinted)

    def open(self, stream: BinaryIO, part: FilePart) -> OpenFile:
        file = _parquet_file(stream)
        schema = schema_of_file(file, self.spec.switches, {name: kind for name, kind, _ in self.fields}, self._is_fixed)
        groups = _row_groups(file.metadata, part)

        def read(positions: Sequence[int]) -> Iterator[tuple[int, Any]]:
            wanted = pa.schema([schema.field(at) for at in positions])
            for group, before in groups:
                for batch in file.iter_batches(_ROWS, row_groups=[group], columns=_column_paths(file, positions)):
                    yield before, _typed_batch(batch, file.schema_arrow, positions, wanted)
                    before += len(batch)

        return OpenFile(schema, read, self._rebase_modes(file, schema))

    def _rebase_modes(self, file: Any, schema: Any) -> list[str]:
        metadata, options = file.metadata.metadata or {}, self.spec.format_options
        dates = mode_of(metadata, options[_DATES.lower()], since=(3, 0), legacy_key=b"org.apache.spark.legacyDateTime")
        timestamps = mode_of(metadata, options[_INT96.lower()], since=(3, 1), legacy_key=b"org.apache.spark.legacyINT96")
        physical = iter([file.schema.column(at).physical_type for at in range(len(file.schema))])
        kinds = [[next(physical) for _ in leaves_of(field)] for field in schema]
        return [timestamps if "INT96" in of_field else dates for of_field in kinds]


class ParquetFormat(TypedFormat):
    """`cloudFiles.format` parquet."""

    name = "parquet"
    reader_class = ParquetReader
    options = (
        flag("mergeSchema", False, notice="the schemas of all sampled files are always merged"),
        rebase_option(_DATES),
        rebase_option(_INT96),
        UPCAST,
    )

    def splittable(self, spec: ReaderSpec, path: str) -> bool:
        return True

    def schema(self, spec: ReaderSpec, stream: BinaryIO) -> Any:
        return schema_of_file(_parquet_file(stream), spec.switches)


def _parquet_file(stream: Any) -> Any:
    return pq.ParquetFile(stream, coerce_int96_timestamp_unit="us", pre_buffer=False)


def schema_of_file(
    file: Any, switches: Collection[str], wanted: Mapping[str, Any] | None = None, fixed: Callable[[str], bool] = lambda name: False
) -> Any:
    """The Arrow schema of a file under some settings (`settings`). Raises NOT_SUPPORTED_YET for VARIANT columns.

    `wanted`: name → Spark type; a leaf that settings let be read as its wanted type is. `fixed`: names of columns whose type was not
    inferred, so that the settings of earlier updates have not made it.
    """
    variant = _VARIANT.search(str(file.schema))
    if variant is not None:
        raise LakeletError(
            "NOT_SUPPORTED_YET",
            f"the parquet column {variant[1]} is a VARIANT, which is not read yet",
            todo="Write it as text (to_json), or leave the column out of the files.",
        )
    columns = iter([file.schema.column(at) for at in range(len(file.schema))])
    fields = []
    for field in file.schema_arrow:
        leaves = _wanted_leaves(field.type, (wanted or {}).get(field.name))
        chosen = partial(_leaf_type, columns, leaves, switches, fixed(field.name))
        fields.append(pa.field(field.name, with_leaves(field, chosen)))
    return pa.schema(fields)


def _possible_types(kind: Any, column: Any) -> dict[str, Any]:
    """What a leaf may be read as: without a switch (the key is empty), and by switch. The file's own annotation decides about zones."""
    if column.physical_type == "INT96":
        return {"": _TIMESTAMP}
    if pa.types.is_timestamp(kind):
        in_zone = pa.timestamp(kind.unit, kind.tz or "UTC")
        local = json.loads(column.logical_type.to_json()).get("isAdjustedToUTC") is False
        found = {"": pa.timestamp(kind.unit), NO_LOCAL_PARQUET: in_zone} if local else {"": in_zone}
        return {NANOS_AS_LONG: pa.int64(), **found} if kind.unit == "ns" else found
    bare = column.logical_type.type == "NONE" and column.physical_type == "BYTE_ARRAY"
    return {"": kind, BINARY_AS_STRING: pa.string()} if bare else {"": kind}


def _leaf_type(columns: Iterator[Any], leaves: Iterator[Any], switches: Collection[str], is_fixed: bool, leaf: Any) -> Any:
    """The type of the next leaf: the wanted type if the leaf may be read so, else the usual type."""
    readings, wanted = _possible_types(leaf.type, next(columns)), next(leaves)
    usual = next((kind for switch, kind in readings.items() if switch in switches), readings[""])
    allowed = [usual, *(kind for switch, kind in readings.items() if not (switch and is_fixed))]
    return next((kind for kind in allowed if spark_type(kind) == wanted), usual)


def _wanted_leaves(kind: Any, wanted: Any) -> Iterator[Any]:
    """The Spark type that is wanted for each leaf of an Arrow type; None where none is."""
    if not pa.types.is_nested(kind):
        yield wanted
    elif pa.types.is_map(kind):
        is_map = isinstance(wanted, t.MapType)
        yield from _wanted_leaves(kind.key_type, wanted.keyType if is_map else None)
        yield from _wanted_leaves(kind.item_type, wanted.valueType if is_map else None)
    elif pa.types.is_struct(kind):
        known = {field.name: field.dataType for field in wanted.fields} if isinstance(wanted, t.StructType) else {}
        for field in kind:
            yield from _wanted_leaves(field.type, known.get(field.name))
    else:
        yield from _wanted_leaves(kind.value_type, wanted.elementType if isinstance(wanted, t.ArrayType) else None)


def _column_paths(file: Any, positions: Sequence[int]) -> list[str] | None:
    """What to name to pyarrow so that it reads these columns only; None: all of them, where names would be ambiguous."""
    names = file.schema_arrow.names
    odd = len(set(names)) < len(names) or any("." in name for name in names)
    return None if odd or len(positions) == len(names) else [names[at] for at in positions]


def _typed_batch(batch: Any, whole: Any, positions: Sequence[int], wanted: Any) -> Any:
    """The wanted columns with their types; bytes that are read as texts stay as they are, as in Spark."""
    if batch.num_columns == len(whole) and len(positions) < len(whole):
        batch = batch.select(list(positions))
    columns = [
        column if column.type == field.type else column.cast(options=pc.CastOptions(field.type, allow_invalid_utf8=True))
        for column, field in zip(batch.columns, wanted, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wanted) if columns else batch.select([])


def _row_groups(metadata: Any, part: FilePart) -> list[tuple[int, int]]:
    """(row group, records before it) of the groups that begin inside the part."""
    found = []
    before = 0
    for at in range(metadata.num_row_groups):
        group = metadata.row_group(at)
        start = _start_of_group(group)
        if part.length is None or part.start <= start < part.start + part.length:
            found.append((at, before))
        before += group.num_rows
    return found


def _start_of_group(group: Any) -> int:
    if not group.num_columns:
        return 0
    column = group.column(0)
    offsets = (column.dictionary_page_offset, column.data_page_offset)
    return min((offset for offset in offsets if offset), default=0)
