"""Flows that replace rows of their table: REPLACE WHERE and REPLACE USING (docs/semantics/replacing.md)."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from lakelet.base.errors import LakeletError
from lakelet.flows.replacing import at_one_time
from lakelet.plan.selection import Request
from lakelet.storage.delta.transaction import Transaction

DAYS = """
    CREATE OR REFRESH STREAMING TABLE days
    FLOW REPLACE WHERE day >= '2026-01-03' BY NAME
    SELECT day, shop, sum(amount) AS amount FROM sales GROUP BY ALL;
"""
SALES = """
    import dlt

    @dlt.table
    def sales():
        return spark.read.schema("day DATE, shop STRING, amount BIGINT").json(spark.conf.get("landing"))
"""


DAYS_PYTHON = """
    @dlt.table(replace_where="day >= '2026-01-03'")
    def days():
        return spark.read.table("sales")
"""


def sale(day, shop, amount):
    return {"day": f"2026-01-0{day}", "shop": shop, "amount": amount}


def shown(p, *columns):
    return sorted(tuple(map(str, row)) for row in p.rows("days", *(columns or ("day", "shop", "amount"))))


def files_of(p):
    return set(DeltaTable(p.path("days")).file_uris())


@pytest.fixture
def shops(project):
    return project(SALES).write(DAYS, "days.sql")


# ------------------------------------------------------------------------------------------------------- REPLACE WHERE


@pytest.mark.long
def test_RP1_each_update_computes_the_part_anew_that_the_condition_names_and_leaves_the_rest(shops):
    p = shops
    p.write(DAYS.replace("2026-01-03", "2026-01-01"), "days.sql")
    p.arrive("a.json", sale(1, "x", 1), sale(3, "x", 3), sale(4, "y", 4))
    p.run()
    assert shown(p) == [("2026-01-01", "x", "1"), ("2026-01-03", "x", "3"), ("2026-01-04", "y", "4")]

    p.write(DAYS, "days.sql")
    p.arrive("a.json", sale(1, "x", 100), sale(3, "x", 30), sale(5, "z", 5))
    p.run()

    assert shown(p) == [("2026-01-01", "x", "1"), ("2026-01-03", "x", "30"), ("2026-01-05", "z", "5")]
    assert p.statuses()["days"] == "COMPLETED"


@pytest.mark.long
def test_RP1_nothing_is_computed_where_nothing_changed_and_the_condition_does_not_ask_for_the_time(shops):
    p = shops
    p.arrive("a.json", sale(3, "x", 3))
    p.write(SALES.replace("return spark.read.schema", "return spark.readStream.schema"))
    p.run()
    p.run()
    assert p.statuses()["days"] == "IDLE"

    p.spark.sql(f"INSERT INTO delta.`{p.path('days')}` VALUES (DATE '2026-01-09', 'by hand', 9), (DATE '2026-01-02', 'by hand', 2)")
    p.run()

    assert shown(p) == [("2026-01-02", "by hand", "2"), ("2026-01-03", "x", "3")]
    assert [s.reason for s in p.result.steps if s.flow.endswith("days")] == ["its table changed"]


@pytest.mark.slow
def test_RP1_a_condition_with_the_date_of_today_is_evaluated_in_every_update(project):
    p = project("""
        from pyspark import pipelines as dp
        from pyspark.sql import functions as F

        @dp.materialized_view
        def source():
            days = spark.range(0, 40, 10).select(F.date_sub(F.current_date(), F.col("id").cast("int")).alias("day"))
            return days.withColumn("value", F.lit(spark.conf.get("value", "first")))

        @dp.table(replace_where=F.col("day") >= F.date_sub(F.current_date(), 15))
        def recent():
            return spark.read.table("source")
    """)
    p.run()
    assert p.rows("recent", "value") == ["first", "first"]
    p.parameters["value"] = "second"
    p.run()
    assert p.rows("recent", "value") == ["second", "second"]
    kinds = {e.origin.flow_name.rsplit(".", 1)[-1]: e.body["flow_type"] for e in p.events if e.event_type == "flow_definition"}
    assert kinds == {"source": "MATERIALIZED_VIEW", "recent": "REPLACE_WHERE"}
    assert [s.strategy.value for s in p.result.steps] == ["full", "replace"]


def test_RP1_a_full_refresh_leaves_the_rows_of_the_condition_alone(shops):
    p = shops
    p.write(DAYS.replace("2026-01-03", "2026-01-01"), "days.sql")
    p.arrive("a.json", sale(1, "x", 1), sale(3, "x", 3))
    p.run()
    p.write(DAYS, "days.sql")

    p.run(full_refresh=("days",))

    assert shown(p) == [("2026-01-03", "x", "3")]


def test_RP1_new_columns_are_null_in_rows_that_stay_and_rows_for_which_the_condition_is_null_stay(shops):
    p = shops
    p.write(DAYS.replace("day >= '2026-01-03'", "coalesce(day >= '2026-01-01', true)"), "days.sql")
    p.arrive("a.json", sale(1, "x", 1), sale(3, "x", 3), {"day": None, "shop": "x", "amount": 7})
    p.run()
    p.write(DAYS.replace("sum(amount) AS amount", "sum(amount) AS amount, count(*) AS sales"), "days.sql")
    p.run()

    assert shown(p, "day", "amount", "sales") == [("2026-01-01", "1", "None"), ("2026-01-03", "3", "1"), ("None", "7", "None")]


def test_RP1_the_condition_may_call_a_column_by_the_table_of_the_query(shops):
    p = shops
    p.write(
        """
        CREATE STREAMING TABLE days;

        CREATE FLOW some_days AS INSERT INTO days BY NAME
        REPLACE WHERE s.day >= '2026-01-03' AND s.shop IS DISTINCT FROM 'z'
        SELECT s.day, s.shop, s.amount FROM sales s;
        """,
        "days.sql",
    )
    p.arrive("a.json", sale(1, "x", 1), sale(3, "x", 3), sale(4, "z", 4))
    p.run()
    assert shown(p) == [("2026-01-03", "x", "3")]


@pytest.mark.slow
def test_RP1_only_files_with_rows_that_go_are_written_again(shops):
    p = shops
    p.write(DAYS.replace("2026-01-03", "2026-01-01"), "days.sql")
    p.arrive("a.json", sale(1, "x", 1), sale(2, "x", 2))
    p.run()
    before = files_of(p)
    p.write(DAYS, "days.sql")
    p.arrive("a.json", sale(1, "x", 1), sale(3, "x", 3))
    p.run()
    p.arrive("a.json", sale(3, "x", 4))
    p.run()

    assert before < files_of(p)
    assert shown(p) == [("2026-01-01", "x", "1"), ("2026-01-02", "x", "2"), ("2026-01-03", "x", "4")]


@pytest.mark.parametrize(
    "condition",
    ["id BETWEEN 15 AND 18", "id >= 10 + 5 AND id <= 18", "id >= 15 AND id <= 18 AND length(word) < 9", "part = 'b' AND id > 0"],
)
def test_delta_passes_over_files_by_each_part_of_a_condition(spark, tmp_path, condition):
    table = str(tmp_path / "table")
    for begin, part in ((0, "a"), (10, "b"), (20, "c")):
        rows = spark.range(begin, begin + 10, 1, 1).selectExpr("id", "'w' AS word", f"'{part}' AS part")
        rows.write.format("delta").mode("append").partitionBy("part").save(table)
    transaction = Transaction(spark, tmp_path / "table")
    (file,) = transaction.files_of(transaction.rows().alias("__lakelet_row").where(at_one_time(transaction.rows(), condition)))
    assert "part=b" in str(file.path())


@pytest.mark.slow
def test_RP1_readers_and_a_full_refresh_see_the_files_that_stayed_too(shops):
    """A commit that takes some files out is not one that replaced the whole content."""
    p = shops
    p.write(DAYS.replace("2026-01-03", "2026-01-01"), "days.sql")
    p.write("CREATE MATERIALIZED VIEW below AS SELECT * FROM days;", "below.sql")
    p.arrive("a.json", sale(1, "x", 1), sale(2, "x", 2))
    p.run()
    p.write(DAYS, "days.sql")
    p.arrive("a.json", sale(3, "x", 3))
    p.run()
    p.arrive("a.json", sale(3, "x", 4))
    p.run()
    assert p.rows("below", "amount") == [1, 2, 4]

    p.run(full_refresh=("days",))
    assert shown(p) == [("2026-01-03", "x", "4")]
    assert p.rows("below", "amount") == [4]


@pytest.mark.slow
def test_RP1_the_condition_may_name_a_column_that_the_table_gets_with_it(shops):
    p = shops
    p.arrive("a.json", sale(3, "x", 3), sale(4, "y", 40))
    p.run()
    big = DAYS.replace("day >= '2026-01-03'", "big").replace("sum(amount) AS amount", "sum(amount) AS amount, sum(amount) > 5 AS big")
    p.write(big, "days.sql")
    p.run()
    assert shown(p, "shop", "amount", "big") == [("x", "3", "None"), ("y", "40", "None"), ("y", "40", "True")]


def test_RP1_a_write_that_delta_refuses_is_told_as_that_and_not_as_a_mistake_of_the_function(shops):
    p = shops
    p.write(DAYS.replace("days\n", "days (day DATE, shop STRING NOT NULL, amount BIGINT)\n"), "days.sql")
    p.arrive("a.json", sale(3, None, 3))
    p.run(expect="FAILED")
    assert p.errors() == {"days": "NOT_NULL_VIOLATED"}


@pytest.mark.long
def test_RP5_an_update_may_name_another_part_for_once(shops):
    p = shops
    p.write(SALES + DAYS_PYTHON)
    p.files.pop()
    p.arrive("a.json", sale(1, "x", 1), sale(2, "x", 2), sale(3, "x", 3))
    p.run()
    p.run(replace_where=(("days", "day = '2026-01-01'"),))
    assert shown(p) == [("2026-01-01", "x", "1"), ("2026-01-03", "x", "3")]

    p.arrive("a.json", sale(1, "x", 10), sale(2, "x", 20), sale(3, "x", 30))
    p.run()
    assert shown(p) == [("2026-01-01", "x", "1"), ("2026-01-03", "x", "30")]

    for name in ("dayz", "sales"):
        with pytest.raises(LakeletError) as caught:
            p.pipeline.run(Request(replace_where=((name, "true"),)))
        assert (caught.value.code, name in caught.value.what) == ("UNKNOWN_SELECTION", True)
    with pytest.raises(LakeletError, match="which --select leaves out"):
        p.pipeline.run(Request(select=("sales",), replace_where=(("days", "true"),)))


# ------------------------------------------------------------------------------------------------------- REPLACE USING


REGIONS = """
    from pyspark import pipelines as dp

    @dp.table(replace_using=["region"], sequence_by="seq")
    def days():
        return spark.readStream.schema("region INT, device STRING, seq INT").json(spark.conf.get("landing"))
