"""Columns of CSV texts as typed columns (FF-4, FF-16): what pyarrow casts as `csv.values` reads it; other texts are left to that."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.formats.csv.rules import CsvRules
from lakelet.autoloader.formats.csv.values import BITS, TEXTS, reader_of
from lakelet.autoloader.types.timestamps import timestamp_column

_INTEGER = r"^-?\d{1,18}$"
_DOUBLE = r"^-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?$"


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
            return self._integers(texts)
        if name.startswith("decimal"):
            whole, scale = self._type.precision - self._type.scale, self._type.scale
            return self._numbers(texts, rf"^-?\d{{1,{max(whole, 1)}}}(?:\.\d{{0,{scale}}})?$" if whole else rf"^-?0?\.\d{{0,{scale}}}$")
        if name in ("double", "float"):
            found, bad = self._numbers(texts, _DOUBLE)
            return found, _or(bad, _infinite(found))
        if name == "binary":
            return pc.cast(texts, self._arrow), None
        if name == "boolean" and (pc.min(pc.binary_length(texts)).as_py() or 4) < 4:
            return self._distinct(texts)  # pyarrow takes 0 and 1 too
        if name == "timestamp" and self._rules.timestamp_format is None:
            return self._timestamps(texts)
        plain = name == "boolean" or (name == "date" and self._rules.date_format in (None, "yyyy-MM-dd"))
        try:
            return (pc.cast(texts, self._arrow), None) if plain else self._distinct(texts)
        except pa.ArrowInvalid:
            return self._distinct(texts)

    def _integers(self, texts: Any) -> tuple[Any, Any | None]:
        if not _has_x(texts):  # pyarrow takes hexadecimal numbers too
            try:
                return pc.cast(texts, self._arrow), None
            except pa.ArrowInvalid:
                pass
        fits = pc.match_substring_regex(texts, _INTEGER)
        numbers = pc.cast(_only(texts, fits), pa.int64())
        bits = BITS[self._name]
        inside = pc.and_(pc.greater_equal(numbers, -(1 << (bits - 1))), pc.less_equal(numbers, (1 << (bits - 1)) - 1))
        inside = pc.fill_null(inside, False)
        typed = pc.cast(pc.if_else(inside, numbers, pa.scalar(None, pa.int64())), self._arrow)
        return typed, _misfits(texts, typed)

    def _numbers(self, texts: Any, pattern: str) -> tuple[Any, Any | None]:
        kind = pa.float64() if self._name == "float" else self._arrow
        try:
            return pc.cast(pc.cast(texts, kind), self._arrow, safe=False), None
        except pa.ArrowInvalid:
            pass
        typed = pc.cast(_only(texts, pc.match_substring_regex(texts, pattern)), kind)
        return pc.cast(typed, self._arrow, safe=False), _misfits(texts, typed)

    def _timestamps(self, texts: Any) -> tuple[Any, Any | None]:
        if texts.null_count == len(texts):
            return pa.nulls(len(texts), self._arrow), None
        try:
            return timestamp_column(texts, self._rules.zone)
        except (OverflowError, pa.ArrowInvalid):
            return self._distinct(texts)

    def _distinct(self, texts: Any) -> tuple[Any, Any | None]:
        encoded = texts.dictionary_encode()
        values = pa.array([self._read(text) for text in encoded.dictionary.to_pylist()], self._arrow)
        typed = values.take(encoded.indices)
        return typed, _misfits(texts, typed)


def _has_x(texts: Any) -> bool:
    data = texts.buffers()[2]
    content = b"" if data is None else data.to_pybytes()
    return b"x" in content or b"X" in content


def _only(texts: Any, keep: Any) -> Any:
    return pc.if_else(keep, texts, pa.scalar(None, pa.string()))


def _misfits(texts: Any, typed: Any) -> Any | None:
    return pc.and_(pc.is_valid(texts), pc.is_null(typed)) if typed.null_count != texts.null_count else None


def _infinite(numbers: Any) -> Any | None:
    finite = pc.fill_null(pc.is_finite(numbers), True)
    return None if pc.all(finite).as_py() in (True, None) else pc.invert(finite)


def _or(a: Any | None, b: Any | None) -> Any | None:
    return b if a is None else a if b is None else pc.or_(a, b)


__all__ = ["ColumnReader"]
