"""SQ-15: `information_schema` tells pipelines and `lakelet sql` what the storage holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.inspection.inspector import run_sql
from tests.spark.conftest import Project

SILVER = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.table(comment="orders as they came", partition_cols=["Day"],
               schema="id BIGINT NOT NULL COMMENT 'number of the order', price DECIMAL(10,2), tags ARRAY<STRING>, Day DATE")
    def orders():
        return spark.readStream.schema("id LONG, price DECIMAL(10,2), tags ARRAY<STRING>, Day DATE").json(spark.conf.get("landing"))

    @dlt.table(private=True)
    def hidden():
        return spark.range(1)

    @dlt.table(name="main.gold.Daily")
    def daily():
        return spark.read.table("orders").groupBy("Day").agg(F.sum("price").alias("price"))
"""


@pytest.fixture
def stored(project: Callable[..., Project]) -> Project:
    made = project()
    made.write(SILVER, "silver.py")
    made.write("CREATE VIEW dear AS SELECT * FROM orders WHERE price > 10", "views.sql")
    made.arrive("1.json", {"id": 1, "price": "12.50", "tags": ["a"], "Day": "2024-01-02"})
    return made.run()


def rows(project: Project, query: str) -> list[Any]:
    return [tuple(row.values()) for row in run_sql(project.storage.root, query).rows]


def test_SQ15_tables_views_and_columns_of_the_storage(stored: Project) -> None:
    assert rows(
        stored,
        "SELECT table_schema, table_name, table_type, is_insertable_into, comment, data_source_format, created <= last_altered AS ordered "
        "FROM information_schema.tables ORDER BY ALL",
    ) == [
        ("default", "dear", "VIEW", "NO", None, "UNKNOWN_DATA_SOURCE_FORMAT", None),
        ("default", "orders", "STREAMING_TABLE", "NO", "orders as they came", "DELTA", True),
        ("gold", "daily", "MATERIALIZED_VIEW", "NO", None, "DELTA", True),
    ]
    columns = (
        "SELECT column_name, ordinal_position, is_nullable, full_data_type, data_type, numeric_precision, numeric_precision_radix, "
        "numeric_scale, datetime_precision, partition_index, comment FROM MAIN.Information_Schema.COLUMNS WHERE table_name = 'orders'"
    )
    assert rows(stored, f"{columns} ORDER BY ordinal_position") == [
        ("id", 1, "NO", "bigint", "LONG", 64, 2, 0, None, None, "number of the order"),
        ("price", 2, "YES", "decimal(10,2)", "DECIMAL", 10, 10, 2, None, None, None),
        ("tags", 3, "YES", "array<string>", "ARRAY", None, None, None, None, None, None),
        ("Day", 4, "YES", "date", "DATE", None, None, None, 0, 1, None),
    ]
    assert rows(stored, "SELECT table_name, view_definition, is_materialized FROM system.information_schema.views") == [
        ("dear", "SELECT * FROM orders WHERE price > 10", "NO")
    ]
    assert rows(stored, "SELECT catalog_name, schema_name FROM information_schema.schemata ORDER BY 2") == [
        ("main", "default"), ("main", "gold"), ("main", "information_schema"),
    ]  # fmt: skip
    assert rows(stored, "SELECT catalog_name FROM system.information_schema.catalogs") == [("main",)]
    assert rows(stored, "SELECT table_name FROM other.information_schema.tables") == []


def test_SQ15_spark_and_duckdb_give_the_same_rows(stored: Project) -> None:
    for relation in ("catalogs", "schemata", "tables", "views", "columns", "table_tags"):
        notes: list[str] = []
        by_duckdb = run_sql(stored.storage.root, f"SELECT * FROM information_schema.{relation}", note=notes.append)
        assert not notes, "this query needs no Spark"
        by_spark = run_sql(stored.storage.root, f"SELECT * FROM information_schema.{relation} TABLESAMPLE (100 PERCENT)", note=notes.append)
        assert notes, "this one does"
        assert (by_duckdb.columns, by_duckdb.types) == (by_spark.columns, by_spark.types)
        assert sorted(map(str, by_duckdb.rows)) == sorted(map(str, by_spark.rows))


def test_SQ15_nothing_has_a_tag(stored: Project) -> None:
    for relation, parts in (("catalog_tags", 1), ("schema_tags", 2), ("table_tags", 3), ("column_tags", 4)):
        found = run_sql(stored.storage.root, f"SELECT * FROM main.information_schema.{relation}")
        names = ("catalog_name", "schema_name", "table_name", "column_name")
        assert (found.columns, list(found.rows)) == ((*names[:parts], "tag_name", "tag_value"), [])


