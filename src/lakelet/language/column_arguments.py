"""Arguments of user code that name columns or compute with them. All checks raise ARGUMENT_INVALID."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lakelet.base.errors import Location
from lakelet.base.names import split_name
from lakelet.language.arguments import invalid
from lakelet.language.model import ColumnPath
from lakelet.language.sql_text.spark_words import in_words_of_spark, written_text

_COLUMN = re.compile(r"Column<'(.*)'>", re.DOTALL)


def _is_column(value: Any) -> bool:
    return hasattr(value, "alias") and _COLUMN.fullmatch(str(value)) is not None


def expression(argument: str, value: Any, where: Location, *, needed: bool = False) -> Any:
    """SQL text or a Column, as given; None where it may be left out."""
    if value is None and not needed:
        return None
    if not _is_column(value) and not (isinstance(value, str) and value.strip()):
        raise invalid(f"{argument} must be SQL text or a Column, got {value!r}", where)
    text = written_text(value)
    return value if text is None else in_words_of_spark(text)


def _path(argument: str, value: Any, where: Location) -> ColumnPath:
    """The parts of a column's name, given as text or as `col("name")`."""
    text = _COLUMN.fullmatch(str(value))[1] if _is_column(value) else value  # type: ignore[index]
    if not isinstance(text, str):
        raise invalid(f'{argument} takes column names as text or col("name"), got {value!r}', where)
    try:
        return split_name(text)
    except ValueError:
        raise invalid(f"{argument}: {text!r} is not a column name", where) from None


def plain_column(argument: str, value: Any, where: Location) -> ColumnPath | None:
    if value is None:
        return None
    path = _path(argument, value, where)
    if len(path) > 1:
        todo = "Leave the table's name out; put back quotes around a name that has a dot."
        raise invalid(f"{argument}: {'.'.join(path)!r} is a qualified name", where, todo)
    return path


def columns(argument: str, value: Any, where: Location, *, nested: bool = False) -> tuple[ColumnPath, ...] | None:
    """A list of columns without repetition; None where none was given, or an empty one, as frameworks give. `nested`: fields too."""
    if value is None or (isinstance(value, list | tuple) and not value):
        return None
    if isinstance(value, str) or _is_column(value) or not isinstance(value, Sequence):
        raise invalid(f"{argument} must be a list of columns, got {value!r}", where, f'Write {argument}=["name"].')
    found = [_path(argument, v, where) if nested else plain_column(argument, v, where) for v in value]
    return tuple({tuple(part.lower() for part in path): path for path in found if path}.values())
