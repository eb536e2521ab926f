"""Materialized views are computed again whenever something that their result depends on is another one (docs/semantics/updates.md)."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.plan.refreshes import Issue
from tests.spark.conftest import Project

LOADED = """
    import dlt

    @dlt.table
    def raw():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT")
                .load(spark.conf.get("landing")))
"""
CHANGED = """
    import dlt

    @dlt.view
    def landed():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT")
                .load(spark.conf.get("landing")))

    dlt.create_streaming_table("raw")
    dlt.apply_changes(target="raw", source="landed", keys=["id"], sequence_by="id")
"""
COUNTED = """
    @dlt.table
    def counted():
        return dlt.read("raw").groupBy().count()
"""


@pytest.mark.long
def test_a_view_follows_its_input_into_a_new_folder_and_a_table_that_was_deleted_by_hand(project: Callable[..., Project]) -> None:
    made = project(LOADED + COUNTED)
    made.arrive("a.json", {"id": 1}, {"id": 2}, {"id": 2})
    made.run()
    assert made.rows("counted") == [3]
    made.write(CHANGED + COUNTED)
    made.run(full_refresh=("raw",))
    assert made.rows("counted") == [2]  # the change table is another one, at the same version
    shutil.rmtree(made.path("raw"))
    made.arrive("b.json", {"id": 3})
    made.run(full_refresh=("raw",))
    assert made.rows("counted") == [3]
    made.run()
    assert made.statuses()["counted"] == "IDLE"


ZONED = """
    import dlt
    from pyspark.sql import functions as F

    {0}

    @dlt.table
    def day():
        return spark.range(1).select(F.timestamp_seconds(F.lit(0)).cast("string").alias("at"))
"""


@pytest.mark.slow
def test_a_view_is_computed_again_when_the_settings_of_its_code_change(project: Callable[..., Project]) -> None:
    made = project()
    shown = {
        "": "1970-01-01 00:00:00",
        'spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")': "1970-01-01 09:00:00",
        'spark.sql("SET spark.sql.session.timeZone = Asia/Kolkata")': "1970-01-01 05:30:00",
    }
    for setting, text in shown.items():
        made.write(ZONED.format(setting)).run()
        assert made.rows("day") == [text], setting
        made.run()
        assert made.statuses() == {"day": "IDLE"}, setting
    made.write(ZONED.format(""))
    made.parameters["spark.sql.session.timeZone"] = "Asia/Tokyo"
    made.run()
    assert made.rows("day") == ["1970-01-01 09:00:00"]


@pytest.mark.slow
def test_a_view_of_very_many_columns_is_computed_again_when_the_last_one_changes(project: Callable[..., Project]) -> None:
    source = """
        import dlt
        from pyspark.sql import functions as F

        @dlt.table
        def wide():
            return spark.range(1).select(*(F.lit(0).alias(f"c{{i}}") for i in range(1200)), F.lit({0}).alias("last"))
    """
    made = project()
    for value in (1, 2):
        made.write(source.format(value)).run()
        assert made.rows("wide", "last") == [value]


CHAIN = """
    @dlt.table
    def doubled():
        return dlt.read("raw").selectExpr("2 * id AS id")

    @dlt.table
    def largest():
        return dlt.read("doubled").selectExpr("max(id) AS id")
"""


@pytest.mark.slow
def test_rows_that_others_added_to_a_view_are_read_like_its_own_and_go_when_it_is_computed_again(project: Callable[..., Project]) -> None:
    made = project(LOADED + CHAIN)
    made.arrive("a.json", {"id": 1})
    made.run()
    made.arrive("b.json", {"id": 5})
    made.run()
    assert (sorted(made.rows("doubled")), made.rows("largest")) == ([2, 10], [10])
    write_deltalake(str(made.path("doubled")), pa.table({"id": pa.array([99], pa.int64())}), mode="append")
    made.run()
    assert (sorted(made.rows("doubled")), made.rows("largest")) == ([2, 10, 99], [99])
    made.arrive("c.json", {"id": 7})
    made.run()
    assert (sorted(made.rows("doubled")), made.rows("largest")) == ([2, 10, 14], [14])


GROWING = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.table
    def raw():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("{0}").load(spark.conf.get("landing")))

    @dlt.table
    def per_kind():
        return dlt.read("raw").withColumn("day", F.to_date("at")).groupBy("kind", "day").agg(F.count("*").alias("n"))

    @dlt.table
    def whole():
        return dlt.read("raw")
"""
STATUSES = {"raw": "IDLE", "per_kind": "IDLE", "whole": "IDLE"}


