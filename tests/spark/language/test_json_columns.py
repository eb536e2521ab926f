"""`from_json` without a schema: it is inferred and grows (docs/semantics/json-columns.md)."""

from __future__ import annotations

import pytest

PARSED = """
import dlt
from pyspark.sql.functions import col, from_json

@dlt.table
def parsed():
    texts = spark.readStream.format("cloudFiles").option("cloudFiles.format", "text").load(spark.conf.get("landing"))
    return texts.select("value", from_json(col("value"), None, OPTIONS).alias("doc"))
"""


def parsed(project, **options):
    return project(PARSED.replace("OPTIONS", repr({"schemaLocationKey": "docs", **options})))


def docs(p):
    table = p.table("parsed")
    return dict(zip(table["value"].to_pylist(), table["doc"].to_pylist(), strict=True))


def fields(p):
    return {f.name: str(f.type) for f in p.table("parsed").schema.field("doc").type}


def test_JC1_the_first_texts_bring_the_schema_whatever_their_order(project):
    p = parsed(project)
    p.arrive("a.json", '{"id": 1, "name": "a", "at": {"x": 1.5}}', '{"id": 2, "tags": ["u"]}', "")
    p.run()
    assert fields(p) == {
        "at": "struct<x: double>",
        "id": "int64",
        "name": "string",
        "tags": "list<element: string>",
        "_rescued_data": "string",
    }
    found = docs(p)
    assert found['{"id": 2, "tags": ["u"]}'] == {"at": None, "id": 2, "name": None, "tags": ["u"], "_rescued_data": None}
    assert found[""] is None
    before = p.versions()
    assert p.run().statuses() == {"parsed": "IDLE"}
    assert p.versions() == before


def test_JC2_each_text_is_one_value(project):
    p = parsed(project, schemaHints="value ARRAY<BIGINT>, id BIGINT")
    p.arrive("a.json", '{"id": 1}', "[1, 2]", "[]", "12", "{broken", '{"id": "x"}')
    p.run()
    found = {text: (doc["id"], doc["value"], doc["_rescued_data"]) for text, doc in docs(p).items()}
    assert found == {
        '{"id": 1}': (1, None, None),
        "[1, 2]": (None, [1, 2], None),
        "[]": (None, [], None),
        "12": (None, None, '{"_corrupt_record":"12"}'),
        "{broken": (None, None, '{"_corrupt_record":"{broken"}'),
        '{"id": "x"}': (None, None, '{"id":"x"}'),
    }


@pytest.mark.long
def test_JC3_new_fields_are_taken_in_before_anything_of_their_batch_is_written(project):
    p = parsed(project)
    p.arrive("a.json", '{"id": 1, "at": {"x": 1}}')
    p.run()
    p.arrive("b.json", '{"id": 2, "at": {"y": true}}', '{"id": "three"}', '{"name": "n"}')
    p.run()
    assert fields(p) == {"at": "struct<x: int64, y: bool>", "id": "int64", "_rescued_data": "string", "name": "string"}
    found = docs(p)
    assert found['{"id": 2, "at": {"y": true}}']["at"] == {"x": None, "y": True}
    assert found['{"id": "three"}']["_rescued_data"] == '{"id":"three"}'
    (event,) = [e for e in p.events if e.event_type == "schema_change"]
    assert (event.body["source"], [(a["name"], a["type"]) for a in event.body["added"]]) == (
        "from_json:docs",
        [("at.y", "boolean"), ("name", "string")],
    )
    assert len(p.rows("parsed", "value")) == 4


@pytest.mark.parametrize(("mode", "rescued"), [("rescue", '{"name":"n"}'), ("none", None)], ids=["rescue", "none"])
def test_JC4_modes_that_keep_the_schema(project, mode, rescued):
    p = parsed(project, schemaEvolutionMode=mode)
    p.arrive("a.json", '{"id": 1}')
    p.run()
    p.arrive("b.json", '{"id": 2, "name": "n"}')
    p.run()
    assert docs(p)['{"id": 2, "name": "n"}'] == {"id": 2, **({"_rescued_data": rescued} if rescued else {})}


