"""Views in part after changes that are none, and after changes that cannot be followed (IV-20 to IV-23, IV-33)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from deltalake import DeltaTable

from lakelet.files.delta_log import TableLog
from lakelet.jvm.delta import write_checkpoint
from tests.spark.conftest import Project
from tests.spark.flows.incremental import TABLES, Views, sale

APPEND, GROUPS, MERGE, FULL = "append", "groups", "merge", "full"
VIEWS = {
    "per_kind": "SELECT kind, COUNT(*) AS n, COUNT(DISTINCT shop) AS shops FROM {sales} GROUP BY kind",
    "prices": "SELECT id, price FROM {sales}",
    "per_shop": "SELECT shop, MAX(id) AS newest FROM {sales} GROUP BY shop",
}
FIRST = [sale(1, 1, "a", "2026-03-01 10:00:00", 1), sale(2, 1, "b", "2026-03-01 11:00:00", 2), sale(3, 2, None, None, None)]


@pytest.fixture
def views(project: Callable[..., Project]) -> Views:
    found = Views(project(), VIEWS)
    found.arrive("sales", *FIRST).arrive("shops")
    assert set(found.run().values()) == {FULL}
    return found


@pytest.mark.long
@pytest.mark.spark
def test_maintenance_of_an_input_is_no_change_and_rows_that_came_before_it_are_still_new(views: Views) -> None:
    views.arrive("sales", sale(4, 1, "b", None, 4)).run()
    views.sql("OPTIMIZE {sales}")
    assert views.run() == {}
    views.sql("INSERT INTO {sales} VALUES (5, 5, 'b', NULL, 5, 5)").sql("OPTIMIZE {sales}")
    assert views.run() == {"per_kind": GROUPS, "prices": APPEND, "per_shop": MERGE}
    views.sql("UPDATE {sales} SET kind = 'c' WHERE id = 5").sql("OPTIMIZE {sales}")
    assert views.run() == {"per_kind": GROUPS, "prices": "rows", "per_shop": GROUPS}


@pytest.mark.long
@pytest.mark.spark
def test_an_input_that_was_restored_or_overwritten_is_compared_row_by_row(views: Views) -> None:
    before = views.version("sales")
    views.sql("UPDATE {sales} SET kind = 'z' WHERE id = 1")
    assert views.run()["per_kind"] == GROUPS
    views.sql(f"RESTORE TABLE {{sales}} TO VERSION AS OF {before}")
    assert views.run()["per_kind"] == GROUPS
    views.sql("INSERT OVERWRITE {sales} SELECT * FROM {sales}")
    assert views.run() == {}
    views.sql("INSERT OVERWRITE {sales} SELECT id, shop, IF(id = 2, 'q', kind), at, price, x FROM {sales}")
    assert views.run()["per_kind"] == GROUPS


@pytest.mark.long
@pytest.mark.spark
def test_deleted_files_cleaned_logs_and_foreign_commits_cost_a_full_refresh(views: Views, spark: Any) -> None:
    views.sql("UPDATE {sales} SET kind = 'z' WHERE id = 1")
    DeltaTable(str(views.project.path("sales"))).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert set(views.run().values()) == {FULL}
    views.sql("DELETE FROM {per_kind} WHERE kind = 'z'").arrive("sales", sale(6, 1, "b", None, 4))
    assert views.run() == {"per_kind": FULL, "prices": APPEND, "per_shop": MERGE}
    views.sql("OPTIMIZE {prices}").arrive("sales", sale(7, 1, "b", None, 4))
    assert views.run() == {"per_kind": GROUPS, "prices": APPEND, "per_shop": MERGE}
    views.sql("UPDATE {sales} SET kind = 'y' WHERE id = 1").sql("UPDATE {sales} SET kind = 'x' WHERE id = 1")
    write_checkpoint(spark, str(views.project.path("sales")))
    TableLog(views.project.path("sales")).file(views.version("sales") - 1).unlink()
    assert set(views.run().values()) == {FULL}


@pytest.mark.long
@pytest.mark.spark
def test_a_new_column_of_an_input_and_other_settings(views: Views) -> None:
    views.write(VIEWS, TABLES.replace("x DOUBLE", "x DOUBLE, extra STRING"))
    views.arrive("sales", {**sale(9, 1, "a", None, 4), "extra": "e"})
    assert views.run() == {"per_kind": GROUPS, "prices": APPEND, "per_shop": MERGE}
    assert views.run() == {}
    views.project.parameters["spark.sql.session.timeZone"] = "Asia/Tokyo"
    views.arrive("sales", sale(10, 1, "a", None, 4))
    assert set(views.run().values()) == {FULL}
    views.write({**VIEWS, "prices": "SELECT id, price + 1 AS price FROM {sales}"})
    views.arrive("sales", sale(11, 1, "a", None, 4))
    assert views.run() == {"per_kind": GROUPS, "prices": FULL, "per_shop": MERGE}
