"""The clauses between a dataset's name and its query: COMMENT, TBLPROPERTIES, CLUSTER BY and the like (SQ-4)."""

from __future__ import annotations

from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.language.model import Kind, RefreshPolicy
from lakelet.language.sql.cursor import Cursor
from lakelet.language.sql.values import Clauses, Remark
from lakelet.language.unsupported import unsupported

TABLE_CLAUSES = (
    "AS",
    "FLOW",
    "USING",
    "PARTITIONED",
    "CLUSTER",
    "LOCATION",
    "COMMENT",
    "TBLPROPERTIES",
    "WITH",
    "REFRESH",
    "SCHEDULE",
    "TRIGGER",
    "DEFAULT",
)
CREATED_ELSEWHERE = frozenset(
    ("TABLE", "EXTERNAL", "FUNCTION", "SCHEMA", "DATABASE", "CATALOG", "VOLUME", "GLOBAL", "AGGREGATE", "PROCEDURE", "SHARE", "CONNECTION")
)


def not_exists(cursor: Cursor, remarks: list[Remark]) -> None:
    where = cursor.where()
    if cursor.skip("IF"):
        cursor.expect("NOT", "EXISTS")
        remarks.append(Remark("IF NOT EXISTS has no effect here: a definition is always brought up to date", where))


def view_clauses(cursor: Cursor, remarks: list[Remark]) -> Clauses:
    """COMMENT, TBLPROPERTIES and DEFAULT COLLATION of a view, in any order."""
    found: dict[str, Any] = {}
    while _read_shared_clause(cursor, remarks, found):
        pass
    return Clauses(**found)


def table_clauses(cursor: Cursor, remarks: list[Remark], kind: Kind) -> Clauses:
    """The clauses of a table, in any order. Raises SQL_SYNTAX, NOT_SUPPORTED_YET or PROTECTION_REFUSED."""
    found: dict[str, Any] = {}
    while (
        _read_shared_clause(cursor, remarks, found)
        or _read_storage_clause(cursor, remarks, found)
        or _read_schedule_clause(cursor, remarks, found, kind)
    ):
        pass
    if found.get("partitioned_by") and found.get("cluster_by"):
        first = cursor.where(cursor.words[0])
        raise cursor.error("PARTITIONED BY and CLUSTER BY exclude each other", where=first, todo="Keep one of them.")
    return Clauses(**found)


def _put_clause(found: dict[str, Any], key: str, value: Any, where: Location) -> bool:
    if key in found:
        raise LakeletError("SQL_SYNTAX", "this clause is given twice", where=where, todo="Keep one of them.")
    found[key] = value
    return True


def _read_shared_clause(cursor: Cursor, remarks: list[Remark], found: dict[str, Any]) -> bool:
    where = cursor.where()
    if cursor.skip("COMMENT"):
        return _put_clause(found, "comment", cursor.string("a string with the comment"), where)
    if cursor.skip("TBLPROPERTIES"):
        return _put_clause(found, "properties", dict(cursor.listed(lambda: _read_property(cursor))), where)
    if cursor.skip("DEFAULT", "COLLATION"):
        collation, at = cursor.identifier("a collation")
        if collation.upper() != "UTF8_BINARY":
            unsupported(f"DEFAULT COLLATION {collation}", at)
        return True
    return False


def _read_property(cursor: Cursor) -> tuple[str, str]:
    """`key = value`, `key value`; the key a string or a dotted name."""
    word = cursor.word()
    is_string = word is not None and word.kind == "string"
    key = cursor.string("a property") if is_string else ".".join(cursor.name("a property").parts)
    cursor.skip("=")
    sign = "-" if cursor.skip("-") else ""
    found = cursor.word()
    if found is None or not (found.kind in ("string", "number") or found.upper in ("TRUE", "FALSE")):
        cursor.fail(f"the value of {key!r} is expected", todo="Write it as a string.")
    if found.kind == "string":
        return key, sign + cursor.string("a value")
    cursor.at += 1
    return key, sign + (found.value.lower() if found.kind == "word" else found.value)


