"""Types of Spark SQL as far as both engines have them, and the names that DuckDB, Arrow and Spark have for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelet.inspection.duck.refusal import NotSame

if TYPE_CHECKING:
    import pyarrow as pa

INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""Integer types, the narrowest first, and how many digits each has as a decimal."""
MOST_DIGITS = 38


@dataclass(frozen=True)
class Type:
    """`kind`: Spark's name of the type; `fields`: of a struct by name, `element` of an array, `key` and `value` of a map."""

    kind: str
    precision: int = 0
    scale: int = 0
    fields: tuple[tuple[str, Type], ...] = ()

    def __str__(self) -> str:
        inner = [str(kind) for _, kind in self.fields]
        if self.kind == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.kind == "struct":
            return "struct<" + ",".join(f"{name}:{kind}" for name, kind in self.fields) + ">"
        return f"{self.kind}<{','.join(inner)}>" if inner else self.kind

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGER_DIGITS

    @property
    def is_nested(self) -> bool:
        return bool(self.fields)

    @property
    def is_floating(self) -> bool:
        return self.kind in ("float", "double")


BOOLEAN, INT, BIGINT, DOUBLE, STRING = (Type(kind) for kind in ("boolean", "int", "bigint", "double", "string"))
DATE, TIMESTAMP, VOID = (Type(kind) for kind in ("date", "timestamp", "void"))

_SIMPLE = {
    "boolean": ("BOOLEAN", "bool_"),
    "tinyint": ("TINYINT", "int8"),
    "smallint": ("SMALLINT", "int16"),
    "int": ("INTEGER", "int32"),
    "bigint": ("BIGINT", "int64"),
    "float": ("FLOAT", "float32"),
    "double": ("DOUBLE", "float64"),
    "string": ("VARCHAR", "string"),
    "binary": ("BLOB", "binary"),
    "date": ("DATE", "date32"),
    "timestamp": ("TIMESTAMP", ""),
    "timestamp_ntz": ("TIMESTAMP", ""),
}
_DELTA_NAMES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}
_HARMLESS = ("comment", "delta.", "lakelet.")


def of_delta(kind: str | Mapping[str, Any]) -> Type:
    """The type of a Delta schema in its JSON form. Raises NotSame for one that DuckDB does not have."""
    if isinstance(kind, str):
        name = _DELTA_NAMES.get(kind, kind)
        if name.startswith("decimal(") and name.endswith(")"):
            precision, scale = name[len("decimal(") : -1].split(",")
            return Type("decimal", int(precision), int(scale))
        if name not in _SIMPLE:
            raise NotSame(f"a column has the type {name}")
        return Type(name)
    if kind["type"] == "struct":
        return Type("struct", fields=tuple(of_field(field) for field in kind["fields"]))
    if kind["type"] == "array":
        return Type("array", fields=(("element", of_delta(kind["elementType"])),))
    if kind["type"] == "map":
        return Type("map", fields=(("key", of_delta(kind["keyType"])), ("value", of_delta(kind["valueType"]))))
    raise NotSame(f"a column has the type {kind['type']}")


def of_field(field: Mapping[str, Any]) -> tuple[str, Type]:
    """Name and type of a field of a Delta schema. Raises NotSame where its metadata asks for more, as CHAR and collations do."""
    if any(not key.startswith(_HARMLESS) for key in field.get("metadata") or {}):
        raise NotSame(f"the column {field['name']} has a property that only Spark knows")
    return str(field["name"]), of_delta(field["type"])


def duck_name(kind: Type) -> str:
    """The type as DuckDB writes it. A TIMESTAMP is in DuckDB the time of its instant in UTC, the session's zone."""
    if kind.kind == "decimal":
        return f"DECIMAL({kind.precision},{kind.scale})"
    inner = [duck_name(of) for _, of in kind.fields]
    if kind.kind == "struct":
        return "STRUCT(" + ", ".join(f"{identifier(name)} {of}" for (name, _), of in zip(kind.fields, inner, strict=True)) + ")"
    if kind.kind == "array":
        return f"{inner[0]}[]"
    if kind.kind == "map":
        return f"MAP({inner[0]}, {inner[1]})"
    if kind.kind not in _SIMPLE:
        raise NotSame(f"a column has the type {kind.kind}")
    return _SIMPLE[kind.kind][0]


def arrow_type(kind: Type) -> pa.DataType:
    """The arrow type that Spark gives for it."""
    import pyarrow as pa

    if kind.kind == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    if kind.kind == "timestamp":
        return pa.timestamp("us", tz="UTC")
    if kind.kind == "timestamp_ntz":
        return pa.timestamp("us")
    inner = [arrow_type(of) for _, of in kind.fields]
    if kind.kind == "struct":
        return pa.struct([pa.field(name, of) for (name, _), of in zip(kind.fields, inner, strict=True)])
    if kind.kind == "array":
        return pa.list_(pa.field("element", inner[0]))
    if kind.kind == "map":
        return pa.map_(inner[0], inner[1])
    return getattr(pa, _SIMPLE[kind.kind][1])()


def identifier(name: str) -> str:
    """The name in DuckDB's quotes."""
    return '"' + name.replace('"', '""') + '"'


def as_decimal(kind: Type) -> Type:
    """The decimal type of an integer type; a decimal type itself."""
    return Type("decimal", INTEGER_DIGITS[kind.kind], 0) if kind.is_integer else kind


def bounded_decimal(precision: int, scale: int) -> Type:
    """Raises NotSame where Spark would give up digits to stay within 38."""
    if precision > MOST_DIGITS:
        raise NotSame(f"a decimal would need {precision} digits")
    return Type("decimal", precision, scale)


def common(left: Type, right: Type) -> Type:
    """The type to which both are widened without a loss. Raises NotSame where there is none, or Spark's rule is another one."""
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if left.is_integer and right.is_integer:
        return max(left, right, key=lambda kind: INTEGER_DIGITS[kind.kind])
    kinds = {left.kind, right.kind}
    if "double" in kinds and all(kind.kind == "double" or kind.is_integer or kind.kind == "decimal" for kind in (left, right)):
        return DOUBLE
    if "decimal" in kinds and all(kind.kind == "decimal" or kind.is_integer for kind in (left, right)):
        one, two = as_decimal(left), as_decimal(right)
        scale = max(one.scale, two.scale)
        return bounded_decimal(max(one.precision - one.scale, two.precision - two.scale) + scale, scale)
    if kinds == {"date", "timestamp"}:
        return TIMESTAMP
    raise NotSame(f"a value of the type {left} meets one of the type {right}")


def common_of(kinds: Sequence[Type]) -> Type:
    """The common type of several. Raises NotSame like `common`."""
    found = kinds[0]
    for kind in kinds[1:]:
        found = common(found, kind)
    return found
