"""Spark's errors about the first mistakes in a query, in words that say what to write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import functions

from lakelet.base.errors import nearest_names
from lakelet.base.names import split_name
from lakelet.language.sql_text.tokens import plain_tokens
from lakelet.spark.errors.conditions import parameter
from lakelet.spark.errors.diagnosis import first_line, remedy

_KEYWORDS = ("SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "JOIN", "UNION", "LIMIT", "DISTINCT", "BETWEEN")
_SQL_ONLY = ("if", "nullif", "cast", "date", "string", "bigint", "int", "double", "decimal", "timestamp", "boolean", "current_timestamp")
_OTHERS = {
    "isnull": "isnull",
    "getdate": "current_timestamp",
    "len": "length",
    "datepart": "date_part",
    "to_varchar": "to_char",
    "iff": "if",
    "string_agg": "array_join(collect_list(column), ', ')",
    "group_concat": "array_join(collect_list(column), ', ')",
    "listagg": "listagg",
    "strftime": "date_format",
    "str_to_date": "to_date",
    "safe_cast": "try_cast",
    "countif": "count_if",
    "charindex": "locate",
}
"""What Spark has for functions of other databases."""


@dataclass(frozen=True)
class Words:
    """What is wrong, why, and what to write."""

    what: str
    why: str | None
    todo: str
    nearest: tuple[str, ...] = ()


def in_plain_words(error: PySparkException, query: Callable[..., Any]) -> Words | None:
    """Return the words for an error of a dataset's query; None for one whose own words are kept. `query`: the dataset's function."""
    condition = (error.getCondition() or "").split(".")[0]
    text = getattr(query, "sql", None)
    sql = text if isinstance(text, str) else None
    if condition == "UNRESOLVED_ROUTINE":
        return _function(error)
    if condition == "MISSING_AGGREGATION":
        return _not_grouped((parameter(error, "expression") or "").replace("`", "") or "a column")
    if condition == "MISSING_GROUP_BY":
        beside = " and ".join(ungrouped(sql)) if sql else ""
        return _not_grouped(beside or "a column")
    if condition == "UNRESOLVED_COLUMN" and sql is not None and not _has(sql, "FROM"):
        return _no_from(error, sql)
    if condition == "PARSE_SYNTAX_ERROR":
        return _misspelt(error, sql)
    return None


def _function(error: PySparkException) -> Words:
    name = split_name(parameter(error, "routineName") or "?")[-1]
    known = [*(one for one in functions.__all__ if one.islower()), *_SQL_ONLY]
    nearest = (_OTHERS[name.lower()],) if name.lower() in _OTHERS else nearest_names(name, known)
    return Words(
        f"the query calls {name}(), and there is no SQL function of that name", None, remedy(error) or "Correct the name.", nearest
    )


def _not_grouped(column: str) -> Words:
    what = f"the query has {column} beside an aggregate, and does not group by it"
    why = "One row stands for many then, and which of their values it shows is not said."
    if column == "a column":
        return Words(what, why, "Write GROUP BY with each column that stands beside the aggregates, or aggregate it too: max(column).")
    return Words(what, why, f"Write GROUP BY {column.replace(' and ', ', ')}, or aggregate it too: max({column.split(' and ')[0]}).")


def _no_from(error: PySparkException, sql: str) -> Words:
    column = split_name(parameter(error, "objectName") or "?")[-1]
    near = _near_keyword(_words(sql), ("FROM",))
    return Words(
        f"the query reads the column {column}, and has no FROM that says of which table",
        f"{near} is taken for a name." if near else None,
        f"Write FROM in place of {near}." if near else f"Write FROM and the name of the table that has {column}.",
        ("FROM",) if near else (),
    )


def _misspelt(error: PySparkException, sql: str | None) -> Words | None:
    """For a word in front of the one at which Spark stopped, or that word itself."""
    words, at = _words(sql or ""), (parameter(error, "error") or "").strip("'")
    stops = [number for number, word in enumerate(words) if word == at] or [len(words)]
    near = next((found for stop in stops if (found := _near_keyword(reversed(words[max(stop - 2, 0) : stop + 1]), _KEYWORDS, at))), None)
    if not near:
        return None
    (keyword,) = nearest_names(near, _KEYWORDS, limit=1)
    return Words(f"the query does not parse: {near} is no word of SQL", first_line(error), f"Write {keyword}.", (keyword,))


def _words(sql: str) -> list[str]:
    return [token.value for token in plain_tokens(sql)]


def _near_keyword(words: Iterable[str], keywords: Sequence[str], last: str = "") -> str | None:
    """The first bare word that is nearly a keyword, and no keyword itself; `last` counts if there is no other."""
    bare = [word for word in words if re.fullmatch(r"[A-Za-z]{4,}", word)]
    near = [word for word in bare if word.upper() not in _KEYWORDS and _is_near(word, keywords)]
    return next(iter(sorted(near, key=lambda word: word == last)), None)


def _is_near(word: str, keywords: Sequence[str]) -> bool:
    return any(sorted(word.upper()) == sorted(one) or nearest_names(word, [one], cutoff=0.85) for one in keywords)


def _has(sql: str, keyword: str) -> bool:
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


__all__ = ["Words", "in_plain_words", "ungrouped"]
