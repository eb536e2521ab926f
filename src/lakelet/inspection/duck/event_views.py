"""The flat views of the event log in DuckDB's words, translated from the text that Spark and Databricks run."""

from __future__ import annotations

import json
from typing import Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from lakelet.inspection.duck.queries import Query, Stored
from lakelet.inspection.duck.refusal import NotSame
from lakelet.inspection.duck.spark_types import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP, Type, duck_name, identifier
from lakelet.storage.eventlog.views import NAMES, SOURCE, event_view

_KINDS = {
    **dict.fromkeys(("duration_s", "pass_rate"), DOUBLE),
    **dict.fromkeys(("failed_flows", "rows_written", "table_version", "backlog_files", "backlog_bytes"), BIGINT),
    "success": BOOLEAN,
}
_ENDINGS = {"_at": TIMESTAMP, "_rows": BIGINT, "_records": BIGINT}
_NULL_KEPT: dict[type[exp.Expr], str] = {exp.ArgMax: "arg_max_null", exp.ArgMin: "arg_min_null"}
"""Spark's `max_by` takes the row with the greatest key also where its value is NULL."""


def event_view_query(name: str, source: Stored) -> Query:
    """Translate the view `name`. `source`: the event log. Raises NotSame where the text has a part that is not known here."""
    try:
        text = _text(name, source)
        columns = tuple((column, _kind(column)) for column in _parsed(name).named_selects)
    except SqlglotError:
        raise NotSame(f"the view {name} is not translated") from None
    shown = ", ".join(f"CAST({identifier(column)} AS {duck_name(kind)}) AS c{at}" for at, (column, kind) in enumerate(columns))
    return Query(f"SELECT {shown} FROM ({text}) AS v", columns)


def _kind(column: str) -> Type:
    """The type of a column: the views give one name to one thing."""
    return _KINDS.get(column) or next((kind for ending, kind in _ENDINGS.items() if column.endswith(ending)), STRING)


def _parsed(name: str) -> exp.Query:
    found = parse_one(event_view(name).query, dialect="spark")
    if not isinstance(found, exp.Query):
        raise NotSame(f"the view {name} is no query")
    return found


def _text(name: str, source: Stored) -> str:
    """The query of a view with the views that it reads in the place of their names."""
    tree = _parsed(name).transform(_in_words_of_duckdb)
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in [table for table in tree.find_all(exp.Table) if table.name not in own]:
        if table.name not in (SOURCE, *NAMES):
            raise NotSame(f"the view {name} reads {table.name}")
        inner = _rows(source) if table.name == SOURCE else _text(table.name, source)
        table.replace(exp.alias_(exp.Subquery(this=parse_one(inner, dialect="duckdb")), table.alias or table.name, table=True))
    return tree.sql(dialect="duckdb", identify=True)


def _rows(source: Stored) -> str:
    """The event log with the names of its columns."""
    known = [(f"c{at}", name) for at, (name, kind) in enumerate(source.columns) if kind is not None]
    source.read.update(internal for internal, _ in known)
    return f"SELECT {', '.join(f'{internal} AS {identifier(name)}' for internal, name in known)} FROM {source.name}"


def _in_words_of_duckdb(node: exp.Expr) -> exp.Expr:
    """What the generator of DuckDB's words leaves as Spark has it, or gives other answers for."""
    if type(node) in _NULL_KEPT:
        return exp.Anonymous(this=_NULL_KEPT[type(node)], expressions=[node.this, node.expression])
    if isinstance(node, exp.Anonymous) and node.name.upper() == "GET":
        values, at = node.expressions
        return exp.Paren(this=exp.Anonymous(this="list_extract", expressions=[values, exp.Literal.number(int(at.name) + 1)]))
    if isinstance(node, exp.FromJson):
        text, schema = node.this, node.expression
        given = schema.name if schema.name.startswith("ARRAY") else f"STRUCT<{schema.name}>"
        shape = json.dumps(_shape(exp.DataType.build(given, dialect="spark")))
        return exp.Anonymous(this="json_transform", expressions=[text, exp.Literal.string(shape)])
    return _sum(node) if isinstance(node, exp.Reduce) else node


def _sum(node: exp.Expr) -> exp.Expr:
    """`aggregate(list, 0, (total, one) -> total + …)`: DuckDB's own takes an initial value of the list's type only."""
    merge = node.args["merge"]
    total, one = merge.expressions
    if not isinstance(merge.this, exp.Add) or merge.this.this.name != total.name or node.args.get("finish") is not None:
        raise NotSame("an aggregate over a list that is no sum")
    values = exp.Anonymous(this="list_transform", expressions=[node.this, exp.Lambda(this=merge.this.expression, expressions=[one])])
    return exp.Coalesce(this=exp.Anonymous(this="list_sum", expressions=[values]), expressions=[node.args["initial"]])


def _shape(kind: exp.DataType) -> Any:
    """A type in the form of `json_transform`."""
    if kind.is_type("struct"):
        return {field.name: _shape(field.args["kind"]) for field in kind.expressions}
    if kind.is_type("array"):
        return [_shape(kind.expressions[0])]
    return kind.sql(dialect="duckdb")
