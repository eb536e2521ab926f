"""Row-wise conversion of JSON records into typed values: the exact meaning of reading (spec 3.1, 4, 4.1).

The vectorised path (`json_blocks`) must give the same rows; it hands every line it is not sure about to this module.

Rules of our own where the spec is silent:
- an array keeps the elements that fit (NULL for the others) and the whole array is rescued;
- a repeated key: the last one fills the column, the earlier ones are rescued; several rescued values of one key form an array in the
  order of the file;
- a literal that overflows DOUBLE, or does not fit a DECIMAL without rounding, is a mismatch, not a changed value.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from lakelet.autoloader.formats.json_text import Arr, BrokenText, Node, Num, Obj, dump, parse, parse_with_source, records_of, source_text
from lakelet.autoloader.infer import is_column
from lakelet.autoloader.moments import date_days, timestamp_micros, timestamp_ntz_micros

RAISE, RESCUE, IGNORE = "raise", "rescue", "ignore"
Converter = Callable[[Node], tuple[Any, str | None]]  # value → (typed value, JSON text of what was rescued)


@dataclass(frozen=True)
class RowRules:
    """How rows are read: what happens to unknown fields, whether a rescued column exists, how names match."""

    unknown: str = RESCUE
    rescue: bool = True
    case_sensitive: bool = True
    zone: str = "UTC"
    reserved: tuple[str, ...] = ()  # names that never become data columns: the rescued column
    all_text: bool = False  # every data column takes source text (no inferColumnTypes)
    ignored: frozenset[str] = frozenset()  # top-level names whose column comes from the folder name: neither data nor unknown


@dataclass(frozen=True)
class Row:
    """One record: values in column order, JSON members of the rescued column without braces, and whether the text was broken."""

    values: Sequence[Any]
    rescued: str | None = None
    broken: bool = False
    text: str = ""  # of a broken record


class UnknownFields(Exception):
    """A record has fields that the schema does not know; `blob` is the unknown part of the record as JSON."""

    def __init__(self, blob: str) -> None:
        super().__init__(blob)
        self.blob = blob


class NeedsSource(Exception):
    """A nested value must be kept as its source text, and the tree was built without."""


class RowReader:
    """Converts lines into rows of one schema.

    Args:
        fields: (name, Spark data type) of the data columns, in order.
        rules: see `RowRules`.
        corrupt_column: name of the column that takes the text of broken lines, if it is among `fields`.
    """

    def __init__(self, fields: Sequence[tuple[str, Any]], rules: RowRules, corrupt_column: str | None = None) -> None:
        self._fields, self._rules = list(fields), rules
        self._found_unknown = False
        names = [name for name, _ in fields]
        self._corrupt = names.index(corrupt_column) if corrupt_column in names else None
        self._record = _Struct(self._fields, self, rules.ignored)

    @property
    def rules(self) -> RowRules:
        return self._rules

    def rows(self, line: bytes) -> list[Row]:
        """Rows of one line without its line end; a blank line has none. Raises UnknownFields where the rules say so."""
        text = _decode(line)
        if text is None:
            return [self._broken(line)]
        if not text.strip(" \t\n\r"):
            return []
        try:
            return self._rows_of(text)
        except BrokenText:
            if "\r" in text.strip("\r"):
                return [row for part in line.split(b"\r") for row in self.rows(part)]
            return [self._broken(line)]

    def _rows_of(self, text: str) -> list[Row]:
        if self._rules.all_text:
            return [self._row(record) for record in records_of(parse_with_source(text, depth=1))]
        try:
            return [self._row(record) for record in records_of(parse(text))]
        except NeedsSource:
            return [self._row(record) for record in records_of(parse_with_source(text))]

    def _row(self, record: Obj) -> Row:
        self._found_unknown = False
        values, members = self._record.convert(record)
        if self._found_unknown:
            self._found_unknown = False
            raise UnknownFields(dump(self.unknown_part(record)))
        return Row(values, members if self._rules.rescue else None)

    def _broken(self, line: bytes) -> Row:
        text = _decode(line)
        readable = line.decode("utf-8", errors="replace") if text is None else text
        values: list[Any] = [None] * len(self._fields)
        if self._corrupt is not None:
            values[self._corrupt] = readable
            return Row(values, None, broken=True, text=readable)
        members = f'"_corrupt_record":{_quote(readable)}'
        if text is None:
            members += f',"_corrupt_record_base64":"{base64.b64encode(line).decode()}"'
        return Row(values, members if self._rules.rescue else None, broken=True, text=readable)

    def unknown_part(self, record: Obj) -> Obj:
        """The fields of a record that the schema does not know, with their nesting."""
        return self._record.unknown_part(record)

    def note_unknown(self) -> None:
        self._found_unknown = True


class _Struct:
    """An object of known fields: top level or nested."""

    def __init__(self, fields: Sequence[tuple[str, Any]], reader: RowReader, ignored: frozenset[str] = frozenset()) -> None:
        self._reader, self._rules = reader, reader.rules
        self._ignored = {name.lower() for name in ignored}
        self._width = len(fields)
        self._index: dict[str, tuple[int, Converter]] = {}
        self._children: dict[str, Any] = {}
        self._lower = {name.lower() for name, _ in fields} | {name.lower() for name in self._rules.reserved}
        for at, (name, data_type) in enumerate(fields):
            key = name if self._rules.case_sensitive else name.lower()
            self._index[key] = (at, _converter(data_type, reader))
            self._children[key] = data_type

    def convert(self, record: Obj) -> tuple[list[Any], str | None]:
        """Values in field order, and the rescued members (`"k":v,…`) or None."""
        values: list[Any] = [None] * self._width
        rescued: list[tuple[str, str]] = []
        index, fold = self._index, not self._rules.case_sensitive
        last = self._last_positions(record) if fold or len(dict(record)) < len(record) else None
        for position, (key, value) in enumerate(record):
            hit = index.get(key.lower() if fold else key)
            if hit is None:
                self._unknown(key, value, rescued)
                continue
            at, convert = hit
            if last is not None and last[at] != position:
                rescued.append((key, dump(value)))
                continue
            values[at], part = convert(value)
            if part is not None:
                rescued.append((key, part))
        return values, _members(rescued) if rescued else None

    def _last_positions(self, record: Obj) -> dict[int, int]:
        names = ((key if self._rules.case_sensitive else key.lower()) for key, _ in record)
        return {self._index[name][0]: position for position, name in enumerate(names) if name in self._index}

    def _unknown(self, key: str, value: Node, rescued: list[tuple[str, str]]) -> None:
        if self._ignored and key.lower() in self._ignored:
            return
        variant = key.lower() in self._lower
        if self._rules.unknown == RAISE and not variant and is_column(key, value, self._rules.all_text):
            self._reader.note_unknown()
        elif self._rules.rescue:
            rescued.append((key, dump(value)))

    def unknown_part(self, record: Obj) -> Obj:
        """The unknown fields of a record, with the nesting kept."""
        part = Obj()
        for key, value in record:
            name = key if self._rules.case_sensitive else key.lower()
            if name in self._index:
                inner = _unknown_inside(value, self._children[name], self._reader)
                if inner is not None:
                    part.append((key, inner))
            elif key.lower() not in self._lower and key.lower() not in self._ignored and is_column(key, value, self._rules.all_text):
                part.append((key, value))
        return part


def _members(rescued: list[tuple[str, str]]) -> str:
    together: dict[str, list[str]] = {}
    for key, text in rescued:
        together.setdefault(key, []).append(text)
    return ",".join(f"{_quote(key)}:{texts[0] if len(texts) == 1 else '[' + ','.join(texts) + ']'}" for key, texts in together.items())


def _unknown_inside(value: Node, data_type: Any, reader: RowReader) -> Node | None:
    kind = data_type.typeName()
    if kind == "struct" and isinstance(value, Obj):
        part = _Struct([(f.name, f.dataType) for f in data_type.fields], reader).unknown_part(value)
        return part if part else None
    if kind == "array" and isinstance(value, Arr | list) and not isinstance(value, Obj):
        parts = [p for p in (_unknown_inside(item, data_type.elementType, reader) for item in value) if p is not None]
        return Arr(parts) if parts else None
    return None


def _converter(data_type: Any, reader: RowReader) -> Converter:
    """The conversion of one type. Raises KeyError for a type that JSON cannot be read as here."""
    kind = data_type.typeName()
    if kind == "struct":
        return _struct_converter(data_type, reader)
    if kind == "array":
        return _array_converter(_converter(data_type.elementType, reader))
    if kind == "map":
        inner = RowReader([], replace(reader.rules, unknown=RESCUE if reader.rules.rescue else IGNORE))
        return _map_converter(_converter(data_type.valueType, inner))  # a map holds data: nothing inside makes the schema grow
    if kind.startswith("decimal"):
        return _scalar(lambda value: _decimal(value, data_type.precision, data_type.scale))
    if kind == "timestamp":
        return _scalar(lambda value: _timestamp(value, reader.rules.zone))
    if kind in ("string", "char", "varchar"):
        return _text
    return _scalar(_SCALARS[kind])


def supported(data_type: Any) -> bool:
    """Whether values of this type can be read from JSON here."""
    kind = data_type.typeName()
    if kind == "struct":
        return all(supported(f.dataType) for f in data_type.fields)
    if kind == "array":
        return supported(data_type.elementType)
    if kind == "map":
        return bool(data_type.keyType.typeName() == "string" and supported(data_type.valueType))
    return kind in _SCALARS or kind in ("string", "char", "varchar", "timestamp") or kind.startswith("decimal")


def readable(data_type: Any) -> Any:
    """What a stream of JSON makes of a declared type: everything may be NULL, CHAR and VARCHAR are STRING, as in Spark."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

    if isinstance(data_type, StructType):
        return StructType([StructField(f.name, readable(f.dataType), True, f.metadata) for f in data_type.fields])
    if isinstance(data_type, ArrayType):
        return ArrayType(readable(data_type.elementType), True)
    if isinstance(data_type, MapType):
        return MapType(data_type.keyType, readable(data_type.valueType), True)
    return StringType() if data_type.typeName() in ("char", "varchar") else data_type


