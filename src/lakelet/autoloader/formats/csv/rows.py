"""CSV records as rows of a schema, one by one: the exact meaning of reading (FF-15, FS-31, FS-35).

A record is malformed when it has fewer values than its file has columns, and, where no rescued column takes them, when it has more, empty
ones too, or holds a text that does not fit. It keeps the values that fit. A record that cannot be split has none.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakelet.autoloader.formats.base import DataField, WiderType
from lakelet.autoloader.formats.csv.head import Binding
from lakelet.autoloader.formats.csv.records import Record
from lakelet.autoloader.formats.csv.rules import CsvRules
from lakelet.autoloader.formats.csv.types import TypeFinder, to_spark
from lakelet.autoloader.formats.csv.values import reader_of
from lakelet.autoloader.spec import ReaderSpec
from lakelet.autoloader.types.growth import is_hinted, wider

WIDENED = "NEW_FIELDS_AND_WIDENED_TYPES_IN_FILE"


@dataclass(frozen=True)
class CsvRow:
    """One record: values in the order of the fields, members of the rescued column without braces, whether it is malformed, its text."""

    values: Sequence[Any]
    rescued: str | None
    broken: bool
    text: str
    bad_bytes: bool = False


class RowConverter:
    """Converts the records of one file."""

    def __init__(self, fields: Sequence[DataField], spec: ReaderSpec, rules: CsvRules, binding: Binding) -> None:
        self._binding, self._rules, self._width = binding, rules, len(fields)
        self._rescue = spec.rescued_column is not None
        self._readers = [reader_of(kind, rules) for _, kind, _ in fields]
        names = [name for name, _, _ in fields]
        self._corrupt = names.index(spec.corrupt_column) if spec.corrupt_column in names else None
        self._types = TypeFinder(rules, decimals=True)
        hinted = frozenset(spec.hinted)
        self._widening = {at: (name, kind) for at, (name, kind, _) in enumerate(fields) if spec.widens and not is_hinted(name, hinted)}

    def row(self, record: Record, line: int) -> CsvRow:
        """The row of a record in this line of its file. Raises WiderType where the mode widens the column that a value does not fit."""
        if record.tokens is None:
            return self._unsplit(record)
        values: list[Any] = [None] * self._width
        members: dict[str, list[str]] = {}
        targets, width = self._binding.targets, len(self._binding.names)
        broken = len(record.tokens) < width or (len(record.tokens) > width and not self._rescue)
        for at, token in enumerate(record.tokens):
            text = self._rules.value(token)
            if text is None:
                continue
            if at >= width:
                members.setdefault(f"_c{at}", []).append(text)
                continue
            target = targets[at]
            if target is not None:
                values[target] = self._readers[target](text)
                if values[target] is None:
                    self._check_wider(target, text, line)
                    members.setdefault(self._binding.names[at], []).append(text)
            elif at in self._binding.rescued:
                members.setdefault(self._binding.names[at], []).append(text)
        return self._finished(record, values, members, broken=broken)

    def _finished(self, record: Record, values: list[Any], members: dict[str, list[str]], *, broken: bool) -> CsvRow:
        rescued = [f"{quote(name)}:{_texts(texts)}" for name, texts in members.items()]
        broken = broken or bool(rescued and not self._rescue)
        if record.raw is not None:
            rescued.append(_raw_member(record.raw))
        if broken and self._corrupt is not None:
            values[self._corrupt] = record.text
        return CsvRow(values, ",".join(rescued) if rescued and self._rescue else None, broken, record.text, record.raw is not None)

    def _unsplit(self, record: Record) -> CsvRow:
        values: list[Any] = [None] * self._width
        members = [] if self._corrupt is not None else [f'"_corrupt_record":{quote(record.text)}']
        if self._corrupt is not None:
            values[self._corrupt] = record.text
        if record.raw is not None:
            members.append(_raw_member(record.raw))
        return CsvRow(values, ",".join(members) if members and self._rescue else None, True, record.text, record.raw is not None)

    def _check_wider(self, target: int, text: str, line: int) -> None:
        field = self._widening.get(target)
        if field is None:
            return
        name, kind = field
        seen = self._types.of(text)
        wide = None if seen is None else wider(kind, to_spark(seen))
        if wide is not None and wide != kind:
            raise WiderType(f"[{name}]", line, WIDENED)


def quote(text: str) -> str:
    """A text as JSON."""
    return json.dumps(text, ensure_ascii=False)


def _texts(texts: list[str]) -> str:
    return quote(texts[0]) if len(texts) == 1 else "[" + ",".join(map(quote, texts)) + "]"


def _raw_member(raw: bytes) -> str:
    """The bytes of a record that is not UTF-8; its texts have replacement characters."""
    return f'"_corrupt_record_base64":"{base64.b64encode(raw).decode()}"'
