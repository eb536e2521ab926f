"""Streaming tables whose query aggregates without watermark: one row per group, whatever came in how many updates."""

from __future__ import annotations

import pytest

from lakelet.files.delta_log import TableLog
from tests.spark.conftest import codes

BRONZE = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.table
    def bronze():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.inferColumnTypes", "true").option("cloudFiles.maxFilesPerTrigger", "1").load(spark.conf.get("landing")))
"""
TOTALS = (
    BRONZE
    + """
    @dlt.table
    @dlt.expect("small", "total < 10")
    @dlt.expect_or_drop("named", "kind <> 'secret'")
    def totals():
        return dlt.read_stream("bronze").groupBy("kind").agg(F.sum("amount").alias("total"), F.count("*").alias("n"))
"""
)


@pytest.mark.long
def test_an_aggregate_over_a_stream_has_one_row_per_group_after_any_number_of_updates(project):
    p = project(TOTALS)
    p.arrive("a.json", {"kind": "x", "amount": 1}, {"kind": "y", "amount": 2})
    p.arrive("b.json", {"kind": "x", "amount": 3}, {"kind": "secret", "amount": 1})
    p.run()
    assert p.rows("totals") == [("x", 4, 2), ("y", 2, 1)]
    assert p.storage.registry().datasets["main.default.totals"].kind == "streaming_table"

    p.arrive("c.json", {"kind": "x", "amount": 10})
    p.run()
    assert p.rows("totals") == [("x", 14, 3), ("y", 2, 1)]
    assert p.quality() == {"small": (2, 1), "named": (2, 1)}  # judged on the whole result: x is 14, secret is dropped again
    definitions = [e.body for e in p.events if e.event_type == "flow_definition"]
    assert {d["output_dataset"].rsplit(".", 1)[-1]: d["flow_type"] for d in definitions} == {"bronze": "APPEND", "totals": "COMPLETE"}

    before = p.versions()
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}
    assert p.versions() == before


@pytest.mark.slow
def test_an_update_reads_the_new_rows_only_and_state_remembers_the_rest(project):
    p = project(TOTALS)
    p.arrive("a.json", {"kind": "x", "amount": 1})
    p.run()
    p.write(TOTALS.replace('dlt.read_stream("bronze")', 'dlt.read_stream("bronze").where("amount > 5")'))
    p.arrive("b.json", {"kind": "x", "amount": 7}, {"kind": "x", "amount": 2})
    p.run()
    assert p.rows("totals") == [("x", 8, 2)]  # the row of the first update was not judged by the new filter
    p.run(full_refresh=("totals",))
    assert p.rows("totals") == [("x", 7, 1)]


@pytest.mark.slow
def test_each_batch_replaces_the_table_in_one_commit(project):
    p = project(TOTALS)
    for i in range(3):
        p.arrive(f"{i}.json", {"kind": "x", "amount": 1})
    p.run()
    p.arrive("4.json", {"kind": "x", "amount": 1})
    p.run()
    log = TableLog(p.path("totals"))
    seen = []
    for version in range(log.version() + 1):
        actions = log.actions(version)
        seen.append((sum("add" in a for a in actions) > 0, sum("remove" in a for a in actions) > 0, sum("txn" in a for a in actions)))
    assert set(seen[1:]) == {(True, True, 1)}
    assert seen[0] == (True, False, 1)


@pytest.mark.long
def test_a_broken_fail_rule_leaves_the_table_as_it_was_and_the_batch_for_the_next_update(project):
    p = project(TOTALS.replace('@dlt.expect("small"', '@dlt.expect_or_fail("small"'))
    p.arrive("a.json", {"kind": "x", "amount": 1})
    p.run()
    p.arrive("b.json", {"kind": "x", "amount": 20})
    p.run(expect="FAILED")
    assert p.errors() == {"totals": "EXPECTATION_VIOLATION"}
    assert p.rows("totals") == [("x", 1, 1)]
    p.write(TOTALS)
    p.run()
    assert p.rows("totals") == [("x", 21, 2)]


@pytest.mark.slow
def test_every_kind_of_aggregate_in_python_and_sql(project):
    p = project(
        BRONZE
        + """
    @dlt.table
    def top():
        return dlt.read_stream("bronze").groupBy("kind").count().orderBy(F.desc("count")).limit(1)

    @dlt.table
    def kinds():
        return spark.sql("SELECT DISTINCT kind FROM STREAM(bronze)")

    @dlt.table
    def named():
        names = spark.createDataFrame([("x", "ex")], "kind string, name string")
        return dlt.read_stream("bronze").dropDuplicates(["kind", "amount"]).groupBy("kind").count().join(names, "kind", "left")

    @dlt.table
    def late_or_not():
        return dlt.read_stream("bronze").withColumn("at", F.to_timestamp("at")).withWatermark("at", "1 hour").groupBy("kind").count()
