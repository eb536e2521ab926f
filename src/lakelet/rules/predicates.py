"""Row rules as Great Expectations has them, both ways: an SQL predicate ↔ one expectation of a suite. Pure.

Great Expectations leaves rows with NULL out of column expectations, a rule counts them as broken. So a column expectation is
`c IS NULL OR (…)`, and a predicate that says nothing about NULL becomes a query for the rows that break it. The counts are equal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from lakelet.base.names import quoted_if_needed
from lakelet.language.sql_text.dialect import Pipelines
from lakelet.quality.suites import UNEXPECTED_ROWS

_BROKEN = re.compile(r"\s*SELECT \* FROM \{batch\} WHERE NOT coalesce\(\(\n?(.*?)\n?\), false\)\s*", re.DOTALL | re.IGNORECASE)
_CARRIED = frozenset({"mostly", "row_condition", "condition_parser", "batch_id", "result_format", "catch_exceptions", "ignore_row_if"})

Kwargs = Mapping[str, Any]


# --- from expectations to predicates --------------------------------------------------------------------------------------------------


def predicate_of(type: str, kwargs: Kwargs) -> str | None:
    """The predicate that breaks for the rows that an expectation calls unexpected, or None where no row can be judged alone."""
    if type == UNEXPECTED_ROWS:
        found = _BROKEN.fullmatch(str(kwargs["unexpected_rows_query"]))
        return found[1].replace("{{", "{").replace("}}", "}") if found else None
    known = _PREDICATES.get(type)
    if known is None or not set(kwargs) <= known[0] | _CARRIED:
        return None
    given, text = kwargs.get("row_condition"), known[1](kwargs)
    if given is None or text is None:
        return text
    condition = _row_condition(given, kwargs.get("condition_parser"))
    return f"NOT coalesce(({condition}), false) OR ({text})" if condition else None


_OPERATORS = {"==": "=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "IN": "IN", "NOT_IN": "NOT IN"}
_OF_ONE_VALUE = _OPERATORS.keys() - {"IN", "NOT_IN"}
_OF_A_COLUMN = re.compile(
    r"""col\("([^"]+)"\)(?:\.notnull\(\)|\s*(>=|<=|==|!=|<|>)\s*(?:([+-]?\d+(?:\.\d*)?)|"([^"']+)"|'([^"']+)'))""", re.IGNORECASE
)


def _row_condition(given: Any, parser: Any) -> str | None:
    """The SQL of a row condition: SQL text, `col("n") > 0`, or the object that Great Expectations writes since 1.9.

    None for what has no SQL here, such as text for pandas.
    """
    if isinstance(given, Mapping):
        return _row_condition(given.get("pass_through_filter"), parser) if given.get("type") == "pass_through" else _condition_object(given)
    if not isinstance(given, str) or parser in (None, "spark"):
        return given if isinstance(given, str) else None
    found = _OF_A_COLUMN.fullmatch(given.strip()) if str(parser).startswith("great_expectations") else None
    if found is None:
        return None
    column, operator, number, *texts = found.groups()
    value = number or literal(texts[0] or texts[1]) if operator else None
    return f"{quoted_if_needed(column)} {_OPERATORS[operator]} {value}" if operator else f"{quoted_if_needed(column)} IS NOT NULL"


def _condition_object(given: Mapping[str, Any]) -> str | None:
    match given:
        case {"type": "nullity", "column": {"name": str(name)}, "is_null": bool(is_null)}:
            return f"{quoted_if_needed(name)} IS NULL" if is_null else f"{quoted_if_needed(name)} IS NOT NULL"
        case {"type": "comparison", "column": {"name": str(name)}, "operator": "IN" | "NOT_IN" as operator, "parameter": [_, *_] as values}:
            return f"{quoted_if_needed(name)} {_OPERATORS[operator]} ({', '.join(map(literal, values))})"
        case {"type": "comparison", "column": {"name": str(name)}, "operator": operator, "parameter": str() | int() | float() as value}:
            return f"{quoted_if_needed(name)} {_OPERATORS[operator]} {literal(value)}" if operator in _OF_ONE_VALUE else None
        case {"type": "and" | "or" as word, "conditions": [_, *_] as several}:
            parts = [_condition_object(one) if isinstance(one, Mapping) else None for one in several]
            return None if None in parts else f" {word.upper()} ".join(f"({part})" for part in parts)
    return None


