"""Errors of rows that Spark without ANSI mode turns into NULL: the expression, its line, and what the owner chooses between."""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass, replace
from pathlib import Path

from lakelet.base import sentences
from lakelet.base.errors import Location
from lakelet.base.user_code import code_location, is_library

TOLERANT = {
    "ARITHMETIC_OVERFLOW": "try_add, try_subtract or try_multiply",
    "CANNOT_PARSE_TIMESTAMP": "try_to_date or try_to_timestamp",
    "CAST_INVALID_INPUT": "try_cast",
    "CAST_OVERFLOW": "try_cast",
    "DATETIME_FIELD_OUT_OF_BOUNDS": "try_make_timestamp or try_to_timestamp",
    "DIVIDE_BY_ZERO": "try_divide",
    "INVALID_ARRAY_INDEX": "get",
    "INVALID_ARRAY_INDEX_IN_ELEMENT_AT": "try_element_at",
    "NUMERIC_VALUE_OUT_OF_RANGE": "try_cast",
    "REMAINDER_BY_ZERO": "try_mod",
}
"""The functions that give NULL where the condition would stop the update."""

SETTING = 'spark.sql.ansi.enabled: "false"'


@dataclass(frozen=True)
class _Expression:
    """The expression of a query that failed on a row. `where`: its line, where Spark knows it."""

    text: str
    where: Location | None = None


def choice(conditions: list[str], text: str, where: Location | None = None) -> str | None:
    """One line: what to write instead of which expression, or what to set in the bundle; None for other conditions.

    Args:
        conditions: those of the error.
        text: the message of Spark, with the place in the query.
        where: the declaration of the dataset, in whose file SQL text is looked for.
    """
    found = next((TOLERANT[one] for one in conditions if one in TOLERANT), None)
    if found is None:
        return None
    expression = _of_frame(text) or _of_sql(text, where)
    place = f" instead of `{expression.text}`" if expression else ""
    place += f" at {expression.where}" if expression and expression.where else ""
    return f"Choose: {found}{place}, which gives NULL for such rows; or {SETTING} in the pipeline's configuration, for all its queries."


def place(text: str) -> Location | None:
    """The line of user code that made the expression, where Spark says it."""
    found = _of_frame(text)
    return found.where if found else None


def _of_frame(text: str) -> _Expression | None:
    match = sentences.FRAME_CONTEXT.find(text)
    if match is None or is_library(match["file"]):
        return None
    line = linecache.getline(match["file"], int(match["line"])).strip()
    where = code_location(match["file"], int(match["line"]))
    expression = line.removeprefix("return ").rstrip(",;")
    return _Expression(expression or match["fragment"], replace(where, source=line or None))


def _of_sql(text: str, where: Location | None) -> _Expression | None:
    match = sentences.SQL_CONTEXT.find(text)
    if match is None:
        return None
    begin, length = len(match["before"]), len(match["marks"])
    fragment = match["sql"][begin : begin + length].strip() or match["sql"].strip()
    return _Expression(fragment, _in_source(fragment, where))


def _in_source(fragment: str, where: Location | None) -> Location | None:
    """The line of a source file, at or after the declaration, that holds the fragment."""
    if where is None or not where.line or where.cell is not None or not Path(where.file).is_file():
        return None
    lines = Path(where.file).read_text(encoding="utf-8", errors="replace").splitlines()
    plain = re.sub(r"\s+", "", fragment).lower()
    hit = next((at for at in range(where.line - 1, len(lines)) if plain in re.sub(r"\s+", "", lines[at]).lower()), None)
    return None if hit is None else Location(where.file, hit + 1)
