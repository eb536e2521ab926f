"""The records of a part of a CSV file, block by block, each with the line it stands in (AL-21)."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from lakelet.autoloader.discovery.files import Files
from lakelet.autoloader.formats.csv.blocks import BlockSplitter, Split
from lakelet.autoloader.formats.csv.forms import whole_records
from lakelet.autoloader.formats.csv.head import Head, head_of
from lakelet.autoloader.formats.csv.records import records_of
from lakelet.autoloader.formats.csv.rules import CsvRules
from lakelet.autoloader.formats.lines import count_lines
from lakelet.autoloader.formats.text_blocks import text_blocks


@dataclass(frozen=True)
class Piece:
    """Some records; `lines` lines of the file come before the block they were split from."""

    split: Split
    lines: int


class CsvFile:
    """One file with its head."""

    def __init__(self, files: Files, path: str, rules: CsvRules) -> None:
        self._files, self._path, self._rules = files, path, rules
        if rules.multi_line:
            self._rules = rules.of_file(next(self._blocks(), b""))
        self.head: Head = head_of(self._blocks(), self._rules, files.uri(path))

    def _blocks(self, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        return text_blocks(self._files, self._path, self._rules.encoding, self._rules.line_separator, start, length)

    def pieces(self, splitter: BlockSplitter, start: int = 0, length: int | None = None) -> Iterator[Piece]:
        """The records that begin in a byte range, without those of the head. Raises FAILED_READ_FILE."""
        if start > 0:
            yield from self._pieces_behind(splitter, start, length)
            return
        blocks = _without_start(self._blocks(0, length), self.head.end)
        if self._rules.multi_line:
            yield from _multi_line(blocks, splitter, self._rules, self.head.lines)
        else:
            yield from _lines(blocks, splitter, self.head.lines)

    def _pieces_behind(self, splitter: BlockSplitter, start: int, length: int | None) -> Iterator[Piece]:
        first = max(start, self.head.end + self._mark_size())
        end = None if length is None else start + length
        if end is not None and first >= end:
            return
        before = count_lines(self._files, self._path, first - 1) + 1
        yield from _lines(self._blocks(first, None if end is None else end - first), splitter, before)

    def _mark_size(self) -> int:
        """The bytes before the text, which the head does not count."""
        with self._files.open(self._path) as stream:
            return len(BOM_UTF8) if stream.read(len(BOM_UTF8)) == BOM_UTF8 else 0


def _without_start(blocks: Iterator[bytes], size: int) -> Iterator[bytes]:
    for block in blocks:
        if size < len(block):
            yield block[size:] if size else block
        size = max(0, size - len(block))


def _lines(blocks: Iterator[bytes], splitter: BlockSplitter, before: int) -> Iterator[Piece]:
    for block in blocks:
        yield Piece(splitter.split(block), before)
        before += block.count(b"\n") or block.count(b"\r")


def _multi_line(blocks: Iterator[bytes], splitter: BlockSplitter, rules: CsvRules, before: int) -> Iterator[Piece]:
    """A record that does not end in its block waits for more; what waits is looked at again when it has doubled, so that the work stays
    in proportion to the size of the file."""
    waiting = b""
    enough = 0
    for block in blocks:
        waiting += block
        if len(waiting) < enough:
            continue
        used = yield from _whole_records(waiting, splitter, rules, before, final=False)
        before += waiting.count(b"\n", 0, used) or waiting.count(b"\r", 0, used)
        waiting = waiting[used:]
        enough = 2 * len(waiting)
    if waiting:
        yield from _whole_records(waiting, splitter, rules, before, final=True)


def _whole_records(data: bytes, splitter: BlockSplitter, rules: CsvRules, before: int, *, final: bool) -> Generator[Piece, None, int]:
    """The whole records at the start of a text. Returns how many bytes they took."""
    plain = _with_lf(data, rules.dialect.newline)
    if plain is not None:
        if splitter.well_formed(plain):
            yield Piece(splitter.split(plain), before)
            return len(data)
        end = len(plain) if final else whole_records(plain, rules.dialect)
        found = splitter.spanning(plain[:end]) if end else None
        if found is not None:
            yield Piece(found, before)
            return end + plain.count(b"\n", 0, end) if len(plain) < len(data) else end
    records = list(records_of(data, rules, final=final))
    if records:
        yield Piece(Split([], records), before)
    return len(data) if final else records[-1].end if records else 0


def _with_lf(data: bytes, newline: str) -> bytes | None:
    """The text with LF as newline; None where it has other line ends too."""
    if newline in ("", "\n"):
        return data
    ends = data.count(newline.encode())
    if data.count(b"\r") != ends or data.count(b"\n") != (ends if newline == "\r\n" else 0):
        return None
    return data.replace(newline.encode(), b"\n")
