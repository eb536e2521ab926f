"""Mistakes in queries and rules: analysis finds them together, at their lines, and nothing is written."""

from __future__ import annotations

from tests.spark.analysis.marked_mistakes import HEAD, NUMBERS, at, check


def test_mistakes_in_queries_are_found_at_their_lines_and_names_are_suggested(project):
    p = project(
        NUMBERS
        + """
    @dlt.table
    def column():
        df = dlt.read("numbers")
        return (
            df.where("id > 0")
            .select("idd")  #! QUERY_FAILED_ANALYSIS
        )

    @dlt.table
    def column_in_sql():
        return spark.sql("SELECT idd FROM numbers")  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def attribute():
        return dlt.read("numbers").idd  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def wrong_argument():
        return dlt.read("numbers").withColumn("a", 5)  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def text_divided_by_text():
        return dlt.read("numbers").selectExpr("string(id) / string(id) AS one")  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def sql_text():
        return spark.sql("SELEC * FROM numbers")  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def sql_function():
        return spark.sql("SELECT nothing_like_it(id) FROM numbers")  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def parameter():
        return dlt.read("numbers").where(spark.conf.get("no.such.key"))  #! QUERY_FAILED_ANALYSIS

    @dlt.table
    def command():
        spark.sql("INSERT INTO numbers VALUES (1)")  #! QUERY_FAILED_ANALYSIS
        return dlt.read("numbers")

    @dlt.table
    def table():
        return dlt.read("number")  #! UNKNOWN_DATASET

    @dlt.table
    def live_table():
        return spark.read.table("LIVE.numbrs")  #! UNKNOWN_DATASET

    @dlt.table
    def table_in_sql():
        return spark.sql("SELECT * FROM other.schema.numbers")  #! UNKNOWN_DATASET

    @dlt.table
    def stream():
        return spark.readStream.table("numberss")  #! UNKNOWN_DATASET

    @dlt.table
    def no_name():
        return dlt.read(numbers)  #! ARGUMENT_INVALID

    @dlt.table
    def below():
        return dlt.read("table").join(dlt.read("column"))
"""
    )
    errors = check(p)
    assert at(errors, p, '.select("idd")').nearest == ("id",)
    assert at(errors, p, "SELECT idd").nearest == ("id",)
    for remedy in ("Cast the columns", '"spark.sql.ansi.enabled": "false"'):
        assert remedy in at(errors, p, "string(id) / string(id)").todo
    assert "--param no.such.key=" in at(errors, p, "no.such.key").todo
    assert at(errors, p, 'dlt.read("number")').nearest == ("main.default.numbers",)
    assert at(errors, p, "other.schema.numbers").nearest == ("main.default.numbers",)
    assert at(errors, p, "dlt.read(numbers)").todo == 'Write dlt.read("numbers").'


def test_a_function_must_return_a_spark_data_frame(project):
    p = project(
        NUMBERS
        + """
    @dlt.table  #! QUERY_RETURNED_NO_DATAFRAME
    def nothing():
        dlt.read("numbers")

    @dlt.table(name="text")  #! QUERY_RETURNED_NO_DATAFRAME
    def some_text():
        return "numbers"

    @dlt.table  #! QUERY_RETURNED_NO_DATAFRAME
    def of_pandas():
        return dlt.read("numbers").toPandas()

    @dlt.view  #! QUERY_RETURNED_NO_DATAFRAME
    def looked_through():
        pass

    @dlt.table
    def reader():
        return dlt.read("looked_through")

    @dlt.table
    def other_reader():
        return dlt.read("looked_through")
"""
    )
    errors = check(p)
    assert {e.what for e in errors.values()} >= {
        "nothing() returned nothing instead of a Spark DataFrame",
        "some_text() returned a str instead of a Spark DataFrame",
        "of_pandas() returned a pandas DataFrame instead of a Spark DataFrame",
    }


