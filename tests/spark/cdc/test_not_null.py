"""NOT NULL in declared schemas: kept, enforced, and told by column and flow (TP-20 to TP-22)."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from lakelet.cdc import writing

FEED = """
import dlt
from pyspark import pipelines as dp

@dlt.view
def feed():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    return reader.schema("id BIGINT, name STRING, at BIGINT, op STRING, place STRUCT<town: STRING>").load(spark.conf.get("landing"))
"""
CHANGED = """
for name, options in {{
    "latest": {{}}, "history": {{"stored_as_scd_type": 2}},
    "nulls": {{"ignore_null_updates": True}}, "nulls_history": {{"stored_as_scd_type": 2, "ignore_null_updates": True}},
}}.items():
    dated = ", __START_AT BIGINT, __END_AT BIGINT" if "history" in name else ""
    dlt.create_streaming_table(name, schema="id BIGINT NOT NULL, name STRING {null}, at BIGINT, place STRUCT<town: STRING {null}>" + dated)
    dp.create_auto_cdc_flow(
        name, "feed", ["id"], "at", apply_as_deletes="op = 'D'", except_column_list=["op"], name="flow_of_" + name, **options
    )
"""
TABLES = ("latest", "history", "nulls", "nulls_history")


def required(p, name):
    """Dotted names of the columns that the table declares NOT NULL."""
    fields = DeltaTable(str(p.path(name))).schema().fields
    return [f.name for f in fields if not f.nullable] + [
        f"{f.name}.{inner.name}" for f in fields for inner in getattr(f.type, "fields", ()) if not inner.nullable
    ]


@pytest.mark.in_ci(every=2)
@pytest.mark.long
@pytest.mark.parametrize("merged", [False, True])
def test_a_change_table_keeps_not_null_and_refuses_rows_without_a_value_before_anything_is_written(project, merged, monkeypatch):
    if merged:
        monkeypatch.setattr(writing, "_small", lambda transaction, seen: False)
    p = project(FEED + CHANGED.format(null="NOT NULL"))
    p.arrive("1.json", {"id": 1, "name": "a", "at": 1}, {"id": 2, "name": "b", "at": 2, "place": {"town": "x"}})
    p.run()
    p.arrive("2.json", {"id": 2, "at": 4, "op": "D"}, {"id": 3, "name": "c", "at": 5})
    p.run()
    for name in TABLES:
        assert required(p, name) == ["id", "name"]
    assert p.rows("latest", "id", "name") == p.rows("nulls", "id", "name") == [(1, "a"), (3, "c")]
    assert p.rows("history", "id", "__END_AT") == [(1, None), (2, 4), (3, None)]
    before = p.versions()

    p.arrive("3.json", {"id": 4, "at": 6}, {"id": 5, "name": "e", "at": 7, "place": {"town": None}})
    p.run(expect="FAILED")
    assert p.errors() == dict.fromkeys(TABLES, "NOT_NULL_VIOLATED")
    assert p.versions() == before
    for error in p.result.errors:
        name = str(error.dataset).rsplit(".", 1)[-1]
        assert f"the flow flow_of_{name} gives a row without" in error.what or f"flow main.default.flow_of_{name}" in error.what
        assert "without name" in error.what or "without place.town" in error.what
        assert error.where.file.endswith("pipeline.py")


@pytest.mark.slow
@pytest.mark.parametrize("merged", [False, True])
def test_what_no_reader_sees_may_be_null(project, merged, monkeypatch):
    """A stale event, a delete, and an event that keeps the value it does not have."""
    if merged:
        monkeypatch.setattr(writing, "_small", lambda transaction, seen: False)
    p = project(FEED + CHANGED.format(null="NOT NULL"))
    p.arrive("1.json", {"id": 1, "name": "a", "at": 10})
    p.run()
    p.arrive("2.json", {"id": 9, "at": 3, "op": "D"})
    p.run()
    for name in ("nulls", "nulls_history"):
        assert p.rows(name, "id", "name") == [(1, "a")]
    p.write(FEED + CHANGED.format(null="NOT NULL").replace('"latest": {}, "history": {"stored_as_scd_type": 2},', '"latest": {},'))
    p.write(p.files[0].read_text().replace('"nulls_history": {"stored_as_scd_type": 2, "ignore_null_updates": True},', ""))
    p.arrive("3.json", {"id": 1, "at": 5})
    p.run()
    assert p.rows("latest", "id", "name", "at") == [(1, "a", 10)]
    assert p.rows("nulls", "id", "name", "at") == [(1, "a", 10)]


@pytest.mark.slow
def test_not_null_can_be_declared_for_a_table_that_is_there_and_taken_back(project):
    p = project(FEED + CHANGED.format(null=""))
    p.arrive("1.json", {"id": 1, "name": "a", "at": 1}, {"id": 2, "at": 2})
    p.run()
    before = p.versions()
    p.write(FEED + CHANGED.format(null="NOT NULL")).run(expect="FAILED")
    assert p.errors() == dict.fromkeys(TABLES, "NOT_NULL_VIOLATED")
    assert all("NOT NULL is declared for name, and the table has 1 row(s) without name" in e.what for e in p.result.errors)
    assert p.versions() == before
    p.write(FEED + CHANGED.format(null=""))
    p.arrive("3.json", {"id": 2, "at": 3, "op": "D"}, {"id": 3, "name": "c", "at": 3, "place": {"town": "x"}})
    p.run()
    p.write(FEED + CHANGED.format(null="NOT NULL")).run(expect="FAILED")
    assert set(p.errors()) == {"history", "nulls_history"}  # a version of each has no name
    assert (required(p, "latest"), required(p, "history")) == (["id", "name"], ["id"])
    now = p.versions()
    p.write(FEED + CHANGED.format(null="")).run()
    assert [required(p, name) for name in TABLES] == [["id"]] * 4
    assert {name: p.versions()[name] - now[name] for name in TABLES} == {"latest": 1, "nulls": 1, "history": 0, "nulls_history": 0}


STREAMED = """
dlt.create_streaming_table("rows_of_it", schema="id BIGINT, name STRING {null}")

