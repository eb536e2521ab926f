"""Files with types of their own on Spark: values, and columns that become wider down to the Delta table (FS-29, FS-30)."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from autoloading import SparkProgram, rescued
from lakelet.base.errors import LakeletError

WIDENING = 'table_properties={"delta.enableTypeWidening": "true"}'
PIPELINE = """
    import dlt

    @dlt.table({properties})
    def bronze():
        return (
            spark.readStream.format("cloudFiles")
            .option("cloudFiles.format", "parquet")
            .option("cloudFiles.schemaEvolutionMode", "addNewColumnsWithTypeWidening")
            .load(spark.conf.get("landing"))
        )

    @dlt.table
    def totals():
        return spark.read.table("bronze").selectExpr("count(*) AS n", "sum(a) AS a")
"""


def land(folder: Path, name: str, columns: Mapping[str, Any], clock: int) -> None:
    pq.write_table(pa.table(dict(columns)), folder / name)
    os.utime(folder / name, (clock, clock))


def stored(one: Any, *names: str) -> list[Any]:
    rows = one.spark.read.format("delta").load(str(one.path("bronze"))).select(*names).collect()
    return sorted((tuple(row) if len(names) > 1 else row[0] for row in rows), key=repr)


def types(one: Any) -> dict[str, str]:
    return dict(one.spark.read.format("delta").load(str(one.path("bronze"))).dtypes)


@pytest.mark.long
def test_E16_in_a_pipeline_the_column_of_the_table_becomes_wider(project: Callable[..., Any]) -> None:
    one = project(PIPELINE.replace("{properties}", WIDENING))
    land(one.landing, "p1.parquet", {"a": pa.array([1, 2], pa.int32()), "d": pa.array([1.5], pa.float32()).take([0, 0])}, 1)
    one.run()
    assert types(one) == {"a": "int", "d": "float", "_rescued_data": "string"}
    land(one.landing, "p2.parquet", {"a": pa.array([Decimal("1.25")], pa.decimal128(5, 2)), "d": pa.array([2.5]), "n": ["new"]}, 2)
    one.run()
    assert types(one) == {"a": "decimal(12,2)", "d": "double", "_rescued_data": "string", "n": "string"}
    assert stored(one, "a", "d", "n") == [(Decimal("1.00"), 1.5, None), (Decimal("1.25"), 2.5, "new"), (Decimal("2.00"), 1.5, None)]
    (event,) = one.logged(event_type="schema_change")
    assert event["details"]["schema_change"]["widened"] == [
        {"name": "a", "from": "int", "to": "decimal(12,2)"},
        {"name": "d", "from": "float", "to": "double"},
    ]
    assert "a decimal(12,2)" in event["message"]
    land(one.landing, "p3.parquet", {"a": pa.array([7], pa.int16()), "d": [3.5]}, 3)
    one.run()
    assert stored(one, "a")[-1] == Decimal("7.00")
    assert [str(a) for a in one.rows("totals", "a")] == ["11.25"]
    version = one.version("bronze")
    one.run()
    assert one.version("bronze") == version


@pytest.mark.slow
def test_a_table_without_the_property_stays_as_it_is_and_the_error_names_it(project: Callable[..., Any]) -> None:
    one = project(PIPELINE.replace("{properties}", ""))
    land(one.landing, "p1.parquet", {"a": pa.array([1], pa.int32())}, 1)
    one.run()
    land(one.landing, "p2.parquet", {"a": [3_000_000_000]}, 2)
    one.run(expect="FAILED")
    (error,) = [e for e in one.result.errors if str(e.dataset).endswith("bronze")]
    assert (error.code, "delta.enableTypeWidening" in str(error.todo)) == ("SCHEMA_INCOMPATIBLE", True)
    assert stored(one, "a") == [1]
    one.run(expect="FAILED")
    assert one.errors()["bronze"] == "SCHEMA_INCOMPATIBLE"
    one.write(PIPELINE.replace("{properties}", WIDENING))
    one.run()
    assert (types(one)["a"], stored(one, "a")) == ("bigint", [1, 3_000_000_000])


def test_values_arrive_in_spark_as_they_are_in_the_file(spark: Any, tmp_path: Path) -> None:
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, 678901)
    columns = {
        "d": pa.array([datetime.date(2024, 1, 2)]),
        "t": pa.array([moment], pa.timestamp("us", "UTC")),
        "n": pa.array([moment], pa.timestamp("us")),
        "x": pa.array([Decimal("1.25")], pa.decimal128(5, 2)),
        "b": pa.array([b"\x00\xff"]),
        "o": pa.array([{"l": [1, None], "k": "v"}], pa.struct([("l", pa.list_(pa.int32())), ("k", pa.string())])),
        "m": pa.array([[("k", 1.5)]], pa.map_(pa.string(), pa.float64())),
        "s": pa.array(["a"]).dictionary_encode(),
        "_id": pa.array([1], pa.int32()),
    }
    (tmp_path / "in").mkdir()
    land(tmp_path / "in", "p.parquet", columns, 1)
    hints = "_id BIGINT"
    one = SparkProgram(spark, tmp_path / "in", tmp_path, {"cloudFiles.format": "parquet", "cloudFiles.schemaHints": hints}).run()
    row = one.last()
    assert (row["d"], row["n"], row["x"], bytes(row["b"])) == (datetime.date(2024, 1, 2), moment, Decimal("1.25"), b"\x00\xff")
    assert row["t"].replace(tzinfo=datetime.timezone.utc).timestamp() > 0
    assert (row["o"], row["m"], row["s"], row["_id"]) == ({"l": [1, None], "k": "v"}, {"k": 1.5}, "a", None)
    assert rescued(row["_rescued_data"], "p.parquet") == {"_id": 1}
    assert (one.seen["records"], one.seen["rescued"], one.seen["first_line"]) == (1, 1, 1)


@pytest.mark.long
def test_files_that_spark_wrote_give_what_spark_reads(spark: Any, tmp_path: Path) -> None:
    query = """
        SELECT timestamp'2024-07-01 12:00:00.123456' t, timestamp_ntz'2024-07-01 12:00:00' n, date'1000-01-06' d, 1.25 x, array(1, NULL) l,
               map('k', struct(1 AS q)) m, binary('x') y, cast(1 AS tinyint) b, timestamp'1500-03-01 12:00:00' old
    """
    everything = spark.sql(query)
    for format, conf in (("parquet", "TIMESTAMP_MICROS"), ("parquet", "INT96"), ("orc", "INT96")):
        folder = tmp_path / f"{format}-{conf}"
        written = everything.drop("old") if format == "orc" else everything  # pyarrow reads no ORC timestamps before 1677
        spark.conf.set("spark.sql.parquet.outputTimestampType", conf)
        try:
            written.coalesce(1).write.format(format).save(str(folder))
        finally:
            spark.conf.unset("spark.sql.parquet.outputTimestampType")
        schema = written.schema if format == "orc" else None
        options = {"cloudFiles.format": format, "rescuedDataColumn": "_rescued_data", "pathGlobFilter": f"*.{format}"}
        one = SparkProgram(spark, folder, tmp_path / f"state-{format}-{conf}", options, schema).run()
        row = one.last()
        assert row.pop("_rescued_data") is None
        (expected,) = written.collect()
        assert row == expected.asDict(recursive=True), (format, conf)


def test_VARIANT_columns_of_parquet_are_refused_by_name(spark: Any, tmp_path: Path) -> None:
    spark.sql("""SELECT parse_json('{"a":1}') v, 1 a""").write.parquet(str(tmp_path / "in"))
    one = SparkProgram(spark, tmp_path / "in", tmp_path, {"cloudFiles.format": "parquet"})
    with pytest.raises(LakeletError, match="the parquet column v is a VARIANT"):
        one.run()
