"""Cases of spec/autoloader.md section 9 that JSON with inferred or declared types covers; each test carries the ids of its cases.

A stream costs about a second, so cases that do not disturb each other share one.
"""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelet.autoloader import AutoLoaderSource, SchemaChange, SourceSpec, register
from lakelet.errors import LakeletError

INFER = {"cloudFiles.inferColumnTypes": "true"}


class Boom(Exception):
    """A failure that the test makes."""


class Source:
    """One source folder with its state and checkpoint; `run` is one start of the same program."""

    def __init__(self, spark: Any, root: Path, options: dict[str, str], schema: Any = None) -> None:
        self.spark, self.root, self.options, self.schema = spark, root, options, schema
        self.folder = root / "in"
        self.folder.mkdir(parents=True)
        self.clock = 1_700_000_000
        self.batches: list[list[dict[str, Any]]] = []
        self.seen: dict[str, Any] = {}
        self.changes: list[SchemaChange] = []

    def put(self, name: str, text: str | bytes) -> Source:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        self.clock += 1
        os.utime(path, (self.clock, self.clock))
        return self

    def open(self) -> AutoLoaderSource:
        spec = SourceSpec(str(self.folder), {"cloudFiles.format": "json", **self.options}, self.schema)
        return AutoLoaderSource.open(spec, state=str(self.root / "state"))

    def run(self, *columns: str, restarts: int = 0, fail: Callable[[int], bool] = lambda batch: False) -> Source:
        """Start the stream, restarting after schema changes; raises the failure that is left."""
        register(self.spark)
        while True:
            source = self.open()
            frame = source.read_stream(self.spark, name="seen")
            frame = frame.selectExpr(*columns) if columns else frame

            def take(rows: Any, batch: int) -> None:
                self.batches.append([row.asDict(recursive=True) for row in rows.collect()])
                if fail(batch):
                    self.batches.pop()
                    raise Boom("made by the test")

            query = (
                frame.writeStream.foreachBatch(take)
                .option("checkpointLocation", str(self.root / "checkpoint"))
                .trigger(availableNow=True)
                .start()
            )
            try:
                query.awaitTermination()
            except Exception as failure:
                change = source.evolve(failure)
                if change is not None:
                    self.changes.append(change)
                if change is None or restarts == 0:
                    raise
                restarts -= 1
                continue
            found = [p.observedMetrics["seen"].asDict() for p in query.recentProgress if "seen" in (p.observedMetrics or {})]
            self.seen = found[-1] if found else {}
            return self

    def rows(self, *keys: str) -> list[Any]:
        """All rows so far, sorted; only these keys, a bare value for a single key."""
        rows = [row for batch in self.batches for row in batch]
        picked = [tuple(row.get(key) for key in keys) if len(keys) > 1 else row.get(keys[0]) for row in rows] if keys else rows
        return sorted(picked, key=repr)

    def types(self) -> dict[str, str]:
        return {field.name: field.dataType.simpleString() for field in self.open().schema().fields}

    def log(self) -> int:
        return max(int(path.name) for path in (self.root / "state" / "_schemas").iterdir())


def rescued(text: str | None, file: str | None = None) -> Any:
    """The rescued column as an object, without the path, which must end with `file`."""
    if text is None:
        return None
    found = json.loads(text)
    path = found.pop("_file_path")
    assert path.startswith("file:/")
    assert file is None or path.endswith("/" + file)
    return found


@pytest.fixture
def source(spark: Any, tmp_path: Path) -> Callable[..., Source]:
    made: list[int] = []

    def make(options: dict[str, str] | None = None, schema: str | None = None) -> Source:
        made.append(1)
        declared = None if schema is None else spark.createDataFrame([], schema).schema
        return Source(spark, tmp_path / str(len(made)), INFER if options is None else options, declared)

    return make