@dlt.append_flow(target="rows_of_it")
def into():
    return dlt.read_stream("feed").select("id", "name")
"""


@pytest.mark.long
def test_an_ordinary_streaming_table_gets_not_null_later_and_refuses_what_breaks_it(project):
    p = project(FEED + STREAMED.format(null=""))
    p.arrive("1.json", {"id": 1, "name": "a", "at": 1})
    p.run()
    p.write(FEED + STREAMED.format(null="NOT NULL")).run()
    assert required(p, "rows_of_it") == ["name"]
    p.arrive("2.json", {"id": 2, "at": 1})
    p.run(expect="FAILED")
    assert p.errors() == {"rows_of_it": "NOT_NULL_VIOLATED"}
    assert "a row has no name" in p.result.errors[0].what
    assert p.rows("rows_of_it") == [(1, "a")]
    p.write(FEED + STREAMED.format(null="")).run()
    assert required(p, "rows_of_it") == []
    assert p.rows("rows_of_it") == [(1, "a"), (2, None)]
    p.write(FEED + STREAMED.format(null="NOT NULL")).run(expect="FAILED")
    assert p.errors() == {"rows_of_it": "NOT_NULL_VIOLATED"}


@pytest.mark.slow
def test_snapshots_and_sql_keep_not_null(project):
    p = project()
    p.write(
        """
        CREATE TEMPORARY VIEW feed AS
        SELECT * FROM STREAM read_files('${landing}', format => 'json', schema => 'id BIGINT, name STRING, at BIGINT');
        CREATE OR REFRESH STREAMING TABLE latest (id BIGINT NOT NULL, name STRING NOT NULL COMMENT 'who', at BIGINT);
        CREATE FLOW changes AS AUTO CDC INTO latest FROM STREAM(feed) KEYS (id) SEQUENCE BY at STORED AS SCD TYPE 1;
        """,
        "latest.sql",
    )
    p.write(
        """
        from pyspark import pipelines as dp

        @dp.materialized_view
        def whole():
            return spark.read.table("latest").selectExpr("id", "nullif(name, 'x') AS name")

        dp.create_streaming_table("copied", schema="id BIGINT, name STRING NOT NULL")
        dp.create_auto_cdc_from_snapshot_flow("copied", "whole", ["id"], stored_as_scd_type=1)
        """,
        "copied.py",
    )
    p.arrive("1.json", {"id": 1, "name": "a", "at": 1})
    p.run()
    assert (required(p, "latest"), required(p, "copied")) == (["id", "name"], ["name"])
    p.arrive("2.json", {"id": 2, "name": "x", "at": 1})
    p.run(expect="FAILED")
    assert p.errors() == {"copied": "NOT_NULL_VIOLATED"}
    p.arrive("3.json", {"id": 3, "at": 1}, {"id": 2, "name": "y", "at": 3})
    p.run(expect="FAILED")
    assert p.errors()["latest"] == "NOT_NULL_VIOLATED"
    assert p.rows("copied", "id", "name") == [(1, "a")]


INSIDE = """
dlt.create_streaming_table("latest", schema="{columns}")
dp.create_auto_cdc_flow("latest", "feed", ["id"], "at", column_list=["id", "items", "named"])

@dlt.table(schema="{columns}")
def appended():
    return dlt.read_stream("feed").select("id", "items", "named")

@dlt.table(schema="{columns}")
def computed():
    return dlt.read("appended")
"""


@pytest.mark.long
def test_not_null_inside_of_arrays_and_maps_is_refused_by_name_unless_the_configuration_leaves_it_out(project):
    feed = FEED.replace("place STRUCT<town: STRING>", "items ARRAY<STRUCT<n: INT>>, named MAP<STRING, STRUCT<n: INT>>")
    columns = "id BIGINT NOT NULL, items ARRAY<STRUCT<n: INT NOT NULL>>, named MAP<STRING, STRUCT<n: INT NOT NULL>>"
    p = project(feed + INSIDE.format(columns=columns))
    found = p.refused()
    assert {str(e.dataset).rsplit(".", 1)[-1]: e.code for e in found} == dict.fromkeys(["latest", "appended"], "SCHEMA_MISMATCH")
    assert all("items.element.n, named.value.n" in e.what for e in found)
    p.parameters["spark.databricks.delta.constraints.allowUnenforcedNotNull.enabled"] = "true"
    p.arrive("1.json", {"id": 1, "at": 1, "items": [{"n": None}], "named": {"a": {"n": None}}})
    p.run()
    for name in ("latest", "appended", "computed"):
        assert p.rows(name, "id", "items") == [(1, [{"n": None}])]
        assert required(p, name) == ["id"]
