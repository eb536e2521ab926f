"""Avro files: types and logical types, unions, empty records, the options, and the missing library (FF-25, FS-7)."""

from __future__ import annotations

import datetime
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest

from autoloading import Program, rescued
from lakelet.base.errors import LakeletError

Make = Callable[..., Program]
MODE = "cloudFiles.schemaEvolutionMode"
MOMENT = datetime.datetime(2024, 1, 2, 3, 4, 5, 678000)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    made: list[int] = []

    def program(options: Mapping[str, str] | None = None, schema: Any = None) -> Program:
        made.append(1)
        root = tmp_path / str(len(made))
        (root / "in").mkdir(parents=True)
        return Program(root / "in", root, {"cloudFiles.format": "avro", **(options or {})}, schema)

    return program


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


def avro(schema: Any, *records: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), records, **options)
    return sink.getvalue()


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def test_types_and_logical_types_are_those_that_spark_gives_them(make: Make) -> None:
    schema = record(
        i="int", l="long", f="float", d="double", b="boolean", s="string", y="bytes", n=["null", "int"], il=["int", "long"],
        day=logical("int", "date"), ms=logical("long", "timestamp-millis"), us=logical("long", "timestamp-micros"),
        local=logical("long", "local-timestamp-micros"), dec=logical("bytes", "decimal", precision=30, scale=2),
        fix={"type": "fixed", "name": "fx", "size": 2}, e={"type": "enum", "name": "en", "symbols": ["A", "B"]},
        a={"type": "array", "items": ["null", "long"]}, m={"type": "map", "values": logical("bytes", "decimal", precision=5, scale=2)},
        o={"type": "record", "name": "in", "fields": [{"name": "x", "type": ["null", "en"]}]}, v="null",
    )  # fmt: skip
    utc = MOMENT.replace(tzinfo=datetime.timezone.utc)
    value = {
        "i": 1, "l": 2**40, "f": 1.5, "d": 0.1, "b": True, "s": "x", "y": b"\xff", "n": None, "il": 2**40, "day": MOMENT.date(), "ms": utc,
        "us": utc, "local": MOMENT, "dec": Decimal("12345678901234567890123456.78"), "fix": b"ab", "e": "B", "a": [1, None],
        "m": {"k": Decimal("-1.25")}, "o": {"x": "A"}, "v": None,
    }  # fmt: skip
    one = make().put("a.avro", avro(schema, value, codec="deflate")).run()
    assert one.types() == {
        "i": "int", "l": "bigint", "f": "float", "d": "double", "b": "boolean", "s": "string", "y": "binary", "n": "int", "il": "bigint",
        "day": "date", "ms": "timestamp", "us": "timestamp", "local": "timestamp_ntz", "dec": "decimal(30,2)", "fix": "binary",
        "e": "string", "a": "array<bigint>", "m": "map<string,decimal(5,2)>", "o": "struct<x:string>", "_rescued_data": "string",
    }  # fmt: skip
    assert one.rows(*value) == [tuple({**value, "ms": MOMENT, "us": MOMENT}.values())]
    assert one.last()["_rescued_data"] is None


def test_unions_of_several_types_are_structs_of_members(make: Make) -> None:
    parts = [{"type": "record", "name": name, "fields": [{"name": "x", "type": "int"}]} for name in ("p", "q")]
    schema = record(u=["null", "int", "string"], w=["null", *parts])
    one = make().put("a.avro", avro(schema, {"u": 1, "w": ("q", {"x": 5})}, {"u": "t", "w": ("p", {"x": 6})}, {"u": None, "w": None})).run()
    assert one.types()["u"] == "struct<member0:int,member1:string>"
    members = [{"member0": 1, "member1": None}, {"member0": None, "member1": "t"}, None]
    assert [row["u"] for row in one.batches[0]] == members
    assert [row["w"] for row in one.batches[0]] == [{"member0": None, "member1": {"x": 5}}, {"member0": {"x": 6}, "member1": None}, None]