"""
    )
    p.write(
        "CREATE OR REFRESH STREAMING TABLE by_kind (CONSTRAINT known EXPECT (kind IS NOT NULL) ON VIOLATION DROP ROW)\n"
        "AS SELECT kind, avg(amount) AS mean FROM STREAM bronze GROUP BY ROLLUP (kind)",
        "aggregates.sql",
    )
    at = "2026-03-01T10:00:00Z"
    p.arrive("a.json", {"kind": "x", "amount": 1, "at": at}, {"kind": "x", "amount": 1, "at": at}, {"kind": None, "amount": 3, "at": at})
    p.run()
    p.arrive("b.json", {"kind": "y", "amount": 4, "at": at}, {"kind": "x", "amount": 1, "at": at})
    p.run()
    assert p.rows("top") == [("x", 3)]
    assert p.rows("kinds") == ["x", "y", None]
    assert p.rows("named") == [("x", 1, "ex"), ("y", 1, None), (None, 1, None)]
    assert p.rows("late_or_not") == [("x", 3), ("y", 1), (None, 1)]
    assert p.rows("by_kind") == [("x", 1.0), ("y", 4.0)]


@pytest.mark.slow
def test_views_that_aggregate_and_flows_with_a_name_of_their_own_are_maintained_alike(project):
    p = project(
        BRONZE
        + """
    @dlt.view
    @dlt.expect_or_drop("several", "n > 1")
    def grouped():
        return dlt.read_stream("bronze").groupBy("kind").agg(F.count("*").alias("n"))

    @dlt.table
    def counted():
        return dlt.read_stream("grouped")

    dlt.create_streaming_table("most")

    @dlt.append_flow(target="most", name="flow_of_its_own")
    def largest():
        return dlt.read_stream("bronze").groupBy("kind").agg(F.max("amount").alias("most"))
"""
    )
    p.write(
        "CREATE TEMPORARY VIEW sums AS SELECT kind, sum(amount) AS s FROM STREAM(bronze) GROUP BY kind;\n"
        "CREATE STREAMING TABLE large AS SELECT * FROM STREAM(sums) WHERE s > 1;\n"
        "CREATE MATERIALIZED VIEW how_many AS SELECT count(*) AS n FROM large;",
        "sums.sql",
    )
    p.arrive("a.json", {"kind": "x", "amount": 1}, {"kind": "x", "amount": 1})
    p.run()
    p.arrive("b.json", {"kind": "y", "amount": 5}, {"kind": "y", "amount": 5}, {"kind": "x", "amount": 1})
    p.run()
    assert p.rows("counted") == [("x", 3), ("y", 2)]
    assert p.rows("most") == [("x", 1), ("y", 5)]
    assert p.rows("large") == [("x", 3), ("y", 10)]
    assert p.rows("how_many") == [2]


REFUSED = {
    'dlt.read_stream("bronze").join(dlt.read_stream("bronze").select("kind"), "kind").groupBy("kind").count()': "Complete output mode",
    'dlt.read_stream("bronze").groupBy("kind").agg(F.countDistinct("amount"))': "approx_count_distinct",
    'dlt.read_stream("bronze").groupBy("kind").count().select("kind").union(dlt.read_stream("bronze").select("kind"))': "beside rows",
    'dlt.read_stream("bronze").orderBy("amount")': "Sorting is not supported",
}


def test_what_neither_appends_nor_replaces_is_refused_with_spark_s_reason(project):
    p = project(BRONZE + "".join(f"\n    @dlt.table\n    def bad_{i}():\n        return {query}\n" for i, query in enumerate(REFUSED)))
    p.arrive("a.json", {"kind": "x", "amount": 1})
    found = {error.dataset: error for error in p.refused()}
    for i, why in enumerate(REFUSED.values()):
        error = found.pop(f"main.default.bad_{i}")
        assert error.code == "STREAM_QUERY_REFUSED"
        assert why in str(error.why)
        assert "materialized view" in str(error.todo)
    assert not found


def test_a_second_flow_into_a_table_that_is_replaced_is_refused(project):
    p = project(TOTALS + "\n    @dlt.append_flow(target='totals')\n    def more():\n        return dlt.read_stream('bronze')")
    p.write(p.files[0].read_text() + ".selectExpr('kind', 'amount AS total', 'amount AS n')\n")
    p.arrive("a.json", {"kind": "x", "amount": 1})
    (error,) = p.refused()
    assert (error.code, "more" in str(error.why)) == ("STREAM_QUERY_REFUSED", True)


@pytest.mark.long
def test_a_watermark_that_comes_or_goes_needs_a_full_refresh_because_the_state_is_another(project):
    with_one = (
        BRONZE
        + """
    @dlt.table
    def hours():
        rows = dlt.read_stream("bronze").withColumn("at", F.to_timestamp("at")){watermark}
        return rows.groupBy(F.window("at", "1 hour")).count().select(F.hour("window.start").alias("hour"), "count")
