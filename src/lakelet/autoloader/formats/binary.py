"""binaryFile: one row per file, with its content (FF-28)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.discovery.unreadable import unreadable
from lakelet.autoloader.formats.base import Chunk, DataField, Format, FormatReader
from lakelet.base.errors import LakeletError, Location

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from lakelet.autoloader.spec import FilePart, ReaderSpec

_KINDS = {"path": "string", "modificationTime": "timestamp", "length": "bigint", "content": "binary"}
_LARGEST = (1 << 31) - 1


class BinaryFormat(Format):
    """`cloudFiles.format` binaryFile."""

    name = "binaryFile"
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

    def infer(self, spec: ReaderSpec, files: Files, paths: Sequence[str], known: StructType | None) -> StructType:
        raise LakeletError("INTERNAL", "the columns of binaryFile are not inferred")

    def reader(self, spec: ReaderSpec, fields: Sequence[DataField], files: Files, ignored: frozenset[str]) -> FormatReader:
        return BinaryReader(spec, fields, files, ignored)


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


__all__ = ["BinaryFormat", "BinaryReader"]