def _scalar(read: Callable[[Node], Any]) -> Converter:
    def convert(value: Node) -> tuple[Any, str | None]:
        if value is None:
            return None, None
        typed = read(value)
        return (typed, None) if typed is not None else (None, dump(value))

    return convert


def _text(value: Node) -> tuple[Any, str | None]:
    if value is None or type(value) is str:
        return value, None
    if isinstance(value, str):
        return str(value), None
    if value is True or value is False:
        return ("true" if value else "false"), None
    raw = source_text(value)
    if raw is None:
        raise NeedsSource
    return raw, None


def _struct_converter(data_type: Any, reader: RowReader) -> Converter:
    fields = _Struct([(f.name, f.dataType) for f in data_type.fields], reader)

    def convert(value: Node) -> tuple[Any, str | None]:
        if value is None:
            return None, None
        if not isinstance(value, Obj):
            return None, dump(value)
        values, members = fields.convert(value)
        return tuple(values), None if members is None else "{" + members + "}"

    return convert


def _array_converter(element: Converter) -> Converter:
    def convert(value: Node) -> tuple[Any, str | None]:
        if value is None:
            return None, None
        if isinstance(value, Obj) or not isinstance(value, list):
            return None, dump(value)
        pairs = [element(item) for item in value]
        whole = any(part is not None for _, part in pairs)
        return [typed for typed, _ in pairs], dump(value) if whole else None

    return convert


