"""ORC, through pyarrow; the columns have to be declared (FF-26).

An ORC timestamp is stored as a wall clock with the zone of its writer, which makes it a point in time: it fills TIMESTAMP. Spark stores
TIMESTAMP_NTZ as whole numbers with a note. Java's writers use the old calendar for dates before 1582-10-15, the C++ one does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
from pyarrow import orc

from lakelet.autoloader.formats.option_tables import flag
from lakelet.autoloader.formats.typed.arrow_arrays import with_leaves
from lakelet.autoloader.formats.typed.old_calendar import CORRECTED, LEGACY, OldDates
from lakelet.autoloader.formats.typed.reader import UPCAST, OpenFile, TypedFormat, TypedReader

if TYPE_CHECKING:
    from lakelet.autoloader.source_spec import FilePart, ReaderSpec


_ROWS = 64 << 10


class OrcReader(TypedReader):
    """Reads stripe after stripe."""

    def open(self, stream: BinaryIO, part: FilePart) -> OpenFile:
        file = orc.ORCFile(stream)
        schema = schema_of_file(file)

        def read(positions: Sequence[int]) -> Iterator[tuple[int, Any]]:
            before = 0
            wanted = pa.schema([schema.field(at) for at in positions])
            for stripe in range(file.nstripes if positions else 0):
                batch = _stripe_columns(file, stripe, positions).cast(wanted)
                yield before, batch
                before += batch.num_rows
            while before < file.nrows:  # no column is read, and no value of one can stop the reading
                batch = pa.record_batch([pa.nulls(min(_ROWS, file.nrows - before))], names=["none"]).select([])
                yield before, batch
                before += batch.num_rows

        return OpenFile(schema, read, [LEGACY if file.writer == "ORC_JAVA" else CORRECTED] * len(schema))


class OrcFormat(TypedFormat):
    """`cloudFiles.format` orc."""

    name = "orc"
    reader_class = OrcReader
    infers = False
    options = (flag("mergeSchema", False, notice="the columns of orc files are declared, not inferred"), UPCAST)

    def schema(self, spec: ReaderSpec, stream: BinaryIO) -> Any:
        return schema_of_file(orc.ORCFile(stream))


def _stripe_columns(file: Any, number: int, positions: Sequence[int]) -> Any:
    """The columns at these positions. Raises OldDates for a moment that has no count of nanoseconds in 64 bits."""
    names = file.schema.names
    odd = len(set(names)) < len(names) or any("." in name for name in names)  # pyarrow takes columns by name, and dots for nesting
    try:
        return file.read_stripe(number).select(list(positions)) if odd else file.read_stripe(number, columns=list(positions))
    except pa.ArrowInvalid as error:
        if "nanosecond" not in str(error):
            raise
        raise OldDates("an ORC timestamp before 1677-09-21 or after 2262-04-11 is not read; leave its column out of the schema") from None


def schema_of_file(file: Any) -> Any:
    """The Arrow schema of a file: timestamps with time zone UTC, what Spark noted as TIMESTAMP_NTZ as timestamps without a zone."""
    return pa.schema([pa.field(field.name, with_leaves(field, _leaf_type)) for field in file.schema])


def _leaf_type(field: Any) -> Any:
    if pa.types.is_timestamp(field.type):
        return pa.timestamp(field.type.unit, "UTC")
    noted = (field.metadata or {}).get(b"spark.sql.catalyst.type") == b"timestamp_ntz"
    return pa.timestamp("us") if noted and pa.types.is_int64(field.type) else field.type


__all__ = ["OrcFormat", "OrcReader"]
