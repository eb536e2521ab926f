"""SQL text in `F.expr`, `selectExpr` and `filter`: tables that its subqueries name (LG-29), and paths into JSON text (`raw:a.b`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.errors.exceptions.base import PySparkException

from lakelet.jvm.errors import Py4JError
from lakelet.language.registry import active_reader
from lakelet.language.sql_text.spark_words import in_words_of_spark, note_written
from lakelet.language.sql_text.tokens import may_have
from lakelet.spark.names.json_paths import item_in_words_of_spark
from lakelet.spark.names.second_calls import TEXT_PATHS, is_path_into_text
from lakelet.spark.names.sql_queries import QueryReader
from lakelet.spark.patches.doors import Call, Rest, around

_TEXT = {"expr": "str", "selectExpr": "expr", "filter": "condition", "sql": "sqlQuery"}
"""The parameter with the SQL text, by the name of the method."""
_CONDITION, _ITEM = "SELECT 1 FROM VALUES (1) WHERE ", "SELECT "


def texts_of(call: Call) -> tuple[Any, ...]:
    """Return the texts of a call: those of a list one by one; conditions may be columns."""
    given = call.get(_TEXT[call.method])
    if call.method != "selectExpr":
        return (given,)
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], list) else tuple(given)


def with_texts(call: Call, texts: Sequence[Any]) -> Call:
    """Return the call with other texts."""
    return call.changed(**{_TEXT[call.method]: tuple(texts) if call.method == "selectExpr" else texts[0]})


@around("names in subqueries of conditions mean the pipeline's tables, as those in spark.sql do")
def subqueries(call: Call, rest: Rest) -> Any:
    """Go on with views instead of the tables that the texts name, while a dataset's function runs."""
    reader, head = active_reader(), _CONDITION if call.method == "filter" else _ITEM

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
def text_paths(call: Call, rest: Rest) -> Any:
    """Try a text as it is; where Spark refuses a path into text, go on with the call that Spark has for it.

    A column of `F.expr` has no query that could be tried: its path is replaced in the mode of `TEXT_PATHS`.
    """
    texts = texts_of(call)
    if call.method == "expr":
        column = rest(with_texts(call, [item_in_words_of_spark(texts[0])]) if TEXT_PATHS.on() else call)
        note_written(column, texts[0])
        return column
    try:
        return rest(call)
    except (PySparkException, Py4JError) as problem:  # Spark calls a path into text an internal error
        if not all(isinstance(text, str) for text in texts) or not is_path_into_text(problem):
            raise
        in_words = item_in_words_of_spark if call.method == "selectExpr" else in_words_of_spark
        return rest(with_texts(call, [in_words(text) for text in texts]))


__all__ = ["subqueries", "text_paths", "texts_of", "with_texts"]
