"""What more repositories of other people use, in small pipelines of our own: functions, places and schemas of Databricks."""

from __future__ import annotations

from datetime import date

import pytest


@pytest.mark.slow
def test_input_file_name_names_the_file_of_each_row_of_auto_loader(project):
    p = project(
        """
    from pyspark.sql.functions import *
    import dlt

    IN = spark.conf.get("landing")

    def files():
        return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(IN)

    @dlt.table
    def added():
        return files().select("id", *(lit(n).alias(f"c{n}") for n in range(30)), input_file_name().alias("file"))

    @dlt.view
    def seen():
        return files()

    @dlt.table
    def inside():
        names = lower(input_file_name()).alias("file")
        return spark.readStream.table("seen").where(input_file_name().endswith("B.json")).select("id", names)

    @dlt.table
    def native():
        return spark.readStream.schema("id STRING").json(IN).select("id", input_file_name().alias("file"))
"""
    )
    p.write("CREATE STREAMING TABLE in_sql AS SELECT *, input_file_name() AS file FROM cloud_files('${landing}', 'json')", "a.sql")
    p.write(
        "CREATE MATERIALIZED VIEW batch AS SELECT id, input_file_name() AS file, _metadata.file_name FROM read_files('${landing}')", "b.sql"
    )
    p.arrive("a b.json", {"id": 1})
    p.arrive("B.json", {"id": 2})
    p.run()
    first, second = (f"file://{p.landing}/{name}" for name in ("a%20b.json", "B.json"))
    expected = [("1", first), ("2", second)]
    assert {name: p.rows(name, "id", "file") for name in ("added", "native", "in_sql")} == dict.fromkeys(
        ("added", "native", "in_sql"), expected
    )
    assert p.rows("inside") == [("2", second.lower())]
    assert p.rows("batch") == [(1, first, "a%20b.json"), (2, second, "B.json")]


@pytest.mark.long
def test_functions_that_only_the_service_has_are_given_by_a_source_file_and_the_error_says_so(project):
    p = project(
        """
    import dlt

    @dlt.table
    def texts():
        return spark.read.json(spark.conf.get("landing")).selectExpr("text", "AI_RATE(text, array('good', 'bad')) AS rating")
"""
    )
    p.write("CREATE MATERIALIZED VIEW rated AS SELECT rating, ai_rate(rating, array('x')) AS again FROM texts", "rated.sql")
    p.write("import dlt\n@dlt.table\ndef queue():\n    return spark.readStream.format('no_such_queue').load()\n", "queue.py")
    p.arrive("a.json", {"text": "bad"})
    refused = p.refused()
    assert any('spark.udf.register("ai_rate", function, "string")' in (error.todo or "") for error in refused)
    (missing,) = [error for error in refused if error.code == "SOURCE_FORMAT_MISSING"]
    assert "no_such_queue" in missing.what
    assert "jars" in missing.todo
    p.write("spark.udf.register('ai_rate', lambda text, labels: labels[-1], 'string')\n", "functions.py")
    p.write("", "queue.py")
    p.run()
    assert p.rows("texts", "rating") == ["bad"]
    assert p.rows("rated") == [("bad", "x")]


@pytest.mark.slow
def test_a_schema_location_of_the_service_is_left_aside_and_a_mapped_one_is_used(project):
    p = project(
        """
    import dlt

    def reading(location):
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
        return reader.option("cloudFiles.schemaLocation", location).load(spark.conf.get("landing"))

    @dlt.table
    def hosted():
        return reading("dbfs:/pipelines/schemas")

    @dlt.table
    def of_volumes():
        return reading("/Volumes/main/none/such/schemas")

    @dlt.table
    def of_a_cloud():
        return reading("abfss://box@account.dfs.core.windows.net/schemas")

    @dlt.table
    def mapped():
        return reading("/mnt/kept/schemas")
"""
    )
    p.maps = [("/mnt/kept", "kept")]
    (p.folder / "kept").mkdir()
    p.arrive("a.json", {"id": 1})
    p.run()
    assert [p.rows(name, "id") for name in ("hosted", "of_volumes", "of_a_cloud", "mapped")] == [["1"]] * 4
    assert [file.name for file in (p.folder / "kept/schemas/_schemas").iterdir()] == ["0"]
    notices = [n.text for n in p.pipeline.check().notices if "schemaLocation" in n.text]
    assert [text.split(": ", 1)[1].partition(" is ")[0] for text in notices] == [
        "dbfs:/pipelines/schemas",
        "/Volumes/main/none/such/schemas",
        "abfss://box@account.dfs.core.windows.net/schemas",
    ]


def test_a_view_that_looks_at_rows_and_that_nobody_reads_is_no_mistake(project):
    p = project(
        """
    import dlt

    @dlt.table
    def numbers():
        return spark.readStream.schema("n INT").json(spark.conf.get("landing"))

    @dlt.view
    def looked_at():
        df = dlt.read("numbers")
        df.show()
        return df.limit(df.count())
"""
    )
    p.arrive("a.json", {"n": 1})
    p.run()
    p.arrive("b.json", {"n": 2})
    p.run()
    assert p.rows("numbers") == [1, 2]


