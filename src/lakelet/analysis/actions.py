"""Actions inside datasets' functions: who asks for rows while a query is only described (DS-18, decision 19).

The reader that is active in the thread notes each action of user code, and writes are refused: a function is called several times per
update, also when nothing may be written.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakelet.base.errors import LakeletError, Location
from lakelet.base.user_code import ControlSignal
from lakelet.config import properties

STRICT = "lakelet.strictActions"
"""Configuration key: `true` refuses actions inside functions."""


def strict(parameters: Mapping[str, str]) -> bool:
    """Whether the configuration refuses actions. Raises PROPERTY_INVALID for a value that is neither true nor false."""
    try:
        return properties.switch(properties.look_up(parameters, STRICT) or "false")
    except ValueError as problem:
        raise LakeletError("PROPERTY_INVALID", f"{STRICT}: {problem}", todo="Correct the value in the pipeline's configuration.") from None


class RowsRequested(ControlSignal):
    """A function under analysis asks for rows of tables that have placeholders. No Exception, so that functions do not catch it."""


def refused(action: str, where: Location) -> LakeletError:
    """The error of an action where they are not wanted."""
    return LakeletError(
        "ACTION_IN_FUNCTION",
        f"{action}() runs a query inside a dataset's function, and {STRICT} is true",
        where=where,
        why="the function is called several times per update, and should only describe a query",
        todo="Write it as a part of the query: a join, an aggregate, a window. Actions at the top level of a file are fine.",
    )


__all__ = ["STRICT", "RowsRequested", "refused", "strict"]
