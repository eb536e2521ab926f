"""Parquet files: types, merging, what is rescued and how (FF-20 to FF-24, FS-8)."""

from __future__ import annotations

import datetime
import io
import json
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as t

from autoloading import Program, parquet, rescued
from lakelet.autoloader.formats.typed.arrow_arrays import json_texts
from lakelet.autoloader.formats.typed.old_calendar import julian_to_gregorian
from lakelet.autoloader.source_spec import FilePart
from lakelet.base.errors import LakeletError

Make = Callable[..., Program]
MODE = "cloudFiles.schemaEvolutionMode"
WIDEN = {MODE: "addNewColumnsWithTypeWidening"}
EPOCH = datetime.date(1970, 1, 1)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    made: list[int] = []

    def program(options: Mapping[str, str] | None = None, schema: Any = None) -> Program:
        made.append(1)
        root = tmp_path / str(len(made))
        (root / "in").mkdir(parents=True)
        return Program(root / "in", root, {"cloudFiles.format": "parquet", **(options or {})}, schema)

    return program


def hinted(hints: str, **more: str) -> dict[str, str]:
    return {"cloudFiles.schemaHints": hints, **more}


def written(table: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


# --- types ---


def test_types_of_a_file_are_those_that_spark_gives_them(make: Make) -> None:
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, 678000)
    one = make().put(
        "p.parquet",
        parquet(
            i8=pa.array([1], pa.int8()),
            u8=pa.array([255], pa.uint8()),
            i16=pa.array([1], pa.int16()),
            u16=pa.array([65535], pa.uint16()),
            u32=pa.array([4294967295], pa.uint32()),
            u64=pa.array([18446744073709551615], pa.uint64()),
            f16=pa.array([1.5], pa.float16()),
            f32=pa.array([1.5], pa.float32()),
            ms=pa.array([moment], pa.timestamp("ms")),
            us=pa.array([moment], pa.timestamp("us", "Europe/Paris")),
            ns=pa.array([moment], pa.timestamp("ns", "UTC")),
            day=pa.array([moment.date()]),
            d9=pa.array([Decimal("1.25")], pa.decimal128(9, 2)),
            d38=pa.array([Decimal("1.25")], pa.decimal128(38, 2)),
            bin=pa.array([b"\xff"]),
            fixed=pa.array([b"ab"], pa.binary(2)),
            large=pa.array(["x"], pa.large_string()),
            dict=pa.array(["x"]).dictionary_encode(),
            doc=pa.array(["{}"], pa.json_()),
            id=pa.array([uuid.UUID(int=1).bytes], pa.uuid()),
            list=pa.array([[1, None]], pa.large_list(pa.int32())),
            pair=pa.array([[1.0, 2.0]], pa.list_(pa.float64(), 2)),
            map=pa.array([[("k", [1])]], pa.map_(pa.string(), pa.list_(pa.int64()))),
            o=pa.array([{"p": {"q": "r"}}]),
        ),
    )
    one.run()
    assert one.types() == {
        "i8": "tinyint", "u8": "smallint", "i16": "smallint", "u16": "int", "u32": "bigint", "u64": "decimal(20,0)",
        "f16": "float", "f32": "float", "ms": "timestamp_ntz", "us": "timestamp", "ns": "timestamp", "day": "date",
        "d9": "decimal(9,2)", "d38": "decimal(38,2)", "bin": "binary", "fixed": "binary", "large": "string", "dict": "string",
        "doc": "string", "id": "string", "list": "array<int>", "pair": "array<double>", "map": "map<string,array<bigint>>",
        "o": "struct<p:struct<q:string>>", "_rescued_data": "string",
    }  # fmt: skip
    row = one.last()
    assert (row["u8"], row["u16"], row["u32"], row["u64"]) == (255, 65535, 4294967295, Decimal(18446744073709551615))
    assert row["ms"] == row["us"] == row["ns"] == moment
    assert (row["d9"], row["bin"], row["fixed"], row["id"]) == (Decimal("1.25"), b"\xff", b"ab", str(uuid.UUID(int=1)))
    assert (row["list"], row["pair"], row["map"], row["o"]) == ([1, None], [1.0, 2.0], {"k": [1]}, {"p": {"q": "r"}})
    assert (row["large"], row["dict"], row["doc"], row["_rescued_data"]) == ("x", "x", "{}", None)


