"""Queries that Databricks takes and Spark refuses, run again in a form that Spark takes. Each function gets a text, and what runs a text.

Paths into JSON text (`raw:a.b`): Spark takes them on VARIANT only, and columns have no types before a query is analysed, so each text is
tried first. Functions of a catalog (`catalog.schema.f(…)`): a function that the pipeline registered as `f` is called instead. Columns after
the full name of their table (`SELECT silver.orders.id FROM silver.orders`): a table becomes a temporary view, whose name has one part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from pyspark.errors import AnalysisException
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakelet.base.errors import LakeletError
from lakelet.base.names import TableName, quoted, split_name
from lakelet.jvm.errors import Py4JError
from lakelet.jvm.sessions import has_function
from lakelet.language.sql_text.spark_sql import in_spark_sql
from lakelet.language.sql_text.table_names import Edits, RelationRef, with_short_prefixes
from lakelet.language.sql_text.tokens import edited, may_have, name_end, tokens
from lakelet.spark.names.repeated_calls import is_path_into_text


def on_text_too(text: str, run: Callable[[str], DataFrame]) -> DataFrame:
    """Run a query; if it takes values out of JSON text by `column:path`, run it in Spark's words."""
    try:
        return run(text)
    except (PySparkException, Py4JError) as problem:  # Spark calls a path into text an internal error
        if not is_path_into_text(problem):
            raise
        return run(in_spark_sql(text))


def item_in_spark_sql(text: str) -> str:
    """Return one item of a list after SELECT in Spark's words; a bare path is named as Databricks names its column."""
    head = "SELECT "
    return in_spark_sql(head + text).removeprefix(head)


# ---------------------------------------------------------------------------------------------- functions of a catalog


_NAMED_IN = {
    "REQUIRES_SINGLE_PART_NAMESPACE": "identifier",
    "UNRESOLVED_ROUTINE": "routineName",
    "UNRESOLVABLE_TABLE_VALUED_FUNCTION": "name",
}


def with_own_functions(spark: SparkSession, text: str, run: Callable[[str], DataFrame]) -> DataFrame:
    """Run a query; functions of a catalog that Spark does not find are the pipeline's own of the same last name.

    Raises QUERY_FAILED_ANALYSIS with the way to give it one, where it has none.
    """
    try:
        return run(text)
    except AnalysisException as problem:
        missing = _missing_function(problem)
        calls = list(_qualified_calls(text)) if missing else []
        if not any(parts == missing for _, _, parts in calls):
            raise
        if not has_function(spark, missing[-1]):
            raise _unknown_function(missing) from problem
    own = [(start, stop, quoted(parts[-1])) for start, stop, parts in calls if has_function(spark, parts[-1])]
    return with_own_functions(spark, edited(text, own), run)


def _missing_function(problem: AnalysisException) -> tuple[str, ...]:
    """The name of the function that an error of Spark's is about, in lower case; empty if it has no catalog and schema."""
    key = _NAMED_IN.get(str(problem.getCondition()))
    try:
        parts = split_name((problem.getMessageParameters() or {}).get(key or "", ""))
    except ValueError:
        return ()
    return tuple(part.lower() for part in parts) if len(parts) > 1 else ()


