"""text: one row per line, or with `wholeText` one row per file (FF-27)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.discovery.unreadable import unreadable
from lakelet.autoloader.formats.base import Chunk, DataField, Format, FormatReader
from lakelet.autoloader.formats.csv.records import lines_of
from lakelet.autoloader.formats.options import flag
from lakelet.autoloader.formats.text_blocks import can_split, encoding, line_separator, text_blocks
from lakelet.base.errors import LakeletError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.autoloader.spec import FilePart, ReaderSpec

_LARGEST = (1 << 31) - 1


class TextFormat(Format):
    """`cloudFiles.format` text."""

    name = "text"
    fixed_schema = "value STRING"
    options = (encoding("encoding"), line_separator(), flag("wholeText", False))

    def splittable(self, spec: ReaderSpec, path: str) -> bool:
        given = spec.format_options
        return not given["wholetext"] and can_split(path, given["encoding"], given["linesep"])

    def supports(self, data_type: Any) -> bool:
        return bool(data_type.typeName() in ("string", "char", "varchar"))

    def infer(self, spec: ReaderSpec, files: Files, paths: Sequence[str], known: StructType | None) -> StructType:
        raise LakeletError("INTERNAL", "the columns of text files are not inferred")

    def reader(self, spec: ReaderSpec, fields: Sequence[DataField], files: Files, ignored: frozenset[str]) -> FormatReader:
        return TextReader(spec, fields, files, ignored)


class TextReader(FormatReader):
    """Lines or whole files in the column `value`; of a declared schema without that name, in its first column."""

    def chunks(self, part: FilePart) -> Iterator[Chunk]:
        given = self.spec.format_options
        separator = given["linesep"]
        blocks = text_blocks(self.files, part.path, given["encoding"], separator, part.start, part.length)
        if given["wholetext"]:
            content = b"".join(blocks)
            if len(content) > _LARGEST:
                error = OverflowError("more than 2 GB in one value")
                raise unreadable(self.files.uri(part.path), error)
            if content:
                yield self._chunk([content])
            return
        for block in blocks:
            lines = _plain_lines(block) if separator in (None, "\n") else None
            yield self._chunk(lines if lines is not None else [line for line, _ in lines_of(block, separator)])

    def _chunk(self, values: list[bytes]) -> Chunk:
        """As in Spark, bytes that are not UTF-8 are kept as they are."""
        column = pa.array(values, pa.binary()).view(pa.string())
        names = [name for name, _, _ in self.fields]
        at = names.index("value") if "value" in names else 0
        columns = [column if here == at else pa.nulls(len(values), kind) for here, (_, _, kind) in enumerate(self.fields)]
        return Chunk(columns, marks=None if columns else [None] * len(values))


def _plain_lines(block: bytes) -> list[bytes] | None:
    """The lines of a block without CR; None when it has one."""
    if b"\r" in block:
        return None
    lines = block.split(b"\n")
    return lines[:-1] if not lines[-1] else lines


__all__ = ["TextFormat", "TextReader"]
