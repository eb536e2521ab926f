"""`spark_conf` of views counts for the flows that read them (LG-20, LG-21)."""

from __future__ import annotations

import pytest

from tests.spark.conftest import codes

VIEWS = """
import dlt

ZONE = "spark.sql.session.timeZone"

@dlt.view(spark_conf={{ZONE: "Asia/Tokyo"}})
def inner():
    return spark.read.table("numbers").selectExpr("id", "current_timezone() AS zone")

@dlt.view
def outer():
    return spark.read.table("inner")

@dlt.view(spark_conf={{ZONE: "America/Lima"}})
def other():
    return spark.range(1)

@dlt.table
def numbers():
    return spark.range(2)

@dlt.table
def near():
    return spark.read.table("inner")

@dlt.table
def far():
    return spark.read.table("outer").distinct()

@dlt.table(spark_conf={{ZONE: "Europe/Rome"}})
def own():
    return spark.read.table("inner")

@dlt.table
def beside():
    return spark.read.table("numbers").selectExpr("id", "current_timezone() AS zone")

{more}
"""


@pytest.mark.long
def test_a_view_brings_its_settings_to_the_flows_that_read_it_and_to_no_other(project):
    p = project(VIEWS.format(more=""))
    p.parameters["spark.sql.session.timeZone"] = "UTC"
    p.run()
    zones = {name: set(p.rows(name, "zone")) for name in ("near", "far", "own", "beside")}
    assert zones == {"near": {"Asia/Tokyo"}, "far": {"Asia/Tokyo"}, "own": {"Europe/Rome"}, "beside": {"UTC"}}
    told = [e.message for e in p.events if "has no effect here: the flow that reads it sets Europe/Rome" in e.message]
    assert len(told) == 1

    p.write(VIEWS.format(more="").replace("Asia/Tokyo", "Asia/Seoul")).run()
    assert set(p.rows("near", "zone")) == {"Asia/Seoul"}


@pytest.mark.slow
def test_two_views_that_differ_are_refused_unless_the_reader_decides(project):
    both = "def both():\n    return spark.read.table('inner').join(spark.read.table('other'), 'id')"
    p = project(VIEWS.format(more="@dlt.table\n" + both))
    (error,) = p.refused()
    assert codes([error]) == ["VIEW_SETTINGS_DIFFER"]
    assert "spark.sql.session.timeZone" in error.what
    p.write(VIEWS.format(more='@dlt.table(spark_conf={ZONE: "UTC"})\n' + both)).run()
    assert set(p.rows("both", "zone")) == {"UTC"}


def test_a_streaming_flow_and_sql_take_the_settings_of_views_too(project):
    p = project()
    p.write(
        """
        SET spark.sql.session.timeZone = Asia/Tokyo;
        CREATE TEMPORARY VIEW seen AS SELECT id, current_timezone() AS zone
        FROM STREAM read_files('${landing}', format => 'json', schema => 'id BIGINT');
        """,
        "views.sql",
    )
    p.write("CREATE STREAMING TABLE kept AS SELECT * FROM STREAM(seen);", "tables.sql")
    p.arrive("1.json", {"id": 1})
    p.run()
    assert p.rows("kept") == [(1, "Asia/Tokyo")]
