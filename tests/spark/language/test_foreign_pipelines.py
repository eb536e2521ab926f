"""What pipelines of public repositories beyond the corpus asked for, in small pipelines of our own."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import write_deltalake


def test_settings_that_spark_or_only_the_hosted_service_takes_at_its_start_are_told_and_do_no_harm(project):
    p = project(
        """
    import dlt

    spark.conf.set("spark.sql.shuffle.partitions", "auto")

    OWN = {"spark.sql.shuffle.partitions": "auto", "spark.executor.memory": "4g", "spark.sql.session.timeZone": "Asia/Tokyo"}

    @dlt.table(spark_conf=OWN)
    def times():
        return spark.sql("select hour(timestamp'2024-01-01 00:00:00Z') as hour")
"""
    )
    p.parameters |= {"spark.shuffle.manager": "sort", "spark.sql.streaming.stateStore.providerClass": "com.databricks.RocksDB", "mine": "1"}
    told = " ".join(notice.text for notice in p.pipeline.check().notices)
    for key in (
        "spark.sql.shuffle.partitions",
        "spark.executor.memory",
        "spark.shuffle.manager",
        "spark.sql.streaming.stateStore.providerClass",
    ):
        assert f"{key} has no effect here" in told or f"{key} = auto has no effect here" in told, key
    p.run()
    assert p.rows("times") == [9]
    p.parameters["spark.sql.ansi.enabled"] = "maybe"
    assert [(e.code, e.what) for e in p.refused()] == [
        ("PROPERTY_INVALID", "The value 'maybe' in the config \"spark.sql.ansi.enabled\" is invalid. It should be a/an 'boolean' value.")
    ]


@pytest.mark.long
def test_a_snapshot_and_its_version_that_were_read_while_the_file_was_loaded(project):
    p = project(
        """
    import dlt

    dlt.create_streaming_table(name="orders")

    dlt.apply_changes_from_snapshot(
        target="orders",
        snapshot_and_version=(spark.read.table("shop.raw.orders"), int(spark.conf.get("moment"))),
        keys=["id"],
        stored_as_scd_type=1,
    )
"""
    )
    p.tables = [("shop.raw.orders", "orders")]
    for moment, rows in enumerate(({"id": [1, 2], "state": ["new", "new"]}, {"id": [2, 3], "state": ["sent", "new"]}), start=1):
        write_deltalake(str(p.folder / "orders"), pa.table(rows), mode="overwrite")
        p.parameters["moment"] = str(moment)
        p.run()
        p.run()
        assert p.rows("orders") == sorted(zip(rows["id"], rows["state"], strict=True))


@pytest.mark.slow
def test_a_registered_function_answers_for_the_one_of_a_catalog(project):
    p = project()
    p.write("CREATE MATERIALIZED VIEW keys AS SELECT shop.tools.key_of(id) AS key, tools.`Twice`(id) AS twice FROM range(2)", "keys.sql")
    [error] = p.refused()
    assert (error.code, error.what) == (
        "QUERY_FAILED_ANALYSIS",
        "the query calls the function shop.tools.key_of, which is not on this machine",
    )
    assert error.todo is not None
    assert 'spark.udf.register("key_of", function' in error.todo
    p.write(
        "import dlt\nspark.udf.register('key_of', lambda i: f'k{i}')\nspark.udf.register('twice', lambda i: 2 * i, 'long')\n",
        "functions.py",
    )
    p.run()
    assert p.rows("keys") == [("k0", 0), ("k1", 2)]


@pytest.mark.slow
def test_paths_into_json_may_be_written_as_the_formatter_of_the_service_writes_them(project):
    p = project().write(
        """
        CREATE MATERIALIZED VIEW events AS SELECT * FROM json.`${landing}`;
        CREATE MATERIALIZED VIEW told AS SELECT details :user :name, Int(details :user :age) AS age FROM events WHERE details :kind = :kind;
        """,
        "events.sql",
    )
    p.parameters["kind"] = "told"
    p.arrive("a.json", *({"details": f'{{"kind":"{kind}","user":{{"name":"{kind}er","age":"7"}}}}'} for kind in ("told", "kept")))
    p.run()
    assert p.table("told").column_names == ["name", "age"]
    assert p.rows("told") == [("tolder", 7)]


@pytest.mark.slow
def test_views_with_named_queries_are_skipped_while_nothing_changed(project):
    source = """
        CREATE MATERIALIZED VIEW numbers AS SELECT explode(sequence(1, 4)) AS n;
        CREATE MATERIALIZED VIEW named AS
        WITH small AS (SELECT n FROM numbers WHERE n < 3), twice AS (SELECT 2 * n AS m FROM small)
        SELECT n, m FROM small LEFT JOIN twice ON n = m WHERE n IN (WITH some AS (SELECT n FROM numbers) SELECT n FROM some);
        CREATE MATERIALIZED VIEW counted AS
        WITH RECURSIVE up (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM up WHERE i < 3) SELECT i FROM up;
        CREATE MATERIALIZED VIEW dated AS WITH now AS (SELECT current_date() AS day) SELECT day FROM now;
        """
    p = project().write(source, "views.sql")
    p.run()
    assert (p.rows("named"), p.rows("counted")) == ([(1, None), (2, 2)], [1, 2, 3])
    p.run()
    assert p.statuses() == {"numbers": "IDLE", "named": "IDLE", "counted": "IDLE", "dated": "COMPLETED"}
    p.write(source.replace("n < 3", "n < 4"), "views.sql")
    p.run()
    assert p.rows("named") == [(1, None), (2, 2), (3, None)]


@pytest.mark.slow
def test_a_folder_without_a_delta_table_fails_what_reads_it_until_there_is_one(project):
    p = project(
        """
    import dlt

    @dlt.table
    def streamed():
        return spark.readStream.format("delta").load(spark.conf.get("landing") + "/late")

    @dlt.table
    def read():
        return spark.read.format("delta").load(spark.conf.get("landing") + "/late")

    @dlt.table
    def other():
        return spark.range(1)
"""
    )
    (p.landing / "late").mkdir()
    p.run(expect="FAILED")
    assert p.errors() == {"streamed": "FLOW_FAILED", "read": "FLOW_FAILED"}
    assert {e.todo for e in p.result.errors} == {"The folder holds no Delta table yet, or the path means another folder."}
    assert p.rows("other") == [0]
    write_deltalake(str(p.landing / "late"), pa.table({"id": [1]}))
    p.run()
    assert (p.rows("streamed"), p.rows("read")) == ([1], [1])
