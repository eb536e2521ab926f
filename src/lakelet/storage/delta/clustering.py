"""Clustering columns of a stored table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from lakelet.base.names import quoted
from lakelet.files.paths import AnyPath


def change(spark: SparkSession, path: AnyPath, before: Sequence[str] | None, wanted: Sequence[str]) -> None:
    """Let a table be clustered by other columns, in a commit of its own. Rows that are there stay where they are.

    `before`: nothing is done unless the table is clustered by these; None: whatever it is clustered by.
    """
    session: Any = spark._jsparkSession  # spark.sql resolves the names of the pipeline
    table = f"delta.{quoted(str(path))}"
    detail = session.sql(f"DESCRIBE DETAIL {table}").head()
    columns = detail.getSeq(detail.fieldIndex("clusteringColumns"))
    now = [str(columns.apply(i)).lower() for i in range(columns.size())]
    if now == [name.lower() for name in wanted] or (before is not None and now != [name.lower() for name in before]):
        return
    listed = ", ".join(map(quoted, wanted))
    session.sql(f"ALTER TABLE {table} CLUSTER BY " + (f"({listed})" if wanted else "NONE"))
