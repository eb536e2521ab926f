"""Casts, explicit and implied, in DuckDB's words.

Where only some values are cast alike, the text raises an error for the others: a query that fails in DuckDB is asked of Spark.
"""

from __future__ import annotations

import re
from datetime import date, datetime

from lakelet.inspection.duck.refusal import NotSame
from lakelet.inspection.duck.spark_types import DOUBLE, INTEGER_DIGITS, VOID, Type, as_decimal, common, duck_name
from lakelet.inspection.duck.values import Value

EXACT_DIGITS = 15
"""Number of decimal digits that a double holds without loss."""
_ONLY_SPARK = "error('a value that is left to Spark')"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?")
_TEXTS = {  # what a text must look like to be cast alike
    "date": _DATE.pattern,
    "timestamp": _TIMESTAMP.pattern,
    "timestamp_ntz": _TIMESTAMP.pattern,
    "double": r"-?[0-9]{1,15}(\.[0-9]{1,15})?",
    **dict.fromkeys(INTEGER_DIGITS, "-?[0-9]{1,19}"),
}


def guarded(sql: str, same: str) -> str:
    """The text `sql`, which counts only where the condition `same` is not false."""
    return f"(CASE WHEN NOT ({same}) THEN {_ONLY_SPARK} ELSE {sql} END)"


def plain_cast(value: Value, to: Type) -> str:
    return value.sql if value.type == to else f"CAST({value.sql} AS {duck_name(to)})"


def widened(value: Value, to: Type) -> str:
    """The value in a type that holds all its values, as `common` finds it. Raises NotSame where a cast is not known to be the same."""
    if value.type == to:
        return value.sql
    if value.type != VOID and common(value.type, to) != to:
        raise NotSame(f"a value of the type {value.type} meets one of the type {to}")
    if to == DOUBLE and value.type.kind == "decimal" and value.type.precision > EXACT_DIGITS:
        raise NotSame(f"a {value.type} becomes a double")
    return plain_cast(value, to)


def literal_as(value: Value, to: Type) -> Value:
    """A text literal that is compared with a date or timestamp, as one. Raises NotSame for other texts and types."""
    text = value.constant
    if value.type.kind == "string" and text is not None and not text.startswith("0000"):
        try:
            if to.kind == "date" and _DATE.fullmatch(text):
                return Value(f"DATE '{date.fromisoformat(text)}'", to, None)
            if to.kind in ("timestamp", "timestamp_ntz") and (_DATE.fullmatch(text) or _TIMESTAMP.fullmatch(text)):
                fraction = text.partition(".")[2]
                moment = datetime.fromisoformat(text + "0" * (6 - len(fraction)) if fraction else text)
                return Value(f"TIMESTAMP '{moment}'", to, None)
        except ValueError:
            pass
    raise NotSame(f"a text stands for a value of the type {to}")


def cast(value: Value, to: Type) -> str:
    """CAST as Spark does it in ANSI mode. Raises NotSame for a pair of types that is not known to be the same."""
    source = value.type
    if source == to:
        return value.sql
    if source == VOID:
        return plain_cast(value, to)
    if source.is_integer and (to.is_integer or to.kind == "decimal"):
        return plain_cast(value, to)
    if source.is_integer and to == DOUBLE:
        return plain_cast(value, to)
    if source.kind == "decimal" and (to == DOUBLE or (to.kind == "decimal" and _holds(to, source))):
        return widened(value, to)
    if source.kind == "decimal" and to.kind == "decimal":
        return plain_cast(value, to)
    if source == DOUBLE and to.is_integer:
        return f"CAST(trunc({value.sql}) AS {duck_name(to)})"
    if source.kind == "boolean" and to.is_integer:
        return plain_cast(value, to)
    if (source.kind, to.kind) in (("date", "timestamp"), ("timestamp", "date"), ("date", "timestamp_ntz"), ("timestamp_ntz", "date")):
        return plain_cast(value, to)
    if to.kind == "string":
        return _to_text(value)
    if source.kind == "string" and to.kind in _TEXTS:
        return _from_text(value, to)
    raise NotSame(f"a cast from {source} to {to}")


def _holds(to: Type, source: Type) -> bool:
    one = as_decimal(source)
    return to.scale >= one.scale and to.precision - to.scale >= one.precision - one.scale


def _to_text(value: Value) -> str:
    source, text = value.type, f"CAST({value.sql} AS VARCHAR)"
    if source.is_integer or source.kind == "boolean" or (source.kind == "decimal" and source.scale <= 6):
        return text
    if source.kind in ("date", "timestamp", "timestamp_ntz"):
        return guarded(text, f"year({value.sql}) BETWEEN 1 AND 9999")
    raise NotSame(f"a cast from {source} to string")


def _from_text(value: Value, to: Type) -> str:
    """A text without blanks around it, in the plain form of its type."""
    same = f"regexp_full_match({value.sql}, '{_TEXTS[to.kind]}')"
    if to.kind in ("date", "timestamp", "timestamp_ntz"):
        same += f" AND {value.sql} NOT LIKE '0000%'"
    return guarded(f"CAST({value.sql} AS {duck_name(to)})", same)


def counted_double(total: str, magnitude: str) -> str:
    """A sum of integers as a double, where all partial sums are exact doubles whatever their order."""
    return guarded(f"CAST({total} AS DOUBLE)", f"{magnitude} <= 9007199254740992")
