"""The DDL text that Python gives as a table's `schema`, beyond what Spark reads: computed columns, keys (DS-22)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.language.sql.columns import ddl, spec
from lakelet.language.sql.cursor import Cursor
from lakelet.language.sql.query_functions import with_filled
from lakelet.language.sql.values import ColumnDefinition, Remark, Spec
from lakelet.language.sql_text.statements import Cell, CellText, StatementText


def declared_columns(text: str, where: Location, note: Callable[[str, Location], None]) -> tuple[str, tuple[ColumnDefinition, ...]]:
    """The columns as Spark's DDL has them, and those that are computed; `note` is called for what has no effect.

    Text that is not a list of columns comes back as it is: Spark says what is wrong with it. Raises ARGUMENT_INVALID for rules,
    PROTECTION_REFUSED for masks.
    """
    remarks: list[Remark] = []
    found = _column_list(text, where, remarks)
    if found is None:
        return text, ()
    if found.rules:
        todo = f'Write it as @dlt.expect("{found.rules[0].name}", "{found.rules[0].condition.text}").'
        raise LakeletError("ARGUMENT_INVALID", "the schema holds an expectation", where=where, todo=todo)
    for remark in remarks:
        note(remark.text, where)
    return ddl(found.columns), tuple(column for column in found.columns if column.filled is not None)


def primary_key_of(text: str, where: Location) -> tuple[str, ...]:
    """Return the columns of the primary key that DDL text declares."""
    found = _column_list(text, where, [])
    return found.primary_key if found is not None else ()


def columns_of(text: str, where: Location) -> tuple[ColumnDefinition, ...]:
    """Return the columns of DDL text; none for text that is not a list of columns."""
    found = _column_list(text, where, [])
    return found.columns if found is not None else ()


def _column_list(text: str, where: Location, remarks: list[Remark]) -> Spec | None:
    """The list of columns that a text is; None for text that is none. Raises like `columns.spec`, but for SQL_SYNTAX."""
    cell = CellText(Cell(f"({text}\n)", where.line, where.cell), where.file)
    try:
        cursor = Cursor(StatementText(cell, cell.cell.text, ((0, 0),)))
        found = spec(cursor, remarks)
        return found if cursor.ended else None
    except LakeletError as error:
        if error.code == "SQL_SYNTAX":
            return None
        error.where = where
        raise


def computing(query: Callable[[], Any], columns: tuple[ColumnDefinition, ...], where: Location) -> Callable[[], Any]:
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
