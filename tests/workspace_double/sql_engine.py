"""SELECT statements of Databricks SQL, answered by SQLite.

sqlglot reads the statement, resolves its columns, says their types and writes it for SQLite. What either of them cannot do is answered
with 501: the double never guesses. Known to differ: decimals are binary numbers on the way, so more than 15 digits are not kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp, parse
from sqlglot.errors import OptimizeError, ParseError, TokenError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from tests.workspace_double.sql_values import Functions, SqlError, shown, stored, type_of
from tests.workspace_double.tables import Column, columns_of, rows_of
from tests.workspace_double.wire import unmodelled

__all__ = ["Query", "Result", "SqlError", "run"]
_DIALECT = "databricks"


@dataclass(frozen=True)
class Query:
    """A statement and where its names are looked up. `event_log`: what `event_log(...)` of a table or a pipeline reads, by full name."""

    text: str
    catalog: str
    schema: str
    parameters: Sequence[Mapping[str, Any]]
    tables: Mapping[str, Any]
    event_log: Callable[[str], str]


@dataclass(frozen=True)
class Result:
    columns: list[Column]
    rows: list[list[str | None]] = field(default_factory=list)


def run(query: Query) -> Result:
    """The result of a statement. Raises SqlError for what Databricks refuses, ApiError 501 for what is not modelled."""
    tree = _parsed(query)
    if isinstance(tree, exp.Describe):
        return _described(tree, query)
    if not isinstance(tree, exp.Query):
        raise unmodelled(f"the SQL statement {tree.key.upper()}")
    used = _tables(tree, query)
    names = [_label(each) for each in tree.selects]
    nested: dict[str, Any] = {}
    for full in used:
        catalog, schema, name = full.split(".")
        nested.setdefault(catalog, {}).setdefault(schema, {})[name] = {c.name: c.type for c in columns_of(query.tables[full])}
    known = MappingSchema(nested, dialect=_DIALECT)
    try:
        resolved = annotate_types(qualify(tree.copy(), schema=known, dialect=_DIALECT, quote_identifiers=True), known, dialect=_DIALECT)
    except OptimizeError as error:
        raise SqlError(f"[UNRESOLVED_COLUMN.WITHOUT_SUGGESTION] {error} SQLSTATE: 42703") from None
    assert isinstance(resolved, exp.Query)
    types = [_type(each) for each in resolved.selects]
    if tree.is_star:
        cases = {c.name.lower(): c.name for full in used for c in columns_of(query.tables[full])}
        names = [cases.get(each.alias_or_name.lower(), each.alias_or_name) for each in resolved.selects]
    return _executed(resolved, used, query, names, types)


def _parsed(query: Query) -> exp.Expression:
    try:
        trees = parse(query.text, read=_DIALECT)
    except (ParseError, TokenError) as error:
        raise SqlError(f"[PARSE_SYNTAX_ERROR] Syntax error. {str(error).splitlines()[0]} SQLSTATE: 42601") from None
    if len(trees) != 1 or trees[0] is None:
        raise SqlError("[PARSE_SYNTAX_ERROR] Syntax error: exactly one statement is expected. SQLSTATE: 42601")
    given = {each["name"]: each for each in query.parameters}

    def bound(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Placeholder):
            return node
        if node.name not in given:
            raise SqlError(f"[UNBOUND_SQL_PARAMETER] Found the unbound parameter: {node.name}. SQLSTATE: 42P02")
        value, type = given[node.name].get("value"), given[node.name].get("type", "STRING")
        literal = exp.null() if value is None else exp.Literal.string(value)
        if type in ("INT", "BIGINT", "SMALLINT", "TINYINT") and isinstance(node.parent, exp.Limit | exp.Offset):
            return exp.Literal.number(int(value or 0))
        return exp.cast(literal, type, dialect=_DIALECT)

    return trees[0].transform(bound)


def _tables(tree: exp.Expression, query: Query) -> list[str]:
    """The tables that a statement reads, by full name; each is written with its three parts, in place."""
    named = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    used: list[str] = []
    for table in list(tree.find_all(exp.Table)):
        if isinstance(table.this, exp.Anonymous):
            full = _function(table.this, query)
        elif not table.db and table.name.lower() in named:
            continue
        else:
            full = _find(table, query)
        if table.args.get("version") or table.args.get("when"):
            raise unmodelled("earlier versions of tables")
        parts = full.split(".")
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name or parts[2])))
        for key, part in zip(("catalog", "db", "this"), parts, strict=True):
            table.set(key, exp.to_identifier(part, quoted=True))
        used += [] if full in used else [full]
    return used


def _find(table: exp.Table, query: Query) -> str:
    full = f"{table.catalog or query.catalog}.{table.db or query.schema}.{table.name}"
    for known in query.tables:
        if known.lower() == full.lower():
            return known
    shown_name = ".".join(f"`{part}`" for part in (table.catalog, table.db, table.name) if part)
    text = f"[TABLE_OR_VIEW_NOT_FOUND] The table or view {shown_name} cannot be found. Verify the spelling and correctness of the schema"
    raise SqlError(f"{text} and catalog. SQLSTATE: 42P01")


def _function(call: exp.Anonymous, query: Query) -> str:
    """`event_log('<pipeline-id>')` and `event_log(TABLE(name))` (ecosystem 4: ways in), `identifier('name')`."""
    name, argument = call.name.lower(), call.expressions[0] if call.expressions else None
    if isinstance(argument, exp.Cast):
        argument = argument.this
    if name == "identifier" and isinstance(argument, exp.Literal):
        return _find(exp.to_table(argument.name, dialect=_DIALECT), query)
    if name != "event_log" or argument is None:
        raise unmodelled(f"the table function {call.name}")
    if isinstance(argument, exp.Literal):
        return query.event_log(argument.name)
    if isinstance(argument, exp.Anonymous) and argument.name.upper() == "TABLE":
        column = argument.expressions[0]
        parts = [part.name for part in column.parts]
        return query.event_log(".".join([query.catalog, query.schema][: 3 - len(parts)] + parts))
    raise unmodelled("event_log of this argument")


def _label(column: Any) -> str:
    """The name of a column of the result: its alias, its own name, or the expression's text in lower case."""
    name = str(column.alias_or_name)
    if name and name != "*":
        return name
    return str(column.sql(_DIALECT)).lower().replace("count(*)", "count(1)")