def test_int96_is_a_moment_also_inside_a_struct(make: Make) -> None:
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, 678901)
    table = pa.table({"t": pa.array([moment], pa.timestamp("us")), "o": pa.array([{"t": moment, "n": 1}])})
    one = make().put("p.parquet", written(table, use_deprecated_int96_timestamps=True)).run()
    assert one.types() == {"t": "timestamp", "o": "struct<t:timestamp,n:bigint>", "_rescued_data": "string"}
    assert (one.last()["t"], one.last()["o"]) == (moment, {"t": moment, "n": 1})


def test_values_that_no_column_can_take_are_rescued_and_stop_nothing(make: Make) -> None:
    one = make().put("a.parquet", parquet(id=[1])).run()
    one.put("b.parquet", parquet(id=[2], at=pa.array([datetime.time(3, 4)]), none=pa.nulls(1))).run()
    assert (one.last()["id"], rescued(one.last()["_rescued_data"], "b.parquet")) == (2, {"at": "03:04:00.000000"})


def test_nanoseconds_are_never_cut_off(make: Make) -> None:
    one = make().put("p.parquet", parquet(t=pa.array([1_000, 1_001, None], pa.timestamp("ns", "UTC")))).run()
    found = {row["t"]: rescued(row["_rescued_data"]) for row in one.rows() if row["t"]}
    assert found == {datetime.datetime(1970, 1, 1, 0, 0, 0, 1): None}
    assert {"t": "1970-01-01T00:00:00.000001001Z"} in [rescued(row["_rescued_data"]) for row in one.rows()]


# --- merging (FS-8) ---


@pytest.mark.parametrize(
    ("one", "two", "merged"),
    [
        (pa.int8(), pa.int16(), "smallint"),
        (pa.int32(), pa.float64(), "double"),
        (pa.int64(), pa.float64(), "double"),
        (pa.float32(), pa.int32(), "double"),
        (pa.int32(), pa.decimal128(5, 2), "decimal(12,2)"),
        (pa.int64(), pa.decimal128(5, 2), "decimal(22,2)"),
        (pa.decimal128(5, 2), pa.decimal128(6, 4), "decimal(7,4)"),
        (pa.date32(), pa.timestamp("us"), "timestamp_ntz"),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), "array<bigint>"),
        (pa.struct([("a", pa.int32())]), pa.struct([("b", pa.string())]), "struct<b:string,a:int> struct<a:int,b:string>"),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), "map<string,bigint>"),
    ],
)
def test_the_widest_type_of_the_sampled_files_wins(make: Make, one: Any, two: Any, merged: str) -> None:
    newest_first = (merged.split()[0], merged.split()[-1])  # the order of the fields
    for (first, second), wanted in zip(((one, two), (two, one)), newest_first, strict=True):
        program = make().put("a.parquet", parquet(c=pa.nulls(1, first))).put("b.parquet", parquet(c=pa.nulls(1, second)))
        assert program.types()["c"] == wanted


def test_I13_types_that_do_not_merge_are_an_error_that_a_hint_solves(make: Make) -> None:
    files = {"a.parquet": parquet(c=pa.array([1], pa.int32()), k=[1]), "b.parquet": parquet(c=["x"], k=[2])}
    one = make()
    two = make(hinted("c STRING"))
    for name, content in files.items():
        one.put(name, content)
        two.put(name, content)
    with pytest.raises(LakeletError, match=r"CF_FAILED_TO_INFER_SCHEMA\.CANNOT_MERGE") as caught:
        one.types()
    assert caught.value.code == "CF_FAILED_TO_INFER_SCHEMA"
    assert "22000" in str(caught.value)
    assert "schemaHints" in str(caught.value)
    two.run()
    assert sorted((row["k"], row["c"], row["_rescued_data"] is None) for row in two.rows()) == [(1, None, False), (2, "x", True)]


def test_spellings_in_one_sample_are_one_column(make: Make) -> None:
    one = make().put("a.parquet", parquet(Fee=[1.5])).put("b.parquet", parquet(fee=[2.5])).run()
    assert one.types() == {"fee": "double", "_rescued_data": "string"}  # the newest file is first in the sample
    assert sorted((row["fee"], rescued(row["_rescued_data"])) for row in one.rows() if row["fee"]) == [(2.5, None)]
    assert {"Fee": 1.5} in [rescued(row["_rescued_data"]) for row in one.rows()]


