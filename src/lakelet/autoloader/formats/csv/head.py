"""The head of a CSV file: skipped rows and header; and how its columns belong to those of the schema (FF-11 to FF-13)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakelet.autoloader.discovery.unreadable import unreadable
from lakelet.autoloader.formats.base import UnknownFields
from lakelet.autoloader.formats.charsets import is_utf8, shown_codec, wide_codec
from lakelet.autoloader.formats.csv.records import Record, records_of
from lakelet.autoloader.formats.csv.rules import CsvRules
from lakelet.autoloader.spec import ReaderSpec


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
        found = _head(data, rules, uri, final=False)
        if found is not None:
            return found
    found = _head(data, rules, uri, final=True)
    return found if found is not None else Head(())


def _refuse_wide(block: bytes, rules: CsvRules, uri: str) -> None:
    """Raise FAILED_READ_FILE for a file in UTF-16 or UTF-32 that is read as UTF-8: each of its characters would hold NULs (FF-33)."""
    codec = wide_codec(block) if is_utf8(rules.encoding) else None
    if codec is not None:
        likely = shown_codec(codec)
        why = f'it is not UTF-8. It looks like {likely}: .option("encoding", "{likely}") on the reader reads it'
        raise unreadable(uri, ValueError(why), why=why)


def _head(data: bytes, rules: CsvRules, uri: str, *, final: bool) -> Head | None:
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
class Binding:
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


def bind(head: Head, fields: Sequence[str], spec: ReaderSpec, rules: CsvRules, ignored: frozenset[str]) -> Binding:
    """Bind the columns of a file to `fields`, by position or by name."""
    if rules.by_position:
        at_file = [at for at, name in enumerate(fields) if name != spec.corrupt_column]
        names = [fields[at] for at in at_file]
        return Binding(tuple(names), tuple(at_file), frozenset(), ())
    taken: set[int] = set()
    targets: list[int | None] = []
    rescued: set[int] = set()
    unknown: list[str] = []
    known = {name.lower() for name in fields} | {(spec.rescued_column or "").lower()}
    without = {name.lower() for name in ignored}
    exact = set(head.names) & set(fields)
    positions = {name: at for at, name in enumerate(fields)}
    for position, name in enumerate(head.names):
        target = _target(name, positions, exact, case_sensitive=rules.case_sensitive)
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
    return Binding(head.names, tuple(targets), frozenset(rescued), tuple(unknown))


def _target(name: str, positions: Mapping[str, int], exact: set[str], *, case_sensitive: bool) -> int | None:
    if name in positions:
        return positions[name]
    if case_sensitive:
        return None
    same = [at for field, at in positions.items() if field.lower() == name.lower() and field not in exact]
    return same[0] if same else None