def _map_converter(element: Converter) -> Converter:
    def convert(value: Node) -> tuple[Any, str | None]:
        if value is None:
            return None, None
        if not isinstance(value, Obj):
            return None, dump(value)
        entries: dict[str, Any] = {}
        rescued: list[tuple[str, str]] = []
        last = dict(value)
        for key, item in value:
            if key in entries or item is not last[key]:
                rescued.append((key, dump(item)))
                continue
            entries[key], part = element(item)
            if part is not None:
                rescued.append((key, part))
        return list(entries.items()), "{" + _members(rescued) + "}" if rescued else None

    return convert


_INTEGER = re.compile(r"-?\d{1,19}")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_SPECIAL = {"NaN": math.nan, "INF": math.inf, "Infinity": math.inf}
_SPECIAL |= {"+INF": math.inf, "+Infinity": math.inf, "-INF": -math.inf, "-Infinity": -math.inf}
_MAX_SECONDS = 9_223_372_036_854


def _integer(bits: int) -> Callable[[Node], int | None]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def read(value: Node) -> int | None:
        if isinstance(value, Num) and _INTEGER.fullmatch(value):
            number = int(value)
            return number if low <= number <= high else None
        return None

    return read


def _double(value: Node) -> float | None:
    if isinstance(value, Num):
        number = float(value)
        return None if math.isinf(number) and value[-1].isdigit() else number
    return _SPECIAL.get(value) if isinstance(value, str) else None


def _float(value: Node) -> float | None:
    number = _double(value)
    if number is None or math.isinf(number) or math.isnan(number):
        return number
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return None


def _decimal(value: Node, precision: int, scale: int) -> Decimal | None:
    if not isinstance(value, str) or not _DECIMAL.fullmatch(value):
        return None
    try:
        number = Decimal(value)
        if number and number.adjusted() >= precision - scale:
            return None
        fitted = number.quantize(Decimal(1).scaleb(-scale)) if abs(number.adjusted()) < 60 else number
    except InvalidOperation:
        return None
    return fitted if fitted == number and -int(fitted.as_tuple().exponent) == scale else None


def _timestamp(value: Node, zone: str) -> int | None:
    if isinstance(value, Num):
        return int(value) * 1_000_000 if _INTEGER.fullmatch(value) and abs(int(value)) <= _MAX_SECONDS else None
    return _in_int64(timestamp_micros(value, zone)) if isinstance(value, str) else None


def _in_int64(micros: int | None) -> int | None:
    return micros if micros is not None and -(1 << 63) <= micros < 1 << 63 else None


def _plain_text(read: Callable[[str], int | None]) -> Callable[[Node], int | None]:
    return lambda value: read(value) if type(value) is str else None


def _bytes(value: Node) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True) if type(value) is str else None
    except (binascii.Error, ValueError):
        return None


_SCALARS: Mapping[str, Callable[[Node], Any]] = {
    "byte": _integer(8),
    "tinyint": _integer(8),
    "short": _integer(16),
    "smallint": _integer(16),
    "integer": _integer(32),
    "int": _integer(32),
    "long": _integer(64),
    "bigint": _integer(64),
    "double": _double,
    "float": _float,
    "boolean": lambda value: value if value is True or value is False else None,
    "date": _plain_text(date_days),
    "timestamp_ntz": _plain_text(timestamp_ntz_micros),
    "binary": _bytes,
}


def _decode(line: bytes) -> str | None:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
