"""Regular expressions of well-formed CSV: what pyarrow's parser reads exactly as Spark's does (see `csv.blocks`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from lakelet.autoloader.formats.csv.records import Record, lines_of, record_of, records_of
from lakelet.autoloader.formats.csv.rules import BLANKS, NONE, CsvRules, Dialect
from lakelet.autoloader.text_values import is_utf8

Form = tuple[str, bool]
"""(regular expression, whether the text is read with escapes)"""


def line_forms(rules: CsvRules) -> list[Form]:
    """Of one line, the commoner form first. None for separators that pyarrow cannot take."""
    return [(rf"(?s)\A{row}\z", escapes) for row, escapes in _row_forms(rules, "")]


def text_forms(rules: CsvRules) -> list[Form]:
    """Of a text of records that may span lines; quotes stand only around whole values."""
    breaks = rf"\r\n{_character_code(rules.dialect.quote)}"
    return [(rf"\A(?:{row}\n)*{row}\z", escapes) for row, escapes in _row_forms(rules, breaks)]


def _row_forms(rules: CsvRules, breaks: str) -> list[Form]:
    """An empty quoted value is left to the record reader where it is another thing than an empty one."""
    d = rules.dialect
    if len(d.separator) > 1:
        return []
    quote, separator = _character_code(d.quote), _character_code(d.separator)
    escape = "" if d.escape in (NONE, d.quote) else _character_code(d.escape)
    other = "" if d.escape_of_escape in (NONE, d.escape) else _character_code(d.escape_of_escape)
    some = "*" if rules.null_value == rules.empty_value == "" else "+"

    def row(inner: str, without: str) -> str:
        """`without`: what an unquoted value must not hold."""
        first = rf"[^{quote}{separator}{without}" + (r"\x00-\x20]" if d.trim_left else "]")
        bare = rf"{first}[^{separator}{without}]*"
        if d.trim_right:
            bare = rf"(?:[^{quote}{separator}{without}\x00-\x20]|{bare}[^{separator}{without}\x00-\x20])"
        value = rf"(?:{quote}{inner}{some}{quote}|{bare})?"
        return rf"{value}(?:{separator}{value})*"

    if d.quote == d.escape:
        return [(row(rf"(?:[^{quote}]|{quote}{quote})", breaks), False)]
    forms = [(row(rf"[^{quote}{escape}{other}]", breaks), False)]
    if escape and not other and d.escape_of_escape == d.escape:
        forms.append((row(rf"(?:[^{quote}{escape}]|{escape}[{quote}{escape}])", escape + breaks), True))
    return forms


def _character_code(char: str) -> str:
    return rf"\x{{{ord(char):x}}}"


def whole_records(data: bytes, dialect: Dialect) -> int:
    """How many bytes of a well-formed text, of which the end is cut off, hold whole records: up to a line end outside of quotes."""
    quote = dialect.quote.encode()
    end = data.rfind(b"\n") + 1
    while end and data.count(quote, 0, end) % 2:
        end = data.rfind(b"\n", 0, data.rfind(quote, 0, end)) + 1
    return end


def spans(data: bytes, dialect: Dialect, *, escapes: bool) -> list[tuple[int, int, int]]:
    """(line, start, end) of each record of a well-formed text that is not blank, without line ends."""
    found: list[tuple[int, int, int]] = []
    line = 0
    for match in _span_pattern(dialect.quote, dialect.escape if escapes else "").finditer(data):
        text = match[0]
        bare = text.rstrip(b"\r\n")
        if bare:
            found.append((line, match.start(), match.start() + len(bare)))
        line += text.count(b"\n")
    return found


@lru_cache(maxsize=8)
def _span_pattern(quote: str, escape: str) -> re.Pattern[bytes]:
    q, e = re.escape(quote.encode()), re.escape(escape.encode())
    inner = rb"(?:[^" + q + e + rb"]|" + e + rb".)*" if escape else rb"[^" + q + rb"]*"
    return re.compile(rb"(?:" + q + inner + q + rb"|[^\n" + q + rb"])*\n?", re.DOTALL)


_BLANK_LINE = re.compile(rb"^[\x00-\x09\x0b-\x20]+$", re.MULTILINE)
_FREE_BYTES = [bytes([n]) for n in range(1, 9)]


class Texts:
    """Clean records of a block.

    Args:
        columns: string arrays by position, NULL where the value is NULL, None where the column is not needed.
        lines: line index per record; None where record i stands in line i.
        source: the block.
        spanning: None where every record is one line, otherwise whether the block was read with escapes.
    """

    def __init__(self, columns: Sequence[Any], lines: Sequence[int] | None, source: bytes, spanning: bool | None = None) -> None:
        self.columns, self._lines, self._source, self._spanning = columns, lines, source, spanning
        self.count = len(next(column for column in columns if column is not None))

    def line(self, row: int, rules: CsvRules) -> int:
        """The line of a record, as an index in the block."""
        if self._spanning is not None:
            return self._spans(rules)[row][0]
        return row if self._lines is None else self._lines[row]

    def records(self, rows: Sequence[int], rules: CsvRules) -> list[Record]:
        """Some of the records, to be read one by one."""
        if self._spanning is not None:
            found = [(line, self._source[start:end]) for line, start, end in map(self._spans(rules).__getitem__, rows)]
        else:
            by_line = self._source.split(b"\n")
            found = [(number, by_line[number]) for number in (self.line(row, rules) for row in rows)]
        records = (record_of(text, number, rules) for number, text in found)
        return [record for record in records if record is not None]

    def _spans(self, rules: CsvRules) -> list[tuple[int, int, int]]:
        if self._made is None:
            self._made = spans(self._source, rules.dialect, escapes=bool(self._spanning))
        return self._made

    _made: list[tuple[int, int, int]] | None = None


@dataclass(frozen=True)
class SplitBlock:
    """A block: clean records as columns, the others one by one."""

    texts: list[Texts]
    records: list[Record]


class BlockSplitter:
    """Splits blocks into `width` columns.

    Args:
        wanted: positions of the columns that are needed.
        vectorised: False reads everything record by record (the reference for tests).
    """

    def __init__(self, rules: CsvRules, width: int, wanted: Sequence[int], *, vectorised: bool = True) -> None:
        self._rules, self._width, self._wanted = rules, width, list(wanted)
        dialect = rules.dialect
        self._separator = dialect.separator.encode()
        self._quote = b"" if dialect.quote == NONE else dialect.quote.encode()
        self._escape = b"" if dialect.escape == NONE else dialect.escape.encode()
        self._trims = dialect.trim_left or dialect.trim_right
        self._drops_blanks = not rules.keeps_blanks and (width == 1 or not dialect.separator.strip(BLANKS))
        self._fast = vectorised and rules.max_chars < 0 and 0 < width <= rules.max_columns and bool(wanted)
        self._fast = self._fast and len(self._quote) <= 1 and len(self._escape) <= 1 and dialect.quote not in rules.null_value
        self._null_values = sorted({"", rules.null_value})
        self._names = [str(at) for at in range(width)]
        self._forms = line_forms(rules) if self._fast and self._quote else []
        self._text_forms = text_forms(rules) if self._forms and rules.multi_line and rules.line_separator is None else []

    def split(self, block: bytes) -> SplitBlock:
        """The records of a block of whole records; every line stands alone unless the rules are multi-line."""
        data = self._normalized(block) if self._fast else None
        if data is None:
            return SplitBlock([], list(records_of(block, self._rules, final=True)))
        if self._marks_by_nul(data):
            return SplitBlock([], self._one_by_one(data))
        quoted = bool(self._quote) and self._quote in data
        if quoted or not is_utf8(data):
            return self._by_lines(data, quoted)
        found = self._parse_lines(data, self._separator, escapes=False, quoted=False)
        return found if found is not None else SplitBlock([], self._one_by_one(data))

    def _marks_by_nul(self, data: bytes) -> bool:
        """Whether the data holds NUL, which is the quote or escape where that is switched off, as in Spark."""
        return NONE.encode() in data and NONE in (self._rules.dialect.quote, self._rules.dialect.escape)

    def well_formed(self, block: bytes) -> bool:
        """Whether each line of a block is surely one record, although the rules let records span lines."""
        if self._marks_by_nul(block):
            return False
        if self._rules.line_separator is None and b"\r" in block:
            return False
        if not self._quote or self._quote not in block:
            return True
        if not self._forms:
            return False
        lines = block.replace(b"\r\n", b"\n").split(b"\n")
        return b"\r" not in block.replace(b"\r\n", b"") and is_utf8(block) and not self._malformed_lines(lines)

    def spanning(self, data: bytes) -> SplitBlock | None:
        """The records of a text that begins and ends at a record, some of which span lines; None where it is not surely well formed."""
        mark = self._rules.comment
        if not self._text_forms or not is_utf8(data) or (mark is not None and mark.encode() in data):
            return None
        if self._drops_blanks and _BLANK_LINE.search(data):
            return None
        text = pa.array([data], pa.string())
        for form, escapes in self._text_forms:
            if not pc.match_substring_regex(text, form)[0].as_py():
                continue
            odd: list[int] = []
            try:
                table = self._read_by_arrow(data, self._separator, odd, escapes=escapes, spanning=True)
            except pa.ArrowInvalid:
                return None
            if odd:
                return None
            return SplitBlock([Texts(self._columns_by_position(table), None, data, escapes)] if len(table) else [], [])
        return None

    def _columns_by_position(self, table: Any, *, trim: bool = False) -> list[Any]:
        columns: list[Any] = [None] * self._width
        for at, name in zip(self._wanted, table.column_names, strict=True):
            column = _one_chunk(table.column(name))
            columns[at] = self._trimmed_column(column) if trim else column
        return columns

    def _malformed_lines(self, lines: list[bytes]) -> list[int]:
        good: Any = None
        texts = pa.array(lines, pa.string())
        for form, _ in self._forms:
            mask = pc.match_substring_regex(texts, form)
            good = mask if good is None else pc.or_(good, mask)
        found: list[int] = pc.indices_nonzero(pc.invert(good)).to_pylist()
        return found

    def _normalized(self, block: bytes) -> bytes | None:
        """The block with LF as line end and without comments and blank lines; each line keeps its number. None: read it one by one."""
        rules = self._rules
        separator = rules.line_separator
        if separator is None:
            if b"\r" in block:
                if rules.multi_line:
                    return None  # it is data
                block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        elif b"\r" in block or (separator != "\n" and b"\n" in block):
            return None
        elif separator != "\n":
            block = block.replace(separator.encode(), b"\n")
        if rules.comment is not None:
            mark = rules.comment.encode()
            if block.startswith(mark) or b"\n" + mark in block:
                block = re.sub(rb"(?m)^" + re.escape(mark) + rb"[^\n]*", b"", block)
        if self._drops_blanks and _BLANK_LINE.search(block):
            block = _BLANK_LINE.sub(b"", block)
        return block

    def _by_lines(self, data: bytes, quoted: bool) -> SplitBlock:
        lines = data.split(b"\n")
        records: list[Record] = []
        valid = lines
        if not is_utf8(data):
            bad = [at for at, line in enumerate(lines) if not is_utf8(line)]
            records, valid = self._take_out(lines, bad)
            data = b"\n".join(valid)
        if not quoted:
            found = self._parse_lines(data, self._separator, escapes=False, quoted=False)
            return _with_records(found, records) if found is not None else SplitBlock([], records + self._one_by_one(data))
        texts: list[Texts] = []
        left = valid
        for form, escapes in self._forms:
            mask = pc.match_substring_regex(pa.array(left, pa.string()), form)
            here = b"\n".join(left) if bool(pc.all(mask).as_py()) else b"\n".join(_kept_lines(left, mask.to_pylist()))
            parsed = self._parse_lines(here, self._separator, escapes=escapes, quoted=True) if here.strip(b"\n") else SplitBlock([], [])
            if parsed is None:
                return SplitBlock(texts, records + self._one_by_one(b"\n".join(left)))
            texts += parsed.texts
            records += parsed.records
            left = _kept_lines(left, pc.invert(mask).to_pylist())
            if not any(left):
                return SplitBlock(texts, records)
        return SplitBlock(texts, records + self._one_by_one(b"\n".join(left)))

    def _take_out(self, lines: list[bytes], bad: list[int]) -> tuple[list[Record], list[bytes]]:
        taken = set(bad)
        found = [record_of(lines[at], at, self._rules) for at in bad]
        return [record for record in found if record is not None], [b"" if at in taken else line for at, line in enumerate(lines)]

    def _one_by_one(self, data: bytes) -> list[Record]:
        found = (record_of(line, number, self._rules) for number, (line, _) in enumerate(lines_of(data, "\n")))
        return [record for record in found if record is not None]

    def _parse_lines(self, data: bytes, separator: bytes, *, escapes: bool, quoted: bool) -> SplitBlock | None:
        """The records of well-formed lines; None when pyarrow saw something else than one record per line."""
        source, single = data, separator
        if len(separator) > 1:
            free = next((byte for byte in _FREE_BYTES if byte not in data), None)
            if free is None or quoted:
                return None
            data, single = data.replace(separator, free), free
        odd: list[int] = []
        try:
            table = self._read_by_arrow(data, single, odd, escapes=escapes)
        except pa.ArrowInvalid:
            return None
        total = len(table) + len(odd)
        lines = None
        if total != data.count(b"\n") + (not data.endswith(b"\n")):
            lines = [at for at, line in enumerate(data.split(b"\n")) if line]
            if total != len(lines):
                return None
        columns = self._columns_by_position(table, trim=self._trims and not quoted)
        numbers = [number - 1 if lines is None else lines[number - 1] for number in odd]
        if odd:
            out = {number - 1 for number in odd}
            lines = [at if lines is None else lines[at] for at in range(total) if at not in out]
        records: list[Record] = []
        if odd:
            by_line = source.split(b"\n")
            found = (record_of(by_line[number], number, self._rules) for number in numbers)
            records = [record for record in found if record is not None]
        return SplitBlock([Texts(columns, lines, source)] if len(table) else [], records)

    def _read_by_arrow(self, data: bytes, separator: bytes, odd: list[int], *, escapes: bool, spanning: bool = False) -> Any:
        def note(row: Any) -> str:
            odd.append(row.number)
            return "skip"

        doubled = self._quote == self._escape
        wanted = [self._names[at] for at in self._wanted]
        return pcsv.read_csv(
            pa.BufferReader(data),
            read_options=pcsv.ReadOptions(column_names=self._names, use_threads=False, block_size=len(data) + 1),
            parse_options=pcsv.ParseOptions(
                delimiter=separator.decode(),
                quote_char=self._quote.decode() or False,
                double_quote=doubled,
                escape_char=self._escape.decode() if escapes and not doubled else False,
                newlines_in_values=spanning,
                ignore_empty_lines=True,
                invalid_row_handler=note,
            ),
            convert_options=pcsv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.string()),
                include_columns=wanted,
                null_values=self._null_values,
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )

    def _trimmed_column(self, column: Any) -> Any:
        dialect = self._rules.dialect
        trim = pc.utf8_trim if dialect.trim_left and dialect.trim_right else pc.utf8_ltrim if dialect.trim_left else pc.utf8_rtrim
        found = trim(column, characters=BLANKS)
        nothing = pc.is_in(found, value_set=pa.array(self._null_values, pa.string()))
        return pc.if_else(nothing, pa.scalar(None, pa.string()), found)


def _kept_lines(lines: list[bytes], mask: list[bool]) -> list[bytes]:
    return [line if keep else b"" for line, keep in zip(lines, mask, strict=True)]


def _with_records(found: SplitBlock, records: list[Record]) -> SplitBlock:
    return SplitBlock(found.texts, records + found.records)


def _one_chunk(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
