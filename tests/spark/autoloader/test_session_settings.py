"""Settings of the session reach every place where files are opened, as they reach Spark's own readers (AL-4)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from autoloading import Program, schema_of
from lakelet.autoloader.session_settings import source_settings
from lakelet.spark.session_clones import user_session

ZONE, KIND = "spark.sql.session.timeZone", "spark.sql.timestampType"
NOON = {"UTC": 12, "America/New_York": 16, "Asia/Kolkata": 6}
NTZ = {KIND: "TIMESTAMP_NTZ"}
OLD = date(1500, 1, 1)
TEXTS = {
    "json": '{"t":"2024-07-01 12:00:00","z":"2024-07-01T12:00:00Z"}\n',
    "csv": "t,z\n2024-07-01 12:00:00,2024-07-01T12:00:00Z\n",
    "xml": "<rows><row><t>2024-07-01 12:00:00</t><z>2024-07-01T12:00:00Z</z></row></rows>",
    "text": "2024-07-01 12:00:00\n",
}
SHARED = {
    "json": {"inferTimestamp": "true"},
    "csv": {"header": "true"},
    "xml": {"rowTag": "row"},
}
SETTINGS = [
    {ZONE: "America/New_York"},
    {ZONE: "Asia/Kolkata", **NTZ},
    NTZ,
    {"spark.sql.ansi.enabled": "false"},
    {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"},
    {"spark.sql.parquet.inferTimestampNTZ.enabled": "false"},
    {"spark.sql.parquet.binaryAsString": "true"},
    {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"},
]


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder per format, below it one of a partition with a file."""
    root = tmp_path_factory.mktemp("formats")
    folders = {name: root / name / "at=2024-07-01 12%3A00%3A00" for name in (*TEXTS, "parquet", "orc")}
    for name, folder in folders.items():
        folder.mkdir(parents=True)
        if name in TEXTS:
            (folder / f"a.{name}").write_text(TEXTS[name])
    moments = [datetime(2024, 7, 1, 12), datetime(1500, 1, 1, 1, 2, 3)]
    table = pa.table(
        {
            "day": pa.array([date(2024, 7, 1), OLD]),
            "t": pa.array(moments, pa.timestamp("us", "UTC")),
            "local": pa.array(moments, pa.timestamp("us")),
            "ms": pa.array(moments, pa.timestamp("ms")),
            "raw": pa.array([b"x", None]),
            "s": pa.array([{"n": moments[1], "b": b"y"}, None], pa.struct([("n", pa.timestamp("us")), ("b", pa.binary())])),
        }
    )
    pq.write_table(table, folders["parquet"] / "a.parquet")
    pyarrow.orc.write_table(pa.table({"day": pa.array([date(2024, 7, 1)]), "n": pa.array([1])}), folders["orc"] / "a.orc")
    return root


