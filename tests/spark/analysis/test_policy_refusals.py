"""Definitions whose refresh policy their query can never follow (IV-44)."""

from __future__ import annotations

import pytest

from lakelet.base.errors import DefinitionErrors

PIPELINE = """
    from pyspark import pipelines as dp
    from pyspark.sql import functions as F

    @dp.table
    def sales():
        return spark.readStream.schema("shop STRING, price INT").json(spark.conf.get("landing"))

    @dp.materialized_view(refresh_policy="incremental")
    def by_shop():
        return spark.read.table("sales").groupBy("shop").agg(F.sum("price").alias("price"))

    @dp.materialized_view(refresh_policy="incremental_strict")
    def dated():
        return spark.read.table("sales").withColumn("today", F.current_date())

    @dp.materialized_view(refresh_policy="full")
    def dated_in_full():
        return spark.read.table("sales").withColumn("today", F.current_date())
"""

SQL = """
    CREATE MATERIALIZED VIEW ranked REFRESH POLICY INCREMENTAL AS SELECT shop, row_number() OVER (ORDER BY price) AS place FROM sales;
    CREATE MATERIALIZED VIEW followed REFRESH POLICY INCREMENTAL STRICT AS SELECT shop, price FROM sales WHERE price > 3;
"""


def test_a_policy_that_a_query_can_never_follow_is_an_error_with_reason_and_remedy(project):
    p = project(PIPELINE)
    p.write(SQL, "more.sql")
    with pytest.raises(DefinitionErrors) as raised:
        p.pipeline.check()
    found = {str(error.dataset).rpartition(".")[2]: error for error in raised.value.errors}
    assert {name: error.code for name, error in found.items()} == dict.fromkeys(("dated", "ranked"), "REFRESH_NOT_INCREMENTAL")
    assert found["dated"].what == "its refresh policy is incremental_strict, and each refresh would compute all of it"
    assert "[PLAN_NOT_DETERMINISTIC.TIME_FUNCTION] " in str(found["dated"].why)
    assert "WINDOW_FUNCTION_WITHOUT_PARTITION_BY] " in str(found["ranked"].why)
    assert all("leave the policy out" in str(error.todo) and error.where for error in found.values())
