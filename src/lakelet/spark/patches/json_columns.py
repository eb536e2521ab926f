"""`from_json` without a schema but with `schemaLocationKey`: in Python, and in the SQL text of `F.expr` and `selectExpr` (JC-1)."""

from __future__ import annotations

from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.base.user_code import caller_location
from lakelet.language.registry import active_reader
from lakelet.spark.names.json_columns import in_text, is_inferring
from lakelet.spark.names.reader import TableReader
from lakelet.spark.patches.doors import Call, Rest, around, before
from lakelet.spark.patches.expressions import texts_of, with_texts

_WHY = "from_json of Databricks' pipelines infers the schema, and lets it grow"


@around(_WHY)
def from_json(call: Call, rest: Rest) -> Any:
    """Return the column with an inferred schema for a call without one. Raises JSON_COLUMN_INVALID outside of datasets' functions."""
    reader, options = active_reader(), call.get("options")
    if not is_inferring(call.get("schema"), options):
        return rest(call)
    if not isinstance(reader, TableReader):
        what = "from_json without a schema was called outside of a dataset's function"
        todo = "Call it inside: its schema belongs to the flow."
        raise LakeletError("JSON_COLUMN_INVALID", what, where=caller_location(), todo=todo)
    return reader.inferred_json(options, str(call.get("col")))(call.get("col"))


@before(_WHY)
def inferred(call: Call) -> Call:
    """Put functions of the session in the place of such calls in SQL text."""
    reader = active_reader()
    if not isinstance(reader, TableReader):
        return call
    sql, made = call.update.sql, reader.inferred_json
    return with_texts(call, [in_text(text, reader.spark, sql, made) if isinstance(text, str) else text for text in texts_of(call)])


__all__ = ["from_json", "inferred"]
