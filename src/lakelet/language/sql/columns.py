"""The list after a dataset's name: columns, expectations, informational constraints (SQ-5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import quoted
from lakelet.language.model import Action
from lakelet.language.sql.cursor import Cursor
from lakelet.language.sql.values import ColumnDefinition, ExpectConstraint, Fragment, IdentityClause, Remark, Spec
from lakelet.language.sql_text.tokens import literal, may_have, plain_tokens

_CONSTRAINTS = (("PRIMARY", "KEY"), ("FOREIGN", "KEY"), ("REFERENCES",), ("UNIQUE",))
_AFTER_TYPE = ("NOT", "NULL", "COMMENT", "GENERATED", "DEFAULT", "CONSTRAINT", "PRIMARY", "FOREIGN", "REFERENCES", "MASK")
_IN_TYPE = ("COLLATE", "WITH", "WITHOUT", "LOCAL", "TIME", "ZONE", "TO", "YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "PRECISION")
_OPTIONS = ("NOT NULL", "COMMENT", "GENERATED", "DEFAULT", "PRIMARY KEY", "MASK")


def spec(cursor: Cursor, remarks: list[Remark]) -> Spec:
    """Read `( … )`. Raises SQL_SYNTAX, SCHEMA_MISMATCH or PROTECTION_REFUSED.

    A rule may stand without a comma before it: older documentation had columns and rules as two lists without one between them.
    """
    where = cursor.where()
    if cursor.skip("(", ")"):
        return Spec()  # as Spark has it, and as a list of parameters that are empty leaves it
    columns: list[ColumnDefinition] = []
    rules: list[ExpectConstraint] = []
    keys: list[str] = []

    def item() -> None:
        if cursor.skip("CONSTRAINT"):
            _read_constraint(cursor, rules, keys, remarks)
        elif any(cursor.sees(*words, "(") for words in _CONSTRAINTS):
            keys.extend(_read_informational_key(cursor, remarks))
        else:
            columns.append(_read_column(cursor, remarks))

    cursor.listed(item, begins=lambda: _begins_rule(cursor))
    typed = [column for column in columns if column.type is not None]
    if typed and len(typed) < len(columns):
        bare = next(column for column in columns if column.type is None)
        raise LakeletError(
            "SQL_SYNTAX",
            f"column {bare.name!r} has no type, and others of the list have one",
            where=bare.where,
            todo="Give every column a type, or none.",
        )
    _check_computed(columns)
    return Spec(tuple(columns), tuple(rules), where, tuple(keys) or tuple(column.name for column in columns if column.is_key))


def _check_computed(columns: Sequence[ColumnDefinition]) -> None:
    """Refuse columns that are computed from numbers which rows get later."""
    numbers = [column.name for column in columns if column.identity is not None]
    for column in columns:
        if numbers and column.identity is None and column.filled is not None and may_have(column.filled.text, numbers):
            raise LakeletError(
                "NOT_SUPPORTED_YET",
                f"the column {column.name!r} is computed from an IDENTITY column",
                where=column.where,
                why="It is computed by the query, before the rows are written and get their numbers.",
                todo="Compute it in a table that reads this one.",
            )


def _begins_rule(cursor: Cursor) -> bool:
    """Whether `CONSTRAINT name EXPECT` comes next."""
    at = cursor.at
    return cursor.sees("CONSTRAINT") and at + 2 < len(cursor.words) and cursor.words[at + 2].upper == "EXPECT"


def ddl(columns: Sequence[ColumnDefinition]) -> str:
    """Typed columns as Spark's DDL has them: without what they compute."""
    parts = []
    for column in columns:
        null = "" if column.nullable else " NOT NULL"
        comment = f" COMMENT {literal(column.comment)}" if column.comment is not None else ""
        parts.append(f"{quoted(column.name)} {column.type}{null}{comment}")
    return ", ".join(parts)


def _read_constraint(cursor: Cursor, rules: list[ExpectConstraint], keys: list[str], remarks: list[Remark]) -> None:
    name, where = cursor.identifier("the constraint's name")
    if cursor.skip("EXPECT"):
        rules.append(_read_expectation(cursor, name, where))
    elif any(cursor.sees(*words) for words in _CONSTRAINTS):
        keys.extend(_read_informational_key(cursor, remarks))
    else:
        todo = "A rule is CONSTRAINT name EXPECT (condition)."
        cursor.fail("EXPECT, PRIMARY KEY or FOREIGN KEY is expected", ("EXPECT", "PRIMARY", "FOREIGN"), todo)


def _read_expectation(cursor: Cursor, name: str, where: Location) -> ExpectConstraint:
    condition = cursor.enclosed("the condition")
    action = Action.WARN
    if cursor.skip("ON"):
        cursor.expect("VIOLATION")
        if cursor.skip("FAIL"):
            cursor.expect("UPDATE")
            action = Action.FAIL
        elif cursor.skip("DROP"):
            cursor.expect("ROW")
            action = Action.DROP
        else:
            cursor.fail("DROP ROW or FAIL UPDATE is expected", ("DROP", "FAIL"), "To count broken rows only, leave ON VIOLATION out.")
    return ExpectConstraint(name, condition, action, where)


