"""Schema inference by Spark's rules (FF-9, FS-6, FS-7), from trees of `json.syntax_tree` and from Arrow types.

A type is one of the words NULL, BOOLEAN, BIGINT, DOUBLE, TIMESTAMP, TIMESTAMP_NTZ, DATE, STRING, a `Decimal_`, an `Array`, or a
`Struct`. Struct fields keep the order in which they were first seen; names differ by case until `finish`, which folds spellings, drops
what has no content and sorts by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.formats.json.syntax_tree import Node, Num, Obj

NULL, BOOLEAN, INT, BIGINT, DOUBLE, STRING = "null", "boolean", "int", "bigint", "double", "string"  # INT: of CSV only
TIMESTAMP, TIMESTAMP_NTZ, DATE = "timestamp", "timestamp_ntz", "date"
DEEPEST = 62  # levels of nesting that become types; Arrow's messages between Python and the JVM take no more than 64


@dataclass(frozen=True)
class Decimal_:
    """DECIMAL(precision, scale)."""

    precision: int
    scale: int


@dataclass(frozen=True)
class Array:
    """ARRAY of one element type."""

    element: Type


@dataclass(frozen=True)
class Struct:
    """STRUCT; the order of `fields` is the order of first sight until `finish`."""

    fields: Mapping[str, Type] = field(default_factory=dict)


Type: TypeAlias = "str | Decimal_ | Array | Struct"
_TIMESTAMPS = (TIMESTAMP, TIMESTAMP_NTZ)
_LONG_AS_DECIMAL = Decimal_(20, 0)


@dataclass(frozen=True)
class TypeRules:
    """How values get their types.

    all_text: every top-level column is STRING (no `inferColumnTypes`).
    primitives_as_string: every scalar is STRING.
    prefers_decimal: a number with a fraction is DECIMAL where 38 digits hold it.
    decimal_texts: so is such a number in quotes, as in Spark.
    timestamps: the parser that says which texts are TIMESTAMP (`inferTimestamp`); None: no text is.
    local_timestamps: the parser that says which of them are TIMESTAMP_NTZ (`spark.sql.timestampType`); None: no text is.
    drop_all_null: a field that never has content is not a column (`dropFieldIfAllNull`).
    """

    all_text: bool = False
    primitives_as_string: bool = False
    prefers_decimal: bool = False
    decimal_texts: bool = False
    timestamps: Callable[[str], int | None] | None = None
    local_timestamps: Callable[[str], int | None] | None = None
    drop_all_null: bool = False


_DEFAULT = TypeRules()


def type_of(node: Node, typing: TypeRules = _DEFAULT, depth: int = 0) -> Type:
    """Type of one value. An empty text counts as NULL, as in Spark. What is nested more than `DEEPEST` levels deep stays JSON text."""
    if node is None or (type(node) is str and not node):
        return NULL
    if node is True or node is False:
        return STRING if typing.primitives_as_string else BOOLEAN
    if isinstance(node, Num):
        return STRING if typing.primitives_as_string else number_type(node, decimal=typing.prefers_decimal)
    if isinstance(node, str):
        return _text_type(node, typing)
    if depth >= DEEPEST:
        return STRING
    if isinstance(node, Obj):
        fields: dict[str, Type] = {}
        for key, value in node:
            known = fields.get(key)
            kind = type_of(value, typing, depth + 1)
            fields[key] = kind if known is None else merge(known, kind)
        return Struct(fields)
    element: Type = NULL
    for item in node:
        element = merge(element, type_of(item, typing, depth + 1))
    return Array(element)


def _text_type(text: str, typing: TypeRules) -> Type:
    number = _decimal_text(text) if typing.decimal_texts else None
    if number is not None:
        return number
    if typing.timestamps is None:
        return STRING
    if typing.local_timestamps is not None and typing.local_timestamps(text) is not None:
        return TIMESTAMP_NTZ
    return TIMESTAMP if typing.timestamps(text) is not None else STRING


_FRACTION = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)


def is_number(text: str) -> bool:
    """Whether a text is a number in digits."""
    return _FRACTION.fullmatch(text) is not None


def _decimal_text(text: str) -> Decimal_ | None:
    """DECIMAL of a number in quotes where its digits, as they stand, are one; None for any other text, as in Spark (FF-48)."""
    number = text.replace(",", "")
    if not is_number(number):
        return None
    digits, exponent = Decimal(number).as_tuple()[1:]
    return Decimal_(len(digits), -int(exponent)) if 0 <= -int(exponent) <= len(digits) <= 38 else None


def _decimal_type(literal: str) -> Type:
    """DECIMAL with the digits of a number; DOUBLE where 38 do not hold it."""
    digits, exponent = Decimal(literal).as_tuple()[1:]
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale)
    return Decimal_(precision, scale) if precision <= 38 else DOUBLE


def number_type(literal: str, *, decimal: bool = False) -> Type:
    """Type of the text of a number; `decimal`: fractions are DECIMAL where 38 digits hold them."""
    if not literal.lstrip("-").isdigit():
        return _decimal_type(literal) if decimal and _FRACTION.fullmatch(literal) else DOUBLE
    digits = len(literal.lstrip("-").lstrip("0"))
    if digits <= 19 and -(1 << 63) <= int(literal) < 1 << 63:
        return BIGINT
    return Decimal_(digits, 0) if digits <= 38 else DOUBLE


def merge(a: Type, b: Type) -> Type:
    """The narrowest type that takes values of both, by Spark's rules for JSON; STRING where there is none."""
    if a == b or b == NULL:
        return a
    if a == NULL:
        return b
    if isinstance(a, Struct) and isinstance(b, Struct):
        fields = dict(a.fields)
        for name, kind in b.fields.items():
            fields[name] = merge(fields[name], kind) if name in fields else kind
        return Struct(fields)
    if isinstance(a, Array) and isinstance(b, Array):
        return Array(merge(a.element, b.element))
    return TIMESTAMP if a in _TIMESTAMPS and b in _TIMESTAMPS else _merge_numbers(a, b)


