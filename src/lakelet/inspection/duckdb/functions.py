"""Functions, aggregates and windows of Spark in SQL of DuckDB: typed arguments in, a typed value out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakelet.inspection.duckdb.casts import cast, counted_double, guarded, plain_cast, widened
from lakelet.inspection.duckdb.values import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    VOID,
    NotSame,
    Type,
    Value,
    bounded_decimal,
    common_of,
    duck_name,
    sort_key,
    text_literal,
)

Build = Callable[[Sequence[Value]], Value]

_TIMES = ("date", "timestamp", "timestamp_ntz")
_PARTS = {
    **dict.fromkeys(("year", "quarter", "month", "day", "dayofyear"), _TIMES),
    **dict.fromkeys(("hour", "minute", "second"), ("timestamp", "timestamp_ntz")),
}
_TRUNCATED = {
    "YEAR": "year", "YYYY": "year", "YY": "year", "QUARTER": "quarter", "MONTH": "month", "MM": "month", "MON": "month", "WEEK": "week",
    "DAY": "day", "DD": "day", "HOUR": "hour", "MINUTE": "minute", "SECOND": "second",
}  # fmt: skip


def function(name: str, arguments: Sequence[Value]) -> Value:
    """The call of a function. Raises NotSame for unknown names, other numbers of arguments and other types."""
    build = _FUNCTIONS.get(name)
    if build is None:
        raise NotSame(f"the function {name}")
    try:
        return build(arguments)
    except (ValueError, IndexError):
        raise NotSame(f"{name} with {len(arguments)} arguments") from None


def _named(name: str, arguments: Sequence[Value], sql: str, kind: Type) -> Value:
    shown = [argument.name for argument in arguments]
    return Value(sql, kind, f"{name}({', '.join(map(str, shown))})" if None not in shown else None)


def _is(value: Value, *kinds: str) -> None:
    if value.type.kind not in kinds:
        raise NotSame(f"a function of a {value.type}")


def _constant(value: Value) -> int:
    if value.constant is None or not value.type.is_integer:
        raise NotSame("a position that is not a plain number")
    return int(value.constant)


def _part(name: str, shown: str | None = None) -> Build:
    def build(arguments: Sequence[Value]) -> Value:
        (value,) = arguments
        _is(value, *_PARTS[name])
        return _named(shown or name, arguments, f"CAST({name}({value.sql}) AS INTEGER)", INT)

    return build


def _day_of_week(arguments: Sequence[Value]) -> Value:
    (value,) = arguments
    _is(value, *_TIMES)
    return _named("dayofweek", arguments, f"CAST(dayofweek({value.sql}) + 1 AS INTEGER)", INT)


def _case(name: str) -> Build:
    """Java changes letters outside of ASCII differently: such a text is left to Spark."""

    def build(arguments: Sequence[Value]) -> Value:
        (value,) = arguments
        _is(value, "string")
        return _named(name, arguments, guarded(f"{name}({value.sql})", f"strlen({value.sql}) = length({value.sql})"), STRING)

    return build


def _length(arguments: Sequence[Value]) -> Value:
    (value,) = arguments
    _is(value, "string")
    return _named("length", arguments, f"CAST(length({value.sql}) AS INTEGER)", INT)


def _substring(name: str) -> Build:
    def build(arguments: Sequence[Value]) -> Value:
        value, start, *rest = arguments
        _is(value, "string")
        if _constant(start) < 1 or len(rest) > 1 or any(_constant(length) < 0 for length in rest):
            raise NotSame(f"{name} from the end")
        positions = ", ".join(str(_constant(number)) for number in (start, *rest))
        shown = [*arguments] if rest else [*arguments, Value("", INT, "2147483647")]
        return _named(name, shown, f"substring({value.sql}, {positions})", STRING)

    return build


def _trim(name: str) -> Build:
    def build(arguments: Sequence[Value]) -> Value:
        (value,) = arguments
        _is(value, "string")
        return _named(name, arguments, f"{name}({value.sql}, ' ')", STRING)

    return build


def _concat(arguments: Sequence[Value]) -> Value:
    for value in arguments:
        _is(value, "string")
    return _named("concat", arguments, "(" + " || ".join(value.sql for value in arguments) + ")", STRING)


def same_typed(arguments: Sequence[Value]) -> tuple[list[str], Type]:
    """The arguments in their common type. A text literal among dates or timestamps is not a date: Spark decides differently by function."""
    kind = common_of([value.type for value in arguments])
    if kind == VOID:
        raise NotSame("nothing but NULL")
    return [widened(value, kind) for value in arguments], kind


def _first(name: str, *, least: int = 1) -> Build:
    """coalesce, greatest, least."""

    def build(arguments: Sequence[Value]) -> Value:
        if len(arguments) < least:
            raise ValueError
        texts, kind = same_typed(arguments)
        if name != "coalesce" and (kind.is_nested or kind.is_floating):
            raise NotSame(f"{name} of a {kind}")
        return _named(name, arguments, f"{name}({', '.join(texts)})", kind)

    return build


def _two(name: str) -> Build:
    def build(arguments: Sequence[Value]) -> Value:
        value, other = arguments
        texts, kind = same_typed([value, other])
        return _named(name, arguments, f"coalesce({', '.join(texts)})", kind)

    return build


def _nullif(arguments: Sequence[Value]) -> Value:
    value, other = arguments
    if value.type != other.type and not (value.type.is_integer and other.type.is_integer):
        raise NotSame(f"nullif of a {value.type} and a {other.type}")
    texts, _ = same_typed(arguments)
    return _named("nullif", arguments, f"(CASE WHEN {texts[0]} = {texts[1]} THEN NULL ELSE {value.sql} END)", value.type)


def _is_null(name: str, words: str) -> Build:
    def build(arguments: Sequence[Value]) -> Value:
        (value,) = arguments
        shown = f"({value.name} {words})" if value.name else None
        return Value(f"({value.sql} {words})", BOOLEAN, shown)

    return build


def _abs(arguments: Sequence[Value]) -> Value:
    (value,) = arguments
    if not (value.type.is_integer or value.type.kind in ("decimal", "double")):
        raise NotSame(f"abs of a {value.type}")
    return _named("abs", arguments, f"abs({value.sql})", value.type)


def _round(arguments: Sequence[Value]) -> Value:
    """Spark rounds the shortest decimal text of a double: so does this, for numbers whose text has no exponent."""
    value, *rest = arguments
    digits = _constant(*rest) if rest else 0
    shown = [value, *rest] if rest else [value, Value("", INT, "0")]
    if value.type.is_integer and digits >= 0:
        return _named("round", shown, value.sql, value.type)
    _is(value, "double")
    if not 0 <= digits <= 6:
        raise NotSame(f"round to {digits} digits")
    texts = f"CAST(CAST(CAST({value.sql} AS VARCHAR) AS DECIMAL(38,{digits})) AS DOUBLE)"
    return _named("round", shown, guarded(texts, f"{value.sql} BETWEEN -100000000 AND 100000000"), value.type)


def _to_date(name: str) -> Build:
    def build(arguments: Sequence[Value]) -> Value:
        (value,) = arguments
        _is(value, "string", *_TIMES)
        return _named(name, arguments, cast(value, DATE), DATE)

    return build


def _days(name: str, sign: str) -> Build:
    def build(arguments: Sequence[Value]) -> Value:
        day, number = arguments
        _is(day, "date")
        _is(number, "int", "smallint", "tinyint")
        return _named(name, arguments, f"({day.sql} {sign} {plain_cast(number, INT)})", DATE)

    return build


def _date_diff(name: str) -> Build:
    def build(arguments: Sequence[Value]) -> Value:
        end, start = arguments
        _is(end, *_TIMES)
        _is(start, *_TIMES)
        return _named(name, arguments, f"CAST({plain_cast(end, DATE)} - {plain_cast(start, DATE)} AS INTEGER)", INT)

    return build


def _date_trunc(arguments: Sequence[Value]) -> Value:
    unit, value = arguments
    _is(value, "date", "timestamp")
    known = _TRUNCATED.get((unit.constant or "").upper())
    if known is None or unit.type != STRING:
        raise NotSame("date_trunc to another unit")
    return _named("date_trunc", arguments, f"date_trunc({text_literal(known)}, {plain_cast(value, TIMESTAMP)})", TIMESTAMP)


def _size(arguments: Sequence[Value]) -> Value:
    (value,) = arguments
    _is(value, "array")
    return _named("size", arguments, f"CAST(len({value.sql}) AS INTEGER)", INT)


_FUNCTIONS: dict[str, Build] = {
    **{name: _part(name) for name in _PARTS},
    "dayofmonth": _part("day", "dayofmonth"),
    "dayofweek": _day_of_week,
    "upper": _case("upper"),
    "lower": _case("lower"),
    "length": _length,
    "substring": _substring("substring"),
    "substr": _substring("substr"),
    "trim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "concat": _concat,
    "coalesce": _first("coalesce"),
    "greatest": _first("greatest", least=2),
    "least": _first("least", least=2),
    "nvl": _two("nvl"),
    "ifnull": _two("ifnull"),
    "nullif": _nullif,
    "isnull": _is_null("isnull", "IS NULL"),
    "isnotnull": _is_null("isnotnull", "IS NOT NULL"),
    "abs": _abs,
    "round": _round,
    "to_date": _to_date("to_date"),
    "date": _to_date("date"),
    "date_add": _days("date_add", "+"),
    "date_sub": _days("date_sub", "-"),
    "datediff": _date_diff("datediff"),
    "date_diff": _date_diff("date_diff"),
    "date_trunc": _date_trunc,
    "size": _size,
}


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


_RANKS = ("row_number", "rank", "dense_rank")


def window(name: str, arguments: Sequence[Value] | None, partition: Sequence[Value], order: Sequence[tuple[Value, str]]) -> Value:
    """`name(arguments) OVER (PARTITION BY … ORDER BY …)`; no arguments at all (None) for count(*). Raises NotSame."""
    if any(part.type.is_nested or part.type.is_floating for part in partition):
        raise NotSame("a window over values of such a type")
    words = ["PARTITION BY " + ", ".join(part.sql for part in partition)] if partition else []
    words += ["ORDER BY " + ", ".join(f"{sort_key(key)} {direction}" for key, direction in order)] if order else []
    call, kind = _call(name, arguments, bool(order))
    return Value(
        f"CAST({call} OVER ({' '.join(words)}) AS {_CASTS[kind.kind]})" if kind.kind in _CASTS else f"({call} OVER ({' '.join(words)}))",
        kind,
    )


_CASTS = {"int": "INTEGER", "bigint": "BIGINT"}


def _call(name: str, arguments: Sequence[Value] | None, ordered: bool) -> tuple[str, Type]:
    if arguments is None and name == "count":
        return "count(*)", BIGINT
    if name in _RANKS and not arguments and ordered:
        return f"{name}()", INT
    if arguments and len(arguments) == 1:
        value = arguments[0]
        plain = not value.type.is_nested and not value.type.is_floating and value.type != VOID
        if name == "count":
            return f"count({value.sql})", BIGINT
        if name in ("min", "max") and plain and value.type.kind != "binary":
            return f"{name}({value.sql})", value.type
        if name == "sum" and value.type.is_integer and value.type != BIGINT:
            return f"sum({value.sql})", BIGINT
        if name in ("lag", "lead") and ordered and value.type != VOID:
            return f"{name}({value.sql})", value.type
    raise NotSame(f"{name} over a window")
