"""Functions of one row that DuckDB has like Spark, by the name that they are written with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakelet.inspection.duck.casts import cast, guarded, plain_cast, widened
from lakelet.inspection.duck.refusal import NotSame
from lakelet.inspection.duck.spark_types import BOOLEAN, DATE, INT, STRING, TIMESTAMP, VOID, Type, common_of
from lakelet.inspection.duck.values import Value, text_literal

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
