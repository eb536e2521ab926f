"""CSV through Spark: inference, evolution, rescue and widening end to end (docs/semantics/file-schemas.md)."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StructType

from autoloading import INFER, SparkProgram, rescued


@pytest.fixture
def csv(spark: Any, tmp_path: Path) -> SparkProgram:
    (tmp_path / "in").mkdir()
    return SparkProgram(spark, tmp_path / "in", tmp_path, {"cloudFiles.format": "csv", **INFER})


def test_I07_E02_R10_a_stream_of_csv_grows_by_a_column_and_rescues(csv: SparkProgram) -> None:
    csv.put("a.csv", "id,amt,day,ok\n1,2.5,2024-01-02,true\n").run()
    assert csv.types() == {"id": "int", "amt": "double", "day": "date", "ok": "boolean", "_rescued_data": "string"}
    csv.put("b.csv", 'id,d r,amt\n2,"x, y",$5\n3\n4,z,1,extra\n')
    csv.stops("NEW_FIELDS_IN_FILE]", "[d r]")
    assert csv.log() == 1
    csv.run()
    assert csv.rows("id", "amt", "d r") == [(1, 2.5, None), (2, None, "x, y"), (3, None, None), (4, 1.0, "z")]
    assert datetime.date(2024, 1, 2) in csv.rows("day")
    by_id = {row["id"]: row["_rescued_data"] and rescued(row["_rescued_data"], "b.csv") for row in csv.rows()}
    assert by_id == {1: None, 2: {"amt": "$5"}, 3: None, 4: {"_c3": "extra"}}


def test_E15_a_value_too_large_widens_its_column(csv: SparkProgram) -> None:
    csv.options["cloudFiles.schemaEvolutionMode"] = "addNewColumnsWithTypeWidening"
    csv.put("a.csv", "id\n1\n").run()
    csv.put("b.csv", "id\n2147483648\n").stops("NEW_FIELDS_AND_WIDENED_TYPES_IN_FILE]", "[id]")
    csv.run()
    assert [change.widened for change in csv.changes] == [(("id", "int", "bigint"),)]
    assert csv.rows("id", "_rescued_data") == [(1, None), (2147483648, None)]


VALUES = (
    *(
        "1",
        "-7",
        "+3",
        "007",
        "2147483648",
        "9223372036854775807",
        "9223372036854775808",
        "1.5",
        ".5",
        "5.",
        "1e3",
        "1E-3",
        "1.5d",
        "2f",
        "0x1F",
    ),
    *(
        "1,000",
        "12,345,678",
        "1,000.5",
        ",5",
        "1_000",
        "1 000",
        "$5",
        "5%",
        "12:30h",
        "NaN",
        "Infinity",
        "-Infinity",
        "Inf",
        "nan",
        "true",
        "False",
    ),
    *(
        "yes",
        "t",
        "2024-01-02",
        "2024-1-2",
        "2024-01",
        "2024",
        "02.01.2024",
        "01/02/2024",
        "20240102",
        "2024-01-02 03:04:05",
        "2024-01-02T03:04:05Z",
    ),
    *(
        "2024-01-02T03:04",
        "2024-01-02 03:04:05.123456",
        "2024-01-02T03:04:05+01:00",
        "2024-02-30",
        "text",
        "null",
        "-",
        "+",
        ".",
        "1.2.3",
        "--1",
    ),
)


def test_FF16_the_type_of_each_value_is_that_of_sparks_reader(spark: Any, tmp_path: Path) -> None:
    """A time of day, which Spark takes for a moment of the day of the reading, stays text here (decision 10)."""
    header = ",".join(f"c{at}" for at in range(len(VALUES)))
    one = SparkProgram(spark, tmp_path / "in", tmp_path, {**INFER, "cloudFiles.format": "csv", "header": "true"})
    one.put("a.csv", header + "\n" + ",".join(f'"{value}"' for value in VALUES) + "\n").run()
    own = spark.read.options(header="true", inferSchema="true").csv(str(tmp_path / "in"))
    expected = {VALUES[at]: field.dataType.simpleString() for at, field in enumerate(own.schema.fields)}
    types = one.types()
    assert {value: types[f"c{at}"] for at, value in enumerate(VALUES)} == expected
    assert one.last()[f"c{VALUES.index('1,000')}"] == "1,000"


TYPES = "i INT, l BIGINT, d DOUBLE, b BOOLEAN, day DATE, at TIMESTAMP, p DECIMAL(10,2), s STRING"
MORE = (
    *("2024-01-02 00:00:00", "2024-01-02T10", "2024-1", "2024-01-02 10:00 UTC", "3.999", "-3.995", "0.004", "0.005", "1.0E-3", "1e-400"),
    *("99999999.994", "99999999.995", "12345678901.5", "1,234.567", "0", "0.000"),
)


@pytest.mark.parametrize("format", ["csv", "json"])
def test_FS32_a_text_has_the_value_that_sparks_reader_gives_it(spark: Any, tmp_path: Path, format: str) -> None:
    """Without a rescued column. Of our own (decision 10): a number in quotes is no DATE of JSON."""
    schema = StructType.fromDDL(TYPES)
    one = SparkProgram(spark, tmp_path / "in", tmp_path, {"cloudFiles.format": format, "header": "true"}, schema=schema)
    names, texts = schema.fieldNames(), (*VALUES, *MORE)
    if format == "csv":
        one.put("a.csv", ",".join(names) + "\n" + "".join(",".join([f'"{text}"'] * len(names)) + "\n" for text in texts))
    else:
        one.put("a.json", "".join(json.dumps(dict.fromkeys(names, text)) + "\n" for text in texts))
    shown = [f"CAST({name} AS STRING) AS {name}" for name in names]
    one.run(*shown)
    own = spark.read.schema(TYPES).option("header", "true").format(format).load(str(tmp_path / "in")).selectExpr(*shown)
    expected = {row.s: row.asDict() for row in own.collect()}
    for text in ("1", "-7", "+3", "007", "0", "20240102") if format == "json" else ():
        expected[text]["day"] = None
    found = {row["s"]: row for batch in one.batches for row in batch}
    assert {text: (row, expected[text]) for text, row in found.items() if row != expected[text]} == {}
