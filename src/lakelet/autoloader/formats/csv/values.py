"""Texts of CSV values as typed values: one at a time, which is the exact meaning, and by column (FF-4, FF-16, FS-32).

As in Spark's CSV reader, integers have no blanks around them, and dates have the strict form of a pattern that is given. Thousands
separators are left out of decimals, which are rounded to their scale, and a number beyond DOUBLE is infinite. Lakelet's own rule: a number
that a DECIMAL takes only rounded is a mismatch where a rescued column takes its text.

`ColumnReader` casts with pyarrow what pyarrow reads in the same way, and reports the other texts, which are read one at a time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.formats.csv.rules import BLANKS, CsvRules
from lakelet.autoloader.text_values import (
    DATE,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    as_float,
    compile_pattern,
    date_days,
    decimal_of,
    timestamp_column,
    timestamp_micros,
    timestamp_ntz_micros,
)

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
        return _integer_reader(BITS[name])
    if name.startswith("decimal"):
        return lambda text: decimal_of(text.replace(",", ""), data_type.precision, data_type.scale, rounds=rules.rounds)
    if name in ("double", "float"):
        number = _double_reader(rules)
        return number if name == "double" else lambda text: as_float(number(text))
    if name == "boolean":
        return lambda text: {"true": True, "false": False}.get(text.lower())
    if name == "date":
        return date_reader(rules)
    if name in ("timestamp", "timestamp_ntz"):
        return timestamp_reader(rules) if name == "timestamp" else ntz_reader(rules)
    return str.encode if name == "binary" else str


def _integer_reader(bits: int) -> Read:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def read(text: str) -> int | None:
        if not _INTEGER.fullmatch(text):
            return None
        number = int(text)
        return number if low <= number <= high else None

    return read


def _double_reader(rules: CsvRules) -> Read:
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
    """As `date_reader`, for inference: without a pattern only yyyy-MM-dd is a date."""
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


_PLAIN_INTEGER = r"^-?\d{1,18}$"
_PLAIN_DOUBLE = r"^-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?$"


class ColumnReader:
    """One column of a schema."""

    def __init__(self, data_type: Any, arrow: Any, rules: CsvRules) -> None:
        self._name, self._arrow, self._rules, self._type = data_type.typeName(), arrow, rules, data_type
        self._read = lru_cache(maxsize=65536)(reader_of(data_type, rules))

    def convert(self, texts: Any) -> tuple[Any, Any | None]:
        """(typed array, mask of texts that may not fit; None when all fit)."""
        name = self._name
        if name in TEXTS:
            return texts, None
        if name in BITS:
            return self._integer_column(texts)
        if name.startswith("decimal"):
            whole, scale = self._type.precision - self._type.scale, self._type.scale
            return self._number_column(
                texts, rf"^-?\d{{1,{max(whole, 1)}}}(?:\.\d{{0,{scale}}})?$" if whole else rf"^-?0?\.\d{{0,{scale}}}$"
            )
        if name in ("double", "float"):
            found, bad = self._number_column(texts, _PLAIN_DOUBLE)
            return found, _either_mask(bad, _infinite_mask(found))
        if name == "binary":
            return pc.cast(texts, self._arrow), None
        if name == "boolean" and (pc.min(pc.binary_length(texts)).as_py() or 4) < 4:
            return self._column_by_distinct_texts(texts)  # pyarrow takes 0 and 1 too
        if name == "timestamp" and self._rules.timestamp_format is None:
            return self._timestamp_column(texts)
        plain = name == "boolean" or (name == "date" and self._rules.date_format in (None, "yyyy-MM-dd"))
        try:
            return (pc.cast(texts, self._arrow), None) if plain else self._column_by_distinct_texts(texts)
        except pa.ArrowInvalid:
            return self._column_by_distinct_texts(texts)

    def _integer_column(self, texts: Any) -> tuple[Any, Any | None]:
        if not _has_x(texts):  # pyarrow takes hexadecimal numbers too
            try:
                return pc.cast(texts, self._arrow), None
            except pa.ArrowInvalid:
                pass
        fits = pc.match_substring_regex(texts, _PLAIN_INTEGER)
        numbers = pc.cast(_only_where(texts, fits), pa.int64())
        bits = BITS[self._name]
        inside = pc.and_(pc.greater_equal(numbers, -(1 << (bits - 1))), pc.less_equal(numbers, (1 << (bits - 1)) - 1))
        inside = pc.fill_null(inside, False)
        typed = pc.cast(pc.if_else(inside, numbers, pa.scalar(None, pa.int64())), self._arrow)
        return typed, _misfits(texts, typed)

    def _number_column(self, texts: Any, pattern: str) -> tuple[Any, Any | None]:
        kind = pa.float64() if self._name == "float" else self._arrow
        try:
            return pc.cast(pc.cast(texts, kind), self._arrow, safe=False), None
        except pa.ArrowInvalid:
            pass
        typed = pc.cast(_only_where(texts, pc.match_substring_regex(texts, pattern)), kind)
        return pc.cast(typed, self._arrow, safe=False), _misfits(texts, typed)

    def _timestamp_column(self, texts: Any) -> tuple[Any, Any | None]:
        if texts.null_count == len(texts):
            return pa.nulls(len(texts), self._arrow), None
        try:
            return timestamp_column(texts, self._rules.zone)
        except (OverflowError, pa.ArrowInvalid):
            return self._column_by_distinct_texts(texts)

    def _column_by_distinct_texts(self, texts: Any) -> tuple[Any, Any | None]:
        encoded = texts.dictionary_encode()
        values = pa.array([self._read(text) for text in encoded.dictionary.to_pylist()], self._arrow)
        typed = values.take(encoded.indices)
        return typed, _misfits(texts, typed)


def _has_x(texts: Any) -> bool:
    data = texts.buffers()[2]
    content = b"" if data is None else data.to_pybytes()
    return b"x" in content or b"X" in content


def _only_where(texts: Any, keep: Any) -> Any:
    return pc.if_else(keep, texts, pa.scalar(None, pa.string()))


def _misfits(texts: Any, typed: Any) -> Any | None:
    return pc.and_(pc.is_valid(texts), pc.is_null(typed)) if typed.null_count != texts.null_count else None


def _infinite_mask(numbers: Any) -> Any | None:
    finite = pc.fill_null(pc.is_finite(numbers), True)
    return None if pc.all(finite).as_py() in (True, None) else pc.invert(finite)


def _either_mask(a: Any | None, b: Any | None) -> Any | None:
    return b if a is None else a if b is None else pc.or_(a, b)