def _read_informational_key(cursor: Cursor, remarks: list[Remark]) -> tuple[str, ...]:
    """Read a key constraint, up to the comma or parenthesis after it; return the columns of a primary key that names them."""
    where = cursor.where()
    kind = next(" ".join(words) for words in _CONSTRAINTS if cursor.sees(*words))
    text = cursor.until("a key", lambda: False).text
    remarks.append(Remark(f"{kind} has no effect here: keys are informational, nothing checks them", where))
    return _names_in_parentheses(text) if kind == "PRIMARY KEY" else ()


def _names_in_parentheses(text: str) -> tuple[str, ...]:
    """The first word after the parenthesis that a text opens, and after each comma inside of it."""
    found, before = list[str](), ""
    for token in plain_tokens(text):
        if token.value == ")":
            break
        if before in ("(", ",") and token.is_name:
            found.append(token.value)
        before = token.value
    return tuple(found)


def _read_column(cursor: Cursor, remarks: list[Remark]) -> ColumnDefinition:
    name, where = cursor.identifier("a column")
    found = ColumnDefinition(name, where, type=_read_type(cursor))
    while not (cursor.ended or cursor.sees(",") or cursor.sees(")") or _begins_rule(cursor)):
        found = replace(found, **_read_column_option(cursor, name, remarks))
    if found.identity is not None and (found.type or "").upper() not in ("BIGINT", "LONG"):
        todo = f"Write {name} BIGINT GENERATED …"
        raise LakeletError("SCHEMA_MISMATCH", f"the IDENTITY column {name!r} must be a BIGINT", where=where, todo=todo)
    return found


def _read_identity(cursor: Cursor, where: Location) -> dict[str, Any]:
    """`{ALWAYS | BY DEFAULT} AS IDENTITY [( [START WITH n] [INCREMENT BY n] )]`, after GENERATED."""
    always = cursor.skip("ALWAYS")
    if not always and not cursor.skip("BY", "DEFAULT"):
        cursor.fail("ALWAYS or BY DEFAULT is expected", ("ALWAYS", "BY"))
    cursor.expect("AS")
    cursor.expect("IDENTITY")
    given: dict[str, int] = {}
    if cursor.skip("("):
        while not cursor.skip(")"):
            if given:
                cursor.skip(",")
            name = "start" if cursor.skip("START", "WITH") else "step" if cursor.skip("INCREMENT", "BY") else None
            if name is None or name in given:
                cursor.fail("START WITH, INCREMENT BY or ) is expected", ("START", "INCREMENT"))
            given[name] = _whole_number(cursor, nonzero=name == "step")
    return {"filled": Fragment("NULL", 0, where), "generated": always, "identity": IdentityClause(**given)}


def _whole_number(cursor: Cursor, *, nonzero: bool) -> int:
    sign = -1 if cursor.skip("-") else 1
    word = cursor.word()
    number = sign * int(word.value) if word is not None and word.value.isdecimal() else None
    if number is None or not -(2**63) <= number < 2**63 or (nonzero and number == 0):
        cursor.fail("a whole number other than 0 is expected" if nonzero else "a whole number of 64 bits is expected")
    cursor.take()
    return number


def _read_type(cursor: Cursor) -> str | None:
    """The text of a type, without comments; None if there is none."""
    begin, depth = cursor.at, 0
    while (word := cursor.word()) is not None:
        opens = word.upper in ("(", "<")
        of_name = word.is_name and (cursor.at == begin or word.upper in _IN_TYPE or cursor.words[cursor.at - 1].upper == "COLLATE")
        if depth == 0 and (word.upper in _AFTER_TYPE or not (of_name or (opens and cursor.at > begin))):
            break
        depth += 1 if opens else -1 if word.upper in (")", ">") else 0
        cursor.at += 1
    if cursor.at == begin and not cursor.ended and not any(cursor.sees(word) for word in (",", ")", *_AFTER_TYPE)):
        cursor.fail("a type is expected")
    if cursor.at == begin:
        return None
    text = cursor.fragment(begin, cursor.at).text
    if "--" in text or "/*" in text:
        text = " ".join(word.value for word in cursor.words[begin : cursor.at])
    return text


def _read_column_option(cursor: Cursor, name: str, remarks: list[Remark]) -> dict[str, Any]:
    where = cursor.where()
    if cursor.skip("NOT"):
        cursor.expect("NULL")
        return {"nullable": False}
    if cursor.skip("NULL"):
        return {}
    if cursor.skip("COMMENT"):
        return {"comment": cursor.string("a string with the comment")}
    if cursor.skip("GENERATED", "ALWAYS", "AS", "("):
        cursor.at -= 1
        return {"filled": cursor.enclosed("the expression"), "generated": True}
    if cursor.skip("GENERATED"):
        return _read_identity(cursor, where)
    if cursor.skip("DEFAULT"):
        options = lambda: any(cursor.sees(word) for word in _AFTER_TYPE)  # noqa: E731 - read where it is used
        return {"filled": cursor.until("the default", options)}
    if cursor.skip("MASK"):
        raise LakeletError(
            "PROTECTION_REFUSED",
            f"the column mask of {name!r} would not be applied: the data would be shown as it is",
            where=where,
            todo="Leave it out where the data may be seen.",
        )
    if cursor.skip("CONSTRAINT"):
        cursor.identifier("the constraint's name")
    if cursor.sees("PRIMARY", "KEY") or cursor.sees("FOREIGN", "KEY") or cursor.sees("REFERENCES"):
        is_key = cursor.sees("PRIMARY", "KEY")
        _read_informational_key(cursor, remarks)
        return {"is_key": True} if is_key else {}
    cursor.fail("a comma, ) or an option of the column is expected", _OPTIONS)
