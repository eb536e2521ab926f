"""Settings of the session as options, switches, notices and errors, without Spark (AL-4)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from autoloading import INFER, Program, parquet, rescued
from lakelet.autoloader.session_settings import BINARY_AS_STRING, LOCAL_TIMESTAMPS, NANOS_AS_LONG, NO_LOCAL_PARQUET
from lakelet.autoloader.source_options import AutoLoaderOptions, parse_options
from lakelet.autoloader.source_spec import SourceSpec
from lakelet.base.errors import LakeletError, Location

PARSER = "spark.sql.legacy.timeParserPolicy"
MOMENT = datetime(1500, 1, 1, 1, 2, 3)


def parsed(format: str, confs: dict[str, str], **options: str) -> AutoLoaderOptions:
    row = {"rowTag": "r"} if format == "xml" else {}
    return parse_options(SourceSpec("/in", {"cloudFiles.format": format, **row, **options}, where=Location("p.py", 3)), confs)


@pytest.mark.parametrize(
    ("format", "key", "value"),
    [
        ("parquet", "spark.sql.parquet.int96AsTimestamp", "false"),
        ("parquet", "spark.sql.parquet.int96TimestampConversion", "true"),
        ("avro", "spark.sql.legacy.avro.allowIncompatibleSchema", "true"),
        ("json", "spark.sql.json.enablePartialResults", "false"),
        ("json", "spark.sql.legacy.json.allowEmptyString.enabled", "true"),
        ("xml", "spark.sql.legacy.useLegacyXMLParser", "true"),
        ("csv", "spark.sql.files.supportSecondOffsetFormat", "false"),
    ],
)
def test_AL4_a_setting_that_a_format_cannot_honour_is_refused_by_name(format: str, key: str, value: str) -> None:
    with pytest.raises(LakeletError, match="NOT_SUPPORTED_YET") as caught:
        parsed(format, {key: value})
    assert f"{key} = {value}" in str(caught.value)
    assert "p.py, line 3" in str(caught.value)
    assert parsed("text", {key: value}).notices == ()


def test_AL4_a_legacy_parser_of_dates_is_refused_beside_a_pattern_and_noticed_without() -> None:
    (notice,) = parsed("csv", {PARSER: "LEGACY"}).notices
    assert PARSER in notice
    assert parsed("csv", {PARSER: "corrected"}, dateFormat="dd.MM.yyyy").notices == ()
    with pytest.raises(LakeletError, match="NOT_SUPPORTED_YET"):
        parsed("csv", {PARSER: "LEGACY"}, dateFormat="dd.MM.yyyy")
    (notice,) = parsed("json", {"spark.sql.caseSensitive": "true"}).notices
    assert "spark.sql.caseSensitive" in notice


def test_AL4_an_option_wins_over_its_setting_and_a_wrong_setting_is_named() -> None:
    confs = {"spark.sql.columnNameOfCorruptRecord": "bad", "spark.sql.parquet.datetimeRebaseModeInRead": "exception"}
    assert parsed("json", confs).reader.corrupt_column == "bad"
    assert parsed("json", confs, columnNameOfCorruptRecord="worse").reader.corrupt_column == "worse"
    assert parsed("parquet", confs).reader.format_options["datetimerebasemode"] == "EXCEPTION"
    assert parsed("avro", confs).reader.format_options["datetimerebasemode"] == "LEGACY"
    assert parsed("json", {"spark.sql.json.enableExactStringParsing": "false"}).reader.format_options["nestedtext"] == "compact"
    with pytest.raises(LakeletError, match=r"setting spark\.sql\.files\.ignoreCorruptFiles"):
        parsed("json", {"spark.sql.files.ignoreCorruptFiles": "perhaps"})


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Program]:
    def program(format: str, **options: str) -> Program:
        return Program(tmp_path / "in", tmp_path, {"cloudFiles.format": format, **INFER, **options})

    return program


def test_AL4_a_parquet_column_keeps_its_stored_type_when_settings_change(make: Callable[..., Program]) -> None:
    inner = pa.array([{"b": b"x", "l": MOMENT}], pa.struct([("b", pa.binary()), ("l", pa.timestamp("us"))]))
    columns = {"b": pa.array([b"x"]), "n": pa.array([7], pa.timestamp("ns", "UTC")), "s": inner}
    one = make("parquet")
    one.confs = {BINARY_AS_STRING: "true", NANOS_AS_LONG: "true", NO_LOCAL_PARQUET: "false"}
    expected = {"b": "string", "n": "bigint", "s": "struct<b:string,l:timestamp>", "_rescued_data": "string"}
    for number, confs in enumerate([one.confs, {}, one.confs]):
        one.confs = confs
        one.put(f"{number}.parquet", parquet(**columns)).run()
        assert one.types() == expected
        row = one.last()
        assert (row["b"], row["n"], row["s"]["b"], row["_rescued_data"]) == ("x", 7, "x", None)
    one.put("new.parquet", parquet(**columns, more=pa.array([b"y"]))).stops()
    assert one.types() == {**expected, "more": "string", "_rescued_data": "string"}


def test_AL4_bytes_that_are_no_utf8_are_texts_as_they_are_and_replaced_in_the_rescued_column(make: Callable[..., Program]) -> None:
    one = make("parquet", **{"cloudFiles.schemaHints": "n INT"})
    one.confs = {BINARY_AS_STRING: "true"}
    one.put("a.parquet", parquet(b=pa.array([b"a\xff"]), n=pa.array([b"b\xfe"]))).run()
    assert one.last()["b"] == "a\ufffd"
    assert (one.last()["n"], rescued(one.last()["_rescued_data"])) == (None, {"n": "b\ufffd"})


def test_AL4_settings_made_later_change_no_stored_type_but_that_of_new_columns(make: Callable[..., Program]) -> None:
    one = make("csv").put("a.csv", "t\n2024-07-01 12:00:00\n").run()
    one.confs = {LOCAL_TIMESTAMPS: "TIMESTAMP_NTZ", "spark.sql.session.timeZone": "America/New_York"}
    one.put("b.csv", "t,u\n2024-07-01 12:00:00,2024-07-01 12:00:00\n").stops()
    assert one.run().types() == {"t": "timestamp", "u": "timestamp_ntz", "_rescued_data": "string"}
    assert (one.last()["t"].hour, one.last()["u"].hour) == (16, 12)


def test_AL4_local_timestamps_meet_dates_and_moments_in_the_wider_type(make: Callable[..., Program]) -> None:
    one = make("csv")
    one.confs = {LOCAL_TIMESTAMPS: "TIMESTAMP_NTZ"}
    rows = ["2024-07-01,2024-07-01T12:00:00,2024-07-01", "2024-07-01 12:00:00,2024-07-01T12:00:00Z,2024-07-02"]
    one.put("a.csv", "\n".join(["date_and_local,local_and_moment,day", *rows]))
    assert one.types() == {
        "date_and_local": "timestamp_ntz", "local_and_moment": "timestamp", "day": "date", "_rescued_data": "string",
    }  # fmt: skip


@pytest.mark.parametrize("hint", ["t TIMESTAMP", "t.x TIMESTAMP", "t ARRAY<TIMESTAMP>", "t STRUCT<x:TIMESTAMP>"])
def test_AL4_timestamp_in_a_hint_means_what_it_means_in_the_session(make: Callable[..., Program], hint: str) -> None:
    one: Any = make("json", **{"cloudFiles.schemaHints": hint})
    one.confs = {LOCAL_TIMESTAMPS: "TIMESTAMP_NTZ"}
    one.put("a.json", '{"id":1}\n')
    assert "timestamp_ntz" in one.types()["t"]
