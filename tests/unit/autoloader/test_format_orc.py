"""ORC files: declared columns, types, stripes, and what is rescued (FF-26)."""

from __future__ import annotations

import datetime
import io
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_type

from autoloading import Program, rescued
from lakelet.autoloader.discovery.files import files_for
from lakelet.autoloader.formats.typed.orc import OrcReader
from lakelet.autoloader.source_spec import FilePart
from lakelet.base.errors import LakeletError

Make = Callable[..., Program]
RESCUE = {"rescuedDataColumn": "_rescued_data"}


@pytest.fixture
def make(tmp_path: Path) -> Make:
    made: list[int] = []

    def program(schema: Any = None, options: Mapping[str, str] | None = None, confs: Mapping[str, str] | None = None) -> Program:
        made.append(1)
        root = tmp_path / str(len(made))
        (root / "in").mkdir(parents=True)
        return Program(root / "in", root, {"cloudFiles.format": "orc", **(options or {})}, schema, confs)

    return program


def content(*, stripe_size: int = 64 << 20, **columns: Any) -> bytes:
    sink = io.BytesIO()
    orc.write_table(pa.table(columns), sink, stripe_size=stripe_size)
    return sink.getvalue()


def fields(**kinds: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in kinds.items()])


def chunks(one: Program) -> list[Any]:
    """What the reader makes of the folder's one file."""
    spec = one.open().reader_spec()
    wanted = [(f.name, f.dataType, to_arrow_type(f.dataType)) for f in one.open().columns().data.fields]
    path = next(Path(one.folder).iterdir())
    return list(OrcReader(spec, wanted, files_for(str(path))[0], frozenset()).chunks(FilePart(str(path), path.stat().st_size, 0)))


def test_the_columns_have_to_be_declared(make: Make) -> None:
    with pytest.raises(LakeletError, match="CF_UNSUPPORTED_FORMAT_FOR_SCHEMA_INFERENCE"):
        make().put("a.orc", content(a=[1])).types()
    with pytest.raises(LakeletError, match="CF_UNSUPPORTED_SCHEMA_EVOLUTION_MODE"):
        make("a BIGINT", {"cloudFiles.schemaEvolutionMode": "addNewColumns"}).open()


def test_values_of_every_type(make: Make) -> None:
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, 678901)
    kinds = fields(
        b=t.BooleanType(), i8=t.ByteType(), i16=t.ShortType(), i=t.IntegerType(), l=t.LongType(), f=t.FloatType(), d=t.DoubleType(),
        s=t.StringType(), y=t.BinaryType(), day=t.DateType(), dec=t.DecimalType(9, 2), ts=t.TimestampType(),
        tz=t.TimestampType(), a=t.ArrayType(t.LongType()), m=t.MapType(t.StringType(), t.IntegerType()), o=fields(x=t.StringType()),
    )  # fmt: skip
    values = {
        "b": pa.array([True]), "i8": pa.array([1], pa.int8()), "i16": pa.array([2], pa.int16()), "i": pa.array([3], pa.int32()),
        "l": pa.array([2**40]), "f": pa.array([1.5], pa.float32()), "d": pa.array([0.1]), "s": pa.array(["x"]), "y": pa.array([b"\xff"]),
        "day": pa.array([moment.date()]), "dec": pa.array([Decimal("1.25")], pa.decimal128(9, 2)), "ts": pa.array([moment]),
        "tz": pa.array([moment], pa.timestamp("us", "UTC")), "a": pa.array([[1, None]]),
        "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), "o": pa.array([{"x": "y"}]),
    }  # fmt: skip
    row = make(kinds, RESCUE).put("a.orc", content(**values)).run().last()
    assert row["_rescued_data"] is None
    assert (row["ts"], row["tz"], row["day"]) == (moment, moment, moment.date())
    assert (row["i8"], row["i16"], row["i"], row["l"], row["f"], row["d"], row["dec"]) == (1, 2, 3, 2**40, 1.5, 0.1, Decimal("1.25"))
    assert (row["b"], row["s"], row["y"], row["a"], row["m"], row["o"]) == (True, "x", b"\xff", [1, None], {"k": 1}, {"x": "y"})


def test_timestamps_are_moments_whatever_the_zone_of_the_session(make: Make) -> None:
    one = make(fields(ts=t.TimestampType(), n=t.TimestampNTZType()), RESCUE, confs={"spark.sql.session.timeZone": "Europe/Paris"})
    noon = datetime.datetime(2024, 1, 2, 12)
    row = one.put("a.orc", content(ts=pa.array([noon]), n=pa.array([noon]))).run().last()
    assert (row["ts"], row["n"], rescued(row["_rescued_data"])) == (noon, None, {"n": "2024-01-02T12:00:00Z"})