@pytest.mark.long
def test_a_view_stays_as_it_is_when_its_input_gets_a_column_that_it_does_not_use(project: Callable[..., Project]) -> None:
    made = project(GROWING.format("kind STRING, at TIMESTAMP"))
    made.arrive("a.json", {"kind": "x", "at": "2024-01-01T23:30:00Z", "note": "n"})
    made.run()
    made.write(GROWING.format("kind STRING, at TIMESTAMP, note STRING"))
    made.run()
    assert made.statuses() == {**STATUSES, "raw": made.statuses()["raw"], "whole": "COMPLETED"}
    made.arrive("b.json", {"kind": "x", "at": "2024-01-01T23:40:00Z", "note": "n"})
    made.run()  # its input has the column since this update
    assert made.table("whole").column_names == ["kind", "at", "note"]
    assert made.rows("per_kind", "n") == [2]
    made.run()
    assert made.statuses() == STATUSES
    zone, ansi = "spark.sql.session.timeZone", "spark.sql.ansi.enabled"
    before = {name: made.spark.conf.get(name) for name in (zone, ansi)}
    try:
        made.spark.conf.set(zone, "Asia/Tokyo")
        made.run()
        assert made.statuses()["per_kind"] == "COMPLETED"
        assert [str(day) for day in made.rows("per_kind", "day")] == ["2024-01-02"]
        made.spark.conf.set(ansi, str(before[ansi] != "true").lower())
        made.run()
        assert made.statuses()["per_kind"] == "COMPLETED"
    finally:
        for name, value in before.items():
            made.spark.conf.set(name, value)


MANY = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.table
    def raw():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").schema("id BIGINT, kind STRING")
                .load(spark.conf.get("landing")))

    @dlt.view
    @dlt.expect("known", "kind IS NOT NULL")
    def judged():
        return dlt.read("raw")

    @dlt.view
    def twice():
        return dlt.read("raw").unionAll(dlt.read("raw"))

    @dlt.table
    def per_kind():
        return dlt.read("twice").groupBy("kind").count()

    @dlt.table
    def pairs():
        return dlt.read("raw").alias("a").join(dlt.read("raw").alias("b"), "id").select("id", F.col("b.kind"))

    @dlt.table
    def of_judged():
        return dlt.read("judged")

    @dlt.table
    def dated():
        return dlt.read("raw").withColumn("at", F.current_date())

    @dlt.table
    def called():
        return dlt.read("raw").select(F.udf(lambda id: id)("id").alias("id"))

    @dlt.table
    def counted():
        return dlt.read("raw").filter(f"id > {dlt.read('raw').count()}")

    @dlt.table
    def earlier():
        return spark.read.option("versionAsOf", "0").table("LIVE.raw")
"""


def test_the_analysis_says_of_each_view_how_it_is_followed(project: Callable[..., Project]) -> None:
    with project(MANY).pipeline.loaded() as found:
        results = found.environment.analyzer.pipeline(found.loaded, frozenset()).datasets
    shapes = {result.dataset.name.name: result.flows[0].batch.shape for result in results.values()}
    followed = {
        name: (shape.technique.name, shape.keys, [(leaf.copy, sorted(leaf.joined)) for leaf in shape.leaves])
        for name, shape in shapes.items()
        if shape is not None and not isinstance(shape, Issue)
    }
    assert shapes.pop("raw") is None  # no view
    assert followed == {
        "per_kind": ("GROUPS", (0,), [(0, []), (1, [])]),
        "pairs": ("ROWS", (0, 1), [(0, [1]), (1, [0])]),
    }
    assert {name: (shape.type, shape.sub_type) for name, shape in shapes.items() if isinstance(shape, Issue)} == {
        "of_judged": ("EXPECTATIONS_NOT_SUPPORTED", None),
        "dated": ("PLAN_NOT_DETERMINISTIC", "TIME_FUNCTION"),
        "called": ("PLAN_NOT_DETERMINISTIC", "USER_DEFINED_FUNCTION"),
        "counted": ("PLAN_NOT_INCREMENTALIZABLE", "OPERATOR_NOT_SUPPORTED"),
        "earlier": ("PLAN_NOT_INCREMENTALIZABLE", "OPERATOR_NOT_SUPPORTED"),
    }
