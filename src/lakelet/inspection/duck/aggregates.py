"""Aggregate functions in DuckDB's words. Floating numbers are not added up: the last digit depends on the order of the rows."""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.inspection.duck.casts import counted_double, guarded
from lakelet.inspection.duck.refusal import NotSame
from lakelet.inspection.duck.spark_types import BIGINT, BOOLEAN, DOUBLE, VOID, bounded_decimal, duck_name
from lakelet.inspection.duck.values import Value

NAMES = frozenset({"count", "sum", "avg", "mean", "min", "max", "count_if", "bool_and", "bool_or", "every", "some", "any"})
_LOGICAL = {"bool_and": "bool_and", "every": "bool_and", "bool_or": "bool_or", "some": "bool_or", "any": "bool_or"}


def counted_rows(condition: str | None) -> Value:
    """count(*)."""
    return Value(f"count(*){_filter(condition)}", BIGINT, None if condition else "count(1)")


def _filter(condition: str | None) -> str:
    return "" if condition is None else f" FILTER (WHERE {condition})"


def aggregate(name: str, arguments: Sequence[Value], distinct: bool, condition: str | None) -> Value:
    """The aggregate of the rows of a group that fulfil the condition. Raises NotSame for arguments that DuckDB treats differently."""
    if not arguments or (len(arguments) > 1 and name != "count"):
        raise NotSame(f"{name} with {len(arguments)} arguments")
    kinds = [value.type for value in arguments]
    if distinct and (name not in ("count", "min", "max") or any(kind.is_nested or kind.is_floating for kind in kinds)):
        raise NotSame(f"{name} of distinct values")
    if any(kind == VOID for kind in kinds):
        raise NotSame(f"{name} of NULL")
    shown = ", ".join(str(value.name) for value in arguments)
    known = condition is None and all(value.name for value in arguments)
    label = f"{name}({'DISTINCT ' if distinct else ''}{shown})" if known else None
    if name == "count":
        return Value(_count(arguments, distinct, condition), BIGINT, label)
    value, kind = arguments[0], kinds[0]
    if name in ("min", "max"):
        if kind.is_nested or kind.kind == "binary":
            raise NotSame(f"{name} of a {kind}")
        return Value(f"{name}({value.sql}){_filter(condition)}", kind, label)
    if name == "count_if" or name in _LOGICAL:
        if kind != BOOLEAN:
            raise NotSame(f"{name} of a {kind}")
        if name == "count_if":
            test = value.sql if condition is None else f"({value.sql}) AND ({condition})"
            return Value(f"count(*) FILTER (WHERE {test})", BIGINT, label)
        return Value(f"{_LOGICAL[name]}({value.sql}){_filter(condition)}", BOOLEAN, label if name in ("bool_and", "bool_or") else None)
    return _added(name, value, condition, label)


def _count(arguments: Sequence[Value], distinct: bool, condition: str | None) -> str:
    """Rows in which all arguments have a value."""
    if len(arguments) == 1:
        return f"count({'DISTINCT ' if distinct else ''}{arguments[0].sql}){_filter(condition)}"
    if distinct:
        raise NotSame("count of distinct values of several columns")
    filled = " AND ".join(f"{value.sql} IS NOT NULL" for value in arguments)
    return f"count(*) FILTER (WHERE {filled}{'' if condition is None else f' AND {condition}'})"


def _added(name: str, value: Value, condition: str | None, label: str | None) -> Value:
    """sum and avg. Partial sums do not leave their type, in whatever order Spark adds: where they might, the query fails."""
    kind, where = value.type, _filter(condition)
    if kind.kind == "decimal" and name == "sum":
        result = bounded_decimal(kind.precision + 10, kind.scale)
        return Value(f"CAST(sum({value.sql}){where} AS {duck_name(result)})", result, label)
    if not kind.is_integer:
        raise NotSame(f"{name} of a {kind}")
    wide = f"CAST({value.sql} AS HUGEINT)"
    total, magnitude = f"sum({wide}){where}", f"sum(abs({wide})){where}"
    if name == "sum":
        return Value(guarded(f"CAST({total} AS BIGINT)", f"{magnitude} <= 9223372036854775807"), BIGINT, label)
    return Value(f"({counted_double(total, magnitude)} / count({value.sql}){where})", DOUBLE, label)
