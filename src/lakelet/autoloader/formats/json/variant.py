"""`singleVariantColumn`: every document whole, as the JSON text from which Spark makes a VARIANT (FF-10).

A document is a line or, with `multiLine`, what a file holds: any JSON value. A broken one, or one with a key twice, is
rescued where a rescued column was named or `_corrupt_record` is a column; else its text is a text inside the variant.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.formats.base import Chunk, DataField, mark_of
from lakelet.autoloader.formats.charsets import utf8_chunks
from lakelet.autoloader.formats.json.records import RecordLayout, separated
from lakelet.autoloader.formats.json.rows import RowReader, RowRules, readable_start
from lakelet.autoloader.formats.json.text import BrokenText, dump, first_value, has_more, repeats_key
from lakelet.autoloader.formats.lines import count_lines, head_of, open_stream, read_blocks

if TYPE_CHECKING:
    from lakelet.autoloader.spec import FilePart


class _RepeatedKey(Exception):
    """An object has a key twice, of which Spark makes no VARIANT."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedKey
    return found


_strict = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str, object_pairs_hook=_object).raw_decode


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
            yield from separated(self._files, part.path, layout)

    def _chunk(self, texts: Sequence[bytes], passed: int) -> Chunk:
        rows: list[list[Any]] = []
        rescued: list[str | None] = []
        marks: list[int | None] = []
        raw: dict[int, str] = {}
        for number, line in enumerate(texts):
            if not line.strip():
                continue
            found = self._document(line)
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

    def _document(self, line: bytes) -> tuple[str, bool] | None:
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
