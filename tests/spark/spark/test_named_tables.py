"""Tables from outside by name (`--table`), and datasets in several catalogs and schemas."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

HEAD = """
    import dlt
    from pyspark.sql import functions as F
"""


def outside(p):
    """A Delta folder, one folder of Parquet, CSV and JSON files each, and single files, with names in several catalogs and schemas."""
    from pyarrow import parquet

    data = p.folder / "data"
    write_deltalake(data / "orders", pa.table({"id": [1, 2], "name": ["a", "b"]}))
    (data / "products").mkdir()
    parquet.write_table(pa.table({"id": [1, 2]}), data / "products" / "a.parquet")
    (data / "prices").mkdir()
    (data / "prices" / "a.csv").write_text("id,price,day\n1,2.5,2024-01-01\n2,3.5,2024-01-02\n")
    (data / "events").mkdir()
    (data / "events" / "a.json").write_text('{"id": 1}\n{"id": 2}\n')
    (data / "rules.csv").write_text("name,condition\nhas_id,id IS NOT NULL\n")
    (data / "array.json").write_text('[\n  {"id": 1},\n  {"id": 2}\n]\n')
    p.tables = [
        ("samples.shop.orders", "data/orders"),
        ("samples.01_raw.products", "data/products"),
        ("`dev-cat`.shop.prices", "data/prices/"),
        ("shop.events", "data/events"),
        ("rules", "data/rules.csv"),
        ("samples.shop.array", "data/array.json"),
    ]
    return data


@pytest.mark.long
def test_named_tables_are_read_as_batches_and_streams_in_python_in_sql_and_while_files_are_loaded(project):
    p = project(
        HEAD
        + """
    rules = {r.name: r.condition for r in spark.read.table("main.default.rules").collect()}
    assert rules == {r["name"]: r["condition"] for r in spark.sql("SELECT * FROM default.rules WHERE name <> {x}", x="'y'").collect()}
    assert [r.id for r in spark.sql("SELECT id FROM samples.`01_raw`.products WHERE id > :low", args={"low": 1}).collect()] == [2]
    assert spark.table("RULES").columns == ["name", "condition"]
    assert spark.catalog.tableExists("samples.shop.orders") and not spark.catalog.tableExists("samples.shop.none")

    NAMES = {
        "orders": "samples.shop.orders",
        "products": "samples.01_raw.products",
        "prices": "`dev-cat`.shop.`prices`",
        "events": "shop.events",
    }
    def declare(short, name):
        dlt.table(lambda: spark.read.table(name), name=f"batch_{short}")
        dlt.table(lambda: spark.sql(f"SELECT * FROM {name} AS t WHERE t.id > 0".replace("01_raw", "`01_raw`")), name=f"sql_{short}")
        dlt.table(lambda: spark.readStream.table(name), name=f"stream_{short}")
    for short, name in NAMES.items():
        declare(short, name)

    @dlt.table
    @dlt.expect_all_or_drop(rules)
    def array():
        assert spark.catalog.tableExists("samples.shop.array")
        return spark.table("samples.shop.array")

    dlt.table(lambda: spark.readStream.table("rules"), name="stream_of_one_csv_file")
    dlt.table(lambda: spark.readStream.table("samples.shop.array"), name="stream_of_one_json_file")

    @dlt.table
    def first_version():
        return spark.read.option("versionAsOf", 0).table("samples.shop.orders")

    dlt.create_streaming_table("current")
    dlt.apply_changes(target="current", source="samples.shop.orders", keys=["id"], sequence_by="id", stored_as_scd_type=1)
