"""Converts exceptions raised by dataset functions into coded errors with the line of the user's file.

Spark's errors about the first mistakes in a query get plain words that say what to write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkAssertionError,
    PySparkAttributeError,
    PySparkKeyError,
    PySparkTypeError,
    PySparkValueError,
    SparkNoSuchElementException,
)
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import functions

from lakelet.base import sentences
from lakelet.base.errors import LakeletError, Location, nearest_names
from lakelet.base.names import split_name
from lakelet.base.raised import import_remedy, innermost_location, name_remedy, near_names
from lakelet.base.user_code import class_and_text, original_error
from lakelet.config.path_map import python_path_hint
from lakelet.language.loader import without_connector
from lakelet.language.model import Dataset, Flow
from lakelet.language.sql_text.tokens import plain_tokens
from lakelet.spark.errors.conditions import parameter
from lakelet.spark.errors.diagnosis import first_line, proposed, remedy, unresolved_name, unresolved_nearest, without_proposal

_DATA_CONDITIONS = (
    *("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "FAILED_READ_FILE"),
    *("DELTA_PATH_DOES_NOT_EXIST", "DELTA_SCHEMA_NOT_SET", "DELTA_TABLE_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE"),
)
# What pyspark raises for an invalid query; all other exceptions are caused by data or by the user's own code.
_MISTAKES = (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkAssertionError,
    PySparkAttributeError,
    PySparkKeyError,
    PySparkTypeError,
    PySparkValueError,
    SparkNoSuchElementException,
)

_SOURCES_OF_DATABRICKS = frozenset({"read_kinesis", "read_pubsub", "read_pulsar", "read_eventhubs", "read_statestore"})

NO_ROWS = (
    "Correct the function. If it looks at rows (collect, first): tables that are not there yet have none; a query would not ask for them."
)
"""The remedy of a failure that may be for want of rows."""
RUN_AGAIN = "Correct the function, or what it needs; the next update runs it again."
"""The remedy of a failure of which no more is known."""


_PATH_TODO = "Write get_json_object(column, '$.path') in place of column:path."
_COLUMN_TODO = "Make the column in the dataset's function, each time that it is called."


def coded(error: Exception, dataset: Dataset, flow: Flow) -> LakeletError:
    """Return the exception that the function of `dataset` raised as a LakeletError."""
    if isinstance(error, LakeletError):
        error.dataset = error.dataset or str(dataset.name)
        error.where = error.where or flow.where
        return error
    found = _missing_connector(error)
    if found is not None:
        found.where, found.dataset = _user_location(error, flow), str(dataset.name)
        return found
    if isinstance(error, _MISTAKES):
        return _analysis_error(error, dataset, flow)
    if sentences.NOT_VARIANT.is_in(str(error)):
        what = "the query takes a path out of a column that is text"
        return _refused_query(
            error, dataset, flow, what, "A path in F.expr outside of a dataset's function is one into VARIANT.", _PATH_TODO
        )
    return user_error(error, dataset, flow)


def _refused_query(error: BaseException, dataset: Dataset, flow: Flow, what: str, why: str, todo: str) -> LakeletError:
    """The error for a query that Spark refuses for a reason that Lakelet knows better."""
    where = _user_location(error, flow)
    return LakeletError("QUERY_FAILED_ANALYSIS", what, where=where, dataset=str(dataset.name), why=why, todo=todo)


def _analysis_error(error: PySparkException, dataset: Dataset, flow: Flow) -> LakeletError:
    condition = error.getCondition() or ""
    if condition.startswith("TABLE_OR_VIEW_NOT_FOUND") and "__lakelet_" in str(error):
        what = "the query has a column with a subquery that was made in another call of a function"
        return _refused_query(
            error, dataset, flow, what, "The tables that F.expr names are those of the call in which it stands.", _COLUMN_TODO
        )
    if words := in_plain_words(error, flow.query):
        return LakeletError(
            "QUERY_FAILED_ANALYSIS",
            words.what,
            where=_user_location(error, flow),
            dataset=str(dataset.name),
            why=words.why,
            nearest=words.nearest,
            todo=words.todo,
        )
    data = condition.startswith(_DATA_CONDITIONS)
    message = first_line(error)
    nearest = unresolved_nearest(error, proposed(error)) or near_names(error)
    return LakeletError(
        "FLOW_FAILED" if data else "QUERY_FAILED_ANALYSIS",
        "the data it reads cannot be opened" if data else "the query does not analyse",
        where=_user_location(error, flow),
        dataset=str(dataset.name),
        why=without_proposal(message),
        nearest=nearest,
        todo=remedy(error) or ("Check the path." if data else "Correct the query at this line."),
    )


def _missing_connector(error: BaseException) -> LakeletError | None:
    """SOURCE_FORMAT_MISSING or PACKAGE_MISSING where Spark needs a package to read what the code asks for; None for other failures."""
    function = (parameter(error, "name", condition="UNRESOLVABLE_TABLE_VALUED_FUNCTION") or "").strip("`")
    return without_connector(error, function if function.lower() in _SOURCES_OF_DATABRICKS else None)


def user_error(error: BaseException, dataset: Dataset, flow: Flow) -> LakeletError:
    """The failure of a dataset's function, with the line of the user's file that raised."""
    error = original_error(error)
    nearest = near_names(error)
    on_rows = isinstance(error, TypeError | AttributeError | IndexError) and not nearest
    known = NO_ROWS if on_rows else python_path_hint(error) or import_remedy(error) or name_remedy(error) or remedy(error)
    result = LakeletError(
        "USER_FUNCTION_FAILED",
        f"its function raised {class_and_text(error, first_line(error))}",
        where=_user_location(error, flow),
        dataset=str(dataset.name),
        nearest=nearest,
        todo=known or RUN_AGAIN,
    )
    result.__cause__ = error
    return result


def _user_location(error: BaseException, flow: Flow) -> Location:
    location: Location | None = getattr(error, "lakelet_where", None)  # a query of a SQL source knows line and column
    return location or innermost_location(error, name=unresolved_name(error)) or flow.where


# ------------------------------------------------------------------------------------------- first mistakes in a query


_KEYWORDS = ("SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "JOIN", "UNION", "LIMIT", "DISTINCT", "BETWEEN")
_SQL_ONLY = ("if", "nullif", "cast", "date", "string", "bigint", "int", "double", "decimal", "timestamp", "boolean", "current_timestamp")
_FUNCTIONS_OF_OTHERS = {
    "isnull": "isnull",
    "len": "length",
    "datepart": "date_part",
    "to_varchar": "to_char",
    "string_agg": "array_join(collect_list(column), ', ')",
    "group_concat": "array_join(collect_list(column), ', ')",
    "listagg": "listagg",
    "strftime": "date_format",
    "str_to_date": "to_date",
    "safe_cast": "try_cast",
    "countif": "count_if",
}
"""What Spark has for functions of other databases."""


@dataclass(frozen=True)
class PlainWords:
    """What is wrong, why, and what to write."""

    what: str
    why: str | None
    todo: str
    nearest: tuple[str, ...] = ()


def in_plain_words(error: PySparkException, query: Callable[..., Any]) -> PlainWords | None:
    """Return the words for an error of a dataset's query; None for one whose own words are kept. `query`: the dataset's function."""
    condition = (error.getCondition() or "").split(".")[0]
    text = getattr(query, "sql", None)
    sql = text if isinstance(text, str) else None
    if condition == "UNRESOLVED_ROUTINE":
        return _unknown_function(error)
    if condition == "MISSING_AGGREGATION":
        return _not_grouped((parameter(error, "expression") or "").replace("`", "") or "a column")
    if condition == "MISSING_GROUP_BY":
        beside = " and ".join(ungrouped(sql)) if sql else ""
        return _not_grouped(beside or "a column")
    if condition == "UNRESOLVED_COLUMN" and sql is not None and not _has_keyword(sql, "FROM"):
        return _without_from(error, sql)
    if condition == "PARSE_SYNTAX_ERROR":
        return _misspelt_keyword(error, sql)
    return None


def _unknown_function(error: PySparkException) -> PlainWords:
    name = split_name(parameter(error, "routineName") or "?")[-1]
    known = [*(one for one in functions.__all__ if one.islower()), *_SQL_ONLY]
    nearest = (_FUNCTIONS_OF_OTHERS[name.lower()],) if name.lower() in _FUNCTIONS_OF_OTHERS else nearest_names(name, known)
    return PlainWords(
        f"the query calls {name}(), and there is no SQL function of that name", None, remedy(error) or "Correct the name.", nearest
    )


def _not_grouped(column: str) -> PlainWords:
    what = f"the query has {column} beside an aggregate, and does not group by it"
    why = "One row stands for many then, and which of their values it shows is not said."
    if column == "a column":
        return PlainWords(what, why, "Write GROUP BY with each column that stands beside the aggregates, or aggregate it too: max(column).")
    return PlainWords(what, why, f"Write GROUP BY {column.replace(' and ', ', ')}, or aggregate it too: max({column.split(' and ')[0]}).")


def _without_from(error: PySparkException, sql: str) -> PlainWords:
    column = split_name(parameter(error, "objectName") or "?")[-1]
    near = _near_keyword(_words_of(sql), ("FROM",))
    return PlainWords(
        f"the query reads the column {column}, and has no FROM that says of which table",
        f"{near} is taken for a name." if near else None,
        f"Write FROM in place of {near}." if near else f"Write FROM and the name of the table that has {column}.",
        ("FROM",) if near else (),
    )


def _misspelt_keyword(error: PySparkException, sql: str | None) -> PlainWords | None:
    """For a word in front of the one at which Spark stopped, or that word itself."""
    words, at = _words_of(sql or ""), (parameter(error, "error") or "").strip("'")
    stops = [number for number, word in enumerate(words) if word == at] or [len(words)]
    near = next((found for stop in stops if (found := _near_keyword(reversed(words[max(stop - 2, 0) : stop + 1]), _KEYWORDS, at))), None)
    if not near:
        return None
    (keyword,) = nearest_names(near, _KEYWORDS, limit=1)
    return PlainWords(f"the query does not parse: {near} is no word of SQL", first_line(error), f"Write {keyword}.", (keyword,))


def _words_of(sql: str) -> list[str]:
    return [token.value for token in plain_tokens(sql)]


def _near_keyword(words: Iterable[str], keywords: Sequence[str], last: str = "") -> str | None:
    """The first bare word that is nearly a keyword, and no keyword itself; `last` counts if there is no other."""
    bare = [word for word in words if re.fullmatch(r"[A-Za-z]{4,}", word)]
    near = [word for word in bare if word.upper() not in _KEYWORDS and _is_near(word, keywords)]
    return next(iter(sorted(near, key=lambda word: word == last)), None)


def _is_near(word: str, keywords: Sequence[str]) -> bool:
    return any(sorted(word.upper()) == sorted(one) or nearest_names(word, [one], cutoff=0.85) for one in keywords)


def _has_keyword(sql: str, keyword: str) -> bool:
    return any(token.upper == keyword for token in plain_tokens(sql))


def ungrouped(sql: str) -> list[str]:
    """The columns of a query's list that stand beside an aggregate without being a part of one, as they are written."""
    import sqlglot  # takes 0.1 s, and few queries have the mistake
    from sqlglot import exp

    try:
        select = sqlglot.parse_one(sql, read="databricks").find(exp.Select)
    except sqlglot.errors.SqlglotError:
        return []
    if select is None:
        return []
    items = [item.unalias() for item in select.expressions]
    return [item.sql("databricks") for item in items if item.find(exp.Column) and not item.find(exp.AggFunc, exp.Window)]