def _read_storage_clause(cursor: Cursor, remarks: list[Remark], found: dict[str, Any]) -> bool:
    """How and where the table lies, and who may see it."""
    where = cursor.where()
    if cursor.skip("USING"):
        name, at = cursor.identifier("a table format")
        if name.lower() != "delta":
            unsupported(f"USING {name}", at)
        return True
    if cursor.skip("PARTITIONED"):
        cursor.expect("BY")
        return _put_clause(found, "partitioned_by", cursor.listed(lambda: cursor.identifier("a column")[0]), where)
    if cursor.skip("CLUSTER"):
        cursor.expect("BY")
        return _read_clustering(cursor, remarks, found, where)
    if cursor.skip("LOCATION"):
        path = cursor.string("a string with the path")
        remarks.append(Remark(f"LOCATION '{path}' has no effect here: the table lies in the storage, and is read by its name", where))
        return True
    if cursor.skip("WITH", "ROW", "FILTER"):
        raise LakeletError(
            "PROTECTION_REFUSED",
            "the row filter would not be applied: rows would be shown that it hides",
            where=where,
            todo="Leave it out where the data may be seen.",
        )
    return False


def _read_clustering(cursor: Cursor, remarks: list[Remark], found: dict[str, Any], where: Location) -> bool:
    if cursor.skip("AUTO"):
        remarks.append(Remark("CLUSTER BY AUTO has no effect here: there is no background optimisation", where))
        return True
    if cursor.skip("NONE"):
        return True
    return _put_clause(found, "cluster_by", cursor.listed(lambda: ".".join(cursor.name("a column").parts)), where)


def _read_schedule_clause(cursor: Cursor, remarks: list[Remark], found: dict[str, Any], kind: Kind) -> bool:
    """When and how the table is refreshed."""
    where = cursor.where()
    if cursor.skip("REFRESH"):
        cursor.expect("POLICY")
        return _put_clause(found, "refresh_policy", _read_refresh_policy(cursor, kind, where), where)
    if cursor.skip("SCHEDULE"):
        cursor.skip("REFRESH")
        _read_schedule(cursor)
        remarks.append(Remark("SCHEDULE has no effect here: an update runs when it is started", where))
        return True
    if cursor.skip("TRIGGER"):
        cursor.expect("ON", "UPDATE")
        if cursor.skip("AT"):
            cursor.expect("MOST", "EVERY")
            _read_interval(cursor)
        remarks.append(Remark("TRIGGER ON UPDATE has no effect here: an update runs when it is started", where))
        return True
    return False


def _read_refresh_policy(cursor: Cursor, kind: Kind, where: Location) -> RefreshPolicy:
    """AUTO, INCREMENTAL, INCREMENTAL STRICT or FULL."""
    if kind is not Kind.MATERIALIZED_VIEW:
        raise cursor.error("REFRESH POLICY belongs to materialized views", where=where, todo="Leave it out.")
    if cursor.skip("INCREMENTAL"):
        return RefreshPolicy.INCREMENTAL_STRICT if cursor.skip("STRICT") else RefreshPolicy.INCREMENTAL
    if cursor.skip("FULL"):
        return RefreshPolicy.FULL
    if not cursor.skip("AUTO"):
        cursor.fail("AUTO, INCREMENTAL or FULL is expected", ("AUTO", "INCREMENTAL", "FULL"))
    return RefreshPolicy.AUTO


def _read_schedule(cursor: Cursor) -> None:
    if cursor.skip("CRON"):
        cursor.string("a string with the schedule")
        if cursor.skip("AT"):
            cursor.expect("TIME", "ZONE")
            cursor.string("a string with the time zone")
        return
    if not cursor.skip("EVERY"):
        cursor.fail("EVERY or CRON is expected", ("EVERY", "CRON"))
    _read_interval(cursor)


def _read_interval(cursor: Cursor) -> None:
    """`2 HOURS`, `INTERVAL 1 DAY`."""
    cursor.skip("INTERVAL")
    found = cursor.word()
    if found is None or found.kind not in ("number", "string"):
        cursor.fail("a number is expected")
    cursor.at += 1
    cursor.identifier("a unit of time")
