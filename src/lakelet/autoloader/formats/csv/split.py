"""One CSV record as texts, by the rules of Spark's CSV parser, also where quotes and escapes are not well formed (FF-14).

A value that was not there (nothing between two separators) is None, an empty quoted value is an empty text. What happens at a quote that
nobody escaped follows `unescapedQuoteHandling`. Separators of several characters follow the same rules as those of one. Standard library
only, because it runs on workers.
"""

from __future__ import annotations

from dataclasses import dataclass

BACK_TO_DELIMITER, CLOSING_QUOTE = "BACK_TO_DELIMITER", "STOP_AT_CLOSING_QUOTE"
AT_DELIMITER, SKIP_VALUE, RAISE_ERROR = "STOP_AT_DELIMITER", "SKIP_VALUE", "RAISE_ERROR"
HANDLINGS = (BACK_TO_DELIMITER, CLOSING_QUOTE, AT_DELIMITER, SKIP_VALUE, RAISE_ERROR)
NONE = "\0"
"""The character that stands for "there is no such character" in options."""
BLANKS = "".join(map(chr, range(33)))


@dataclass(frozen=True)
class Dialect:
    """The characters of a CSV file. `line_ends`: where a record ends outside of quotes; empty when the text is one line.

    `newline`: what ends the lines of the file, and is read as LF wherever it stands; empty when every character is read as it is. A mere LF
    then ends a record too, except inside an unquoted value.
    """

    separator: str = ","
    quote: str = '"'
    escape: str = "\\"
    escape_of_escape: str = "\\"
    trim_left: bool = False
    trim_right: bool = False
    handling: str = AT_DELIMITER
    line_ends: frozenset[str] = frozenset()
    newline: str = ""


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
            self._read()
        except _End:
            self.complete = False
            self._finish()
        except RecursionError:
            raise BrokenRecord("too many quotes") from None
        return self._found

    # --- characters ---

    def _next(self) -> None:
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
                self._next()
            except _End:
                self._char = first
                raise

    # --- values ---

    def _value(self) -> None:
        text = "".join(self._buffer)
        if self._trim:
            text = text.rstrip(BLANKS)
        self._found.append(None if self._skipped or (self._trim and not text) else text)
        self._buffer.clear()
        self._skipped = False

    def _read(self) -> None:
        d = self._d
        self._next()
        while d.trim_left and self._is_blank():
            self._next()
        while self._char not in d.line_ends:
            while d.trim_left and self._is_blank() and self._char != d.quote:
                self._next()
            if self._ends_value():
                self._found.append(None)
            else:
                self._unescaped, self._before = False, NONE
                if self._char == d.quote != NONE:
                    self._trim = False
                    self._quoted()
                    if not (self._unescaped and d.handling == BACK_TO_DELIMITER and not self._buffer):
                        self._value()
                else:
                    self._trim = d.trim_right
                    self._take_until((), at_value_end=True, at_mere=False)
                    self._value()
            if self._char not in d.line_ends:
                self._next()
                if self._char in d.line_ends:
                    self._found.append(None)

    def _finish(self) -> None:
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
            self._value()
        else:
            self._found.append(None)

    def _quoted(self) -> None:
        d = self._d
        if self._before != NONE and d.handling in (AT_DELIMITER, SKIP_VALUE, BACK_TO_DELIMITER):
            self._rest_of_unescaped()
            return
        if self._before == NONE and not self._buffer and (self._plain() or self._nothing()):
            return
        self._next()
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
                self._next()
            else:
                self._escaped()
                self._before = self._char
                self._next()
                if self._unescaped and self._ends_value():
                    return
        if self._is_blank():
            self._after_closing_quote()
        if not self._ends_value():
            raise BrokenRecord("text after a closing quote")

    def _plain(self) -> bool:
        """Take a quoted value without quotes and escapes inside, which a separator follows; False when it is not one."""
        text, d, start = self._text, self._d, self.at
        end = text.find(d.quote, start)
        if end < 0 or d.escape in text[start:end] or not text.startswith(d.separator, end + 1):
            return False
        value = text[start:end]
        self._buffer.append(value.replace(self._d.newline, "\n") if self._d.newline else value)
        self.at = end + 1
        self._next()
        return True

    def _nothing(self) -> bool:
        """Take two quotes, and blanks after them, as an empty value where no character escapes a quote; False when more follows (PA-8)."""
        d, start = self._d, self.at
        if d.escape != NONE or not self._text.startswith(d.quote, start):
            return False
        self.at += len(d.quote)
        try:
            self._next()
            while self._is_blank():
                self._next()
        except _End:
            self._char = self._before = d.quote
            raise
        if not self._ends_value():
            self.at, self._char = start, d.quote
        return self._ends_value()

    def _rest_of_unescaped(self) -> None:
        if self._d.handling == SKIP_VALUE:
            self._skip()
            return
        self._buffer.insert(0, self._d.quote)
        self._next()
        self._trim = self._d.trim_right
        self._take_until((), at_value_end=True)

    def _after_closing_quote(self) -> None:
        """Blanks after a closing quote do not count, unless more than a separator follows."""
        d = self._d
        blanks: list[str] = []
        while self._is_blank():
            blanks.append(self._char)
            self._next()
        if self._ends_value() or d.handling == RAISE_ERROR:
            return
        self._buffer += [d.quote, *blanks]
        if d.handling != CLOSING_QUOTE or self._char not in (d.quote, d.escape):
            self._buffer.append(self._char)
        self._before = self._char
        self._quoted()

    def _escaped(self) -> None:
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
            self._skip()
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
                self._escaped()
            self._before = self._char
            self._next()

    def _unescaped_quote(self) -> bool:
        d = self._d
        self._unescaped = True
        if d.handling in (SKIP_VALUE, RAISE_ERROR):
            self._skip()
            return False
        if d.handling == BACK_TO_DELIMITER:
            *whole, rest = "".join(self._buffer).split(d.separator)
            self._found += whole
            self._buffer = [rest, self._char] if rest else [self._char]
            self._before = NONE
        else:
            self._buffer += [d.quote, self._char]
            self._before = self._char
        self._quoted()
        return True

    def _skip(self) -> None:
        if self._d.handling == RAISE_ERROR:
            raise BrokenRecord("a quote inside a quoted value is not escaped")
        self._buffer.clear()
        self._skipped = True
        self._take_until((), at_value_end=True, keep=False)