"""
    )
    p = project(with_one.replace("{watermark}", '.withWatermark("at", "1 minute")'))
    p.arrive("a.json", {"at": "2026-03-01T10:00:00Z"})
    p.arrive("b.json", {"at": "2026-03-01T12:00:00Z"})
    p.run()
    p.arrive("c.json", {"at": "2026-03-01T12:30:00Z"})
    p.run()
    assert p.rows("hours") == [(10, 1)]
    p.write(with_one.replace("{watermark}", ""))
    p.arrive("d.json", {"at": "2026-03-01T12:40:00Z"})
    p.run(expect="FAILED")
    assert p.errors() == {"hours": "STREAM_STATE_CHANGED"}
    assert "watermark" in p.result.errors[0].what
    assert p.rows("hours") == [(10, 1)]
    p.run(full_refresh=("hours",))
    assert p.rows("hours") == [(10, 1), (12, 3)]


@pytest.mark.slow
def test_settings_of_a_dataset_hold_for_its_state_and_a_private_table_keeps_its_own(project):
    source = (
        TOTALS.replace(
            "@dlt.table\n    @dlt.expect(", '@dlt.table(temporary=True, spark_conf={"spark.sql.shuffle.partitions": "3"})\n    @dlt.expect('
        )
        + "\n    @dlt.table\n    def seen():\n        return spark.read.table('totals')\n"
    )
    p = project(source)
    p.spark.range(3).createOrReplaceTempView("totals")  # the pipeline's own table comes first
    p.arrive("a.json", {"kind": "x", "amount": 1})
    p.run()
    (state,) = (p.storage.root / "checkpoints/main/default/totals").rglob("state/0")
    assert sorted(f.name for f in state.iterdir() if f.name.isdigit()) == ["0", "1", "2"]
    assert p.storage.registry().datasets["main.default.totals"].private
    p.write(source.replace('"3"', '"5"'))
    p.arrive("b.json", {"kind": "x", "amount": 1})
    p.run()
    assert p.rows("seen") == [("x", 2, 2)]
    assert sorted(f.name for f in state.iterdir() if f.name.isdigit()) == ["0", "1", "2"]
    p.spark.catalog.dropTempView("totals")


@pytest.mark.slow
def test_an_aggregate_in_a_common_table_expression_is_one_too_and_rows_beside_it_are_not(project):
    p = project(BRONZE)
    p.write(
        """
        CREATE STREAMING TABLE totals
        WITH counted AS (SELECT kind, count(*) AS n FROM STREAM(bronze) GROUP BY kind) SELECT kind, n FROM counted;

        CREATE STREAMING TABLE twice AS
        WITH rows AS (SELECT kind FROM STREAM(bronze)) SELECT kind FROM rows UNION ALL SELECT upper(kind) FROM rows;
        """,
        "totals.sql",
    )
    p.arrive("a.json", {"kind": "x", "amount": 1}, {"kind": "y", "amount": 2})
    p.run()
    p.arrive("b.json", {"kind": "x", "amount": 1})
    p.run()
    assert p.rows("totals") == [("x", 2), ("y", 1)]
    assert p.rows("twice") == ["X", "X", "Y", "x", "x", "y"]
    p.run()
    assert set(p.statuses().values()) == {"IDLE"}

    p.write(
        """
        CREATE STREAMING TABLE totals AS
        WITH counted AS (SELECT kind, count(*) AS n FROM STREAM(bronze) GROUP BY kind)
        SELECT kind, n FROM counted UNION ALL SELECT kind, 1 FROM STREAM(bronze);
        """,
        "totals.sql",
    )
    assert codes(p.refused()) == ["STREAM_QUERY_REFUSED"]
