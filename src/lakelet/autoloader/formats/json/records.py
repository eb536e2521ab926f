"""Where the records of a JSON file begin and end: lines, other separators, other charsets, whole documents (FF-2, FF-6).

A file that is read as a whole holds one document, its first value. An array gives one record per element. Of the text only one element at a
time is held; whether the array is valid shows at its end, so its records are handed over together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from json.decoder import JSONDecodeError
from typing import Any

from lakelet.autoloader.discovery.files import Files, unreadable
from lakelet.autoloader.formats.charsets import is_utf8, longer_text, text_chunks, utf8_chunks, wide_codec
from lakelet.autoloader.formats.json.syntax_tree import BrokenText, Scanner, Syntax, parse_prefix
from lakelet.autoloader.formats.text_blocks import BLOCK_BYTES, open_stream, splittable
from lakelet.autoloader.text_values import is_utf8 as has_utf8

_scan: Any = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).scan_once  # type: ignore[attr-defined]


@dataclass(frozen=True)
class RecordLayout:
    """How a file is cut into records. `separator` None: at line ends. `codec` None: UTF-8, UTF-16 or UTF-32, as its first bytes show."""

    multi_line: bool = False
    codec: str | None = None
    separator: str | None = None

    @property
    def is_lines(self) -> bool:
        """Whether a file is lines of UTF-8, which the vectorised path reads block by block and parts of which can be read alone."""
        return not self.multi_line and is_utf8(self.codec or "utf-8") and self.separator in (None, "\n")

    def of_file(self, head: bytes) -> RecordLayout:
        """The layout of a file that begins with these bytes."""
        codec = wide_codec(head) if self.codec is None else None
        return self if codec is None else replace(self, codec=codec)

    def splittable(self, path: str) -> bool:
        return self.is_lines and splittable(path)


@dataclass(frozen=True)
class JsonRecord:
    """The text of one record of a document; `broken`: of a document that is none, from its beginning to its end. `more`: text follows."""

    text: bytes
    broken: bool = False
    more: bool = False


def separated_records(files: Files, path: str, layout: RecordLayout) -> Iterator[list[bytes]]:
    """The records of a file that is not read as a document, as UTF-8, many at a time. Raises FAILED_READ_FILE."""
    separator = (layout.separator or "\n").encode()
    waiting: list[bytes] = []
    size = 0
    with open_stream(files, path) as stream:
        try:
            for chunk in utf8_chunks(stream, layout.codec):
                waiting.append(chunk)
                size += len(chunk)
                if size < BLOCK_BYTES or (separator not in chunk and len(separator) == 1):
                    continue
                *whole, rest = b"".join(waiting).split(separator)
                yield whole
                waiting, size = [rest], 0
        except OSError as error:
            raise unreadable(files.uri(path), error) from error
    yield b"".join(waiting).split(separator)


def document_records(files: Files, path: str, layout: RecordLayout, syntax: Syntax) -> list[JsonRecord]:
    """The records of a file read as a whole (`multiLine`), none of a blank file. Raises FAILED_READ_FILE.

    As in Spark, an array that is not valid to its end, or holds anything but objects, is one broken record.
    """
    with open_stream(files, path) as stream:
        try:
            found = records_in(text_chunks(stream, layout.codec), syntax)
        except OSError as error:
            raise unreadable(files.uri(path), error) from error
    if found is not None:
        return found
    with open_stream(files, path) as stream:
        return [JsonRecord(b"".join(utf8_chunks(stream, layout.codec)), broken=True)]


def records_in(chunks: Iterator[str], syntax: Syntax) -> list[JsonRecord] | None:
    """The records of the document whose text arrives in pieces; None where it is broken."""
    window = _Window(chunks, syntax)
    first = window.peek()
    if not first:
        return []
    if first == "[":
        texts = _array_elements(window)
    else:
        value = window.value() if first == "{" else None
        texts = None if value is None else [value]
    if texts is None or not all(map(has_utf8, texts)):
        return None
    found = [JsonRecord(text) for text in texts]
    if found and window.peek():
        found[-1] = JsonRecord(found[-1].text, more=True)
    return found


def _array_elements(window: _Window) -> list[bytes] | None:
    """The objects of an array; None where it is invalid or holds something else."""
    found: list[bytes] = []
    window.step()
    if window.peek() == "]":
        window.step()
        return found
    while window.peek() == "{" and (element := window.value()) is not None:
        found.append(element)
        after = window.peek()
        if after not in (",", "]"):
            return None
        window.step()
        if after == "]":
            return found
    return None


class _Window:
    """The part of a long text that is being parsed."""

    def __init__(self, chunks: Iterator[str], syntax: Syntax) -> None:
        self._chunks, self._syntax = chunks, syntax
        self._text, self._at, self._done = "", 0, False

    def peek(self) -> str:
        """The next character that is neither a blank nor in a comment; empty at the end."""
        while True:
            at = Scanner(self._text, self._syntax).skip(self._at)
            half_comment = self._syntax.comments and self._text.startswith("/", at)
            if not half_comment and at < len(self._text):
                self._at = at
                return self._text[at]
            if not self._take_in_more():
                self._at = at
                return self._text[at : at + 1]

    def step(self) -> None:
        """Pass one character."""
        self._at += 1

    def value(self) -> bytes | None:
        """The text of the value that comes next; None, and nothing passed, when it is not JSON."""
        self.peek()
        while (end := self._end_of_value()) is None:
            if not self._take_in_more():
                return None
        found = self._text[self._at : end]
        self._at = end
        return found.encode("utf-8", "surrogatepass")

    def _end_of_value(self) -> int | None:
        """Where the value ends; None when that is not known yet, or never."""
        try:
            strict = self._syntax.non_numeric  # the scanner takes NaN always
            end: int = _scan(self._text, self._at)[1] if strict else parse_prefix(self._text, self._at, syntax=self._syntax)[1]
        except (StopIteration, JSONDecodeError, RecursionError, BrokenText):
            if not self._done:
                return None
            try:
                return parse_prefix(self._text, self._at, syntax=self._syntax)[1]
            except BrokenText:
                return None
        return end if self._done or end < len(self._text) else None

    def _take_in_more(self) -> bool:
        """Take in about as much again as is held; False at the end of the text."""
        wanted = len(self._text) - self._at
        self._text, taken, self._done = longer_text(self._text[self._at :], self._chunks)
        self._at = 0
        return taken > 0 or self._just_done(wanted)

    def _just_done(self, wanted: int) -> bool:
        """The end of the text is news once: a number at its end is complete now, and tolerance is tried."""
        if self._ended:
            return False
        self._ended = True
        return wanted > 0

    _ended = False
