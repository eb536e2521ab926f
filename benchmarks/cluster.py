"""What a small pipeline costs on a standalone cluster of two workers of this machine: Auto Loader, a rule that drops, type 2, a view.

    .venv/bin/python benchmarks/cluster.py                                                  # three rows, two updates
    .venv/bin/python benchmarks/cluster.py --rows 200000 --updates 3
    .venv/bin/python benchmarks/cluster.py --state --conf spark.sql.shuffle.partitions=200

A master, two workers of one core each, and for each update a new process `lakelet run --master …`, as a job does. The rival is the same
with settings of `--conf`, which a user sets in `spark-defaults.conf`. Seconds depend on what else the machine does. Jobs and tasks, which
Spark writes into its own event log, do not. Each update is compared with the rows that must be there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from figures import quartiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.cloud.cluster import cluster

PIPELINE = """
import dlt
from pyspark.sql import functions as F

@dlt.table
@dlt.expect_or_drop("has id", "id IS NOT NULL")
def raw():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    return reader.option("cloudFiles.schemaHints", "id BIGINT, at BIGINT").load(spark.conf.get("landing")).select("id", "at", "city")

dlt.create_streaming_table("history")
dlt.apply_changes(target="history", source="raw", keys=["id"], sequence_by="at", stored_as_scd_type=2)

@dlt.table
def cities():
    return spark.read.table("history").where("__END_AT IS NULL").groupBy("city").agg(F.count("*").alias("n"))
"""

WITH_STATE = """
@dlt.table
def distinct():
    rows = spark.readStream.table("raw").withColumn("seen", F.timestamp_seconds("at"))
    return rows.withWatermark("seen", "1 hour").dropDuplicates(["id", "city", "seen"])
"""


def main() -> None:
    given = _arguments()
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {given.rows} rows in each update")
    with tempfile.TemporaryDirectory(prefix="lakelet-cluster-") as name:
        folder = Path(name)
        log = folder / "spark-events"
        for made in (folder / "landing", folder / "conf", log):
            made.mkdir()
        settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": log.as_uri(), "spark.eventLog.compress": "false"}
        settings |= dict(setting.split("=", 1) for setting in given.conf)
        (folder / "conf" / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
        (folder / "pipeline.py").write_text(PIPELINE + (WITH_STATE if given.state else ""))
        with cluster(folder, {}) as running:
            wall = [_update(folder, given.master or running.master, number, given.rows) for number in range(given.updates)]
    print(f"  all updates  {quartiles(wall)} s")


def _update(folder: Path, master: str, number: int, rows: int) -> float:
    """Give the same keys again with a later sequence and another city, and one row without a key; return the seconds of the update."""
    changes = [{"id": key, "at": number, "city": f"city {(key + number) % 7}"} for key in range(rows)]
    lines = "".join(json.dumps(change) + "\n" for change in [*changes, {"at": number, "city": "nowhere"}])
    (folder / "landing" / f"{number:04d}.json").write_text(lines)
    before = set((folder / "spark-events").rglob("*"))
    environment = {**os.environ, "SPARK_CONF_DIR": str(folder / "conf"), "SPARK_LOCAL_IP": "127.0.0.1"}
    started = time.perf_counter()
    _lakelet(folder, environment, "run", "pipeline.py", "--param", f"landing={folder / 'landing'}", "--master", master)
    seconds = time.perf_counter() - started
    counts = Counter(row["city"] for row in changes)
    found = {row["city"]: row["n"] for row in json.loads(_lakelet(folder, environment, "show", "cities", "--json", "--limit", "10"))}
    assert found == counts, found
    events = Counter(_events(sorted(set((folder / "spark-events").rglob("*")) - before)))
    jobs, stages, tasks = (events[f"SparkListener{what}"] for what in ("JobStart", "StageCompleted", "TaskEnd"))
    print(f"  update {number + 1}     {seconds:7.1f} s   {jobs} jobs, {stages} stages, {tasks} tasks", flush=True)
    return seconds


def _lakelet(folder: Path, environment: dict[str, str], *words: str) -> str:
    command = [sys.executable, "-m", "lakelet", *words, "--storage", str(folder / "lake")]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def _events(files: Sequence[Path]) -> list[str]:
    lines = (line for file in files if file.is_file() and not file.name.startswith((".", "appstatus")) for line in file.open())
    return [json.loads(line)["Event"] for line in lines]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3)
    parser.add_argument("--updates", type=int, default=2)
    parser.add_argument("--state", action="store_true", help="a stream with state too, one store for each partition")
    parser.add_argument("--master", help="another master, such as local[2]")
    parser.add_argument("--conf", action="append", default=[], help="a setting of Spark, key=value; can be repeated")
    return parser.parse_args()


if __name__ == "__main__":
    main()