# --- rows (FF-20 to FF-22) ---


@pytest.mark.parametrize(("switch", "expected"), [({}, (None, {"a": 1})), ({"typedUpcast": "lossless"}, (1, None))])
def test_I12_H06_a_narrower_file_is_rescued_unless_the_switch_says_otherwise(make: Make, switch: dict[str, str], expected: Any) -> None:
    for options in (hinted("a BIGINT"), {}):
        one = make({**options, **switch}).put("p1.parquet", parquet(a=pa.array([1], pa.int32())))
        if not options:
            one.put("p2.parquet", parquet(a=[3_000_000_000]))
        one.run()
        rows = {row["a"]: rescued(row["_rescued_data"]) for row in one.rows()}
        assert rows[expected[0]] == expected[1]


def test_a_lossless_upcast_never_changes_a_value(make: Make) -> None:
    columns = {"l": pa.array([2**53 + 1]), "f": pa.array([0.1], pa.float32()), "i": pa.array([7], pa.int32()), "d": pa.array([EPOCH])}
    hints = "l DOUBLE, f DOUBLE, i DECIMAL(12,2), d TIMESTAMP_NTZ"
    row = make(hinted(hints, typedUpcast="lossless")).put("p.parquet", parquet(**columns)).run().last()
    assert (row["l"], rescued(row["_rescued_data"])) == (None, {"l": 2**53 + 1})
    assert row["f"] == pa.array([0.1], pa.float32())[0].as_py()
    assert (row["i"], row["d"]) == (Decimal("7.00"), datetime.datetime(1970, 1, 1))


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), "INT"),
        (pa.array([EPOCH]), "INT"),
        (pa.array([1]), "STRING"),
        (pa.array(["1"]), "BIGINT"),
        (pa.array([b"x"]), "STRING"),
        (pa.array(["x"]), "BINARY"),
        (pa.array([1.5]), "BIGINT"),
        (pa.array([1]), "TIMESTAMP"),
        (pa.array([[1]]), "STRING"),
        (pa.array([{"a": 1}]), "MAP<STRING,BIGINT>"),
        (pa.array([datetime.datetime(2024, 1, 1)], pa.timestamp("us")), "TIMESTAMP"),
    ],
)
def test_R13_hints_are_not_casts(make: Make, value: Any, hint: str) -> None:
    row = make(hinted(f"a {hint}")).put("p.parquet", parquet(a=value, b=[1])).run().last()
    (text,) = json_texts(value)
    assert (row["a"], row["b"], rescued(row["_rescued_data"])) == (None, 1, {"a": json.loads(text or "null")})


def test_mismatches_inside_nested_values_leave_the_rest_in_place(make: Make) -> None:
    one = make(hinted("o STRUCT<x:STRING,y:BIGINT>, l ARRAY<INT>, m MAP<STRING,STRUCT<v:INT,w:BIGINT>>"))
    value = {"x": 1, "y": 2}
    maps = pa.array([[("k", {"v": 3, "w": 4})]], pa.map_(pa.string(), pa.struct([("v", pa.int64()), ("w", pa.int64())])))
    row = one.put("p.parquet", parquet(o=[value], l=[[5, None]], m=maps)).run().last()
    assert (row["o"], row["l"], row["m"]) == ({"x": None, "y": 2}, [None, None], {"k": {"v": None, "w": 4}})
    assert rescued(row["_rescued_data"]) == {"o": {"x": 1}, "l": [5, None], "m": {"k": {"v": 3}}}


def test_unknown_columns_and_fields_end_the_query_with_their_names_and_are_there_afterwards(make: Make) -> None:
    one = make().put("a.parquet", parquet(id=[1], o=[{"k": 1}])).run()
    one.put("b.parquet", parquet(id=[2], o=[{"k": 2, "m": 3}], c=["x"], **{"d r": [1.5]}))
    one.stops("NEW_FIELDS_IN_FILE", "[o.m, c, d r]")
    assert one.log() == 1
    row = one.run().last()
    assert (row["o"], row["c"], row["d r"], row["_rescued_data"]) == ({"k": 2, "m": 3}, "x", 1.5, None)


