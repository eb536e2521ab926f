"""Records of a CSV text one by one: which lines are records, and the values of each. The exact meaning; `csv.blocks` is the fast way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lakelet.autoloader.formats.charsets import readable
from lakelet.autoloader.formats.csv.rules import CsvRules
from lakelet.autoloader.formats.csv.split import BLANKS, BrokenRecord, RecordScanner, split_line

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
        tokens = _checked(split_line(text, rules.dialect), rules)
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
            yield _record(tokens, line, offset, size, whole, rules, invalid is not None)
        line += whole.count("\n") if "\n" in whole else whole.count("\r")
        offset += size


def _record(tokens: list[str | None] | None, line: int, at: int, size: int, whole: str, rules: CsvRules, latin: bool) -> Record:
    end = "\r\n" if rules.line_separator is None else rules.line_separator
    body = whole.rstrip(end)
    raw = None
    if latin:
        bytes_of = body.encode("latin-1")
        body, raw = readable(bytes_of, rules.encoding)
        tokens = tokens and [None if t is None else readable(t.encode("latin-1"), rules.encoding)[0] for t in tokens]
    try:
        tokens = None if tokens is None else _checked(tokens, rules)
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


def _checked(tokens: list[str | None], rules: CsvRules) -> list[str | None]:
    if len(tokens) > rules.max_columns:
        raise BrokenRecord("more columns than maxColumns")
    if rules.max_chars >= 0 and any(token is not None and len(token) > rules.max_chars for token in tokens):
        raise BrokenRecord("a value is longer than maxCharsPerColumn")
    return tokens


__all__ = ["Record", "lines_of", "record_of", "records_of"]