"""
    )
    p.write(
        """
        USE CATALOG samples;
        USE SCHEMA shop;
        CREATE STREAMING TABLE main.default.from_sql AS
          SELECT o.id, p.price, p.day FROM STREAM orders AS o JOIN `dev-cat`.shop.prices AS p ON p.id = o.id
            JOIN main.shop.events USING (id) JOIN `01_raw`.products USING (id);
        """,
        "more.sql",
    )
    data = outside(p)
    p.run()
    assert {key: len(p.rows(key)) for key in p.storage.registry().datasets} == {
        f"main.default.{name}": 2
        for name in (
            *(f"{how}_{short}" for how in ("batch", "sql", "stream") for short in ("orders", "products", "prices", "events")),
            *("array", "first_version", "current", "from_sql", "stream_of_one_json_file"),
        )
    } | {"main.default.stream_of_one_csv_file": 1}
    assert [str(f.type) for f in p.table("stream_prices").schema] == ["int32", "double", "date32[day]"]
    external = {node.name.name: node.external for node in p.pipeline.validate().nodes}
    assert external["batch_prices"] == ("dev-cat.shop.prices",)
    assert sorted(external["from_sql"]) == ["dev-cat.shop.prices", "main.shop.events", "samples.01_raw.products", "samples.shop.orders"]

    write_deltalake(data / "orders", pa.table({"id": [3], "name": ["c"]}), mode="append")
    (data / "events" / "b.json").write_text('{"id": 3}\n')
    p.run()
    counts = {
        name: len(p.rows(name)) for name in ("batch_orders", "stream_orders", "current", "first_version", "stream_events", "sql_events")
    }
    assert counts == {**dict.fromkeys(counts, 3), "first_version": 2}


def test_a_stream_of_a_table_may_be_given_the_schema_that_the_table_has(project):
    p = project(
        HEAD
        + """
    def stream(name):
        return spark.readStream.option("maxFilesPerTrigger", 1).schema(spark.table("samples.shop.orders").schema).table(name)

    dlt.table(lambda: stream("samples.shop.orders"), name="own")
    dlt.table(lambda: stream("own"), name="next")
"""
    )
    outside(p)
    p.run()
    assert p.rows("own") == p.rows("next") == [(1, "a"), (2, "b")]


def test_the_older_functions_that_read_take_names_from_outside_too(project):
    p = project(
        HEAD
        + """
    dlt.table(lambda: dlt.read("samples.shop.orders"), name="batch")
    dlt.table(lambda: dlt.read_stream("samples.shop.orders"), name="stream")
"""
    )
    outside(p)
    found = {node.name.name: node for node in p.pipeline.validate().nodes}
    assert {name: (str(node.kind.value), node.external) for name, node in found.items()} == {
        "batch": ("materialized_view", ("samples.shop.orders",)),
        "stream": ("streaming_table", ("samples.shop.orders",)),
    }


@pytest.mark.long
def test_a_dataset_wins_over_a_table_of_its_name_and_a_name_without_place_tells_the_flag(project):
    p = project(
        HEAD
        + """
    @dlt.table
    def orders():
        return spark.range(1)

    @dlt.table
    def reader():
        return spark.read.table("main.default.orders")
"""
    )
    outside(p)
    p.tables.append(("orders", "data/orders"))
    p.run()
    assert len(p.rows("reader")) == 1
    assert [word for word in ("orders", "--table") if any(word in n.text for n in p.pipeline.check().notices)] == ["orders", "--table"]

    p.write(
        HEAD
        + """
    @dlt.table
    def batch():
        return spark.read.table("dltnishad.source.sales")

    @dlt.table
    def stream():
        return spark.readStream.table("`my-cat`.01_x.sales")

    @dlt.table
    def text():
        return spark.sql("SELECT * FROM STREAM a.b.c")

    @dlt.table
    def gone():
        return spark.table("main.gone.t")

    @dlt.table
    def no_data():
        return spark.table("main.empty.t")
