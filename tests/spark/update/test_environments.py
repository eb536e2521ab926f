"""Environments: changed datasets are computed over the main storage, of which nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelet.inspection.inspector import list_tables, run_sql
from lakelet.pipeline import Pipeline
from lakelet.plan.selection import Request
from lakelet.storage.environments import begin_environment, environment_config
from tests.spark.conftest import Project

ORDERS = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.table
    def bronze():
        files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id INT, amount INT")
        return files.load(spark.conf.get("landing"))

    @dlt.table
    def silver():
        return dlt.read_stream("bronze").select("id", "amount")

    @dlt.table
    def gold():
        return spark.read.table("silver").groupBy("id").agg(F.sum("amount").alias("total"))

    @dlt.table
    def other():
        return spark.read.table("bronze").select("id").distinct()
"""


class Environment:
    """An environment over the storage of a project."""

    def __init__(self, project: Project, root: Path) -> None:
        self.project, self.storage = project, begin_environment(project.storage.root, root)

    def run(self, *select: str, expect: str = "COMPLETED", **request: Any) -> Environment:
        config = environment_config(self.project.pipeline.config, self.storage.root)
        result = Pipeline(config, spark=self.project.spark).run(Request(select=select, **request))
        assert result.state == expect, "\n".join(map(str, result.errors))
        return self

    def rows(self, query: str) -> list[dict[str, Any]]:
        return list(run_sql(self.storage.root, query).rows)


@pytest.fixture
def orders(project: Callable[..., Project]) -> Project:
    made = project(ORDERS)
    made.arrive("1.json", {"id": 1, "amount": 10}, {"id": 2, "amount": 5})
    made.run()
    made.arrive("2.json", {"id": 1, "amount": 1})
    return made.run()


def test_changed_datasets_are_computed_on_the_rows_of_the_main_storage(orders: Project, tmp_path: Path) -> None:
    before = orders.snapshot()
    orders.write(ORDERS.replace('F.sum("amount")', 'F.max("amount")'))
    environment = Environment(orders, tmp_path / "environment").run("gold")
    assert environment.rows("SELECT id, total FROM gold ORDER BY id") == [{"id": 1, "total": 10}, {"id": 2, "total": 5}]
    assert environment.rows("SELECT count(*) AS n FROM silver") == [{"n": 3}]
    assert orders.snapshot() == before


def test_a_stream_goes_on_from_the_rows_and_the_checkpoint_of_the_main_storage(orders: Project, tmp_path: Path) -> None:
    before = orders.snapshot()
    orders.write(ORDERS.replace('"id", "amount")', '"id", "amount", F.lit(1).alias("more"))'))
    orders.arrive("3.json", {"id": 3, "amount": 7})
    environment = Environment(orders, tmp_path / "environment").run("bronze+")
    found = environment.rows("SELECT id, amount, more FROM silver ORDER BY id, amount")
    assert [(row["id"], row["amount"], row["more"]) for row in found] == [(1, 1, None), (1, 10, None), (2, 5, None), (3, 7, 1)]
    assert environment.rows("SELECT id, total FROM gold ORDER BY id")[2] == {"id": 3, "total": 7}
    assert {row.name for row in list_tables(environment.storage.root)} >= {"main.default.other", "main.default.silver"}
    assert orders.snapshot() == before
    environment.run("bronze+")
    assert orders.snapshot() == before
