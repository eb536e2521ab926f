"""Regular expressions of well-formed CSV: what pyarrow's parser reads exactly as Spark's does (see `csv.blocks`)."""

from __future__ import annotations

import re
from functools import lru_cache

from lakelet.autoloader.formats.csv.rules import CsvRules
from lakelet.autoloader.formats.csv.split import NONE, Dialect

Form = tuple[str, bool]
"""(regular expression, whether the text is read with escapes)"""


def line_forms(rules: CsvRules) -> list[Form]:
    """Of one line, the commoner form first. None for separators that pyarrow cannot take."""
    return [(rf"(?s)\A{row}\z", escapes) for row, escapes in _rows(rules, "")]


def text_forms(rules: CsvRules) -> list[Form]:
    """Of a text of records that may span lines; quotes stand only around whole values."""
    breaks = rf"\r\n{_code(rules.dialect.quote)}"
    return [(rf"\A(?:{row}\n)*{row}\z", escapes) for row, escapes in _rows(rules, breaks)]


def _rows(rules: CsvRules, breaks: str) -> list[Form]:
    """An empty quoted value is left to the record reader where it is another thing than an empty one."""
    d = rules.dialect
    if len(d.separator) > 1:
        return []
    quote, separator = _code(d.quote), _code(d.separator)
    escape = "" if d.escape in (NONE, d.quote) else _code(d.escape)
    other = "" if d.escape_of_escape in (NONE, d.escape) else _code(d.escape_of_escape)
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


def _code(char: str) -> str:
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
    for match in _span(dialect.quote, dialect.escape if escapes else "").finditer(data):
        text = match[0]
        bare = text.rstrip(b"\r\n")
        if bare:
            found.append((line, match.start(), match.start() + len(bare)))
        line += text.count(b"\n")
    return found


@lru_cache(maxsize=8)
def _span(quote: str, escape: str) -> re.Pattern[bytes]:
    q, e = re.escape(quote.encode()), re.escape(escape.encode())
    inner = rb"(?:[^" + q + e + rb"]|" + e + rb".)*" if escape else rb"[^" + q + rb"]*"
    return re.compile(rb"(?:" + q + inner + q + rb"|[^\n" + q + rb"])*\n?", re.DOTALL)
