"""Splits a block of JSON lines into what pyarrow's parser reads surely right, and the lines it is not to be trusted with.

The traps of that parser, and how each is met:
- it takes several records per line, and records that span lines: every line must begin with `{` and end with `}`, and the number of
  records must equal the number of lines. Between `}` and `{` no record can go on, so both together mean one record per line;
- it takes `Inf`, `-Inf` and `-NaN`, which are no JSON, for numbers: lines that may hold them are taken out;
- it does not check UTF-8, stops at a NUL byte, and does not survive thousands of levels of nesting: all are searched first;
- it fails on a whole block for one bad line, but names the row: that line is taken out and the rest is read again;
- fields that the schema does not name appear as extra columns: the lines that hold them are taken out;
- it refuses numbers and booleans in a text column: they are put in quotes before parsing, which keeps their literal text. That begins
  once a block shows such values under a name that is a text column wherever the schema has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from lakelet.autoloader.text_values import is_utf8

_SPACE = b" \t\r\n"
_ROW = re.compile(r" in row (\d+)$")
_CHANGED = re.compile(r"Column\(.*/([^/]+)\) changed from (\w+) to (\w+) in row")
_CONVERSION = re.compile(r"convert JSON to (\w+), couldn't parse:(\S+)$")
_OPENING = {
    "fraction": rb"-?\d+[.eE]",
    "long": rb"-?\d{10}",
    "string": b'"',
    "number": b"[-0-9NI]",
    "boolean": b"[tf]",
    "object": rb"\{",
    "array": rb"\[",
    "any": b"",
}
_ODD_NUMBER = re.compile(rb"[\s:,\[](?:-?Inf|-NaN)[\s,\]}]")
_MOST_LESSONS = 100
_MOST_SUSPECTS = 300  # more would make the search in the text slower than reading the lines one by one
_SMALLEST_PART = 8
Dirty = list[tuple[int, bytes]]  # (line index inside the block, line)


@dataclass(frozen=True)
class ParsedBlock:
    """Result of one block: the table of the clean lines, their line indexes (None: row i is line i of the block without blank ends), the
    text they came from, and the lines left over."""

    table: Any | None
    numbers: Sequence[int] | None
    lines: Callable[[], list[bytes]]
    dirty: Dirty


class BlockParser:
    """Parses blocks with an explicit schema (unknown fields make a line dirty or are left out) or with pyarrow's inference.

    Args:
        schema: pyarrow schema to parse into; None infers.
        ignore_unknown: leave fields out that the schema does not name, instead of calling their lines dirty.
        ignored: top-level names that are left out in any case.
    """

    def __init__(self, schema: Any | None, *, ignore_unknown: bool = False, ignored: frozenset[str] = frozenset()) -> None:
        self._schema, self._ignored = schema, ignored
        self._options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore" if ignore_unknown else "infer")
        self._names_by_type = {} if schema is None else _names_by_type(schema)
        kinds = [(name, kind) for kind, names in self._names_by_type.items() for name in names]
        mixed = {name for name, kind in kinds if kind != "string"}
        self._text_names = {name for name, kind in kinds if kind == "string"} - mixed
        self._quoted_names: list[str] = []
        self._quoted: re.Pattern[bytes] | None = None
        self._suspect_names: dict[tuple[str, str], None] = {}
        self._suspects: re.Pattern[bytes] | None = None

    def parse(self, block: bytes) -> ParsedBlock:
        """Split one block of whole lines."""
        data = block.strip(_SPACE)
        if not data:
            return ParsedBlock(None, None, list, [])
        count = data.count(b"\n") + 1
        if not _well_shaped(data, count) or not _is_harmless(data):
            return self._search_dirty_lines(block)
        found = self._parse_and_learn(data, count)
        if found is None:
            return self._search_dirty_lines(block)
        table, out = found
        if not out:
            return ParsedBlock(table, None, lambda: data.split(b"\n"), [])
        first = block[: len(block) - len(block.lstrip(_SPACE))].count(b"\n")
        lines = data.split(b"\n")
        taken = set(out)
        numbers = [first + i for i in range(count) if i not in taken]
        return ParsedBlock(table, numbers, lambda: [lines[i - first] for i in numbers], [(first + i, lines[i]) for i in out])

    def _parse_and_learn(self, data: bytes, count: int) -> tuple[Any, list[int]] | None:
        """The table of `data` without the lines that match what was learned, and those lines' indexes. None: not readable this way.

        What a failure teaches (a name with a kind of value that does not fit) stays known for the following blocks. So a drift that goes on
        costs one search in the text, not one failed parse per line.
        """
        for _ in range(_MOST_LESSONS):
            rest, out = self._without_suspects(data)
            if len(out) > count // 2:
                return None
            try:
                table = self._read_by_arrow(pa.py_buffer(self._with_quoted_values(rest)))
            except pa.ArrowInvalid as error:
                if not self._learn_from_failure(str(error)):
                    return None
                continue
            names = self._unexpected_names(table)
            if not names:
                return (table, out) if len(table) == count - len(out) else None
            if not all(self._add_suspect(name, "any") for name in sorted(names)):
                return None
        return None

    def _learn_from_failure(self, message: str) -> bool:
        """Whether a failure teaches something new."""
        found = _CHANGED.search(message)
        if found is None:
            return self._learn_number(message)
        name, before, after = found.groups()
        if before != "string" or after not in ("number", "boolean") or name not in self._text_names:
            return self._add_suspect(name, after)
        if name in self._quoted_names:
            return False
        self._quoted_names.append(name)
        names = b"|".join(map(_in_json, self._quoted_names))
        self._quoted = re.compile(rb'"(' + names + rb')"\s*:\s*(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false)(?=[\s,}])')
        return True

    def _learn_number(self, message: str) -> bool:
        """A number that its column cannot take; the failure names the type only, so every column of the type is watched from now on."""
        found = _CONVERSION.search(message)
        if found is None:
            return False
        kind = "fraction" if re.search("[.eE]", found[2]) else "long" if found[1] == "int32" else ""
        names = self._names_by_type.get(found[1], ()) if kind else ()
        new = [self._add_suspect(name, kind) for name in sorted(names)]
        return any(new)

    def _add_suspect(self, name: str, kind: str) -> bool:
        """From now on lines in which `name` has a value of this kind are taken out; False when that was known already, or too much is."""
        if (name, kind) in self._suspect_names or len(self._suspect_names) >= _MOST_SUSPECTS:
            return False
        self._suspect_names[name, kind] = None
        self._suspects = None
        return True

    def _suspect_pattern(self) -> re.Pattern[bytes]:
        by_kind: dict[str, list[bytes]] = {}
        for known, its_kind in self._suspect_names:
            by_kind.setdefault(its_kind, []).append(_in_json(known))
        parts = [rb"(?:" + b"|".join(names) + rb')"\s*:\s*' + _OPENING[its_kind] for its_kind, names in by_kind.items()]
        return re.compile(b'"(?:' + b"|".join(parts) + b")")

    def _without_suspects(self, data: bytes) -> tuple[bytes, list[int]]:
        if not self._suspect_names:
            return data, []
        if self._suspects is None:
            self._suspects = self._suspect_pattern()
        out: list[int] = []
        kept: list[bytes] = []
        number = at = 0  # line that begins at `at`
        while (found := self._suspects.search(data, at)) is not None:
            begin = data.rfind(b"\n", at, found.start()) + 1 or at
            end = data.find(b"\n", found.end()) + 1 or len(data) + 1
            number += data.count(b"\n", at, begin)
            kept.append(data[at:begin])
            out.append(number)
            number, at = number + 1, end
        if not out:
            return data, []
        return b"".join([*kept, data[at:]]), out

    def _with_quoted_values(self, data: bytes) -> bytes:
        return data if self._quoted is None else self._quoted.sub(rb'"\1":"\2"', data)

    def pieces(self, block: bytes) -> tuple[list[Any], list[bytes]]:
        """For inference: tables that together hold the clean lines, each with types of its own, and the other lines."""
        data = block.strip(_SPACE)
        count = data.count(b"\n") + 1
        if data and _well_shaped(data, count) and _is_harmless(data):
            try:
                table = self._read_by_arrow(pa.py_buffer(data))
            except pa.ArrowInvalid:
                table = None
            if table is not None and len(table) == count:
                return [table], []
        lines = block.split(b"\n")
        clean, dirty = _by_shape(lines)
        tables, rest = self._tables_and_lines([lines[i] for i in clean])
        return tables, [lines[i] for i in dirty] + rest

    def _tables_and_lines(self, lines: list[bytes]) -> tuple[list[Any], list[bytes]]:
        tables: list[Any] = []
        failed: list[bytes] = []
        at, budget = 0, max(8, len(lines) // 8)
        while at < len(lines):
            end = len(lines)
            try:
                tables.append(self._table_of_count(lines, at, end))
                break
            except pa.ArrowInvalid as error:
                row = _ROW.search(str(error))
                end = at + int(row[1]) if row is not None else len(lines)
            if end >= len(lines) or len(failed) >= budget:
                return tables, failed + lines[at:]
            try:
                if end > at:
                    tables.append(self._table_of_count(lines, at, end))
            except pa.ArrowInvalid:
                failed += lines[at:end]
            failed.append(lines[end])
            at = end + 1
        return tables, failed

    def _table_of_count(self, lines: list[bytes], at: int, end: int) -> Any:
        table = self._read_by_arrow(pa.py_buffer(b"\n".join(lines[at:end])))
        if len(table) != end - at:
            raise pa.ArrowInvalid("lines and records differ in number")
        return table

    def _read_by_arrow(self, data: Any) -> Any:
        options = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
        return pj.read_json(pa.BufferReader(data), read_options=options, parse_options=self._options)

    def _unexpected_names(self, table: Any) -> set[str]:
        """Names of fields, at any depth, that are not in the schema."""
        if self._schema is None or table.schema.equals(self._schema):
            return set()
        found = [field for field in table.schema if field.name not in self._ignored]
        return _extra_names(pa.struct(found), pa.struct(list(self._schema)))

    def _search_dirty_lines(self, block: bytes) -> ParsedBlock:
        """Like `parse`, for blocks in which single lines have to be checked."""
        lines = block.split(b"\n")
        clean, dirty = _by_shape(lines)
        table = None
        found = self._parse_and_learn(b"\n".join([lines[i] for i in clean]), len(clean)) if clean else None
        if found is not None:
            table, out = found
            taken = set(out)
            dirty += [number for i, number in enumerate(clean) if i in taken]
            clean = [number for i, number in enumerate(clean) if i not in taken]
        elif clean:
            clean, table = self._by_parts(lines, clean, dirty)
        dirty.sort()
        return ParsedBlock(table, clean, lambda: [lines[i] for i in clean], [(i, lines[i]) for i in dirty])

    def _by_parts(self, lines: list[bytes], clean: list[int], dirty: list[int]) -> tuple[list[int], Any | None]:
        """The last resort: halves of the lines are parsed, and halves of those, until what fails is found or too much was tried."""
        texts = self._with_quoted_values(b"\n".join(lines)).split(b"\n")
        if len(texts) != len(lines):
            dirty.extend(clean)
            return [], None
        waiting: list[list[int]] = [clean]
        good: list[int] = []
        budget = max(32, len(clean) // 8)
        while waiting:
            part = waiting.pop()
            budget -= 1
            if budget < 0 or (failed := self._failing_line(texts, part)) is None:
                (good if budget >= 0 else dirty).extend(part)
            elif failed >= 0:
                dirty.append(part[failed])
                waiting += [rest for rest in (part[failed + 1 :], part[:failed]) if rest]
            elif len(part) <= _SMALLEST_PART:
                dirty.extend(part)
            else:
                waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
        good.sort()
        if good and self._failing_line(texts, good) is not None:
            dirty.extend(good)
            good = []
        return good, self._table_of_count([texts[i] for i in good], 0, len(good)) if good else None

    def _failing_line(self, texts: list[bytes], part: list[int]) -> int | None:
        """None when the lines parse; the position of the failing one where it is known, else -1."""
        try:
            table = self._table_of_count([texts[i] for i in part], 0, len(part))
        except pa.ArrowInvalid as error:
            row = _ROW.search(str(error))
            return int(row[1]) if row is not None and int(row[1]) < len(part) else -1
        return -1 if self._unexpected_names(table) else None


def _well_shaped(data: bytes, count: int) -> bool:
    if data[:1] != b"{" or data[-1:] != b"}":
        return False
    return count == 1 or data.count(b"}\n{") == count - 1 or data.count(b"}\r\n{") == count - 1


def _is_harmless(data: bytes) -> bool:
    return b"\0" not in data and not _has_odd_number(data) and is_shallow(data) and is_utf8(data)


def _has_odd_number(data: bytes) -> bool:
    return (b"Inf" in data or b"-NaN" in data) and _ODD_NUMBER.search(data) is not None


def _by_shape(lines: list[bytes]) -> tuple[list[int], list[int]]:
    """(lines that look like one record, lines that do not); blank lines are in neither."""
    clean: list[int] = []
    dirty: list[int] = []
    sure = _is_harmless(b"\n".join(lines))
    for number, line in enumerate(lines):
        if sure and line[:1] == b"{" and line[-1:] == b"}":
            clean.append(number)
            continue
        text = line.strip(_SPACE)
        if text:
            shaped = text[:1] == b"{" and text[-1:] == b"}" and _is_harmless(text)
            (clean if shaped else dirty).append(number)
    return clean, dirty


def _in_json(name: str) -> bytes:
    return re.escape(json.dumps(name, ensure_ascii=False)[1:-1].encode())


def _extra_names(found: Any, wanted: Any) -> set[str]:
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        known = {wanted.field(i).name: wanted.field(i).type for i in range(wanted.num_fields)}
        names: set[str] = set()
        for i in range(found.num_fields):
            field = found.field(i)
            names |= _extra_names(field.type, known[field.name]) if field.name in known else {field.name}
        return names
    if pa.types.is_list(found) and pa.types.is_list(wanted):
        return _extra_names(found.value_type, wanted.value_type)
    return set()


def _names_by_type(schema: Any) -> dict[str, set[str]]:
    """Arrow type name → the field names, at any depth, that have it somewhere in a schema."""
    found: dict[str, set[str]] = {}

    def visit(fields: Any) -> None:
        for field in fields:
            found.setdefault(str(field.type).partition("<")[0].partition("(")[0], set()).add(field.name)
            inner = field.type
            while pa.types.is_list(inner):
                inner = inner.value_type
            if pa.types.is_struct(inner):
                visit(inner.field(i) for i in range(inner.num_fields))

    visit(schema)
    return found


# --- depth of nesting ---------------------------------------------------------------------------------------------------------------------

DEEPEST_LINE = 500
"""Levels of nesting: pyarrow's parser takes minutes for thousands of them, and more end its process."""
_ALL_BUT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def is_shallow(lines: bytes) -> bool:
    """Whether surely no line is nested more than `DEEPEST_LINE` levels deep.

    Brackets inside texts count as well, so the answer may be no for a line that is shallow.
    """
    find = lines.find
    if -1 not in [find(b"\n", at, at + DEEPEST_LINE) for at in range(0, len(lines) - DEEPEST_LINE, DEEPEST_LINE)]:
        return True  # every line is too short: a level takes two bytes
    return all(_is_shallow_line(line) for line in lines.split(b"\n") if len(line) > 2 * DEEPEST_LINE)


def _is_shallow_line(line: bytes) -> bool:
    left = line.translate(None, _ALL_BUT_BRACKETS)
    for _ in range(DEEPEST_LINE):
        if len(left) <= 2 * DEEPEST_LINE:
            return True
        inner = left.replace(b"{}", b"").replace(b"[]", b"")
        if len(inner) == len(left):
            break
        left = inner
    return False
