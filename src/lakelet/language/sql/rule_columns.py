"""Conditions of expectations that speak of the query's tables: `c.price > 0` where `c` is an alias in it.

A rule is judged on the columns that the query returns (EP-1, SQ-9). What it names by alias or path is looked up in the query's list
of columns and called by its name there. What is not found stays as it is, and analysis says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from lakelet.base.names import all_quoted
from lakelet.language.sql_text.dialect import Pipelines
from lakelet.language.sql_text.tokens import OpenToken, Token, edited, name_end, tokens


@dataclass(frozen=True)
class QueryColumns:
    """What a query returns, as far as its text shows.

    `by_path`: lower-case dotted source of a column → its name; `names`: all names, lower case; `open`: aliases of tables all of whose
    columns are returned under their own names.
    """

    by_path: Mapping[str, str]
    names: frozenset[str]
    open: frozenset[str]


def columns_of(query: str) -> QueryColumns | None:
    """The columns of a query, or None where sqlglot does not understand it."""
    try:
        tree = parse_one(query, dialect=Pipelines)
    except (SqlglotError, RecursionError):
        return None
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        return None
    sources = {source.alias_or_name.lower() for source in _relations_of(tree)}
    by_path: dict[str, str] = {}
    names: set[str] = set()
    open_sources: set[str] = set()
    for item in tree.expressions:
        if isinstance(item, exp.Star):
            open_sources |= sources
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            open_sources.add(item.table.lower())
        elif (path := _column_path(item.unalias())) is not None:
            by_path.setdefault(".".join(path).lower(), item.alias_or_name or path[-1])
        if item.alias_or_name and item.alias_or_name != "*":
            names.add(item.alias_or_name.lower())
    return QueryColumns(by_path, frozenset(names), frozenset(open_sources))


def _relations_of(select: exp.Select) -> Iterator[exp.Expression]:
    """The relations after FROM and JOIN."""
    clause = select.args.get("from_") or select.args.get("from")
    for part in [clause, *(select.args.get("joins") or ()), *(select.args.get("laterals") or ())]:
        source = part if isinstance(part, exp.Lateral) else part.this if isinstance(part, exp.Expression) else None
        while isinstance(source, exp.Stream):
            source = source.this
        if isinstance(source, exp.Expression):
            yield source


def _column_path(item: exp.Expression) -> tuple[str, ...] | None:
    """The parts of a plain dotted column, else None."""
    if isinstance(item, exp.Column):
        return tuple(part.name for part in item.parts)
    if isinstance(item, exp.Dot) and (before := _column_path(item.this)) is not None and isinstance(item.expression, exp.Identifier):
        return (*before, item.expression.name)
    return None


def on_columns(condition: str, columns: QueryColumns) -> str:
    """The condition with names that the query's columns do not have replaced by theirs."""
    try:
        words = tokens(condition)
    except OpenToken:
        return condition
    edits = []
    for chain in _dotted_names(words):
        new = _name_of_column([word.value for word in chain], columns)
        if new is not None:
            edits.append((chain[0].start, chain[-1].stop, new))
    return edited(condition, edits)


def _dotted_names(words: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The parts of dotted names of two or more that are not called."""
    at = 0
    while at < len(words):
        end = name_end(words, at)
        if end > at + 1 and not (end < len(words) and words[end].upper == "("):
            yield words[at:end:2]
        at = max(end, at + 1)


def _name_of_column(parts: list[str], columns: QueryColumns) -> str | None:
    if parts[0].lower() in columns.names:
        return None  # a field of a returned struct
    for length in range(len(parts), 1, -1):
        name = columns.by_path.get(".".join(parts[:length]).lower())
        if name is not None:
            return all_quoted((name, *parts[length:]))
    if parts[0].lower() in columns.open:
        return all_quoted(parts[1:])
    return None
