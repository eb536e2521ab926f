"""Checks of the arguments that user code gives the functions of `dlt` and `dp`. All raise ARGUMENT_INVALID or NOT_SUPPORTED_YET."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakelet.base.errors import LakeletError, Location
from lakelet.base.text import option_text
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
