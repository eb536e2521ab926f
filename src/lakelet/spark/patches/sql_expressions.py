"""SQL text in `F.expr`, `selectExpr` and `filter`, the function `from_json`, and columns of groupings.

Subqueries of such texts name tables of the pipeline (LG-29), paths go into JSON text (`raw:a.b`), and a `from_json` without a schema but
with `schemaLocationKey` infers it (JC-1). Two groupings of one frame get columns of their own (LG-27).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakelet.base.errors import LakeletError
from lakelet.base.names import quoted
from lakelet.base.user_code import caller_location
from lakelet.jvm.errors import Py4JError
from lakelet.language.registry import active_reader
from lakelet.language.sql_text.spark_sql import in_spark_sql, note_written
from lakelet.language.sql_text.tokens import may_have
from lakelet.spark.names.from_json import in_text, is_inferring
from lakelet.spark.names.reader import TableReader
from lakelet.spark.names.repeated_calls import OWN_COLUMNS, TEXT_PATHS, is_path_into_text
from lakelet.spark.names.sql_queries import QueryReader
from lakelet.spark.names.sql_rewriting import item_in_spark_sql
from lakelet.spark.patches.doors import Call, Rest, around, before

_TEXT_PARAMETERS = {"expr": "str", "selectExpr": "expr", "filter": "condition", "sql": "sqlQuery"}
"""The parameter with the SQL text, by the name of the method."""
_CONDITION_HEAD, _ITEM_HEAD = "SELECT 1 FROM VALUES (1) WHERE ", "SELECT "


def texts_of(call: Call) -> tuple[Any, ...]:
    """Return the texts of a call: those of a list one by one; conditions may be columns."""
    given = call.get(_TEXT_PARAMETERS[call.method])
    if call.method != "selectExpr":
        return (given,)
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], list) else tuple(given)


def with_texts(call: Call, texts: Sequence[Any]) -> Call:
    """Return the call with other texts."""
    return call.changed(**{_TEXT_PARAMETERS[call.method]: tuple(texts) if call.method == "selectExpr" else texts[0]})


@around("names in subqueries of conditions mean the pipeline's tables, as those in spark.sql do")
def resolve_subqueries(call: Call, rest: Rest) -> Any:
    """Go on with views instead of the tables that the texts name, while a dataset's function runs."""
    reader, head = active_reader(), _CONDITION_HEAD if call.method == "filter" else _ITEM_HEAD

    def read(done: tuple[Any, ...], left: tuple[Any, ...]) -> Any:
        if not left:
            return rest(with_texts(call, done))
        text, *others = left
        if not isinstance(reader, QueryReader) or not isinstance(text, str) or not may_have(text, ("SELECT",)):
            return read((*done, text), tuple(others))
        if call.method == "expr":  # a column, whose query is still to come
            return read((reader.in_views(head + text, call.update.sql).removeprefix(head),), ())
        return reader.sql(head + text, lambda query: read((*done, query.removeprefix(head)), tuple(others)))

    return read((), texts_of(call))


@around("Databricks takes paths into JSON text (raw:a.b), Spark into VARIANT only")
def convert_text_paths(call: Call, rest: Rest) -> Any:
    """Try a text as it is; where Spark refuses a path into text, go on with the call that Spark has for it.

    A column of `F.expr` has no query that could be tried: its path is replaced in the mode of `TEXT_PATHS`.
    """
    texts = texts_of(call)
    if call.method == "expr":
        column = rest(with_texts(call, [item_in_spark_sql(texts[0])]) if TEXT_PATHS.on() else call)
        note_written(column, texts[0])
        return column
    try:
        return rest(call)
    except (PySparkException, Py4JError) as problem:  # Spark calls a path into text an internal error
        if not all(isinstance(text, str) for text in texts) or not is_path_into_text(problem):
            raise
        in_words = item_in_spark_sql if call.method == "selectExpr" else in_spark_sql
        return rest(with_texts(call, [in_words(text) for text in texts]))


# ----------------------------------------------------------------------------------------------------------- from_json


_INFERRED_WHY = "from_json of Databricks' pipelines infers the schema, and lets it grow"


@around(_INFERRED_WHY)
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


@before(_INFERRED_WHY)
def infer_json_schemas(call: Call) -> Call:
    """Replace such calls in SQL text by functions of the session."""
    reader = active_reader()
    if not isinstance(reader, TableReader):
        return call
    sql, udf_of = call.update.sql, reader.inferred_json
    return with_texts(call, [in_text(text, reader.spark, sql, udf_of) if isinstance(text, str) else text for text in texts_of(call)])


# --------------------------------------------------------------------------------- groupings of one data frame (LG-27)


@around("columns of two groupings of one frame are distinct in joins, as in the sessions of serverless pipelines")
def give_own_columns(call: Call, rest: Rest) -> DataFrame:
    """Give the result of a grouping columns of its own, in the mode of `OWN_COLUMNS`.

    `a` and `b`, two groupings of one frame, share the column of the key: Spark cannot tell `a.key` from `b.key` once both are joined.
    """
    frame: DataFrame = rest(call)
    names = frame.columns if OWN_COLUMNS.on() else []
    if not names or len({name.lower() for name in names}) < len(names):
        return frame
    return frame.select(*(F.col(quoted(name)).alias(name) for name in names))


__all__ = ["convert_text_paths", "from_json", "give_own_columns", "infer_json_schemas", "resolve_subqueries", "texts_of", "with_texts"]
