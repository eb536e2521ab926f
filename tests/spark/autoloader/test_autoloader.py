"""What Auto Loader does beyond the numbered cases, which are in `cases`."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autoloading import INFER, Program, SparkProgram, rescued
from lakelet.autoloader import AutoLoaderSource, SourceSpec
from lakelet.base.errors import LakeletError

Make = Callable[..., Any]


def folder(root: Path) -> Path:
    (root / "in").mkdir(parents=True)
    return root / "in"


@pytest.fixture
def program(tmp_path: Path) -> Make:
    """A program that runs on the reader alone."""
    return lambda options=None: Program(folder(tmp_path), tmp_path, INFER if options is None else options)


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Make:
    """A program that runs on Spark."""
    return lambda options=None: SparkProgram(spark, folder(tmp_path), tmp_path, INFER if options is None else options)


def test_a_field_without_a_value_is_rescued_until_it_has_one(program: Make) -> None:
    """FS-7."""
    one = program().put("a.json", '{"id":1,"c":{}}\n').run()
    assert (set(one.types()), rescued(one.last()["_rescued_data"], "a.json")) == ({"id", "_rescued_data"}, {"c": {}})
    one.put("b.json", '{"id":2,"c":{"k":1}}\n').stops()
    assert one.run().last()["c"] == {"k": 1}


def test_text_columns_hold_the_very_text_of_the_file(program: Make) -> None:
    one = program({}).put("a.json", '{"o":{"k" : 1},"l":[1, 2]}\n').run()
    assert one.rows("o", "l") == [('{"k" : 1}', "[1, 2]")]


def test_a_stream_counts_what_it_rescued_and_names_the_first_place(stream: Make) -> None:
    one = stream({"cloudFiles.schemaEvolutionMode": "rescue"}).put("a.json", '{"id":1,"name":"x"}\n').run()
    one.put("b.json", '{"id":2,"c":{"v":"1"}}\n{"id":3,"Name":"y"}\n').run()
    assert one.seen == {
        "records": 2,
        "rescued": 2,
        "corrupt": 0,
        "left_out": 0,
        "passed_over": 0,
        "undecodable": 0,
        "first_file": f"file:{one.folder}/b.json",
        "first_line": 1,
        "corrupt_file": None,
        "corrupt_line": None,
        "rescued_file": f"file:{one.folder}/b.json",
        "rescued_line": 1,
    }


def test_structs_in_arrays_grow_and_their_misfits_are_rescued(program: Make) -> None:
    one = program().put("a.json", '{"o":{"k":1},"p":[{"x":1}]}\n').run()
    one.put("b.json", '{"o":{"k":2,"m":3},"p":[{"x":2,"y":"z"}]}\n{"o":5}\n').stops()
    assert one.changes[0].added == (("o.m", "bigint"), ("p.element.y", "string"))
    grown, misfit = sorted(one.run().batches[-1], key=lambda row: row["p"] is None)
    assert (grown["o"], grown["p"]) == ({"k": 2, "m": 3}, [{"x": 2, "y": "z"}])
    assert rescued(misfit["_rescued_data"]) == {"o": 5}
    one.put("c.json", '{"o":{"k":"q"}}\n').run()
    assert one.last()["o"] == {"k": None, "m": None}
    assert rescued(one.last()["_rescued_data"], "c.json") == {"o": {"k": "q"}}


def test_hinted_moments_are_parsed(program: Make) -> None:
    one = program({"cloudFiles.schemaHints": "at TIMESTAMP, day DATE"})
    one.put("a.json", '{"at":"2026-03-01T08:00:00.123Z","day":"2026-03-01"}\n').run()
    assert (one.last()["at"].isoformat(), one.last()["day"].isoformat()) == ("2026-03-01T08:00:00.123000", "2026-03-01")


def test_broken_lines_are_kept_in_the_rescued_column_and_counted(stream: Make) -> None:
    one = stream({**INFER, "rescuedDataColumn": "_bad"}).put("a.json", '{"id":1,"v":1}\n').run()
    one.put("b.json", b'{"id":"x","v":2}\n\n{"id":2,"v":\n{"id":3\xff}\n{"id":4,"id":5}\n').run()
    rows = {row["v"]: rescued(row["_bad"], "b.json") for row in one.batches[1] if row["v"]}
    assert rows == {2: {"id": "x"}}
    broken = [rescued(row["_bad"]) for row in one.batches[1] if row["id"] is None and row["v"] is None]
    assert {"_corrupt_record": '{"id":2,"v":'} in broken
    assert {"_corrupt_record": '{"id":3\ufffd}', "_corrupt_record_base64": "eyJpZCI6M/99"} in broken
    assert [rescued(row["_bad"]) for row in one.batches[1] if row["id"] == 5] == [{"id": 4}]
    assert (one.seen["records"], one.seen["rescued"], one.seen["corrupt"], one.seen["first_line"]) == (4, 2, 2, 4)  # the undecodable one


def test_metadata_is_hidden_but_stays_within_reach(stream: Make) -> None:
    one = stream().put("sub/n n.json", '{"f":"sub/n n.json"}\n')
    one.run("*", "_metadata.file_name as n", "_metadata.file_size as s", "_metadata.file_path as p", "_metadata.file_block_start as b")
    row = one.last()
    assert (row["n"], row["s"], row["b"]) == ("n%20n.json", 21, 0)
    assert row["p"] == f"file:{one.folder}/sub/n%20n.json"
    assert "_metadata" not in row
    again = one.open().read_stream(one.spark, name="o")
    assert again.columns == ["f", "_rescued_data"]
    assert again.select("_metadata").columns == ["_metadata"]
    assert again.withColumn("x", again["f"]).selectExpr("_metadata.file_modification_time").dtypes == [
        ("file_modification_time", "timestamp")
    ]


def test_wrong_keys_fail_before_anything_is_written(program: Make) -> None:
    one = program({"cloudFiles.foo": "1"}).put("a.json", '{"id":1}\n')
    with pytest.raises(LakeletError, match=r"cloudfiles\.foo"):
        one.run()
    assert not (one.root / "state").exists()


def test_lines_of_split_files_are_read_once_and_numbered(stream: Make) -> None:
    lines = [f'{{"id":{n},"pad":"{"x" * 2000}"}}' for n in range(5000)]
    lines[4321] = '{"id":"odd"}'
    one = stream({"cloudFiles.schemaHints": "id BIGINT, pad STRING"}).put("big.json", "\n".join(lines))
    one.run("id", "_metadata.file_block_start as b", "_rescued_data")
    assert sorted(row["id"] for row in one.rows() if row["id"] is not None) == [n for n in range(5000) if n != 4321]
    assert len({row["b"] for row in one.rows()}) > 1
    assert (one.seen["rescued"], one.seen["first_line"]) == (1, 4322)


def test_inference_and_values_equal_sparks_own_reader(spark: Any, tmp_path: Path) -> None:
    """FS-5: the same algorithm as Spark's reader; here against that reader on random records."""
    rng = random.Random(11)
    scalars = ["1", "2.5", '"x"', '""', "true", "null", "12345678901234567890", "1e3", '"2024-01-01"', "[]", "{}"]
    scalars += ["[1]", '["a",2]', '{"k":1}', '{"k":"z"}']

    def value(column: int) -> str:
        return rng.choice(rng.sample(scalars, 3)) if column % 3 else scalars[column % len(scalars)]

    lines = ["{" + ",".join(f'"c{n}":{value(n)}' for n in rng.sample(range(30), 4)) + "}" for _ in range(300)]
    (tmp_path / "a.json").write_text("\n".join(lines) + "\n")
    theirs = spark.read.json(str(tmp_path))
    ours = AutoLoaderSource.open(SourceSpec(str(tmp_path), {"cloudFiles.format": "json", **INFER}), state=None).columns().data
    assert {f.name: f.dataType.simpleString() for f in ours.fields} == {f.name: f.dataType.simpleString() for f in theirs.schema.fields}