@pytest.mark.long
def test_JC4_failOnNewColumns_fails_until_a_hint_names_the_field(project):
    p = parsed(project, schemaEvolutionMode="failOnNewColumns")
    p.arrive("a.json", '{"id": 1}')
    p.run()
    p.arrive("b.json", '{"id": 2, "name": "n"}')
    p.run(expect="FAILED")
    assert p.errors() == {"parsed": "UNKNOWN_FIELD_EXCEPTION"}
    p.write(
        PARSED.replace(
            "OPTIONS", repr({"schemaLocationKey": "docs", "schemaEvolutionMode": "failOnNewColumns", "schemaHints": "name STRING"})
        )
    )
    p.run()
    assert docs(p)['{"id": 2, "name": "n"}']["name"] == "n"


@pytest.mark.slow
def test_JC5_options_of_the_parser_count_and_a_full_refresh_begins_anew(project):
    p = parsed(project, rescuedDataColumn="rest", schemaHints="id STRING, broken STRING", columnNameOfCorruptRecord="broken")
    p.arrive("a.json", '{"id": 1, "n": 1}', "{")
    p.run()
    p.arrive("b.json", '{"id": 2, "n": "x"}')
    p.run()
    assert docs(p)["{"] == {"id": None, "n": None, "broken": "{", "rest": None}
    assert docs(p)['{"id": 2, "n": "x"}'] == {"id": "2", "n": None, "broken": None, "rest": '{"n":"x"}'}
    p.run(full_refresh_all=True)
    assert docs(p)['{"id": 1, "n": 1}'] == {"id": "1", "n": "1", "broken": None, "rest": None}


@pytest.mark.slow
def test_JC6_what_reads_the_table_is_analysed_when_its_fields_are_known(project):
    p = parsed(project)
    p.write(
        """
        CREATE STREAMING TABLE flat AS SELECT doc.id + 1 AS next, doc.at.x FROM STREAM parsed;
        CREATE MATERIALIZED VIEW most AS SELECT max(next) AS next FROM flat;
        """,
        "flat.sql",
    )
    told = [notice.text for notice in p.pipeline.check().unchecked]
    assert any("main.default.flat is not checked" in text and "from_json without a schema" in text for text in told), told
    p.arrive("a.json", '{"id": 1, "at": {"x": 5}}')
    p.run()
    assert (p.rows("flat"), p.rows("most")) == ([(2, 5)], [2])


@pytest.mark.slow
def test_JC6_a_query_may_use_fields_of_its_own_from_json(project):
    p = project()
    p.write(
        """
        CREATE STREAMING TABLE orders (CONSTRAINT positive EXPECT (id > 0 AND total.net > 0) ON VIOLATION DROP ROW) AS
        WITH texts AS (SELECT * FROM STREAM read_files('${landing}', format => 'text')),
        parsed AS (SELECT from_json(value, NULL, map('schemaLocationKey', 'o')) AS d FROM texts)
        SELECT d.id, d.total, d.total.net * 2 AS twice, d.items[0].sku AS first, size(d.items) AS items, to_date(d.day) AS day
        FROM parsed WHERE d.id IS NOT NULL;
        CREATE STREAMING TABLE items AS
        SELECT i.sku, i.size.width FROM (SELECT explode(d.items) AS i FROM (
          SELECT from_json(value, NULL, map('schemaLocationKey', 'i')) AS d FROM STREAM read_files('${landing}', format => 'text')));
        CREATE MATERIALIZED VIEW days AS SELECT day, sum(twice) AS twice FROM orders GROUP BY day;
        """,
        "orders.sql",
    )
    p.run(expect="FAILED")
    assert set(p.errors().values()) == {"JSON_FIELDS_UNKNOWN"}
    sizes = '{"sku": "a", "size": {"width": 3}}, {"sku": "b"}'
    p.arrive("a.json", '{"id": 1, "day": "2024-05-01", "total": {"net": 2.5}, "items": [' + sizes + "]}", '{"id": -1}', "{}")
    p.run()
    assert p.rows("orders", "id", "twice", "first", "items", "day")[0][:4] == (1, 5.0, "a", 2)
    assert p.rows("items") == [("a", 3), ("b", None)]
    assert p.rows("days", "twice") == [5.0]
    assert p.quality()["positive"] == (1, 1)


