"""Functions that look at rows while they only describe a query: told where, given the rows there are, refused in strict mode."""

from __future__ import annotations

import pytest

FILES = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.table
    def rules():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
        return reader.load(spark.conf.get("landing")).select("column", "value")
"""
LOOKING = (
    FILES
    + """
    @dlt.table
    def columns():
        frame = spark.range(1)
        for rule in dlt.read("rules").orderBy("column").collect():
            frame = frame.withColumn(rule["column"], F.lit(rule["value"]))
        return frame

    @dlt.table
    def counted():
        n = spark.read.table("rules").count()
        return spark.range(1).select(F.lit(n).alias("n"), F.lit(len(dlt.read("rules").columns)).alias("columns"))

    @dlt.table
    def newest():
        last = dlt.read("rules").agg(F.max("value")).first()[0]
        return dlt.read_stream("rules").where(F.lit(last).isNull() | (F.col("value") <= F.lit(last))).select("value")

    @dlt.table
    def pivoted():
        return dlt.read("rules").withColumn("k", F.lit(1)).groupBy("k").pivot("column").agg(F.max("value"))

    @dlt.table
    def first_version():
        return spark.range(spark.read.option("versionAsOf", 0).table("rules").count())

    @dlt.table
    def of_files():
        return spark.range(spark.read.json(spark.conf.get("landing")).count())
"""
)


def notices(p):
    return [e.message for e in p.events if e.event_type == "notice"]


@pytest.mark.long
def test_a_function_sees_the_rows_there_are_and_each_action_is_told_with_its_line(project):
    p = project(LOOKING)
    p.arrive("1.json", {"column": "a", "value": 1})
    p.run()
    assert p.rows("columns") == [(0, 1)]
    assert p.rows("counted") == [(1, 2)]
    assert p.rows("newest") == [1]
    assert p.rows("of_files") == [0]
    lines = p.files[0].read_text().splitlines()
    told = {}
    for message in notices(p):
        if "runs a query" in message:
            where, _, text = message.partition(": ")
            told[text.split("(")[0]] = lines[int(where.rsplit(" ", 1)[1]) - 1]
    assert set(told) == {"collect", "count", "first", "pivot"}
    assert all(f".{action}(" in line for action, line in told.items())
    assert sum("not there yet" in m for m in notices(p)) == 5

    p.arrive("2.json", {"column": "b", "value": 2})
    p.run()
    assert p.rows("columns") == [(0, 1, 2)]
    assert p.rows("counted") == [(2, 2)]
    assert p.rows("pivoted", "a", "b") == [(1, 2)]
    assert p.rows("newest") == [1, 2]
    assert p.rows("of_files") == [0, 1]
    assert p.rows("first_version") == [0]
    assert not any("not there yet" in m for m in notices(p))
    p.run()
    steps = {s.flow.rsplit(".", 1)[-1]: s.reason for s in p.result.steps}
    assert steps["columns"].startswith("its function looks at rows")
    assert p.statuses()["newest"] == "IDLE"


@pytest.mark.slow
def test_a_first_update_computes_what_cannot_do_without_rows_and_what_is_below_it_when_its_turn_comes(project):
    p = project(
        FILES
        + """
    @dlt.table
    @dlt.expect("small", "a < 10")
    def wide():
        return dlt.read("rules").withColumn("k", F.lit(1)).groupBy("k").pivot("column").agg(F.max("value"))

    @dlt.table
    def above():
        least = dlt.read("rules").orderBy("value").collect()[0]["value"]
        return dlt.read_stream("rules").where(F.col("value") > least).select("value")

    @dlt.table
    def sums():
        return dlt.read("wide").selectExpr("a + b AS total")

    @dlt.table
    def doubled():
        return spark.sql("SELECT 2 * total AS twice FROM sums")

    @dlt.table
    def broken():
        return dlt.read("wide").select("no_column")
"""
    )
    p.arrive("1.json", {"column": "a", "value": 1}, {"column": "b", "value": 2})
    p.run(expect="FAILED")
    assert p.errors() == {"broken": "QUERY_FAILED_ANALYSIS"}
    p.write(p.files[0].read_text().replace("no_column", "b"))
    p.run()
    assert p.rows("wide", "a", "b") == [(1, 2)]
    assert p.quality() == {"small": (1, 0)}
    assert p.rows("above") == [2]
    assert p.rows("doubled") == [6]
    assert p.rows("broken") == [2]
    p.write(p.files[0].read_text().replace('select("b")', 'select("no_column")'))
    assert [(e.code, e.dataset) for e in p.refused()] == [("QUERY_FAILED_ANALYSIS", "main.default.broken")]


def test_strict_mode_refuses_actions_with_file_and_line_and_leaves_the_top_level_alone(project):
    p = project("    n = spark.range(3).count()\n" + LOOKING)
    p.parameters["lakelet.strictActions"] = "true"
    p.arrive("1.json", {"column": "a", "value": 1})
    found = p.refused()
    assert {e.code for e in found} == {"ACTION_IN_FUNCTION"}
    assert {str(e.dataset).rsplit(".", 1)[-1] for e in found} == {"columns", "counted", "newest", "pivoted", "of_files", "first_version"}
    lines = p.files[0].read_text().splitlines()
    for error in found:
        assert f".{error.what.split('(')[0]}(" in lines[error.where.line - 1]


def test_strict_mode_is_true_or_false(project):
    p = project(FILES)
    p.parameters["lakelet.strictActions"] = "yes"
    (error,) = p.refused()
    assert (error.code, "lakelet.strictActions" in error.what) == ("PROPERTY_INVALID", True)


def test_what_writes_inside_a_function_is_refused_and_writes_nothing(project, tmp_path):
    p = project(
        FILES
        + f"""
    @dlt.table
    def saved():
        frame = dlt.read("rules")
        frame.write.mode("overwrite").parquet("{tmp_path}/copy")
        return frame

    @dlt.table
    def sent():
        spark.range(1).foreach(print)
        return dlt.read("rules")

    @dlt.table
    def started():
        dlt.read_stream("rules").writeStream.format("memory").queryName("q").start()
        return dlt.read_stream("rules")
"""
    )
    p.arrive("1.json", {"column": "a", "value": 1})
    found = p.refused()
    assert {(str(e.dataset).rsplit(".", 1)[-1], e.code) for e in found} == {
        ("saved", "ACTION_IN_FUNCTION"),
        ("sent", "ACTION_IN_FUNCTION"),
        ("started", "ACTION_IN_FUNCTION"),
    }
    assert not (tmp_path / "copy").exists()


def test_a_name_that_is_computed_in_sql_is_no_action_of_the_function(project):
    p = project()
    p.write(
        """
        CREATE MATERIALIZED VIEW source AS SELECT 1 AS a;
        CREATE MATERIALIZED VIEW copy AS SELECT * FROM IDENTIFIER(:of || '.default.source');
        """,
        "names.sql",
    )
    p.parameters["of"] = "main"
    assert p.pipeline.check().notices == ()
    p.run()
    assert p.rows("copy") == [1]