def _type(column: Any) -> str:
    if isinstance(column.unalias(), exp.TimestampTrunc):
        return "TIMESTAMP"
    return str(column.type.sql(_DIALECT)) if column.type else "UNKNOWN"


def _described(tree: exp.Describe, query: Query) -> Result:
    columns = columns_of(query.tables[_find(tree.this, query)])
    head = [Column("col_name", "STRING"), Column("data_type", "STRING"), Column("comment", "STRING")]
    return Result(head, [[each.name, each.type.lower(), None] for each in columns])


def _executed(tree: exp.Query, used: Sequence[str], query: Query, names: Sequence[str], types: list[str]) -> Result:
    connection = sqlite3.connect(":memory:")
    functions = Functions(connection)
    try:
        for full in used:
            _load(connection, full, query.tables[full])
        for node in reversed(list(tree.dfs())):  # what is within before what is around it
            if (new := _for_sqlite(node)) is not node:
                node.replace(new)
        rows = connection.execute(tree.sql("sqlite")).fetchall()
    except sqlite3.Error as error:
        if functions.error:
            raise functions.error from None
        raise unmodelled(f"this SQL ({error}): {query.text}") from None
    finally:
        connection.close()
    for place, type in enumerate(types):
        if type in ("UNKNOWN", "NULL"):
            types[place] = type_of([row[place] for row in rows])
        elif type == "TIMESTAMPTZ":
            types[place] = "TIMESTAMP"
        types[place] = types[place].replace(", ", ",") if types[place].startswith("DECIMAL") else types[place]
    columns = [Column(name, type) for name, type in zip(names, types, strict=True)]
    return Result(columns, [[shown(value, type) for value, type in zip(row, types, strict=True)] for row in rows])


def _load(connection: sqlite3.Connection, full: str, table: Any) -> None:
    columns = columns_of(table)
    names = ", ".join('"' + column.name.replace('"', '""') + '"' for column in columns)
    connection.execute(f'CREATE TABLE "{full}" ({names})')
    rows = [[stored(value) for value in row] for row in rows_of(table)]
    connection.executemany(f'INSERT INTO "{full}" VALUES ({", ".join("?" * len(columns))})', rows)


def _for_sqlite(node: Any) -> Any:
    """A part of a statement as SQLite can do it with the meaning that Databricks gives it."""
    if isinstance(node, exp.Table) and node.db:
        return exp.Table(this=exp.to_identifier(f"{node.catalog}.{node.db}.{node.name}", quoted=True), alias=node.args.get("alias"))
    if isinstance(node, exp.Cast):  # TryCast is one too
        name = "_try_cast" if isinstance(node, exp.TryCast) else "_cast"
        return exp.Anonymous(this=name, expressions=[node.this, exp.Literal.string(node.to.sql(_DIALECT).replace(", ", ","))])
    if isinstance(node, exp.Div):
        return exp.Anonymous(this="_divide", expressions=[node.this, node.expression])
    if isinstance(node, exp.Dot):
        return exp.Anonymous(this="_json", expressions=[node.this, exp.Literal.string(f"$.{node.expression.name}")])
    if isinstance(node, exp.JSONExtract | exp.JSONExtractScalar):
        keys = [part for part in node.expression.expressions if not isinstance(part, exp.JSONPathRoot)]
        path = "".join(f"[{part.this}]" if isinstance(part, exp.JSONPathSubscript) else f"['{part.this}']" for part in keys)
        return exp.Anonymous(this="_json", expressions=[node.this, exp.Literal.string(path)])
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        unit = node.args["unit"].name
        return exp.Anonymous(this="_trunc", expressions=[exp.Literal.string(unit), node.this])
    if isinstance(node, exp.Bracket):
        return exp.Anonymous(this="_json", expressions=[node.this, exp.Literal.string(f"[{node.expressions[0].name}]")])
    if isinstance(node, exp.Greatest | exp.Least):
        return exp.Anonymous(this=f"_{node.key}", expressions=[node.this, *node.expressions])
    if isinstance(node, exp.RegexpLike):
        return exp.Anonymous(this="regexp", expressions=[node.expression, node.this])
    return node
