"""Queries whose rows come to nothing give empty tables and right counts, also where Spark plans again while it runs."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.adaptive_too

EMPTY = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.table
    def nothing():
        return spark.range(3).where("id > 5")

    @dlt.table
    def numbers():
        return spark.range(0, 10, 1, 2)

    @dlt.view
    @dlt.expect_or_drop("large", "id > 90")
    def large():
        return dlt.read("numbers")

    @dlt.table
    @dlt.expect("positive", "id > 0")
    def limited():
        return spark.range(5).limit(0)

    @dlt.table
    def joined():
        return spark.range(5).join(spark.createDataFrame([], "id long"), "id")

    @dlt.table
    @dlt.expect_or_drop("positive", "id > 0")
    def joined_tables():
        return dlt.read("nothing").join(spark.range(5), "id")

    @dlt.table
    def joined_views():
        return dlt.read("large").join(dlt.read("nothing"), "id")

    @dlt.table
    def counted():
        return dlt.read("large").groupBy("id").count()

    @dlt.table
    def without_it():
        return dlt.read("large").limit(0)
"""


@pytest.mark.long
def test_a_query_without_a_row_gives_an_empty_table_and_a_view_that_drops_every_row_is_counted(project):
    made = project(EMPTY).run()
    names = ("nothing", "limited", "joined", "joined_tables", "joined_views", "counted", "without_it")
    assert {name: made.rows(name) for name in names} == {name: [] for name in names}
    counted = {(e.origin.dataset_name.rsplit(".")[-1]): e for e in made.events if "data_quality" in e.body}
    del counted["joined_views"]  # a join with nothing does not read its other side
    assert {name: _rules(event) for name, event in counted.items()} == {
        "limited": {"positive": (0, 0)},
        "joined_tables": {"positive": (0, 0)},
        "counted": {"large": (0, 10)},
    }


def _rules(event):
    return {e["name"]: (e["passed_records"], e["failed_records"]) for e in event.body["data_quality"]["expectations"]}


def test_a_fail_rule_of_a_view_refuses_rows_that_its_reader_leaves_out_afterwards(project):
    made = project("""
        import dlt

        @dlt.table
        def numbers():
            return spark.range(0, 10, 1, 2)

        @dlt.view
        @dlt.expect_or_fail("known", "id < 2")
        def checked():
            return dlt.read("numbers").selectExpr("id", "id % 2 AS odd")

        @dlt.table
        def chosen():
            return dlt.read("checked").groupBy("odd").count().where("count > 5")

        @dlt.table
        def filtered():
            return dlt.read("checked").where("id = 77").groupBy("odd").count()
    """).run(expect="FAILED")
    assert made.errors() == {"chosen": "EXPECTATION_VIOLATION", "filtered": "EXPECTATION_VIOLATION"}


@pytest.mark.slow
def test_an_empty_snapshot_ends_every_row(project):
    made = project("""
        import dlt

        @dlt.view
        def people():
            return spark.read.schema("id INT, name STRING").json(spark.conf.get("landing"))

        dlt.create_streaming_table("kept", expect_all={"named": "name IS NOT NULL"})
        dlt.apply_changes_from_snapshot(target="kept", source="people", keys=["id"], stored_as_scd_type=1)
        dlt.create_streaming_table("history")
        dlt.apply_changes_from_snapshot(target="history", source="people", keys=["id"], stored_as_scd_type=2)
    """)
    made.arrive("day.json", {"id": 1, "name": "Ann"}, {"id": 2})
    made.run()
    assert made.rows("kept") == [(1, "Ann"), (2, None)]
    made.arrive("day.json")
    made.run()
    assert made.rows("kept") == []
    assert made.quality("kept") == {"named": (0, 0)}
    assert [(id, end is not None) for id, end in made.rows("history", "id", "__END_AT")] == [(1, True), (2, True)]
    made.arrive("day.json")
    made.run()
    assert made.rows("kept") == []
