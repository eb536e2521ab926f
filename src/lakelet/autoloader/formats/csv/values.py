"""Texts of CSV values as typed values, one at a time: the exact meaning (FF-16, FS-32). `csv.columns` does so by column.

As in Spark's CSV reader: no blanks around integers, dates in the strict form of the pattern, thousands separators are left out of decimals.
Of our own: a number that overflows DOUBLE or does not fit a DECIMAL without rounding is a mismatch, not a changed value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from lakelet.autoloader.formats.csv.rules import CsvRules
from lakelet.autoloader.formats.csv.split import BLANKS
from lakelet.autoloader.formats.values import as_float
from lakelet.autoloader.types.java_patterns import DATE, TIMESTAMP, TIMESTAMP_NTZ, compile_pattern
from lakelet.autoloader.types.timestamps import date_days, timestamp_micros, timestamp_ntz_micros

Read = Callable[[str], Any]
BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
TEXTS = ("string", "char", "varchar")
_INTEGER = re.compile(r"[+-]?0*(\d{1,19})", re.ASCII)
_DOUBLE = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_EXACT = Context(prec=120)
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
        return lambda text: decimal_of(text, data_type.precision, data_type.scale)
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
        number = float(bare.rstrip("fFdD"))
        return None if math.isinf(number) else number

    return read


def decimal_of(text: str, precision: int, scale: int) -> Decimal | None:
    """The number with exactly this scale; None when the text is not a number or does not fit."""
    bare = text.replace(",", "")
    if not _DECIMAL.fullmatch(bare):
        return None
    try:
        number = Decimal(bare)
        if number and number.adjusted() >= precision - scale:
            return None
        fitted = number.quantize(Decimal(1).scaleb(-scale), context=_EXACT) if abs(number.adjusted()) < 60 else number
    except InvalidOperation:
        return None
    return fitted if fitted == number and -int(fitted.as_tuple().exponent) == scale else None


def date_reader(rules: CsvRules) -> Read:
    """Text → days. Without a pattern: yyyy-MM-dd, or with `preferDate` false what CAST takes."""
    if rules.date_format is not None:
        return compile_pattern(rules.date_format, rules.zone, DATE)
    return _strict_date if rules.prefer_date else date_days


def _strict_date(text: str) -> int | None:
    return date_days(text) if _DATE.fullmatch(text) else None


def timestamp_reader(rules: CsvRules) -> Read:
    """Text → microseconds since 1970 UTC."""
    if rules.timestamp_format is not None:
        return compile_pattern(rules.timestamp_format, rules.zone, TIMESTAMP)
    return lambda text: _in_int64(timestamp_micros(text, rules.zone))


def ntz_reader(rules: CsvRules) -> Read:
    """Text → local microseconds."""
    if rules.ntz_format is not None:
        return compile_pattern(rules.ntz_format, rules.zone, TIMESTAMP_NTZ)
    return lambda text: _in_int64(timestamp_ntz_micros(text))


def _in_int64(micros: int | None) -> int | None:
    return micros if micros is not None and -(1 << 63) <= micros < 1 << 63 else None
