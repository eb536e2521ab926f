"""Times as sequences, keys and versions of change tables, whatever time zone the process is in (docs/semantics/change-options.md)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.long

PIPELINE = """
import datetime as dt
import dlt
from pyspark import pipelines as dp

def declare(table, columns, options):
    @dlt.view(name="feed_of_" + table)
    def feed():
        return spark.readStream.schema(columns).json(spark.conf.get("landing") + "/" + table)

    dlt.create_streaming_table(table, table_properties={"delta.enableChangeDataFeed": "true"})
    options = {"sequence_by": "at", "apply_as_truncates": "op = 't'", "except_column_list": ["op"], **options}
    dp.create_auto_cdc_flow(table, "feed_of_" + table, **options)

declare("plain", "id INT, v STRING, at TIMESTAMP_NTZ, op STRING", {"keys": ["id"]})
declare("zoned", "id INT, v STRING, at TIMESTAMP, op STRING", {"keys": ["id"]})
declare("days", "id INT, v STRING, at DATE, op STRING", {"keys": ["id"]})
declare("keyed", "id TIMESTAMP, v STRING, at INT, op STRING", {"keys": ["id"]})
declare("keyed_plain", "id TIMESTAMP_NTZ, v STRING, at INT, op STRING", {"keys": ["id"]})
declare("keyed_days", "id DATE, v STRING, at INT, op STRING", {"keys": ["id"]})

MOMENTS = [dt.datetime(1, 1, 1), dt.datetime(2024, 11, 3, 1, 30), dt.datetime(2024, 11, 3, 1, 30, fold=1)]

def copies(last):
    number = 0 if last is None else 1 + next(n for n, m in enumerate(MOMENTS) if (m, m.fold) == (last, last.fold))
    if number == len(MOMENTS):
        return None
    return spark.createDataFrame([(1, f"v{number}")], "id INT, v STRING"), MOMENTS[number]

dlt.create_streaming_table("copied")
dp.create_auto_cdc_from_snapshot_flow("copied", copies, ["id"], stored_as_scd_type=2)
"""


@pytest.fixture
def far_from_greenwich(spark) -> Iterator[None]:
    """The process in a zone with summer time, the session in another one."""
    before, session = os.environ.get("TZ"), spark.conf.get("spark.sql.session.timeZone")
    os.environ["TZ"] = "America/New_York"
    time.tzset()
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    yield
    spark.conf.set("spark.sql.session.timeZone", session)
    os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)
    time.tzset()


def test_times_mean_the_same_in_every_zone_at_every_hour_and_in_every_century(project, far_from_greenwich):
    p = project(PIPELINE)
    early, late = "2024-10-27T02:30:00+02:00", "2024-10-27T02:30:00+01:00"  # the hour that occurs twice
    ages = ("0001-01-01T00:00:00", "1500-02-28T12:00:00", "1850-01-01T00:00:00")
    p.arrive("1.json", {"id": 1, "v": "a", "at": "2024-01-01T00:30:00"}, {"id": 2, "v": "b", "at": "0001-01-01T00:00:00"}, folder="plain")
    p.arrive(
        "1.json",
        {"id": 1, "v": "a", "at": early},
        {"id": 2, "v": "b", "at": late},
        {"id": 3, "v": "c", "at": "0001-01-01T00:00:00Z"},
        folder="zoned",
    )
    p.arrive("1.json", {"id": 1, "v": "a", "at": "0001-01-01"}, {"id": 2, "v": "b", "at": "1500-03-01"}, folder="days")
    keyed = [{"id": f"{age}Z", "v": "a", "at": 1} for age in ages] + [{"id": late, "v": "a", "at": 1}]
    p.arrive("1.json", *keyed, folder="keyed")
    p.arrive("1.json", *({"id": age, "v": "a", "at": 1} for age in ages), folder="keyed_plain")
    p.arrive("1.json", *({"id": age[:10], "v": "a", "at": 1} for age in ages), folder="keyed_days")
    p.run()

    p.arrive("2.json", {"op": "t", "at": "2024-01-01T00:00:00"}, folder="plain")
    p.arrive("2.json", {"op": "t", "at": late}, folder="zoned")
    p.arrive("2.json", {"op": "t", "at": "1500-03-01"}, folder="days")
    p.arrive("2.json", *({**event, "v": "b", "at": 2} for event in keyed), folder="keyed")
    p.arrive("2.json", *({"id": age, "v": "b", "at": 2} for age in ages), folder="keyed_plain")
    p.arrive("2.json", *({"id": age[:10], "v": "b", "at": 2} for age in ages), folder="keyed_days")
    p.run()
    values = {name: [row[1] for row in _texts(p, name, "id", "v")] for name in ("plain", "zoned", "days")}
    assert values == {"plain": ["a"], "zoned": ["b"], "days": ["b"]}
    assert [row[1] for row in _texts(p, "keyed", "id", "v")] == ["b"] * 4
    assert [row[1] for row in _texts(p, "keyed_plain", "id", "v")] == ["b"] * 3
    assert [row[1] for row in _texts(p, "keyed_days", "id", "v")] == ["b"] * 3
    versions = [tuple(map(int, row)) for row in _texts(p, "copied", "unix_micros(__START_AT)") if int(row[0]) > 0]
    assert versions == [(1730611800_000000,), (1730615400_000000,)]  # half past one in New York, before and after the clocks went back


def _texts(p, name: str, *columns: str) -> list[tuple[str, ...]]:
    """Rows as text, as Spark writes it."""
    table = p.spark.read.format("delta").load(str(p.path(name)))
    return sorted(tuple(row) for row in table.selectExpr(*(f"CAST({c} AS STRING)" for c in columns)).collect())