@pytest.mark.long
def test_JC6_changes_of_keys_come_out_of_texts(project):
    p = project(
        """
        from pyspark import pipelines as dp
        from pyspark.sql import functions as F

        @dp.temporary_view
        def events():
            texts = spark.readStream.format("cloudFiles").option("cloudFiles.format", "text").load(spark.conf.get("landing"))
            parsed = texts.select(F.expr("from_json(value, NULL, map('schemaLocationKey', 'events'))").alias("e"))
            return parsed.select("e.*", F.col("e.id").alias("key"))

        dp.create_streaming_table("state")
        dp.create_auto_cdc_flow(target="state", source="events", keys=["key"], sequence_by="at", except_column_list=["_rescued_data"])
        """
    )
    p.arrive("a.json", '{"id": 1, "at": 1, "v": "old"}', '{"id": 2, "at": 1, "v": "only"}')
    p.run()
    p.arrive("b.json", '{"id": 1, "at": 2, "v": "new", "more": true}')
    p.run()
    assert p.rows("state", "key", "v", "more") == [(1, "new", True), (2, "only", None)]


def test_JC7_sinks_get_texts_with_their_fields(project):
    p = project(
        """
        import dlt
        from pyspark.sql.functions import from_json

        @dlt.foreach_batch_sink(name="sink")
        def sink(batch, number):
            batch.select("doc.id").write.format("delta").mode("append").save(spark.conf.get("out"))

        @dlt.append_flow(target="sink")
        def sent():
            texts = spark.readStream.format("cloudFiles").option("cloudFiles.format", "text").load(spark.conf.get("landing"))
            return texts.select(from_json("value", None, {"schemaLocationKey": "docs"}).alias("doc"))
        """
    )
    p.parameters["out"] = str(p.folder / "out")
    p.arrive("a.json", '{"id": 1}', '{"id": 2}')
    p.run()
    assert sorted(p.spark.read.format("delta").load(p.parameters["out"]).toPandas()["id"]) == [1, 2]


def call(*options, of="'schemaLocationKey', 'k'"):
    return f"from_json(v, NULL, map({', '.join([of, *options])}))"


@pytest.mark.parametrize(
    ("columns", "source", "what"),
    [
        (call(), "batch", "needs a streaming query"),
        (call("'schemaEvolutionMode', 'rescu'"), "STREAM batch", "'rescu' of from_json is unknown"),
        (call("'mode', 'DROPMALFORMED'"), "STREAM batch", "mode DROPMALFORMED"),
        (call(of="'schemaLocationKey', ' '"), "STREAM batch", "needs the option schemaLocationKey"),
        (call("'schemaHints', 'a VARIANT'"), "STREAM batch", "cannot be VARIANT"),
        (call() + " AS d, " + call("'mode', 'FAILFAST'"), "STREAM batch", "in two calls of from_json"),
    ],
)
def test_JC8_calls_that_cannot_be_are_refused_where_they_stand(project, columns, source, what):
    p = project()
    kind = "STREAMING TABLE" if "STREAM" in source else "MATERIALIZED VIEW"
    p.write(f"CREATE MATERIALIZED VIEW batch AS SELECT '{{}}' AS v;\nCREATE {kind} t AS SELECT {columns} AS e FROM {source};", "t.sql")
    (problem,) = p.refused()
    assert (problem.code, what in problem.what, problem.where.line) == ("JSON_COLUMN_INVALID", True, 2), str(problem)


def test_JC8_an_option_without_effect_is_a_notice(project):
    p = parsed(project, multiLine="true")
    p.arrive("a.json", "{}")
    assert "option multiLine has no effect in from_json" in [notice.text for notice in p.pipeline.check().notices]