def literal(value: Any) -> str:
    """A value as Spark's SQL writes it; a whole number that came as a float is whole again."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        if not math.isfinite(value):
            return f"double('{value}')"
        return str(int(value)) if value == int(value) else repr(value)
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


def _nullable(column: str, condition: str) -> str:
    return f"{column} IS NULL OR {condition}"


def _between(kwargs: Kwargs) -> str | None:
    column = quoted_if_needed(kwargs["column"])
    text = _within(column, kwargs.get("min_value"), kwargs.get("max_value"), kwargs.get("strict_min"), kwargs.get("strict_max"))
    return _nullable(column, f"({text})") if text else None


def _within(what: str, least: Any, most: Any, strict_least: Any = False, strict_most: Any = False) -> str:
    parts = [f"{what} {'>' if strict_least else '>='} {literal(least)}"] if least is not None else []
    parts += [f"{what} {'<' if strict_most else '<='} {literal(most)}"] if most is not None else []
    return " AND ".join(parts)


def _in_set(kwargs: Kwargs, negated: str = "") -> str | None:
    column, values = quoted_if_needed(kwargs["column"]), [literal(v) for v in kwargs["value_set"] if v is not None]
    return _nullable(column, f"{column} {negated}IN ({', '.join(values)})") if values else None


def _regex(kwargs: Kwargs, negated: str = "") -> str:
    column = quoted_if_needed(kwargs["column"])
    return _nullable(column, f"{negated}{column} RLIKE {literal(kwargs['regex'])}")


def _lengths(kwargs: Kwargs) -> str | None:
    column = quoted_if_needed(kwargs["column"])
    text = _within(
        f"length({column})", kwargs.get("min_value"), kwargs.get("max_value"), kwargs.get("strict_min"), kwargs.get("strict_max")
    )
    return _nullable(column, f"({text})") if text else None


def _length(kwargs: Kwargs) -> str:
    column = quoted_if_needed(kwargs["column"])
    return _nullable(column, f"length({column}) = {literal(kwargs['value'])}")


def _greater(kwargs: Kwargs) -> str:
    a, b = quoted_if_needed(kwargs["column_A"]), quoted_if_needed(kwargs["column_B"])
    return f"{a} IS NULL OR {b} IS NULL OR {a} {'>=' if kwargs.get('or_equal') else '>'} {b}"


_RANGE = frozenset({"column", "min_value", "max_value", "strict_min", "strict_max"})
_PAIR = frozenset({"column_A", "column_B", "or_equal"})
_PREDICATES: Mapping[str, tuple[frozenset[str], Callable[[Kwargs], str | None]]] = {
    "expect_column_values_to_not_be_null": (frozenset({"column"}), lambda k: f"{quoted_if_needed(k['column'])} IS NOT NULL"),
    "expect_column_values_to_be_null": (frozenset({"column"}), lambda k: f"{quoted_if_needed(k['column'])} IS NULL"),
    "expect_column_values_to_be_between": (_RANGE, _between),
    "expect_column_values_to_be_in_set": (frozenset({"column", "value_set"}), _in_set),
    "expect_column_values_to_not_be_in_set": (frozenset({"column", "value_set"}), lambda k: _in_set(k, "NOT ")),
    "expect_column_values_to_match_regex": (frozenset({"column", "regex"}), _regex),
    "expect_column_values_to_not_match_regex": (frozenset({"column", "regex"}), lambda k: _regex(k, "NOT ")),
    "expect_column_value_lengths_to_be_between": (_RANGE, _lengths),
    "expect_column_value_lengths_to_equal": (frozenset({"column", "value"}), _length),
    "expect_column_pair_values_a_to_be_greater_than_b": (_PAIR, _greater),
    "expect_column_pair_values_to_be_equal": (_PAIR, lambda k: f"{quoted_if_needed(k['column_A'])} <=> {quoted_if_needed(k['column_B'])}"),
}


# --- from predicates to expectations --------------------------------------------------------------------------------------------------


def expectation_kwargs(predicate: str) -> tuple[str, dict[str, Any]]:
    """Type and kwargs of the expectation that counts the rows that break the predicate; a query where no expectation says the same."""
    try:
        found = _recognised(_bare(parse_one(predicate, dialect=Pipelines)))
    except (SqlglotError, RecursionError, ValueError):
        found = None
    if found is not None:
        return found
    text = predicate.replace("{", "{{").replace("}", "}}")
    return UNEXPECTED_ROWS, {"unexpected_rows_query": f"SELECT * FROM {{batch}} WHERE NOT coalesce((\n{text}\n), false)"}


def _bare(node: Any) -> Any:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _recognised(node: Any) -> tuple[str, dict[str, Any]] | None:
    parts = [_bare(part) for part in (node.flatten() if isinstance(node, exp.Or) else [node])]
    nulls = [name for part in parts[:-1] if (name := _null(part)) is not None]
    last = parts[-1]
    if len(nulls) != len(parts) - 1:
        return None
    if len(nulls) == 1:
        return _of_column(last, nulls[0])
    if len(nulls) == 2 and isinstance(last, exp.GT | exp.GTE) and [_name(last.this), _name(last.expression)] == nulls:
        pair = {"column_A": nulls[0], "column_B": nulls[1], "or_equal": isinstance(last, exp.GTE)}
        return "expect_column_pair_values_a_to_be_greater_than_b", pair
    return _alone(last) if not nulls else None


def _alone(node: Any) -> tuple[str, dict[str, Any]] | None:
    """A predicate that is never NULL."""
    if (name := _null(node)) is not None:
        return "expect_column_values_to_be_null", {"column": name}
    if isinstance(node, exp.Not) and (name := _null(_bare(node.this))) is not None:
        return "expect_column_values_to_not_be_null", {"column": name}
    if isinstance(node, exp.NullSafeEQ) and (a := _name(node.this)) and (b := _name(node.expression)):
        return "expect_column_pair_values_to_be_equal", {"column_A": a, "column_B": b}
    return None


def _of_column(node: Any, column: str) -> tuple[str, dict[str, Any]] | None:
    """A predicate on a column whose NULLs are let through."""
    negated, inner = (True, _bare(node.this)) if isinstance(node, exp.Not) else (False, node)
    no = "not_" if negated else ""
    if isinstance(inner, exp.In) and _name(inner.this) == column and inner.expressions and not inner.args.get("query"):
        values = [_value(one) for one in inner.expressions]
        return f"expect_column_values_to_{no}be_in_set", {"column": column, "value_set": values}
    if isinstance(inner, exp.RegexpLike) and _name(inner.this) == column:
        return f"expect_column_values_to_{no}match_regex", {"column": column, "regex": _value(inner.expression)}
    if negated:
        return None
    if isinstance(inner, exp.EQ) and _length_of(inner.this) == column:
        return "expect_column_value_lengths_to_equal", {"column": column, "value": _value(inner.expression)}
    return _range(inner, column)


def _range(node: Any, column: str) -> tuple[str, dict[str, Any]] | None:
    """`c >= a AND c < b`, one of them, `c BETWEEN a AND b`, and the same of `length(c)`."""
    parts = [_bare(part) for part in (node.flatten() if isinstance(node, exp.And) else [node])]
    if len(parts) == 1 and isinstance(parts[0], exp.Between):
        between = parts[0]
        parts = [exp.GTE(this=between.this, expression=between.args["low"]), exp.LTE(this=between.this, expression=between.args["high"])]
    bounds: dict[str, Any] = {}
    subjects = set()
    for part in parts:
        side = next((s for kind, s in _SIDES.items() if type(part) is kind), None)
        if side is None or side[0] in bounds:
            return None
        bounds[side[0]] = _value(part.expression)
        bounds |= {side[1]: True} if side[1] else {}
        subjects.add(("length", _length_of(part.this)) if _length_of(part.this) else ("value", _name(part.this)))
    if subjects == {("value", column)}:
        return "expect_column_values_to_be_between", {"column": column, **bounds}
    if subjects == {("length", column)}:
        return "expect_column_value_lengths_to_be_between", {"column": column, **bounds}
    return None


_SIDES: Mapping[Any, tuple[str, str]] = {
    exp.GTE: ("min_value", ""),
    exp.GT: ("min_value", "strict_min"),
    exp.LTE: ("max_value", ""),
    exp.LT: ("max_value", "strict_max"),
}


def _null(node: Any) -> str | None:
    """The column of `c IS NULL`."""
    return _name(node.this) if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null) else None


def _name(node: Any) -> str | None:
    """The name of a plain column."""
    node = _bare(node)
    return node.name if isinstance(node, exp.Column) and len(node.parts) == 1 else None


def _length_of(node: Any) -> str | None:
    node = _bare(node)
    return _name(node.this) if isinstance(node, exp.Length) else None


def _value(node: Any) -> Any:
    """A literal as a Python value. Raises ValueError for anything else."""
    node = _bare(node)
    if isinstance(node, exp.Neg):
        return -_value(node.this)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if not isinstance(node, exp.Literal):
        raise ValueError("no literal")
    if node.is_string:
        return node.this
    return int(node.this) if node.this.isdigit() else float(node.this)
