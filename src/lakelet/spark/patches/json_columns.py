"""`from_json` without a schema but with `schemaLocationKey`: in Python, and in the SQL text of `F.expr` and `selectExpr` (JC-1)."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from lakelet.base.errors import LakeletError
from lakelet.base.locations import caller_location
from lakelet.base.patching import Patch, without_context
from lakelet.language.registry import active_reader
from lakelet.spark.names.json_columns import in_text, is_inferring
from lakelet.spark.names.reader import TableReader
from lakelet.spark.patches import owners


def _from_json(original: Any) -> Any:
    def from_json(col: Any, schema: Any, options: Any = None) -> Any:
        reader = active_reader()
        if not is_inferring(schema, options):
            return original(col, schema, options)
        if not isinstance(reader, TableReader):
            what = "from_json without a schema was called outside of a dataset's function"
            todo = "Call it inside: its schema belongs to the flow."
            raise LakeletError("JSON_COLUMN_INVALID", what, where=caller_location(), todo=todo)
        return reader.inferred_json(options, str(col))(col)

    return from_json


def _rewritten(text: Any, spark: SparkSession) -> Any:
    reader = active_reader()
    if not isinstance(text, str) or not isinstance(reader, TableReader):
        return text
    return in_text(text, reader.spark, spark.sql, reader.inferred_json)


def _expr(original: Any, update: SparkSession) -> Any:
    def expr(str: str) -> Any:
        return original(_rewritten(str, update))

    return expr


def _select(original: Any, update: SparkSession) -> Any:
    def select(self: Any, *expr: Any) -> Any:
        given = expr[0] if len(expr) == 1 and isinstance(expr[0], list) else expr
        return original(self, *(_rewritten(text, update) for text in given))

    return select


_WHY = "from_json of Databricks' pipelines infers the schema, and lets it grow"

JSON_COLUMNS: tuple[Patch, ...] = (
    Patch(owners.FUNCTIONS, "from_json", without_context(_from_json), _WHY, "2.1.0"),
    Patch(owners.BUILTIN, "from_json", without_context(_from_json), _WHY, "2.1.0"),
    Patch(owners.FUNCTIONS, "expr", _expr, _WHY, "1.5.0"),
    Patch(owners.BUILTIN, "expr", _expr, _WHY, "1.5.0"),
    Patch(owners.FRAME, "selectExpr", _select, _WHY, "1.3.0"),
)
"""Patches that let calls of `from_json` infer their schema in the functions of datasets."""

__all__ = ["JSON_COLUMNS"]
