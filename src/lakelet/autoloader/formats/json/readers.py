"""JSON file parts as chunks (FF-4, FF-10, FS-35).

`JsonLinesReader` reads blocks of lines, vectorised where they are clean, and `JsonDocumentReader` the records of other layouts.
`JsonVariantReader` (`singleVariantColumn`) keeps every document whole, as the JSON text from which Spark makes a VARIANT. A document is a
line or, with `multiLine`, what a file holds: any JSON value. A broken one, or one with a key twice, is rescued where a rescued column was
named or `_corrupt_record` is a column; else its text is a text inside the variant.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.formats.base import Chunk, DataField, UnknownFields, mark_of
from lakelet.autoloader.formats.charsets import utf8_chunks
from lakelet.autoloader.formats.json.blocks import BlockReader, BlockRows
from lakelet.autoloader.formats.json.records import JsonRecord, RecordLayout, document_records, separated_records
from lakelet.autoloader.formats.json.rows import JsonRow, RowReader, RowRules, readable_start
from lakelet.autoloader.formats.json.syntax_tree import BrokenText, dump, first_value, has_more, repeats_key
from lakelet.autoloader.formats.text_blocks import count_lines, head_of, open_stream, read_blocks

if TYPE_CHECKING:
    from lakelet.autoloader.source_spec import FilePart


_DOCUMENT_BLOCK = 4 << 20  # bytes of records that are converted together


class JsonLinesReader:
    """Blocks of lines, vectorised where they are clean. A file in UTF-16 or UTF-32 is read by the part that has its first byte."""

    def __init__(self, files: Files, fields: Sequence[DataField], rules: RowRules, layout: RecordLayout, corrupt_column: str) -> None:
        self._files, self._layout = files, layout
        self._blocks = BlockReader(fields, rules, corrupt_column)

    def chunks(self, part: FilePart) -> Iterator[Chunk]:
        """The rows of a part. Raises UnknownFields with the line."""
        if part.start > 0 and self._layout.codec is None and not self._layout.of_file(head_of(self._files, part.path)).is_lines:
            return
        before = 0 if part.start == 0 else None  # lines before the part; counted only when it is needed
        passed = 0
        for block in read_blocks(self._files, part.path, part.start, part.length):
            if passed == part.start == 0 and not (layout := self._layout.of_file(block[:4])).is_lines:
                yield from JsonDocumentReader(self._files, self._blocks.of_codec(layout.codec), layout).chunks(part)
                return
            try:
                rows = self._blocks.read(block)
            except UnknownFields as error:
                raise error.at(self._lines_before(part) + passed + error.line + 1) from None
            if rows.columns is not None:
                yield Chunk(rows.columns)
            if rows.rows:
                if before is None:
                    before = self._lines_before(part)
                yield chunk_of_rows(self._blocks, rows.rows, before + passed)
            passed += block.count(b"\n")

    def _lines_before(self, part: FilePart) -> int:
        return count_lines(self._files, part.path, part.start - 1) + 1 if part.start > 0 else 0


class JsonDocumentReader:
    """Records of a layout other than lines; those without line ends inside go through the vectorised path together."""

    def __init__(self, files: Files, blocks: BlockReader, layout: RecordLayout) -> None:
        self._files, self._layout, self._blocks = files, layout, blocks

    def chunks(self, part: FilePart) -> Iterator[Chunk]:
        """The rows of a whole file. Raises UnknownFields with the number of the record."""
        passed = 0
        for records in self._batches(part):
            if records[0].broken:
                yield chunk_of_rows(self._blocks, [(0, self._blocks.broken(records[0].text, rescue=False))], 0)
            else:
                yield from self._converted(records, passed)
            passed += len(records)

    def _batches(self, part: FilePart) -> Iterator[list[JsonRecord]]:
        if not self._layout.multi_line:
            for texts in separated_records(self._files, part.path, self._layout):
                yield [JsonRecord(text) for text in texts]
            return
        held: list[JsonRecord] = []
        size = 0
        for record in document_records(self._files, part.path, self._layout, self._blocks.rules.syntax):
            if held and (size >= _DOCUMENT_BLOCK or record.more):
                yield held
                held, size = [], 0
            held.append(record)
            size += len(record.text)
        if held:
            yield held

    def _converted(self, records: Sequence[JsonRecord], passed: int) -> Iterator[Chunk]:
        texts = [record.text for record in records]
        try:
            if records[0].more:  # it is alone
                found = [(number, replace(row, more=not row.broken)) for number, row in self._blocks.convert([(0, texts[0])])]
                rows = BlockRows(None, found)
            elif any(b"\n" in text for text in texts):
                rows = BlockRows(None, self._blocks.convert(list(enumerate(texts))))
            else:
                rows = self._blocks.read(b"\n".join(texts))
        except UnknownFields as error:
            raise error.at(passed + error.line + 1) from None
        if rows.columns is not None:
            yield Chunk(rows.columns)
        if rows.rows:
            yield chunk_of_rows(self._blocks, rows.rows, passed)


def chunk_of_rows(blocks: BlockReader, found: Sequence[tuple[int, JsonRow]], before: int) -> Chunk:
    """A chunk of rows that were converted one by one; `before`: how many lines or records come before the first one."""
    rows = [row for _, row in found]
    marks = [_mark_of_row(row, before + number + 1) for number, row in found]
    raw = {at: row.text for at, row in enumerate(rows) if row.broken}
    return Chunk(blocks.arrays(rows), [row.rescued for row in rows], marks, raw)


def _mark_of_row(row: JsonRow, number: int) -> int | None:
    return mark_of(number, broken=row.broken, rescued=row.rescued is not None, passed_over=row.more, bad_bytes=row.bad_bytes)


class _RepeatedKey(Exception):
    """An object has a key twice, of which Spark makes no VARIANT."""


def _object_without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedKey
    return found


_strict = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str, object_pairs_hook=_object_without_repetition).raw_decode


class JsonVariantReader:
    """Documents as JSON text in one column; other columns are NULL, but for the one of corrupt records."""

    def __init__(
        self, files: Files, fields: Sequence[DataField], rules: RowRules, layout: RecordLayout, variant: str, corrupt_column: str
    ) -> None:
        self._files, self._fields, self._rules, self._layout = files, fields, rules, layout
        names = [name for name, _, _ in fields]
        self._variant = names.index(variant)
        self._reader = RowReader([(name, kind) for name, kind, _ in fields], rules, corrupt_column)
        self._keeps_broken = rules.rescue or corrupt_column in names

    def chunks(self, part: FilePart) -> Iterator[Chunk]:
        """The rows of a part."""
        passed = count_lines(self._files, part.path, part.start - 1) + 1 if part.start > 0 else 0
        for texts in self._batches(part):
            yield self._chunk(texts, passed)
            passed += len(texts)

    def _batches(self, part: FilePart) -> Iterator[list[bytes]]:
        layout = self._layout
        if layout.is_lines and layout.codec is None:
            layout = layout.of_file(head_of(self._files, part.path))
        if layout.is_lines:
            for block in read_blocks(self._files, part.path, part.start, part.length):
                yield block.removesuffix(b"\n").split(b"\n")
        elif layout.multi_line:
            with open_stream(self._files, part.path) as stream:
                yield [b"".join(utf8_chunks(stream, layout.codec))]
        elif part.start == 0:
            yield from separated_records(self._files, part.path, layout)

    def _chunk(self, texts: Sequence[bytes], passed: int) -> Chunk:
        rows: list[list[Any]] = []
        rescued: list[str | None] = []
        marks: list[int | None] = []
        raw: dict[int, str] = {}
        for number, line in enumerate(texts):
            if not line.strip():
                continue
            found = self._document_text(line)
            if found is not None:
                text, more = found
                rows.append([text if at == self._variant else None for at in range(len(self._fields))])
                rescued.append(None)
                marks.append(mark_of(passed + number + 1, passed_over=more))
            else:
                row = self._reader.broken(line)
                values = list(row.values)
                if not self._keeps_broken:
                    values[self._variant] = row.text
                raw[len(rows)] = row.text
                rows.append(values)
                rescued.append(row.rescued)
                marks.append(mark_of(passed + number + 1, broken=True, bad_bytes=row.bad_bytes))
        arrays = [pa.array([row[at] for row in rows], kind) for at, (_, _, kind) in enumerate(self._fields)]
        return Chunk(arrays, rescued if raw else None, marks if any(marks) else None, raw)

    def _document_text(self, line: bytes) -> tuple[str, bool] | None:
        """The JSON text of the first value, and whether more follows it; None when it is broken."""
        text, whole = readable_start(line)
        text = text.strip(" \t\r\n")
        try:
            end = _strict_end(text) if text[:1] in ("{", "[") else None
            if end is not None:
                return text[:end], not whole or has_more(text, end, self._rules.syntax)
            node, end = first_value(text, self._rules.syntax)
            return None if repeats_key(node) else (dump(node), not whole or has_more(text, end, self._rules.syntax))
        except (BrokenText, _RepeatedKey):
            return None


def _strict_end(text: str) -> int | None:
    """Where the first value ends, if Spark's parser of variants takes it as it is; None for what is written again."""
    if "NaN" in text or "Infinity" in text or "\\u" in text:
        return None
    try:
        end: int = _strict(text)[1]
    except (ValueError, RecursionError):
        return None
    return end
