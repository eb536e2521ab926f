"""Environments: changed datasets are computed over the main storage, of which nothing is written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.inspection.inspector import list_tables, run_sql
from lakelet.pipeline import Pipeline
from lakelet.plan.selection import Request
from lakelet.storage.environments import begin_environment, environment_config, environment_tables
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
        result = Pipeline(config, spark=self.project.spark).run(Request(select=select or ("state:modified+",), **request))
        assert result.state == expect, "\n".join(map(str, result.errors))
        return self

    def promote(self) -> dict[str, str]:
        """Promote it; what was done with each dataset, by the last part of its name."""
        result, found = self.project.pipeline.promote(self.storage)
        assert result is None or result.state == "COMPLETED", "\n".join(map(str, result.errors))
        return {one.name.rsplit(".", 1)[-1]: one.action for one in found}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return rows_of(self.storage.root, query)


def rows_of(storage: Path, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query, sorted."""
    return sorted((tuple(row.values()) for row in run_sql(storage, query).rows), key=repr)


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
    environment = Environment(orders, tmp_path / "environment").run()
    assert environment.rows("SELECT id, total FROM gold") == [(1, 10), (2, 5)]
    assert environment.rows("SELECT count(*) FROM silver") == [(3,)]
    assert [table.name for table in environment_tables(environment.storage)] == ["main.default.gold"]
    assert orders.snapshot() == before


MORE = ORDERS.replace('"id", "amount")', '"id", "amount", F.lit(1).alias("more"))')


def test_a_stream_goes_on_from_the_rows_and_the_checkpoint_of_the_main_storage(orders: Project, tmp_path: Path) -> None:
    before = orders.snapshot()
    orders.write(MORE)
    orders.arrive("3.json", {"id": 3, "amount": 7})
    environment = Environment(orders, tmp_path / "environment").run("bronze+")
    assert environment.rows("SELECT id, amount, more FROM silver") == [(1, 1, None), (1, 10, None), (2, 5, None), (3, 7, 1)]
    assert environment.rows("SELECT id, total FROM gold") == [(1, 11), (2, 5), (3, 7)]
    assert {row.name for row in list_tables(environment.storage.root)} >= {"main.default.other", "main.default.silver"}
    environment.run("silver", full_refresh=("silver",))
    assert environment.rows("SELECT id, amount, more FROM silver") == [(1, 1, 1), (1, 10, 1), (2, 5, 1), (3, 7, 1)]
    assert orders.snapshot() == before


def test_every_other_table_is_read_as_it_was_when_the_environment_began(orders: Project, tmp_path: Path) -> None:
    environment = Environment(orders, tmp_path / "environment")
    orders.arrive("3.json", {"id": 3, "amount": 7})
    orders.run()
    before = orders.snapshot()
    orders.write(ORDERS.replace('F.sum("amount")', 'F.max("amount")'))
    environment.run("gold")
    assert environment.rows("SELECT id, total FROM gold") == [(1, 10), (2, 5)]
    assert environment.rows("SELECT count(*) FROM other") == [(2,)]
    with pytest.raises(LakeletError) as refused:
        environment.run("silver")
    assert refused.value.code == "ENVIRONMENT_BEHIND"
    assert orders.snapshot() == before


def test_a_promoted_environment_leaves_what_a_run_leaves(orders: Project, tmp_path: Path) -> None:
    orders.write(MORE)
    orders.arrive("3.json", {"id": 3, "amount": 7})
    shutil.copytree(orders.storage.root, tmp_path / "twin")
    environment = Environment(orders, tmp_path / "environment").run("bronze+")
    assert environment.promote() == dict.fromkeys(("bronze", "silver", "gold", "other"), "swapped in")
    versions, rows = orders.versions(), {name: orders.rows(name) for name in ("bronze", "silver", "gold", "other")}
    shutil.rmtree(tmp_path / "environment")
    assert {name: orders.rows(name) for name in rows} == rows
    assert set(orders.run().statuses().values()) == {"IDLE"}
    orders.arrive("4.json", {"id": 4, "amount": 1})
    assert [row[0] for row in orders.run().rows("bronze", "id", "amount")] == [1, 1, 2, 3, 4]
    shutil.rmtree(orders.storage.root)
    (orders.landing / "4.json").unlink()
    shutil.copytree(tmp_path / "twin", orders.storage.root)
    orders.run()
    assert orders.versions() == versions
    assert {name: orders.rows(name) for name in rows} == rows