def _qualified_calls(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """(start, stop, name in lower case) of each name of several parts before an opening bracket."""
    words = tokens(text)
    at = 0
    while at < len(words):
        end = name_end(words, at)
        if end > at + 1 and end < len(words) and words[end].upper == "(":
            yield words[at].start, words[end - 1].stop, tuple(word.value.lower() for word in words[at:end:2])
        at = max(end, at + 1)


def _unknown_function(parts: Sequence[str]) -> LakeletError:
    return LakeletError(
        "QUERY_FAILED_ANALYSIS",
        f"the query calls the function {'.'.join(parts)}, which is not on this machine",
        why="It belongs to a catalog on Databricks.",
        todo="A Python source file of its own can give the pipeline one of the same last name: "
        f'spark.udf.register("{parts[-1]}", function, "string")',
    )


# -------------------------------------------------------------------------- columns after the full name of their table


_UNRESOLVED_COLUMNS = ("UNRESOLVED_COLUMN", "CANNOT_RESOLVE_STAR_EXPAND", "UNRESOLVED_FIELD")

T = TypeVar("T")
Alias = Callable[[RelationRef], str]
"""What a table without an alias is called in the query."""


class ColumnPrefixes:
    """Names of tables, of several parts, as they may stand before columns of one query.

    `has_subqueries`: whether an expression of a text holds a query.
    """

    def __init__(self, has_subqueries: Callable[[str], bool]) -> None:
        self._has_subqueries = has_subqueries
        self._written: dict[tuple[str, ...], str] = {}  # name as the query writes it → full name; all in lower case
        self._names: dict[tuple[str, ...], set[str]] = {}  # name of several parts → full names

    def add(self, written: Sequence[str], full: TableName | None) -> None:
        """A table without an alias, as the query writes it and by its full name, where it has one."""
        parts = tuple(part.lower() for part in written)
        last = parts[-1]
        names = [parts, ("live", last)]
        if full is not None:
            names += [(full.catalog.lower(), full.schema.lower(), last), (full.schema.lower(), last)]
        self._written[parts] = key = full.key if full is not None else ".".join(parts)
        for name in names:
            if len(name) > 1:
                self._names.setdefault(name, set()).add(key)

    def run(self, with_aliases: Callable[[Alias], Edits], run: Callable[[str], T]) -> T:
        """Run a query whose columns may have names of tables before them.

        `with_aliases` gives the query with views for tables, and adds each table; its argument is what a table is called there: the last
        part of its name, also before columns. Where Spark does not find a column then, the columns stay as they are written. A table's
        name goes before a column of type struct whose fields spell the same. Raises QUERY_FAILED_ANALYSIS like `_run_with_distinct_names`.
        """
        self._written.clear()
        self._names.clear()
        query = with_aliases(lambda ref: ref.parts[-1])
        text = query.applied()
        first = tuple({name[0].upper() for name in self._names})
        if not first or not may_have(text, first):
            return run(text)
        short = with_short_prefixes(query, {name: name[-1] for name in self._names}).applied()
        shared = self._shared_last_names()
        if shared and short != text and self._has_subqueries(text):
            return self._run_with_distinct_names(shared, with_aliases, run)
        try:
            return run(short)
        except AnalysisException as problem:
            condition = problem.getCondition() or ""
            if shared and condition.startswith("AMBIGUOUS_REFERENCE"):
                with suppress(AnalysisException):
                    return self._run_with_distinct_names(shared, with_aliases, run)
            if short != text and condition.startswith(_UNRESOLVED_COLUMNS):
                with suppress(AnalysisException):
                    return run(text)
            raise

    def _shared_last_names(self) -> dict[str, list[str]]:
        """The last names of several tables, with the full names of these."""
        tables: dict[str, set[str]] = {}
        for written, key in self._written.items():
            tables.setdefault(written[-1], set()).add(key)
        return {last: sorted(keys) for last, keys in tables.items() if len(keys) > 1}

    def _run_with_distinct_names(
        self, shared: Mapping[str, Sequence[str]], with_aliases: Callable[[Alias], Edits], run: Callable[[str], T]
    ) -> T:
        """Run a query with tables of one name in several schemas, which the full names before their columns make distinct.

        Within a subquery `orders.id` is a column of the nearest FROM, and it is not known here which one: where a column has the
        last name of such tables alone before it, the query is refused with QUERY_FAILED_ANALYSIS.
        """

        def called(ref: RelationRef) -> str:
            last = ref.parts[-1].lower()
            return self._written.get(tuple(part.lower() for part in ref.parts), last) if last in shared else ref.parts[-1]

        of_one = {name: min(keys) if name[-1] in shared else name[-1] for name, keys in self._names.items() if len(keys) == 1}
        own = {name: key for name, key in self._written.items() if len(name) > 1 and name[-1] in shared}
        try:
            return run(with_short_prefixes(with_aliases(called), {**of_one, **own}).applied())
        except AnalysisException as problem:
            last = next((last for last in shared if f"`{last}`." in str(problem).lower()), None)
            if last is None or not (problem.getCondition() or "").startswith(_UNRESOLVED_COLUMNS):
                raise
            todo = f"Give them aliases (FROM {shared[last][0]} AS a), or write their full names before all of their columns."
            what = f"the query reads several tables called {last} ({', '.join(shared[last])}), and does not say which one is meant"
            raise LakeletError("QUERY_FAILED_ANALYSIS", what, why=f"{last} stands alone before a column", todo=todo) from problem


__all__ = ["Alias", "ColumnPrefixes", "T", "item_in_spark_sql", "on_text_too", "with_own_functions"]
