"""Nested fields are written by their names, also where a type of the query has to become that of the table (SC-6)."""

from __future__ import annotations

from typing import Any

PIPELINE = """
import dlt

@dlt.table
def t():
    found = spark.readStream.schema("id INT").json(spark.conf.get("landing") + "/a")
    return found.selectExpr("id", "{column} AS s", "array({column}) AS several")
"""


def test_fields_in_another_order_keep_their_values_where_a_type_is_cast(project: Any) -> None:
    p = project(PIPELINE.replace("{column}", "named_struct('a', id, 'b', CAST(10 * id AS BIGINT))"))
    p.arrive("1.json", {"id": 1}, folder="a")
    p.run()
    p.write(PIPELINE.replace("{column}", "named_struct('b', 10 * id, 'a', id)"))
    p.arrive("2.json", {"id": 2}, folder="a")
    p.run()
    first, second = {"a": 1, "b": 10}, {"a": 2, "b": 20}
    assert p.rows("t", "id", "s", "several") == [(1, first, [first]), (2, second, [second])]
