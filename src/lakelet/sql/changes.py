"""AUTO CDC and APPLY CHANGES: everything from FROM on (dlt-semantics 2.1 `auto_cdc_spec`, 6). Layer 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakelet.errors import LakeletError
from lakelet.later import unsupported
from lakelet.sql.cursor import Cursor
from lakelet.sql.values import Changes, Fragment

_CLAUSES: tuple[tuple[str, ...], ...] = (
    ("IGNORE", "NULL"),
    ("WHERE",),
    ("APPLY", "AS"),
    ("SEQUENCE", "BY"),
    ("SYSTEM", "SEQUENCE"),
    ("COLUMNS",),
    ("STORED", "AS"),
    ("TRACK", "HISTORY"),
    ("KEYS",),
)
_WORDS = ("IGNORE", "WHERE", "APPLY", "SEQUENCE", "SYSTEM", "COLUMNS", "STORED", "TRACK", "KEYS")


def changes(cursor: Cursor, *, once: bool) -> Changes:
    """Read `FROM source KEYS (…) …` to the end of the statement; after KEYS the clauses may come in any order. Raises SQL_SYNTAX."""
    begin = cursor.where()
    cursor.expect("FROM", purpose=" before the source of the changes")
    source, streams = _source(cursor)
    cursor.expect("KEYS", purpose=" behind the source of the changes")
    found: dict[str, Any] = {"keys": cursor.listed(cursor.column)}
    while not cursor.ended:
        _clause(cursor, found)
    if "sequence_by" not in found:
        todo = "SEQUENCE BY says which of two events of a key is the later one."
        raise LakeletError("SQL_SYNTAX", "SEQUENCE BY is missing", where=begin, todo=todo)
    return Changes(source=source, source_streams=streams, once=once, **found)


def _source(cursor: Cursor) -> tuple[Fragment, bool]:
    streams = cursor.sees("STREAM")
    source = cursor.until("the source of the changes", lambda: cursor.sees("KEYS"))
    return source, streams


def _clause(cursor: Cursor, found: dict[str, Any]) -> None:
    where = cursor.where()

    def put(**values: Any) -> None:
        for key, value in values.items():
            if key in found:
                raise LakeletError("SQL_SYNTAX", "this clause is given twice", where=where, todo="Keep one of them.")
            found[key] = value

    if cursor.skip("IGNORE", "NULL"):
        cursor.expect("UPDATES")
        if cursor.skip("ON"):
            listed, left_out = _columns(cursor)
            put(ignore_nulls=False, ignore_nulls_on=listed, ignore_nulls_except=left_out)
            if listed is None and left_out is None:
                found["ignore_nulls"] = True
        else:
            put(ignore_nulls=True)
    elif cursor.skip("WHERE"):
        put(where=cursor.until("a condition", _ends(cursor)))
    elif cursor.skip("APPLY", "AS"):
        _apply_as(cursor, put)
    elif cursor.skip("SEQUENCE"):
        cursor.expect("BY")
        put(sequence_by=cursor.until("an expression that orders the events", _ends(cursor)))
    elif cursor.skip("SYSTEM", "SEQUENCE"):
        unsupported("SYSTEM SEQUENCE BY (bitemporal tables)", where)
    elif cursor.skip("COLUMNS", "TO", "UPDATE"):
        put(columns_to_update=cursor.column())
    elif cursor.skip("COLUMNS"):
        listed, left_out = _columns(cursor)
        put(columns=listed, except_columns=left_out)
    elif cursor.skip("STORED", "AS"):
        put(scd_type=_scd_type(cursor))
    elif cursor.skip("TRACK", "HISTORY"):
        cursor.expect("ON")
        listed, left_out = _columns(cursor)
        put(track=listed, track_except=left_out)
    else:
        cursor.fail("a clause of the change flow is expected", _WORDS, todo=f"The clauses are {', '.join(map(' '.join, _CLAUSES))} ….")


def _apply_as(cursor: Cursor, put: Callable[..., None]) -> None:
    deletes = cursor.skip("DELETE")
    if not deletes and not cursor.skip("TRUNCATE"):
        cursor.fail("DELETE or TRUNCATE is expected", ("DELETE", "TRUNCATE"))
    cursor.expect("WHEN")
    condition = cursor.until("a condition", _ends(cursor))
    put(**{"deletes" if deletes else "truncates": condition})


def _scd_type(cursor: Cursor) -> str:
    where = cursor.where()
    if cursor.skip("BITEMPORAL"):
        unsupported("STORED AS BITEMPORAL", where)
    cursor.expect("SCD", "TYPE")
    if not (cursor.sees("1") or cursor.sees("2")) and not (cursor.word() and cursor.word().value in ("1", "2")):  # type: ignore[union-attr]
        cursor.fail("1 or 2 is expected", todo="Type 1 keeps current rows, type 2 keeps history.")
    return cursor.take().value


def _columns(cursor: Cursor) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """`(a, b)`, `a, b`, `*` or `* EXCEPT (a, b)`: (the listed ones, the ones left out)."""
    if cursor.skip("*"):
        return None, cursor.listed(cursor.column) if cursor.skip("EXCEPT") else None
    if cursor.sees("("):
        return cursor.listed(cursor.column), None
    found = [cursor.column()]
    while cursor.skip(","):
        found.append(cursor.column())
    return tuple(found), None


def _ends(cursor: Cursor) -> Callable[[], bool]:
    """Whether the next words begin another clause: not right at the beginning of an expression, and not behind a dot or operator."""
    begin = cursor.at

    def ends() -> bool:
        if cursor.at == begin or not any(cursor.sees(*clause) for clause in _CLAUSES):
            return False
        before = cursor.words[cursor.at - 1]
        return before.kind != "word" or before.is_name or before.upper in (")", "]")

    return ends
