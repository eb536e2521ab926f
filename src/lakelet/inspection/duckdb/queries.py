"""Queries of Spark SQL in SQL of DuckDB: text parsed, then SELECT, common table expressions, joins, set operations translated."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser

from lakelet.inspection.duckdb import functions
from lakelet.inspection.duckdb.expressions import Expressions, direction
from lakelet.inspection.duckdb.values import VOID, DuckColumn, NotSame, QueryScope, Relation, Type, Value, common, only, sort_key, written
from lakelet.inspection.scripts import no_query
from lakelet.language.sql_text.tokens import plain_tokens

_SURE_TEXT = re.compile(r"[^\\$\x00]*")
_HINT = "/*+"


class _Calls(Spark):
    """Spark's dialect, where a function is its name and its arguments: the nodes of other engines stand for several of them."""

    class Parser(SparkParser):
        FUNCTIONS: ClassVar = {}
        FUNCTION_PARSERS: ClassVar = {name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST")}
        NO_PAREN_FUNCTION_PARSERS: ClassVar = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}
        NO_PAREN_FUNCTIONS: ClassVar = {}


class _KeywordCalls(_Calls):
    """The same with functions whose arguments may have words between them, such as `extract(YEAR FROM day)`."""

    class Parser(_Calls.Parser):
        FUNCTION_PARSERS: ClassVar = {
            name: parser
            for name, parser in SparkParser.FUNCTION_PARSERS.items()
            if name in ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "POSITION", "SUBSTRING", "OVERLAY")
        }


def parsed(text: str, *, keywords: bool = False) -> exp.Expr:
    """The one query of a text. Raises NotSame where the text is not clear, is none, or has signs whose meaning is Spark's alone.

    `keywords`: read calls with words between their arguments, too. Raises SQL_FAILED for a text of comments.
    """
    if not _SURE_TEXT.fullmatch(text) or _HINT in text:
        raise NotSame("the text has a backslash, a dollar sign or a hint")
    signs = [token.upper for token in plain_tokens(text)]
    if not signs:
        raise no_query()
    for sign, after in zip(signs, [*signs[1:], ")"], strict=True):
        if sign == "," and after in (")", "FROM", "WHERE", ";"):
            raise NotSame("a comma ends a list")
    try:
        found = (_KeywordCalls() if keywords else _Calls()).parse(text)
    except SqlglotError:
        raise NotSame("the query does not parse in the common part of SQL") from None
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        raise NotSame("the text is not one query")
    return found[0]


_CLAUSES = ("with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "order", "limit", "offset")
_SET_CLAUSES = ("with_", "this", "expression", "distinct", "order", "limit", "offset")
_JOINS = {
    ("", ""): "JOIN", ("", "INNER"): "JOIN", ("", "CROSS"): "CROSS JOIN",
    ("LEFT", ""): "LEFT JOIN", ("LEFT", "OUTER"): "LEFT JOIN", ("RIGHT", ""): "RIGHT JOIN", ("RIGHT", "OUTER"): "RIGHT JOIN",
    ("FULL", ""): "FULL JOIN", ("FULL", "OUTER"): "FULL JOIN",
    ("LEFT", "SEMI"): "SEMI JOIN", ("LEFT", "ANTI"): "ANTI JOIN", ("", "SEMI"): "SEMI JOIN", ("", "ANTI"): "ANTI JOIN",
}  # fmt: skip
_SET_OPERATIONS: dict[type[exp.Expr], str] = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}


@dataclass(frozen=True)
class Query:
    """A translated query. Its columns are called c0, c1, … in DuckDB; `columns`: what Spark calls them ("" where that is not known)."""

    sql: str
    columns: tuple[tuple[str, Type], ...]

    def as_relation(self, alias: str, internal: str) -> Relation:
        return Relation(alias, f"({self.sql}) AS {internal}", _columns(self.columns, internal))


def _columns(columns: tuple[tuple[str, Type], ...], internal: str) -> tuple[DuckColumn, ...]:
    return tuple(DuckColumn(name, kind, f"{internal}.c{at}") for at, (name, kind) in enumerate(columns))


@dataclass(frozen=True)
class StoredRelation:
    """A table that queries name. `name`: the relation in DuckDB; `read`: collects the columns (c0, c1, …) that are asked for."""

    name: str
    columns: tuple[tuple[str, Type | None], ...]
    read: set[str] = field(default_factory=set, compare=False)


Find = Callable[[tuple[str, ...]], "StoredRelation | Query"]
"""Function that resolves a table's name to a table or the translated query of a view. Raises NotSame."""