def test_one_restart_brings_the_columns_of_all_files_of_the_batch_merged(make: Make) -> None:
    one = make().put("a.parquet", parquet(id=[1])).run()
    one.put("b.parquet", parquet(id=[2], c=pa.array([1], pa.int32()))).put("c.parquet", parquet(id=[3], c=[2], e=[True]))
    one.stops("NEW_FIELDS_IN_FILE", "[c]")
    one.run()
    assert (one.types()["c"], one.types()["e"], one.log()) == ("bigint", "boolean", 1)
    assert rescued({row["id"]: row["_rescued_data"] for row in one.rows()}[2]) == {"c": 1}


@pytest.mark.parametrize(("mode", "expected"), [("rescue", {"c": 1, "o": {"m": 3}}), ("none", None)])
def test_E03_modes_that_do_not_stop(make: Make, mode: str, expected: Any) -> None:
    one = make({MODE: mode}).put("a.parquet", parquet(id=[1], o=[{"k": 1}])).run()
    row = one.put("b.parquet", parquet(id=[2], c=[1], o=[{"k": 2, "m": 3}])).run().last()
    assert (row["id"], row["o"], rescued(row.get("_rescued_data"))) == (2, {"k": 2}, expected)


def test_E04_failOnNewColumns_is_not_retried(make: Make) -> None:
    one = make({MODE: "failOnNewColumns"}).put("a.parquet", parquet(id=[1])).run()
    one.put("b.parquet", parquet(id=[2], c=[1])).stops("NEW_FIELDS_IN_FILE", "[c]", retry=False)


def test_E16_widening_inside_structs_and_lists_but_not_of_hinted_columns(make: Make) -> None:
    one = make({**WIDEN, **hinted("h INT")})
    small = pa.int32()
    one.put(
        "a.parquet", parquet(h=pa.array([1], small), o=pa.array([{"x": 1}], pa.struct([("x", small)])), l=pa.array([[1]], pa.list_(small)))
    )
    one.run().put("b.parquet", parquet(h=[2], o=[{"x": 2**40}], l=[[2.5]], n=["x"]))
    one.stops("NEW_FIELDS_AND_WIDENED_TYPES_IN_FILE", "[n, o.x, l.element]")
    row = one.run().last()
    assert one.changes[0].widened == (("o.x", "int", "bigint"), ("l.element", "int", "double"))
    assert (row["o"], row["l"], row["n"], row["h"]) == ({"x": 2**40}, [2.5], "x", None)
    assert rescued(row["_rescued_data"]) == {"h": 2}
    one.put("c.parquet", parquet(o=pa.array([{"x": 3}], pa.struct([("x", small)])), l=pa.array([[4]], pa.list_(small)))).run()
    assert (one.last()["o"], one.last()["l"], one.last()["_rescued_data"]) == ({"x": 3}, [4.0], None)


def test_folder_names_win_over_columns_of_the_file(make: Make) -> None:
    row = make().put("k=2/p.parquet", parquet(a=[8], k=["file"])).run().last()
    assert (row["a"], row["k"], row["_rescued_data"]) == (8, 2, None)


def test_two_columns_of_one_name_the_last_fills_the_other_is_rescued(make: Make) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    row = make().put("p.parquet", written(table)).run().last()
    assert (row["a"], rescued(row["_rescued_data"])) == (2, {"a": 1})


# --- files (AL-19) ---


def test_large_files_are_read_in_parts_and_every_record_once(make: Make) -> None:
    one = make(hinted("a BIGINT, b INT"))
    one.put("p.parquet", written(pa.table({"a": list(range(1000)), "b": list(range(1000))}), row_group_size=100))
    path = next(Path(one.folder).iterdir())
    reader = _reader(one)
    cuts = [0, 500, 4000, 4100, path.stat().st_size]
    chunks = [c for a, b in pairwise(cuts) for c in reader.chunks(FilePart(str(path), 0, 0, a, b - a))]
    assert sorted(value for chunk in chunks for value in chunk.columns[0].to_pylist()) == list(range(1000))
    assert sorted(mark for chunk in chunks for mark in chunk.marks or ()) == list(range(1, 1001))


