"""One CSV file: its head (skipped rows and header), its records block by block, and how its columns belong to those of the schema.

Paths and rules come in; pieces of records go out, each with the line it stands in (FF-11 to FF-13, AL-21).
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakelet.autoloader.discovery.files import Files, unreadable
from lakelet.autoloader.formats.base import UnknownFields
from lakelet.autoloader.formats.charsets import is_utf8, shown_codec, wide_codec
from lakelet.autoloader.formats.csv.blocks import BlockSplitter, SplitBlock, whole_records
from lakelet.autoloader.formats.csv.records import Record, records_of
from lakelet.autoloader.formats.csv.rules import CsvRules
from lakelet.autoloader.formats.text_blocks import count_lines, text_blocks
from lakelet.autoloader.source_spec import ReaderSpec


@dataclass(frozen=True)
class Head:
    """`names`: the columns of the file, none when it has no record. `end`: the bytes before the first row of data; `lines`: their lines."""

    names: tuple[str, ...]
    end: int = 0
    lines: int = 0


def head_of(blocks: Iterator[bytes], rules: CsvRules, uri: str) -> Head:
    """Read the head off the first blocks of a file. Raises FAILED_READ_FILE for a header that cannot be split."""
    data = b""
    for block in blocks:
        if not data:
            _refuse_wide(block, rules, uri)
        data += block
        found = _head_of_data(data, rules, uri, final=False)
        if found is not None:
            return found
    found = _head_of_data(data, rules, uri, final=True)
    return found if found is not None else Head(())


def _refuse_wide(block: bytes, rules: CsvRules, uri: str) -> None:
    """Raise FAILED_READ_FILE for a file in UTF-16 or UTF-32 that is read as UTF-8: each of its characters would hold NULs (FF-33)."""
    codec = wide_codec(block) if is_utf8(rules.encoding) else None
    if codec is not None:
        likely = shown_codec(codec)
        why = f'it is not UTF-8. It looks like {likely}: .option("encoding", "{likely}") on the reader reads it'
        raise unreadable(uri, ValueError(why), why=why)


def _head_of_data(data: bytes, rules: CsvRules, uri: str, *, final: bool) -> Head | None:
    left = rules.skip_rows
    for record in records_of(data, rules, final=final):
        if left:
            left -= 1
            continue
        if record.tokens is None:
            error = ValueError("its first record cannot be split into values")
            raise unreadable(uri, error, why=f"its first record cannot be split into values: {record.text[:200]}")
        if not rules.header:
            return Head(tuple(f"_c{at}" for at in range(len(record.tokens))), record.start, record.line)
        lines = record.line + _line_ends(data[record.start : record.end])
        return Head(safe_names(record, rules), record.end, lines)
    return None


def _line_ends(data: bytes) -> int:
    return data.count(b"\n") or data.count(b"\r")


def safe_names(header: Record, rules: CsvRules) -> tuple[str, ...]:
    """The names of a header, as Spark makes them: an empty one is `_c<position>`, repeated ones (in any case) get their position."""
    values = [rules.value(token) for token in header.tokens or ()]
    times = Counter(value.lower() for value in values if value)
    return tuple(f"_c{at}" if not value else f"{value}{at}" if times[value.lower()] > 1 else value for at, value in enumerate(values))


@dataclass(frozen=True)
class ColumnMapping:
    """Where the columns of one file go.

    names: the file's columns; targets: per column the index of the schema's column, or None; rescued: positions whose values are rescued.
    unknown: names that end the query before the first row.
    """

    names: tuple[str, ...]
    targets: tuple[int | None, ...]
    rescued: frozenset[int]
    unknown: tuple[str, ...]

    def check(self, condition: str) -> None:
        """Raise UnknownFields when there are unknown names."""
        if self.unknown:
            raise UnknownFields(f"[{', '.join(self.unknown)}]", 0, condition)


def bind(head: Head, fields: Sequence[str], spec: ReaderSpec, rules: CsvRules, ignored: frozenset[str]) -> ColumnMapping:
    """Bind the columns of a file to `fields`, by position or by name."""
    if rules.by_position:
        at_file = [at for at, name in enumerate(fields) if name != spec.corrupt_column]
        names = [fields[at] for at in at_file]
        return ColumnMapping(tuple(names), tuple(at_file), frozenset(), ())
    taken: set[int] = set()
    targets: list[int | None] = []
    rescued: set[int] = set()
    unknown: list[str] = []
    known = {name.lower() for name in fields} | {(spec.rescued_column or "").lower()}
    without = {name.lower() for name in ignored}
    exact = set(head.names) & set(fields)
    positions = {name: at for at, name in enumerate(fields)}
    for position, name in enumerate(head.names):
        target = _target_of(name, positions, exact, case_sensitive=rules.case_sensitive)
        if name.lower() in without:
            targets.append(None)
        elif target is not None and target not in taken:
            taken.add(target)
            targets.append(target)
        else:
            targets.append(None)
            if name.lower() not in known and spec.stops_at_unknown:
                unknown.append(name)
            elif spec.rescued_column is not None:
                rescued.add(position)
    return ColumnMapping(head.names, tuple(targets), frozenset(rescued), tuple(unknown))


def _target_of(name: str, positions: Mapping[str, int], exact: set[str], *, case_sensitive: bool) -> int | None:
    if name in positions:
        return positions[name]
    if case_sensitive:
        return None
    same = [at for field, at in positions.items() if field.lower() == name.lower() and field not in exact]
    return same[0] if same else None


@dataclass(frozen=True)
class Piece:
    """Some records; `lines` lines of the file come before the block they were split from."""

    split: SplitBlock
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
            yield from _pieces_by_line(blocks, splitter, self.head.lines)

    def _pieces_behind(self, splitter: BlockSplitter, start: int, length: int | None) -> Iterator[Piece]:
        first = max(start, self.head.end + self._mark_size())
        end = None if length is None else start + length
        if end is not None and first >= end:
            return
        before = count_lines(self._files, self._path, first - 1) + 1
        yield from _pieces_by_line(self._blocks(first, None if end is None else end - first), splitter, before)

    def _mark_size(self) -> int:
        """The bytes before the text, which the head does not count."""
        with self._files.open(self._path) as stream:
            return len(BOM_UTF8) if stream.read(len(BOM_UTF8)) == BOM_UTF8 else 0


def _without_start(blocks: Iterator[bytes], size: int) -> Iterator[bytes]:
    for block in blocks:
        if size < len(block):
            yield block[size:] if size else block
        size = max(0, size - len(block))


def _pieces_by_line(blocks: Iterator[bytes], splitter: BlockSplitter, before: int) -> Iterator[Piece]:
    for block in blocks:
        yield Piece(splitter.split(block), before)
        before += block.count(b"\n") or block.count(b"\r")


def _multi_line(blocks: Iterator[bytes], splitter: BlockSplitter, rules: CsvRules, before: int) -> Iterator[Piece]:
    """A record that does not end in its block waits for more; it is read again when the text has doubled, so that the work stays
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
        yield Piece(SplitBlock([], records), before)
    return len(data) if final else records[-1].end if records else 0


def _with_lf(data: bytes, newline: str) -> bytes | None:
    """The text with LF as newline; None where it has other line ends too."""
    if newline in ("", "\n"):
        return data
    ends = data.count(newline.encode())
    if data.count(b"\r") != ends or data.count(b"\n") != (ends if newline == "\r\n" else 0):
        return None
    return data.replace(newline.encode(), b"\n")