def test_schemas_without_columns_in_spark_are_refused(make: Make) -> None:
    recursive = record(next=["null", "r"])
    with pytest.raises(LakeletError, match="NOT_SUPPORTED_YET"):
        make().put("a.avro", avro(recursive, {"next": None})).types()
    ambiguous = record(u=["int", "long", "string"])
    with pytest.raises(LakeletError, match="NOT_SUPPORTED_YET"):
        make({"avroSchema": json.dumps(ambiguous)}).put("a.avro", avro(ambiguous, {"u": 1})).types()


def test_FF25_branches_of_one_python_type_are_told_apart(make: Make) -> None:
    colour, pair = {"type": "enum", "name": "colour", "symbols": ["RED"]}, {"type": "fixed", "name": "pair", "size": 2}
    schema = record(n=["int", "null", "long", "string"], f=["double", "float", "boolean"], e=["string", colour], x=["bytes", pair])
    maps = {"type": "map", "values": ["int", "long", "string"]}
    schema["fields"] += record(o=[maps, {"type": "record", "name": "in", "fields": [{"name": "k", "type": "int"}]}])["fields"]
    first = {"n": 2**40, "f": 1.5, "e": "text", "x": b"abc", "o": {"m": "RED"}}
    one = make().put(
        "a.avro", avro(schema, first, {"n": 7, "f": True, "e": ("colour", "RED"), "x": ("pair", b"ab"), "o": ("in", {"k": 1})})
    )
    one.run()
    assert one.types()["n"] == "struct<member0:int,member1:bigint,member2:string>"
    long_, int_ = one.batches[0]
    assert (long_["n"]["member1"], int_["n"]["member0"]) == (2**40, 7)
    assert (long_["f"]["member0"], int_["f"]["member2"]) == (1.5, True)
    assert (long_["e"], int_["e"]) == ({"member0": "text", "member1": None}, {"member0": None, "member1": "RED"})
    assert (long_["x"], int_["x"]) == ({"member0": b"abc", "member1": None}, {"member0": None, "member1": b"ab"})
    assert dict(long_["o"]["member0"])["m"]["member2"] == "RED"
    assert int_["o"] == {"member0": None, "member1": {"k": 1}}


def test_PA3_a_text_that_is_not_utf8_has_the_replacement_character(make: Make) -> None:
    content = avro(record(s="string"), {"s": "a"}).replace(b"\x02\x04\x02a", b"\x02\x04\x02\xff")
    assert make().put("a.avro", content).run().last()["s"] == "\ufffd"


def test_AL19_records_before_a_damage_are_there_where_damaged_files_are_passed_over(make: Make) -> None:
    content = avro(record(id="long"), {"id": 1}, {"id": 2}) + b"\n"
    assert make({"ignoreCorruptFiles": "true"}).put("a.avro", content).run().rows("id") == [1, 2]
    make().put("a.avro", content).fails("FAILED_READ_FILE")


def test_11_3_empty_records_are_rescued_and_stop_nothing(make: Make) -> None:
    empty = {"type": "record", "name": "none", "fields": []}
    one = make().put("a.avro", avro(record(id="int"), {"id": 1})).run()
    one.put("b.avro", avro(record(id="int", e=empty), {"id": 2, "e": {}})).run()
    assert one.log() == 0
    assert (one.last()["id"], rescued(one.last()["_rescued_data"], "b.avro")) == (2, {"e": {}})


def test_new_fields_stop_once_and_wider_types_where_asked(make: Make) -> None:
    for options, kind, blob in (
        ({}, "NEW_FIELDS_IN_FILE", "[c]"),
        ({MODE: "addNewColumnsWithTypeWidening"}, "NEW_FIELDS_AND_WIDENED", "[c, id]"),
    ):
        one = make(options).put("a.avro", avro(record(id="int"), {"id": 1})).run()
        one.put("b.avro", avro(record(id="long", c="string"), {"id": 2**40, "c": "x"})).stops(kind, blob)
        row = one.run().last()
        assert (row["c"], row["id"], rescued(row["_rescued_data"])) == (("x", 2**40, None) if options else ("x", None, {"id": 2**40}))


