"""Records of a CSV text one by one: which lines are records, and the values of each. The exact meaning; `csv.blocks` is the fast way.

Values are split by the rules of Spark's CSV parser, also where quotes and escapes are not well formed (FF-14). A value that was not there
(nothing between two separators) is None, an empty quoted value is an empty text. What happens at a quote that nobody escaped follows
`unescapedQuoteHandling`. Separators of several characters follow the same rules as those of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lakelet.autoloader.formats.charsets import readable
from lakelet.autoloader.formats.csv.rules import (
    AT_DELIMITER,
    BACK_TO_DELIMITER,
    BLANKS,
    CLOSING_QUOTE,
    NONE,
    RAISE_ERROR,
    SKIP_VALUE,
    CsvRules,
    Dialect,
)


class BrokenRecord(ValueError):
    """The record cannot be split, or not surely."""


class _End(Exception):
    """The text ended inside a value."""


def split_line(text: str, dialect: Dialect) -> list[str | None]:
    """The values of a text that is one record. Raises BrokenRecord."""
    if dialect.quote not in text and not dialect.trim_left and not dialect.trim_right:
        return [value or None for value in text.split(dialect.separator)]
    return RecordScanner(text, dialect).record()


class RecordScanner:
    """Splits records off a text, one after the other.

    Attributes:
        at: where the next record begins.
        complete: whether the last record was ended by a line end, not by the end of the text.
    """

    def __init__(self, text: str, dialect: Dialect, at: int = 0) -> None:
        self._text, self._d, self.at = text, dialect, at
        self._double = "\r\n" in dialect.line_ends
        self._mere = False  # whether the character is an LF that is not the newline of the file
        self.complete = False

    def record(self) -> list[str | None]:
        """The values of the next record; moves `at` after its line end. Raises BrokenRecord; `at` is then where the trouble was met."""
        self._found: list[str | None] = []
        self._buffer: list[str] = []
        self._char = self._before = NONE
        self._unescaped = self._trim = self._skipped = False
        self.complete = True
        try:
            self._read_record()
        except _End:
            self.complete = False
            self._end_of_text()
        except RecursionError:
            raise BrokenRecord("too many quotes") from None
        return self._found

    # --- characters ---

    def _next_character(self) -> None:
        text, at, d = self._text, self.at, self._d
        if at >= len(text):
            raise _End
        char = text[at]
        self._mere = False
        if d.newline and text.startswith(d.newline, at):
            self.at, self._char = at + len(d.newline), "\n"
            return
        if d.newline and char == "\n":
            self._mere = True
        elif self._double and char == "\r" and text[at + 1 : at + 2] == "\n":
            char = "\r\n"
        elif char == d.separator[0] and text.startswith(d.separator, at):
            char = d.separator
        self.at = at + len(char)
        self._char = char

    def _ends_value(self) -> bool:
        return self._char == self._d.separator or self._char in self._d.line_ends

    def _is_blank(self) -> bool:
        return self._char <= " " and not self._ends_value()

    def _take_until(self, stops: tuple[str, ...], *, at_value_end: bool, keep: bool = True, at_mere: bool = True) -> None:
        first = self._char
        while not (self._char in stops or (at_value_end and self._ends_value() and (at_mere or not self._mere))):
            if keep:
                self._buffer.append(self._char)
            try:
                self._next_character()
            except _End:
                self._char = first
                raise

    # --- values ---

    def _end_value(self) -> None:
        text = "".join(self._buffer)
        if self._trim:
            text = text.rstrip(BLANKS)
        self._found.append(None if self._skipped or (self._trim and not text) else text)
        self._buffer.clear()
        self._skipped = False

    def _read_record(self) -> None:
        d = self._d
        self._next_character()
        while d.trim_left and self._is_blank():
            self._next_character()
        while self._char not in d.line_ends:
            while d.trim_left and self._is_blank() and self._char != d.quote:
                self._next_character()
            if self._ends_value():
                self._found.append(None)
            else:
                self._unescaped, self._before = False, NONE
                if self._char == d.quote != NONE:
                    self._trim = False
                    self._quoted_value()
                    if not (self._unescaped and d.handling == BACK_TO_DELIMITER and not self._buffer):
                        self._end_value()
                else:
                    self._trim = d.trim_right
                    self._take_until((), at_value_end=True, at_mere=False)
                    self._end_value()
            if self._char not in d.line_ends:
                self._next_character()
                if self._char in d.line_ends:
                    self._found.append(None)

    def _end_of_text(self) -> None:
        """What the end of the text makes of what was read."""
        d = self._d
        consume = False
        if self._char == d.quote and self._before == d.quote:
            consume = True
        else:
            if self._char == d.quote and not self._unescaped:
                self._buffer.append(d.quote)
            consume = self._before != NONE and not self._ends_value()
        if self._buffer or consume:
            self._end_value()
        else:
            self._found.append(None)

    def _quoted_value(self) -> None:
        d = self._d
        if self._before != NONE and d.handling in (AT_DELIMITER, SKIP_VALUE, BACK_TO_DELIMITER):
            self._rest_of_unescaped()
            return
        if self._before == NONE and not self._buffer and (self._plain_quoted_value() or self._empty_quoted_value()):
            return
        self._next_character()
        while not (self._before == d.quote and (self._is_blank() or self._ends_value())):
            if self._char not in (d.quote, d.escape):
                if self._before == d.quote:
                    if self._unescaped_quote() and d.handling == SKIP_VALUE:
                        break
                    return
                if self._before == d.escape != NONE:
                    self._buffer.append(d.escape)
                self._take_until((d.quote, d.escape, d.escape_of_escape), at_value_end=False)
                self._before = self._char
                self._next_character()
            else:
                self._escape_or_quote()
                self._before = self._char
                self._next_character()
                if self._unescaped and self._ends_value():
                    return
        if self._is_blank():
            self._after_closing_quote()
        if not self._ends_value():
            raise BrokenRecord("text after a closing quote")

    def _plain_quoted_value(self) -> bool:
        """Take a quoted value without quotes and escapes inside, which a separator follows; False when it is not one."""
        text, d, start = self._text, self._d, self.at
        end = text.find(d.quote, start)
        if end < 0 or d.escape in text[start:end] or not text.startswith(d.separator, end + 1):
            return False
        value = text[start:end]
        self._buffer.append(value.replace(self._d.newline, "\n") if self._d.newline else value)
        self.at = end + 1
        self._next_character()
        return True

    def _empty_quoted_value(self) -> bool:
        """Take two quotes, and blanks after them, as an empty value where no character escapes a quote; False when more follows (PA-8)."""
        d, start = self._d, self.at
        if d.escape != NONE or not self._text.startswith(d.quote, start):
            return False
        self.at += len(d.quote)
        try:
            self._next_character()
            while self._is_blank():
                self._next_character()
        except _End:
            self._char = self._before = d.quote
            raise
        if not self._ends_value():
            self.at, self._char = start, d.quote
        return self._ends_value()

    def _rest_of_unescaped(self) -> None:
        if self._d.handling == SKIP_VALUE:
            self._skip_value()
            return
        self._buffer.insert(0, self._d.quote)
        self._next_character()
        self._trim = self._d.trim_right
        self._take_until((), at_value_end=True)

    def _after_closing_quote(self) -> None:
        """Blanks after a closing quote do not count, unless more than a separator follows."""
        d = self._d
        blanks: list[str] = []
        while self._is_blank():
            blanks.append(self._char)
            self._next_character()
        if self._ends_value() or d.handling == RAISE_ERROR:
            return
        self._buffer += [d.quote, *blanks]
        if d.handling != CLOSING_QUOTE or self._char not in (d.quote, d.escape):
            self._buffer.append(self._char)
        self._before = self._char
        self._quoted_value()

    def _escape_or_quote(self) -> None:
        d = self._d
        if self._char == d.escape and self._before == d.escape_of_escape != NONE:
            self._buffer.append(d.escape)
            self._char = NONE
        elif self._before == d.escape:
            if self._char == d.quote:
                self._buffer.append(d.quote)
                self._char = NONE
            else:
                self._buffer.append(self._before)
        elif self._char == d.quote and self._before == d.quote:
            self._buffer.append(d.quote)
        elif self._before == d.quote:
            self._unescaped_in_value()

    def _unescaped_in_value(self) -> None:
        if self._d.handling in (SKIP_VALUE, RAISE_ERROR):
            self._skip_value()
            return
        self._buffer.append(self._d.quote)
        self._before = self._char
        while not self._ends_value():
            if self._char not in (self._d.quote, self._d.escape):
                if self._before == self._d.quote:
                    self._unescaped_in_value()
                    return
                self._buffer.append(self._char)
            else:
                self._escape_or_quote()
            self._before = self._char
            self._next_character()

    def _unescaped_quote(self) -> bool:
        d = self._d
        self._unescaped = True
        if d.handling in (SKIP_VALUE, RAISE_ERROR):
            self._skip_value()
            return False
        if d.handling == BACK_TO_DELIMITER:
            *whole, rest = "".join(self._buffer).split(d.separator)
            self._found += whole
            self._buffer = [rest, self._char] if rest else [self._char]
            self._before = NONE
        else:
            self._buffer += [d.quote, self._char]
            self._before = self._char
        self._quoted_value()
        return True

    def _skip_value(self) -> None:
        if self._d.handling == RAISE_ERROR:
            raise BrokenRecord("a quote inside a quoted value is not escaped")
        self._buffer.clear()
        self._skipped = True
        self._take_until((), at_value_end=True, keep=False)


_BLANKS = BLANKS.encode()
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|$)")


@dataclass(frozen=True)
class Record:
    """One record. `tokens` None: it could not be split. `line`: index of its first line in the text; `start`, `end`: its bytes there, line
    end included; `text`: the record as it stands in the file; `raw`: its bytes where they are not UTF-8."""

    tokens: list[str | None] | None
    line: int
    start: int
    end: int
    text: str
    raw: bytes | None = None


def record_of(line: bytes, number: int, rules: CsvRules, start: int = 0, end: int = 0) -> Record | None:
    """The record in one line without its line end; None when the line is blank (see `CsvRules.keeps_blanks`) or a comment."""
    if not (line if rules.keeps_blanks else line.strip(_BLANKS)):
        return None
    text, raw = readable(line, rules.encoding)
    if rules.comment is not None and text.startswith(rules.comment):
        return None
    try:
        tokens = _within_limits(split_line(text, rules.dialect), rules)
    except BrokenRecord:
        tokens = None
    return Record(tokens, number, start, end, text, raw)


def records_of(data: bytes, rules: CsvRules, *, final: bool) -> Iterator[Record]:
    """The records of a text that begins at a record. Unless `final`, a last record that may go on after the text is left out."""
    if rules.multi_line:
        yield from _multi_line(data, rules, final=final)
        return
    at = 0
    for number, (line, size) in enumerate(lines_of(data, rules.line_separator)):
        if at + size == len(data) and not final and len(line) == size:
            return
        found = record_of(line, number, rules, at, at + size)
        if found is not None:
            yield found
        at += size


def lines_of(data: bytes, separator: str | None) -> Iterator[tuple[bytes, int]]:
    """(line without its end, size with it)."""
    if separator is not None:
        end = separator.encode()
        *lines, last = data.split(end)
        yield from ((line, len(line) + len(end)) for line in lines)
        if last:
            yield last, len(last)
        return
    for match in _LINE.finditer(data):
        if match[0]:
            yield match[0].rstrip(b"\r\n") if match[0][-1:] in b"\r\n" else match[0], len(match[0])


def _multi_line(data: bytes, rules: CsvRules, *, final: bool) -> Iterator[Record]:
    text, invalid = readable(data, rules.encoding)
    if invalid is not None:
        text = data.decode("latin-1")  # one character per byte: offsets stay right, values are put right below
    scanner = RecordScanner(text, rules.dialect)
    start, line, offset = 0, 0, 0
    while scanner.at < len(text):
        start = scanner.at
        if rules.comment is not None and text.startswith(rules.comment, start):
            scanner.at = _next_line(text, start + 1, rules)
            tokens: list[str | None] | None = []
        else:
            try:
                tokens = scanner.record()
                if not scanner.complete and not final:
                    return
            except BrokenRecord:
                tokens = None
                scanner.at = _next_line(text, scanner.at, rules)
        whole = text[start : scanner.at]
        size = len(whole) if invalid is not None else len(whole.encode())
        if tokens != [] and (tokens is None or rules.keeps_blanks or whole.strip(BLANKS + (rules.line_separator or ""))):
            yield _multi_line_record(tokens, line, offset, size, whole, rules, invalid is not None)
        line += whole.count("\n") if "\n" in whole else whole.count("\r")
        offset += size


def _multi_line_record(tokens: list[str | None] | None, line: int, at: int, size: int, whole: str, rules: CsvRules, latin: bool) -> Record:
    end = "\r\n" if rules.line_separator is None else rules.line_separator
    body = whole.rstrip(end)
    raw = None
    if latin:
        bytes_of = body.encode("latin-1")
        body, raw = readable(bytes_of, rules.encoding)
        tokens = tokens and [None if t is None else readable(t.encode("latin-1"), rules.encoding)[0] for t in tokens]
    try:
        tokens = None if tokens is None else _within_limits(tokens, rules)
    except BrokenRecord:
        tokens = None
    return Record(tokens, line, at, at + size, body, raw)


def _next_line(text: str, at: int, rules: CsvRules) -> int:
    if rules.line_separator is not None:
        found = text.find(rules.line_separator, at)
        return len(text) if found < 0 else found + len(rules.line_separator)
    newline = rules.dialect.newline
    found = text.find(newline, max(at - 1, 0))
    return len(text) if found < 0 else max(found + len(newline), at)


def _within_limits(tokens: list[str | None], rules: CsvRules) -> list[str | None]:
    if len(tokens) > rules.max_columns:
        raise BrokenRecord("more columns than maxColumns")
    if rules.max_chars >= 0 and any(token is not None and len(token) > rules.max_chars for token in tokens):
        raise BrokenRecord("a value is longer than maxCharsPerColumn")
    return tokens