@dataclass(frozen=True)
class Queries:
    """Translates queries whose table names `find` knows. `ctes`: the common table expressions that can be seen, by lower-case name."""

    find: Find
    ctes: Mapping[str, Query] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def query(self, node: exp.Expr) -> Query:
        """Translate a query. Raises NotSame where a part of it is not known to mean the same."""
        if isinstance(node, exp.Subquery):
            only(node, "this")
            return self.query(node.this)
        within, head = self._with(node.args.get("with_"))
        if isinstance(node, exp.Select):
            found = _Select(within, node).translated()
        elif type(node) in _SET_OPERATIONS:
            found = within._set_operation(node)
        else:
            raise NotSame(f"{node.key} in place of a SELECT")
        return replace(found, sql=head + found.sql)

    def _with(self, node: exp.Expr | None) -> tuple[Queries, str]:
        if node is None:
            return self, ""
        only(node, "expressions")
        within, texts = self, []
        for cte in node.expressions:
            only(cte, "this", "alias")
            only(cte.args["alias"], "this")
            name = written(cte.args["alias"].this)
            query, internal = within.query(cte.this), f"w{next(self.numbers)}"
            texts.append(f"{internal} AS ({query.sql})")
            within = replace(within, ctes={**within.ctes, name.lower(): Query(f"SELECT * FROM {internal}", query.columns)})
        return within, f"WITH {', '.join(texts)} "

    def relation(self, node: exp.Expr) -> Relation:
        """Translate a relation of FROM or JOIN."""
        internal = f"r{next(self.numbers)}"
        alias = node.args.get("alias")
        if alias is not None:
            only(alias, "this")
        given = written(alias.this) if alias is not None else None
        if isinstance(node, exp.Subquery):
            only(node, "this", "alias")
            return self.query(node.this).as_relation(given or "", internal)
        if not isinstance(node, exp.Table):
            raise NotSame(f"{node.key} in FROM")
        only(node, "this", "db", "catalog", "alias")
        parts = tuple(written(node.args[key]) for key in ("catalog", "db", "this") if node.args.get(key))
        name = given or parts[-1]
        found = (self.ctes.get(parts[0].lower()) if len(parts) == 1 else None) or self.find(parts)
        if isinstance(found, Query):
            return found.as_relation(name, internal)
        columns = (DuckColumn(of, kind, f"{internal}.c{at}", found.read) for at, (of, kind) in enumerate(found.columns))
        path = () if given else tuple(part.lower() for part in parts)
        return Relation(name, f"{found.name} AS {internal}", tuple(columns), path)

    def one_column(self, node: exp.Expr) -> tuple[str, Type]:
        """A subquery within an expression."""
        found = self.query(node)
        if len(found.columns) != 1:
            raise NotSame("a subquery of several columns")
        return found.sql, found.columns[0][1]

    def _set_operation(self, node: exp.Expr) -> Query:
        only(node, *_SET_CLAUSES)
        sides = [node.this, node.expression]
        if any(type(side) in _SET_OPERATIONS and type(side) is not type(node) for side in sides) or type(sides[1]) in _SET_OPERATIONS:
            raise NotSame("several set operations without parentheses")
        left, right = (self.query(side) for side in sides)
        if len(left.columns) != len(right.columns):
            raise NotSame("a set operation over other numbers of columns")
        kinds = [common(one, two) for (_, one), (_, two) in zip(left.columns, right.columns, strict=True)]
        distinct = bool(node.args.get("distinct"))
        if any((distinct or not isinstance(node, exp.Union)) and not _comparable(kind) for kind in kinds):
            raise NotSame("a set operation over such types")
        word = _SET_OPERATIONS[type(node)] + ("" if distinct else " ALL")
        text = f"{_as_types(left, kinds)} {word} {_as_types(right, kinds)}"
        columns = tuple((name, kind) for (name, _), kind in zip(left.columns, kinds, strict=True))
        order = [f"{_position(item.this, columns)} {direction(item)}" for item in _ordered(node)]
        whole = f"SELECT * FROM ({text}) AS s{next(self.numbers)}"
        return Query(whole + (f" ORDER BY {', '.join(order)}" if order else "") + _limits(node), columns)


def _as_types(query: Query, kinds: list[Type]) -> str:
    """The query with its columns in these types. Wider types only: a text is not a date here."""
    from lakelet.inspection.duckdb.casts import widened

    texts = [widened(Value(f"c{at}", kind), to) for at, ((_, kind), to) in enumerate(zip(query.columns, kinds, strict=True))]
    return "(SELECT " + ", ".join(f"{text} AS c{at}" for at, text in enumerate(texts)) + f" FROM ({query.sql}) AS s)"


def _comparable(kind: Type) -> bool:
    return not kind.is_nested and not kind.is_floating and kind != VOID


def _ordered(node: exp.Expr) -> list[exp.Expr]:
    order = node.args.get("order")
    if order is None:
        return []
    only(order, "expressions")
    return list(order.expressions)


