"""Views that follow their inputs, and whose update is killed while they do (docs/semantics/view-refreshes.md, IV-33)."""

from __future__ import annotations

import pytest

from tests.crash.deaths import Deaths, Scenario
from tests.spark.conftest import Project

PIPELINE = """
from pyspark import pipelines as dp
from pyspark.sql import functions as F

@dp.table
def sales():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("shop STRING, day INT, n INT")
    return reader.load(spark.conf.get("landing"))

@dp.materialized_view(refresh_policy="incremental_strict")
def doubled():
    return spark.read.table("sales").select("shop", (F.col("n") * 2).alias("n"))

@dp.materialized_view(refresh_policy="incremental_strict")
def per_shop():
    return spark.read.table("sales").groupBy("shop").agg(F.sum("n").alias("n"))

@dp.materialized_view(refresh_policy="incremental_strict")
def days():
    return spark.read.table("sales").groupBy("day").agg(F.countDistinct("shop").alias("shops"))
"""


def sale(shop: str | None, day: int, n: int) -> dict[str, object]:
    return {"shop": shop, "day": day, "n": n}


def first_sales(project: Project) -> None:
    project.write(PIPELINE).arrive("a.json", sale("a", 1, 1), sale("b", 1, 2), sale(None, 2, 3))
    project.run()
    project.arrive("b.json", sale("a", 2, 10), sale(None, 3, 20), sale("a", 1, 1))


DYING = Scenario(
    first_sales,
    (
        *("view.keys_found", "view.files_written", "view.committed", "view.recorded"),
        *("view.keys_found@2", "view.files_written@2", "view.committed@2", "view.recorded@2", "view.committed@3", "view.recorded@3"),
    ),
)


@pytest.mark.in_ci("view.keys_found", "view.committed@2")
@pytest.mark.parametrize("failpoint", DYING.points)
def test_IV33_views_in_part_have_each_row_once_after_a_death(failpoint: str, deaths: Deaths) -> None:
    project = deaths.left_at(DYING, failpoint)
    check(project.run())
    project.arrive("c.json", sale("c", 1, 5))
    project.run()
    assert project.rows("per_shop", "shop", "n") == [("a", 12), ("b", 2), ("c", 5), (None, 23)]


def check(project: Project) -> None:
    assert project.rows("doubled", "shop", "n") == [("a", 2), ("a", 2), ("a", 20), ("b", 4), (None, 40), (None, 6)]
    assert project.rows("per_shop", "shop", "n") == [("a", 12), ("b", 2), (None, 23)]
    assert project.rows("days", "day", "shops") == [(1, 2), (2, 1), (3, 0)]
