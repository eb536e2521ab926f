"""Window functions in DuckDB's words, with the frame that both engines take if none is written."""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.inspection.duck.refusal import NotSame
from lakelet.inspection.duck.spark_types import BIGINT, INT, VOID, Type
from lakelet.inspection.duck.values import Value, sort_key

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