def test_rescued_values_keep_their_json_type(make: Make) -> None:
    schema = record(
        id="int", t=logical("long", "timestamp-micros"), d=logical("bytes", "decimal", precision=5, scale=2), y="bytes", f="double"
    )
    value = {"id": 1, "t": MOMENT.replace(tzinfo=datetime.timezone.utc), "d": Decimal("1.25"), "y": b"\xff", "f": float("nan")}
    one = make({"cloudFiles.schemaHints": "t STRING, d INT, y STRING, f INT"}).put("a.avro", avro(schema, value)).run()
    assert rescued(one.last()["_rescued_data"]) == {"t": "2024-01-02T03:04:05.678Z", "d": 1.25, "y": "/w==", "f": "NaN"}


def test_records_are_numbered_across_blocks(make: Make) -> None:
    many: Sequence[Any] = [{"a": number} for number in range(20_000)]
    one = make({"cloudFiles.schemaHints": "a INT"}).put("a.avro", avro(record(a="long"), *many, sync_interval=500)).run()
    found = [rescued(row["_rescued_data"])["a"] for row in one.batches[0]]
    assert found == list(range(20_000))


def test_avroSchema_is_the_schema_that_files_are_read_with(make: Make) -> None:
    wanted = {**record(id="long"), "fields": [{"name": "id", "type": "long"}, {"name": "more", "type": "string", "default": "none"}]}
    one = make({"avroSchema": json.dumps(wanted)}).put("a.avro", avro(record(id="int", other="int"), {"id": 1, "other": 2})).run()
    assert one.types() == {"id": "bigint", "more": "string", "_rescued_data": "string"}
    assert one.rows("id", "more", "_rescued_data") == [(1, "none", None)]
    one.put("b.avro", avro(record(id="string"), {"id": "x"})).fails("FAILED_READ_FILE", "b.avro")
    with pytest.raises(LakeletError, match="CF_INVALID_OPTION_VALUE"):
        make({"avroSchema": "[]"}).open()


@pytest.mark.parametrize(("mode", "day"), [("LEGACY", datetime.date(1000, 1, 1)), ("CORRECTED", datetime.date(1000, 1, 6))])
def test_rebase_modes(make: Make, mode: str, day: datetime.date) -> None:
    content = avro(record(d=logical("int", "date")), {"d": datetime.date(1000, 1, 6)})
    assert make({"datetimeRebaseMode": mode}).put("a.avro", content).run().last()["d"] == day
    by_spark = avro(record(d=logical("int", "date")), {"d": datetime.date(1000, 1, 6)}, metadata={"org.apache.spark.version": "4.2.0"})
    assert make({"datetimeRebaseMode": mode}).put("a.avro", by_spark).run().last()["d"] == datetime.date(1000, 1, 6)


def test_FF20_a_file_with_none_of_the_columns_has_all_its_rows(make: Make) -> None:
    one = make(schema="id INT").put("a.avro", avro(record(other="long"), {"other": 1}, {"other": 2})).run()
    assert one.rows("id") == [None, None]


def test_D10_damaged_and_empty_files(make: Make) -> None:
    good = avro(record(id="int"), *({"id": n} for n in range(100)))
    for broken in (b"Obj\x01 nothing", good[: len(good) // 2], good[:-20] + b"\xff" * 20):
        one = make().put("a.avro", good).run().put("b.avro", broken)
        one.fails("FAILED_READ_FILE", "b.avro")
    one = make().put("a.avro", good).run().put("b.avro", b"").run()
    assert len(one.rows()) == 100


def test_without_the_library_the_error_names_the_extra(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    one = make().put("a.avro", avro(record(id="int"), {"id": 1}))
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(LakeletError, match=r"lakelet\[avro\]") as caught:
        one.types()
    assert caught.value.code == "AVRO_MISSING"
