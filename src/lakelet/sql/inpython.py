"""The DDL text that Python gives as a table's `schema`, beyond what Spark reads: computed columns, keys (dlt-semantics 1.2). Layer 1."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lakelet.errors import LakeletError, Location
from lakelet.sql.columns import ddl, spec
from lakelet.sql.cursor import Cursor
from lakelet.sql.query import with_filled
from lakelet.sql.text import Cell, CellText, StatementText
from lakelet.sql.values import Column, Remark


def declared_columns(text: str, where: Location, note: Callable[[str, Location], None]) -> tuple[str, tuple[Column, ...]]:
    """The columns as Spark's DDL has them, and those that are computed; `note` is told what has no effect.

    Text that is no list of columns comes back as it is: Spark says what is wrong with it. Raises ARGUMENT_INVALID for rules,
    NOT_SUPPORTED_YET for IDENTITY, PROTECTION_REFUSED for masks.
    """
    remarks: list[Remark] = []
    cell = CellText(Cell(f"({text}\n)", where.line, where.cell), where.file)
    try:
        cursor = Cursor(StatementText(cell, cell.cell.text, ((0, 0),)))
        found = spec(cursor, remarks)
        if not cursor.ended:
            return text, ()
    except LakeletError as error:
        if error.code == "SQL_SYNTAX":
            return text, ()
        error.where = where
        raise
    if found.rules:
        todo = f'Write it as @dlt.expect("{found.rules[0].name}", "{found.rules[0].condition.text}").'
        raise LakeletError("ARGUMENT_INVALID", "the schema holds an expectation", where=where, todo=todo)
    for remark in remarks:
        note(remark.text, where)
    return ddl(found.columns), tuple(column for column in found.columns if column.filled is not None)


def computing(query: Callable[[], Any], columns: tuple[Column, ...], where: Location) -> Callable[[], Any]:
    """A dataset's function whose rows have the computed columns too."""

    @functools.wraps(query)
    def rows() -> Any:
        frame = query()
        try:
            return functools.reduce(with_filled, columns, frame) if hasattr(frame, "selectExpr") else frame
        except LakeletError as error:
            error.where = where
            raise

    return rows