"""


def event(region, device, seq):
    return {"region": region, "device": device, "seq": seq}


def devices(p):
    return p.rows("days", "region", "device", "seq")


@pytest.mark.long
def test_RP2_rows_of_a_key_replace_those_with_a_smaller_sequence_and_other_keys_stay(project):
    p = project(REGIONS)
    p.arrive("a.json", event(1, "iOS", 1), event(1, "Android", 1), event(2, "iOS", 1), event(2, "desktop", 1))
    p.run()
    p.arrive("b.json", event(1, "iOS", 2), event(1, "Android", 2), event(1, "desktop", 2), event(3, "iOS", 1), event(3, "desktop", 2))
    p.run()

    assert devices(p) == [
        (1, "Android", 2),
        (1, "desktop", 2),
        (1, "iOS", 2),
        (2, "desktop", 1),
        (2, "iOS", 1),
        (3, "desktop", 2),
    ]


def test_RP2_late_rows_are_ignored_rows_of_the_same_sequence_are_added_and_null_is_a_key(project):
    p = project(REGIONS)
    p.arrive("a.json", event(1, "new", 5), event(None, "nothing", 1))
    p.run()
    p.arrive("b.json", event(1, "late", 4), event(1, "same", 5), event(None, "more", 2))
    p.run()

    assert devices(p) == [(1, "new", 5), (1, "same", 5), (None, "more", 2)]
    p.run()
    assert devices(p) == [(1, "new", 5), (1, "same", 5), (None, "more", 2)]


def test_RP2_a_dropped_row_is_as_if_it_had_not_arrived(project):
    p = project(REGIONS.replace("@dp.table(", '@dp.expect_or_drop("named", "device IS NOT NULL")\n    @dp.table('))
    p.arrive("a.json", event(1, "old", 1), event(2, "old", 1))
    p.run()
    p.arrive("b.json", event(1, None, 9), event(1, "new", 2), event(2, None, 9))
    p.run()

    assert devices(p) == [(1, "new", 2), (2, "old", 1)]
    assert p.quality() == {"named": (1, 2)}


def test_RP2_a_row_without_a_sequence_fails_the_flow_and_nothing_is_written(project):
    p = project(REGIONS)
    p.arrive("a.json", event(1, "a", 1))
    p.run()
    p.arrive("b.json", event(1, "b", None), event(2, "c", 1))
    p.run(expect="FAILED")

    assert "REPLACE_NULL_SEQUENCE" in str(p.errors())
    assert devices(p) == [(1, "a", 1)]


@pytest.mark.slow
def test_RP2_sql_and_replace_flow_do_the_same_with_several_keys_and_an_expression_as_sequence(project):
    p = project("""
        from pyspark import pipelines as dp
        from pyspark.sql import functions as F

        @dp.table
        def arrived():
            return spark.readStream.schema("region INT, device STRING, seq STRING").json(spark.conf.get("landing"))

        dp.create_streaming_table("days")

        @dp.replace_flow(target="days", replace_using=["region", "device"], sequence_by=F.col("seq").cast("int"))
        def newest():
            return spark.readStream.table("arrived")
    """)
    p.write(
        """
        CREATE OR REFRESH STREAMING TABLE inline
        FLOW REPLACE USING (region, device) SEQUENCE BY CAST(a.seq AS INT) BY NAME
        SELECT a.* FROM STREAM(arrived) a;

        CREATE STREAMING TABLE apart;

        CREATE FLOW into_apart AS
        INSERT INTO apart BY NAME REPLACE USING (region, device) SEQUENCE BY CAST(seq AS INT)
        SELECT * FROM STREAM(arrived);
        """,
        "more.sql",
    )
    p.arrive("a.json", event(1, "a", "9"), event(1, "b", "9"))
    p.run()
    p.arrive("b.json", event(1, "a", "10"), event(1, "b", "8"))
    p.run()

    wanted = [(1, "a", "10"), (1, "b", "9")]
    assert [p.rows(name, "region", "device", "seq") for name in ("days", "inline", "apart")] == [wanted] * 3


@pytest.mark.slow
def test_RP2_a_stream_that_reads_the_table_goes_on_while_rows_are_only_added(project):
    p = project(REGIONS)
    p.write(
        """
        import dlt

        @dlt.table
        def below():
            return spark.readStream.table("days")
        """,
        "below.py",
    )
    p.arrive("a.json", event(1, "a", 1))
    p.run()
    p.arrive("b.json", event(2, "b", 1))
    p.run()
    assert p.rows("below", "region", "device", "seq") == [(1, "a", 1), (2, "b", 1)]

    p.arrive("c.json", event(2, "c", 2))
    p.run(expect="FAILED")
    assert "STREAM_SOURCE_CHANGED" in str(p.errors())


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("kind", ["using", "where"])
def test_RP3_the_change_feed_has_the_rows_that_go_and_come_and_no_other(project, kind):
    p = project(REGIONS)
    if kind == "where":
        p.write("""
            from pyspark import pipelines as dp

            @dp.table(replace_where="region = 1")
            def days():
                return spark.read.schema("region INT, device STRING, seq INT").json(spark.conf.get("landing"))
        """)
    p.write(
        """
        import dlt

        @dlt.table
        def changes():
            feed = spark.readStream.option("readChangeFeed", "true").table("days")
            return feed.select("region", "device", "seq", "_change_type")
        """,
        "changes.py",
    )
    p.arrive("a.json", event(1, "a", 1), event(2, "b", 1))
    p.run()
    p.arrive("a.json" if kind == "where" else "b.json", event(1, "c", 2))
    p.run()

    first = [] if kind == "where" else [(2, "b", 1, "insert")]
    assert p.rows("changes") == sorted([(1, "a", 1, "delete"), (1, "a", 1, "insert"), (1, "c", 2, "insert"), *first])


# ------------------------------------------------------------------------------------------------------- what is refused


WRONG = {
    "REPLACE_FLOW_INVALID: REPLACE WHERE names 'dya'": '@dp.table(replace_where="dya > 1")\ndef t(): return spark.range(3)',
    "REPLACE_FLOW_INVALID: REPLACE WHERE gives bigint": '@dp.table(replace_where="id")\ndef t(): return spark.range(3)',
    "REPLACE_FLOW_INVALID: REPLACE USING names 'di'": (
        '@dp.table(replace_using=["di"], sequence_by="id")\ndef t(): return spark.readStream.table("s")'
    ),
    "REPLACE_FLOW_INVALID: SEQUENCE BY names 'seq'": (
        '@dp.table(replace_using=["id"], sequence_by="seq")\ndef t(): return spark.readStream.table("s")'
    ),
    "REPLACE_FLOW_INVALID: SEQUENCE BY gives another value each time": (
        '@dp.table(replace_using=["id"], sequence_by="current_timestamp()")\ndef t(): return spark.readStream.table("s")'
    ),
    "REPLACE_FLOW_INVALID: REPLACE WHERE does not analyse": '@dp.table(replace_where="count(*) > 1")\ndef t(): return spark.range(3)',
    "REPLACE_FLOW_INVALID: REPLACE WHERE names 's.id'": '@dp.table(replace_where="s.id > 1")\ndef t(): return spark.range(3).alias("s")',
    "REPLACE_FLOW_INVALID: the key column 'm' is map<": (
        '@dp.table(replace_using=["m"], sequence_by="id")\ndef t(): return spark.readStream.table("s").selectExpr("id", "map(1, id) AS m")'
    ),
    "QUERY_KIND: a REPLACE USING flow needs a stream": '@dp.table(replace_using=["id"], sequence_by="id")\ndef t(): return spark.range(3)',
    "QUERY_KIND: a REPLACE WHERE flow needs a batch query": (
        '@dp.table(replace_where="id > 1")\ndef t(): return spark.readStream.table("s")'
    ),
    "ARGUMENT_INVALID: replace_using needs sequence_by": '@dp.table(replace_using=["id"])\ndef t(): return spark.readStream.table("s")',
    "ARGUMENT_INVALID: replace_where and replace_using exclude": (
        '@dp.table(replace_where="id > 1", replace_using=["id"], sequence_by="id")\ndef t(): return spark.range(3)'
    ),
    "ARGUMENT_INVALID: replace_using names a column twice": (
        '@dp.table(replace_using=["id", "ID"], sequence_by="id")\ndef t(): return spark.readStream.table("s")'
    ),
    "REPLACE_FLOW_INVALID: flows": (
        '@dp.table(replace_where="id > 1")\ndef t(): return spark.range(3)\n'
        '@dp.append_flow(target="t")\ndef more(): return spark.readStream.table("s")'
    ),
    "TARGET_KIND: ": (
        'dp.create_sink("out", "delta", {"path": "/tmp/out"})\n'
        '@dp.replace_flow("out", ["id"], "id")\ndef more(): return spark.readStream.table("s")'
    ),
    "QUARANTINE_REFUSED: ": (
        '@dp.expect_or_drop("r", "id > 0")\n@dp.table(replace_where="id > 1", table_properties={"lakelet.quarantine": "true"})\n'
        "def t(): return spark.range(3)"
    ),
}


@pytest.mark.parametrize("wanted", WRONG)
def test_what_cannot_replace_rows_is_refused_where_it_stands(project, wanted):
    p = project("from pyspark import pipelines as dp\n\n@dp.materialized_view\ndef s(): return spark.range(9)\n" + WRONG[wanted])
    errors = p.refused()
    assert any(f"{e.code}: {e.what}".startswith(wanted) for e in errors), [f"{e.code}: {e.what}" for e in errors]
    assert all(e.where is not None for e in errors)


def test_rules_of_a_part_count_and_a_notice_says_that_Databricks_refuses_them(shops):
    p = shops
    p.write(
        DAYS.replace("days\n", "days (CONSTRAINT cheap EXPECT (amount < 10) ON VIOLATION DROP ROW)\n"),
        "days.sql",
    )
    p.arrive("a.json", sale(3, "x", 3), sale(4, "y", 40))
    p.run()
    assert shown(p) == [("2026-01-03", "x", "3")]
    assert p.quality() == {"cheap": (1, 1)}
    assert any("Databricks refuses them" in notice.text for notice in p.pipeline.check().notices)