def test_JC9_a_preview_shows_the_fields_of_its_sample(project):
    from lakelet.inspection.preview import preview

    p = parsed(project)
    p.arrive("a.json", '{"id": 1, "at": {"x": 1}}')
    found = preview(p.pipeline, "parsed", 5)
    assert dict(found.columns)["doc"] == "struct<at:struct<x:bigint>,id:bigint,_rescued_data:string>"
    assert [row["doc"]["id"] for row in found.rows] == [1]
    assert not p.storage.root.exists()


@pytest.mark.slow
def test_JC3_the_versions_of_the_schema_are_shown_and_one_can_be_gone_back_to(project):
    from lakelet.inspection.schema_history import differences, read_history, roll_back

    p = parsed(project, schemaEvolutionMode="addNewColumns")
    p.arrive("a.json", '{"id": 1}')
    p.run()
    p.arrive("b.json", '{"id": 2, "name": "n"}')
    p.run()
    (history,) = [h for h in read_history(p.storage.root, "parsed") if "from_json" in h.source]
    assert (history.source, [v.reason for v in history.versions]) == ("main.default.parsed/from_json:docs", ["inferred", "new fields"])
    (change,) = differences(p.storage.root, "parsed", 0, 1, source="from_json:docs")
    assert (change.name, change.before, change.after) == ("name", None, "string")
    assert roll_back(p.storage.root, "parsed", 0, source="from_json:docs").number == 2
    p.arrive("c.json", '{"id": 3}')
    p.run()
    assert docs(p)['{"id": 3}'] == {"id": 3, "_rescued_data": None, "name": None}


TEXTS = """
import dlt
from pyspark.sql import functions as F
from pyspark.sql.functions import col, from_json

@dlt.table
def t():
    texts = spark.readStream.format("cloudFiles").option("cloudFiles.format", "text").load(spark.conf.get("landing"))
    return texts.select("value", from_json("value", None, {"schemaLocationKey": "a"}).alias("a"))QUERY
"""


def reading(project, query):
    return project(TEXTS.replace("QUERY", query))


@pytest.mark.slow
def test_JC3_a_text_inside_a_text_brings_its_own_fields(project):
    p = reading(project, """.select("a.id", from_json("a.payload", None, {"schemaLocationKey": "b"}).alias("b")).where("id > 0")""")
    p.arrive("a.json", {"id": 1, "payload": '{"x": 1}'})
    p.run()
    p.arrive("b.json", {"id": 2, "payload": '{"x": 2, "y": "new"}'})
    p.run()
    assert p.rows("t", "id", "b") == [
        (1, {"x": 1, "_rescued_data": None, "y": None}),
        (2, {"x": 2, "_rescued_data": None, "y": "new"}),
    ]


@pytest.mark.slow
def test_JC3_a_stream_with_state_counts_each_row_once(project):
    p = reading(project, """.select("a.id", "a.v").dropDuplicates(["id"])""")
    p.arrive("a.json", {"id": 1, "v": 1}, {"id": 2, "v": 1}, {"id": 2, "v": 1})
    p.run()
    p.arrive("b.json", {"id": 1, "v": 1, "n": 1}, {"id": 3, "v": 1})
    p.run()
    p.arrive("c.json", {"id": 3, "v": 1}, {"id": 4, "v": 1})
    p.run()
    assert p.rows("t", "id") == [1, 2, 3, 4]


@pytest.mark.slow
def test_JC3_rows_behind_a_shuffle_have_their_values_where_another_call_has_none(project):
    p = reading(project, """.withColumn("b", from_json(F.lit(None).cast("string"), None, {"schemaLocationKey": "b"})).repartition(3)""")
    p.arrive("a.json", {"id": 1}, "12")
    p.run()
    p.arrive("b.json", {"id": 2})
    p.run()
    assert sorted((row["id"], row["_rescued_data"]) for row in p.rows("t", "a") if row["id"]) == [(1, None), (2, None)]
    assert [row["_rescued_data"] for row in p.rows("t", "a") if not row["id"]] == ['{"_corrupt_record":"12"}']


