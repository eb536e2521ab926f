"""Casts and arithmetic of Spark in SQL of DuckDB: typed values in, typed values out."""

from __future__ import annotations

import re
from datetime import date, datetime

from sqlglot import exp

from lakelet.inspection.duckdb.values import (
    BIGINT,
    DOUBLE,
    INTEGER_DIGITS,
    VOID,
    NotSame,
    Type,
    Value,
    as_decimal,
    bounded_decimal,
    common,
    duck_name,
)

EXACT_DIGITS = 15
"""Number of decimal digits that a double holds without loss."""
_ONLY_SPARK = "error('a value that is left to Spark')"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?")
_EXPONENT = re.compile(r"[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]{1,3}")
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
    if to == DOUBLE and value.type.kind == "decimal" and value.constant is not None:
        return f"CAST('{value.constant}' AS DOUBLE)"  # both engines find the nearest double of a text
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
    if (source.is_integer or source.kind == "float") and to == DOUBLE:
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


SIGNS: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div"}


def calculated(operator: type[exp.Expr], left: Value, right: Value) -> Value:
    """`left operator right`. Raises NotSame for types whose result is another one in DuckDB."""
    name = f"({left.name} {SIGNS[operator]} {right.name})" if left.name and right.name else None
    for kind in (left.type, right.type):
        if not (kind.is_integer or kind.kind in ("decimal", "double")):
            raise NotSame(f"{SIGNS[operator]} of a {kind}")
    if operator is exp.Div:
        return _divided(left, right, name)
    decimals = "decimal" in (left.type.kind, right.type.kind) and DOUBLE not in (left.type, right.type)
    if operator in (exp.IntDiv, exp.Mod):
        return _remainder(operator, left, right, name)
    if decimals:
        return _decimals(operator, left, right, name)
    kind = common(left.type, right.type)
    return Value(f"({widened(left, kind)} {SIGNS[operator]} {widened(right, kind)})", kind, name)


def _divided(left: Value, right: Value, name: str | None) -> Value:
    if "decimal" in (left.type.kind, right.type.kind) and DOUBLE not in (left.type, right.type):
        raise NotSame("a division of decimals")
    one, two = _double(left), _double(right)
    return Value(guarded(f"({one} / {two})", f"{two} <> 0"), DOUBLE, name)


def _double(value: Value) -> str:
    return plain_cast(value, DOUBLE) if value.type.is_integer else widened(value, DOUBLE)


def _remainder(operator: type[exp.Expr], left: Value, right: Value, name: str | None) -> Value:
    if not (left.type.is_integer and right.type.is_integer):
        raise NotSame(f"{SIGNS[operator]} of a {left.type} and a {right.type}")
    kind = BIGINT if operator is exp.IntDiv else common(left.type, right.type)
    one, two = plain_cast(left, kind), plain_cast(right, kind)
    sign = "//" if operator is exp.IntDiv else "%"
    return Value(guarded(f"({one} {sign} {two})", f"{two} <> 0"), kind, name)


def _decimals(operator: type[exp.Expr], left: Value, right: Value, name: str | None) -> Value:
    one, two = _literal_decimal(left), _literal_decimal(right)
    if operator is exp.Mul:
        kind = bounded_decimal(one.precision + two.precision + 1, one.scale + two.scale)
        product = f"({plain_cast(left, one)} * {plain_cast(right, two)})"
        return Value(f"CAST({product} AS DECIMAL({kind.precision},{kind.scale}))", kind, name)
    scale = max(one.scale, two.scale)
    kind = bounded_decimal(max(one.precision - one.scale, two.precision - two.scale) + scale + 1, scale)
    result = f"({plain_cast(left, kind)} {SIGNS[operator]} {plain_cast(right, kind)})"
    return Value(f"CAST({result} AS DECIMAL({kind.precision},{kind.scale}))", kind, name)


def _literal_decimal(value: Value) -> Type:
    """The decimal type of an operand; a literal integer has as many digits as it is written with."""
    if value.constant is not None and value.type.is_integer:
        return Type("decimal", len(value.constant.lstrip("-")), 0)
    return as_decimal(value.type)


def negated(value: Value) -> Value:
    if not (value.type.is_integer or value.type.kind in ("decimal", "double")):
        raise NotSame(f"- of a {value.type}")
    return Value(f"(- {value.sql})", value.type, f"(- {value.name})" if value.name else None)


def number(text: str, negative: bool = False) -> Value:
    """A literal number: INT or BIGINT by its size, DECIMAL with a point, DOUBLE with an exponent."""
    shown = ("-" if negative else "") + text
    if text.isdecimal():
        whole = int(shown)
        if not -(2**63) <= whole < 2**63:
            raise NotSame(f"the number {shown}")
        kind = Type("int") if -(2**31) <= whole < 2**31 else BIGINT
        return Value(plain_cast(Value(f"({shown})", Type("")), kind), kind, str(whole), str(whole))
    if _EXPONENT.fullmatch(text):
        return Value(f"CAST('{shown}' AS DOUBLE)", DOUBLE, None, shown)
    before, point, after = text.partition(".")
    if not point or not after.isdecimal() or not before.isdecimal():
        raise NotSame(f"the number {shown}")
    digits = len((before + after).lstrip("0"))
    decimal = bounded_decimal(max(digits, len(after)), len(after))
    return Value(f"CAST('{shown}' AS DECIMAL({decimal.precision},{decimal.scale}))", decimal, shown, shown)
