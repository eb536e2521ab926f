"""Operators of numbers in DuckDB's words: Spark's result types, and an error wherever Spark raises one."""

from __future__ import annotations

from sqlglot import exp

from lakelet.inspection.duck.casts import guarded, plain_cast, widened
from lakelet.inspection.duck.refusal import NotSame
from lakelet.inspection.duck.spark_types import BIGINT, DOUBLE, Type, as_decimal, bounded_decimal, common
from lakelet.inspection.duck.values import Value

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
    before, point, after = text.partition(".")
    if not point or not after.isdecimal() or not before.isdecimal():
        raise NotSame(f"the number {shown}")
    digits = len((before + after).lstrip("0"))
    decimal = bounded_decimal(max(digits, len(after)), len(after))
    return Value(f"CAST('{shown}' AS DECIMAL({decimal.precision},{decimal.scale}))", decimal, shown, shown)
