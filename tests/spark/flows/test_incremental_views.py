"""Views that follow the changes of their inputs have the rows of their queries, whatever changed (IV-20 to IV-31)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.spark.conftest import Project
from tests.spark.flows.incremental import Views, sale

GROUPS, MERGE, WINDOWS, ROWS, APPEND, FULL = "groups", "merge", "windows", "rows", "append", "full"

VIEWS = {
    "per_day": "SELECT shop, CAST(at AS DATE) AS day, SUM(price) AS total, COUNT(*) AS n FROM {sales} GROUP BY shop, CAST(at AS DATE)",
    "busy": "SELECT kind, AVG(x) AS mean, COUNT(DISTINCT shop) AS shops FROM {sales} GROUP BY kind HAVING COUNT(*) > 1",
    "newest": """SELECT shop, id, kind FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY shop ORDER BY at DESC, id DESC) AS n FROM {sales})
        WHERE n = 1 AND kind <> 'void'""",
    "kinds": "SELECT DISTINCT kind, shop FROM {sales}",
    "named": "SELECT s.id, s.shop, r.region, s.price FROM {sales} s LEFT JOIN {shops} r ON s.shop = r.shop",
    "per_region": "SELECT r.region, SUM(s.price) AS total FROM {sales} s JOIN {shops} r ON s.shop = r.shop GROUP BY r.region",
    "both": "SELECT id, price FROM {sales} UNION ALL SELECT shop, NULL FROM {shops}",
    "total": "SELECT COUNT(*) AS n, MAX(at) AS newest FROM {sales}",
    "above": "SELECT day, SUM(n) AS n FROM {per_day} GROUP BY day",
}
FIRST = [
    sale(1, 1, "a", "2026-03-01 10:00:00", 1.5),
    sale(2, 1, "b", "2026-03-01 11:00:00", 2),
    sale(3, 2, "a", "2026-03-02 10:00:00", 3, float("nan")),
    sale(4, None, None, None, 4),
    sale(5, 3, "c", "2026-03-05 10:00:00", None, 0.0),
]
SHOPS = [{"shop": 1, "region": "north"}, {"shop": 2, "region": "south"}]


def begun(project: Callable[..., Project], *names: str, marks: bool = False) -> Views:
    views = Views(project(), {name: text for name, text in VIEWS.items() if name in names or not names}, marks=marks)
    views.arrive("sales", *FIRST).arrive("shops", *SHOPS)
    assert set(views.run().values()) == {FULL}
    return views


@pytest.mark.long
@pytest.mark.spark
def test_new_rows_are_added_merged_or_computed_by_key(project: Callable[..., Project]) -> None:
    views = begun(project)
    views.arrive("sales", sale(6, 1, "a", "2026-03-01 12:00:00", 6), sale(7, None, "d", None, 7), sale(8, 9, "d", "2026-03-09 00:00:00", 8))
    assert views.run() == {
        "per_day": MERGE,
        "busy": GROUPS,
        "newest": WINDOWS,
        "kinds": GROUPS,
        "named": APPEND,
        "per_region": MERGE,
        "both": APPEND,
        "total": MERGE,
        "above": GROUPS,
    }
    views.arrive("shops", {"shop": 9, "region": "south"}, {"shop": 3, "region": None})
    assert views.run() == {"named": ROWS, "per_region": MERGE, "both": APPEND}
    views.arrive("sales", sale(9, 1, "a", "2026-03-01 12:00:00", 6)).arrive("shops", {"shop": 9, "region": "west"})
    found = views.run()
    assert (found["named"], found["per_region"], found["both"]) == (ROWS, GROUPS, APPEND)
    assert views.run() == {}


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.in_ci("marks")
@pytest.mark.parametrize("marks", [False, True], ids=["files", "marks"])
def test_updated_and_deleted_rows_touch_their_keys_before_and_after(project: Callable[..., Project], marks: bool) -> None:
    views = begun(project, "busy", "newest", "per_region", "named", marks=marks)
    views.sql("UPDATE {sales} SET price = 10, x = 2 WHERE id IN (1, 4)")
    assert views.run() == {"busy": GROUPS, "newest": WINDOWS, "per_region": GROUPS, "named": ROWS}
    views.sql("UPDATE {sales} SET shop = 2, at = '2026-03-02 23:30:00', kind = NULL WHERE id = 1")
    views.sql("UPDATE {sales} SET shop = NULL, x = 0.5 WHERE id IN (2, 5)")
    assert views.run() == {"busy": GROUPS, "newest": WINDOWS, "per_region": GROUPS, "named": ROWS}
    views.sql("UPDATE {sales} SET kind = 'void' WHERE id = 4")
    assert views.run()["newest"] == WINDOWS
    views.sql("DELETE FROM {shops} WHERE shop = 2").sql("UPDATE {shops} SET region = 'west' WHERE shop = 1")
    assert views.run() == {"per_region": GROUPS, "named": ROWS}
    views.sql("DELETE FROM {sales} WHERE id IN (1, 3)").sql("INSERT INTO {shops} VALUES (2, NULL)")
    assert views.run() == {"named": ROWS}  # the touched keys of the others have no row, before and after
    views.sql("DELETE FROM {sales}")
    views.run()


@pytest.mark.long
@pytest.mark.spark
def test_changes_go_through_a_chain_of_views(project: Callable[..., Project]) -> None:
    views = begun(project, "per_day", "above", "total")
    views.sql("UPDATE {sales} SET at = '2026-03-02 10:00:00' WHERE id = 1")
    assert views.run() == {"per_day": GROUPS, "above": GROUPS, "total": FULL}
    views.sql("UPDATE {sales} SET price = 3 WHERE id = 2")
    assert views.run() == {"per_day": GROUPS, "above": GROUPS, "total": FULL}
    views.sql("DELETE FROM {sales} WHERE at IS NULL")
    assert views.run() == {"per_day": GROUPS, "above": GROUPS, "total": FULL}


READS = """
import dlt
from pyspark import pipelines as dp
from pyspark.sql import functions as F

@dlt.table
def sales():
    rows = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    return rows.schema("id INT, shop INT").load(spark.conf.get("landing") + "/sales")

def per_shop(rows):
    return rows.groupBy("shop").agg(F.countDistinct("id").alias("n"))

@dp.materialized_view(refresh_policy="incremental_strict")
def by_reader():
    return per_shop(spark.read.table("sales"))

@dp.materialized_view(refresh_policy="incremental_strict")
def by_format():
    return per_shop(spark.read.format("delta").table("sales"))

@dp.materialized_view(refresh_policy="incremental_strict")
def by_session():
    return per_shop(spark.table("sales"))

@dp.materialized_view(refresh_policy="incremental_strict")
def by_dlt():
    return per_shop(dlt.read("sales"))
"""


@pytest.mark.long
@pytest.mark.spark
def test_a_view_follows_its_input_however_the_function_reads_it(project: Callable[..., Project]) -> None:
    made = project()
    made.write(READS)
    made.arrive("1.json", {"id": 1, "shop": 1}, {"id": 2, "shop": 2}, folder="sales")
    made.run()
    made.arrive("2.json", {"id": 3, "shop": 2}, folder="sales")
    made.run()
    for name in ("by_reader", "by_format", "by_session", "by_dlt"):
        assert made.rows(name, "shop", "n") == [(1, 1), (2, 2)]
