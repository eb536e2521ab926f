"""Vectorised reading of JSON lines: whole blocks through pyarrow, single lines through `rows`, with the same result (FF-4)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.formats.base import UnknownFields
from lakelet.autoloader.formats.json.arrow_parser import BlockParser, Dirty
from lakelet.autoloader.formats.json.rows import JsonRow, RowReader, RowRules
from lakelet.autoloader.formats.json.values import DatetimeFormats
from lakelet.autoloader.formats.text_blocks import has_lone_cr
from lakelet.autoloader.source_spec import IGNORE, RAISE
from lakelet.autoloader.text_values import ARROW_TIMESTAMP, date_column, parsed_column, timestamp_column

_NESTED = re.compile(rb'":\s*[\[{]')
_PLAIN = frozenset({"string", "char", "varchar", "long", "integer", "short", "byte", "double", "boolean"})
_MOMENTS = frozenset({"timestamp", "date"})
_DIGITS = re.compile(r"-?[A-Za-z.]+")  # a pattern of letters alone has no sign that a number does not have
_LONGEST_YEAR = 7
_NUMBER = r"^-?\d+(\.\d+)?([eE][+-]?\d+)?$"


@dataclass(frozen=True)
class BlockRows:
    """Converted rows of one block. `columns`: clean rows, one array per data column (None: no clean row). `rows`: the other ones, each with
    its line index inside the block."""

    columns: list[Any] | None
    rows: list[tuple[int, JsonRow]]


class BlockReader:
    """Reads blocks of lines into columns of the data schema.

    Args:
        fields: (name, Spark type, Arrow type) of the data columns.
        rules: how rows are read.
        corrupt_column: see `RowReader`.
        vectorised: False reads everything row by row (the reference for tests).
    """

    def __init__(
        self,
        fields: Sequence[tuple[str, Any, Any]],
        rules: RowRules,
        corrupt_column: str | None = None,
        *,
        vectorised: bool = True,
    ) -> None:
        self._fields, self._rules, self._corrupt_column = list(fields), rules, corrupt_column
        self._row_reader = RowReader([(name, kind) for name, kind, _ in fields], rules, corrupt_column)
        # pyarrow takes NaN and infinities always
        fast = vectorised and rules.syntax.non_numeric and all(_is_fast(kind) for _, kind, _ in fields) and bool(fields)
        self._parser: BlockParser | None = None
        if fast:
            schema = pa.schema([pa.field(name, _parse_type(kind, arrow)) for name, kind, arrow in fields])
            self._parser = BlockParser(schema, ignore_unknown=rules.unknown == IGNORE and rules.case_sensitive, ignored=rules.ignored)
        self._arrow = [arrow for _, _, arrow in fields]

    def read(self, block: bytes) -> BlockRows:
        """Convert a block of whole lines. Raises UnknownFields at the first unknown field where the rules say so."""
        if self._parser is None or (self._rules.typing.all_text and _is_nested(block)):
            return BlockRows(None, self.convert([(i, line) for i, line in enumerate(block.split(b"\n")) if line]))
        block, torn = _without_torn(block) if self._rules.cr_ends_line and has_lone_cr(block) else (block, [])
        parsed = self._parser.parse(block)
        dirty = sorted(parsed.dirty + torn)
        # first, so that an unknown field is found before work is done that is thrown away
        rows = self.convert(dirty) if self._rules.unknown == RAISE else None
        columns, misfits = (None, None) if parsed.table is None else self._typed_columns(parsed.table, block)
        if columns is not None and misfits is not None:
            keep = pc.invert(misfits)
            columns = [column.filter(keep) for column in columns]
            lines, offset = parsed.lines(), 0 if parsed.numbers is not None else _leading_lines(block)
            numbers = parsed.numbers if parsed.numbers is not None else range(offset, offset + len(lines))
            more = [(numbers[i], lines[i]) for i in pc.indices_nonzero(misfits).to_pylist()]
            extra = self.convert(more)
            rows = sorted((rows if rows is not None else self.convert(dirty)) + extra, key=lambda item: item[0])
        return BlockRows(columns if columns and len(columns[0]) else None, self.convert(dirty) if rows is None else rows)

    @property
    def rules(self) -> RowRules:
        return self._rules

    def convert(self, lines: Dirty) -> list[tuple[int, JsonRow]]:
        """The rows of single records, each with its number. Raises UnknownFields with the number."""
        rows: list[tuple[int, JsonRow]] = []
        for number, line in lines:
            try:
                rows.extend((number, row) for row in self._row_reader.rows(line))
            except UnknownFields as error:
                raise error.at(number) from None
        return rows

    def of_codec(self, codec: str | None) -> BlockReader:
        """The reader of a file whose first bytes show this codec."""
        return self if codec is None else BlockReader(self._fields, replace(self._rules, codec=codec), self._corrupt_column)

    def broken(self, record: bytes, *, rescue: bool) -> JsonRow:
        """See `RowReader.broken`."""
        return self._row_reader.broken(record, rescue=rescue)

    def arrays(self, rows: Sequence[JsonRow]) -> list[Any]:
        """Columns of rows that were converted one by one."""
        return [pa.array([row.values[at] for row in rows], kind) for at, kind in enumerate(self._arrow)]

    def _typed_columns(self, table: Any, block: bytes) -> tuple[list[Any], Any | None]:
        columns: list[Any] = []
        misfits: Any | None = None
        for name, kind, arrow in self._fields:
            column = table.column(name)
            array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            array, bad = _convert_array(array, name, kind, arrow, self._rules.datetime_formats, block)
            columns.append(array)
            misfits = _either_mask(misfits, bad)
        return columns, misfits


def _is_nested(block: bytes) -> bool:
    """Whether about half of the lines or more hold objects or arrays, which pyarrow does not keep as source text."""
    return 2 * len(_NESTED.findall(block)) > block.count(b"\n")


def _without_torn(block: bytes) -> tuple[bytes, Dirty]:
    """A block without its lines that a carriage return ends too, which leave empty lines, and these lines."""
    lines = block.split(b"\n")
    torn = [(number, line) for number, line in enumerate(lines) if b"\r" in line.strip(b"\r")]
    for number, _ in torn:
        lines[number] = b""
    return b"\n".join(lines), torn


def _leading_lines(block: bytes) -> int:
    """How many line ends come before the first line that is not blank."""
    return block[: len(block) - len(block.lstrip(b" \t\r\n"))].count(b"\n")


def _is_fast(kind: Any, *, inside_array: bool = False) -> bool:
    name = kind.typeName()
    if name == "struct":
        return bool(kind.fields) and all(_is_fast(f.dataType, inside_array=inside_array) for f in kind.fields)
    if name == "array":
        return _is_fast(kind.elementType, inside_array=True)
    return name in _PLAIN or name == "decimal" or (name in _MOMENTS and not inside_array)


def _parse_type(kind: Any, arrow: Any) -> Any:
    """The Arrow type that pyarrow parses into: dates and times as text, all other types unchanged."""
    name = kind.typeName()
    if name in _MOMENTS:
        return pa.string()
    if name == "struct":
        return pa.struct([pa.field(f.name, _parse_type(f.dataType, arrow.field(i).type)) for i, f in enumerate(kind.fields)])
    return arrow


def _has_moment(kind: Any) -> bool:
    name = kind.typeName()
    return name in _MOMENTS or (name == "struct" and any(_has_moment(f.dataType) for f in kind.fields))


def _convert_array(array: Any, key: str, kind: Any, arrow: Any, datetime_formats: DatetimeFormats, block: bytes) -> tuple[Any, Any | None]:
    """Return a parsed array in its final type, and the mask of rows to read singly: what is no date or timestamp, or may be a number."""
    if not _has_moment(kind):
        return array, None
    if kind.typeName() in _MOMENTS:
        moments, bad = _moment_column(array, kind.typeName(), datetime_formats)
        numbers = _numbers_among_texts(array, key, block) if _takes_digits(array, kind.typeName(), datetime_formats) else None
        return moments, _either_mask(bad, numbers)
    children: list[Any] = []
    misfits: Any | None = None
    for i, field in enumerate(kind.fields):
        child, bad = _convert_array(array.field(i), field.name, field.dataType, arrow.field(i).type, datetime_formats, block)
        children.append(child)
        misfits = _either_mask(misfits, bad)
    mask = pc.is_null(array) if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=[arrow.field(i) for i in range(arrow.num_fields)], mask=mask), misfits


def _moment_column(array: Any, name: str, datetime_formats: DatetimeFormats) -> tuple[Any, Any | None]:
    """Texts as timestamps or dates, and the mask of those that are none."""
    if name == "timestamp":
        if datetime_formats.timestamp is None:
            return timestamp_column(array, datetime_formats.zone)
        return parsed_column(array, lru_cache(maxsize=65536)(datetime_formats.timestamps()), pa.int64(), ARROW_TIMESTAMP)
    if datetime_formats.date is None:
        return date_column(array)
    return parsed_column(array, datetime_formats.dates(), pa.int32(), pa.date32())


def _takes_digits(array: Any, name: str, datetime_formats: DatetimeFormats) -> bool:
    """Whether a text of the array may be both a number and a timestamp or date: a year alone, or digits that a pattern takes."""
    pattern = datetime_formats.timestamp if name == "timestamp" else datetime_formats.date
    if pattern is not None:
        return _DIGITS.fullmatch(pattern) is not None
    shortest = pc.min(pc.binary_length(array)).as_py()
    return shortest is not None and shortest <= _LONGEST_YEAR


def _numbers_among_texts(array: Any, key: str, block: bytes) -> Any | None:
    """The mask of texts that look like numbers, where the block has a number behind this key: pyarrow makes `2024` the text of a year."""
    numbers = pc.fill_null(pc.match_substring_regex(array, _NUMBER), False)
    if not pc.any(numbers).as_py():
        return None
    key_in_block = re.escape(json.dumps(key, ensure_ascii=False).encode())
    return numbers if b"\\u" in block or re.search(key_in_block + rb"\s*:\s*[-\d]", block) else None


def _either_mask(one: Any | None, other: Any | None) -> Any | None:
    """A mask of what is in one of two masks; None stands for an empty one."""
    return (one if other is None else other) if one is None or other is None else pc.or_(one, other)
