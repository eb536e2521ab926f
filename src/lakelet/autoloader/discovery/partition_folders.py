"""Columns from folder names: `base/event=click/date=2021-04-01/f.json` (FS-18 to FS-20)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from lakelet.autoloader.discovery.files import files_for
from lakelet.autoloader.discovery.path_patterns import fixed_folder
from lakelet.autoloader.text_values import date_days, timestamp_micros, timestamp_ntz_micros

_NARROWER = {"bigint": ("int",), "decimal": ("int", "bigint"), "double": ("int", "bigint", "decimal")}
_NARROWER |= {"timestamp": ("date",), "timestamp_ntz": ("date",)}
_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"[+-]?\d{1,19}")
_FRACTION = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_TIMESTAMP = re.compile(r"\d{4}-\d{1,2}-\d{1,2}[ T]\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d+)?)?.*")


def source_root(path: str) -> str:
    """The folder below which folder names count: the source folder, or of a pattern what stands before the first wildcard."""
    _, inside = files_for(path)
    return fixed_folder(inside)


def folder_values(path: str, root: str) -> dict[str, str | None]:
    """Name → decoded text of the segments `name=value` between `root` and the file."""
    below = path.removeprefix(root)
    found: dict[str, str | None] = {}
    for segment in below.split("/")[:-1]:
        name, equals, value = segment.partition("=")
        if equals and name:
            text = unquote(value)
            found[unquote(name)] = None if text == _NULL else text
    return found


def folder_type(values: Iterable[str], zone: str, *, local: bool = False) -> Any:
    """The Spark type of a partition column by Spark's rules for folder names: int, bigint, decimal, double, date, timestamp or string.

    `local`: timestamps are TIMESTAMP_NTZ.
    """
    from pyspark.sql import types as t

    found = {_value_type(value, zone, local) for value in values}
    if not found:
        return t.StringType()
    if len(found) == 1:
        return _type_of_word(found.pop())
    for wide, narrow in _NARROWER.items():
        if wide in found and found <= {wide, *narrow}:
            return _type_of_word(wide)
    return t.StringType()


def _value_type(value: str, zone: str, local: bool) -> str:
    if _INTEGER.fullmatch(value):
        number = int(value)
        return "int" if -(1 << 31) <= number < 1 << 31 else "bigint" if -(1 << 63) <= number < 1 << 63 else "decimal"
    if value.lstrip("+-").isdigit() and len(value.lstrip("+-")) <= 38:
        return "decimal"
    if _FRACTION.fullmatch(value):
        return "double"
    if _DATE.fullmatch(value) and date_days(value) is not None:
        return "date"
    if _TIMESTAMP.fullmatch(value) and timestamp_micros(value, zone) is not None:
        return "timestamp_ntz" if local else "timestamp"
    return "string"


def _type_of_word(word: str) -> Any:
    from pyspark.sql import types as t

    if word == "decimal":
        return t.DecimalType(38, 0)
    kinds = {
        "int": t.IntegerType,
        "bigint": t.LongType,
        "double": t.DoubleType,
        "date": t.DateType,
        "timestamp": t.TimestampType,
        "timestamp_ntz": t.TimestampNTZType,
        "string": t.StringType,
    }
    return kinds[word]()


def folder_array(value: Any, arrow: Any, count: int) -> Any:
    """`count` times a value of `folder_value`."""
    return pa.nulls(count, arrow) if value is None else pa.repeat(pa.scalar(value, arrow), count)


def folder_value(text: str, kind: Any, zone: str) -> Any:
    """The text of a folder name in a Spark type: a Python value for pyarrow, None when it does not fit."""
    name = kind.typeName()
    if name in ("string", "char", "varchar"):
        return text
    if name in ("integer", "long", "short", "byte"):
        bits = {"integer": 32, "long": 64, "short": 16, "byte": 8}[name]
        number = int(text) if _INTEGER.fullmatch(text) else None
        return number if number is not None and -(1 << (bits - 1)) <= number < 1 << (bits - 1) else None
    if name in ("double", "float"):
        return float(text) if _FRACTION.fullmatch(text) else None
    if name.startswith("decimal"):
        return _decimal_value(text, kind) if _FRACTION.fullmatch(text) else None
    if name == "boolean":
        return {"true": True, "false": False}.get(text.lower())
    if name == "date":
        return date_days(text)
    if name == "timestamp_ntz":
        return timestamp_ntz_micros(text)
    return timestamp_micros(text, zone) if name == "timestamp" else None


def _decimal_value(text: str, kind: Any) -> Decimal | None:
    number = Decimal(text)
    fitted = number.quantize(Decimal(1).scaleb(-kind.scale)) if number.adjusted() < 60 else number
    return fitted if fitted == number and number.adjusted() < kind.precision - kind.scale else None