def _position(node: exp.Expr, columns: tuple[tuple[str, Type], ...]) -> int:
    """The place of a column of the result that an ORDER BY names by number or name."""
    at = _ordinal(node, len(columns))
    if at is None:
        if not isinstance(node, exp.Column) or node.args.get("table"):
            raise NotSame("an expression in ORDER BY after DISTINCT or a set operation")
        named = [place for place, (name, _) in enumerate(columns) if name.lower() == written(node.this).lower()]
        if len(named) != 1:
            raise NotSame(f"ORDER BY {node.name}")
        at = named[0]
    if columns[at][1].is_nested or columns[at][1].is_floating:
        raise NotSame(f"ORDER BY of a {columns[at][1]}")
    return at + 1


def _ordinal(node: exp.Expr, count: int) -> int | None:
    """The place, from zero, that a plain number means."""
    if not isinstance(node, exp.Literal) or node.args.get("is_string"):
        return None
    if not str(node.this).isdecimal() or not 1 <= int(str(node.this)) <= count:
        raise NotSame(f"the position {node.this}")
    return int(str(node.this)) - 1


def _limits(node: exp.Expr) -> str:
    text = ""
    for clause in ("limit", "offset"):
        found = node.args.get(clause)
        if found is None:
            continue
        only(found, "expression")
        value = found.expression
        if not isinstance(value, exp.Literal) or not str(value.this).isdecimal():
            raise NotSame(f"{clause.upper()} that is not a plain number")
        text += f" {clause.upper()} {value.this}"
    return text


