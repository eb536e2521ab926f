"""The formats whose files always have the same columns: text and binaryFile.

text is one row per line, or with `wholeText` one row per file (FF-27); binaryFile is one row per file, with its content (FF-28).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from lakelet.autoloader.discovery.files import unreadable
from lakelet.autoloader.formats.base import Chunk, Format, FormatReader, mark_of
from lakelet.autoloader.formats.charsets import is_utf8, readable
from lakelet.autoloader.formats.csv.records import lines_of
from lakelet.autoloader.formats.option_tables import encoding, flag, line_separator
from lakelet.autoloader.formats.text_blocks import can_split, count_lines, text_blocks
from lakelet.autoloader.text_values import is_utf8 as has_utf8
from lakelet.base.errors import LakeletError, Location

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.autoloader.source_spec import FilePart, ReaderSpec


_KINDS = {"path": "string", "modificationTime": "timestamp", "length": "bigint", "content": "binary"}
_LARGEST = (1 << 31) - 1


class BinaryReader(FormatReader):
    """The files themselves."""

    def chunks(self, part: FilePart) -> Iterator[Chunk]:
        try:
            content = self.files.read(part.path)
        except OSError as error:
            raise unreadable(self.files.uri(part.path), error) from error
        if len(content) > _LARGEST:
            raise unreadable(self.files.uri(part.path), OverflowError("more than 2 GB in one value"))
        values = {
            "path": unquote(self.files.uri(part.path)),
            "modificationTime": part.modified,
            "length": len(content),
            "content": content,
        }
        columns = [pa.array([values.get(name)], kind) for name, _, kind in self.fields]
        yield Chunk(columns, marks=None if columns else [None])


class BinaryFormat(Format):
    """`cloudFiles.format` binaryFile."""

    name = "binaryFile"
    reader_class = BinaryReader
    fixed_schema = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"

    def check_schema(self, schema: StructType, where: Location | None) -> None:
        """A declared schema has the four columns with their types; further ones can only come from folder names."""
        declared = {field.name: field.dataType.simpleString() for field in schema.fields}
        if any(declared.get(name) != kind for name, kind in _KINDS.items()):
            found = ", ".join(f"{name} {kind.upper()}" for name, kind in declared.items())
            raise LakeletError(
                "BINARY_FILE_DATA_SOURCE_SCHEMA_MISMATCH",
                f"binaryFile has the columns {self.fixed_schema}, not {found}",
                where=where,
                todo="Leave the schema out.",
            )


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
                yield self._chunk([content], None if has_utf8(content) else [mark_of(1, bad_bytes=True)])
            return
        passed = 0
        for block in blocks:
            plain = _plain_lines(block) if separator in (None, "\n") else None
            lines = plain if plain is not None else [line for line, _ in lines_of(block, separator)]
            marks = None if has_utf8(block) else self._marks_of_lines(lines, passed, part)
            passed += len(lines)
            yield self._chunk(lines, marks)

    def _marks_of_lines(self, lines: list[bytes], passed: int, part: FilePart) -> list[int | None]:
        """Lines with bytes that are not of the encoding, counted."""
        first = passed + 1 + (count_lines(self.files, part.path, part.start - 1) + 1 if part.start > 0 else 0)
        return [mark_of(number, bad_bytes=not has_utf8(line)) for number, line in enumerate(lines, first)]

    def _chunk(self, values: list[bytes], marks: list[int | None] | None) -> Chunk:
        """As in Spark, bytes that are not UTF-8 are kept as they are; those that another encoding does not have are replaced."""
        codec = self.spec.format_options["encoding"]
        if marks is not None and not is_utf8(codec):
            values = [readable(value, codec)[0].encode() for value in values]
        column = pa.array(values, pa.binary()).view(pa.string())
        names = [name for name, _, _ in self.fields]
        at = names.index("value") if "value" in names else 0
        columns = [column if here == at else pa.nulls(len(values), kind) for here, (_, _, kind) in enumerate(self.fields)]
        return Chunk(columns, marks=marks if columns or marks else [None] * len(values))


class TextFormat(Format):
    """`cloudFiles.format` text."""

    name = "text"
    reader_class = TextReader
    fixed_schema = "value STRING"
    options = (encoding("utf-8", aliases=()), line_separator(), flag("wholeText", False))

    def splittable(self, spec: ReaderSpec, path: str) -> bool:
        given = spec.format_options
        return not given["wholetext"] and can_split(path, given["encoding"], given["linesep"])

    def supports(self, data_type: Any) -> bool:
        return bool(data_type.typeName() in ("string", "char", "varchar"))


def _plain_lines(block: bytes) -> list[bytes] | None:
    """The lines of a block without CR; None when it has one."""
    if b"\r" in block:
        return None
    lines = block.split(b"\n")
    return lines[:-1] if not lines[-1] else lines
