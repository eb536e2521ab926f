"""AUTO CDC and APPLY CHANGES: everything from FROM on (SQ-11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.language.sql.cursor import Cursor
from lakelet.language.sql.values import Changes, Fragment, Remark

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
_ORDER: Mapping[str, str] = {
    "keys": "KEYS",
    "ignore_null_updates": "IGNORE NULL UPDATES",
    "apply_as_deletes": "APPLY AS DELETE WHEN",
    "apply_as_truncates": "APPLY AS TRUNCATE WHEN",
    "sequence_by": "SEQUENCE BY",
    "system_sequence_by": "SYSTEM SEQUENCE BY",
    "column_list": "COLUMNS",
    "stored_as_scd_type": "STORED AS",
    "track_history_column_list": "TRACK HISTORY ON",
    "columns_to_update": "COLUMNS TO UPDATE",
}
"""The clauses in the order of Databricks' grammar, each by an argument that it has. WHERE, which is older than this order, has no place."""
_WORDS = ("IGNORE", "WHERE", "APPLY", "SEQUENCE", "SYSTEM", "COLUMNS", "STORED", "TRACK", "KEYS")


def changes(cursor: Cursor, *, once: bool) -> Changes:
    """Read `FROM source KEYS (…) …` to the end of the statement; the clauses may come in any order (`order_remark`). Raises SQL_SYNTAX."""
    refuse_snapshots(cursor)
    begin = cursor.where()
    cursor.expect("FROM", purpose=" before the source of the changes")
    source, streams = _source_of_changes(cursor)
    cursor.expect("KEYS", purpose=" after the source of the changes")
    keys_at = cursor.where()
    found: dict[str, Any] = {"keys": cursor.listed(cursor.column), "places": {"keys": keys_at}}
    while not cursor.ended:
        _read_clause(cursor, found)
    if "sequence_by" not in found:
        todo = "SEQUENCE BY says which of two events of a key is the later one."
        raise LakeletError("SQL_SYNTAX", "SEQUENCE BY is missing", where=begin, todo=todo)
    return Changes(source=source, source_streams=streams, once=once, **found)


def order_remark(found: Changes) -> Remark | None:
    """Return a remark at the first clause that Databricks' grammar has before the clause that it follows; None for the right order."""
    given = [name for name in found.places if name in _ORDER]
    right = [name for name in _ORDER if name in given]
    wrong = next((at for at in range(1, len(given)) if right.index(given[at]) < right.index(given[at - 1])), None)
    if wrong is None:
        return None
    order = ", ".join(_ORDER[name] for name in right)
    what = f"Databricks refuses {_ORDER[given[wrong]]} after {_ORDER[given[wrong - 1]]}"
    return Remark(f"{what}: write the clauses in the order {order}", found.places[given[wrong]])


def refuse_snapshots(cursor: Cursor) -> None:
    """Raise NOT_SUPPORTED_YET where `FROM SNAPSHOT source` begins; a source may be called `snapshot`, too."""
    after = cursor.word(2)
    if cursor.sees("FROM", "SNAPSHOT") and after is not None and after.upper not in ("KEYS", ".", ")"):
        raise LakeletError(
            "NOT_SUPPORTED_YET",
            "AUTO CDC … FROM SNAPSHOT is not executed in SQL",
            where=cursor.where(),
            todo="Write this flow in a Python source: dp.create_auto_cdc_from_snapshot_flow(target=…, source=…, keys=[…]).",
        )


def _source_of_changes(cursor: Cursor) -> tuple[Fragment, bool]:
    streams = cursor.sees("STREAM")
    source = cursor.until("the source of the changes", lambda: cursor.sees("KEYS"))
    return source, streams


