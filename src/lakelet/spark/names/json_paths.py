"""Paths into JSON text (`raw:a.b`) in queries and expressions of user code.

Databricks takes them on text and on VARIANT, Spark on VARIANT only. Columns have no types before a query is analysed, so each is tried as
Spark reads it; if Spark says that the column is not a VARIANT, it is tried again with `get_json_object` instead of the path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

from py4j.protocol import Py4JError
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame

from lakelet.base import sentences, user_code
from lakelet.language.sql_text.spark_words import in_words_of_spark

_in_text: ContextVar[bool] = ContextVar("lakelet_json_text", default=False)
_functions: WeakSet[Any] = WeakSet()  # functions of datasets whose expressions have paths into text


def on_text_too(text: str, run: Callable[[str], DataFrame]) -> DataFrame:
    """Run a query; if it takes values out of JSON text by `column:path`, run it in Spark's words."""
    try:
        return run(text)
    except (PySparkException, Py4JError) as problem:  # Spark calls a path into text an internal error
        if not is_path_into_text(problem):
            raise
        return run(in_words_of_spark(text))


def asked(query: Callable[[], Any], forget: Callable[[], None]) -> Any:
    """Return what a dataset's function returns; it is called once more if `F.expr` gave it a path into text.

    `forget` undoes what the first call left behind.
    """
    try:
        with _converting(query in _functions):
            return user_code.call_user_code(query)
    except Exception as problem:  # raised by the user's function, which may pass Spark's error on in one of its own
        if query in _functions or not is_path_into_text(problem):
            raise
    forget()
    _functions.add(query)
    with _converting(True):
        return user_code.call_user_code(query)


@contextmanager
def _converting(converts: bool) -> Iterator[None]:
    token = _in_text.set(converts)
    try:
        yield
    finally:
        _in_text.reset(token)


def is_path_into_text(problem: Exception) -> bool:
    """Whether Spark refused a path into text, or one with `[*]`, which it takes into VARIANT no more than into text."""
    return any(sentence.is_in(str(problem)) for sentence in (sentences.NOT_VARIANT, sentences.PATH_OF_ALL))


def converts() -> bool:
    """Whether the dataset's function that runs in this thread takes paths into text."""
    return _in_text.get()


def item_in_words_of_spark(text: str) -> str:
    """Return one item of a list after SELECT in Spark's words; a bare path is named as Databricks names its column."""
    head = "SELECT "
    return in_words_of_spark(head + text).removeprefix(head)
