"""Tables and columns of a query that do not exist, found from stored schemas before Spark starts.

Only what is certain is an error. A part of a query whose meaning is not known here may have any name: Spark decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakelet.base.errors import LakeletError, Location, nearest_names
from lakelet.base.names import Namespace, TableName, dotted
from lakelet.base.text import listed
from lakelet.files.delta_rs import open_or_none, schema_fields
from lakelet.files.paths import AnyPath
from lakelet.inspection.duckdb.queries import parsed
from lakelet.inspection.duckdb.tables import view_columns
from lakelet.inspection.duckdb.values import NotSame
from lakelet.inspection.scripts import only_queries, script
from lakelet.inspection.table_lookup import find_stored, path_of, unknown_table, unwritten
from lakelet.language.sql_text.tokens import all_tokens, name_end, plain_tokens
from lakelet.storage.eventlog import views as event_views
from lakelet.storage.information_schema import asked_for, described, rows_of
from lakelet.storage.published_views import PublishedView, load_views
from lakelet.storage.root import Storage, new_table_path

_BEGINNINGS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE", "(", "CREATE", "USE")
_FORMATS = frozenset(("delta", "parquet", "json", "csv", "text", "orc", "avro", "xml", "binaryfile"))
_WORDS_OF_SPARK = frozenset(
    (
        "all", "current_catalog", "current_database", "current_date", "current_path", "current_role", "current_schema", "current_time",
        "current_timestamp", "current_user", "date", "default", "grouping__id", "localtime", "localtimestamp", "now", "session_user",
        "spark_grouping_id", "time", "timestamp", "timestamp_ltz", "timestamp_ntz", "user",
    )
)  # fmt: skip
"""Words that look like columns to the parser and are functions, constants or types."""
_FILE_FACTS = "_metadata"
"""The hidden column of each table."""
_TAKE_UNITS = {
    **dict.fromkeys(("date_add", "date_diff", "dateadd", "datediff", "timestampadd", "timestampdiff"), 3),
    **dict.fromkeys(("extract", "date_part"), 2),
}
"""Functions whose first argument is a word such as DAY, and how many arguments they have then."""
_TABLE_PARTS = ("this", "db", "catalog", "alias", "joins", "sample")
_SHOWN_COLUMNS = 8
QUERY = "the query"
"""Name of the text where an error says its file."""


def refuse_unknown_names(storage: AnyPath, text: str, space: Namespace | None = None) -> None:
    """Raise UNKNOWN_TABLE or UNKNOWN_COLUMN for the first such name of a query, SQL_FAILED for a text that cannot be a query.

    `space`: completes names, in place of the storage's namespace. A text with views or parts that are not understood passes. The error of
    a text of several lines has the place of the name.
    """
    first = next((token for token in plain_tokens(text)), None)
    if first is not None and first.upper.isalpha() and first.upper not in _BEGINNINGS:
        raise only_queries(nearest_names(first.value, _BEGINNINGS, limit=1, cutoff=0.75))
    asked = script(text)
    if asked.views:
        return
    with suppress(NotSame, SqlglotError, RecursionError, ValueError):
        found = Storage(storage)
        own = asked.query.namespace(space or found.registry().namespace)
        try:
            _Names(found, own).check(_parsed(asked.query.query))
        except _UnknownName as problem:
            raise problem.error(text, text.find(asked.query.query)) from None


def _parsed(query: str) -> exp.Expr:
    """The query without its hints and with other texts in place of those that only Spark reads. Raises NotSame."""
    plain = query
    for token in all_tokens(query):
        if token.kind == "hint":
            plain = plain[: token.start] + " " * (token.stop - token.start) + plain[token.stop :]
        elif token.kind == "string" and ("\\" in query[token.start : token.stop] or query[token.start] == "$"):
            plain = f"{plain[: token.start]}'{'x' * (token.stop - token.start - 2)}'{plain[token.stop :]}"
    try:
        return parsed(plain)
    except NotSame:
        return parsed(plain, keywords=True)


class _UnknownName(Exception):
    """An error without its place. `at`: where the name begins in the query, None where that is not known."""

    def __init__(self, problem: LakeletError, at: int | None) -> None:
        self.problem, self.at = problem, at

    def error(self, text: str, offset: int) -> LakeletError:
        """The error with its place in a text in which the query begins at `offset`."""
        if self.at is not None and offset >= 0:
            self.problem.where = place_in(text, offset + self.at)
        return self.problem


def place_in(text: str, at: int) -> Location | None:
    """The place of a character of a query; None where the query is one line."""
    lines = text.strip().splitlines()
    if len(lines) < 2:
        return None
    before = text[:at].splitlines() or [""]
    number = len(before) + (1 if text[:at].endswith("\n") else 0)
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return Location(QUERY, number, column, source=text.splitlines()[number - 1])


@dataclass(frozen=True)
class _Relation:
    """What stands in a FROM clause. `path`: lower-case parts of its name, or its alias; `columns`: None where they are not known."""

    path: tuple[str, ...]
    columns: tuple[str, ...] | None

    def has(self, column: str) -> bool:
        return self.columns is None or column.lower() == _FILE_FACTS or column.lower() in map(str.lower, self.columns)

    def is_called(self, parts: tuple[str, ...]) -> bool:
        return bool(self.path) and self.path[-len(parts) :] == parts


@dataclass(frozen=True)
class _Scope:
    """The relations that an expression sees, the names of aliases and of parameters of lambda functions; `outer`: the query around it."""

    relations: tuple[_Relation, ...]
    names: frozenset[str] = frozenset()
    outer: _Scope | None = None

    def chain(self) -> Iterator[_Scope]:
        yield self
        if self.outer is not None:
            yield from self.outer.chain()

    def has(self, parts: tuple[str, ...]) -> bool:
        """Whether a dotted name can be a column, a field of one, or an alias."""
        lower = tuple(part.lower() for part in parts)
        if lower[0] == "live" and len(parts) > 2 and self.has(parts[1:]):
            return True
        for scope in self.chain():
            if lower[0] in scope.names or any(relation.has(parts[0]) for relation in scope.relations):
                return True
            for end in range(1, len(parts)):
                if any(relation.is_called(lower[:end]) and relation.has(parts[end]) for relation in scope.relations):
                    return True
        return False

    def has_rows(self, parts: tuple[str, ...]) -> bool:
        """Whether `parts.*` can be the columns of a relation, or the fields of a struct."""
        lower = tuple(part.lower() for part in parts)
        called = any(relation.is_called(lower) for scope in self.chain() for relation in scope.relations)
        return called or self.has(parts) or any(relation.columns is None for scope in self.chain() for relation in scope.relations)

    def columns(self) -> tuple[str, ...]:
        return tuple(column for scope in self.chain() for relation in scope.relations for column in relation.columns or ())


class _Names:
    """Follows the names of a query. `ctes`: the common table expressions that can be seen, and their columns."""

    def __init__(self, storage: Storage, space: Namespace | None, within: tuple[PublishedView, ...] = ()) -> None:
        self._storage, self._registry, self._within = storage, storage.registry(), within
        self._space = space or self._registry.namespace

    def check(self, node: exp.Expr) -> tuple[str, ...] | None:
        """Return the columns of a query's result, None where they are not known. Raises UNKNOWN_TABLE, UNKNOWN_COLUMN."""
        return self._query(node, {}, None)

    def _query(self, node: exp.Expr, ctes: dict[str, tuple[str, ...] | None], outer: _Scope | None) -> tuple[str, ...] | None:
        ctes = self._with_ctes(node.args.get("with_"), ctes, outer)
        if isinstance(node, exp.Subquery):
            if isinstance(node.this, exp.Table):  # a join in parentheses
                return self._merged(self._relations(node.this, ctes, outer))
            columns = self._query(node.this, ctes, outer)
            return None if node.args.get("pivots") else columns
        if isinstance(node, exp.SetOperation):
            columns = self._query(node.this, ctes, outer)
            self._query(node.expression, ctes, outer)
            if node.args.get("by_name"):
                return None
            self._order(node.args.get("order"), columns)
            return columns
        return self._select(node, ctes, outer) if isinstance(node, exp.Select) else None

    @staticmethod
    def _order(node: exp.Expr | None, columns: tuple[str, ...] | None) -> None:
        """What a set operation is sorted by: a column of its result."""
        for item in node.expressions if node is not None else ():
            if isinstance(item.this, exp.Column) and len(item.this.parts) == 1:
                _Names._column(item.this, _Scope((_Relation((), columns),)))

    def _with_ctes(
        self, node: exp.Expr | None, ctes: dict[str, tuple[str, ...] | None], outer: _Scope | None
    ) -> dict[str, tuple[str, ...] | None]:
        if node is None:
            return ctes
        found = dict(ctes)
        if node.args.get("recursive"):
            return {**found, **{cte.alias.lower(): None for cte in node.expressions}}
        for cte in node.expressions:
            columns = self._query(cte.this, found, outer)
            found[cte.alias.lower()] = _given_columns(cte.args.get("alias")) or columns
        return found

    def _select(self, node: exp.Select, ctes: dict[str, tuple[str, ...] | None], outer: _Scope | None) -> tuple[str, ...] | None:
        relations: list[_Relation] = []
        source = node.args.get("from_")
        if source is not None:
            relations += self._relations(source.this, ctes, outer)
        joins = node.args.get("joins") or []
        for join in joins:
            joined = self._relations(join.this, ctes, outer)
            _joined_by(join.args.get("using") or (), relations, joined)
            relations += joined
        relations += [_lateral_view(lateral.args.get("alias")) for lateral in node.args.get("laterals") or ()]
        names = frozenset(item.alias.lower() for item in node.expressions if isinstance(item, exp.Alias) and item.alias)
        names |= {given.name.lower() for item in node.expressions if isinstance(item, exp.Aliases) for given in item.expressions}
        scope = _Scope(tuple(relations), names, outer)
        roots = [child for key, child in _children(node) if key not in ("from_", "joins", "laterals", "with_", "hint")]
        for root in [*roots, *(join.args["on"] for join in joins if join.args.get("on") is not None)]:
            self._expression(root, scope, ctes)
        return self._result(node, relations)

    def _relations(self, node: exp.Expr, ctes: dict[str, tuple[str, ...] | None], outer: _Scope | None) -> list[_Relation]:
        """A relation of FROM or JOIN, and those joined to it in its parentheses."""
        alias = node.args.get("alias")
        name = alias.name.lower() if alias is not None and alias.this is not None else ""
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table) and alias is None:  # a join in parentheses
            return self._relations(node.this, ctes, outer)
        if isinstance(node, exp.Subquery):
            columns = _given_columns(alias) or self._query(node, ctes, outer)
            return [_Relation((name,) if name else (), None if node.args.get("pivots") else columns)]
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):  # VALUES, table functions, LATERAL
            return [_Relation((name,) if name else (), _given_columns(alias))]
        parts = tuple(node.args[key].name for key in ("catalog", "db", "this") if node.args.get(key))
        columns, path = self._table(parts, ctes)
        is_plain = all(not value for key, value in node.args.items() if key not in _TABLE_PARTS)
        shown = _given_columns(alias) or (columns if is_plain else None)
        found = [_Relation((name,) if name else path, shown)]
        return found + [one for join in node.args.get("joins") or () for one in self._relations(join.this, ctes, outer)]

    def _table(self, parts: tuple[str, ...], ctes: dict[str, tuple[str, ...] | None]) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
        """The columns of a named table and the path that qualifies them. Raises UNKNOWN_TABLE."""
        own = tuple(part.lower() for part in parts)
        if len(parts) == 1 and own[0] in ctes:
            return ctes[own[0]], own
        if own[0] == "stream" or (len(parts) == 2 and own[0] in _FORMATS):
            return None, own
        asked = parts[1:] if len(parts) > 1 and own[0] == "live" else parts
        if len(asked) > 3:
            raise unknown_table(".".join(parts), self._registry)
        full = TableName(*(self._space.catalog, self._space.schema)[: 3 - len(asked)], *asked)
        path = tuple(part.lower() for part in (full.catalog, full.schema, full.name))
        stored = find_stored(self._registry, full)
        if stored is not None:
            return _columns_at(path_of(self._storage.root, stored), stored.name), path
        view = load_views(self._storage).get(full.key)
        if view is not None:
            return self._view(view), path
        sink = self._storage.at(new_table_path(full))
        if open_or_none(sink) is not None:
            return _columns_at(sink, str(full)), path
        of_events = event_views.relation_of(asked)
        if of_events is not None:
            if of_events == event_views.SOURCE:
                return _columns_at(self._storage.events, "the event log"), path
            return view_columns(of_events), path
        described_as = asked_for(full)
        if described_as is not None:
            return tuple(rows_of(described_as, described(self._storage)).column_names), path
        raise unknown_table(".".join(parts), self._registry)

    def _view(self, view: PublishedView) -> tuple[str, ...] | None:
        """The columns of a published view; its names mean what they mean where it was declared. What is wrong in it, Spark says."""
        if view in self._within:
            return None
        with suppress(NotSame, SqlglotError, LakeletError):
            return _Names(self._storage, Namespace(view.catalog, view.schema), (*self._within, view)).check(parsed(view.query))
        return None

    @staticmethod
    def _merged(relations: list[_Relation]) -> tuple[str, ...] | None:
        if any(relation.columns is None for relation in relations):
            return None
        return tuple(column for relation in relations for column in relation.columns or ())

    def _result(self, node: exp.Select, relations: list[_Relation]) -> tuple[str, ...] | None:
        """The columns of a SELECT; None where Spark makes a name, or a star has changes."""
        columns: list[str] = []
        for item in node.expressions:
            if isinstance(item, exp.Star) and not any(item.args.values()):
                merged = self._merged(relations)
                if merged is None:
                    return None
                columns += merged
            elif isinstance(item, exp.Alias) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Identifier)):
                columns.append(item.alias if isinstance(item, exp.Alias) else item.name)
            else:
                return None
        return tuple(columns)

    def _expression(self, node: exp.Expr, scope: _Scope, ctes: dict[str, tuple[str, ...] | None]) -> None:
        if isinstance(node, exp.Query):
            self._query(node, ctes, scope)
            return
        if isinstance(node, exp.Lambda):
            scope = replace(scope, names=scope.names | {one.name.lower() for one in node.expressions})
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
            self._column(node, scope)
            return
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star) and len(node.parts) > 1:
            _rows_of(node, scope)
        with_unit = isinstance(node, exp.Anonymous) and _TAKE_UNITS.get(str(node.this).lower()) == len(node.expressions)
        for at, (_, child) in enumerate(_children(node)):
            if not (with_unit and at == 0 and isinstance(child, exp.Column)):
                self._expression(child, scope, ctes)

    @staticmethod
    def _column(node: exp.Column, scope: _Scope) -> None:
        parts = tuple(part.name for part in node.parts)
        if scope.has(parts) or (len(parts) == 1 and parts[0].lower() in _WORDS_OF_SPARK):
            return
        if not any(one.relations for one in scope.chain()):
            return  # SELECT without FROM: words of Spark that are not known here
        raise _UnknownName(_unknown_column(parts, scope), _start(node.parts[0]))


