"""Pipelines written in SQL: their text becomes the same values as Python's decorators. No Spark.

`declare` reads one source; the caller has cut it into cells, of which a plain file has one. Both names are loaded when they are asked for:
they need sqlglot, and pipelines in Python do without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakelet.language.sql.declaring import declare
    from lakelet.language.sql_text.statements import Cell

__all__ = ["Cell", "declare"]


def __getattr__(name: str) -> Any:
    if name == "declare":
        from lakelet.language.sql.declaring import declare

        return declare
    if name == "Cell":
        from lakelet.language.sql_text.statements import Cell

        return Cell
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
