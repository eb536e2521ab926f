"""Avro, through the library fastavro: an extra (`lakelet[avro]`), imported when the first file is read (FF-25)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.formats.base import DataField, FormatReader
from lakelet.autoloader.formats.options import Option, flag
from lakelet.autoloader.formats.typed.avro_types import AvroPlan, fastavro, parsed_schema, plan_of
from lakelet.autoloader.formats.typed.reader import UPCAST, OpenFile, TypedFormat, TypedReader
from lakelet.autoloader.formats.typed.rebase import mode_of, rebase_option

if TYPE_CHECKING:
    from lakelet.autoloader.spec import FilePart, ReaderSpec

_ROWS = 8 << 10
_DATES = "datetimeRebaseMode"


def _schema_text(text: str) -> str:
    try:
        parsed_schema(json.loads(text))
    except (ValueError, TypeError, KeyError) as problem:
        raise ValueError(f"must be an Avro schema in JSON ({problem})") from None
    return text


class AvroFormat(TypedFormat):
    """`cloudFiles.format` avro."""

    name = "avro"
    options = (
        Option("avroSchema", _schema_text),
        flag("mergeSchema", False, notice="the schemas of all sampled files are always merged"),
        rebase_option(_DATES),
        UPCAST,
    )

    def schema(self, spec: ReaderSpec, files: Files, path: str) -> Any | None:
        with files.open(path) as stream:
            if not stream.read(1):
                return None
            stream.seek(0)
            header = fastavro().block_reader(stream)
            return _plan(spec, header.writer_schema).schema

    def reader(self, spec: ReaderSpec, fields: Sequence[DataField], files: Files, ignored: frozenset[str]) -> FormatReader:
        return AvroReader(spec, fields, files, ignored)


class AvroReader(TypedReader):
    """Reads records block by block without their logical types, and makes Arrow columns of them, so that no value is changed on the way."""

    def open(self, part: FilePart) -> OpenFile | None:
        stream = self.files.open(part.path)
        if not stream.read(1):
            stream.close()
            return None
        stream.seek(0)
        blocks = fastavro().block_reader(stream)
        plan = _plan(self.spec, blocks.writer_schema)
        mode = mode_of(
            {key.encode(): value for key, value in blocks.metadata.items()},
            self.spec.format_options[_DATES.lower()],
            since=(3, 0),
            legacy_key=b"org.apache.spark.legacyDateTime",
        )

        def read(positions: Sequence[int]) -> Iterator[tuple[int, Any]]:
            before = 0
            with stream:
                for records in _batches(blocks, plan):
                    yield before, plan.batch(records, positions)
                    before += len(records)

        return OpenFile(plan.schema, read, [mode] * len(plan.schema))


def _plan(spec: ReaderSpec, writer: Any) -> AvroPlan:
    wanted = spec.format_options.get("avroschema")
    return plan_of(writer, None if wanted is None else json.loads(wanted))


def _batches(blocks: Any, plan: AvroPlan) -> Iterator[list[Any]]:
    """Decoded records, also those before a damage. Raises ValueError for whatever a damaged file makes of the library."""
    records, found = _records(blocks, plan), []
    try:
        for record in records:
            found.append(record)
            if len(found) == _ROWS:
                yield found
                found = []
    except Exception as error:  # fastavro raises whatever a broken block leads to: EOFError, IndexError, struct.error, zlib.error
        if found:
            yield found
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if found:
        yield found


def _records(blocks: Any, plan: AvroPlan) -> Iterator[Any]:
    decode = fastavro().schemaless_reader
    named = {"return_named_type": plan.named, "return_named_type_override": plan.named}
    for block in blocks:
        content = block.bytes_
        for _ in range(block.num_records):
            yield decode(content, plan.writer, plan.wanted, handle_unicode_errors="replace", **named)


__all__ = ["AvroFormat", "AvroReader"]