def test_moments_are_parsed_like_sparks_own_reader(spark: Any, tmp_path: Path) -> None:
    """FF-3: the default formats, compared text by text with Spark's JSON reader."""
    from lakelet.autoloader.text_values import date_days, timestamp_micros

    days = ["2026-03-01", "2026-3-1", "2026-03", "2026", "12026-03-01", "2026-02-30", "0001-01-01", " 2026-03-01 ", "26-03-01"]
    days += ["2026-03-01x", "+2026-03-01"]
    times = ["", "T", " ", "T08", "T08:00", "T08:00Z", "T08:00:00Z", " 08:00:00", "T08:00:00.1", "T08:00:00.123456789Z", "T8:0:0Z"]
    times += ["T08:00:00+02:00", "T08:00:00+0200", "T08:00:00 UTC", "T08:00:00 America/New_York", "T24:00:00", "T08:00:60", "T08:00:00."]
    times += ["T08:00:00.Z", "T08:00:00+2", "T08:00:00+19:00", "T08:00:00GMT+1", "T08:00:00-18:00", "T08:00:00z", "t08:00:00"]
    texts = days + [day + time for day in days[:2] for time in times]
    (tmp_path / "a.json").write_text("\n".join(json.dumps({"t": text, "d": text, "raw": text}) for text in texts))
    expressions = ["raw", "unix_micros(t) as t", "unix_date(d) as d"]
    found = spark.read.schema("t TIMESTAMP, d DATE, raw STRING").json(str(tmp_path)).selectExpr(*expressions).collect()
    assert len(found) == len(texts)
    for row in found:
        assert timestamp_micros(row["raw"], "UTC") == row["t"], row["raw"]
        assert date_days(row["raw"]) == row["d"], row["raw"]
