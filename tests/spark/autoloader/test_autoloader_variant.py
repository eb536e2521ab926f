"""What only Spark can show of JSON and XML: VARIANT columns made from text, and rows of documents and elements in a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autoloading import INFER, SparkProgram, rescued


def test_I18_one_variant_column_can_be_queried_by_path(spark: Any, tmp_path: Path) -> None:
    one = SparkProgram(spark, tmp_path / "in", tmp_path, {"singleVariantColumn": "v"})
    one.put("a.json", '{"b":1,"a":"x"}\n{\'a\':"single quotes"}\n{"a":1,"a":2}\nbroken\n{"a":NaN}\n')
    one.run("v:a::string as a", "to_json(v) as v")
    assert one.types() == {"v": "variant"}
    assert one.rows("a", "v") == [
        ("NaN", '{"a":"NaN"}'),
        ("single quotes", '{"a":"single quotes"}'),
        ("x", '{"a":"x","b":1}'),
        (None, '"broken"'),
        (None, '"{\\"a\\":1,\\"a\\":2}"'),
    ]


@pytest.mark.parametrize("multi_line", ["false", "true"])
def test_FF10_a_document_is_one_variant_as_in_sparks_own_reader(spark: Any, tmp_path: Path, multi_line: str) -> None:
    one = SparkProgram(spark, tmp_path / "in", tmp_path, {"singleVariantColumn": "v", "multiLine": multi_line})
    one.put("a.json", '[{"o":1},{"o":[2]}]').put("b.json", '{"o":3}').put("c.json", '["a",null]')
    one.run("to_json(v) as v")
    own = spark.read.option("singleVariantColumn", "v").option("multiLine", multi_line).json(str(tmp_path / "in"))
    assert one.rows("v") == sorted(row.v for row in own.selectExpr("to_json(v) as v").collect())


def test_a_hinted_variant_column_and_R09_a_broken_document(spark: Any, tmp_path: Path) -> None:
    options = {**INFER, "multiLine": "true", "cloudFiles.schemaHints": "p VARIANT"}
    one = SparkProgram(spark, tmp_path / "in", tmp_path, options)
    one.put("a.json", '[{"id":1,"p":{"k":[1,"x"]}},\n {"id":2,"p":"text"}, {"id":3}]').put("b.json", '{"id":4,\n"p":')
    one.run("id", "p:k[1]::string as x", "to_json(p) as p", "_rescued_data")
    assert one.rows("id", "x", "p", "_rescued_data") == [
        (1, "x", '{"k":[1,"x"]}', None),
        (2, None, '"text"', None),
        (3, None, None, None),
        (None, None, None, None),
    ]
    assert one.seen["corrupt"] == 1


def test_I11_xml_rows_have_types(spark: Any, tmp_path: Path) -> None:
    one = SparkProgram(spark, tmp_path / "in", tmp_path, {**INFER, "cloudFiles.format": "xml", "rowTag": "r"})
    one.put("a.xml", '<rs><r id="1"><n>5</n><l>1</l><l>2</l><d>2024-01-02</d><t u="m">x</t></r></rs>').run()
    types = {"_id": "bigint", "d": "date", "l": "array<bigint>", "n": "bigint", "t": "struct<_VALUE:string,_u:string>"}
    assert one.types() == {**types, "_rescued_data": "string"}
    row = one.last()
    assert (row["_id"], row["n"], row["l"], str(row["d"]), row["t"]) == (1, 5, [1, 2], "2024-01-02", {"_VALUE": "x", "_u": "m"})
    one.put("b.xml", '<rs><r id="x"><n>6</n></r></rs>').run()
    assert rescued(one.last()["_rescued_data"], "b.xml") == {"_id": "x"}
