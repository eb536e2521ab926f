"""Paths into JSON text (`raw:a.b`) in queries and expressions of user code.

Databricks takes them on text and on VARIANT, Spark on VARIANT only. Columns have no types before a query is analysed, so each is tried as
Spark reads it; if Spark says that the column is not a VARIANT, it is tried again with `get_json_object` instead of the path.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame

from lakelet.jvm.errors import Py4JError
from lakelet.language.sql_text.spark_words import in_words_of_spark
from lakelet.spark.names.second_calls import is_path_into_text


def on_text_too(text: str, run: Callable[[str], DataFrame]) -> DataFrame:
    """Run a query; if it takes values out of JSON text by `column:path`, run it in Spark's words."""
    try:
        return run(text)
    except (PySparkException, Py4JError) as problem:  # Spark calls a path into text an internal error
        if not is_path_into_text(problem):
            raise
        return run(in_words_of_spark(text))


def item_in_words_of_spark(text: str) -> str:
    """Return one item of a list after SELECT in Spark's words; a bare path is named as Databricks names its column."""
    head = "SELECT "
    return in_words_of_spark(head + text).removeprefix(head)
