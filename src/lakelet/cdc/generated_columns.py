"""Columns of a change table that are computed from its rows: GENERATED ALWAYS AS, over `__START_AT` and `__END_AT` too (CD-22).

They are no part of the events and of the state: the rows that readers see get them when they are written.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.names import quoted
from lakelet.cdc.changes import Layout
from lakelet.cdc.mirror import PART, VISIBLE
from lakelet.jvm.expressions import uses
from lakelet.jvm.frames import analyzed
from lakelet.language.model import Dataset
from lakelet.language.sql.values import ColumnDefinition
from lakelet.spark.errors.diagnosis import first_line, without_proposal


def given(schema: T.StructType, computed: Sequence[ColumnDefinition]) -> T.StructType:
    """The columns of a table without those that are computed."""
    names = {column.name.lower() for column in computed}
    return T.StructType([field for field in schema.fields if field.name.lower() not in names])


def completed(rows: DataFrame, computed: Sequence[ColumnDefinition]) -> DataFrame:
    """Rows, or actions, of an internal table with the computed columns of those that readers see."""
    visible = F.col(PART).isin(*VISIBLE)
    return reduce(lambda done, column: done.withColumn(column.name, F.when(visible, F.expr(column.value))), computed, rows)


def check(dataset: Dataset, shape: Layout, empty: DataFrame) -> None:
    """Refuse computed columns that the rows of a change table cannot have. `empty`: of the session, with any columns and no rows.

    Raises SCHEMA_MISMATCH for a column that the source has too, QUERY_FAILED_ANALYSIS for an expression.
    """
    rows = empty.select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in shape.visible.fields))
    for column in dataset.computed:
        error = _refused(column, shape, rows)
        if error is not None:
            error.where, error.dataset = column.where, str(dataset.name)
            raise error
        rows = _with(rows, column)


def _refused(column: ColumnDefinition, shape: Layout, rows: DataFrame) -> LakeletError | None:
    """What is wrong with a column that is computed from `rows`; None if nothing is."""
    if column.name.lower() in {name.lower() for name in shape.visible.fieldNames()}:
        what = f"column {column.name!r} is generated, and the source of the changes has it too"
        todo = "Leave it out with except_column_list (COLUMNS * EXCEPT), or write it without GENERATED."
        return LakeletError("SCHEMA_MISMATCH", what, todo=todo)
    try:
        by_itself = _changes_by_itself(_with(rows, column))
    except (AnalysisException, ParseException) as problem:
        unknown = (problem.getMessageParameters() or {}).get("objectName", "").replace("`", "")
        found = LakeletError("QUERY_FAILED_ANALYSIS", f"the computed column {column.name!r} does not analyse")
        found.why, found.nearest = without_proposal(first_line(problem)), nearest_names(unknown, rows.columns) if unknown else ()
        found.todo = f"It may name the columns of the table: {', '.join(rows.columns[:20])}"
        return found
    if not by_itself:
        return None
    found = LakeletError("QUERY_FAILED_ANALYSIS", f"the computed column {column.name!r} has another value each time it is computed")
    found.why = "a row is written again with others, and would change without an event"
    found.todo = "Compute it from the columns of the row, or in the view that makes the events."
    return found


def _with(rows: DataFrame, column: ColumnDefinition) -> DataFrame:
    return rows.selectExpr("*", f"{column.value} AS {quoted(column.name)}")


def _changes_by_itself(rows: DataFrame) -> bool:
    """Whether a query uses chance, the current time or the user."""
    plan = analyzed(rows)
    return not plan.deterministic() or uses(rows.sparkSession, plan, "CURRENT_LIKE")


__all__ = ["check", "completed", "given"]