def _start(node: exp.Expr) -> int | None:
    found = node.meta.get("start")
    return int(found) if found is not None else None


def _rows_of(node: exp.Column, scope: _Scope) -> None:
    """`name.*`: raise for a name that is neither a relation nor a column of the scope."""
    parts = tuple(part.name for part in node.parts[:-1])
    if not scope.has_rows(parts):
        known = [one.path[-1] for one in scope.relations if one.path]
        raise _UnknownName(unknown_rows(parts, nearest_names(parts[-1], [*known, *scope.columns()])), _start(node.parts[0]))


def unknown_rows(parts: tuple[str, ...], nearest: Sequence[str]) -> LakeletError:
    """The error for `name.*` of a name that is neither a table nor a column."""
    what = f"there is no table and no column {dotted(parts)} in the query, for {dotted(parts)}.*"
    return LakeletError("UNKNOWN_COLUMN", what, nearest=nearest)


def _joined_by(using: Iterable[exp.Expr], left: Sequence[_Relation], right: Sequence[_Relation]) -> None:
    """Raise for a column of USING that one side of the join does not have."""
    for column in using:
        for side in (left, right):
            if isinstance(column, exp.Identifier) and not any(relation.has(column.name) for relation in side):
                raise _UnknownName(_unknown_column((column.name,), _Scope(tuple(side))), _start(column))


