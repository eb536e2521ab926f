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
from lakelet.autoloader.formats.base import Chunk, DataField
from lakelet.autoloader.formats.json.records import Layout, documents, separated
from lakelet.autoloader.formats.json.rows import RowReader, RowRules
from lakelet.autoloader.formats.json.text import BrokenText, Node, dump, parse, repeats_key, source_text
from lakelet.autoloader.formats.lines import count_lines, read_blocks

if TYPE_CHECKING:
    from lakelet.autoloader.spec import FilePart

_BATCH = 4096  # records that become one chunk of a document


class _RepeatedKey(Exception):
    """An object has a key twice, of which Spark makes no VARIANT."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedKey
    return found


_strict = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str, object_pairs_hook=_object).decode


class JsonVariantReader:
    """Documents as JSON text in one column; other columns are NULL, but for the one of corrupt records."""

    def __init__(
        self, files: Files, fields: Sequence[DataField], rules: RowRules, layout: Layout, variant: str, corrupt_column: str
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
        if self._layout.is_lines:
            for block in read_blocks(self._files, part.path, part.start, part.length):
                yield block.removesuffix(b"\n").split(b"\n")
        elif not self._layout.multi_line:
            yield from separated(self._files, part.path, self._layout)
        else:
            held: list[bytes] = []
            for record in documents(self._files, part.path, self._layout, self._rules.syntax, whole=True):
                held.append(record.text)
                if len(held) >= _BATCH:
                    yield held
                    held = []
            yield held

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
                rows.append([found if at == self._variant else None for at in range(len(self._fields))])
                rescued.append(None)
                marks.append(None)
            else:
                row = self._reader.broken(line)
                values = list(row.values)
                if not self._keeps_broken:
                    values[self._variant] = row.text
                raw[len(rows)] = row.text
                rows.append(values)
                rescued.append(row.rescued)
                marks.append(-(passed + number + 1))
        arrays = [pa.array([row[at] for row in rows], kind) for at, (_, _, kind) in enumerate(self._fields)]
        return Chunk(arrays, rescued if raw else None, marks if raw else None, raw)

    def _document(self, line: bytes) -> str | None:
        """The JSON text of one document; None when it is broken."""
        try:
            text = line.decode("utf-8").strip(" \t\r\n")
            if text[:1] in ("{", "[") and _is_strict(text):
                return text
            node = parse(text, self._rules.syntax)
            return None if repeats_key(node) else _json(node)
        except (UnicodeDecodeError, BrokenText, _RepeatedKey):
            return None


def _is_strict(text: str) -> bool:
    """Whether Spark's parser of variants takes a text as it is; what it does not take is written again."""
    if "NaN" in text or "Infinity" in text or "\\u" in text:
        return False
    try:
        _strict(text)
    except (ValueError, RecursionError):
        return False
    return True


def _json(node: Node) -> str:
    text = source_text(node)
    return text if text is not None and _is_strict(text) else dump(node)
