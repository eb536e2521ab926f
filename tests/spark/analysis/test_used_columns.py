"""What the fingerprint of a view has of its inputs: the columns that its query uses, with their types (UP-2)."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakelet.analysis.plan_facts import Placeholders, plan_text, printed_plan
from lakelet.analysis.plan_tree import plan_tree
from lakelet.analysis.used_columns import used_columns
from lakelet.jvm.frames import plan_json

BRONZE = "id BIGINT, kind STRING, amount DOUBLE, day DATE, tags ARRAY<STRING>"
WIDER = "`a, b` STRING, id BIGINT, note STRING, kind STRING, amount DOUBLE, more BIGINT, day DATE, tags ARRAY<STRING>, `end` BIGINT"
OTHER_TYPE = BRONZE.replace("id BIGINT", "id INT")

NARROW = [
    "SELECT kind, count(*) AS n, max(id) AS last FROM bronze GROUP BY kind",
    "SELECT id, kind FROM bronze WHERE amount > 1",
    "SELECT kind, max(id) AS last FROM (SELECT * FROM bronze WHERE day IS NOT NULL) GROUP BY kind",
    "SELECT kind, n, last FROM (SELECT *, count(*) OVER (PARTITION BY kind) AS n, max(id) OVER (PARTITION BY kind) AS last FROM bronze)",
    "WITH rows AS (SELECT * FROM bronze), few AS (SELECT * FROM rows WHERE id > 3) SELECT kind, max(id) AS last FROM few GROUP BY kind",
    "SELECT b.kind, c.id FROM bronze b JOIN bronze c ON b.id = c.id",
    "SELECT id, tag FROM bronze LATERAL VIEW explode(tags) t AS tag",
    "SELECT kind, id FROM bronze WHERE id IN (SELECT id FROM bronze WHERE kind = 'a')",
    "SELECT kind, id FROM bronze o WHERE EXISTS (SELECT * FROM (SELECT id FROM bronze) i WHERE i.id = o.id)",
    "WITH rows AS (SELECT * FROM bronze) SELECT kind, (SELECT max(id) FROM rows) AS last FROM rows",
    "SELECT DISTINCT kind, id FROM bronze",
    "SELECT kind, id FROM bronze UNION ALL SELECT kind, id FROM bronze",
]
"""Queries that use kind and id and do not see that their input has more columns."""
WHOLE = [
    "SELECT * FROM bronze",
    "SELECT count(*) AS n FROM (SELECT DISTINCT * FROM bronze)",
    "SELECT id FROM (SELECT * FROM bronze UNION ALL SELECT * FROM bronze)",
    "SELECT id, to_json(struct(*)) AS text FROM bronze",
    "SELECT id, count(*) AS n FROM (SELECT * FROM bronze EXCEPT SELECT * FROM bronze WHERE id = 1) GROUP BY id",
]
"""Queries whose result changes with each column of the input."""


def described(shared: SparkSession, columns: str, query: str) -> tuple[str, list[object]]:
    """What the fingerprint has of a query's plan: its text, and the types of the columns that it uses."""
    spark = shared.newSession()
    Placeholders(spark).frame("bronze", StructType.fromDDL(columns), streaming=False).alias("bronze").createOrReplaceTempView("bronze")
    frame: DataFrame = spark.sql(query)
    used = used_columns(plan_tree(plan_json(frame)))
    return plan_text(printed_plan(frame), used), [dict(types) for _, types in used.types]


@pytest.mark.parametrize("query", NARROW)
def test_a_column_that_is_not_used_is_not_in_the_fingerprint(spark: SparkSession, query: str) -> None:
    before = described(spark, BRONZE, query)
    assert described(spark, WIDER, query) == before
    assert described(spark, OTHER_TYPE, query) != before
    assert set(before[1][0]) <= {"id", "kind", "amount", "day", "tags"}
    assert all("id" in types for types in before[1]), "its type counts"


@pytest.mark.parametrize("query", WHOLE)
def test_a_column_that_goes_into_the_result_or_into_whole_rows_is(spark: SparkSession, query: str) -> None:
    assert described(spark, WIDER, query) != described(spark, BRONZE, query)