def _read_clause(cursor: Cursor, found: dict[str, Any]) -> None:
    where = cursor.where()

    def put(**values: Any) -> None:
        for key, value in values.items():
            if key in found:
                raise LakeletError("SQL_SYNTAX", "this clause is given twice", where=where, todo="Keep one of them.")
            found[key] = value
            found["places"][key] = where

    if cursor.skip("IGNORE", "NULL"):
        cursor.expect("UPDATES")
        if cursor.skip("ON"):
            listed, left_out = _column_selection(cursor)
            put(ignore_null_updates_column_list=listed, ignore_null_updates_except_column_list=left_out)
            put(ignore_null_updates=listed is None and left_out is None)
        else:
            put(ignore_null_updates=True)
    elif cursor.skip("WHERE"):
        put(where=cursor.until("a condition", _clause_end(cursor)))
    elif cursor.skip("APPLY", "AS"):
        _apply_as(cursor, put)
    elif cursor.skip("SEQUENCE"):
        cursor.expect("BY")
        put(sequence_by=cursor.until("an expression that orders the events", _clause_end(cursor)))
    elif cursor.skip("SYSTEM", "SEQUENCE"):
        cursor.expect("BY")
        put(system_sequence_by=cursor.until("an expression that says when an event became known", _clause_end(cursor)))
    elif cursor.skip("COLUMNS", "TO", "UPDATE"):
        put(columns_to_update=cursor.column())
    elif cursor.skip("COLUMNS"):
        listed, left_out = _column_selection(cursor)
        put(column_list=listed, except_column_list=left_out)
    elif cursor.skip("STORED", "AS"):
        put(stored_as_scd_type=_scd_type(cursor))
    elif cursor.skip("TRACK", "HISTORY"):
        cursor.expect("ON")
        listed, left_out = _column_selection(cursor)
        put(track_history_column_list=listed, track_history_except_column_list=left_out)
    else:
        cursor.fail("a clause of the change flow is expected", _WORDS, todo=f"The clauses are {', '.join(map(' '.join, _CLAUSES))} ….")


def _apply_as(cursor: Cursor, put: Callable[..., None]) -> None:
    deletes = cursor.skip("DELETE")
    if not deletes and not cursor.skip("TRUNCATE"):
        cursor.fail("DELETE or TRUNCATE is expected", ("DELETE", "TRUNCATE"))
    cursor.expect("WHEN")
    condition = cursor.until("a condition", _clause_end(cursor))
    put(**{"apply_as_deletes" if deletes else "apply_as_truncates": condition})


def _scd_type(cursor: Cursor) -> str:
    if cursor.skip("BITEMPORAL"):
        return "bitemporal"
    if not cursor.skip("SCD", "TYPE"):
        cursor.fail("SCD TYPE 1, SCD TYPE 2 or BITEMPORAL is expected", ("SCD", "BITEMPORAL"))
    found = cursor.word()
    if found is None or found.value not in ("1", "2"):
        cursor.fail("1 or 2 is expected", todo="Type 1 keeps current rows, type 2 keeps history.")
    return cursor.take().value


def _column_selection(cursor: Cursor) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """`(a, b)`, `a, b`, `*` or `* EXCEPT (a, b)`: (the listed ones, the ones left out)."""
    if cursor.skip("*"):
        return None, cursor.listed(cursor.column) if cursor.skip("EXCEPT") else None
    if cursor.sees("("):
        return cursor.listed(cursor.column), None
    found = [cursor.column()]
    while cursor.skip(","):
        found.append(cursor.column())
    return tuple(found), None


def _refuse_misspelt(cursor: Cursor) -> None:
    """Raise SQL_SYNTAX for `STOERD AS`: almost the first word of a clause, and its second one after it."""
    word, after = cursor.word(), cursor.word(1)
    if word is None or after is None or word.kind != "word":
        return
    near = [clause for clause in _CLAUSES if len(clause) > 1 and clause[1] == after.upper and clause[0] != word.upper]
    if nearest_names(word.upper, [clause[0] for clause in near], cutoff=0.7):
        cursor.fail("a clause of the change flow is expected", [clause[0] for clause in near])


def _clause_end(cursor: Cursor) -> Callable[[], bool]:
    """Whether the next words begin another clause: not right at the beginning of an expression, and not after a dot or operator."""
    begin = cursor.at

    def ends() -> bool:
        if cursor.at == begin:
            return False
        if not any(cursor.sees(*clause) for clause in _CLAUSES):
            _refuse_misspelt(cursor)
            return False
        before = cursor.words[cursor.at - 1]
        return before.kind != "word" or before.is_name or before.upper in (")", "]")

    return ends
