"""`VARCHAR(n)` in a declared schema: the column is a STRING, and a rule refuses longer values. No Spark.

Delta stores such columns as STRING everywhere; on Databricks a longer value fails the write, and here it fails the flow's rule.
"""

from __future__ import annotations

import re
from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import quoted
from lakelet.language.model import Action, Expectation
from lakelet.language.sql_text.tokens import may_have

_LIMIT = re.compile(r"\b(VAR)?CHAR(ACTER)?\s*\(", re.IGNORECASE)
_VARCHAR = re.compile(r"VARCHAR\s*\(\s*(\d+)\s*\)", re.IGNORECASE)


def without_lengths(schema: Any, where: Location) -> tuple[Any, tuple[Expectation, ...]]:
    """Return a declared schema, as DDL text or StructType, with STRING for each VARCHAR(n), and the rules that keep its length.

    Raises NOT_SUPPORTED_YET for CHAR(n), which pads its values, and for lengths within structs, arrays and maps.
    """
    if isinstance(schema, str):
        return _of_text(schema, where) if may_have(schema, ("VARCHAR", "CHAR", "CHARACTER")) else (schema, ())
    return _of_fields(schema, where) if schema is not None and _LIMIT.search(schema.simpleString()) else (schema, ())


def _of_text(schema: str, where: Location) -> tuple[str, tuple[Expectation, ...]]:
    from dataclasses import replace

    from lakelet.language.sql.columns import ddl  # here, because few schemas need it
    from lakelet.language.sql.python_schemas import columns_of

    found, rules = [], []
    for column in columns_of(schema, where):
        length = _VARCHAR.fullmatch(column.type or "")
        if length is not None:
            column = replace(column, type="STRING")
            rules.append(_length_rule(column.name, int(length[1]), where))
        elif _LIMIT.search(column.type or ""):
            raise _unsupported_type(column.name, column.type or "", where)
        found.append(column)
    return (ddl(found), tuple(rules)) if rules else (schema, ())


def _of_fields(schema: Any, where: Location) -> tuple[Any, tuple[Expectation, ...]]:
    fields, rules = schema.jsonValue()["fields"], []
    for field in fields:
        length = _VARCHAR.fullmatch(field["type"]) if isinstance(field["type"], str) else None
        if length is not None:
            field["type"] = "string"
            rules.append(_length_rule(field["name"], int(length[1]), where))
        elif _LIMIT.search(str(field["type"])):
            raise _unsupported_type(field["name"], str(field["type"]), where)
    return type(schema).fromJson({"type": "struct", "fields": fields}), tuple(rules)


def _length_rule(column: str, length: int, where: Location) -> Expectation:
    name = quoted(column)
    return Expectation(f"{column} VARCHAR({length})", f"{name} IS NULL OR length({name}) <= {length}", Action.FAIL, where)


def _unsupported_type(column: str, kind: str, where: Location) -> LakeletError:
    return LakeletError(
        "NOT_SUPPORTED_YET",
        f"the column {column!r} is declared as {kind}, and only VARCHAR(n) of a whole column is executed",
        where=where,
        todo="Declare it with STRING, and give the table a rule for the length.",
    )