def test_SQ15_a_pipeline_makes_one_dataset_for_each_table_that_it_finds(stored: Project) -> None:
    stored.write(
        """
        import dlt

        found = spark.sql("SELECT t.table_name FROM system.information_schema.tables t WHERE t.table_catalog = 'main' "
                          "AND t.table_schema = 'default' AND t.table_type = 'STREAMING_TABLE'").collect()
        assert spark.table("information_schema.columns").where("table_name = 'orders'").count() == 4

        for row in found:
            @dlt.table(name=f"{row.table_name}_copy")
            def copy(name=row.table_name):
                return spark.read.table(name)
        """,
        "copies.py",
    )
    stored.run()
    assert [row[0] for row in stored.rows("orders_copy", "id", "price")] == [1]


def test_SQ15_a_dataset_over_the_columns_is_computed_in_each_update(stored: Project) -> None:
    stored.write(
        "CREATE MATERIALIZED VIEW wide AS SELECT table_name, count(*) AS n FROM main.information_schema.columns "
        "WHERE information_schema.columns.table_schema = 'default' GROUP BY ALL",
        "wide.sql",
    )
    stored.run()
    assert stored.rows("wide") == [("orders", 4)]
    stored.run()
    assert stored.rows("wide") == [("orders", 4), ("wide", 2)]


def test_SQ15_tables_from_outside_are_listed_too(project: Callable[..., Project], tmp_path: Any) -> None:
    write_deltalake(tmp_path / "prices", pa.table({"item": ["a"], "price": [1.5]}))
    made = project()
    made.tables = [("ref.shop.prices", str(tmp_path / "prices"))]
    made.write(
        """
        import dlt

        @dlt.table
        def listed():
            return spark.sql("SELECT c.table_schema, c.column_name, t.table_type FROM ref.information_schema.columns c "
                             "JOIN ref.information_schema.tables t USING (table_name)")
        """
    )
    made.run()
    assert made.rows("listed") == [("shop", "item", "EXTERNAL"), ("shop", "price", "EXTERNAL")]


def test_SQ15_a_stream_of_it_is_refused(project: Callable[..., Project]) -> None:
    made = project()
    made.write("CREATE STREAMING TABLE s AS SELECT * FROM STREAM information_schema.tables", "s.sql")
    (error,) = made.refused()
    assert error.code == "QUERY_KIND"
    assert "cannot be read as a stream" in error.what


def test_SQ15_a_table_of_the_pipeline_s_own_with_that_name_comes_first(project: Callable[..., Project]) -> None:
    made = project()
    made.write("CREATE MATERIALIZED VIEW main.information_schema.tables AS SELECT 7 AS own", "own.sql")
    made.write("CREATE MATERIALIZED VIEW reading AS SELECT own FROM information_schema.tables", "reading.sql")
    made.run()
    assert made.rows("reading") == [7]
    assert rows(made, "SELECT own FROM information_schema.tables") == [(7,)]


def test_SQ15_sinks_are_listed_by_their_table_and_damaged_tables_without_columns(project: Callable[..., Project], tmp_path: Any) -> None:
    made = project(
        """
        import dlt

        assert spark.catalog.tableExists("system.information_schema.tables")
        assert not spark.catalog.tableExists("system.information_schema.others")
        dlt.create_sink("named", "delta", {"tableName": "main.other.sent"})
        dlt.create_sink("by_path", "delta", {"path": spark.conf.get("landing") + "/../sent"})

        @dlt.table
        def numbers():
            return spark.readStream.schema("id INT").json(spark.conf.get("landing"))

        for sink in ("named", "by_path"):
            @dlt.append_flow(name=f"to_{sink}", target=sink)
            def send():
                return spark.readStream.table("numbers")
        """
    )
    made.arrive("1.json", {"id": 1})
    made.run()
    (made.path("numbers") / "_delta_log" / f"{0:020d}.json").write_text("{broken")
    assert rows(made, "SELECT table_schema, table_name, table_type FROM information_schema.tables ORDER BY ALL") == [
        ("default", "numbers", "STREAMING_TABLE"), ("other", "sent", "MANAGED"),
    ]  # fmt: skip
    assert rows(made, "SELECT table_name, column_name FROM information_schema.columns") == [("sent", "id")]
