"""Functions of datasets that look at the rows which the last update left of their own table (LG-32).

Its schema and its rows may be looked at: `.schema(spark.table("orders").schema)`, the highest key so far. They may not be part of what the
function returns: a dataset cannot be computed from itself.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from lakelet.base.errors import LakeletError
from lakelet.jvm.frames import analyzed
from lakelet.language.model import Dataset
from lakelet.spark.errors.missing_tables import MissingTable

_MARK = "lakelet_own_rows"


def marked(frame: DataFrame) -> DataFrame:
    """The rows of the own table, so that a query that reads them can be told."""
    return frame.alias(_MARK)


def refuse_own_rows(frame: DataFrame, dataset: Dataset) -> None:
    """Raise CYCLE for a query that reads the rows of its own table."""
    if f"SubqueryAlias {_MARK}" in str(analyzed(frame).treeString()):
        raise circle(dataset)


def not_yet_there(dataset: Dataset) -> MissingTable:
    """The error for a function that looks at its own table before the first update; the function may catch it as Spark's."""
    found = circle(dataset)
    return MissingTable(str(dataset.name), found.what, where=found.where, todo=found.todo or "", kind=found.code)


def circle(*datasets: Dataset) -> LakeletError:
    """The error for datasets each of which reads the next, the last one the first."""
    names = [str(dataset.name) for dataset in (*datasets, datasets[0])]
    return LakeletError(
        "CYCLE",
        "datasets read each other in a circle: " + " → ".join(names),
        where=datasets[0].where,
        todo="Break the circle: one of them must not read the next.",
    )
