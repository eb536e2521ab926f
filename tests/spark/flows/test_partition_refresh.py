"""Materialized views of which only the partitions are computed again that can have changed (UP-8)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakelet.files.delta_log import TableLog
from tests.spark.conftest import Project

PIPELINE = """
import dlt
from pyspark import pipelines as dp
from pyspark.sql import Window, functions as F

@dlt.table(partition_cols=["day"])
def visits():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    return reader.schema("day DATE, page STRING, n INT").load(spark.conf.get("landing"))

@dlt.view
def pages():
    return dlt.read("visits").where("page <> 'test'").withColumnRenamed("day", "d")

@dlt.table(partition_cols=["date"])
def per_day():
    return dlt.read("pages").groupBy(F.col("d").alias("date")).agg(F.sum("n").alias("n"), F.countDistinct("page").alias("pages"))

@dlt.table(partition_cols=["day"])
def ranked():
    return dlt.read("visits").withColumn("rank", F.rank().over(Window.orderBy("n", "page")))

@dlt.table(partition_cols=["page"])
def per_page():
    return dlt.read("visits").groupBy("page").agg(F.sum("n").alias("n"))

@dp.materialized_view(partition_cols=["day"], refresh_policy="full")
def policy():
    return dlt.read("visits").select("day", "n")

@dlt.table(partition_cols=["day"])
@dlt.expect("some", "n > 0")
def judged():
    return dlt.read("visits").groupBy("day").agg(F.sum("n").alias("n"))
"""
WHOLE, PART = "COMPLETE_RECOMPUTE", "PARTITION_OVERWRITE"


def techniques(project: Project) -> dict[str, str]:
    found = {}
    for event in project.events:
        for technique in event.body.get("technique_information", ()):
            if technique["is_chosen"]:
                found[str(event.origin.flow_name).rsplit(".", 1)[-1]] = technique["maintenance_type"].removeprefix("MAINTENANCE_TYPE_")
    return found


def files(project: Project, name: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for uri in DeltaTable(str(project.path(name))).file_uris():
        found.setdefault(Path(uri).parent.name, set()).add(uri)
    return found


def read_bytes(project: Project, name: str) -> int:
    """About how much the view was computed from the last time, which the next update's session is set for."""
    found = project.storage.registry().datasets[f"main.default.{name}"].read_bytes
    assert found is not None
    return found


@pytest.mark.long
@pytest.mark.spark
def test_only_partitions_that_can_have_changed_are_computed_again(project: Callable[..., Project]) -> None:
    p = project(PIPELINE)
    first, second = {"day": "2026-03-01", "page": "a", "n": 1}, {"day": "2026-03-02", "page": "b", "n": 2}
    p.arrive("1.json", first, second, {"page": "a", "n": 4}, {**second, "page": "test"})
    assert set(techniques(p.run()).values()) == {WHOLE}
    before = files(p, "per_day")
    assert read_bytes(p, "per_day") == TableLog(p.path("visits")).bytes()

    p.arrive("2.json", {**second, "page": "c", "n": 3}, {"page": "c", "n": 1}, {"day": "2026-03-03", "page": "test", "n": 9})
    p.run()
    assert techniques(p) == {"per_day": PART, "ranked": WHOLE, "per_page": WHOLE, "policy": WHOLE, "judged": WHOLE}
    assert {(str(d), n, p) for d, n, p in p.rows("per_day", "date", "n", "pages")} == {
        ("2026-03-01", 1, 1),
        ("2026-03-02", 5, 2),
        ("None", 5, 2),
    }
    assert 0 < read_bytes(p, "per_day") < (TableLog(p.path("visits")).bytes() or 0) == read_bytes(p, "ranked")
    after = files(p, "per_day")
    assert {day for day in before if before[day] == after[day]} == {"date=2026-03-01"}
    assert set(p.rows("per_page", "n")) == {5, 2, 4, 11}

    # Rows that somebody took out of the input count as well; rows that somebody changed in the view cost a whole computation.
    DeltaTable(str(p.path("visits"))).delete("day = '2026-03-01'")
    p.run()
    assert techniques(p)["per_day"] == PART
    assert {str(d) for d, _ in p.rows("per_day", "date", "n")} == {"2026-03-02", "None"}
    DeltaTable(str(p.path("per_day"))).delete("n = 5 AND date IS NULL")
    p.arrive("3.json", {**first, "n": 7})
    p.run()
    assert techniques(p)["per_day"] == WHOLE
    assert {(str(d), n) for d, n in p.rows("per_day", "date", "n")} == {("2026-03-01", 7), ("2026-03-02", 5), ("None", 5)}

    p.write(PIPELINE.replace('F.sum("n").alias("n"), F.countDistinct', 'F.max("n").alias("n"), F.countDistinct'))
    p.arrive("4.json", {**first, "n": 8})
    p.run()
    assert techniques(p)["per_day"] == WHOLE
    assert {(str(d), n) for d, n in p.rows("per_day", "date", "n")} == {("2026-03-01", 8), ("2026-03-02", 3), ("None", 4)}
