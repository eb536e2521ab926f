"""Tables that tests put into a workspace: columns, their types in Databricks SQL, and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

Table = pa.Table | Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Column:
    """`type`: as Databricks SQL writes it: `BIGINT`, `DECIMAL(10,2)`, `ARRAY<STRING>`."""

    name: str
    type: str


def columns_of(table: Any) -> list[Column]:
    """The columns of an Arrow table, or of a list of objects by their values."""
    if isinstance(table, pa.Table):
        return [Column(each.name, _arrow_type(each.type)) for each in table.schema]
    names = list(dict.fromkeys(name for row in table for name in row))
    return [Column(name, _type_of([row.get(name) for row in table])) for name in names]


def rows_of(table: Any) -> list[list[Any]]:
    """The rows of a table, values in the order of its columns."""
    names = [column.name for column in columns_of(table)]
    rows = table.to_pylist() if isinstance(table, pa.Table) else table
    return [[row.get(name) for name in names] for row in rows]


def _arrow_type(type: pa.DataType) -> str:
    simple = {"int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "float": "FLOAT", "double": "DOUBLE"}
    simple |= {"bool": "BOOLEAN", "string": "STRING", "large_string": "STRING", "binary": "BINARY", "date32[day]": "DATE", "null": "VOID"}
    if pa.types.is_decimal(type):
        return f"DECIMAL({type.precision},{type.scale})"
    if pa.types.is_timestamp(type):
        return "TIMESTAMP" if type.tz else "TIMESTAMP_NTZ"
    if pa.types.is_struct(type):
        return "STRUCT<" + ", ".join(f"{each.name}: {_arrow_type(each.type)}" for each in type) + ">"
    if pa.types.is_map(type):
        return f"MAP<{_arrow_type(type.key_type)}, {_arrow_type(type.item_type)}>"
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return f"ARRAY<{_arrow_type(type.value_type)}>"
    return simple[str(type)]


def _type_of(values: Sequence[Any]) -> str:
    for value in values:
        if value is not None:
            return _type_of_one(value)
    return "STRING"


def _type_of_one(value: Any) -> str:
    if isinstance(value, Decimal):
        digits, scale = len(value.as_tuple().digits), -int(value.as_tuple().exponent)
        return f"DECIMAL({max(digits, scale)},{scale})"
    if isinstance(value, Mapping):
        return "STRUCT<" + ", ".join(f"{key}: {_type_of_one(each)}" for key, each in value.items()) + ">"
    if isinstance(value, list | tuple):
        return f"ARRAY<{_type_of(value)}>"
    kinds = (
        (bool, "BOOLEAN"),
        (int, "BIGINT"),
        (float, "DOUBLE"),
        (str, "STRING"),
        (bytes, "BINARY"),
        (datetime, "TIMESTAMP"),
        (date, "DATE"),
    )
    return next(name for kind, name in kinds if isinstance(value, kind))