def test_what_has_another_definition_or_another_input_by_then_is_computed(orders: Project, tmp_path: Path) -> None:
    orders.write(MORE.replace('F.sum("amount")', 'F.max("amount")'))
    orders.arrive("3.json", {"id": 3, "amount": 7})
    environment = Environment(orders, tmp_path / "environment").run("silver+")
    orders.write(MORE.replace('F.sum("amount")', 'F.min("amount")'))
    orders.run(select=("bronze",))
    assert environment.promote() == {"gold": "computed"}
    assert orders.rows("gold") == [(1, 1), (2, 5)]


def test_promoting_again_does_nothing_more(orders: Project, tmp_path: Path) -> None:
    orders.write(ORDERS.replace('F.sum("amount")', 'F.max("amount")'))
    environment = Environment(orders, tmp_path / "environment").run()
    assert environment.promote() == {"gold": "swapped in"}
    tables = {name: orders.version(name) for name in ("bronze", "gold")}
    assert environment.promote() == {"gold": "there"}
    assert {name: orders.version(name) for name in tables} == tables
    assert orders.rows("gold") == [(1, 10), (2, 5)]


CHANGES = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.table
    def events():
        files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
        files = files.schema("id INT, name STRING, seq INT, gone BOOLEAN")
        return files.load(spark.conf.get("landing"))

    dlt.create_streaming_table("customers", table_properties={"delta.enableChangeDataFeed": "true"})
    dlt.apply_changes(
        target="customers", source="events", keys=["id"], sequence_by="seq", apply_as_deletes=F.expr("gone"), except_column_list=["gone"]
    )

    @dlt.table(table_properties={"lakelet.quarantine": "true"})
    @dlt.expect_or_drop("named", "name <> 'x'")
    def names():
        return dlt.read("customers").select(F.upper("name").alias("name"))
"""


def test_change_tables_quarantines_and_deletes_go_on_in_an_environment_and_back(project: Callable[..., Project], tmp_path: Path) -> None:
    shop = project(CHANGES)
    shop.arrive("1.json", *({"id": n, "name": f"n{n}", "seq": 1, "gone": False} for n in range(1, 5)))
    shop.run()
    shop.arrive("2.json", {"id": 1, "name": "one", "seq": 2, "gone": False}, {"id": 2, "name": "n2", "seq": 2, "gone": True})
    shop.run()
    before = shop.snapshot()
    shop.write(CHANGES.replace("F.upper", "F.lower").replace("'x'", "'five'"))
    shop.arrive("3.json", {"id": 3, "name": "x", "seq": 1, "gone": True}, {"id": 4, "name": "four", "seq": 3, "gone": False})
    shop.arrive("4.json", {"id": 2, "name": "late", "seq": 1, "gone": False}, {"id": 5, "name": "five", "seq": 1, "gone": False})
    environment = Environment(shop, tmp_path / "environment").run("events+")
    found = environment.rows("SELECT id, name FROM customers")
    assert {(1, "one"), (4, "four"), (5, "five")} <= set(found)
    assert 2 not in {row[0] for row in found}
    names = environment.rows("SELECT name FROM names")
    assert ("one",) in names
    assert ("five",) not in names
    assert shop.snapshot() == before
    assert set(environment.promote().values()) == {"swapped in"}
    assert rows_of(shop.storage.root, "SELECT id, name FROM customers") == found
    assert rows_of(shop.storage.root, "SELECT name FROM names") == names
    assert set(shop.run().statuses().values()) == {"IDLE"}
    shop.arrive("5.json", {"id": 1, "name": "last", "seq": 9, "gone": False})
    assert (1, "last") in rows_of(shop.run().storage.root, "SELECT id, name FROM customers")