"""
    )
    p.tables += [("gone.t", "nowhere"), ("empty.t", "landing")]
    errors = {str(e.dataset).rsplit(".", 1)[-1]: e for e in p.refused()}
    assert {name: error.code for name, error in errors.items()} == {
        **dict.fromkeys(("batch", "stream", "text"), "UNKNOWN_DATASET"),
        "gone": "TABLE_PLACE_MISSING",
        "no_data": "TABLE_PLACE_UNREADABLE",
    }
    flags = {name: str(error.todo).split("--table ")[1].split("=")[0] for name, error in errors.items()}
    assert flags == {
        "batch": "dltnishad.source.sales",
        "stream": "my-cat.01_x.sales",
        "text": "a.b.c",
        "gone": "gone.t",
        "no_data": "empty.t",
    }


@pytest.mark.parametrize("read", ['spark.table("a.b.c")', 'spark.sql("SELECT * FROM a.b.c").collect()', 'spark.read.table("b.c")'])
def test_a_table_that_is_read_while_files_are_loaded_and_has_no_place_tells_the_flag(project, read):
    p = project(HEAD + f"\n    rows = {read}\n")
    (error,) = p.refused()
    assert error.code == "SOURCE_FAILED"
    assert f"--table {'b.c' if 'read.table' in read else 'a.b.c'}=PATH" in str(error.todo)


@pytest.mark.long
def test_datasets_live_in_several_catalogs_and_schemas_and_are_read_by_every_spelling(project):
    p = project(
        HEAD
        + """
    @dlt.table(name="01_bronze.events")
    def bronze():
        return spark.readStream.table("samples.shop.orders")

    @dlt.table(name="`dev-cat`.02_silver.events")
    def silver():
        return spark.read.table("01_bronze.events").unionAll(spark.table("main.`01_bronze`.events")).unionAll(dlt.read("01_bronze.events"))

    @dlt.table(name="olist.gold.per_day")
    def gold():
        return spark.sql("SELECT id, count(*) AS n FROM `dev-cat`.`02_silver`.events GROUP BY id")

    @dlt.table
    def last():
        return spark.readStream.table("live.01_bronze.events")

    dlt.create_streaming_table("olist.cdc.current")
    dlt.create_auto_cdc_flow(target="olist.cdc.current", source="main.01_bronze.events", keys=["id"], sequence_by="id")
