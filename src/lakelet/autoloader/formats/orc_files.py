"""ORC, through pyarrow; the columns have to be declared (spec 1.1, 2.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyarrow import orc

from lakelet.autoloader.files import Files
from lakelet.autoloader.formats.base import DataField, FormatReader
from lakelet.autoloader.formats.option import flag
from lakelet.autoloader.formats.rebase import CORRECTED
from lakelet.autoloader.formats.typed_reader import UPCAST, OpenFile, TypedFormat, TypedReader

if TYPE_CHECKING:
    from lakelet.autoloader.planning import FilePart
    from lakelet.autoloader.spec import ReaderSpec


class OrcFormat(TypedFormat):
    """`cloudFiles.format` orc."""

    name = "orc"
    infers = False
    options = (flag("mergeSchema", False, notice="the columns of orc files are declared, not inferred"), UPCAST)

    def schema(self, spec: ReaderSpec, files: Files, path: str) -> Any | None:
        with files.open(path) as stream:
            return orc.ORCFile(stream).schema if stream.read(1) else None

    def reader(self, spec: ReaderSpec, fields: Sequence[DataField], files: Files, ignored: frozenset[str]) -> FormatReader:
        return OrcReader(spec, fields, files, ignored)


class OrcReader(TypedReader):
    """Reads stripe after stripe. A timestamp without a zone fills TIMESTAMP in the session's zone, as in Spark, or TIMESTAMP_NTZ."""

    def __init__(self, spec: ReaderSpec, fields: Sequence[DataField], files: Files, ignored: frozenset[str]) -> None:
        super().__init__(spec, fields, files, ignored)
        self.wall_clock = spec.time_zone

    def open(self, part: FilePart) -> OpenFile | None:
        stream = self.files.open(part.path)
        if not stream.read(1):
            stream.close()
            return None
        stream.seek(0)
        file = orc.ORCFile(stream)

        def read(positions: Sequence[int]) -> Iterator[tuple[int, Any]]:
            before = 0
            with stream:
                for stripe in range(file.nstripes):
                    batch = file.read_stripe(stripe)
                    yield before, batch.select(list(positions))
                    before += batch.num_rows

        return OpenFile(file.schema, read, [CORRECTED] * len(file.schema))


__all__ = ["OrcFormat", "OrcReader"]