class _Select:
    """Translates one SELECT."""

    def __init__(self, queries: Queries, node: exp.Expr) -> None:
        only(node, *_CLAUSES)
        self._queries, self._node = queries, node
        self._from = ""
        self._scope = self._sources()
        self._rows = Expressions(self._scope, queries.one_column)

    def translated(self) -> Query:
        node = self._node
        items = list(self._items())
        groups = self._groups(items)
        expressions = replace(self._rows, groups=groups, aggregates=groups is not None, windows=groups is None)
        values = [self._shown(expressions, item, alias) for item, alias in items]
        columns = tuple((value.name or "", value.type) for value in values)
        distinct = node.args.get("distinct")
        if distinct is not None:
            only(distinct)
            if not all(_comparable(kind) for _, kind in columns):
                raise NotSame("DISTINCT over such types")
        text = "SELECT " + ("DISTINCT " if distinct is not None else "")
        text += ", ".join(f"{value.sql} AS c{at}" for at, value in enumerate(values)) + self._from
        if node.args.get("where") is not None:
            text += f" WHERE {self._rows.condition(node.args['where'].this)}"
        if groups:
            text += f" GROUP BY {', '.join(sorted(groups))}"
        named = replace(expressions, aliases=_aliases(values), windows=False)
        if node.args.get("having") is not None:
            if groups is None:
                raise NotSame("HAVING without groups")
            text += f" HAVING {named.condition(node.args['having'].this)}"
        order = [f"{self._key(named, item.this, columns, values, distinct is not None)} {direction(item)}" for item in _ordered(node)]
        return Query(text + (f" ORDER BY {', '.join(order)}" if order else "") + _limits(node), columns)

    def _sources(self) -> QueryScope:
        node = self._node.args.get("from_")
        joins = self._node.args.get("joins") or []
        if node is None:
            if joins:
                raise NotSame("JOIN without FROM")
            return QueryScope()
        only(node, "this")
        nested = list(node.this.args.pop("joins", None) or []) if isinstance(node.this, exp.Table) else []
        first = self._queries.relation(node.this)
        self._from, seen = f" FROM {first.sql}", [first]
        commas = [join for join in joins if not join.args.get("on") and not join.args.get("side")]
        if nested or (commas and len(commas) != len(joins)):
            raise NotSame("tables after a comma beside joins")
        for join in joins:
            self._join(join, seen)
        names = [relation.alias.lower() for relation in seen if relation.alias]
        if len(set(names)) != len(names):
            raise NotSame("two tables of one name")
        return QueryScope(tuple(seen))

    def _join(self, join: exp.Expr, seen: list[Relation]) -> None:
        only(join, "this", "on", "side", "kind")
        kind = (str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper())
        on = join.args.get("on")
        if kind not in _JOINS or (on is None) != (_JOINS[kind] == "CROSS JOIN"):
            raise NotSame(f"{' '.join(kind).strip() or 'a'} JOIN of this form")
        relation = self._queries.relation(join.this)
        self._from += f" {_JOINS[kind]} {relation.sql}"
        if on is not None:
            condition = Expressions(QueryScope((*seen, relation)), _no_subquery).condition(on)
            self._from += f" ON {condition}"
        if _JOINS[kind] not in ("SEMI JOIN", "ANTI JOIN"):
            seen.append(relation)

    def _items(self) -> Iterator[tuple[exp.Expr | DuckColumn, str | None]]:
        """The expressions of the list with their aliases; columns of the tables for stars."""
        if not self._node.expressions:
            raise NotSame("SELECT of nothing")
        for item in self._node.expressions:
            alias = None
            if isinstance(item, exp.Alias):
                only(item, "this", "alias")
                item, alias = item.this, written(item.args["alias"])
            star = item.this if isinstance(item, exp.Column) else item
            if isinstance(star, exp.Star):
                only(star)
                only(item, *(("this", "table", "db", "catalog") if star is not item else ()))
                of = [written(item.args[key]) for key in ("catalog", "db", "table") if item.args.get(key)] if star is not item else []
                yield from ((column, None) for column in self._scope.all_columns(of))
                continue
            yield item, alias

    @staticmethod
    def _shown(expressions: Expressions, item: exp.Expr | DuckColumn, alias: str | None) -> Value:
        if isinstance(item, DuckColumn):
            value = item.value()
            if expressions.groups is not None and value.sql not in expressions.groups:
                raise NotSame("a star beside groups")
        else:
            value = expressions.of(item)
            if isinstance(item, (exp.Cast, exp.TryCast)):
                value = replace(value, name=_cast_name(item))
        return value if alias is None else Value(value.sql, value.type, alias)

    def _groups(self, items: list[tuple[exp.Expr | DuckColumn, str | None]]) -> frozenset[str] | None:
        """The texts of the grouping expressions; none of them for one group of all rows; None where nothing is grouped."""
        node, having = self._node.args.get("group"), self._node.args.get("having")
        if node is None:
            asked = [item for item, _ in items if isinstance(item, exp.Expr)] + ([having] if having is not None else [])
            asked += [item.this for item in _ordered(self._node)]
            return frozenset() if any(_has_aggregate(item) for item in asked) else None
        only(node, "expressions")
        values = [self._group(key, items) for key in node.expressions]
        if not values or not all(_comparable(value.type) for value in values):
            raise NotSame("GROUP BY over such types")
        return frozenset(value.sql for value in values)

    def _group(self, key: exp.Expr, items: list[tuple[exp.Expr | DuckColumn, str | None]]) -> Value:
        at = _ordinal(key, len(items))
        if at is None and isinstance(key, exp.Column) and not key.args.get("table") and not self._scope.has(key.name):
            named = [place for place, (_, alias) in enumerate(items) if alias is not None and alias.lower() == written(key.this).lower()]
            at = named[0] if len(named) == 1 else None
        if at is None:
            return self._rows.of(key)
        item = items[at][0]
        return item.value() if isinstance(item, DuckColumn) else self._rows.of(item)

    @staticmethod
    def _key(expressions: Expressions, node: exp.Expr, columns: tuple[tuple[str, Type], ...], values: list[Value], distinct: bool) -> str:
        """What an ORDER BY sorts by: a column of the result by its place, else an expression."""
        if distinct:
            return str(_position(node, columns))
        at = _ordinal(node, len(columns))
        if isinstance(node, exp.Column) and not node.args.get("table"):
            named = {value.sql: at for at, value in enumerate(values) if (value.name or "").lower() == written(node.this).lower()}
            if len(named) > 1:
                raise NotSame(f"ORDER BY {node.name}")
            at = next(iter(named.values()), None)
        if at is not None:
            return sort_key(values[at]) if values[at].type.is_floating else str(_position(exp.Literal.number(at + 1), columns))
        found = expressions.of(node)
        if found.constant is not None:
            raise NotSame("ORDER BY of a constant")
        return sort_key(found)


def _cast_name(node: exp.Expr) -> str | None:
    """What Spark calls a column that is a cast: the name of the column that is cast; of other expressions not known here."""
    inner = node.this
    return written(inner.this) if isinstance(inner, exp.Column) and not inner.args.get("table") else None


def _aliases(values: list[Value]) -> Mapping[str, Value]:
    """The columns of a list by name; a name of two columns means neither."""
    names = [value.name.lower() for value in values if value.name]
    return {value.name.lower(): value for value in values if value.name and names.count(value.name.lower()) == 1}


def _no_subquery(node: exp.Expr) -> tuple[str, Type]:
    raise NotSame("a subquery in ON")


def _has_aggregate(node: exp.Expr) -> bool:
    """Whether an aggregate function stands in an expression, outside of windows and subqueries."""
    if isinstance(node, (exp.Query, exp.Window)):
        return False
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in functions.NAMES:
        return True
    return any(_has_aggregate(child) for child in node.iter_expressions())
