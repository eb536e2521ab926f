"""SELECT statements of Databricks SQL, answered by SQLite.

sqlglot reads the statement, resolves its columns, says their types and writes it for SQLite. What either of them cannot do is answered
with 501: the double never guesses. Decimals are binary numbers on the way, so those of more than 15 digits are refused, as are NaN values.
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

from tests.workspace_double.sql_rewrite import DIALECT, check, rewrite, type_of
from tests.workspace_double.sql_values import Functions, SqlError, shown, stored, type_by_values
from tests.workspace_double.tables import Column, columns_of, rows_of
from tests.workspace_double.wire import unmodelled

__all__ = ["Query", "Result", "SqlError", "run"]
_VERBS = """
ALTER ANALYZE CACHE CALL CLEAR COMMENT COPY CREATE DECLARE DELETE DROP EXECUTE EXPLAIN GRANT INSERT LIST MERGE MSCK OPTIMIZE PUT REFRESH
REMOVE REPAIR RESET REVOKE SET SHOW SYNC TRUNCATE UNDROP UPDATE USE VACUUM
"""
_STATEMENTS = frozenset(_VERBS.split())
_DESCRIPTIONS = [
    [verb, kind] for verb in ("DESCRIBE", "DESC") for kind in ("DETAIL", "HISTORY", "EXTENDED", "FORMATTED", "SCHEMA", "CATALOG")
]


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
    known = MappingSchema(nested, dialect=DIALECT)
    try:
        resolved = annotate_types(qualify(tree.copy(), schema=known, dialect=DIALECT, quote_identifiers=True), known, dialect=DIALECT)
    except OptimizeError as error:
        raise SqlError(f"[UNRESOLVED_COLUMN.WITHOUT_SUGGESTION] {error} SQLSTATE: 42703") from None
    assert isinstance(resolved, exp.Query)
    types = [type_of(each) for each in resolved.selects]
    if tree.is_star:
        cases = {c.name.lower(): c.name for full in used for c in columns_of(query.tables[full])}
        names = [cases.get(each.alias_or_name.lower(), each.alias_or_name) for each in resolved.selects]
    return _executed(resolved, used, query, names, types)


def _parsed(query: Query) -> exp.Expression:
    first = query.text.strip().partition(" ")[0].upper()
    if first in _STATEMENTS or query.text.upper().split()[:2] in _DESCRIPTIONS:
        raise unmodelled(f"the SQL statement {first}")
    try:
        trees = parse(query.text, read=DIALECT)
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
        return exp.cast(literal, type, dialect=DIALECT)

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
    """`event_log('<pipeline-id>')` and `event_log(TABLE(name))` (facts 4: ways in), `identifier('name')`."""
    name, argument = call.name.lower(), call.expressions[0] if call.expressions else None
    if isinstance(argument, exp.Cast):
        argument = argument.this
    if name == "identifier" and isinstance(argument, exp.Literal):
        return _find(exp.to_table(argument.name, dialect=DIALECT), query)
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
    return str(column.sql(DIALECT)).lower().replace("count(*)", "count(1)")


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
        check(tree)
        rows = connection.execute(rewrite(tree)).fetchall()
    except sqlite3.Error as error:
        if functions.error:
            raise functions.error from None
        raise unmodelled(f"this SQL ({error}): {query.text}") from None
    finally:
        connection.close()
    for place, type in enumerate(types):
        if type in ("UNKNOWN", "NULL"):
            types[place] = type_by_values([row[place] for row in rows])
    columns = [Column(name, type) for name, type in zip(names, types, strict=True)]
    return Result(columns, [[shown(value, type) for value, type in zip(row, types, strict=True)] for row in rows])


def _load(connection: sqlite3.Connection, full: str, table: Any) -> None:
    columns = columns_of(table)
    names = ", ".join('"' + column.name.replace('"', '""') + '"' for column in columns)
    connection.execute(f'CREATE TABLE "{full}" ({names})')
    rows = [[stored(value) for value in row] for row in rows_of(table)]
    connection.execute("PRAGMA case_sensitive_like = ON")
    connection.executemany(f'INSERT INTO "{full}" VALUES ({", ".join("?" * len(columns))})', rows)
