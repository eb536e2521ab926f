"""Paths into JSON text (`raw:a.b`) in `F.expr`, `selectExpr`, `filter` and `where`."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors.exceptions.base import PySparkException

from lakelet.base.patching import Patch, without_context
from lakelet.language.sql_text.spark_words import in_words_of_spark, note_written
from lakelet.spark.names.json_paths import item_in_words_of_spark
from lakelet.spark.names.second_calls import TEXT_PATHS, is_path_into_text
from lakelet.spark.patches import owners


def _expr(original: Any) -> Any:
    def expr(str: str) -> Any:
        column = original(item_in_words_of_spark(str) if TEXT_PATHS.on() else str)
        note_written(column, str)
        return column

    return expr


def _select(original: Any) -> Any:
    def select(self: Any, *expr: Any) -> Any:
        try:
            return original(self, *expr)
        except (PySparkException, Py4JError) as problem:  # Spark calls a path into text an internal error
            if not is_path_into_text(problem):
                raise
            given = expr[0] if len(expr) == 1 and isinstance(expr[0], list) else expr
            return original(self, *map(item_in_words_of_spark, given))

    return select


def _filter(original: Any) -> Any:
    def filtered(self: Any, condition: Any) -> Any:
        try:
            return original(self, condition)
        except (PySparkException, Py4JError) as problem:  # Spark calls a path into text an internal error
            if not isinstance(condition, str) or not is_path_into_text(problem):
                raise
            return original(self, in_words_of_spark(condition))

    return filtered


_WHY = "Databricks takes paths into JSON text (raw:a.b), Spark into VARIANT only"

EXPRESSIONS: tuple[Patch, ...] = (
    Patch(owners.FUNCTIONS, "expr", without_context(_expr), _WHY, "1.5.0"),
    Patch(owners.BUILTIN, "expr", without_context(_expr), _WHY, "1.5.0"),
    Patch(owners.FRAME, "selectExpr", without_context(_select), _WHY, "1.3.0"),
    Patch(owners.FRAME, "filter", without_context(_filter), _WHY, "1.3.0"),
    Patch(owners.FRAME, "where", without_context(_filter), _WHY, "1.3.0"),
)
"""Patches that let expressions take paths into text."""

__all__ = ["EXPRESSIONS"]