def test_I03_I05_I06_inferred_types_and_values(source: Callable[..., Source]) -> None:
    one = source()
    one.put("a.json", '{"id":1,"o":{"k":1,"s":"x"},"l":[1,2],"f":1.5,"t":true,"d":"2024-01-02","a":null,"b":[],"c":{}}\n')
    one.put("b.json", '{"v":1}\n{"v":1.5}\n{"w":1}\n{"w":"x"}\n{"y":{"a": 1}}\n{"y":3}\n').run()
    assert one.types() == {
        "id": "bigint", "o": "struct<k:bigint,s:string>", "l": "array<bigint>", "f": "double", "t": "boolean", "d": "string",
        "a": "string", "b": "array<string>", "v": "double", "w": "string", "y": "string", "_rescued_data": "string",
    }  # fmt: skip
    row = next(row for row in one.rows() if row["id"] == 1)
    assert (row["o"], row["l"], row["f"], row["t"], row["d"], row["b"]) == ({"k": 1, "s": "x"}, [1, 2], 1.5, True, "2024-01-02", [])
    assert rescued(row["_rescued_data"], "a.json") == {"c": {}}
    assert [v for v in one.rows("v") if v is not None] == [1.0, 1.5]
    assert [w for w in one.rows("w") if w is not None] == ["1", "x"]
    assert [y for y in one.rows("y") if y is not None] == ["3", '{"a": 1}']


def test_I01_I02_without_types_columns_hold_source_text(source: Callable[..., Source]) -> None:
    one = source({}).put("a.json", '{"id":1,"x":1.50,"b":true,"n":null,"o":{"k" : 1},"l":[1, 2]}\n').run()
    assert set(one.types().values()) == {"string"}
    assert one.rows("id", "x", "b", "n", "o", "l", "_rescued_data") == [("1", "1.50", "true", None, '{"k" : 1}', "[1, 2]", None)]


def test_E01_D01_a_new_column_fails_once_and_each_file_is_read_once(source: Callable[..., Source]) -> None:
    one = source({}).put("a.json", '{"id":1}\n').run()
    one.put("b.json", '{"id":2,"c":{"v":"1"}}\n')
    with pytest.raises(Exception, match="UNKNOWN_FIELD_EXCEPTION") as caught:
        one.run()
    text = str(caught.value)
    assert (
        '[UNKNOWN_FIELD_EXCEPTION.NEW_FIELDS_IN_RECORD_WITH_FILE_PATH] Encountered unknown fields during parsing: {"c":{"v":"1"}}' in text
    )
    assert "fixed by an automatic retry: true" in text
    assert (one.log(), len(one.rows())) == (1, 1)
    change = one.changes[0]
    assert (change.version_before, change.version_after, change.added) == (0, 1, (("c", "string"),))
    assert change.first_file.endswith("/b.json")
    one.run()
    assert one.rows("id", "c", "_rescued_data") == [("1", None, None), ("2", '{"v":"1"}', None)]
    assert list(one.types()) == ["id", "c", "_rescued_data"]
    one.run()
    assert len(one.rows()) == 2


def test_E03_R04_rescue_mode_and_other_spellings(source: Callable[..., Source]) -> None:
    one = source({"cloudFiles.schemaEvolutionMode": "rescue"}).put("a.json", '{"id":1,"name":"x"}\n').run()
    one.put("b.json", '{"id":2,"c":{"v":"1"}}\n{"id":3,"Name":"y"}\n').run()
    assert (one.log(), one.rows("id", "name")) == (0, [("1", "x"), ("2", None), ("3", None)])
    kept = {row["id"]: rescued(row["_rescued_data"]) for row in one.rows()}
    assert kept == {"1": None, "2": {"c": {"v": "1"}}, "3": {"Name": "y"}}
    assert one.seen == {"records": 2, "rescued": 2, "corrupt": 0, "first_file": f"file:{one.folder}/b.json", "first_line": 1}


def test_R04_R05_a_spelling_is_rescued_in_add_mode_or_matched(source: Callable[..., Source]) -> None:
    for sensitive, name, kept in (("true", None, {"Name": "y"}), ("false", "y", None)):
        one = source({"readerCaseSensitive": sensitive}).put("a.json", '{"name":"x"}\n').run().put("b.json", '{"Name":"y"}\n').run()
        row = one.batches[1][0]
        assert (row["name"], rescued(row["_rescued_data"])) == (name, kept)


def test_E04_fail_mode_does_not_evolve(source: Callable[..., Source]) -> None:
    one = source({"cloudFiles.schemaEvolutionMode": "failOnNewColumns"}).put("a.json", '{"id":1}\n').run().put("b.json", '{"id":2,"c":1}\n')
    for _ in range(2):
        with pytest.raises(Exception, match="automatic retry: false"):
            one.run(restarts=3)
    assert (one.log(), len(one.rows()), one.changes) == (0, 1, [])


