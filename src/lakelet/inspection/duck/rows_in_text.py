"""Rows that are written into the text of a query: of relations that no file holds."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakelet.inspection.duck.queries import Query
from lakelet.inspection.duck.spark_types import INT, STRING, TIMESTAMP, Type, duck_name
from lakelet.inspection.duck.values import text_literal

if TYPE_CHECKING:
    import pyarrow as pa

_KINDS = {"string": STRING, "int32": INT, "timestamp[us, tz=UTC]": TIMESTAMP}


def values_query(rows: pa.Table) -> Query:
    """The query of these rows, whose columns are texts, numbers of four bytes and moments."""
    kinds = [_KINDS[str(field.type)] for field in rows.schema]
    listed = [f"SELECT {_listed(row.values(), kinds)}" for row in rows.to_pylist()]
    nothing = f"SELECT {_listed([None] * len(kinds), kinds)} WHERE false"
    return Query(" UNION ALL ".join(listed) or nothing, tuple(zip(rows.column_names, kinds, strict=True)))


def _listed(values: Any, kinds: list[Type]) -> str:
    pairs = enumerate(zip(values, kinds, strict=True))
    return ", ".join(f"CAST({_literal(value)} AS {duck_name(kind)}) AS c{at}" for at, (value, kind) in pairs)


def _literal(value: str | int | datetime | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return text_literal(value.replace(tzinfo=None).isoformat(sep=" "))
    return text_literal(value) if isinstance(value, str) else str(value)


__all__ = ["values_query"]
