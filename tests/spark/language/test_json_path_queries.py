"""Paths into JSON text, `raw:a.b`, wherever an expression is given as text (docs/semantics/language.md)."""

from __future__ import annotations

import pytest

from lakelet.inspection.inspector import run_sql

PATHS = """
    import dlt
    from pyspark.sql import functions as F
    from pyspark.sql.functions import expr

    @dlt.table
    @dlt.expect("has_a", "raw:a IS NOT NULL")
    @dlt.expect_or_drop("small", "raw:b.c::int < 9 AND time = '10:00:00'")
    def raw():
        return spark.read.text(spark.conf.get("landing")).selectExpr("value AS raw", "'10:00:00' AS time")

    @dlt.table
    def selected():
        return spark.table("raw").selectExpr("raw:a", "raw:b.c::int AS c", "raw:['b'].c = '1' AS one")

    @dlt.table
    def filtered():
        return spark.table("raw").filter("raw:a = 'x'").where("raw:b.c::int = 1")

    @dlt.view
    def built():
        seen = dlt.read("raw").where(F.expr("raw:b.c::int") > 0)
        return seen.withColumn("a", expr("raw:a")).select("a", F.when(F.expr("raw:a = 'x'"), "is x").otherwise("other").alias("kind"))

    @dlt.table
    def from_view():
        return spark.sql("SELECT * FROM built").withColumn("upper", expr("upper(a)"))

    @dlt.table
    def variants():
        rows = spark.table("raw").select(F.parse_json("raw").alias("v"))
        return rows.select(F.expr("v:b.c::int").alias("c"), F.expr("v:b").alias("b")).select("c", F.expr("to_json(b)").alias("b"))
"""


@pytest.mark.long
def test_paths_into_text_are_taken_in_select_filter_expr_and_rules_of_python(project):
    p = project(PATHS)
    p.arrive("1.json", '{"a": "x", "b": {"c": 1}}', '{"a": "y", "b": {"c": 2}}', '{"b": {"c": 9}}')

    p.run()

    assert p.quality("raw") == {"has_a": (2, 1), "small": (2, 1)}
    assert p.table("selected").column_names == ["a", "c", "one"]
    assert p.rows("selected") == [("x", 1, True), ("y", 2, False)]
    assert len(p.rows("filtered")) == 1
    assert p.rows("from_view") == [("x", "is x", "X"), ("y", "other", "Y")]
    assert p.rows("variants") == [(1, '{"c":1}'), (2, '{"c":2}')]
    rows = run_sql(p.storage.root, "SELECT raw:a, raw:b.c::int + 1 AS n FROM raw WHERE raw:a = 'y'", spark=p.spark).rows
    assert list(rows) == [{"a": "y", "n": 3}]


def test_a_path_takes_all_elements_and_paths_into_text_are_taken_while_files_are_loaded(project):
    p = project("""
        import dlt

        first = spark.sql("SELECT raw:a[0].b::int AS b FROM VALUES (:raw) AS t(raw)", args={"raw": '{"a": [{"b": 7}]}'}).first().b

        @dlt.table
        def elements():
            rows = spark.createDataFrame([('{"a": [{"b": 1}, {"b": 2}]}', first)], "raw STRING, first INT")
            return rows.selectExpr("raw:a[*].b AS every", "raw:a[1].b AS second", "first")
    """)
    p.write("CREATE MATERIALIZED VIEW in_sql AS SELECT raw:a[*] AS every FROM VALUES ('{\"a\": [[1], [2, 3]]}') AS t(raw)", "in_sql.sql")

    p.run()

    assert p.rows("elements") == [("[1,2]", "2", 7)]
    assert p.rows("in_sql") == ["[[1],[2,3]]"]


