"""A pipeline whose landing zone, schema log, ledger, checkpoints, tables and event log all lie on S3; the master is this machine."""

from __future__ import annotations

import json

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


def test_two_updates_with_a_new_column_in_between_an_idle_one_and_a_full_refresh(lake: Lake) -> None:
    lake.write(PIPELINE)
    words = ("pipeline.py", "--param", f"landing={lake.s3.uri('landing', 's3')}")
    lake.s3.put("landing/a.json", '{"id":1,"kind":"x","at":"2024-01-01T00:00:00"}\n{"kind":"z","at":"2024-01-01T00:00:00"}\n')
    assert set(lake.run(*words).values()) == {"COMPLETED"}
    assert [(r["id"], r["file"]) for r in lake.rows("raw")] == [(1, lake.s3.uri("landing/a.json", "s3"))]

    lake.s3.put(
        "landing/b.json", '{"id":2,"kind":"x","at":"2024-01-01T00:10:00","extra":1.5}\n{"id":1,"kind":"y","at":"2024-01-01T00:10:00"}\n'
    )
    assert set(lake.run(*words).values()) == {"COMPLETED"}
    assert sorted((r["id"], r["kind"], r["extra"]) for r in lake.rows("raw") if r["extra"] or r["kind"] == "y") == [
        (1, "y", None),
        (2, "x", 1.5),
    ]
    assert sorted(r["id"] for r in lake.rows("newest")) == [1, 2]
    assert sorted((r["kind"], r["n"]) for r in lake.rows("per_kind")) == [("x", 2), ("y", 1)]

    before = lake.s3.objects()
    assert set(lake.run(*words).values()) == {"IDLE"}
    assert [key for key in lake.s3.objects() if key not in before and "/system/" not in key] == []

    assert set(lake.run(*words, "--full-refresh-all").values()) == {"COMPLETED"}
    assert len(lake.rows("raw")) == 3
    found = json.loads(lake.lakelet("sql", "SELECT count(*) AS n FROM newest", "--json", "--storage", lake.storage))
    assert found == [{"n": 2}]
    types = [json.loads(line)["event_type"] for line in lake.lakelet("events", "--all", "--json", "--storage", lake.storage).splitlines()]
    assert types.count("create_update") == 4
    assert "schema_change" in types
    assert not [key for key in lake.s3.objects() if "lease-" in key or "claim" in key]


def test_a_second_update_is_refused_while_another_machine_holds_the_storage(lake: Lake) -> None:
    lake.write(PIPELINE)
    holder = {
        "format": 1,
        "update_id": "other",
        "host": "elsewhere",
        "pid": 1,
        "process_started": 0.0,
        "since": "2024-01-01T00:00:00.000000",
    }
    lake.s3.put("lake/system/lease-other.json", json.dumps(holder))
    words = ("run", "pipeline.py", "--param", f"landing={lake.s3.uri('landing')}", "--storage", lake.storage)
    lake.lakelet(*words, expect=1)
    assert [key for key in lake.s3.objects() if not key.startswith("lake/system/lease-other")] == []