def _unknown_column(parts: tuple[str, ...], scope: _Scope) -> LakeletError:
    columns = tuple(dict.fromkeys(scope.columns()))
    named = [relation for relation in scope.relations if relation.path]
    of = next((one for one in named for end in range(1, len(parts)) if one.is_called(tuple(p.lower() for p in parts[:end]))), None)
    where = [of] if of is not None else named
    nearest = nearest_names(parts[-1], (of.columns or ()) if of is not None else columns)
    shown = " or ".join(dict.fromkeys(one.path[-1] for one in where)) or QUERY
    return unknown_column(parts, shown, nearest, columns)


def unknown_column(parts: Sequence[str], of: str, nearest: Sequence[str], columns: Sequence[str]) -> LakeletError:
    """The error for a column that does not exist. `of`: the tables that were searched; `columns`: theirs, listed if none is near."""
    todo = None if nearest or not columns else f"Columns: {listed(columns, _SHOWN_COLUMNS)}"
    return LakeletError("UNKNOWN_COLUMN", f"there is no column {dotted(parts)} in {of}", nearest=nearest, todo=todo)


def name_starts(text: str, parts: Sequence[str]) -> list[int]:
    """Where a dotted name stands in a query."""
    found, lower = plain_tokens(text), [part.lower() for part in parts]
    ends = {at: name_end(found, at) for at in range(len(found))}
    return [
        found[at].start
        for at, end in ends.items()
        if [token.value.lower() for token in found[at:end:2]] == lower and (at == 0 or found[at - 1].upper != ".")
    ]


def _children(node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    for key, value in node.args.items():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expr):
                yield key, child


def _lateral_view(alias: exp.Expr | None) -> _Relation:
    return _Relation((alias.name.lower(),) if alias is not None and alias.this is not None else (), _given_columns(alias))


def _given_columns(alias: exp.Expr | None) -> tuple[str, ...] | None:
    """The columns of `AS name(one, two)`."""
    given: Iterable[exp.Expr] = (alias.args.get("columns") if alias is not None else None) or ()
    return tuple(column.name for column in given) or None


def _columns_at(path: AnyPath, shown: str) -> tuple[str, ...]:
    table = open_or_none(path)
    if table is None:
        raise unwritten(shown)
    return tuple(field["name"] for field in schema_fields(table))
