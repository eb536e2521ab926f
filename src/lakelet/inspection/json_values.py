"""Arrow values as plain JSON values, the one form of `show --json` and `sql --json`.

Timestamps are ISO 8601 in UTC (without zone for TIMESTAMP_NTZ), decimals strings, binary base64, maps objects, NaN and infinities strings.
FLOAT has the digits that Spark shows.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Convert = Callable[[Any], Any]


def json_rows(batch: Any) -> Iterator[dict[str, Any]]:
    """The rows of an arrow RecordBatch or Table as objects by column name. Of two columns with one name the last one stays."""
    names = list(batch.schema.names)
    columns = [_column(batch.column(i)) for i in range(len(names))]
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _column(column: Any) -> list[Any]:
    try:
        values = column.to_pylist()
    except (OverflowError, ValueError):  # a timestamp that Python's calendar does not have
        return list(column.cast("string").to_pylist())
    convert = converter(column.type)
    return [None if value is None else convert(value) for value in values]


def converter(kind: Any) -> Convert:
    """A function that turns non-null Python values of the arrow type `kind` into JSON values."""
    import pyarrow.types as t

    if t.is_struct(kind):
        fields = {kind.field(i).name: _nullable(converter(kind.field(i).type)) for i in range(kind.num_fields)}
        return lambda value: {name: convert(value.get(name)) for name, convert in fields.items()}
    if t.is_map(kind):
        key, item = _nullable(converter(kind.key_type)), _nullable(converter(kind.item_type))
        return lambda pairs: {_key(key(k)): item(v) for k, v in pairs}
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind) or t.is_list_view(kind) or t.is_large_list_view(kind):
        element = _nullable(converter(kind.value_type))
        return lambda values: [element(v) for v in values]
    if t.is_timestamp(kind):
        return _utc_text
    if t.is_date(kind) or t.is_time(kind):
        return lambda value: value.isoformat()
    if t.is_decimal(kind):
        return lambda value: format(value, "f")
    if t.is_float32(kind):
        return lambda value: _float(_shortest(value))
    if t.is_floating(kind):
        return _float
    if t.is_dictionary(kind):
        return converter(kind.value_type)
    return _by_python_type


def _nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _utc_text(value: Any) -> str:
    return str(value.isoformat()).replace("+00:00", "Z")


def _float(value: float) -> Any:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _shortest(value: float) -> float:
    """A number of four bytes with no more digits than tell it from others, as Spark shows it: 23.4 instead of 23.399999618530273."""
    if not math.isfinite(value):
        return value
    shorter = (float(f"{value:.{digits}g}") for digits in range(1, 9))
    return next((short for short in shorter if struct.pack("f", short) == struct.pack("f", value)), float(f"{value:.9g}"))


def _by_python_type(value: Any) -> Any:
    if isinstance(value, (bool, int, str)):
        return value
    return base64.b64encode(value).decode("ascii") if isinstance(value, (bytes, bytearray, memoryview)) else str(value)


def _key(value: Any) -> str:
    return value if isinstance(value, str) else "true" if value is True else "false" if value is False else str(value)


SPARK_TYPE = "spark_type"
"""Key in the metadata of an arrow field: the type, in Spark's words, whose values the field has as texts."""


def field_type_text(field: Any) -> str:
    """The type of an arrow field as Spark writes its own in short, also where arrow has the values as texts."""
    known = (field.metadata or {}).get(SPARK_TYPE.encode())
    return known.decode() if known else arrow_type_text(field.type)


def arrow_type_text(kind: Any) -> str:
    """An arrow type as Spark writes its own in short: `decimal(12,2)`, `array<struct<a:int>>`."""
    import pyarrow.types as t

    if t.is_struct(kind):
        return "struct<" + ",".join(f"{kind.field(i).name}:{arrow_type_text(kind.field(i).type)}" for i in range(kind.num_fields)) + ">"
    if t.is_map(kind):
        return f"map<{arrow_type_text(kind.key_type)},{arrow_type_text(kind.item_type)}>"
    if t.is_list(kind) or t.is_large_list(kind) or t.is_list_view(kind) or t.is_large_list_view(kind):
        return f"array<{arrow_type_text(kind.value_type)}>"
    if t.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if t.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    return _ARROW_NAMES.get(str(kind), str(kind))


_ARROW_NAMES = {
    "bool": "boolean", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "large_string": "string",
    "string_view": "string", "large_binary": "binary", "binary_view": "binary", "date32[day]": "date", "null": "void",
}  # fmt: skip


def distinct_names(names: Sequence[str]) -> list[str]:
    """The names of columns. A repeated name gets a number, so that each column has a key of its own in a JSON record."""
    found: list[str] = []
    for name in names:
        number, new = 1, name
        while new in found or (number > 1 and new in names):
            number += 1
            new = f"{name}_{number}"
        found.append(new)
    return found
