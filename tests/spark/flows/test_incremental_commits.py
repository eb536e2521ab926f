"""What a refresh in part commits, and what it leaves (IV-23, IV-25, IV-29 to IV-32)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from lakelet.files.delta_log import TableLog
from lakelet.plan.selection import Request
from tests.spark.conftest import Project
from tests.spark.flows.incremental import Views, sale

APPEND, GROUPS, MERGE, FULL = "append", "groups", "merge", "full"
READERS = ("prices", "per_kind")


def kept(views: Views, name: str) -> dict[str, Any]:
    """What the newest commit of a view keeps."""
    log = TableLog(views.project.path(name))
    found = log.commit(log.version())
    assert found is not None
    assert found.user_metadata is not None
    return dict(found.user_metadata["lakelet"])


def files(views: Views, name: str) -> set[str]:
    return {Path(uri).name for uri in DeltaTable(str(views.project.path(name))).file_uris()}


@pytest.mark.long
@pytest.mark.spark
def test_files_without_a_touched_key_stay_and_so_does_the_description(project: Callable[..., Project]) -> None:
    described = ", comment='sales of a day', table_properties={'owner': 'us'}, cluster_by=['day']"
    schema = ", schema='day DATE COMMENT \"of the sale\", shops BIGINT, total DECIMAL(20,2)'"
    query = "SELECT CAST(at AS DATE) AS day, COUNT(DISTINCT shop) AS shops, SUM(price) AS total FROM {sales} GROUP BY 1"
    views = Views(project(), {"days": query}, days_more=described + schema)
    views.arrive("sales", *(sale(i, i, "a", f"2026-03-0{i} 10:00:00", i) for i in range(1, 5))).arrive("shops").run()
    views.arrive("sales", sale(9, 9, "a", "2026-03-09 10:00:00", 9))
    assert views.run() == {"days": GROUPS}
    before = files(views, "days")
    views.arrive("sales", sale(10, 10, "a", "2026-03-09 11:00:00", 10))
    assert views.run() == {"days": GROUPS}
    assert len(files(views, "days") & before) == len(before) - 1
    table = DeltaTable(str(views.project.path("days")))
    assert table.metadata().description == "sales of a day"
    assert table.metadata().configuration["owner"] == "us"
    assert table.schema().fields[0].metadata["comment"] == "of the sale"
    learned = kept(views, "days")["view"]["learned"]
    assert learned["full_seconds"] > 0
    assert learned["partial_seconds"] > 0


@pytest.mark.long
@pytest.mark.spark
def test_a_change_that_touches_no_key_is_noted_without_a_commit(project: Callable[..., Project]) -> None:
    views = Views(project(), {"a_only": "SELECT shop, AVG(x) AS x FROM {sales} WHERE kind = 'a' GROUP BY shop"})
    views.arrive("sales", sale(1, 1, "a", None, 1)).arrive("shops").run()
    views.arrive("sales", sale(2, 2, "b", None, 1))
    assert views.run() == {}
    assert views.project.statuses()["a_only"] == "COMPLETED"
    assert views.run() == {}
    assert views.project.statuses()["a_only"] == "IDLE"
    views.sql("UPDATE {sales} SET kind = 'a' WHERE id = 2")
    assert views.run() == {"a_only": GROUPS}


@pytest.mark.long
@pytest.mark.spark
def test_rules_count_as_in_a_full_refresh(project: Callable[..., Project]) -> None:
    rules = '@dp.expect("priced", "price > 1")\n@dp.{0}("known", "id IS NOT NULL")\n'
    queries = {
        "rows": "SELECT id, price FROM {sales}",
        "sums": "SELECT shop AS id, SUM(price) AS price FROM {sales} GROUP BY shop",
        "means": "SELECT shop AS id, AVG(price) AS price FROM {sales} GROUP BY shop",
        "dropped": "SELECT shop AS id, SUM(price) AS price FROM {sales} GROUP BY shop",
        "hidden": "SELECT shop, AVG(price) AS price FROM {sales} GROUP BY shop",
    }
    given = {f"{name}_rules": rules.format("expect") for name in ("sums", "means")}
    given |= {f"{name}_rules": rules.format("expect_or_drop") for name in ("rows", "dropped")}
    views = Views(project(), queries, dropped_policy="auto", hidden_rules='@dp.expect("any", "price > 1")\n', **given)
    views.arrive("sales", sale(1, 1, "a", None, 1), sale(2, 2, "a", None, 2)).arrive("shops")
    views.project.run()
    views.arrive("sales", sale(3, 1, "a", None, 3), sale(4, 3, "a", None, 0.5))
    views.project.run()
    found = {name: views.technique(name) for name in queries}
    assert found == {"rows": APPEND, "sums": MERGE, "means": GROUPS, "dropped": FULL, "hidden": GROUPS}
    assert views.project.quality("rows") == {"priced": (2, 2), "known": (4, 0)}
    assert views.project.quality("sums") == {"priced": (2, 1), "known": (3, 0)}
    assert views.project.quality("means") == {"priced": (2, 1), "known": (3, 0)}
    views.sql("DELETE FROM {sales} WHERE id = 4")
    views.project.run()
    assert views.project.quality("means") == {"priced": (2, 0), "known": (2, 0)}
    assert views.project.quality("sums") == {"priced": (2, 0), "known": (2, 0)}


@pytest.mark.long
@pytest.mark.spark
def test_a_full_refresh_commits_the_rows_that_are_others_where_a_view_reads_it(project: Callable[..., Project]) -> None:
    queries = {
        "first": "SELECT id, kind, x FROM {sales} ORDER BY id LIMIT 3",
        "per_kind": "SELECT kind, COUNT(DISTINCT id) AS n FROM {first} GROUP BY kind",
    }
    views = Views(project(), queries, first_policy="full")
    views.arrive("sales", sale(1, 1, "a", None, 1), sale(2, 1, "b", None, 1)).arrive("shops")
    assert views.run() == {"first": FULL, "per_kind": FULL}
    views.arrive("sales", sale(3, 1, "b", None, 1, float("nan")))
    assert views.run() == {"first": FULL, "per_kind": GROUPS}
    views.arrive("sales", sale(4, 1, "b", None, 1))
    assert views.run() == {}
    views.sql("UPDATE {sales} SET x = 5 WHERE id = 1")
    assert views.run() == {"first": FULL, "per_kind": GROUPS}


@pytest.mark.long
@pytest.mark.spark
def test_a_function_that_chooses_a_version_is_computed_as_a_whole(project: Callable[..., Project]) -> None:
    views = Views(project(), {"plain": "SELECT id, kind FROM {sales}"})
    views.project.write(
        """
        from pyspark import pipelines as dp

        @dp.materialized_view
        def first():
            return spark.read.option("versionAsOf", 0).table("sales").select("id")
        """,
        "first.py",
    )
    views.arrive("sales", sale(1, 1, "a", None, 1)).arrive("shops").run()
    before = views.project.rows("first", "id")
    views.arrive("sales", sale(2, 1, "a", None, 1)).run()
    assert views.technique("first") == FULL
    assert views.project.rows("first", "id") == before


@pytest.mark.long
@pytest.mark.spark
def test_rows_that_come_while_a_view_is_computed_come_with_the_next_refresh(project: Callable[..., Project]) -> None:
    views = Views(project(), {"prices": "SELECT id, price FROM {sales}", "per_kind": "SELECT kind, AVG(x) AS x FROM {sales} GROUP BY kind"})
    views.arrive("sales", sale(1, 1, "a", None, 1)).arrive("shops").run()
    views.arrive("sales", sale(2, 1, "b", None, 1))
    number = [100]

    def insert(event: Any) -> None:
        if event.event_type == "flow_progress" and event.body["status"] == "RUNNING" and str(event.origin.flow_name).endswith(READERS):
            number[0] += 1
            views.sql(f"INSERT INTO {{sales}} VALUES ({number[0]}, 1, 'c', NULL, 1, 1)")

    result = views.project.pipeline.run(Request(), listeners=[insert])
    assert result.state == "COMPLETED"
    assert views.project.rows("prices", "id") == [1, 2]
    assert views.project.rows("per_kind", "kind") == ["a", "b"]
    assert views.run() == {"prices": APPEND, "per_kind": GROUPS}
    assert sorted(views.project.rows("prices", "id")) == [1, 2, 101, 102]
