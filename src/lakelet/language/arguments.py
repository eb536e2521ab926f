"""Checks of the arguments that user code gives the functions of `dlt` and `dp`. All raise ARGUMENT_INVALID or NOT_SUPPORTED_YET."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import split_name
from lakelet.base.text import option_text
from lakelet.language.model import ColumnPath
from lakelet.language.sql_text.spark_sql import in_spark_sql, written_text
from lakelet.language.unsupported import unsupported


def invalid(what: str, where: Location, todo: str | None = None) -> LakeletError:
    """Return the error for an argument of user code, to be raised."""
    return LakeletError("ARGUMENT_INVALID", what, where=where, todo=todo)


def text(name: str, value: Any, where: Location) -> str | None:
    if value is not None and not isinstance(value, str):
        raise invalid(f"{name} must be text, got {type(value).__name__}", where, f'Write it in quotes: {name}="{value}".')
    return value


def texts(name: str, value: Any, where: Location) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(v, str) for v in value):
        todo = f"Write {name}=[{', '.join(repr(one.strip()) for one in value.split(','))}]." if isinstance(value, str) else None
        raise invalid(f"{name} must be a list of column names, got {value!r}", where, todo)
    return tuple(value)


def settings(name: str, value: Any, where: Location) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise invalid(f"{name} must be a dictionary with text keys, got {value!r}", where)
    return {k: option_text(v) for k, v in value.items()}


def refuse_given(where: Location, **given: Any) -> None:
    """Refuse each argument that was given a value: it would otherwise be ignored."""
    for name, value in given.items():
        if value is not None and not (isinstance(value, bool | str | list | tuple | dict) and not value):  # a Column has no truth
            unsupported(f"the argument {name}", where)


# -------------------------------------------------------------------- arguments that name columns or compute with them


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
    return value if text is None else in_spark_sql(text)


def _column_path(argument: str, value: Any, where: Location) -> ColumnPath:
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
    path = _column_path(argument, value, where)
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
    found = [_column_path(argument, v, where) if nested else plain_column(argument, v, where) for v in value]
    return tuple({tuple(part.lower() for part in path): path for path in found if path}.values())
