"""Streaming tables that several flows write to: the columns do not depend on the order of the flows."""

from __future__ import annotations

import itertools

import pytest

from lakelet.storage.delta import schemas

SCHEMAS = [
    "a INT, s STRUCT<x: INT>, n VOID",
    "a BIGINT, s STRUCT<x: BIGINT, y: STRING>, n DATE, more STRING",
    "a SMALLINT, s STRUCT<z: INT>",
]


def pipeline(*flows, properties=""):
    made = """
import dlt

def landed(schema):
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    return reader.schema(schema).load(spark.conf.get("landing")).drop("_rescued_data")

dlt.create_streaming_table("fed", table_properties={PROPERTIES})
""".replace("{PROPERTIES}", f"{{{properties}}}")
    for name, schema in flows:
        made += f"""
@dlt.append_flow(target="fed")
def {name}():
    return landed("{schema}")
"""
    return made


def test_the_columns_of_several_flows_are_the_same_in_every_order(spark):
    found = [spark.createDataFrame([], schema).schema for schema in SCHEMAS]
    merged = [schemas.common(order, widen=False) for order in itertools.permutations(found)]
    types = [{field.name: dict(fields(field.dataType)) or field.dataType.simpleString() for field in schema} for schema in merged]
    wanted = {"a": "bigint", "s": {"x": "bigint", "y": "string", "z": "int"}, "n": "date", "more": "string"}
    assert types == [wanted] * len(merged)


def fields(kind):
    return [(f.name, f.dataType.simpleString()) for f in getattr(kind, "fields", [])]


@pytest.mark.parametrize("order", [("INT", "BIGINT"), ("BIGINT", "INT")])
def test_flows_with_int_and_bigint_feed_one_table_whichever_comes_first(project, order):
    first, second = order
    p = project(pipeline(("one", f"id {first}"), ("two", f"id {second}, big BIGINT")))
    p.arrive("1.json", {"id": 1, "big": 5_000_000_000})
    p.run()
    assert p.rows("fed", "id", "big") == [(1, 5_000_000_000), (1, None)]
    assert str(p.table("fed").schema.field("id").type) == "int64"


@pytest.mark.long
def test_a_flow_that_a_stored_column_cannot_take_is_refused(project):
    p = project(pipeline(("one", "id INT")))
    p.arrive("1.json", {"id": 1})
    p.run()
    p.write(pipeline(("two", "id BIGINT"), ("one", "id INT")))
    p.run(expect="FAILED")
    assert p.errors() == {"fed": "SCHEMA_INCOMPATIBLE"}
    p.write(pipeline(("two", "id BIGINT"), ("one", "id INT"), properties="'delta.enableTypeWidening': 'true'")).run()
    assert [row.id for row in p.spark.read.format("delta").load(str(p.path("fed"))).collect()] == [1, 1]
    p.write(pipeline(("two", "id BIGINT"), ("one", "id DATE"))).run(expect="FAILED")
    (error,) = p.result.errors
    assert error.code == "SCHEMA_INCOMPATIBLE"
    assert "bigint and date" in error.what
