"""Code outside of dataset functions finds the tables that the storage holds, as the last update left them (LG-23)."""

from __future__ import annotations

GROUPS = """
    import dlt

    def groups():
        if not spark.catalog.tableExists("silver.orders"):
            return []
        listed = [r.tableName for r in spark.sql("SHOW TABLES IN main.silver LIKE 'ord*'").collect()]
        assert listed == [t.name for t in spark.catalog.listTables("silver", "ORD*|nothing")] == ["orders"]
        assert spark.catalog.databaseExists("silver") and not spark.catalog.databaseExists("golden")
        assert [r.databaseName for r in spark.sql("SHOW SCHEMAS").collect()] == [d.name for d in spark.catalog.listDatabases()]
        assert [r.databaseName for r in spark.sql("SHOW SCHEMAS IN main LIKE 's*'").collect()] == ["silver"]
        assert [r.catalog for r in spark.sql("show catalogs").collect()] == [c.name for c in spark.catalog.listCatalogs()] == ["main"]
        assert [r.col_name for r in spark.sql("SHOW COLUMNS IN silver.orders").collect()] == ["id", "kind"]
        assert [r.col_name for r in spark.sql("DESCRIBE TABLE main.silver.orders").collect()] == ["id", "kind"]
        found = spark.sql("SELECT DISTINCT kind FROM main.silver.orders").collect()
        assert {r.kind for r in found} == {r.kind for r in spark.read.table("silver.orders").collect()}
        return sorted(r.kind for r in found)

    @dlt.table(name="silver.orders")
    def orders():
        return spark.readStream.schema("id INT, kind STRING").json(spark.conf.get("landing"))

    def of(kind):
        dlt.table(lambda: spark.table("silver.orders").where(f"kind = '{kind}'"), name=f"gold.{kind}")

    for kind in groups():
        of(kind)
"""


def test_datasets_are_declared_from_the_rows_that_the_last_update_left(project):
    p = project(GROUPS)
    p.arrive("1.json", {"id": 1, "kind": "a"}, {"id": 2, "kind": "b"})

    p.run()
    assert list(p.statuses()) == ["orders"]

    p.arrive("2.json", {"id": 3, "kind": "a"}, {"id": 4, "kind": "c"})
    p.run()

    assert (p.rows("gold.a"), p.rows("gold.b")) == ([(1, "a"), (3, "a")], [(2, "b")])
    told = [n.text for n in p.pipeline.check().notices]
    assert any(text.startswith("main.silver.orders is read while the code is loaded") for text in told), told


def test_a_table_that_no_update_has_made_is_missing_for_code_that_reads_it_at_once(project):
    p = project("""
        import dlt
        from pyspark.errors import AnalysisException

        assert not any(not table.isTemporary for table in spark.catalog.listTables())
        assert spark.sql("SHOW TABLES").where("NOT isTemporary").count() == 0
        try:
            spark.table("main.silver.orders")
        except AnalysisException:
            pass

        @dlt.table
        def orders():
            return spark.range(1)

        spark.table("orders")
    """)

    (error,) = p.refused()

    assert (error.code, "tables that no update has made yet" in str(error.todo)) == ("SOURCE_FAILED", True)


def test_views_of_the_session_and_tables_from_outside_and_of_code_are_listed_too(project):
    p = project("""
        import dlt

        spark.range(3).createOrReplaceTempView("seen")
        spark.sql("CREATE TABLE ref.codes.regions (id INT)")
        listed = [(r.database, r.tableName, r.isTemporary) for r in spark.sql("SHOW TABLES IN ref.codes LIKE 'regions|seen'").collect()]
        assert listed == [("codes", "regions", False), ("", "seen", True)]
        assert [(t.catalog, t.namespace, t.name) for t in spark.catalog.listTables("shop.raw", "o*")] == [("shop", ["raw"], "orders")]
        assert [r.catalog for r in spark.sql("SHOW CATALOGS").collect()] == ["main", "ref", "shop"]

        @dlt.table
        def seen_first():
            assert spark.sql("SHOW TABLES IN shop.raw LIKE 'orders'").count() == 1
            return spark.table("seen")
    """)
    p.tables = [("shop.raw.orders", "outside")]

    p.run()

    assert p.rows("seen_first") == [0, 1, 2]