def _merge_numbers(a: Type, b: Type) -> Type:
    left, right = (_LONG_AS_DECIMAL if kind == BIGINT else kind for kind in (a, b))
    if isinstance(left, Decimal_) and isinstance(right, Decimal_):
        scale = max(left.scale, right.scale)
        whole = max(left.precision - left.scale, right.precision - right.scale)
        return Decimal_(whole + scale, scale) if whole + scale <= 38 else DOUBLE
    numbers = all(kind == DOUBLE or isinstance(kind, Decimal_) for kind in (left, right))
    return DOUBLE if numbers else STRING


def finish(kind: Type, typing: TypeRules = _DEFAULT) -> Type | None:
    """The stored form of a type: NULL becomes STRING, content-free structs vanish (None), spellings are folded, fields sorted by name."""
    if kind == NULL:
        return None if typing.drop_all_null else STRING
    if isinstance(kind, Array):
        element = finish(kind.element, typing)
        return None if element is None else Array(element)
    if isinstance(kind, Struct):
        done = {name: finish(inner, typing) for name, inner in fold_spellings(kind.fields.items()).items() if name}
        kept = {name: done[name] for name in sorted(done)}
        fields = {name: inner for name, inner in kept.items() if inner is not None}
        return Struct(fields) if fields else None
    return kind


def fold_spellings(fields: Iterable[tuple[str, Type]]) -> dict[str, Type]:
    """Fields whose names differ by case only become one: first spelling, merged type (FS-6)."""
    spelling: dict[str, str] = {}
    folded: dict[str, Type] = {}
    for name, kind in fields:
        first = spelling.setdefault(name.lower(), name)
        folded[first] = merge(folded[first], kind) if first in folded else kind
    return folded


def is_column(name: str, value: Node, typing: TypeRules = _DEFAULT) -> bool:
    """Whether an unknown field of this value would become a column (FS-7: `{}` alone does not, nor a field without a name)."""
    if not name:
        return False
    return (typing.all_text and not typing.drop_all_null) or finish(type_of(value, typing), typing) is not None


def to_spark(kind: Type) -> Any:
    """The Spark data type of a finished type."""
    from pyspark.sql import types as t

    if isinstance(kind, Struct):
        return t.StructType([t.StructField(name, to_spark(inner), True) for name, inner in kind.fields.items()])
    if isinstance(kind, Array):
        return t.ArrayType(to_spark(kind.element), True)
    if isinstance(kind, Decimal_):
        return t.DecimalType(kind.precision, kind.scale)
    plain = {BOOLEAN: t.BooleanType, INT: t.IntegerType, BIGINT: t.LongType, DOUBLE: t.DoubleType, STRING: t.StringType}
    plain |= {TIMESTAMP: t.TimestampType, TIMESTAMP_NTZ: t.TimestampNTZType, DATE: t.DateType}
    return plain[kind]()


class UncertainType(Exception):
    """Arrow's inference does not keep what decides about Spark's type: the block has to be inferred record by record."""


def from_arrow(column: Any, typing: TypeRules = _DEFAULT, depth: int = 1) -> Type:
    """Type of an Arrow array that pyarrow's JSON reader inferred. Raises Uncertain where the literal texts are needed to know it."""
    kind = column.type
    if pa.types.is_null(kind):
        return NULL
    if depth >= DEEPEST and pa.types.is_nested(kind):
        raise UncertainType
    if pa.types.is_struct(kind):
        return Struct({kind.field(i).name: from_arrow(column.field(i), typing, depth + 1) for i in range(kind.num_fields)})
    if pa.types.is_list(kind):
        return Array(from_arrow(column.flatten(), typing, depth + 1))
    if column.null_count == len(column):
        return NULL
    is_datetime = pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind)
    needs_literal = (is_datetime or pa.types.is_string(kind)) and (typing.timestamps is not None or typing.decimal_texts)
    if needs_literal or (typing.prefers_decimal and pa.types.is_floating(kind)):
        raise UncertainType
    if typing.primitives_as_string and not pa.types.is_string(kind):
        return STRING
    if pa.types.is_string(kind):
        return STRING if (pc.max(pc.binary_length(column)).as_py() or 0) > 0 else NULL
    if pa.types.is_floating(kind):
        if (pc.max(pc.abs(column)).as_py() or 0) >= float(1 << 63):
            raise UncertainType
        return DOUBLE
    if pa.types.is_integer(kind):
        return BIGINT
    if pa.types.is_boolean(kind):
        return BOOLEAN
    if is_datetime:
        return STRING  # pyarrow guesses dates and times from texts; Spark does not unless `inferTimestamp` is set
    raise UncertainType