@pytest.mark.parametrize("conditions", ["{}", "F.expr({})"], ids=["text", "columns"])
def test_paths_into_text_are_taken_in_the_conditions_of_a_change_flow(project, conditions):
    sequence, deletes, known = map(conditions.format, ('"raw:at::int"', "\"raw:op = 'D'\"", '"raw:at IS NOT NULL"'))
    p = project(f"""
        import dlt
        from pyspark.sql import functions as F
        dlt.view(lambda: spark.readStream.schema("id BIGINT, raw STRING").json(spark.conf.get("landing")), name="feed")
        dlt.create_streaming_table("current")
        dlt.create_auto_cdc_flow(target="current", source="feed", keys=["id"], sequence_by={sequence}, apply_as_deletes={deletes})
        dlt.expect("known", {known})(dlt.table(lambda: spark.readStream.table("feed"), name="arrived"))
    """)
    p.arrive("1.json", {"id": 1, "raw": '{"at": 10}'}, {"id": 1, "raw": '{"at": 9}'}, {"id": 2, "raw": '{"at": 1, "op": "D"}'})

    p.run()

    assert p.rows("current") == [(1, '{"at": 10}')]
    assert p.quality("arrived") == {"known": (3, 0)}


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("parameters", ['args={"t": "main.default.source", "low": 1}', 'args=["main.default.source", 1]'])
def test_a_parameter_names_the_table_of_a_query(project, parameters):
    marks = ("?", "?") if "[" in parameters else (":t", ":low")
    p = project(f"""
        import dlt
        dlt.table(lambda: spark.range(3), name="source")

        @dlt.table
        def by_parameter():
            return spark.sql("SELECT id, '?' AS mark FROM IDENTIFIER({marks[0]}) WHERE id > {marks[1]} -- why?", {parameters})
    """)

    p.run()

    assert p.rows("by_parameter") == [(2, "?")]


def test_names_of_a_path_are_found_whatever_their_case_and_in_brackets_as_they_are(project):
    p = project()
    p.write(
        """
        CREATE MATERIALIZED VIEW found AS
        SELECT raw:OWNER, raw:['OWNER'] AS exact, raw:`zip CODE`::int AS zip, RAW:Store.FRUIT[1].Name AS fruit,
          raw::string:basket[*].n AS every, concat(raw, ''):store.Empty AS empty, raw:none, raw:store['fruit'][0]:WEIGHT::int + 1 AS weight
        FROM VALUES (
          '{"owner": "amy", "Zip Code": 94025, "Basket": [{"n": 1}, {"n": 2}],
            "store": {"Fruit": [{"WEIGHT": 7}, {"NAME": "pear"}], "fruit": [{"weight": 8}], "empty": null}}'
        ), ('[1]'), ('not JSON'), (CAST(NULL AS STRING)) AS t (raw)
        """,
        "found.sql",
    )
    p.write(
        """
        CREATE MATERIALIZED VIEW counted AS
        SELECT raw:KIND.name AS kind, count(*) AS n FROM VALUES ('{"Kind": {"Name": "a"}}'), ('{"kind": {"name": "a"}}'), ('{}') AS t (raw)
        WHERE raw:Kind:nothing IS NULL GROUP BY raw:KIND.name ORDER BY raw:KIND.name
        """,
        "counted.sql",
    )

    p.run()

    assert p.table("found").column_names[:2] == ["OWNER", "exact"]
    nothing = (None,) * 8
    assert p.rows("found") == [("amy", None, 94025, "pear", "[1,2]", None, None, 9), nothing, nothing, nothing]
    assert p.rows("counted") == [("a", 2), (None, 1)]


def test_a_field_as_it_is_written_comes_before_one_in_another_case_and_escaped_names_are_found(project):
    p = project()
    p.write(
        r"""
        CREATE MATERIALIZED VIEW found AS
        SELECT raw:a, raw:A AS upper, raw:`GRÖSSE` AS size, raw:`Path/X` AS path, json :kind AS kind
        FROM VALUES (r'{"A": 5, "a": null, "gr\u00f6sse": 1, "path\/x": 2}', '{"Kind": 3}') AS t (raw, json)
        """,
        "found.sql",
    )

    p.run()

    assert p.rows("found") == [(None, "5", "1", "2", "3")]


def test_a_path_in_a_column_that_was_made_outside_of_functions_is_told_how_to_write_it(project):
    p = project("""
        import dlt
        from pyspark.sql import functions as F
        deleted = F.expr("raw:op") == "d"
        dlt.table(lambda: spark.createDataFrame([("{}",)], "raw STRING").where(deleted), name="found")
    """)

    [error] = p.refused()

    assert "get_json_object(column, '$.path')" in (error.todo or "")
