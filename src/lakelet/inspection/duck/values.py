"""Translated expressions, and the columns that a part of a query sees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from lakelet.base.names import is_plain
from lakelet.inspection.duck.refusal import NotSame
from lakelet.inspection.duck.spark_types import Type


@dataclass(frozen=True)
class Value:
    """An expression in DuckDB's words.

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
