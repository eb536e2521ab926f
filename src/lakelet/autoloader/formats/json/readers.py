"""JSON file parts as chunks: blocks of lines, vectorised where they are clean, and the records of other layouts (FF-4, FS-35)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.formats.base import Chunk, DataField, UnknownFields, WiderType
from lakelet.autoloader.formats.json.blocks import BlockReader, Rows, UnknownInLine
from lakelet.autoloader.formats.json.records import Layout, Record, documents, separated
from lakelet.autoloader.formats.json.rows import Row, RowRules
from lakelet.autoloader.formats.lines import count_lines, read_blocks

if TYPE_CHECKING:
    from lakelet.autoloader.spec import FilePart

_DOCUMENT_BLOCK = 4 << 20  # bytes of records that are converted together
_SPACE = b" \t\r\n"


class JsonLinesReader:
    """Blocks of lines, vectorised where they are clean."""

    def __init__(self, files: Files, fields: Sequence[DataField], rules: RowRules, corrupt_column: str) -> None:
        self._files = files
        self._blocks = BlockReader(fields, rules, corrupt_column)

    def chunks(self, part: FilePart) -> Iterator[Chunk]:
        """The rows of a part. Raises UnknownFields with the line."""
        before = 0 if part.start == 0 else None  # lines before the part; counted only when it is needed
        passed = 0
        for block in read_blocks(self._files, part.path, part.start, part.length):
            try:
                rows = self._blocks.read(block)
            except UnknownInLine as error:
                raise unknown_fields(error, self._lines_before(part) + passed) from None
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

    def __init__(self, files: Files, fields: Sequence[DataField], rules: RowRules, layout: Layout, corrupt_column: str) -> None:
        self._files, self._layout, self._rules = files, layout, rules
        self._blocks = BlockReader(fields, rules, corrupt_column)

    def chunks(self, part: FilePart) -> Iterator[Chunk]:
        """The rows of a whole file. Raises UnknownFields with the number of the record."""
        passed = 0
        for records in self._batches(part):
            yield from self._converted([r for r in records if not r.rest], passed)
            if records and records[-1].rest:
                number = passed + len(records)
                # a document that is not JSON from its first record on is one row of NULLs
                row = self._blocks.broken(records[-1].text, rescue=number > 1)
                yield chunk_of_rows(self._blocks, [(number - 1, row)], 0)
            passed += len(records)

    def _batches(self, part: FilePart) -> Iterator[list[Record]]:
        if not self._layout.multi_line:
            for texts in separated(self._files, part.path, self._layout):
                yield [Record(text) for text in texts]
            return
        held: list[Record] = []
        size = 0
        for record in documents(self._files, part.path, self._layout, self._rules.syntax):
            held.append(record)
            size += len(record.text)
            if size >= _DOCUMENT_BLOCK:
                yield held
                held, size = [], 0
        if held:
            yield held

    def _converted(self, records: Sequence[Record], passed: int) -> Iterator[Chunk]:
        if not records:
            return
        texts = [record.text.strip(_SPACE) for record in records]
        try:
            if any(b"\n" in text for text in texts):
                rows = Rows(None, self._blocks.convert(list(enumerate(texts))))
            else:
                rows = self._blocks.read(b"\n".join(texts))
        except UnknownInLine as error:
            raise unknown_fields(error, passed) from None
        if rows.columns is not None:
            yield Chunk(rows.columns)
        if rows.rows:
            yield chunk_of_rows(self._blocks, rows.rows, passed)


def unknown_fields(error: UnknownInLine, before: int) -> UnknownFields:
    """The failure with the line or record number inside the file."""
    number = before + error.line + 1
    if error.wider:
        return WiderType(error.blob, number, "NEW_FIELDS_AND_WIDENED_TYPES_IN_RECORD_WITH_FILE_PATH")
    return UnknownFields(error.blob, number)


def chunk_of_rows(blocks: BlockReader, found: Sequence[tuple[int, Row]], before: int) -> Chunk:
    """A chunk of rows that were converted one by one; `before`: how many lines or records come before the first one."""
    rows = [row for _, row in found]
    marks = [_mark(row, before + number + 1) for number, row in found]
    raw = {at: row.text for at, row in enumerate(rows) if row.broken}
    return Chunk(blocks.arrays(rows), [row.rescued for row in rows], marks, raw)


def _mark(row: Row, number: int) -> int | None:
    return -number if row.broken else number if row.rescued is not None else None