def test_rules_are_checked_on_the_columns_of_their_dataset_each_mistake_once(project):
    p = project(
        NUMBERS
        + """
    @dlt.table
    @dlt.expect("good", "id > 0")
    @dlt.expect("typo", "idd > 0")  #! EXPECTATION_INVALID
    @dlt.expect_or_drop("number", "id + 1")  #! EXPECTATION_INVALID
    @dlt.expect_or_fail("unfinished", "id >")  #! EXPECTATION_INVALID
    @dlt.expect("a_column", F.col("idd") > 1)  #! EXPECTATION_INVALID
    @dlt.expect("sum", "sum(id) > 1")  #! EXPECTATION_INVALID
    @dlt.expect("empty", "")  #! EXPECTATION_INVALID
    def judged():
        return dlt.read("numbers")

    @dlt.view
    @dlt.expect_all({"of_view": "nothing > 1"})  #! EXPECTATION_INVALID
    def seen():
        return dlt.read("numbers")

    @dlt.table
    def one_reader():
        return dlt.read("seen")

    @dlt.table
    def other_reader():
        return dlt.read("seen").where("id > 1")

    dlt.create_streaming_table("two_flows", expect_all_or_drop={"of_table": "nothing > 1"})  #! EXPECTATION_INVALID

    @dlt.append_flow(target="two_flows")
    def flow():
        return dlt.read_stream("numbers")

    @dlt.append_flow(target="two_flows")
    def other_flow():
        return dlt.read_stream("numbers").where("id > 1")
"""
    )
    errors = check(p)
    assert at(errors, p, '"typo"').nearest == ("id",)
    assert at(errors, p, '"number"').what == "expectation 'number' is bigint, not boolean: id + 1"
    assert "PARSE_SYNTAX_ERROR" in at(errors, p, '"unfinished"').why


def test_what_loading_finds_and_what_analysis_finds_is_reported_together(project):
    p = project(
        HEAD
        + """
    @dlt.table
    def numbers():
        return spark.range(3)

    @dlt.view(name="Numbers")  #! DUPLICATE_DATASET
    def again():
        return spark.range(4)

    dlt.create_streaming_table("events")

    @dlt.append_flow(target="events", name="first")
    def first():
        return spark.readStream.table("numbers")

    @dlt.append_flow(target="events", name="first")  #! DUPLICATE_FLOW
    def second():
        return spark.readStream.table("numbers")

    @dlt.append_flow(target="event")  #! UNKNOWN_TARGET
    def third():
        return spark.readStream.table("numbers")

    @dlt.append_flow(target="view")  #! UNKNOWN_TARGET
    def fourth():
        return spark.readStream.table("numbers")

    @dlt.append_flow(target="copy")  #! UNKNOWN_TARGET
    def fifth():
        return spark.readStream.table("numbers")

    @dlt.view
    def view():
        return dlt.read("numbers")

    @dlt.table
    def copy():
        return dlt.read("numbers")

    dlt.create_streaming_table("lonely")  #! DATASET_WITHOUT_FLOW

    @dlt.table
    @dlt.expect("rule", "id > 0")
    @dlt.expect_or_drop("rule", "id > 1")  #! DUPLICATE_EXPECTATION
    def judged():
        return dlt.read("numbers").select("idd")  #! QUERY_FAILED_ANALYSIS
""",
        second="""
    import dlt

    @dlt.table
    def numbers():
        return spark.range(3)
""",
    )
    errors = check(p)
    assert at(errors, p, 'target="event")').nearest[0] == "main.default.events"
    assert "pipeline.py, line 6" in at(errors, p, 'name="Numbers"').why


def test_a_circle_is_told_with_its_path(project):
    p = project(
        HEAD
        + """
    @dlt.table  #! CYCLE
    def a():
        return dlt.read("b")

    @dlt.table
    def b():
        return spark.sql("SELECT * FROM c")

    @dlt.view
    def c():
        return dlt.read("a")

    @dlt.table  #! CYCLE
    def itself():
        return dlt.read("itself")

    @dlt.view  #! CYCLE
    def view():
        return dlt.read("view")

    @dlt.table
    def below():
        return dlt.read("a")
"""
    )
    found = [e.what.partition(": ")[2] for e in p.refused()]
    check(p)
    assert found[0] == "main.default.a → main.default.b → main.default.c → main.default.a"
    assert found[1:] == ["main.default.itself → main.default.itself", "main.default.view → main.default.view"]