def _reader(one: Program) -> Any:
    from pyspark.sql.pandas.types import to_arrow_type

    from lakelet.autoloader.discovery.files import files_for
    from lakelet.autoloader.formats import format_of

    source = one.open()
    fields = [(f.name, f.dataType, to_arrow_type(f.dataType)) for f in source.columns().data.fields]
    files, _ = files_for(str(one.folder))
    return format_of("parquet").reader(source.reader_spec(), fields, files, frozenset())  # type: ignore[union-attr]


def test_FF20_a_file_with_none_of_the_columns_has_all_its_rows(make: Make) -> None:
    one = make(schema="id INT").put("a.parquet", parquet(ID=[1, 2, 3])).run()
    assert one.rows("id") == [None, None, None]


def test_D10_damaged_and_empty_files(make: Make) -> None:
    for options, content in (({}, b"PAR1 nothing PAR1"), ({"ignoreCorruptFiles": "true"}, b"PAR1 nothing PAR1"), ({}, b"")):
        one = make(options).put("a.parquet", parquet(id=[1])).run().put("b.parquet", content)
        if content and not options:
            one.fails("FAILED_READ_FILE", "b.parquet")
        else:
            one.run()
            assert one.rows("id") == [1]


def test_damage_behind_a_good_footer_is_found_and_no_row_of_the_file_is_taken(make: Make) -> None:
    whole = written(pa.table({"a": list(range(10_000))}), compression="snappy", use_dictionary=False)
    broken = whole[:1000] + b"\xff" * 10_000 + whole[11_000:]
    one = make({"cloudFiles.schemaHints": "a BIGINT"}).put("p.parquet", broken)
    one.fails("FAILED_READ_FILE", "p.parquet")
    assert one.rows() == []


# --- old calendars (FF-24) ---


def test_days_of_the_julian_calendar_keep_their_names() -> None:
    days = {(1582, 10, 14): "1582-10-04", (1000, 1, 6): "1000-01-01", (1500, 3, 10): "1500-03-01"}  # 1500-02-29 was a day only then
    for day, expected in days.items():
        assert str(EPOCH + datetime.timedelta(julian_to_gregorian((datetime.date(*day) - EPOCH).days))) == expected


@pytest.mark.parametrize(("mode", "day"), [("LEGACY", datetime.date(1000, 1, 1)), ("CORRECTED", datetime.date(1000, 1, 6))])
def test_rebase_modes(make: Make, mode: str, day: datetime.date) -> None:
    moment = datetime.datetime(1000, 1, 6, 12)
    content = parquet(d=[datetime.date(1000, 1, 6)], l=[[datetime.date(1000, 1, 6)]], t=pa.array([moment], pa.timestamp("us", "UTC")))
    row = make({"datetimeRebaseMode": mode}).put("p.parquet", content).run().last()
    assert (row["d"], row["l"], row["t"].date()) == (day, [day], day)


@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED", "EXCEPTION"])
def test_FF24_timestamps_without_zone_are_never_moved(make: Make, mode: str) -> None:
    """Whatever the unit, the depth and the writer: `ns` cannot hold such days."""
    moment = datetime.datetime(1, 1, 1, 1, 2, 3)
    micros, millis = (pa.array([moment], pa.timestamp(unit)) for unit in ("us", "ms"))
    columns = {
        "us": micros,
        "ms": millis,
        "l": pa.array([[moment]], pa.list_(pa.timestamp("us"))),
        "s": pa.array([{"n": moment, "o": {"n": moment}}]),
        "m": pa.array([[(moment, moment)]], pa.map_(pa.timestamp("ms"), pa.timestamp("us"))),
    }
    table = pa.table(columns)
    legacy = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""}
    for metadata in ({}, {"org.apache.spark.version": "2.4.8"}, legacy):
        one = make({"datetimeRebaseMode": mode}).put("p.parquet", written(table.replace_schema_metadata(metadata)))
        row = one.run().last()
        expected = (moment, moment, [moment], {"n": moment, "o": {"n": moment}}, {moment: moment})
        assert (row["us"], row["ms"], row["l"], row["s"], row["m"]) == expected


