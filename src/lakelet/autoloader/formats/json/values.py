"""Scalar JSON values as values of a Spark type; None for what does not fit (FF-8).

A literal that overflows DOUBLE, or does not fit a DECIMAL without rounding, is a mismatch, not a changed value.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from lakelet.autoloader.formats.json.syntax_tree import Node, Num
from lakelet.autoloader.text_values import (
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    as_float,
    compile_pattern,
    date_days,
    decimal_of,
    timestamp_micros,
    timestamp_ntz_micros,
)

Read = Callable[[Node], Any]


@dataclass(frozen=True)
class DatetimeFormats:
    """How texts are parsed as dates and timestamps: the zone of texts without one, and Java patterns (None: the rules of Spark)."""

    zone: str = "UTC"
    timestamp: str | None = None
    timestamp_ntz: str | None = None
    date: str | None = None

    @classmethod
    def of(cls, zone: str, options: Mapping[str, Any]) -> DatetimeFormats:
        """Return the formats that a source's options set."""
        return cls(zone, options["timestampformat"], options["timestampntzformat"], options["dateformat"])

    def timestamps(self) -> Callable[[str], int | None]:
        """Text → microseconds since 1970-01-01 UTC."""
        if self.timestamp is not None:
            return compile_pattern(self.timestamp, self.zone, TIMESTAMP)
        return lambda text: timestamp_micros(text, self.zone)

    def local_timestamps(self) -> Callable[[str], int | None]:
        """Text → local microseconds."""
        return timestamp_ntz_micros if self.timestamp_ntz is None else compile_pattern(self.timestamp_ntz, self.zone, TIMESTAMP_NTZ)

    def dates(self) -> Callable[[str], int | None]:
        """Text → days since 1970-01-01."""
        return date_days if self.date is None else compile_pattern(self.date, self.zone, DATE)


def scalar(data_type: Any, datetime_formats: DatetimeFormats) -> Read:
    """The reading of one scalar type. Raises KeyError for a type that JSON cannot be read as here."""
    kind = data_type.typeName()
    if kind.startswith("decimal"):
        return lambda value: _decimal_value(value, data_type.precision, data_type.scale)
    if kind == "timestamp":
        return _timestamp_reader(datetime_formats.timestamps())
    if kind == "timestamp_ntz":
        return _plain_text(datetime_formats.local_timestamps())
    if kind == "date":
        return _plain_text(datetime_formats.dates())
    return _SCALARS[kind]


def supported(data_type: Any, *, top: bool = True) -> bool:
    """Whether values of this type can be read from JSON here; VARIANT only as the type of a whole column (`top`)."""
    kind = data_type.typeName()
    if kind == "struct":
        return all(supported(f.dataType, top=False) for f in data_type.fields)
    if kind == "array":
        return supported(data_type.elementType, top=False)
    if kind == "map":
        key = data_type.keyType.typeName()
        if key in ("struct", "array", "map"):
            return False
        return supported(data_type.keyType, top=False) and supported(data_type.valueType, top=False)
    if kind == "variant":
        return top
    return kind in _SCALARS or kind in _OTHERS or kind.startswith("decimal")


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


_INTEGER = re.compile(r"-?\d{1,19}")
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf}
_SPECIAL |= {"+INF": math.inf, "+Infinity": math.inf, "-INF": -math.inf, "-Infinity": -math.inf}
_BLANKS = re.compile(r"[\x00-\x20]+")
_BASE64 = re.compile(r"(?:[\x00-\x20]*[A-Za-z0-9+/]{2}(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==))*[\x00-\x20]*")
_PADDED = re.compile("[^=]+=*")
_MAX_SECONDS = 9_223_372_036_854


def _integer_reader(bits: int) -> Callable[[Node], int | None]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def read(value: Node) -> int | None:
        if isinstance(value, Num) and _INTEGER.fullmatch(value):
            number = int(value)
            return number if low <= number <= high else None
        return None

    return read


def _double_value(value: Node) -> float | None:
    if isinstance(value, Num):
        return float(value)
    return _SPECIAL.get(value) if isinstance(value, str) else None


def _float_value(value: Node) -> float | None:
    return as_float(_double_value(value))


def _decimal_value(value: Node, precision: int, scale: int) -> Decimal | None:
    return decimal_of(value.replace(",", ""), precision, scale) if isinstance(value, str) else None


def rounded_decimal(data_type: Any) -> Callable[[Node], Decimal | None]:
    """The reading of a number whose digits beyond the scale of a DECIMAL are rounded."""
    precision, scale = data_type.precision, data_type.scale
    return lambda value: decimal_of(value.replace(",", ""), precision, scale, rounds=True) if isinstance(value, str) else None


def _timestamp_reader(parse: Callable[[str], int | None]) -> Read:
    def read(value: Node) -> int | None:
        if isinstance(value, Num):
            return int(value) * 1_000_000 if _INTEGER.fullmatch(value) and abs(int(value)) <= _MAX_SECONDS else None
        return parse(value) if isinstance(value, str) else None

    return read


def _plain_text(read: Callable[[str], int | None]) -> Read:
    return lambda value: read(value) if type(value) is str else None


def _binary_value(value: Node) -> bytes | None:
    """The bytes of a text that is base64 with padding (FF-47); as in Spark's parser, blanks may stand between its groups of four."""
    if type(value) is not str or not _BASE64.fullmatch(value):
        return None
    return b"".join(map(base64.b64decode, _PADDED.findall(_BLANKS.sub("", value))))


_SCALARS: Mapping[str, Callable[[Node], Any]] = {
    "byte": _integer_reader(8),
    "tinyint": _integer_reader(8),
    "short": _integer_reader(16),
    "smallint": _integer_reader(16),
    "integer": _integer_reader(32),
    "int": _integer_reader(32),
    "long": _integer_reader(64),
    "bigint": _integer_reader(64),
    "double": _double_value,
    "float": _float_value,
    "boolean": lambda value: value if value is True or value is False else None,
    "binary": _binary_value,
}
_OTHERS = frozenset({"string", "char", "varchar", "timestamp", "timestamp_ntz", "date"})
