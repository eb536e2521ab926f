"""A pipeline whose landing zone, schema log, ledger, checkpoints, tables and event log all lie on a store; the master is this machine."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.cloud.conftest import Lake

PIPELINE = """
    import dlt
    from pyspark.sql import functions as F

    @dlt.table
    @dlt.expect_or_drop("has id", "id IS NOT NULL")
    def raw():
        files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
        return files.load(spark.conf.get("landing")).select("*", F.col("_metadata.file_path").alias("file"))

    @dlt.table
    def newest():
        return spark.readStream.table("raw").withColumn("at", F.to_timestamp("at")).withWatermark("at", "1 hour").dropDuplicates(["id"])

    @dlt.table
    def per_kind():
        return spark.read.table("raw").groupBy("kind").agg(F.count("*").alias("n"))
"""
FIRST = '{"id":1,"kind":"x","at":"2024-01-01T00:00:00"}\n{"kind":"z","at":"2024-01-01T00:00:00"}\n'
SECOND = '{"id":2,"kind":"x","at":"2024-01-01T00:10:00","extra":1.5}\n{"id":1,"kind":"y","at":"2024-01-01T00:10:00"}\n'


@pytest.fixture(params=["s3", "google", "azure", "hdfs"])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(tmp_path, request.getfixturevalue(request.param))


def test_two_updates_with_a_new_column_in_between_an_idle_one_and_a_full_refresh(stored: Lake) -> None:
    lake, store = stored, stored.store
    landing = store.uri("landing").replace("s3a://", "s3://")
    lake.write(PIPELINE)
    words = ("pipeline.py", "--param", f"landing={landing}")
    lake.deliver("a.json", FIRST)
    assert set(lake.run(*words).values()) == {"COMPLETED"}
    assert [(r["id"], r["file"]) for r in lake.rows("raw")] == [(1, f"{landing}/a.json")]

    lake.deliver("b.json", SECOND)
    assert set(lake.run(*words).values()) == {"COMPLETED"}
    found = sorted((r["id"], r["kind"], r["extra"]) for r in lake.rows("raw") if r["extra"] or r["kind"] == "y")
    assert found == [(1, "y", None), (2, "x", 1.5)]
    assert sorted(r["id"] for r in lake.rows("newest")) == [1, 2]
    assert sorted((r["kind"], r["n"]) for r in lake.rows("per_kind")) == [("x", 2), ("y", 1)]

    before = store.objects()
    assert set(lake.run(*words).values()) == {"IDLE"}
    assert [key for key in store.objects() if key not in before and "/system/" not in key] == []

    assert set(lake.run(*words, "--full-refresh-all").values()) == {"COMPLETED"}
    assert len(lake.rows("raw")) == 3
    assert json.loads(lake.lakelet("sql", "SELECT count(*) AS n FROM newest", "--json", "--storage", lake.storage)) == [{"n": 2}]
    page = lake.folder / "report"
    lake.lakelet("report", "--out", str(page), "--storage", lake.storage)
    assert "per_kind" in "".join(file.read_text() for file in page.rglob("*.js*"))
    lake.lakelet("maintain", "--storage", lake.storage)
    assert len(lake.rows("raw")) == 3
    events = lake.lakelet("events", "--all", "--json", "--storage", lake.storage)
    types = [json.loads(line)["event_type"] for line in events.splitlines()]
    assert types.count("create_update") == 4
    assert "schema_change" in types
    assert not [key for key in store.objects() if "lease-" in key or "claim" in key]
    stored = b"\n".join(store.content(key) for key in store.objects())
    assert not [line for line in store.secrets if line.encode() in stored or line in events]


@pytest.mark.parametrize("failpoint", ["batch.files_written", "batch.committed@2", "view.committed"])
def test_an_update_killed_in_the_middle_leaves_what_the_next_one_completes(failpoint: str, stored: Lake) -> None:
    lake = stored
    lake.write(PIPELINE)
    words = ("pipeline.py", "--param", f"landing={lake.landing}")
    lake.deliver("a.json", FIRST)
    lake.deliver("b.json", SECOND)
    process = lake.start(*words, failpoint=failpoint)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == -signal.SIGKILL, errors[-3000:]

    lake.run(*words)
    assert sorted((r["id"], r["kind"]) for r in lake.rows("raw")) == [(1, "x"), (1, "y"), (2, "x")]
    assert sorted(r["id"] for r in lake.rows("newest")) == [1, 2]
    assert sorted((r["kind"], r["n"]) for r in lake.rows("per_kind")) == [("x", 2), ("y", 1)]
    assert set(lake.run(*words).values()) == {"IDLE"}


def test_a_second_update_is_refused_while_another_machine_holds_the_storage(stored: Lake) -> None:
    lake = stored
    lake.write(PIPELINE)
    holder = {
        "format": 1,
        "update_id": "other",
        "host": "elsewhere",
        "pid": 1,
        "process_started": 0.0,
        "since": "2024-01-01T00:00:00.000000",
    }
    lake.store.put("lake/system/lease-other.json", json.dumps(holder))
    words = ("run", "pipeline.py", "--param", f"landing={lake.store.uri('landing')}", "--storage", lake.storage)
    lake.lakelet(*words, expect=1)
    assert [key for key in lake.store.objects() if not key.startswith("lake/system/lease-other")] == []
