"""A store that goes away in the middle of a step: a named error, nothing lost, the next update repairs (ST-9)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cloud.conftest import Lake
from tests.s3 import S3Server
from tests.s3_gate import Gate, s3_gate

PIPELINE = """
    import dlt

    @dlt.table
    @dlt.expect_or_drop("has id", "id IS NOT NULL")
    def raw():
        return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
                .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")).select("id", "text"))

    @dlt.table
    def counts():
        return spark.read.table("raw").groupBy().count()
"""
# A store that does not answer is given up at once; by default its clients try again for minutes.
IMPATIENT = """
spark.hadoop.fs.s3a.attempts.maximum 1
spark.hadoop.fs.s3a.retry.limit 1
spark.hadoop.fs.s3a.retry.interval 10ms
spark.hadoop.fs.s3a.connection.timeout 3s
"""
NAMED = {"STORE_FAILED", "STORAGE_FAILED", "EVENT_LOG_FAILED"}
STEPS = {
    "the registry": "/system/registry.json",
    "the event log": "/system/events/",
    "the plan of a batch": "/autoloader/",
    "the offset of a batch": "/checkpoints/",
    "files of rows": "/tables/main/default/raw/part-",
    "the commit of rows": "/tables/main/default/raw/_delta_log/",
    "files of a view": "/tables/main/default/counts/part-",
    "the commit of a view": "/tables/main/default/counts/_delta_log/",
}


def _codes(text: str) -> set[str]:
    """The codes of all errors that a text shows."""
    return set(re.findall(r"\[([A-Z_]{5,})\]", text)) | ({"a traceback"} if "Traceback (most" in text else set())


@pytest.fixture
def gate(s3: S3Server) -> Iterator[Gate]:
    with s3_gate(s3.url) as opened:
        yield opened


@pytest.mark.parametrize("step", STEPS)
def test_a_store_that_goes_away_in_the_middle_of_a_step_loses_nothing(step: str, lake: Lake, gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(IMPATIENT)
    lake.environment["SPARK_CONF_DIR"] = str(tmp_path / "conf")
    lake.s3.put("landing/a.json", '{"id":1,"text":"a"}\n{"text":"no id"}\n')
    through = replace(lake, s3=replace(lake.s3, url=gate.url))
    through.write(PIPELINE)
    words = ("pipeline.py", "--param", f"landing={lake.s3.uri('landing')}")
    through.run(*words)

    lake.s3.put("landing/b.json", '{"id":2,"text":"b"}\n{"id":3,"text":"c"}\n{"text":"no id either"}\n')
    gate.shut_at = STEPS[step]
    failed = through.attempt("run", *words, "--json", "--storage", through.storage)
    assert gate.refused, "the step was not reached"
    assert failed.returncode in (1, 3)
    assert _codes(failed.stderr) <= NAMED
    assert {e["error"]["exceptions"][0]["class_name"] for e in map(json.loads, failed.stdout.splitlines()) if e["error"]} <= NAMED

    gate.open()
    through.run(*words)
    assert sorted(row["id"] for row in lake.rows("raw")) == [1, 2, 3]
    assert [row["count"] for row in lake.rows("counts")] == [3]
    lines = lake.lakelet("events", "--all", "--json", "--storage", lake.storage).splitlines()
    progress = [e["details"]["flow_progress"] for e in map(json.loads, lines) if e["event_type"] == "flow_progress"]
    judged = [rule for p in progress for rule in (p.get("data_quality") or {}).get("expectations", []) if rule["name"] == "has id"]
    assert (sum(r["passed_records"] for r in judged), sum(r["failed_records"] for r in judged)) == (3, 2)
