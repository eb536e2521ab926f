"""Arguments and calls that generators and frameworks write (docs/semantics/language.md)."""

from __future__ import annotations

import pytest

from lakelet.spark.names.sql_queries import DETAIL, HISTORY
from tests.spark.conftest import codes

LATE = """
    import dlt
    from pyspark import pipelines as dp
    from delta.tables import DeltaTable

    dlt.enable_local_execution()
    PIPELINE = spark.conf.get("pipelines.id")

    dp.create_streaming_table("target", temporary=True)

    @dp.append_flow(target="target")
    def fill():
        return spark.readStream.schema("id BIGINT").json(spark.conf.get("landing"))

    @dp.materialized_view(temporary=True)
    def rows():
        return DeltaTable.forName(spark, "target").alias("t").toDF().selectExpr("t.id", f"'{PIPELINE}' AS pipeline")

    @dp.table(temporary=False)
    def streamed():
        return spark.readStream.table("target")
"""


@pytest.mark.slow
def test_temporary_makes_a_private_table_wherever_it_is_written_and_delta_tables_are_read_by_name(project):
    p = project(LATE)
    p.arrive("1.json", {"id": 1}, {"id": 2})

    p.run()

    assert p.rows("rows") == [(1, p.pipeline.config.pipeline_id), (2, p.pipeline.config.pipeline_id)]
    assert p.rows("streamed") == [1, 2]
    private = {key.rsplit(".", 1)[-1]: d.private for key, d in p.storage.registry().datasets.items()}
    assert private == {"target": True, "rows": True, "streamed": False}
    assert [str(n.inputs[0]) for n in p.pipeline.validate().nodes if n.name.name == "rows"] == ["main.default.target"]


def test_code_finds_where_it_runs_in_the_settings(project):
    p = project("""
        import dlt
        names = ("pipelines.catalog", "pipelines.schema", "spark.databricks.unityCatalog.enabled")

        @dlt.table
        def found():
            return spark.createDataFrame([tuple(spark.conf.get(name) for name in names)], "catalog string, schema string, governed string")
    """)

    p.run()

    assert p.rows("found") == [("main", "default", "true")]


def test_the_current_catalog_and_schema_are_the_pipeline_s_own(project):
    p = project("""
        import dlt
        from pyspark.sql import functions as F

        catalog, schema = spark.sql("SELECT current_catalog(), current_schema()").first()
        assert (spark.catalog.currentCatalog(), spark.catalog.currentDatabase()) == (catalog, schema)

        @dlt.table(name=f"{catalog}.{schema}_silver.named")
        def named():
            return spark.range(1).select(F.current_catalog().alias("c"), F.current_database().alias("s"))

        @dlt.table
        def in_text():
            asked = spark.range(1).selectExpr("current_catalog() AS c", "current_database() AS s").where("c = current_catalog()")
            return asked.withColumn("e", F.expr("current_schema()"))
    """)
    p.write("CREATE MATERIALIZED VIEW in_sql AS SELECT current_catalog() AS c, current_schema() AS s", "in_sql.sql")

    p.run()

    assert p.rows("default_silver.named") == [("main", "default")]
    assert p.rows("in_text") == [("main", "default", "default")]
    assert p.rows("in_sql") == [("main", "default")]
    assert p.spark.sql("SELECT current_catalog()").first()[0] == "spark_catalog"


def test_functions_that_spark_has_under_another_name_are_called_in_text(project):
    p = project("""
        import dlt
        from pyspark.sql import functions as F

        @dlt.table
        @dlt.expect_or_drop("found", "charindex('b', word) > 0")
        def words():
            rows = spark.createDataFrame([("abc",), ("xyz",)], "word STRING").filter("iff(word IS NULL, false, true)")
            return rows.selectExpr("word", "charindex('c', word) AS at").withColumn("old", F.expr("getdate() < DATE '2020-01-01'"))
    """)
    p.write("CREATE MATERIALIZED VIEW in_sql AS SELECT iff(id > 0, 'more', 'none') AS text FROM range(2)", "in_sql.sql")

    p.run()

    assert p.rows("words") == [("abc", 3, False)]
    assert p.rows("in_sql") == ["more", "none"]


