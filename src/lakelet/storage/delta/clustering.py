"""Clustering columns of a stored table."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from lakelet.base.names import quoted, split_name
from lakelet.files.paths import AnyPath
from lakelet.jvm.scala import items
from lakelet.jvm.sessions import java_session, plain_sql


def written(names: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Clustering columns as Delta parses them: the names of `columns` in back quotes, a path into a struct as it is."""
    known = {column.lower() for column in columns}
    return [quoted(name) if name.lower() in known else name for name in names]


def change(spark: SparkSession, path: AnyPath, before: Sequence[str] | None, wanted: Sequence[str]) -> None:
    """Let a table be clustered by other columns, in a commit of its own. Rows that are there stay where they are.

    `before`: nothing is done unless the table is clustered by these; None: whatever it is clustered by.
    """
    session = java_session(spark)
    table = f"delta.{quoted(str(path))}"
    detail = plain_sql(session, f"DESCRIBE DETAIL {table}").head()
    columns = items(detail.getSeq(detail.fieldIndex("clusteringColumns")))
    now = [".".join(split_name(str(column))).lower() for column in columns]
    if now == [name.lower() for name in wanted] or (before is not None and now != [name.lower() for name in before]):
        return
    listed = ", ".join(written(wanted, spark.read.format("delta").load(str(path)).columns))
    plain_sql(session, f"ALTER TABLE {table} CLUSTER BY " + (f"({listed})" if wanted else "NONE"))