def test_E05_E06_H05_explicit_schema(source: Callable[..., Source]) -> None:
    text = '{"id":2,"c":{"v":"1"}}\n'
    plain = source({"cloudFiles.schemaHints": "id STRING"}, "id INT").put("b.json", text).run()
    assert plain.rows() == [{"id": 2}]
    kept = source({"rescuedDataColumn": "_resc"}, "id INT").put("b.json", text).run()
    assert [(row["id"], rescued(row["_resc"])) for row in kept.rows()] == [(2, {"c": {"v": "1"}})]


def test_E09_one_restart_brings_all_new_columns_of_a_batch(source: Callable[..., Source]) -> None:
    one = source().put("a.json", '{"id":1}\n').run()
    one.put("b.json", '{"id":2,"x":1}\n{"id":3,"y":1}\n').put("c.json", '{"id":4,"z":1}\n').run(restarts=1)
    assert (one.log(), len(one.changes), one.changes[0].added) == (1, 1, (("x", "bigint"), ("y", "bigint"), ("z", "bigint")))
    assert one.rows("id", "x", "y", "z") == [(1, None, None, None), (2, 1, None, None), (3, None, 1, None), (4, None, None, 1)]


def test_E10_a_backlog_in_two_batches_needs_two_restarts(source: Callable[..., Source]) -> None:
    one = source({**INFER, "cloudFiles.maxFilesPerTrigger": "1"}).put("a.json", '{"id":1}\n').run()
    one.put("b.json", '{"id":2,"x":1}\n{"id":3,"y":1}\n').put("c.json", '{"id":4,"z":1}\n').run(restarts=2)
    assert [[name for name, _ in change.added] for change in one.changes] == [["x", "y"], ["z"]]
    assert (one.log(), len(one.rows())) == (2, 4)


def test_E11_E12_known_and_missing_columns_do_not_fail(source: Callable[..., Source]) -> None:
    one = source().put("a.json", '{"id":1,"s":"x"}\n').put("b.json", '{"id":2,"c":1}\n').run()
    assert (one.log(), one.rows("id", "s", "c")) == (0, [(1, "x", None), (2, None, 1)])
    one.put("c.json", '{"id":3}\n').run()
    assert (one.log(), one.rows("id", "s", "c")[2]) == (0, (3, None, None))


def test_E13_R11_structs_grow_and_their_misfits_are_rescued(source: Callable[..., Source]) -> None:
    one = source().put("a.json", '{"o":{"k":1},"p":[{"x":1}]}\n').run()
    one.put("b.json", '{"o":{"k":2,"m":3},"p":[{"x":2,"y":"z"}]}\n{"o":5}\n').run(restarts=1)
    assert one.changes[0].added == (("o.m", "bigint"), ("p.element.y", "string"))
    assert one.rows("o", "p")[-1] == ({"k": 2, "m": 3}, [{"x": 2, "y": "z"}])
    assert rescued(one.batches[-1][1]["_rescued_data"]) == {"o": 5}
    one.put("c.json", '{"o":{"k":"q"}}\n').run()
    assert one.batches[-1][0]["o"] == {"k": None, "m": None}
    assert rescued(one.batches[-1][0]["_rescued_data"], "c.json") == {"o": {"k": "q"}}


def test_H03_H04_hints(source: Callable[..., Source]) -> None:
    options = {"cloudFiles.schemaHints": "id BIGINT, later STRING, at TIMESTAMP, day DATE"}
    one = source(options).put("a.json", '{"id":"abc","v":"1"}\n{"id":7,"at":"2026-03-01T08:00:00.123Z","day":"2026-03-01"}\n').run()
    first = next(row for row in one.rows() if row["id"] is None)
    assert (first["v"], rescued(first["_rescued_data"], "a.json")) == ("1", {"id": "abc"})
    second = next(row for row in one.rows() if row["id"] == 7)
    assert (second["at"].isoformat(), second["day"].isoformat()) == ("2026-03-01T08:00:00.123000", "2026-03-01")
    one.put("b.json", '{"id":8,"later":"now"}\n').run()
    assert (one.log(), [v for v in one.rows("later") if v]) == (0, ["now"])