@pytest.mark.slow
def test_the_schema_of_all_texts_of_a_column(project):
    p = project(r"""
        import dlt

        @dlt.table
        def texts():
            return spark.createDataFrame(
                [
                    (1, '{"a": 1, "b c": [1.5]}'), (1, '{"a": null, "d": {"e": "x"}}'), (1, "{broken"),
                    (2, None), (3, '[{"a": 9000000000}, {}]'),
                ],
                "id INT, text STRING",
            )

        @dlt.table
        def all_of_them():
            return dlt.read("texts").where("id = 1").selectExpr("schema_of_json_agg(text) AS schema")

        @dlt.table
        def read_by_it():
            schema = dlt.read("all_of_them").first()["schema"]
            return dlt.read("texts").where("id = 1").selectExpr(f"from_json(text, '{schema}') AS found").select("found.a", "found.d.e")
    """)
    p.write("CREATE MATERIALIZED VIEW by_id AS SELECT id, schema_of_json_agg(text) AS schema FROM texts GROUP BY id", "by_id.sql")
    p.run()
    found = "STRUCT<a: BIGINT, `b c`: ARRAY<DOUBLE>, d: STRUCT<e: STRING>>"
    assert p.rows("all_of_them") == [found]
    assert p.rows("by_id") == [(1, found), (2, "STRING"), (3, "ARRAY<STRUCT<a: BIGINT>>")]
    assert p.rows("read_by_it") == [(1, None), (None, "x"), (None, None)]

    p.write("CREATE MATERIALIZED VIEW by_id AS SELECT schema_of_json_agg(text, map('mode', 'x')) AS schema FROM texts", "by_id.sql")
    p.run(expect="FAILED")
    assert "schema_of_json_agg with options is not supported" in str(p.result.errors[0])


def test_who_is_in_a_group_says_a_parameter(project):
    p = project()
    p.write("CREATE MATERIALIZED VIEW secured AS SELECT is_member('admins') AS a, is_account_group_member('hr') AS h", "secured.sql")
    p.run()
    assert p.rows("secured") == [(False, False)]
    assert any("lakelet.groups" in notice.text for notice in p.pipeline.check().notices)

    p.parameters = {"lakelet.groups": "admins, ops"}
    p.run()

    assert p.rows("secured") == [(True, False)]
    assert not any("lakelet.groups" in notice.text for notice in p.pipeline.check().notices)


def test_a_function_of_the_pipeline_s_own_says_who_is_in_a_group_where_it_has_one(project):
    p = project("""
        import dlt
        spark.udf.register("is_member", lambda group: group == "staff", "boolean")
        dlt.table(lambda: spark.sql("SELECT is_member('staff') AS s, is_member('admins') AS a"), name="secured")
    """)

    p.run()

    assert p.rows("secured") == [(True, False)]


def test_two_groupings_of_one_frame_are_told_apart_in_joins(project):
    p = project("""
        import dlt
        from pyspark.sql import functions as F

        @dlt.table
        def spent():
            paid = spark.createDataFrame([(1, 2), (1, 9), (2, 4)], "payer INT, amount INT")
            newest = paid.select(F.max("amount").alias("newest"))

            def since(least):
                return paid.crossJoin(newest).where(F.col("amount") >= F.col("newest") - least).groupBy("payer").agg(
                    F.sum("amount").alias(f"sum_{least}")
                )

            people = spark.createDataFrame([(1,), (2,)], "id INT")
            few, all_ = since(3), since(9)
            joined = people.join(few, people.id == few.payer, "left").join(all_, people.id == all_.payer, "left")
            return joined.select(people.id, few.payer.alias("few"), all_.payer, "sum_3", "sum_9")
    """)

    p.run()

    assert p.rows("spent") == [(1, 1, 1, 9, 11), (2, None, 2, None, 4)]