def test_batch_and_stream_are_not_mixed_up(project):
    p = project(
        NUMBERS
        + """
    @dp.materialized_view  #! QUERY_KIND
    def materialized_view():
        return spark.readStream.table("numbers")

    @dp.temporary_view
    def stream_view():
        return spark.readStream.table("numbers")

    @dp.temporary_view
    def batch_view():
        return spark.read.table("numbers")

    @dlt.table
    def batch_of_stream():
        return spark.read.table("stream_view")  #! QUERY_KIND

    @dlt.table
    def stream_of_batch():
        return dlt.read_stream("batch_view")  #! QUERY_KIND

    @dlt.table
    def stream_of_batch_in_sql():
        return spark.sql("SELECT * FROM STREAM(batch_view)")  #! QUERY_KIND

    dlt.create_streaming_table("events")

    @dlt.append_flow(target="events")  #! QUERY_KIND
    def batch_flow():
        return spark.read.table("numbers")

    @dlt.table  #! STREAM_QUERY_REFUSED
    def sorted_stream():
        return spark.readStream.table("numbers").orderBy("id")
"""
    )
    assert {e.dataset for e in check(p).values()} >= {"main.default.batch_of_stream", "main.default.stream_of_batch"}


def test_columns_that_a_table_cannot_have_are_refused(project):
    p = project(
        HEAD
        + """
    @dlt.table(schema="id INT, nme STRING")  #! SCHEMA_MISMATCH
    def declared():
        return spark.range(3).withColumn("name", F.lit("x"))

    @dlt.table(schema="id INTT")  #! ARGUMENT_INVALID
    def declared_wrongly():
        return spark.range(3)

    @dlt.table(partition_cols=["idd"])  #! SCHEMA_MISMATCH
    def partitioned():
        return spark.range(3)

    @dlt.table(cluster_by=["idd"])  #! SCHEMA_MISMATCH
    def clustered():
        return spark.range(3)

    @dlt.table(partition_cols=["id"])  #! SCHEMA_MISMATCH
    def only_partitions():
        return spark.range(3)

    @dlt.table(partition_cols=["list"])  #! SCHEMA_MISMATCH
    def nested_partition():
        return spark.range(3).selectExpr("id", "array(id) AS list")

    @dlt.table  #! SCHEMA_MISMATCH
    def twice():
        return spark.range(3).selectExpr("id", "id AS ID")

    @dlt.table  #! SCHEMA_MISMATCH
    def interval():
        return spark.sql("SELECT INTERVAL '1' DAY AS i")

    @dlt.table(table_properties={"delta.columnMapping.mode": "none"})  #! SCHEMA_MISMATCH
    def characters():
        return spark.range(3).selectExpr("id AS `a b`")

    @dlt.table(spark_conf={"spark.sql.shuffle.partitions": "many"})  #! PROPERTY_INVALID
    def setting():
        return spark.range(3)
"""
    )
    errors = check(p)
    assert at(errors, p, 'partition_cols=["idd"]').nearest == ("id",)
    assert at(errors, p, 'schema="id INT, nme STRING"').why.splitlines() == [
        "id is declared int, the query returns bigint",
        "name string is not declared, but the query returns it",
    ]


def test_column_names_with_spaces_work_with_the_property_that_the_remedy_names(project):
    p = project(
        HEAD
        + """
    @dlt.table(table_properties={"delta.columnMapping.mode": "name"})
    def spaces():
        return spark.range(2).selectExpr("id AS `a b`", "id AS `c.d`")
"""
    )
    p.run()
    assert p.spark.read.format("delta").load(str(p.path("spaces"))).columns == ["a b", "c.d"]