@pytest.mark.slow
def test_JC3_rules_of_views_count_the_rows_of_a_batch_once(project):
    p = project()
    p.write(
        """
        CREATE TEMPORARY VIEW v (CONSTRAINT long EXPECT (length(value) > 8)) AS
        SELECT * FROM STREAM read_files('${landing}', format => 'text');
        CREATE STREAMING TABLE t AS SELECT from_json(value, NULL, map('schemaLocationKey', 'k')) AS a FROM STREAM v;
        """,
        "v.sql",
    )
    p.arrive("a.json", "12", '{"id": 1}')
    p.run()
    p.arrive("b.json", "34", '{"id": 1, "n": 2}')
    p.run()
    assert p.quality()["long"] == (1, 1)


@pytest.mark.slow
def test_JC6_no_table_gets_a_type_that_was_guessed(project):
    p = reading(project, """.select("a.id").where("id > 100")""")
    p.arrive("a.json", "12")
    p.run(expect="FAILED")
    assert p.errors() == {"t": "JSON_FIELDS_UNKNOWN"}
    p.arrive("b.json", {"id": 1})
    p.run()
    assert (p.rows("t"), str(p.table("t").schema.field("id").type)) == ([], "int64")
    p.arrive("c.json", {"id": 300})
    p.run()
    assert p.rows("t") == [300]


@pytest.mark.slow
def test_JC6_declared_and_stored_types_count_before_the_texts_do(project):
    p = project()
    declared = "(id BIGINT, ok BOOLEAN, `at` STRUCT<x: BIGINT>)"
    query = """
        CREATE STREAMING TABLE t {} AS SELECT d.id, d.ok, d.at FROM (
          SELECT from_json(value, NULL, map('schemaLocationKey', '{}')) AS d FROM STREAM read_files('${{landing}}', format => 'text'))
        WHERE d.ok AND d.`a.b` IS NOT NULL;
        """
    p.write(query.format(declared, "first"), "t.sql")
    p.arrive("a.json", {"id": 1, "ok": True, "at": {"x": 1}, "a.b": 0}, {"id": 2, "ok": False, "at": None, "a.b": 0})
    p.run()
    p.write(query.format("", "second"), "t.sql")
    p.arrive("b.json", {"id": 3, "ok": True, "at": {"x": 3}, "a.b": 0})
    p.run()
    assert p.rows("t") == [(1, True, {"x": 1}), (3, True, {"x": 3})]


@pytest.mark.long
def test_JC7_a_sink_gets_each_row_once_and_with_its_new_fields(project):
    p = project(
        """
        import dlt
        from pyspark.sql.functions import from_json

        dlt.create_sink("out", "delta", {"path": spark.conf.get("out"), "mergeSchema": "true"})

        @dlt.append_flow(target="out")
        def sent():
            texts = spark.readStream.format("cloudFiles").option("cloudFiles.format", "text").load(spark.conf.get("landing"))
            return texts.select(from_json("value", None, {"schemaLocationKey": "docs"}).alias("doc")).select("doc.*")
        """
    )
    p.parameters["out"] = str(p.folder / "out")
    p.arrive("a.json", {"id": 1})
    p.run()
    p.arrive("b.json", {"id": 2, "n": "new"})
    p.run()
    sent = p.spark.read.format("delta").load(p.parameters["out"]).select("id", "n", "_rescued_data")
    assert sorted(map(tuple, sent.collect())) == [(1, None, None), (2, "new", None)]


def test_JC8_one_key_for_two_columns_and_calls_outside_of_functions_are_refused(project):
    p = reading(project, """.withColumn("b", from_json(F.upper("value"), None, {"schemaLocationKey": "a"}))""")
    (problem,) = p.refused()
    assert (problem.code, "in two calls of from_json" in problem.what) == ("JSON_COLUMN_INVALID", True)
    p.write(TEXTS.replace("QUERY", "") + "\nouter = from_json(col('value'), None, {'schemaLocationKey': 'k'})\n")
    (problem,) = p.refused()
    assert (problem.code, "outside of a dataset's function" in problem.what) == ("JSON_COLUMN_INVALID", True)
