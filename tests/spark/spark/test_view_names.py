"""Temporary views have no catalog and schema: only their bare name means them (docs/semantics/names.md)."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakelet.inspection.inspector import RowSelection, read_rows
from tests.spark.conftest import codes

SAME_NAME = """
    import dlt

    @dlt.view
    def orders():
        assert spark.catalog.tableExists("main.default.orders")
        return spark.readStream.table("main.default.orders").where("id > 1")

    @dlt.view(name="prices")
    def same_name_in_sql():
        return spark.sql("SELECT id, price * 2 AS price FROM default.prices")

    @dlt.table
    def bronze():
        return spark.readStream.table("orders")

    @dlt.table
    def priced():
        new = spark.sql("SELECT b.id, p.price FROM bronze b JOIN LIVE.prices p USING (id)")
        return new.join(spark.sql("SELECT id, price AS old FROM main.default.prices"), "id")
"""


@pytest.mark.long
def test_a_view_reads_the_outside_table_that_carries_its_name_by_the_full_name(project):
    p = project(SAME_NAME)
    write_deltalake(p.folder / "orders", pa.table({"id": [1, 2, 3]}))
    write_deltalake(p.folder / "prices", pa.table({"id": [1, 2], "price": [10, 20]}))
    p.tables = [("main.default.orders", "orders"), ("default.prices", "prices")]

    p.run()

    assert p.rows("bronze") == [2, 3]
    assert p.rows("priced") == [(2, 40, 20)]


def test_a_table_of_the_storage_is_read_by_its_full_name_where_a_view_took_its_name(project):
    p = project("import dlt\ndlt.table(lambda: spark.range(2), name='numbers')")
    p.run()
    p.write("""
        import dlt
        dlt.view(lambda: spark.table("default.numbers").selectExpr("id + 10 AS id"), name="numbers")
        dlt.table(lambda: dlt.read("numbers"), name="taken")
    """)

    p.run()

    assert p.rows("taken") == [10, 11]


def test_a_qualified_name_that_only_a_temporary_view_has_is_unknown_and_the_error_says_how_the_view_is_read(project):
    p = project("""
        import dlt
        dlt.view(lambda: spark.range(2), name="v")
        dlt.table(lambda: spark.table("main.default.v"), name="a")
        dlt.table(lambda: spark.sql("SELECT * FROM default.v"), name="b")
        dlt.table(lambda: dlt.read("LIVE.default.v"), name="c")
        dlt.table(lambda: dlt.read("LIVE.v"), name="fine")
    """)

    errors = p.refused()

    assert codes(errors) == ["UNKNOWN_DATASET"] * 3
    assert all(e.todo.startswith('The temporary view v has no catalog and schema: read it as "v".') for e in errors)
    (full,) = [e for e in errors if '"main.default.v"' in e.what]
    assert "main.default.v" not in full.nearest


def test_a_published_view_is_read_by_its_full_name(project):
    p = project()
    p.write("CREATE VIEW v AS SELECT id FROM range(2); CREATE MATERIALIZED VIEW t AS SELECT * FROM main.default.v", "p.sql")

    p.run()

    assert p.rows("t") == [0, 1]
    shown = read_rows(p.storage.root, "v", limit=5, selection=RowSelection(order_by="id DESC"))
    assert [row["id"] for row in shown.rows] == [1, 0]


@pytest.mark.parametrize("name", ["default.v", "main.default.v", "LIVE.default.v"])
def test_a_temporary_view_is_not_declared_with_a_catalog_or_schema(project, name):
    p = project(f"import dlt\ndlt.view(lambda: spark.range(2), name='{name}')\ndlt.table(lambda: spark.range(1), name='t')")

    (error,) = p.refused()

    assert error.code == "ARGUMENT_INVALID"
    assert "the name of a temporary view has one part" in error.what


def test_a_temporary_view_of_sql_takes_expectations(project):
    p = project()
    p.write(
        """
        CREATE TEMPORARY VIEW v (CONSTRAINT big EXPECT (id > 0) ON VIOLATION DROP ROW) AS SELECT id FROM range(3);
        CREATE MATERIALIZED VIEW t AS SELECT * FROM v
        """,
        "p.sql",
    )

    p.run()

    assert p.rows("t") == [1, 2]
    assert p.quality() == {"big": (2, 1)}