@pytest.mark.parametrize("rescue", [True, False])
def test_E05_E06_other_types_and_other_columns_are_rescued_where_asked(make: Make, rescue: bool) -> None:
    one = make("id INT,v STRING,late DOUBLE", RESCUE if rescue else {})
    row = one.put("a.orc", content(id=pa.array([1]), v=["x"], c=[True], V=["other"])).run().last()
    assert (row["id"], row["v"], row["late"]) == (None, "x", None)
    assert rescued(row.get("_rescued_data"), "a.orc") == ({"id": 1, "c": True, "V": "other"} if rescue else None)


def test_stripes_follow_each_other_and_records_are_numbered_through(make: Make) -> None:
    file = content(stripe_size=1024, a=pa.array(range(20_000)))
    assert orc.ORCFile(io.BytesIO(file)).nstripes > 1
    one = make("a INT", RESCUE).put("a.orc", file).run()
    assert sorted(rescued(row["_rescued_data"])["a"] for row in one.batches[0]) == list(range(20_000))
    assert sorted(mark for chunk in chunks(one) for mark in chunk.marks) == list(range(1, 20_001))


@pytest.mark.parametrize("options", [{}, RESCUE], ids=["plain", "rescue"])
def test_FF26_a_file_with_none_of_the_columns_has_all_its_rows(make: Make, options: dict[str, str]) -> None:
    file = content(stripe_size=1024, ID=pa.array(range(20_000)))
    one = make("id INT,s STRING", options).put("a.orc", file).run()
    assert (len(one.rows()), set(one.rows("id", "s"))) == (20_000, {(None, None)})
    nested = t.StructType([t.StructField("o", fields(k=t.LongType()))])
    two = make(nested, options).put("a.orc", content(o=pa.array([{"other": 1}, None]))).run()
    assert two.rows("o") == [None, {"k": None}]


def test_FF26_days_before_1582_are_those_that_the_writer_meant(make: Make) -> None:
    """The C++ library writes the new calendar. Java's writes the old one: test_autoloader_typed.py reads its files."""
    days = [datetime.date(1500, 1, 1), datetime.date(1582, 10, 14), datetime.date(1582, 10, 15), datetime.date(1, 1, 1)]
    one = make(fields(day=t.DateType())).put("a.orc", content(day=pa.array(days))).run()
    assert [row["day"] for row in one.batches[0]] == days


def test_D10_damaged_and_empty_files(make: Make) -> None:
    make("a BIGINT").put("a.orc", b"ORC nothing ORC").fails("FAILED_READ_FILE", "a.orc")
    assert make("a BIGINT").put("a.orc", b"").run().rows() == []


def test_mergeSchema_is_told_to_have_no_effect(make: Make) -> None:
    (notice,) = make("a BIGINT", {"mergeSchema": "true"}).open().notices
    assert "mergeSchema" in notice


def test_FF26_a_moment_out_of_range_stops_only_where_its_column_is_read(make: Make) -> None:
    moments = pa.array([datetime.datetime(1500, 1, 1), datetime.datetime(2024, 1, 1)], pa.timestamp("us"))
    file = content(id=[1, 2], t=moments, day=[datetime.date(1500, 1, 1), None])
    one = make(fields(id=t.LongType(), day=t.DateType())).put("a.orc", file).run()
    assert one.rows("id", "day") == [(1, datetime.date(1500, 1, 1)), (2, None)]
    assert make(fields(none=t.LongType())).put("a.orc", file).run().rows("none") == [None, None]
    make(fields(t=t.TimestampType())).put("a.orc", file).fails("FAILED_READ_FILE", "before 1677-09-21")
    assert make(fields(t=t.TimestampType()), {"ignoreCorruptFiles": "true"}).put("a.orc", file).run().rows("t") == []


def test_FF20_a_name_with_a_dot_is_no_path(make: Make) -> None:
    nested = pa.array([{"b": 1}], pa.struct([("b", pa.int64())]))
    file = content(**{"a": nested, "a.b": [2], "c": [3]})
    assert make(fields(**{"a.b": t.LongType(), "c": t.LongType()})).put("a.orc", file).run().rows("a.b", "c") == [(2, 3)]
