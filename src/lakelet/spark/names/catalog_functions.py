"""Functions of a catalog, `catalog.schema.f(…)`: a function that the pipeline registered as `f` answers for them.

Functions of Databricks' catalogs are not on this machine, and Spark's session knows functions without catalog and schema only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from lakelet.base.errors import LakeletError
from lakelet.base.names import quoted, split_name
from lakelet.jvm.sessions import has_function
from lakelet.language.sql_text.tokens import edited, name_end, tokens

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
        missing = _missing(problem)
        calls = list(_calls(text)) if missing else []
        if not any(parts == missing for _, _, parts in calls):
            raise
        if not has_function(spark, missing[-1]):
            raise _unknown(missing) from problem
    own = [(start, stop, quoted(parts[-1])) for start, stop, parts in calls if has_function(spark, parts[-1])]
    return with_own_functions(spark, edited(text, own), run)


def _missing(problem: AnalysisException) -> tuple[str, ...]:
    """The name of the function that an error of Spark's is about, in lower case; empty if it has no catalog and schema."""
    key = _NAMED_IN.get(str(problem.getCondition()))
    try:
        parts = split_name((problem.getMessageParameters() or {}).get(key or "", ""))
    except ValueError:
        return ()
    return tuple(part.lower() for part in parts) if len(parts) > 1 else ()


def _calls(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """(start, stop, name in lower case) of each name of several parts before an opening bracket."""
    words = tokens(text)
    at = 0
    while at < len(words):
        end = name_end(words, at)
        if end > at + 1 and end < len(words) and words[end].upper == "(":
            yield words[at].start, words[end - 1].stop, tuple(word.value.lower() for word in words[at:end:2])
        at = max(end, at + 1)


def _unknown(parts: Sequence[str]) -> LakeletError:
    return LakeletError(
        "QUERY_FAILED_ANALYSIS",
        f"the query calls the function {'.'.join(parts)}, which is not on this machine",
        why="It belongs to a catalog of the hosted service.",
        todo="A Python source file of its own can give the pipeline one of the same last name: "
        f'spark.udf.register("{parts[-1]}", function, "string")',
    )
