"""Updates on a standalone cluster of two workers, of which a worker or the driver is killed: the tables are those of the oracle."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cloud.conftest import Lake, lake_on_cluster

PIPELINE = """
    import dlt
    from pyspark.sql import functions as F

    gate = spark.conf.get("gate")

    @F.udf("string")
    def through_the_gate(city):
        import os, pathlib, time
        armed = pathlib.Path(gate, "armed")
        if armed.exists():
            pathlib.Path(gate, "reached").write_text(os.getcwd())
            while armed.exists():
                time.sleep(0.05)
        return city

    @dlt.table
    @dlt.expect_or_drop("has id", "id IS NOT NULL")
    def raw():
        reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
        rows = reader.option("cloudFiles.schemaHints", "id BIGINT, at BIGINT").load(spark.conf.get("landing"))
        return rows.select("id", "at", through_the_gate("city").alias("city"))

    dlt.create_streaming_table("history")
    dlt.apply_changes(target="history", source="raw", keys=["id"], sequence_by="at", stored_as_scd_type=2)

    @dlt.table
    def cities():
        return spark.read.table("history").where("__END_AT IS NULL").groupBy("city").agg(F.count("*").alias("n"))
"""
Row = Mapping[str, Any]


def delivery(number: int) -> list[Row]:
    """Forty keys, of which each delivery has three quarters, each in another city, and a row without a key."""
    rows = [{"id": key, "at": number, "city": f"c{(key + number) % 5}"} for key in range(40) if (key + number) % 4]
    return [*rows, {"id": None, "at": number, "city": "nowhere"}]


def tables(rows: Sequence[Row]) -> dict[str, Any]:
    """What the pipeline makes of rows, computed in Python."""
    kept = [row for row in rows if row["id"] is not None]
    history = []
    for key in {row["id"] for row in kept}:
        versions = sorted((row["at"], row["city"]) for row in kept if row["id"] == key)
        ends = [at for at, _ in versions[1:]] + [None]
        history += [(key, city, at, end) for (at, city), end in zip(versions, ends, strict=True)]
    current = Counter(city for _, city, _, end in history if end is None)
    return {"raw": Counter((row["id"], row["at"], row["city"]) for row in kept), "history": Counter(history), "cities": dict(current)}


def stored(lake: Lake) -> dict[str, Any]:
    return {
        "raw": Counter((row["id"], row["at"], row["city"]) for row in lake.rows("raw")),
        "history": Counter((row["id"], row["city"], row["__START_AT"], row["__END_AT"]) for row in lake.rows("history")),
        "cities": {row["city"]: row["n"] for row in lake.rows("cities")},
    }


@pytest.fixture(params=["folder", "s3", "google", "azure", "hdfs"])
def small_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    in_folders = request.param == "folder"
    with lake_on_cluster(tmp_path, request.getfixturevalue("s3" if in_folders else request.param)) as lake:
        lake.in_folders = in_folders
        lake.write(PIPELINE)
        (tmp_path / "gate").mkdir()
        yield lake


def words(lake: Lake) -> list[str]:
    return ["pipeline.py", "--param", f"landing={lake.landing}", "--param", f"gate={lake.folder / 'gate'}"]


def deliver(lake: Lake, number: int) -> list[Row]:
    rows = delivery(number)
    for part in range(4):  # several files, so that both workers read
        lake.deliver(f"{number}-{part}.json", "".join(json.dumps(row) + "\n" for row in rows[part::4]))
    return rows


def reached(gate: Path, update: subprocess.Popen[str]) -> str:
    """Wait until a task on a worker is at the gate; the folder that it runs in."""
    found = gate / "reached"
    while not (found.exists() and found.read_text()):
        assert update.poll() is None, update.communicate()
        time.sleep(0.05)
    return found.read_text()


def test_an_update_whose_worker_dies_in_the_middle_of_a_task_ends_right(small_lake: Lake, tmp_path: Path) -> None:
    lake, gate, rows = small_lake, tmp_path / "gate", deliver(small_lake, 0)
    lake.run(*words(lake))
    assert stored(lake) == tables(rows)
    rows += deliver(lake, 1)
    (gate / "armed").touch()
    update = lake.start(*words(lake))
    worker = Path(reached(gate, update)).relative_to(tmp_path).parts[0]
    assert lake.cluster is not None
    lake.cluster.kill(int(worker.removeprefix("worker")))
    (gate / "armed").unlink()
    _, errors = update.communicate(timeout=900)
    assert update.returncode == 0, errors[-5000:]
    assert stored(lake) == tables(rows)
    rows += deliver(lake, 2)
    lake.run(*words(lake))  # on the worker that is left
    assert stored(lake) == tables(rows)


def test_updates_whose_driver_is_killed_are_repaired_by_the_next_one(small_lake: Lake) -> None:
    lake, rows = small_lake, deliver(small_lake, 0)
    for number, failpoint in enumerate(("batch.files_written", "batch.committed@2", "view.files_written"), start=1):
        update = lake.start(*words(lake), failpoint=failpoint)
        _, errors = update.communicate(timeout=900)
        assert update.returncode == -signal.SIGKILL, errors[-5000:]
        rows += deliver(lake, number)
    lake.run(*words(lake))
    assert stored(lake) == tables(rows)
