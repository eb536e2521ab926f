"""A store that goes away in the middle of a step: a named error, nothing lost, the next update repairs (ST-9)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cloud.conftest import Lake, Store
from tests.store_gate import Gate, store_gate

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
spark.hadoop.fs.gs.http.max.retry 1
spark.hadoop.ipc.client.connect.max.retries 1
spark.hadoop.fs.azure.io.retry.max.retries 1
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


SOME = ("the registry", "the offset of a batch", "the commit of rows")
CASES = [("s3", step) for step in STEPS] + [(store, step) for store in ("google", "azure", "hdfs") for step in SOME]


@pytest.mark.parametrize(("store", "step"), CASES)
def test_a_store_that_goes_away_in_the_middle_of_a_step_loses_nothing(
    store: str, step: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server: Store = request.getfixturevalue(store)
    with store_gate(server.url) as gate:
        _lose(Lake(tmp_path, replace(server, url=gate.url)), gate, STEPS[step])


def _lose(lake: Lake, gate: Gate, step: str) -> None:
    """Lose the store where the second update writes `step`, and look at what the next one makes of it."""
    (lake.folder / "conf").mkdir()
    (lake.folder / "conf" / "spark-defaults.conf").write_text(IMPATIENT)
    lake.environment["SPARK_CONF_DIR"] = str(lake.folder / "conf")
    lake.store.put("landing/a.json", '{"id":1,"text":"a"}\n{"text":"no id"}\n')
    lake.write(PIPELINE)
    words = ("pipeline.py", "--param", f"landing={lake.landing}")
    lake.run(*words)

    lake.store.put("landing/b.json", '{"id":2,"text":"b"}\n{"id":3,"text":"c"}\n{"text":"no id either"}\n')
    gate.shut_at = step
    failed = lake.attempt("run", *words, "--json", "--storage", lake.storage)
    assert gate.refused, "the step was not reached"
    assert failed.returncode in (1, 3)
    assert _codes(failed.stderr) <= NAMED
    errors = [e["error"]["exceptions"][0] for e in map(json.loads, failed.stdout.splitlines()) if e["error"]]
    assert [e["message"] for e in errors if e["class_name"] not in NAMED] == []

    gate.open()
    lake.run(*words)
    assert sorted(row["id"] for row in lake.rows("raw")) == [1, 2, 3]
    assert [row["count"] for row in lake.rows("counts")] == [3]
    lines = lake.lakelet("events", "--all", "--json", "--storage", lake.storage).splitlines()
    progress = [e["details"]["flow_progress"] for e in map(json.loads, lines) if e["event_type"] == "flow_progress"]
    judged = [rule for p in progress for rule in (p.get("data_quality") or {}).get("expectations", []) if rule["name"] == "has id"]
    assert (sum(r["passed_records"] for r in judged), sum(r["failed_records"] for r in judged)) == (3, 2)
