"""Sources of change tables whose columns grow: in structs, arrays and maps, and to wider types (docs/semantics/change-options.md)."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

pytestmark = pytest.mark.long

PIPELINE = """
import dlt
from pyspark import pipelines as dp

GROWN = {grown!r}
COLUMNS = ("id INT, seq INT, n INT, p STRUCT<a: INT>, l ARRAY<STRUCT<a: INT>>, m MAP<STRING, STRUCT<a: INT>>", """
PIPELINE += """
           "id BIGINT, seq INT, n BIGINT, p STRUCT<a: BIGINT, b: STRING>, l ARRAY<STRUCT<a: BIGINT, b: STRING>>,"
           "m MAP<STRING, STRUCT<a: BIGINT, b: STRING>>")[GROWN]

@dlt.view
def feed():
    return spark.readStream.schema(COLUMNS).json(spark.conf.get("landing"))

@dlt.view
def whole():
    folder = spark.conf.get("landing") + ("/b.json" if GROWN else "/a.json")
    return spark.read.schema(COLUMNS).json(folder).drop("seq")

FEED = {{"delta.enableChangeDataFeed": "true"}}
for name, options in {{
    "latest": {{}}, "history": {{"stored_as_scd_type": 2}},
    "nulls": {{"ignore_null_updates": True}}, "nulls_history": {{"stored_as_scd_type": 2, "ignore_null_updates": True}},
}}.items():
    for way, properties in {{"": {{}}, "_merged": FEED}}.items():
        dlt.create_streaming_table(name + way, table_properties={{**properties, {widening}}})
        dp.create_auto_cdc_flow(name + way, "feed", ["id"], "seq", except_column_list=["seq"], **options)

dlt.create_streaming_table("copied", table_properties={{{widening}}})
dp.create_auto_cdc_from_snapshot_flow("copied", "whole", ["id"], stored_as_scd_type=1)
"""
WIDENING = '"delta.enableTypeWidening": "true"'
BIG = 2**40


def rows(p: Any, name: str) -> list[tuple[Any, ...]]:
    """The table's rows; structs and maps are dictionaries."""
    found = p.spark.read.format("delta").load(str(p.path(name))).collect()
    return sorted((tuple(row.asDict(recursive=True).values()) for row in found), key=repr)


def test_structs_arrays_and_maps_grow_and_types_become_wider_in_current_rows_and_in_history(project):
    p = project(PIPELINE.format(grown=0, widening=WIDENING))
    old = {"p": {"a": 1}, "l": [{"a": 1}], "m": {"k": {"a": 1}}}
    p.arrive("a.json", {"id": 1, "seq": 1, "n": 1, **old}, {"id": 2, "seq": 1, "n": 2, **old})
    p.run()
    p.write(PIPELINE.format(grown=1, widening=WIDENING))
    new = {"l": [{"a": BIG, "b": "l"}], "m": {"k": {"a": BIG, "b": "m"}}}
    p.arrive("b.json", {"id": 1, "seq": 3, "n": BIG, "p": {"a": None, "b": "p"}, **new}, {"id": BIG, "seq": 3, "n": None, "p": None})
    p.run()

    def grown(value: int, text: str | None) -> dict[str, object]:
        return {"a": value, "b": text}

    before = (grown(1, None), [grown(1, None)], {"k": grown(1, None)})
    lists = ([grown(BIG, "l")], {"k": grown(BIG, "m")})
    after, filled = ({"a": None, "b": "p"}, *lists), (grown(1, "p"), *lists)
    nothing = (BIG, None, None, None, None)
    for way in ("", "_merged"):
        assert rows(p, f"latest{way}") == [(1, BIG, *after), nothing, (2, 2, *before)], way
        assert rows(p, f"nulls{way}") == [(1, BIG, *filled), nothing, (2, 2, *before)], way
        for name, values in (("history", after), ("nulls_history", filled)):
            versions = [(1, 1, *before, 1, 3), (1, BIG, *values, 3, None), (*nothing, 3, None), (2, 2, *before, 1, None)]
            assert rows(p, f"{name}{way}") == versions, name
    assert rows(p, "copied") == [(1, BIG, *after), nothing]
    versions = p.versions()
    p.run()
    assert p.versions() == versions | {"copied": p.version("copied")}
    assert rows(p, "copied") == [(1, BIG, *after), nothing]


@pytest.mark.slow
def test_a_wider_type_is_refused_with_the_property_that_allows_it_where_that_is_not_set(project):
    p = project(PIPELINE.format(grown=0, widening=""))
    p.arrive("a.json", {"id": 1, "seq": 1, "n": 1})
    p.run()
    p.arrive("b.json", {"id": 1, "seq": 2, "n": 2})
    errors = p.write(PIPELINE.format(grown=1, widening="")).run(expect="FAILED").result.errors
    assert {e.code for e in errors} == {"SCHEMA_INCOMPATIBLE"}
    assert all("delta.enableTypeWidening" in str(e.todo) for e in errors)


@pytest.mark.slow
def test_a_column_that_is_always_null_in_one_flow_has_the_type_of_the_other_one(project):
    p = project("""
        import dlt
        dlt.create_streaming_table("status")

        @dlt.view
        def levels():
            return spark.readStream.schema("id INT, seq INT, level INT").json(spark.conf.get("landing")).selectExpr("*", "null AS changed")

        @dlt.view
        def changes():
            return dlt.read_stream("levels").selectExpr("id", "seq + 1 AS seq", "null AS level", "date '2026-03-01' AS changed")

        for name in ("levels", "changes"):
            dlt.apply_changes(
                flow_name=f"from_{name}", target="status", source=name, keys=["id"], sequence_by="seq", ignore_null_updates=True
            )
    """)
    p.arrive("1.json", {"id": 1, "seq": 1, "level": 3})
    p.run()
    assert p.rows("status") == [(1, 2, 3, date(2026, 3, 1))]