"""
    )
    p.write(
        """
        CREATE MATERIALIZED VIEW `dev-cat`.03_gold.of_sql AS SELECT * FROM olist.gold.per_day JOIN olist.cdc.current USING (id);
        CREATE STREAMING TABLE 04_x.of_stream AS SELECT * FROM STREAM main.01_bronze.events;
        """,
        "more.sql",
    )
    outside(p)
    p.run().run()
    tables = {key: p.storage.table_path(p.pipeline.config.namespace.resolve(d.name)) for key, d in p.storage.registry().datasets.items()}
    expected = {
        "main.01_bronze.events": ("main/01_bronze/events", 2),
        "dev-cat.02_silver.events": ("dev-cat/02_silver/events", 6),
        "olist.gold.per_day": ("olist/gold/per_day", 2),
        "main.default.last": ("main/default/last", 2),
        "olist.cdc.current": ("olist/cdc/current", 2),
        "dev-cat.03_gold.of_sql": ("dev-cat/03_gold/of_sql", 2),
        "main.04_x.of_stream": ("main/04_x/of_stream", 2),
    }
    assert {key: p.storage.registry().datasets[key].path for key in tables} == {k: f"tables/{path}" for k, (path, _) in expected.items()}
    for path, rows in expected.values():
        assert len(DeltaTable(p.folder / "storage" / "tables" / path).to_pyarrow_table()) == rows, path


@pytest.mark.slow
def test_tables_that_code_makes_while_it_is_loaded_are_there_for_the_pipeline_in_any_catalog(project):
    p = project(
        HEAD
        + """
    spark.sql("CREATE CATALOG IF NOT EXISTS `ref-data`")
    spark.sql("CREATE SCHEMA IF NOT EXISTS ref.01_codes")
    spark.sql("USE CATALOG main")
    spark.sql("CREATE TABLE IF NOT EXISTS ref.`01_codes`.regions (id INT, name STRING)")
    spark.sql("INSERT INTO ref.`01_codes`.regions VALUES (1, 'north'), (2, 'south'), (3, 'moon')")
    spark.sql("DELETE FROM ref.`01_codes`.regions WHERE name = 'moon'")
    spark.sql(
        "MERGE INTO ref.01_codes.regions AS t USING (SELECT 3 AS id, 'east' AS name) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql("CREATE OR REPLACE TABLE upper AS SELECT id, upper(name) AS name FROM ref.01_codes.regions")
    spark.sql("CREATE OR REPLACE TEMP VIEW two AS SELECT * FROM upper WHERE id < 3")
    spark.createDataFrame([(1, "x")], "id INT, code STRING").write.mode("overwrite").saveAsTable("`ref-data`.s.`codes-2`")
    spark.createDataFrame([(2, "y")], "id INT, code STRING").write.insertInto("`ref-data`.s.`codes-2`")
    spark.createDataFrame([(3, "z")], "id INT, code STRING").writeTo("`ref-data`.s.`codes-2`").append()
    assert spark.table("ref.01_codes.regions").count() == 3 and spark.catalog.tableExists("ref.01_codes.regions")
    assert spark.sql("SELECT * FROM default.upper JOIN two USING (id)").count() == 2
    spark.sql("CREATE TABLE gone (id INT)")
    spark.sql("DROP TABLE gone")
    assert not spark.catalog.tableExists("main.default.gone")

    @dlt.table
    def regions():
        return spark.sql("SELECT r.id, r.name, c.code FROM ref.01_codes.regions AS r JOIN `ref-data`.s.`codes-2` AS c ON c.id = r.id")

    @dlt.table
    def names():
        return spark.read.table("main.default.upper").join(spark.table("two").select("id"), "id")
"""
    )
    p.run()
    assert p.rows("regions") == [(1, "north", "x"), (2, "south", "y"), (3, "east", "z")]
    assert p.rows("names") == [(1, "NORTH"), (2, "SOUTH")]
    assert [s.name for s in p.spark.catalog.listDatabases() if s.name.startswith("lakelet")] == []
    notices = [notice.text for notice in p.pipeline.check().notices]  # the second load makes them again
    assert any("--table ref.01_codes.regions=PATH makes it last" in text for text in notices), notices


def test_a_stream_does_not_read_a_table_that_the_next_load_makes_again_and_use_names_the_flag(project):
    p = project(
        HEAD
        + """
    spark.sql("CREATE TABLE a.b.seed (id INT)")

    @dlt.table
    def rows():
        return spark.readStream.table("a.b.seed")
"""
    )
    (error,) = p.refused()
    assert (error.code, "--table a.b.seed=PATH" in str(error.todo)) == ("TABLE_NOT_KEPT", True)
    p.write(HEAD + "\n    spark.sql('USE CATALOG other')\n")
    (error,) = p.refused()
    assert (error.code, error.todo) == ("NOT_SUPPORTED_YET", "Write full names, or start with --catalog other.")


@pytest.mark.slow
def test_code_that_makes_and_fills_a_named_table_writes_to_its_place(project):
    p = project(
        HEAD
        + """
    from delta.tables import DeltaTable

    spark.sql("CREATE TABLE IF NOT EXISTS samples.shop.orders (id BIGINT, name STRING)")
    spark.sql("DELETE FROM samples.shop.orders WHERE id > 2")
    spark.createDataFrame([(3, "c")], "id BIGINT, name STRING").write.mode("append").saveAsTable("samples.shop.orders")
    spark.createDataFrame([(1, "new")], "id INT, name STRING").write.mode("overwrite").saveAsTable("samples.shop.fresh")
    assert DeltaTable.forName(spark, "samples.shop.orders").toDF().count() == 3

    @dlt.table
    def rows():
        return spark.readStream.option("ignoreDeletes", True).option("skipChangeCommits", True).table("samples.shop.orders")

    @dlt.table
    def fresh():
        return spark.table("samples.shop.fresh")
"""
    )
    data = outside(p)
    p.tables.append(("samples.shop.fresh", "data/fresh"))
    p.run()
    assert (sorted(p.rows("rows")), p.rows("fresh")) == ([(1, "a"), (2, "b"), (3, "c")], [(1, "new")])
    assert len(DeltaTable(data / "orders").to_pyarrow_table()) == 3


@pytest.mark.slow
def test_functions_of_sinks_write_to_named_tables(project):
    p = project(
        HEAD
        + """
    from delta.tables import DeltaTable
    from pyspark import pipelines as dp

    @dp.foreach_batch_sink(name="out")
    def out(batch, number):
        batch.createOrReplaceTempView("batch")
        session = batch.sparkSession
        session.sql("MERGE INTO samples.shop.orders AS t USING batch AS b ON t.id = b.id WHEN MATCHED THEN UPDATE SET name = 'seen'")
        session.sql("INSERT INTO samples.shop.orders SELECT id + 10, 'new' FROM batch")
        batch.write.mode("append").saveAsTable("samples.shop.log")
        DeltaTable.forName(session, "samples.shop.orders").delete("id = 12")

    @dp.append_flow(target="out")
    def feed():
        return spark.readStream.table("shop.events")

    @dlt.table
    def other():
        return spark.range(1)
"""
    )
    data = outside(p)
    p.tables.append(("samples.shop.log", "data/log"))
    p.run()
    rows = DeltaTable(data / "orders").to_pyarrow_table().to_pylist()
    assert sorted((r["id"], r["name"]) for r in rows) == [(1, "seen"), (2, "seen"), (11, "new")]
    assert len(DeltaTable(data / "log").to_pyarrow_table()) == 2


@pytest.mark.slow
def test_a_materialized_view_is_computed_again_when_the_files_of_a_named_table_are_other_ones(project):
    p = project(
        HEAD
        + """
    @dlt.table
    def of_delta():
        return spark.table("samples.shop.orders")

    @dlt.table
    def of_both():
        return spark.sql("SELECT o.id, p.price FROM samples.shop.orders AS o JOIN `dev-cat`.shop.prices AS p ON o.id = p.id")

    @dlt.view
    def looked_through():
        return spark.read.table("shop.events")

    @dlt.table
    def of_json():
        return dlt.read("looked_through")

    @dlt.table
    def of_rows():
        return spark.range(5).where(F.col("id") < len(spark.table("rules").collect()) + 1)

    @dlt.table
    def of_a_version():
        return spark.read.option("versionAsOf", 0).table("samples.shop.orders")
"""
    )
    data = outside(p)
    p.run()

    def computed():
        return sorted(step.dataset.rsplit(".", 1)[-1] for step in p.pipeline.plan().steps if step.strategy.value == "full")

    assert computed() == ["of_a_version"]
    write_deltalake(data / "orders", pa.table({"id": [3], "name": ["c"]}), mode="append")
    assert computed() == ["of_a_version", "of_both", "of_delta"]
    p.run()
    assert (len(p.rows("of_delta")), computed()) == (3, ["of_a_version"])
    (data / "prices" / "b.csv").write_text("id,price,day\n3,4.5,2024-01-03\n")
    (data / "rules.csv").write_text("name,condition\na,TRUE\nb,TRUE\n")
    assert computed() == ["of_a_version", "of_both", "of_rows"]
    p.run()
    assert (len(p.rows("of_both")), p.rows("of_rows")) == (3, [0, 1, 2])
    p.tables = [(name, "data/array.json" if name == "shop.events" else place) for name, place in p.tables]
    assert computed() == ["of_a_version", "of_json"]


@pytest.mark.in_ci(every=4)
@pytest.mark.long
@pytest.mark.parametrize("log", ["of appends", "with a deletion", "with a column added later", "without its beginning"])
def test_a_stream_of_a_named_delta_table_reads_every_row_once_whatever_its_log_holds(project, log):
    """A log of appends is streamed from its beginning, any other begins with a snapshot."""
    p = project(HEAD + "    dlt.table(lambda: spark.readStream.table('shop.orders').select('id'), name='orders')")
    place, p.tables = str(p.folder / "orders"), [("shop.orders", "orders")]

    def append(*ids, **more):
        rows = {"id": list(ids), **{key: [value] * len(ids) for key, value in more.items()}}
        write_deltalake(place, pa.table(rows), mode="append", schema_mode="merge")

    append(1, 2, 0)
    append(3)
    expected = [0, 1, 2, 3]
    if log == "with a deletion":
        DeltaTable(place).delete("id = 0")
        expected = [1, 2, 3]
    if log == "with a column added later":
        append(4, more="x")
        expected = [0, 1, 2, 3, 4]
    if log == "without its beginning":
        DeltaTable(place).create_checkpoint()
        (p.folder / "orders/_delta_log/00000000000000000000.json").unlink()
    assert p.run().rows("orders") == expected
    append(8)
    DeltaTable(place).optimize.compact()
    append(9)
    assert p.run().rows("orders") == [*expected, 8, 9]
    assert p.run().rows("orders") == [*expected, 8, 9]