def by_an_older_writer(file: bytes) -> bytes:
    """The file with a converted type as the only annotation of its one timestamp in microseconds, as parquet-mr wrote it for Spark 2."""
    logical = bytes.fromhex("4c8c111c2c00000000")  # Thrift: field 10 of the column, TIMESTAMP adjusted to UTC in microseconds
    size = int.from_bytes(file[-8:-4], "little")
    body, footer = file[: -8 - size], file[-8 - size : -8]
    assert footer.count(logical) == 1
    footer = footer.replace(logical, b"")
    return body + footer + len(footer).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize(("mode", "day"), [("LEGACY", datetime.date(1500, 1, 1)), ("CORRECTED", datetime.date(1500, 1, 10))])
def test_FF24_a_timestamp_with_a_converted_type_only_is_a_moment_and_moved_by_mode(make: Make, mode: str, day: datetime.date) -> None:
    stored = pa.table({"t": pa.array([datetime.datetime(1500, 1, 10, 6)], pa.timestamp("us", "UTC"))})
    file = by_an_older_writer(written(stored, store_schema=False))
    assert "is_from_converted_type=true" in str(pq.ParquetFile(io.BytesIO(file)).schema)
    one = make({"datetimeRebaseMode": mode}).put("a.parquet", file).run()
    assert (one.types()["t"], one.rows("t")) == ("timestamp", [datetime.datetime.combine(day, datetime.time(6))])
    make({"datetimeRebaseMode": "EXCEPTION"}).put("a.parquet", file).fails("FAILED_READ_FILE", "EXCEPTION")


def test_FF24_exception_refuses_old_moments_beside_old_local_timestamps(make: Make) -> None:
    moment = datetime.datetime(1500, 1, 1)
    content = parquet(n=pa.array([moment], pa.timestamp("us")), t=pa.array([moment], pa.timestamp("us", "UTC")))
    make({"datetimeRebaseMode": "EXCEPTION"}).put("p.parquet", content).fails("FAILED_READ_FILE", "1582-10-15")


def test_files_of_spark_3_need_no_rebase_and_exception_refuses_others(make: Make) -> None:
    day = datetime.date(1000, 1, 6)
    by_spark = pa.table({"d": [day]}).replace_schema_metadata({"org.apache.spark.version": "3.5.0"})
    assert make({"datetimeRebaseMode": "EXCEPTION"}).put("p.parquet", written(by_spark)).run().last()["d"] == day
    make({"datetimeRebaseMode": "EXCEPTION"}).put("p.parquet", parquet(d=[day])).fails("FAILED_READ_FILE", "1582-10-15")


def test_options_are_read_or_told(make: Make) -> None:
    one = make({"mergeSchema": "true"}).put("p.parquet", parquet(a=[1]))
    assert ["mergeSchema" in notice for notice in one.open().notices] == [True]
    with pytest.raises(LakeletError, match="CF_INVALID_OPTION_VALUE"):
        make({"datetimeRebaseMode": "no"}).open()
    with pytest.raises(LakeletError, match="NOT_SUPPORTED_YET"):
        make(hinted("v VARIANT")).open()


def test_FS33_without_a_rescued_column_another_spelling_fills_its_column_as_in_sparks_reader(make: Make) -> None:
    inner = pa.array([{"P": 1}], pa.struct([("P", pa.int64())]))
    file = parquet(ID=pa.array([1], pa.int64()), O=inner)
    struct = t.StructType([t.StructField("p", t.LongType())])
    kinds = t.StructType([t.StructField("id", t.LongType()), t.StructField("o", struct)])
    assert make(schema=kinds).put("a.parquet", file).run().rows("id", "o") == [(1, {"p": 1})]
    exact = make(schema=kinds)
    exact.confs = {"spark.sql.caseSensitive": "true"}
    assert exact.put("a.parquet", file).run().rows("id", "o") == [(None, None)]
    row = make({"rescuedDataColumn": "_r"}, kinds).put("a.parquet", file).run().last()
    assert (row["id"], rescued(row["_r"])) == (None, {"ID": 1, "O": {"P": 1}})
    both = make(schema=kinds).put("a.parquet", parquet(ID=pa.array([1], pa.int64()), id=pa.array([2], pa.int64())))
    assert both.run().rows("id") == [2]
