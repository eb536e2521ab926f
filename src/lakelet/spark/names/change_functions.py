"""`table_changes(name, start, end)` in SQL text: the change feed of a table, read as a batch (SQ-14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from lakelet.base.errors import LakeletError, Location

TABLE_CHANGES = "table_changes"
_MOST = 3
"""A name, and from where to where."""


def feed_of(names: Sequence[str | None], values: Sequence[Any], where: Location | None) -> tuple[str, Mapping[str, str]]:
    """Return the name of the table, and the options of Delta's reader of its feed, that the arguments of a call mean.

    A number is a version, anything else a time. Raises CF_INCORRECT_SQL_PARAMS for arguments of another shape.
    """
    shaped = 2 <= len(values) <= _MOST and not any(names) and isinstance(values[0], str) and values[1] is not None
    bounds = values[1:]
    if not shaped or not all(isinstance(bound, int | str | date | None) and not isinstance(bound, bool) for bound in bounds):
        what = f"{TABLE_CHANGES} takes the name of a table as a text, a version or time to begin with, and perhaps one to end with"
        todo = f"For example: {TABLE_CHANGES}('silver.orders', 0)"
        raise LakeletError("CF_INCORRECT_SQL_PARAMS", what, where=where, todo=todo)
    options = {"readChangeFeed": "true"}
    for side, bound in zip(("starting", "ending"), bounds, strict=False):
        if bound is not None:
            options[f"{side}Version" if isinstance(bound, int) else f"{side}Timestamp"] = str(bound)
    return values[0], options


__all__ = ["TABLE_CHANGES", "feed_of"]