def test_a_comparison_of_types_that_ansi_mode_does_not_convert_names_the_way_out(project):
    p = project("""
        import dlt

        @dlt.table
        def flagged():
            return spark.sql("SELECT id FROM VALUES (1, true) AS t(id, flag) WHERE flag = 1")
    """)

    (error,) = p.refused()

    assert (error.code, "spark.sql.ansi.enabled" in str(error.todo)) == ("QUERY_FAILED_ANALYSIS", True)


def test_a_dataset_s_function_does_not_write_to_a_table_of_the_pipeline_through_its_delta_table(project):
    p = project("""
        import dlt
        from delta.tables import DeltaTable
        dlt.table(lambda: spark.range(2), name="a")

        @dlt.table
        def b():
            DeltaTable.forName(spark, "a").delete("id = 1")
            return spark.table("a")

        @dlt.table
        def c():
            return DeltaTable.forName(spark, "a").clone("/tmp/copy")

        @dlt.table
        def d():
            return spark.sql("DESCRIBE TABLE main.default.a")

        @dlt.table
        def e():
            return spark.sql("SHOW TBLPROPERTIES main.default.a")
    """)

    errors = p.refused()
    assert codes(errors) == ["ACTION_IN_FUNCTION", *["NOT_SUPPORTED_YET"] * 3]
    assert errors[-1].what.startswith("SHOW of main.default.a, a dataset of the pipeline")


@pytest.mark.slow
def test_a_table_of_snapshots_that_runs_once_is_not_compared_again_until_a_full_refresh(project):
    p = project("""
        import dlt
        dlt.view(lambda: spark.read.schema("id BIGINT, v STRING").json(spark.conf.get("landing")), name="copy")
        dlt.create_streaming_table("current")
        dlt.create_auto_cdc_from_snapshot_flow(target="current", source="copy", keys=["id"], stored_as_scd_type=1, once=True)
    """)
    p.arrive("1.json", {"id": 1, "v": "a"})
    p.run()
    p.arrive("1.json", {"id": 2, "v": "b"})

    p.run()
    assert p.rows("current") == [(1, "a")]

    p.run(full_refresh=("current",))
    assert p.rows("current") == [(2, "b")]


@pytest.mark.slow
def test_the_snapshots_that_a_function_gives_once_are_all_applied_in_one_update(project):
    source = """
        import dlt
        dlt.create_streaming_table("current")

        def copies(latest):
            number = 1 if latest is None else latest + 1
            return (spark.range(number), number) if number <= LAST else None

        dlt.apply_changes_from_snapshot(target="current", source=copies, keys=["id"], stored_as_scd_type=1, once=True)
    """
    p = project(source.replace("LAST", "2"))
    p.run()
    assert p.rows("current") == [0, 1]
    p.write(source.replace("LAST", "4"))

    p.run()

    assert p.rows("current") == [0, 1]


def test_once_of_snapshots_is_true_or_false(project):
    p = project("""
        import dlt
        dlt.create_streaming_table("current")
        dlt.create_auto_cdc_from_snapshot_flow(target="current", source="copy", keys=["id"], once="yes")
    """)

    assert codes(p.refused()) == ["ARGUMENT_INVALID"]


@pytest.mark.slow
def test_whole_numbers_as_versions_have_the_type_that_the_table_declares(project):
    p = project("""
        from pyspark import pipelines as dp

        def following(latest):
            version = (latest or 0) + 1
            return (spark.createDataFrame([(1, version)], "id INT, n INT"), version) if version < 3 else None

        for name, schema in (("declared", "id INT, n INT, __START_AT INT, __END_AT INT"), ("free", None)):
            dp.create_streaming_table(name, schema=schema)
            dp.create_auto_cdc_from_snapshot_flow(target=name, source=following, keys=["id"], stored_as_scd_type=2)
    """)

    p.run()
    p.run()

    for name, kind in (("declared", "int32"), ("free", "int64")):
        assert p.rows(name) == [(1, 1, 1, 2), (1, 2, 2, None)]
        assert str(p.table(name).schema.field("__START_AT").type) == kind


