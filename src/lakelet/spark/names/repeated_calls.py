"""Modes in which a dataset's function is called: as Spark takes its query, and once more where Spark refuses what Databricks takes.

Columns have no types and no origin before a query is analysed, so it is not known beforehand which mode a function needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

from lakelet.base import sentences, user_code
from lakelet.spark.errors.conditions import parameter


@dataclass(frozen=True, eq=False)
class CallMode:
    """One way to call functions. `refused`: whether an error says that the function needs it; `functions`: those that do."""

    refused: Callable[[Exception], bool]
    functions: WeakSet[Any] = field(default_factory=WeakSet)
    _on: ContextVar[bool] = field(default_factory=lambda: ContextVar("lakelet_mode", default=False))

    def on(self) -> bool:
        """Whether the dataset's function that runs in this thread is called in this mode."""
        return self._on.get()

    @contextmanager
    def active(self, query: object) -> Iterator[None]:
        """Call a function in this mode if it is known to need it."""
        token = self._on.set(query in self.functions)
        try:
            yield
        finally:
            self._on.reset(token)


def is_path_into_text(problem: Exception) -> bool:
    """Whether Spark refused a path into text, or one with `[*]`, which it takes into VARIANT no more than into text."""
    return any(sentence.is_in(str(problem)) for sentence in (sentences.NOT_VARIANT, sentences.PATH_OF_ALL))


def _asks_for_metadata(problem: Exception) -> bool:
    return (parameter(problem, "objectName", condition="UNRESOLVED_COLUMN") or "").lower().startswith("`_metadata`")


def _has_ambiguous_columns(problem: Exception) -> bool:
    return parameter(problem, "ambiguousAttrs", condition="_LEGACY_ERROR_TEMP_1182") is not None


TEXT_PATHS = CallMode(is_path_into_text)
"""`F.expr` takes paths into JSON text (`sql_rewriting`)."""
FILE_METADATA = CallMode(_asks_for_metadata)
"""Streams of Delta tables, and datasets of the pipeline, have the hidden column `_metadata` (`file_metadata`)."""
OWN_COLUMNS = CallMode(_has_ambiguous_columns)
"""Each grouping of a data frame has columns of its own (`spark.patches.sql_expressions`)."""
_MODES = (TEXT_PATHS, FILE_METADATA, OWN_COLUMNS)


def asked(query: Callable[[], Any], forget: Callable[[], None]) -> Any:
    """Return what a dataset's function returns; it is called again in each mode that an error asks for.

    `forget` undoes what a call has left behind.
    """
    while True:
        try:
            with ExitStack() as modes:
                for mode in _MODES:
                    modes.enter_context(mode.active(query))
                return user_code.call_user_code(query)
        except Exception as problem:  # raised by the user's function, which may pass Spark's error on in one of its own
            needed = next((mode for mode in _MODES if query not in mode.functions and mode.refused(problem)), None)
            if needed is None:
                raise
        forget()
        needed.functions.add(query)


__all__ = ["FILE_METADATA", "OWN_COLUMNS", "TEXT_PATHS", "CallMode", "asked", "is_path_into_text"]
