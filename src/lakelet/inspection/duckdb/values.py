"""Spark's types and values of them, as SQL of DuckDB; `NotSame`: why a query goes to Spark instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from lakelet.base.names import is_plain

if TYPE_CHECKING:
    import pyarrow as pa


class NotSame(Exception):
    """DuckDB is not known to give what Spark gives. The text says why: half a sentence, lower case, without a full stop."""


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
    if kinds & {"float", "double"} and all(kind.is_floating or kind.is_integer or kind.kind == "decimal" for kind in (left, right)):
        return DOUBLE
    if "decimal" in kinds and all(kind.kind == "decimal" or kind.is_integer for kind in (left, right)):
        one, two = as_decimal(left), as_decimal(right)
        scale = max(one.scale, two.scale)
        return bounded_decimal(max(one.precision - one.scale, two.precision - two.scale) + scale, scale)
    if kinds in ({"date", "timestamp"}, {"date", "timestamp_ntz"}):
        return left if right.kind == "date" else right
    raise NotSame(f"a value of the type {left} meets one of the type {right}")


def common_of(kinds: Sequence[Type]) -> Type:
    """The common type of several. Raises NotSame like `common`."""
    found = kinds[0]
    for kind in kinds[1:]:
        found = common(found, kind)
    return found


@dataclass(frozen=True)
class Value:
    """An expression in SQL of DuckDB.

    `sql` stands in parentheses where it needs them. `name`: what Spark calls a column of it that has no alias; None where that is not
    known. `constant`: the text of a literal, without quotes.
    """

    sql: str
    type: Type
    name: str | None = None
    constant: str | None = None


@dataclass(frozen=True)
class DuckColumn:
    """A column that can be named. `read`: where the names of columns that were asked for are collected, None if nobody wants to know."""

    name: str
    type: Type | None
    sql: str
    read: set[str] | None = field(default=None, compare=False)

    def value(self, written: str | None = None) -> Value:
        """The column as a value. Raises NotSame for one of a type that DuckDB does not have."""
        if self.type is None:
            raise NotSame(f"the column {self.name} has a type that only Spark reads")
        if self.read is not None:
            self.read.add(self.sql.rpartition(".")[2])
        return Value(self.sql, self.type, self.name if written is None else written)


@dataclass(frozen=True)
class Relation:
    """A relation in FROM: its alias as the query spells it, the text for DuckDB, its columns.

    `path`: the dotted name of a table without an alias, in lower case.
    """

    alias: str
    sql: str
    columns: tuple[DuckColumn, ...]
    path: tuple[str, ...] = ()

    def goes_by(self, prefix: Sequence[str]) -> bool:
        """Whether this may stand before the relation's columns: its alias, or the last parts of its name."""
        if len(prefix) == 1:
            return self.alias.lower() == prefix[0].lower()
        return self.path[-len(prefix) :] == tuple(part.lower() for part in prefix)


@dataclass(frozen=True)
class QueryScope:
    """The relations that an expression sees."""

    relations: tuple[Relation, ...] = ()

    def resolve(self, parts: Sequence[str]) -> Value:
        """The value that a dotted name means: a column, or a field of a struct. Raises NotSame where that is not clear."""
        for length in (3, 2):  # the name of a table goes before a column of type struct
            below = [relation for relation in self.relations if len(parts) > length and relation.goes_by(parts[:length])]
            if below:
                return self._value(_named(below, parts[length].lower()), parts, parts[length:])
        name = parts[0].lower()
        qualified = [relation for relation in self.relations if relation.goes_by(parts[:1])] if len(parts) > 1 else []
        plain = _named(self.relations, name)
        of_table = _named(qualified, parts[1].lower()) if qualified else []
        if qualified and plain and not of_table:
            raise NotSame(f"{parts[0]} is a table and a column")
        if qualified:
            found, rest = of_table, parts[1:]
        else:
            found, rest = plain, parts
        return self._value(found, parts, rest)

    @staticmethod
    def _value(found: Sequence[DuckColumn], parts: Sequence[str], rest: Sequence[str]) -> Value:
        """The value of the one column found, or of the field that the rest of the name leads to."""
        if len(found) != 1:
            raise NotSame(f"{'.'.join(parts)} is {'not a column' if not found else 'more than one column'} of the query's tables")
        value = found[0].value(rest[0])
        for part in rest[1:]:
            value = field_of(value, part)
        return value

    def has(self, name: str) -> bool:
        """Whether a column of that name, or several, can be seen."""
        return bool(_named(self.relations, name.lower()))

    def all_columns(self, of: Sequence[str] = ()) -> list[DuckColumn]:
        """The columns of all relations, or of the one that goes by a name. Raises NotSame where no or more than one does."""
        chosen = [relation for relation in self.relations if not of or relation.goes_by(of)]
        if not chosen or (of and len(chosen) > 1):
            raise NotSame(f"{'.'.join(of) or '*'} names no table of the query")
        return [column for relation in chosen for column in relation.columns]


def _named(relations: Iterable[Relation], name: str) -> list[DuckColumn]:
    return [column for relation in relations for column in relation.columns if column.name.lower() == name]


def field_of(value: Value, name: str) -> Value:
    """A field of a struct. Raises NotSame for other types and unknown fields."""
    found = [(field, kind) for field, kind in value.type.fields if field.lower() == name.lower()]
    if value.type.kind != "struct" or len(found) != 1:
        raise NotSame(f"{name} is not a field of a struct")
    field_name, kind = found[0]
    return Value(f"struct_extract({value.sql}, {text_literal(field_name)})", kind, name)


def only(node: exp.Expr, *known: str) -> None:
    """Raise NotSame if a node of the syntax tree has a part that is not among those `known`."""
    for key, part in node.args.items():
        if part and key not in known:
            raise NotSame(f"{node.key.upper()} with {key.rstrip('_').upper().replace('_', ' ')}")


def written(node: exp.Expr | None) -> str:
    """The name in an identifier. Raises NotSame for one that Spark reads only in back quotes."""
    if not isinstance(node, exp.Identifier):
        raise NotSame("a name is not a plain identifier")
    if not node.args.get("quoted") and not (is_plain(node.name) and node.name.isascii()):
        raise NotSame(f"the name {node.name} needs back quotes")
    return node.name


def text_literal(text: str) -> str:
    """The text as a literal of DuckDB."""
    return "'" + text.replace("'", "''") + "'"


def sort_key(value: Value) -> str:
    """What rows are sorted by. DuckDB takes a column that it sorts by from the sort's keys, which know one floating zero only."""
    if value.type.is_nested:
        raise NotSame(f"ORDER BY of a {value.type}")
    return f"CASE WHEN {value.sql} = 0 THEN 0 ELSE {value.sql} END" if value.type.is_floating else value.sql
