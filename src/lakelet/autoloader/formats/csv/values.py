"""Texts of CSV values as typed values, one at a time: the exact meaning (FF-16, FS-32). `csv.columns` does so by column.

As in Spark's CSV reader: no blanks around integers, dates in the strict form of a pattern that is given, thousands separators are left out
of decimals, which are rounded to their scale, and a number beyond DOUBLE is infinite. Of our own: a number that a DECIMAL takes only
rounded is a mismatch where a rescued column takes its text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from lakelet.autoloader.formats.csv.rules import CsvRules
from lakelet.autoloader.formats.csv.split import BLANKS
from lakelet.autoloader.formats.values import as_float, decimal_of
from lakelet.autoloader.types.java_patterns import DATE, TIMESTAMP, TIMESTAMP_NTZ, compile_pattern
from lakelet.autoloader.types.timestamps import date_days, timestamp_micros, timestamp_ntz_micros

Read = Callable[[str], Any]
BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
TEXTS = ("string", "char", "varchar")
_INTEGER = re.compile(r"[+-]?0*(\d{1,19})", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def supported(data_type: Any) -> bool:
    """Whether a column of this Spark type can be read from CSV."""
    name = data_type.typeName()
    others = ("double", "float", "boolean", "date", "timestamp", "timestamp_ntz", "binary")
    return name in (*BITS, *TEXTS, *others) or name.startswith("decimal")


def reader_of(data_type: Any, rules: CsvRules) -> Read:
    """The function from a text to a value for pyarrow; it returns None for a text that does not fit."""
    name = data_type.typeName()
    if name in BITS:
        return _integer(BITS[name])
    if name.startswith("decimal"):
        return lambda text: decimal_of(text.replace(",", ""), data_type.precision, data_type.scale, rounds=rules.rounds)
    if name in ("double", "float"):
        number = _double(rules)
        return number if name == "double" else lambda text: as_float(number(text))
    if name == "boolean":
        return lambda text: {"true": True, "false": False}.get(text.lower())
    if name == "date":
        return date_reader(rules)
    if name in ("timestamp", "timestamp_ntz"):
        return timestamp_reader(rules) if name == "timestamp" else ntz_reader(rules)
    return str.encode if name == "binary" else str


def _integer(bits: int) -> Read:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def read(text: str) -> int | None:
        if not _INTEGER.fullmatch(text):
            return None
        number = int(text)
        return number if low <= number <= high else None

    return read


def _double(rules: CsvRules) -> Read:
    named = {"NaN": math.nan, "+NaN": math.nan, "-NaN": math.nan}
    named |= {"Infinity": math.inf, "+Infinity": math.inf, "-Infinity": -math.inf}
    named |= {rules.nan: math.nan, rules.infinity: math.inf, rules.minus_infinity: -math.inf}

    def read(text: str) -> float | None:
        if text in named:
            return named[text]
        bare = text.strip(BLANKS)
        if not _DOUBLE.fullmatch(bare):
            return named.get(bare) if bare in ("NaN", "Infinity", "-Infinity") else None
        return float(bare.rstrip("fFdD"))

    return read


def date_reader(rules: CsvRules) -> Read:
    """Text → days. Without a pattern: what CAST takes, as Spark's reader does after yyyy-MM-dd."""
    return date_days if rules.date_format is None else compile_pattern(rules.date_format, rules.zone, DATE)


def inferred_date_reader(rules: CsvRules) -> Read:
    """As `date_reader`, for texts whose type is to be found: without a pattern only yyyy-MM-dd is a date."""
    return _strict_date if rules.date_format is None else date_reader(rules)


def _strict_date(text: str) -> int | None:
    return date_days(text) if _DATE.fullmatch(text) else None


def timestamp_reader(rules: CsvRules) -> Read:
    """Text → microseconds since 1970 UTC."""
    if rules.timestamp_format is not None:
        return compile_pattern(rules.timestamp_format, rules.zone, TIMESTAMP)
    return lambda text: timestamp_micros(text, rules.zone)


def ntz_reader(rules: CsvRules) -> Read:
    """Text → local microseconds."""
    if rules.ntz_format is not None:
        return compile_pattern(rules.ntz_format, rules.zone, TIMESTAMP_NTZ)
    return timestamp_ntz_micros
