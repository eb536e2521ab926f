"""Cases I01–I18: which columns a source has, and their values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from autoloading import INFER, both, on_spark, parquet, rescued

from .conftest import Make

CSV = {"cloudFiles.format": "csv"}
PARQUET = {"cloudFiles.format": "parquet"}
XML = {"cloudFiles.format": "xml", "rowTag": "r"}
WIDEN = {"cloudFiles.schemaEvolutionMode": "addNewColumnsWithTypeWidening"}


def test_I01_without_types_scalars_keep_their_literal_text(make: Make) -> None:
    one = make().put("a.json", '{"id":1,"x":1.50,"b":true,"n":null}\n').run()
    assert one.types() == dict.fromkeys(["id", "x", "b", "n", "_rescued_data"], "string")
    assert one.rows("id", "x", "b", "n", "_rescued_data") == [("1", "1.50", "true", None, None)]
    assert one.log() == 0


def test_I02_without_types_objects_and_arrays_are_json_text(make: Make) -> None:
    one = make().put("a.json", '{"id":1,"o":{"k":1},"l":[1,2]}\n').run()
    assert (one.types()["o"], one.types()["l"]) == ("string", "string")
    assert (json.loads(one.last()["o"]), json.loads(one.last()["l"])) == ({"k": 1}, [1, 2])


@both
def test_I03_types_of_json_values(make: Make) -> None:
    one = make(INFER).put("a.json", '{"id":1,"o":{"k":1,"s":"x"},"l":[1,2],"f":1.5,"t":true,"d":"2024-01-02"}\n').run()
    assert one.types() == {
        "id": "bigint", "o": "struct<k:bigint,s:string>", "l": "array<bigint>", "f": "double", "t": "boolean", "d": "string",
        "_rescued_data": "string",
    }  # fmt: skip
    expected = {"id": 1, "o": {"k": 1, "s": "x"}, "l": [1, 2], "f": 1.5, "t": True, "d": "2024-01-02", "_rescued_data": None}
    assert one.rows() == [expected]


def test_I04_json_moments_are_text_unless_asked(make: Make) -> None:
    line = '{"ts":"2024-01-02T03:04:05Z"}\n'
    assert make(INFER).put("a.json", line).types()["ts"] == "string"
    one = make({**INFER, "inferTimestamp": "true"}).put("a.json", line)
    assert one.types()["ts"] == "timestamp"
    assert one.run().last()["ts"].isoformat() == "2024-01-02T03:04:05"


def test_I05_mixed_json_values_meet_in_a_wider_type(make: Make) -> None:
    one = make(INFER).put("a.json", '{"v":1}\n{"v":1.5}\n{"w":1}\n{"w":"x"}\n{"y":{"a":1}}\n{"y":3}\n').run()
    assert one.types() == {"v": "double", "w": "string", "y": "string", "_rescued_data": "string"}
    assert [v for v in one.rows("v") if v is not None] == [1.0, 1.5]
    assert [w for w in one.rows("w") if w is not None] == ["1", "x"]
    assert [y for y in one.rows("y") if y is not None] == ["3", '{"a":1}']
    assert set(one.rows("_rescued_data")) == {None}


def test_I06_columns_without_a_value(make: Make) -> None:
    one = make(INFER).put("a.json", '{"a":null,"b":[],"c":{},"d":1}\n').run()
    assert one.types() == {"a": "string", "b": "array<string>", "d": "bigint", "_rescued_data": "string"}
    assert (one.last()["a"], one.last()["b"], one.last()["d"]) == (None, [], 1)


def test_I07_csv_types_with_an_assumed_header(make: Make) -> None:
    one = make({**CSV, **INFER}).put("a.csv", "id,amt,day,ok\n1,2.5,2024-01-02,true\n").run()
    assert one.types() == {"id": "int", "amt": "double", "day": "date", "ok": "boolean", "_rescued_data": "string"}
    row = one.last()
    assert (row["id"], row["amt"], row["day"].isoformat(), row["ok"], row["_rescued_data"]) == (1, 2.5, "2024-01-02", True, None)


def test_I08_csv_without_types_still_has_a_header(make: Make) -> None:
    one = make(CSV).put("a.csv", "id,amt,day,ok\n1,2.5,2024-01-02,true\n").run()
    assert one.types() == dict.fromkeys(["id", "amt", "day", "ok", "_rescued_data"], "string")
    assert one.rows("id", "amt", "day", "ok") == [("1", "2.5", "2024-01-02", "true")]


def test_I09_csv_without_header_has_numbered_columns(make: Make) -> None:
    one = make({**CSV, **INFER, "header": "false"}).put("a.csv", "1,x\n").run()
    assert one.types() == {"_c0": "int", "_c1": "string", "_rescued_data": "string"}
    assert one.rows("_c0", "_c1") == [(1, "x")]


def test_I10_each_csv_file_is_read_by_its_own_header(make: Make) -> None:
    one = make({**CSV, **INFER}).put("a.csv", "a,b\n1,2\n").put("b.csv", "b,c\n3,4\n").run()
    assert one.types() == {"a": "int", "b": "int", "c": "int", "_rescued_data": "string"}
    assert one.rows("a", "b", "c") == [(1, 2, None), (None, 3, 4)]


def test_I11_xml_attributes_and_repeated_tags(make: Make) -> None:
    one = make({**XML, **INFER}).put("a.xml", '<rs><r id="1"><n>5</n><l>1</l><l>2</l></r></rs>').run()
    assert one.types() == {"_id": "bigint", "n": "bigint", "l": "array<bigint>", "_rescued_data": "string"}
    assert one.rows("_id", "n", "l") == [(1, 5, [1, 2])]


def test_I12_parquet_files_of_two_widths(make: Make) -> None:
    narrow, wide = parquet(a=pa.array([1], pa.int32())), parquet(a=pa.array([3000000000], pa.int64()))
    one = make(PARQUET).put("p1.parquet", narrow).put("p2.parquet", wide).run()
    assert one.types() == {"a": "bigint", "_rescued_data": "string"}
    found = {row["a"]: row["_rescued_data"] for row in one.rows()}
    assert found[3000000000] is None
    assert rescued(found[None], "p1.parquet") == {"a": 1}
    two = make({**PARQUET, **WIDEN}).put("p1.parquet", narrow).put("p2.parquet", wide).run()
    assert (two.types()["a"], two.rows("a", "_rescued_data")) == ("bigint", [(1, None), (3000000000, None)])


def test_I13_parquet_types_that_do_not_merge(make: Make) -> None:
    one = make(PARQUET).put("p1.parquet", parquet(a=pa.array([1], pa.int32()))).put("p2.parquet", parquet(a=pa.array(["x"])))
    assert "schemaHints" in one.fails("CF_FAILED_TO_INFER_SCHEMA.CANNOT_MERGE")


def test_I14_nothing_to_infer_from(make: Make) -> None:
    one = make()
    one.fails("CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE")
    one.put("_x/a.json", '{"id":1}\n').put(".b.json", '{"id":1}\n')
    one.fails("CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE")


def test_I15_a_plain_stream_needs_a_schema_location(spark: Any, tmp_path: Path, project: Callable[..., Any]) -> None:
    from lakelet.autoloader import register

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"id":1}\n')

    def start() -> None:
        stream = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(str(tmp_path / "in"))
        stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint")).start().processAllAvailable()

    with register(spark), pytest.raises(Exception, match=r"cloudFiles\.schemaLocation") as caught:
        start()
    assert "CF_FAILED_TO_INFER_SCHEMA.OTHER" in str(caught.value)
    inside = project(
        """
        from pyspark import pipelines as dp

        @dp.table
        def t():
            return spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").load(spark.conf.get("landing"))
        """
    )
    inside.arrive("a.json", {"id": 1})
    assert inside.run().rows("t", "id") == ["1"]


def test_I16_the_sample_starts_with_the_newest_files(make: Make) -> None:
    one = make(confs={"spark.databricks.cloudFiles.schemaInference.sampleSize.numFiles": "1"})
    one.put("z.json", '{"a":1}\n').put("y.json", '{"a":2}\n').put("x.json", '{"z":3}\n')
    assert list(one.types()) == ["z", "_rescued_data"]


def test_I17_text_and_binary_files_have_fixed_columns(make: Make) -> None:
    lines = make({"cloudFiles.format": "text"}).put("a.txt", "l1\nl2\n").run()
    assert (lines.types(), lines.rows()) == ({"value": "string"}, [{"value": "l1"}, {"value": "l2"}])
    whole = make({"cloudFiles.format": "text", "wholeText": "true"}).put("a.txt", "l1\nl2\n").run()
    assert whole.rows() == [{"value": "l1\nl2\n"}]
    binary = make({"cloudFiles.format": "binaryFile"}).put("a.txt", "l1\nl2\n").run()
    assert binary.types() == {"path": "string", "modificationTime": "timestamp", "length": "bigint", "content": "binary"}
    row = binary.last()
    assert (row["length"], bytes(row["content"]), row["path"].endswith("/a.txt")) == (6, b"l1\nl2\n", True)
    assert row["modificationTime"].timestamp() == (Path(binary.folder) / "a.txt").stat().st_mtime


@on_spark
def test_I18_one_variant_column_holds_the_whole_record(make: Make) -> None:
    one = make({"singleVariantColumn": "v"}).put("a.json", '{"b":1,"a":"x"}\n')
    assert {name: kind for name, kind in one.types().items() if name != "_rescued_data"} == {"v": "variant"}
    assert one.run("v:a::string AS a", "v:b::bigint AS b").rows("a", "b") == [("x", 1)]