@pytest.mark.slow
def test_a_function_finds_the_history_and_the_detail_of_a_stored_dataset(project):
    p = project("""
        import dlt
        from delta.tables import DeltaTable

        @dlt.table
        def orders():
            return spark.readStream.schema("id INT").json(spark.conf.get("landing"))

        @dlt.table
        def versions():
            before = spark.sql("DESCRIBE HISTORY main.default.orders").select("version").collect()
            newest = DeltaTable.forName(spark, "orders").history(1).select("version").collect()
            files = [row.numFiles for row in DeltaTable.forName(spark, "orders").detail().collect()]
            return spark.createDataFrame([(len(before), len(newest), len(files))], "before INT, newest INT, files INT")
    """)
    p.arrive("1.json", {"id": 1})
    p.run()
    assert p.rows("versions") == [(p.version("orders") + 1, 1, 1)]

    p.arrive("2.json", {"id": 2})
    p.run()

    assert p.rows("versions") == [(p.version("orders") + 1, 1, 1)]


def test_history_and_detail_of_a_table_that_is_not_made_yet_have_the_columns_of_delta(project):
    p = project("import dlt\ndlt.table(lambda: spark.range(1), name='made')\n")
    p.run()
    for kind, columns in {"HISTORY": HISTORY, "DETAIL": DETAIL}.items():
        stored = p.spark.sql(f"DESCRIBE {kind} delta.`{p.path('made')}`").schema
        assert [(f.name, f.dataType) for f in stored] == [(f.name, f.dataType) for f in p.spark.createDataFrame([], columns).schema]


@pytest.mark.long
def test_LG32_a_function_looks_at_what_the_last_update_left_of_its_own_table_and_may_not_return_it(project):
    p = project(
        """
        import dlt

        @dlt.table
        def items():
            return spark.readStream.format("json").schema("id INT, n STRING").load(spark.conf.get("landing"))

        @dlt.table
        def top():
            return spark.table("items").selectExpr("max(id) AS id", "0 AS before")
        """
    )
    p.arrive("a.json", {"id": 1, "n": "a"})
    p.run()
    p.write(
        """
        import dlt
        from pyspark.sql import functions as F

        @dlt.table
        def items():
            columns = spark.table("main.default.items").schema
            return spark.readStream.format("json").schema(columns).load(spark.conf.get("landing"))

        @dlt.table
        def top():
            before = spark.table("top").first().id
            return spark.table("items").selectExpr("max(id) AS id").withColumn("before", F.lit(before))
        """
    )
    p.arrive("b.json", {"id": 2, "n": "b"})
    p.run()
    assert p.rows("items") == [(1, "a"), (2, "b")]
    assert p.rows("top") == [(2, 1)]

    p.write(
        """
        import dlt
        from pyspark.errors import AnalysisException

        @dlt.table
        def counted():
            try:
                before = spark.table("counted").first().n
            except AnalysisException:
                before = 0
            return spark.range(1).selectExpr(f"{before} + 1 AS n")
        """,
        "counted.py",
    )
    p.run()
    assert p.rows("counted") == [1]
    p.run()
    assert p.rows("counted") == [2]

    p.write("import dlt\n\n@dlt.table\ndef top():\n    return spark.table('top').union(spark.sql('SELECT 3, 3'))\n", "own.py")
    p.write("import dlt\n")
    (error,) = p.refused()
    assert (error.code, error.what) == ("CYCLE", "datasets read each other in a circle: main.default.top → main.default.top")
