"""CREATE … of datasets and flows (SQ-1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from lakelet.base.errors import LakeletError, Location
from lakelet.language.model import Kind
from lakelet.language.sql import clauses
from lakelet.language.sql.changes import changes, refuse_snapshots
from lakelet.language.sql.columns import spec
from lakelet.language.sql.cursor import QUERY_WORDS, Cursor
from lakelet.language.sql.values import Changes, CreateDataset, CreateFlow, Fragment, Remark, Replaces, Spec

_AFTER_CREATE = ("STREAMING", "MATERIALIZED", "LIVE", "TEMPORARY", "PRIVATE", "VIEW", "FLOW")


def create(cursor: Cursor, remarks: list[Remark]) -> CreateDataset | CreateFlow | None:
    """Read the statement after CREATE; None if it creates something that a pipeline does not declare. Raises SQL_SYNTAX and refusals."""
    where = cursor.where(cursor.words[0])
    replaced = cursor.where()
    if cursor.skip("OR", "REPLACE"):
        remarks.append(Remark("OR REPLACE has no effect here: a pipeline's definitions always replace older ones", replaced))
    elif cursor.skip("OR"):
        cursor.expect("REFRESH")
    if cursor.skip("FLOW"):
        return _read_flow(cursor, where)
    private = cursor.skip("PRIVATE")
    temporary = cursor.skip("TEMPORARY") or cursor.skip("TEMP")
    kind = _read_kind(cursor)
    if kind is None:
        return None
    if kind[1] == "view":
        return _read_view(cursor, where, remarks, live=kind[0] == "live", temporary=temporary)
    return _read_table(cursor, where, remarks, kind=Kind(kind[0]), private=private or temporary)


def _read_kind(cursor: Cursor) -> tuple[str, str] | None:
    """(kind of dataset, "table") or ("live" or "", "view"); None for anything else."""
    streaming, materialized = Kind.STREAMING_TABLE.value, Kind.MATERIALIZED_VIEW.value
    for words, found in (
        (("STREAMING", "LIVE", "TABLE"), (streaming, "table")),
        (("INCREMENTAL", "LIVE", "TABLE"), (streaming, "table")),
        (("STREAMING", "TABLE"), (streaming, "table")),
        (("LIVE", "TABLE"), (materialized, "table")),
        (("MATERIALIZED", "VIEW"), (materialized, "table")),
        (("STREAMING", "LIVE", "VIEW"), ("live", "view")),
        (("INCREMENTAL", "LIVE", "VIEW"), ("live", "view")),
        (("LIVE", "VIEW"), ("live", "view")),
        (("VIEW",), ("", "view")),
    ):
        if cursor.skip(*words):
            return found
    if cursor.sees("STREAMING") or cursor.sees("MATERIALIZED") or cursor.sees("LIVE"):
        first = cursor.take()
        cursor.fail(f"TABLE or VIEW is expected after {first.upper}", ("TABLE", "VIEW", "LIVE"))
    if _is_misspelt(cursor):
        cursor.fail("the kind of dataset is expected", _AFTER_CREATE)
    return None


def _is_misspelt(cursor: Cursor) -> bool:
    """Whether the next word is nothing that Spark could create."""
    found = cursor.word()
    return found is None or found.upper not in clauses.CREATED_ELSEWHERE


def _read_table(cursor: Cursor, where: Location, remarks: list[Remark], *, kind: Kind, private: bool) -> CreateDataset:
    clauses.not_exists(cursor, remarks)
    name = cursor.name("the table's name")
    columns = spec(cursor, remarks) if cursor.sees("(") and not _query_ahead(cursor) else Spec()
    found = clauses.table_clauses(cursor, remarks, kind)
    query, flow, once, replaces = None, None, False, None
    if kind is Kind.MATERIALIZED_VIEW and cursor.sees("FLOW", "REPLACE", "WHERE"):  # a preview of Databricks has this form
        remarks.append(Remark("a materialized view with a REPLACE WHERE flow is a streaming table here", cursor.where()))
        kind = Kind.STREAMING_TABLE
    if kind is Kind.MATERIALIZED_VIEW and cursor.sees("FLOW"):
        raise LakeletError(
            "SQL_SYNTAX", "a materialized view has no flow beside its query", where=cursor.where(), todo="Write AS and the query."
        )
    if cursor.skip("FLOW"):
        query, flow, once, replaces = _flow_clause(cursor)
    elif cursor.skip("AS") or _query_ahead(cursor):
        query = cursor.rest()
    elif not cursor.ended or kind is Kind.MATERIALIZED_VIEW:
        cursor.fail("AS and a query, or a clause of the table, is expected", clauses.TABLE_CLAUSES)
    return CreateDataset(kind, name, where, columns, found, query, flow, private, once=once, replaces=replaces)


def _query_ahead(cursor: Cursor) -> bool:
    """Whether a query begins here; a parenthesis begins one if SELECT, WITH, FROM or VALUES stands in it."""
    ahead = 0
    while (word := cursor.word(ahead)) is not None and word.upper == "(":
        ahead += 1
    return word is not None and word.upper in QUERY_WORDS[:4]


def _read_view(cursor: Cursor, where: Location, remarks: list[Remark], *, live: bool, temporary: bool) -> CreateDataset:
    clauses.not_exists(cursor, remarks)
    name = cursor.name("the view's name")
    columns = spec(cursor, remarks) if cursor.sees("(") else Spec()
    view: Literal["temporary", "live", "published"] = "live" if live else "temporary" if temporary else "published"
    if columns.rules and view == "published":
        raise LakeletError(
            "SQL_SYNTAX",
            "CREATE VIEW takes no expectations",
            where=columns.rules[0].where,
            todo="Write CREATE TEMPORARY VIEW, or give the rule to the table that reads the view.",
        )
    found = clauses.view_clauses(cursor, remarks)
    if not cursor.skip("AS") and not _query_ahead(cursor):
        cursor.fail("AS and a query is expected", ("AS", "COMMENT", "TBLPROPERTIES"))
    return CreateDataset(Kind.VIEW, name, where, columns, found, cursor.rest(), view=view)


# ------------------------------------------------------------------------------------------------------------- flows


def _read_flow(cursor: Cursor, where: Location) -> CreateFlow:
    name = cursor.name("the flow's name")
    if len(name.parts) > 1:
        raise LakeletError("SQL_SYNTAX", "the name of a flow has one part", where=name.where, todo="Leave catalog and schema out.")
    comment = cursor.string("a string with the comment") if cursor.skip("COMMENT") else None
    cursor.expect("AS", purpose=" before what the flow does")
    found: dict[str, Any]
    if cursor.skip("INSERT"):
        once = cursor.skip("ONCE")
        cursor.expect("INTO")
        once = once or cursor.skip("ONCE")  # both orders are documented
        target = cursor.name("the target of the flow")
        by_name = cursor.skip("BY")
        if by_name:
            cursor.expect("NAME")
        replaces = _read_replaces(cursor, inline=False, once=once) if cursor.sees("REPLACE") else None
        if replaces is not None and not by_name:
            raise cursor.error("BY NAME is expected before REPLACE", where=replaces.at, todo="Write INSERT INTO table BY NAME REPLACE ….")
        found = {"target": target, "query": cursor.rest(), "once": once, "replaces": replaces}
    else:
        _auto_cdc(cursor)
        found = into(cursor)
    return CreateFlow(name=name, where=where, comment=comment, **found)


def into(cursor: Cursor) -> dict[str, Any]:
    """`[ONCE] INTO target FROM …` of a change flow: its target and its changes."""
    once = cursor.skip("ONCE")
    cursor.expect("INTO")
    target = cursor.name("the target of the changes")
    return {"target": target, "changes": changes(cursor, once=once)}


def _auto_cdc(cursor: Cursor) -> None:
    if not cursor.skip("AUTO", "CDC") and not cursor.skip("APPLY", "CHANGES"):
        cursor.fail("INSERT INTO or AUTO CDC is expected", ("INSERT", "AUTO", "APPLY"))
    refuse_snapshots(cursor)


def _flow_clause(cursor: Cursor) -> tuple[Fragment | None, Changes | None, bool, Replaces | None]:
    """`FLOW INSERT [ONCE] BY NAME query`, `FLOW AUTO CDC …` or `FLOW REPLACE … BY NAME query` of CREATE STREAMING TABLE.

    Return the query, the changes, whether it appends once, and what it replaces.
    """
    if cursor.skip("INSERT"):
        once = cursor.skip("ONCE")
        cursor.expect("BY", "NAME", purpose=" after FLOW INSERT")
        return cursor.rest(), None, once, None
    if cursor.sees("REPLACE"):
        replaces = _read_replaces(cursor, inline=True)
        if not cursor.skip("BY", "NAME"):
            cursor.fail("BY NAME is expected before the query of FLOW REPLACE", todo="Write BY NAME SELECT …: columns go by their names.")
        return cursor.rest(), None, False, replaces
    _auto_cdc(cursor)
    return None, changes(cursor, once=cursor.skip("ONCE")), False, None


def _read_replaces(cursor: Cursor, *, inline: bool, once: bool = False) -> Replaces:
    """`REPLACE WHERE condition` or `REPLACE USING (keys) SEQUENCE BY expression`. `inline`: BY NAME follows, else the query."""
    at = cursor.where()
    cursor.expect("REPLACE")
    if once:
        raise cursor.error("a flow that replaces rows does not run ONCE", where=at, todo="Leave ONCE out.")
    if cursor.skip("WHERE"):
        return Replaces(where=cursor.until("a condition", _expression_end(cursor, inline)), at=at)
    if not cursor.skip("USING"):
        cursor.fail("WHERE or USING is expected after REPLACE", ("WHERE", "USING"))
    keys = cursor.listed(cursor.column)
    cursor.expect("SEQUENCE", "BY", purpose=" after the keys of REPLACE USING")
    return Replaces(keys=keys, sequence_by=cursor.until("an expression that orders the rows", _expression_end(cursor, inline)), at=at)


def _expression_end(cursor: Cursor, inline: bool) -> Callable[[], bool]:
    """Whether an expression ends at the next word: the first one of a query, or before it BY NAME where the clause stands `inline`."""

    def ends() -> bool:
        if inline and cursor.sees("BY", "NAME"):
            return True
        word, before = cursor.word(), cursor.words[cursor.at - 1]
        return word is not None and word.upper in QUERY_WORDS[:4] and before.upper not in ("DISTINCT", ".")  # IS DISTINCT FROM, t.values

    return ends
