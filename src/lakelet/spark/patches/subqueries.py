"""Tables that are named within conditions and items given as text: `where("id IN (SELECT id FROM other)")` (LG-29)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakelet.base.patching import Patch, without_context
from lakelet.language.registry import active_reader
from lakelet.language.sql_text.tokens import may_have
from lakelet.spark.names.sql_queries import QueryReader
from lakelet.spark.patches import owners

_CONDITION, _ITEM = "SELECT 1 FROM VALUES (1) WHERE ", "SELECT "


def _reader_of(text: Any) -> QueryReader | None:
    """The reader of the dataset's function that is running, if the text may hold a subquery."""
    reader = active_reader()
    return reader if isinstance(reader, QueryReader) and isinstance(text, str) and may_have(text, ("SELECT",)) else None


def _read(head: str, text: Any, run: Callable[[Any], DataFrame]) -> DataFrame:
    """Call `run` with a text; where a dataset's function names tables in it, with the names of views of theirs."""
    reader = _reader_of(text)
    if reader is None:
        return run(text)
    return reader.sql(head + text, lambda query: run(query.removeprefix(head)))


def _expr(original: Any, update: SparkSession) -> Any:
    def expr(str: str) -> Any:
        reader = _reader_of(str)
        return original(str if reader is None else reader.in_views(_ITEM + str, update.sql).removeprefix(_ITEM))

    return expr


def _filter(original: Any) -> Any:
    def filtered(self: Any, condition: Any) -> DataFrame:
        return _read(_CONDITION, condition, lambda text: original(self, text))

    return filtered


def _select(original: Any) -> Any:
    def select(self: Any, *expr: Any) -> DataFrame:
        def read(done: tuple[Any, ...], rest: tuple[Any, ...]) -> DataFrame:
            if rest:
                return _read(_ITEM, rest[0], lambda text: read((*done, text), rest[1:]))
            found: DataFrame = original(self, *done)
            return found

        return read((), tuple(expr[0]) if len(expr) == 1 and isinstance(expr[0], list) else expr)

    return select


_WHY = "names in subqueries of conditions mean the pipeline's tables, as those in spark.sql do"

SUBQUERIES: tuple[Patch, ...] = (
    Patch(owners.FUNCTIONS, "expr", _expr, _WHY, "1.5.0"),
    Patch(owners.BUILTIN, "expr", _expr, _WHY, "1.5.0"),
    Patch(owners.FRAME, "filter", without_context(_filter), _WHY, "1.3.0"),
    Patch(owners.FRAME, "selectExpr", without_context(_select), _WHY, "1.3.0"),
)
"""Patches that let text of data frames name tables."""

__all__ = ["SUBQUERIES"]
