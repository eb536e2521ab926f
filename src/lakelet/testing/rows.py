"""Rows as tests write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__tracebackhide__ = True

Row = Mapping[str, Any]


def columns_of(rows: Sequence[Row]) -> list[str]:
    """The columns that the rows name, in order."""
    return list(dict.fromkeys(name for row in rows for name in row))


def columns_of_texts(rows: Sequence[Row]) -> list[str]:
    """The columns that hold texts beside single values of other types."""
    values = {name: [row[name] for row in rows if row.get(name) is not None] for name in columns_of(rows)}
    texts = {name: [isinstance(value, str) for value in found] for name, found in values.items()}
    mixed = [name for name, found in texts.items() if any(found) and not all(found)]
    return [name for name in mixed if not any(isinstance(value, list | Mapping | bytes) for value in values[name])]
