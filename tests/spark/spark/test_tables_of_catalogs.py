"""Tables of others, read by the names that a catalog has for them: a double of Unity Catalog, real rows (PB-13 to PB-17)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet

from tests.unity import UnityServer, unity_server

READS = """
import dlt

@dlt.table
def batch():
    return spark.read.table("sales.customers")

@dlt.table
def stream():
    return spark.readStream.table("main.sales.customers")

@dlt.table
def by_sql():
    return spark.sql("SELECT id FROM main.sales.customers WHERE id > 0")
"""
SQL = """
CREATE OR REFRESH STREAMING TABLE sql_stream AS SELECT * FROM STREAM(sales.customers);
CREATE OR REFRESH MATERIALIZED VIEW sql_batch AS WITH c AS (SELECT * FROM main.sales.customers) SELECT c.id FROM c;
"""
ONE = """
import dlt

@dlt.table
def copy():
    return spark.read.table("sales.customers")
"""


@pytest.fixture
def unity() -> Iterator[UnityServer]:
    with unity_server() as running:
        yield running


@pytest.fixture
def customers(project: Any, unity: UnityServer) -> Any:
    """A project whose catalog has main.sales.customers: ids 1 and 2, in a folder whose name has a blank."""
    made = project(ONE)
    made.catalogs = {"uc": unity.address}
    folder = made.folder / "of others"
    write_deltalake(folder, pa.table({"id": [1, 2]}))
    unity.somebody_makes("main.sales.customers", folder.as_uri())
    return made


@pytest.mark.long
def test_a_table_of_a_catalog_is_read_as_batch_and_stream_in_python_and_sql(customers: Any, unity: UnityServer) -> None:
    customers.write(READS).write(SQL, "more.sql").run()
    names = ("batch", "stream", "by_sql", "sql_stream", "sql_batch")
    assert [customers.rows(name) for name in names] == [[1, 2]] * 5
    assert unity.paths == ["GET catalogs", "GET tables/main.sales.customers"]  # one question for all of them
    write_deltalake(customers.folder / "of others", pa.table({"id": [3]}), mode="append")
    customers.run()
    assert [customers.rows(name) for name in names] == [[1, 2, 3]] * 5


def test_code_outside_of_functions_reads_a_table_of_a_catalog(customers: Any) -> None:
    customers.write("""
    import dlt

    ids = [row.id for row in spark.sql("SELECT id FROM sales.customers ORDER BY id").collect()]
    assert ids == [row.id for row in spark.table("main.sales.customers").orderBy("id").collect()]
    assert [row.col_name for row in spark.sql("DESCRIBE sales.customers").collect()][:1] == ["id"]
    assert spark.catalog.tableExists("sales.customers") and not spark.catalog.tableExists("sales.nobody")

    @dlt.table
    def counted():
        assert spark.catalog.tableExists("sales.customers") and not spark.catalog.tableExists("sales.nobody")
        return spark.createDataFrame([(len(ids),)], "n INT")
    """).run()
    assert customers.rows("counted") == [2]


def test_a_flag_a_dataset_and_a_view_of_the_session_come_before_the_catalog(customers: Any, unity: UnityServer) -> None:
    for name in ("flagged", "own", "default.own", "default.seen"):
        unity.somebody_makes(f"main.{name}" if "." in name else f"main.default.{name}", (customers.folder / "of others").as_uri())
    write_deltalake(customers.folder / "flagged", pa.table({"id": [7]}))
    customers.tables = [("flagged", "flagged")]
    customers.write("""
    import dlt

    spark.range(8, 9).createOrReplaceTempView("seen")

    @dlt.table
    def own():
        return spark.range(9, 10)

    @dlt.table
    def copy():
        return spark.table("flagged").union(spark.table("own")).union(spark.table("seen")).union(spark.sql("SELECT id FROM seen"))
    """).run()
    assert customers.rows("copy") == [7, 8, 8, 9]
    assert unity.paths == []


def test_a_name_that_nobody_has_is_an_error_that_names_the_catalogs_and_the_nearest_name(customers: Any, unity: UnityServer) -> None:
    (error,) = customers.write(ONE.replace("sales.customers", "sales.copi")).refused()
    assert error.code == "UNKNOWN_DATASET"
    assert f"neither the pipeline nor the storage nor Unity Catalog at {unity.address} knows" in error.what
    assert "--table sales.copi=PATH" in str(error.todo)
    assert unity.paths == ["GET catalogs", "GET tables/main.sales.copi"]


def test_a_view_and_a_table_of_another_format_are_errors_that_say_what_the_catalog_says(customers: Any, unity: UnityServer) -> None:
    unity.somebody_makes("main.sales.recent", table_type="VIEW", data_source_format=None)
    unity.somebody_makes("main.sales.notes", "file:///notes", data_source_format="CSV")
    days = [{"name": "day", "position": 0, "partition_index": 0}]
    unity.somebody_makes("main.sales.days", "file:///days", data_source_format="PARQUET", columns=days)
    unity.somebody_makes("main.sales.keys", "s3://me:sesame@bucket/keys")
    says = {"recent": "it says: a view", "notes": "it says: csv", "days": "it says: parquet, partitioned by day", "keys": "a password"}
    for name, text in says.items():
        (error,) = customers.write(ONE.replace("customers", name)).refused()
        assert (error.code, error.where.line) == ("CATALOG_TABLE_REFUSED", 6)
        assert f"the query reads main.sales.{name}, which cannot be read from Unity Catalog at {unity.address}" in error.what
        assert text in error.what
        assert "sesame" not in str(error)
        assert f"--table main.sales.{name}=PATH" in str(error.todo)


def test_parquet_is_read_and_a_location_that_does_not_exist_is_an_error_with_the_catalog(customers: Any, unity: UnityServer) -> None:
    (customers.folder / "parquet").mkdir()
    parquet.write_table(pa.table({"id": [5]}), customers.folder / "parquet" / "000000_0")
    unity.somebody_makes("main.sales.customers", str(customers.folder / "parquet"), data_source_format="PARQUET")
    assert customers.run().rows("copy") == [5]
    shutil.rmtree(customers.folder / "parquet")
    (error,) = customers.refused()
    assert (error.code, error.why) == ("TABLE_PLACE_MISSING", f"Unity Catalog at {unity.address} says so.")


def test_a_catalog_that_is_away_fails_what_it_must_be_asked_for_and_nothing_else(customers: Any) -> None:
    customers.catalogs = {"uc": "http://127.0.0.1:1"}
    customers.write("import dlt\n@dlt.table\ndef numbers():\n    return spark.range(1)\n", "numbers.py").run(expect="FAILED")
    (error,) = customers.result.errors
    assert (error.code, error.dataset, error.where.line) == ("CATALOG_UNREACHABLE", "main.default.copy", 6)
    assert "the query reads main.sales.customers, and Unity Catalog at http://127.0.0.1:1 does not answer" in error.what
    assert error.why
    assert "--table main.sales.customers=PATH" in str(error.todo)
    assert customers.rows("numbers") == [0]
    (warning,) = customers.pipeline.check().unchecked
    assert "does not answer" in warning.text
    customers.write("import dlt\n@dlt.table\ndef copy():\n    return spark.range(1)\n").run()


def test_the_first_catalog_that_has_the_name_says_where_the_table_lies(customers: Any, unity: UnityServer) -> None:
    customers.catalogs = {"uc": unity.address, "hive": "thrift://127.0.0.1:1"}
    assert customers.run().rows("copy") == [1, 2]
    del unity.tables["main.sales.customers"]
    customers.run(expect="FAILED")
    assert [(error.code, "thrift://127.0.0.1:1" in error.what) for error in customers.result.errors] == [("CATALOG_UNREACHABLE", True)]


def test_what_the_pipeline_itself_has_published_is_not_read_as_a_table_of_others(customers: Any, unity: UnityServer) -> None:
    customers.publish = customers.catalogs
    customers.write("import dlt\n@dlt.table\ndef first():\n    return spark.range(1)\n").run()
    assert unity.tables["main.default.first"]["properties"]
    unity.tables["main.sales.first"] = unity.tables["main.default.first"]
    (error,) = customers.write(ONE.replace("sales.customers", "sales.first")).refused()
    assert error.code == "UNKNOWN_DATASET"


def test_code_outside_of_functions_does_not_read_from_a_catalog_what_the_pipeline_defines(customers: Any, unity: UnityServer) -> None:
    unity.somebody_makes("main.default.copy", (customers.folder / "of others").as_uri())
    customers.write("""
    import dlt

    known = spark.table("copy").count()

    @dlt.table
    def copy():
        return spark.range(known)
    """)
    (error,) = customers.refused()
    assert error.code == "CATALOG_TABLE_REFUSED"
    assert "the pipeline defines a table of that name" in error.what


def test_a_view_is_computed_again_when_the_catalog_says_another_location(customers: Any, unity: UnityServer) -> None:
    customers.run()
    assert customers.run().statuses() == {"copy": "IDLE"}
    write_deltalake(customers.folder / "other", pa.table({"id": [4]}))
    unity.somebody_makes("main.sales.customers", (customers.folder / "other").as_uri())
    assert customers.run().rows("copy") == [4]


def test_a_stream_goes_on_where_a_table_was_moved_to_and_does_not_read_another_one(customers: Any, unity: UnityServer) -> None:
    customers.write(ONE.replace("read.", "readStream.")).run()
    moved = customers.folder / "moved"
    shutil.move(customers.folder / "of others", moved)
    unity.somebody_makes("main.sales.customers", moved.as_uri())
    write_deltalake(moved, pa.table({"id": [3]}), mode="append")
    assert customers.run().rows("copy") == [1, 2, 3]
    write_deltalake(customers.folder / "other", pa.table({"id": [4]}))
    unity.somebody_makes("main.sales.customers", (customers.folder / "other").as_uri())
    customers.run(expect="FAILED")
    assert customers.rows("copy") == [1, 2, 3]


def test_a_location_of_databricks_is_mapped_like_a_path_of_the_code(customers: Any, unity: UnityServer) -> None:
    unity.somebody_makes("main.sales.customers", "dbfs:/lake/customers")
    (error,) = customers.refused()
    assert (error.code, error.why) == (
        "PATH_NOT_MAPPED",
        f"Unity Catalog at {unity.address} says that main.sales.customers lies there.",
    )
    unity.somebody_makes("main.sales.customers", "s3://bucket/customers")  # this session has no connector
    (error,) = customers.refused()
    assert error.code == "PATH_NOT_MAPPED"
    assert "with Spark's connector for S3: --table main.sales.customers=s3://bucket/customers" in str(error.todo)
    unity.somebody_makes("main.sales.customers", "dbfs:/lake/customers")
    customers.maps = [("dbfs:/lake/customers", str(customers.folder / "of others"))]
    assert customers.run().rows("copy") == [1, 2]


def test_nothing_is_written_to_a_table_of_a_catalog(customers: Any, unity: UnityServer) -> None:
    customers.write("""
    import dlt
    from pyspark.errors import AnalysisException

    assert spark.table("sales.customers").count() == 2
    try:
        spark.sql("INSERT INTO sales.customers VALUES (3)")
    except AnalysisException as problem:
        refused = problem.getCondition()

    dlt.create_sink("out", "delta", {"tableName": "sales.customers"})
    dlt.append_flow(target="out", name="sends")(lambda: spark.readStream.table("copy"))

    @dlt.table
    def copy():
        assert refused == "TABLE_OR_VIEW_NOT_FOUND"
        return spark.readStream.table("sales.customers")
    """).run()
    assert DeltaTable(customers.folder / "of others").version() == 0
    assert customers.rows("sales.customers") == [1, 2]