def plain(value: Any) -> Any:
    """A value of an Arrow table, moments in UTC without zone."""
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(timezone.utc).replace(tzinfo=None)
    return {name: plain(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def by_spark(session: Any, folder: Path, format: str) -> tuple[dict[str, str], list[Any]]:
    reader = session.read.format(format).options(**SHARED.get(format, {}))
    frame = (
        reader.option("inferSchema", "true").load(str(folder))
        if format != "orc"
        else reader.schema("n BIGINT").load(str(folder)).select("n")
    )
    names = sorted(frame.columns)
    types = {name: frame.schema[name].dataType.simpleString() for name in names}
    rows = [tuple(plain(row[name]) for name in names) for row in frame.toArrow().to_pylist()]
    return types, sorted(rows, key=repr)


def by_cloud_files(session: Any, folder: Path, format: str, root: Path) -> tuple[dict[str, str], list[Any]]:
    schema = schema_of("n BIGINT") if format == "orc" else None
    options = {"cloudFiles.format": format, "cloudFiles.inferColumnTypes": "true", **SHARED.get(format, {})}
    one = Program(folder, root, options, schema, source_settings(session)).run()
    types = {name: kind for name, kind in one.types().items() if name != "_rescued_data"}
    return types, [row if isinstance(row, tuple) else (row,) for row in one.rows(*sorted(types))]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda found: " ".join(f"{k.rpartition('.')[2]}={v}" for k, v in found.items()))
def test_AL4_each_format_is_read_as_by_sparks_reader_under_each_setting(
    spark: Any, landing: Path, tmp_path: Path, settings: dict[str, str]
) -> None:
    base = {"spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED"}  # the default of Auto Loader's option is LEGACY
    with user_session(spark, {**base, **settings}) as session:
        for format in (*TEXTS, "parquet", "orc"):
            expected = by_spark(session, landing / format, format)
            assert by_cloud_files(session, landing / format, format, tmp_path / format) == expected, format


PIPELINE = """
import dlt
from pyspark.sql import functions as F
IN = spark.conf.get("landing")
{set}
HINT = {{"cloudFiles.format": "json", "cloudFiles.schemaHints": "t timestamp"}}

@dlt.table
def python(): return spark.readStream.format("cloudFiles").options(**HINT).load(IN)

@dlt.table(spark_conf={{"spark.sql.session.timeZone": "Asia/Kolkata"}})
def of_dataset(): return spark.readStream.format("cloudFiles").options(**HINT).load(IN)

@dlt.table
def option(): return spark.readStream.format("cloudFiles").options(**HINT, timeZone="Asia/Kolkata").load(IN)

@dlt.table
def batch(): return spark.sql(f"SELECT t FROM read_files('{{IN}}', format => 'json', schema => 't timestamp')")

@dlt.table
def stream(): return spark.sql(f"SELECT t FROM STREAM read_files('{{IN}}', format => 'json', schemaHints => 't timestamp')")

@dlt.table
def cloud(): return spark.sql(f"SELECT t FROM STREAM cloud_files('{{IN}}', 'json', map('schema', 't timestamp'))")

@dlt.table
def column():
    texts = spark.readStream.format("cloudFiles").option("cloudFiles.format", "text").load(IN)
    found = F.from_json("value", None, {{"schemaLocationKey": "k", "schemaHints": "t timestamp"}})
    return texts.select(found.alias("o")).select("o.t")
"""


def hours(project: Any) -> dict[str, int]:
    names = ("python", "of_dataset", "option", "batch", "stream", "cloud", "column")
    return {name: project.rows(name, "t")[0].hour for name in names}


@pytest.mark.in_ci(every=3)
@pytest.mark.long
@pytest.mark.parametrize("way", ["configuration", "spark.conf.set", "SET"])
def test_AL4_the_time_zone_reaches_every_source_whoever_sets_it(project: Callable[..., Any], way: str) -> None:
    zone = "America/New_York"
    lines = {"spark.conf.set": f'spark.conf.set("{ZONE}", "{zone}")', "SET": f'spark.sql("SET {ZONE}={zone}")'}
    made = project(PIPELINE.format(set=lines.get(way, "")))
    if way == "configuration":
        made.parameters[ZONE] = zone
    made.arrive("a.json", {"t": "2024-07-01 12:00:00"})
    found = hours(made.run())
    expected = dict.fromkeys(found, NOON[zone]) | {"of_dataset": NOON["Asia/Kolkata"], "option": NOON["Asia/Kolkata"]}
    assert found == expected


FILES = """
import dlt

@dlt.table
def python(): return spark.readStream.format("cloudFiles").option("cloudFiles.format", "parquet").schema("t timestamp").load("{folder}")

@dlt.table
def batch(): return spark.sql("SELECT t FROM read_files('{folder}', format => 'parquet', schema => 't timestamp')")

@dlt.table
def stream(): return spark.sql("SELECT t FROM STREAM read_files('{folder}', format => 'parquet', schema => 't timestamp')")

@dlt.table(spark_conf={{"spark.sql.parquet.int96RebaseModeInRead": "LEGACY"}})
def of_dataset(): return spark.readStream.format("cloudFiles").option("cloudFiles.format", "parquet").schema("t timestamp").load("{folder}")
"""


@pytest.mark.long
def test_AL4_damaged_files_and_old_moments_are_read_as_the_configuration_says(project: Callable[..., Any], tmp_path: Path) -> None:
    """The stored moment is 1500-01-10, which the old calendar calls 1500-01-01."""
    folder = tmp_path / "old"
    folder.mkdir()
    table = pa.table({"t": pa.array([datetime(1500, 1, 10, 12)], pa.timestamp("us", "UTC"))})
    pq.write_table(table, folder / "a.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    (folder / "b.parquet").write_bytes(b"PAR1 damaged PAR1")
    made = project(FILES.format(folder=folder))
    made.parameters |= {"spark.sql.files.ignoreCorruptFiles": "true", "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED"}
    made.run()
    days = {name: [row.date() for row in made.rows(name, "t")] for name in ("python", "batch", "stream", "of_dataset")}
    corrected = [date(1500, 1, 10)]
    assert days == {"python": corrected, "batch": corrected, "stream": corrected, "of_dataset": [date(1500, 1, 1)]}


def test_AL4_a_file_that_is_gone_before_it_is_read_is_passed_over_where_the_session_says_so(tmp_path: Path) -> None:
    def one(value: str) -> Program:
        confs = {"spark.sql.files.ignoreMissingFiles": value}
        made = Program(tmp_path / value / "in", tmp_path / value, {}, "id INT", confs)
        return made.put("a.json", '{"id":1}').put("b.json", '{"id":2}')

    kept = one("true")
    assert kept.run(planned=lambda: kept.remove("a.json")).rows("id") == [2]
    strict = one("false")
    strict.fails("FAILED_READ_FILE", "a.json", planned=lambda: strict.remove("a.json"))


def test_AL4_the_text_of_a_broken_line_is_in_the_column_that_the_session_names(spark: Any, tmp_path: Path) -> None:
    confs = {"spark.sql.columnNameOfCorruptRecord": "bad"}
    one = Program(tmp_path / "in", tmp_path, {}, "id INT, bad STRING", confs).put("a.json", '{"id":1}\n{broken\n').run()
    assert one.rows("id", "bad") == [(1, None), (None, "{broken")]
