"""The first update of a project in a new process: `lakelet run` against Spark's own `spark-pipelines run`, the same files.

    .venv/bin/python -m pip install grpcio grpcio-status googleapis-common-protos zstandard   # what the rival needs
    .venv/bin/python benchmarks/cold_run.py --domains 5 --rows 20000 --rounds 5

A domain is five datasets over JSON lines: a bronze stream with declared columns, two silver streams, two gold views. Both tools run the
same Python files and the same `spark-pipeline.yml`, each in a new folder, and take turns in going first. Spark's writes Parquet, its
default; ours Delta. Wall and processor time of whole processes count, Java and Python workers included. The gold tables of both are
compared. Prints machine, load, quartiles and the ratio of the medians. Bar: 0.5.

    .venv/bin/python benchmarks/cold_run.py --first-row --rounds 5

With `--first-row` there is no rival: time from `lakelet run` in a new project (`lakelet new project`) until its first row is in a table,
on a machine that has Delta's jars and no class-data archive, against the same with the archive. In turns; each round has new projects.
Bar: 1.5.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable
from figures import quartiles
from processes import ENVIRONMENT as OURS
from processes import Measured, measured

from lakelet.spark.launch.environment import jars

SPEC = """\
name: cold
catalog: spark_catalog
database: default
storage: {storage}
libraries:
  - glob: {{include: transformations/**}}
"""
DOMAIN = """\
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.active()


@dp.table
def raw_{n}():
    return spark.readStream.schema("id LONG, kind STRING, amount DOUBLE, at TIMESTAMP").json("{landing}")


@dp.table
def large_{n}():
    return spark.readStream.table("raw_{n}").where("amount >= 50")


@dp.table
def small_{n}():
    return spark.readStream.table("raw_{n}").where("amount < 50").withColumn("day", F.to_date("at"))


@dp.materialized_view
def kinds_{n}():
    return spark.read.table("large_{n}").groupBy("kind").agg(F.count("*").alias("rows"), F.sum("id").alias("ids"))


@dp.materialized_view
def days_{n}():
    return spark.read.table("small_{n}").groupBy("day").agg(F.count("*").alias("rows"), F.sum("id").alias("ids"))
"""
SCRIPTS = Path(sys.executable).parent
ENVIRONMENT = {**OURS, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}", "PYSPARK_PYTHON": sys.executable}
TOOLS = ("lakelet", "spark-pipelines")


def make_landing(folder: Path, domains: int, rows: int) -> None:
    """Write the rows of each domain as two files."""
    chance = random.Random(1)
    for n in range(domains):
        (folder / str(n)).mkdir(parents=True)
        for part in (0, 1):
            with (folder / str(n) / f"{part}.json").open("w") as file:
                for i in range(part, rows, 2):
                    row = {"id": i, "kind": f"k{i % 7}", "amount": chance.randrange(10_000) / 100, "at": f"2026-03-0{1 + i % 9}T10:00:00Z"}
                    file.write(json.dumps(row) + "\n")


def make_project(folder: Path, landing: Path, domains: int) -> None:
    """Write the project that both tools run."""
    (folder / "transformations").mkdir(parents=True)
    (folder / "spark-pipeline.yml").write_text(SPEC.format(storage=(folder / "state").as_uri()))
    for n in range(domains):
        (folder / "transformations" / f"domain_{n}.py").write_text(DOMAIN.format(n=n, landing=landing / str(n)))


def run(folder: Path, tool: str, *words: str) -> Measured:
    """Run a command of the virtual environment in `folder`. Raises SystemExit with what was printed if it fails."""
    found = measured([str(SCRIPTS / tool), *words], folder, ENVIRONMENT)
    if found.code:
        raise SystemExit(found.printed)
    return found


def gold(tool: str, folder: Path, domains: int) -> list[list[str]]:
    """The rows of all gold tables as text, those of each sorted."""
    return [rows(tool, folder, f"{view}_{n}") for n in range(domains) for view in ("kinds", "days")]


def rows(tool: str, folder: Path, name: str) -> list[str]:
    """The rows of a table in the storage of a tool as sorted texts."""
    if tool == "lakelet":
        table = DeltaTable(str(folder / ".lakelet" / "tables" / "spark_catalog" / "default" / name)).to_pyarrow_table()
    else:
        table = pq.read_table(folder / "spark-warehouse" / name)
    return sorted(str(row) for row in table.to_pylist())


def until_first_row(cache: Path) -> tuple[float, float]:
    """Seconds until a new project's first run has written a row, and until its end. No process is left that makes an archive."""
    environment = {**ENVIRONMENT, "LAKELET_CACHE": str(cache), "LAKELET_ARCHIVE": "off"}
    command = [sys.executable, "-m", "lakelet"]
    with tempfile.TemporaryDirectory(prefix="first-row-") as folder:
        subprocess.run([*command, "new", "project", "demo"], cwd=folder, env=environment, capture_output=True, check=True)
        started, first = time.perf_counter(), None
        command += ["run", "--json"]
        with subprocess.Popen(
            command, cwd=Path(folder, "demo"), env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as running:
            assert running.stdout is not None
            for line in running.stdout:
                metrics = json.loads(line)["details"].get("flow_progress", {}).get("metrics") or {}
                if first is None and metrics.get("num_output_rows"):
                    first = time.perf_counter() - started
        if running.returncode or first is None:
            raise SystemExit("the update of a new project has failed")
    return first, time.perf_counter() - started


def compare_first_rows(rounds: int) -> None:
    """Print quartiles of `until_first_row` without and with the class-data archive, and the ratio of each round."""
    seconds: dict[str, list[tuple[float, float]]] = {"without the archive": [], "with the archive": []}
    with tempfile.TemporaryDirectory(prefix="cache-") as work:
        cache = Path(work, "cache")
        shutil.copytree(jars().delta_spark.parent, cache / "jars")
        subprocess.run(
            [sys.executable, "-m", "lakelet", "doctor", "--archive"], env={**ENVIRONMENT, "LAKELET_CACHE": str(cache)}, check=True
        )
        made, away = cache / "archives", cache / "away"
        for turn in range(rounds):
            for name in seconds if turn % 2 else reversed(seconds):
                if name == "without the archive":
                    made.rename(away)
                seconds[name].append(until_first_row(cache))
                if name == "without the archive":
                    away.rename(made)
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, a new project, {rounds} rounds")
    for name, found in seconds.items():
        print(f"{name:20} first row {quartiles([first for first, _ in found])} s, end {quartiles([end for _, end in found])} s")
    without, with_it = seconds.values()
    ratios = [ours[0] / theirs[0] for ours, theirs in zip(without, with_it, strict=True)]
    print(f"ratio until the first row {quartiles(ratios)} (bar 1.5)")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--domains", type=int, default=5, help="five datasets each")
    asked.add_argument("--rows", type=int, default=20_000, help="of each domain")
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--first-row", action="store_true", help="time until the first row of a new project, without an archive and with it")
    choice = asked.parse_args()
    if choice.first_row:
        compare_first_rows(choice.rounds)
        return
    found: dict[str, list[Measured]] = {tool: [] for tool in TOOLS}
    with tempfile.TemporaryDirectory(prefix="cold-") as work:
        make_landing(Path(work, "landing"), choice.domains, choice.rows)
        for turn in range(choice.rounds):
            results = {}
            for tool in TOOLS if turn % 2 else reversed(TOOLS):
                folder = Path(work, f"{tool}-{turn}")
                make_project(folder, Path(work, "landing"), choice.domains)
                found[tool].append(run(folder, tool, "run"))
                results[tool] = gold(tool, folder, choice.domains)
            if results["lakelet"] != results["spark-pipelines"]:
                raise SystemExit("the gold tables differ")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{machine}, {5 * choice.domains} datasets, {choice.rows} rows each")
    for tool, runs in found.items():
        print(f"{tool:16} wall {quartiles([r.wall for r in runs])} s, processor {quartiles([r.processor for r in runs])} s")
    ours, theirs = found.values()
    wall = statistics.median(r.wall for r in ours) / statistics.median(r.wall for r in theirs)
    processor = statistics.median(r.processor for r in ours) / statistics.median(r.processor for r in theirs)
    print(f"ratio {wall:.2f} wall, {processor:.2f} processor (bar 0.5)")


if __name__ == "__main__":
    main()
