"""Materialized views are computed again whenever something that their result depends on is another one (docs/semantics/updates.md)."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pyarrow as pa
import pytest
from deltalake import write_deltalake

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