@pytest.mark.slow
def test_the_schema_of_a_table_may_hold_computed_columns_and_keys(project):
    p = project(
        """
    import dlt

    @dlt.table(
        schema=\"\"\"
            number INT NOT NULL COMMENT "its 'own' number", -- a key
            at TIMESTAMP,
            weekday STRING GENERATED ALWAYS AS (date_format(at, 'EEEE')),
            CONSTRAINT the_key PRIMARY KEY (number)
        \"\"\",
        partition_cols=["weekday"],
    )
    @dlt.expect_or_drop("known", "weekday IS NOT NULL")
    def orders():
        return spark.readStream.schema("number INT, at TIMESTAMP").json(spark.conf.get("landing"))

    @dlt.table(schema="number INT, double INT GENERATED ALWAYS AS (number * 2)")
    def doubled():
        return dlt.read("orders").select("number")
"""
    )
    p.arrive("a.json", {"number": 1, "at": "2024-01-01T00:00:00Z"}, {"number": 2})
    p.run()
    assert p.rows("orders", "number", "weekday") == [(1, "Monday")]
    assert p.rows("doubled") == [(1, 2)]
    (notice,) = [n for n in p.pipeline.check().notices if "PRIMARY KEY" in n.text]
    assert "informational" in notice.text
    for name, source in {
        "NOT_SUPPORTED_YET": "dlt.create_streaming_table('fed', schema='number INT, at TIMESTAMP, m INT DEFAULT 1')\n"
        "dlt.apply_changes('fed', source='orders', keys=['number'], sequence_by='at')",
        "ARGUMENT_INVALID": "dlt.table(lambda: spark.range(1), name='u', schema='id INT, CONSTRAINT rule EXPECT (id > 0)')",
    }.items():
        p.write(f"import dlt\n{source}\n", "wrong.py")
        assert [e.code for e in p.refused()] == [name]


def test_flows_leave_computed_columns_to_their_table(project):
    p = project("""
        import dlt

        dlt.create_streaming_table("orders", schema="n INT, doubled INT GENERATED ALWAYS AS (n * 2), kind STRING DEFAULT 'plain'")

        @dlt.append_flow(target="orders")
        def plain():
            return spark.readStream.schema("n INT").json(spark.conf.get("landing"))

        @dlt.append_flow(target="orders")
        def named():
            return spark.readStream.schema("n INT, kind STRING").json(spark.conf.get("landing"))
    """)
    p.write(
        """
        CREATE STREAMING TABLE copies (n INT, day DATE GENERATED ALWAYS AS (DATE '2026-03-01' + n)) PARTITIONED BY (day);
        CREATE FLOW copy AS INSERT INTO copies BY NAME SELECT n FROM STREAM(orders) WHERE kind = 'plain'
        """,
        "copies.sql",
    )
    p.arrive("a.json", {"n": 1, "kind": "odd"})
    p.run()
    p.arrive("b.json", {"n": 2, "kind": "even"})
    p.run()
    assert p.rows("orders") == [(1, 2, "odd"), (1, 2, "plain"), (2, 4, "even"), (2, 4, "plain")]
    assert p.rows("copies") == [(1, date(2026, 3, 2)), (2, date(2026, 3, 3))]


def test_a_flow_may_give_a_generated_column_the_value_that_the_table_computes_and_no_other(project):
    p = project()
    p.write(
        """
        CREATE STREAMING TABLE right (n INT, m INT GENERATED ALWAYS AS (n + 1));
        CREATE FLOW right_rows AS INSERT INTO ONCE right BY NAME SELECT * FROM VALUES (1, 2), (NULL, NULL) AS rows(n, m);
        CREATE STREAMING TABLE wrong (n INT, m INT GENERATED ALWAYS AS (n + 1));
        CREATE FLOW wrong_rows AS INSERT INTO ONCE wrong BY NAME SELECT 1 AS n, 5 AS m;
        """,
        "p.sql",
    )
    failed = p.run(expect="FAILED")
    assert p.rows("right") == [(1, 2), (None, None)]
    (error,) = failed.result.errors
    assert (error.dataset, (error.why or "").rpartition(", and ")[2]) == ("main.default.wrong", "the query returns another value for it: 5")


def test_rows_made_in_code_have_the_values_that_spark_connect_takes(project):
    code = """
    import dlt
    from pyspark.sql.types import DoubleType, StringType, StructField, StructType

    SCHEMA = StructType([StructField("name", StringType()), StructField("value", DoubleType())])

    @dlt.table
    def readings():
        rows = spark.createDataFrame([("a", 450), (7, 1.5), (None, None)], SCHEMA)
        return rows.union(spark.createDataFrame([("b", 2)], "name STRING, value FLOAT"))
    """
    wrong = "dlt.table(lambda: spark.createDataFrame([('a', 'much')], SCHEMA), name='wrong')"
    p = project(f"{code}\n    {wrong}\n")
    (error,) = p.refused()
    assert error.dataset == "main.default.wrong"
    assert "FIELD_DATA_TYPE_UNACCEPTABLE" in str(error.why)
    p.write(code).run()
    assert p.rows("readings") == [("7", 1.5), ("a", 450.0), ("b", 2.0), (None, None)]