def test_R14_R07_named_columns_and_broken_lines(source: Callable[..., Source]) -> None:
    one = source({**INFER, "rescuedDataColumn": "_bad"}).put("a.json", '{"id":1,"v":1}\n').run()
    one.put("b.json", b'{"id":"x","v":2}\n\n{"id":2,"v":\n{"id":3\xff}\n{"id":4,"id":5}\n').run()
    assert "_rescued_data" not in one.types()
    bad = {row["v"]: rescued(row["_bad"], "b.json") for row in one.batches[1] if row["v"]}
    assert bad == {2: {"id": "x"}}
    broken = [rescued(row["_bad"]) for row in one.batches[1] if row["id"] is None and row["v"] is None]
    assert {"_corrupt_record": '{"id":2,"v":'} in broken
    assert {"_corrupt_record": '{"id":3\ufffd}', "_corrupt_record_base64": "eyJpZCI6M/99"} in broken
    assert [rescued(row["_bad"]) for row in one.batches[1] if row["id"] == 5] == [{"id": 4}]
    assert (one.seen["records"], one.seen["rescued"], one.seen["corrupt"], one.seen["first_line"]) == (4, 2, 2, 1)
    two = source({"cloudFiles.schemaHints": "_corrupt_record STRING"}).put("a.json", '{"id":1,"v":"a"}\n{"id":2,"v":\n').run()
    assert two.rows("id", "v", "_corrupt_record", "_rescued_data") == [("1", "a", None, None), (None, None, '{"id":2,"v":', None)]


def test_D04_D06_D14_discovery_and_metadata(source: Callable[..., Source]) -> None:
    one = source({**INFER, "cloudFiles.maxFilesPerTrigger": "2"})
    for name in ("x.json", "_y.json", ".z.json", "_d/q.json", "w.json.tmp", "sub/n n.json"):
        one.put(name, f'{{"f":"{name}"}}\n')
    one.put("g.json.gz", gzip.compress(b'{"f":"g"}\n')).put("e.json", "")
    one.run("*", "_metadata.file_name as n", "_metadata.file_size as s", "_metadata.file_path as p", "_metadata.file_block_start as b")
    assert [len(batch) for batch in one.batches] == [2, 2, 0] or sorted(len(batch) for batch in one.batches)[-2:] == [2, 2]
    assert one.rows("f") == ["g", "sub/n n.json", "w.json.tmp", "x.json"]
    row = next(row for row in one.rows() if row["f"] == "sub/n n.json")
    assert (row["n"], row["s"], row["b"]) == ("n%20n.json", 21, 0)
    assert row["p"] == f"file:{one.folder}/sub/n%20n.json"
    assert "_metadata" not in row
    again = one.open().read_stream(one.spark, name="o")
    assert again.columns == ["f", "_rescued_data"]
    assert again.select("_metadata").columns == ["_metadata"]
    assert again.withColumn("x", again["f"]).selectExpr("_metadata.file_modification_time").dtypes == [
        ("file_modification_time", "timestamp")
    ]


def test_D08_wrong_keys_fail_before_anything_is_written(source: Callable[..., Source]) -> None:
    one = source({"cloudFiles.foo": "1"}).put("a.json", '{"id":1}\n')
    with pytest.raises(LakeletError, match=r"cloudfiles\.foo"):
        one.run()
    assert not (one.root / "state").exists()


def test_D15_a_planned_batch_is_read_again_with_the_very_same_files(source: Callable[..., Source]) -> None:
    one = source().put("a.json", '{"id":1}\n')
    with pytest.raises(Exception, match="made by the test"):
        one.run(fail=lambda batch: True)
    one.put("b.json", '{"id":2}\n').run("id", "_metadata.file_name as f")
    assert one.batches == [[{"id": 1, "f": "a.json"}], [{"id": 2, "f": "b.json"}]]


def test_lines_of_split_files_are_read_once_and_numbered(source: Callable[..., Source]) -> None:
    lines = [f'{{"id":{n},"pad":"{"x" * 2000}"}}' for n in range(5000)]
    lines[4321] = '{"id":"odd"}'
    one = source({"cloudFiles.schemaHints": "id BIGINT, pad STRING"}).put("big.json", "\n".join(lines))
    one.run("id", "_metadata.file_block_start as b", "_rescued_data")
    assert sorted(row["id"] for row in one.rows() if row["id"] is not None) == [n for n in range(5000) if n != 4321]
    assert len({row["b"] for row in one.rows()}) > 1
    assert (one.seen["rescued"], one.seen["first_line"]) == (1, 4322)


def test_inference_and_values_equal_sparks_own_reader(spark: Any, tmp_path: Path) -> None:
    """Spec 2.2: the same algorithm as Spark's reader; here against that reader on random records."""
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
    """Spec 1.4: the default formats, compared text by text with Spark's JSON reader."""
    from lakelet.autoloader.moments import date_days, timestamp_micros

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
