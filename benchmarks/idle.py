"""`lakelet run` with nothing to do against the same update with the quick answer switched off, and a bare Python process as floor.

With `--looking` also the commands that show a pipeline in which nothing has changed, against that `lakelet run`.

    .venv/bin/python benchmarks/idle.py --datasets 25 --files 1000 --rounds 9

A pipeline of one streaming table over JSON files and of tables below it, up to date. Each command is a new process; wall time and
processor time (user and system, of all processes that it starts) count. The slow update takes fewer turns. With `--rival` also Spark's own
`spark-pipelines run`, with as many datasets over as many files and nothing new, against `lakelet run` with the same Python files: these
read the files as a stream with declared columns, because Spark alone has no Auto Loader and no rules. Spark runs with Hive's catalog, in
a folder: with its default, a catalog in memory, each run after the first fails at the folders of the tables that are there. It needs

    .venv/bin/python -m pip install grpcio grpcio-status googleapis-common-protos zstandard

Prints machine, load, medians and ratios. Bars: 2 s wall; the commands that only look 1.3 times `lakelet run`.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cold_run
from figures import quartiles
from processes import ENVIRONMENT, measured

HEAD = """\
import dlt
from pyspark.sql import functions as F


@dlt.table
def raw():
    options = {"cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"}
    return spark.readStream.format("cloudFiles").options(**options).load(spark.conf.get("landing"))
"""
STREAM = """

@dlt.table
@dlt.expect("known", "id IS NOT NULL")
def silver_{0}():
    return dlt.read_stream("raw").where("id % {0} = 0").withColumn("n", F.lit({0}))
"""
VIEW = """

@dlt.table
def gold_{0}():
    return dlt.read("silver_{0}").groupBy("kind").agg(F.count("*").alias("rows"))
"""
SHARED_HEAD = """\
from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.active()


@dp.table
def raw():
    return spark.readStream.schema("id LONG, kind STRING").json("{landing}")
"""
SHARED_STREAM = """

@dp.table
def silver_{0}():
    return spark.readStream.table("raw").where("id % {0} = 0").withColumn("n", F.lit({0}))
"""
SHARED_VIEW = """

@dp.materialized_view
def gold_{0}():
    return spark.read.table("silver_{0}").groupBy("kind").agg(F.count("*").alias("rows"))
"""
RUN = {"lakelet": ["run"], "spark-pipelines": ["run", "--conf", "spark.sql.catalogImplementation=hive"]}
LOOKING = (("plan",), ("graph",), ("validate",), ("rules", "list"), ("rules", "check"))
QUICK, SLOW, FLOOR = "quick answer", "quick answer off", "python -c pass"
Seconds = tuple[float, float]


def made(root: Path, datasets: int, files: int) -> None:
    """A project with so many datasets and input files."""
    pairs = range(1, (datasets - 1) // 2 + 1)
    (root / "pipeline.py").write_text(HEAD + "".join(STREAM.format(n) + VIEW.format(n) for n in pairs))
    (root / "landing").mkdir()
    for number in range(files):
        (root / "landing" / f"{number:06d}.json").write_text(f'{{"id": {number}, "kind": "k{number % 7}"}}\n')


def shared(root: Path, landing: Path, datasets: int) -> Path:
    """A project with so many datasets that both tools run."""
    pairs = range(1, (datasets - 1) // 2 + 1)
    (root / "transformations").mkdir(parents=True)
    (root / "spark-pipeline.yml").write_text(cold_run.SPEC.format(storage=(root / "state").as_uri()))
    code = SHARED_HEAD.format(landing=landing) + "".join(SHARED_STREAM.format(n) + SHARED_VIEW.format(n) for n in pairs)
    (root / "transformations" / "pipeline.py").write_text(code)
    return root


def timed(command: list[str], root: Path, environ: dict[str, str]) -> tuple[Seconds, str]:
    """Seconds of a process, wall and processor, and what it said on stderr."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=True)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return (wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), done.stderr


def timed_with_java(command: list[str], root: Path, environ: dict[str, str]) -> tuple[Seconds, str]:
    """The same of a process that starts Java, which ends after it and so is not among the processes that were waited for."""
    done = measured(command, root, environ)
    if done.code:
        raise SystemExit(done.printed)
    return (done.wall, done.processor), done.printed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=25)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--slow-rounds", type=int, default=3)
    parser.add_argument("--rival", action="store_true", help="spark-pipelines run with nothing new, too")
    parser.add_argument("--looking", action="store_true", help="plan, graph, validate, rules list and rules check, too")
    choice = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        made(root, choice.datasets, choice.files)
        command = [sys.executable, "-m", "lakelet", "run", "pipeline.py", "--param", f"landing={root / 'landing'}"]
        on = dict(ENVIRONMENT)
        rivals = {
            QUICK: (command, on, choice.rounds),
            SLOW: (command, {**on, "LAKELET_IDLE_ANSWER": "off"}, choice.slow_rounds),
            FLOOR: ([sys.executable, "-c", "pass"], on, choice.rounds),
        }
        print(f"first update: {timed(command, root, on)[0][0]:.1f} s wall")
        record = root / ".lakelet" / "system" / "idle.json"
        if '"doubt"' in record.read_text()[:200]:
            timed(command, root, on)
        print(f"record: {record.stat().st_size / 1000:.0f} kB")
        compare(rivals, root, record)
        if choice.looking:
            compare_looking(command, root, on, choice.rounds)
        if choice.rival:
            compare_tools(root, choice.datasets, choice.rounds, choice.slow_rounds)


def compare(rivals: dict[str, tuple[list[str], dict[str, str], int]], root: Path, record: Path) -> None:
    """Run the commands in turns and print the medians, and their ratios to the first."""
    before = record.stat().st_mtime_ns
    found: dict[str, list[Seconds]] = {name: [] for name in rivals}
    for turn in range(max(rounds for _, _, rounds in rivals.values())):
        for name, (command, environ, rounds) in rivals.items():
            if turn < rounds:
                found[name].append((timed_with_java if name == SLOW else timed)(command, root, environ)[0])
    if record.stat().st_mtime_ns != before:
        raise SystemExit("an update that was to be answered quickly has started Spark")
    medians = told(found)
    quick, slow = medians[QUICK], medians[SLOW]
    print(f"off / quick: {slow[0] / quick[0]:.1f} wall, {slow[1] / quick[1]:.1f} processor")


def compare_looking(update: list[str], root: Path, environ: dict[str, str], rounds: int) -> None:
    """Run the commands that only look and the update in turns; print the quartiles of each one's ratio to the update of its turn."""
    found = dict[str, list[Seconds]]()
    for _ in range(rounds):
        for words in (("run",), *LOOKING):
            command = [*update[: update.index("run")], *words, *update[update.index("run") + 1 :]]
            spent, said = timed(command, root, environ)
            if "Starting Spark" in said:
                raise SystemExit(f"{' '.join(words)} has started Spark")
            found.setdefault(" ".join(words), []).append(spent)
    runs = found["run"]
    told(found)
    for name, seconds in found.items():
        wall, cpu = ([one[at] / run[at] for one, run in zip(seconds, runs, strict=True)] for at in (0, 1))
        if name != "run":
            print(f"{name} / run: {quartiles(wall)} wall, {quartiles(cpu)} processor")


def compare_tools(root: Path, datasets: int, rounds: int, slow_rounds: int) -> None:
    """Run both tools with nothing new on projects with the same files, in turns; print the medians and their ratio."""
    folders = {tool: shared(root / tool, root / "landing", datasets) for tool in cold_run.TOOLS}
    for tool, folder in folders.items():
        print(f"{tool} run, shared files, first update: {cold_run.run(folder, tool, *RUN[tool]).wall:.1f} s wall")
    record = folders["lakelet"] / ".lakelet" / "system" / "idle.json"
    if '"doubt"' in record.read_text()[:200]:
        cold_run.run(folders["lakelet"], "lakelet", "run")
    same_gold(folders, datasets)
    before = record.stat().st_mtime_ns
    found: dict[str, list[Seconds]] = {f"{tool} run, shared files": [] for tool in folders}
    for turn in range(rounds):
        for tool, folder in folders.items():
            command = [str(cold_run.SCRIPTS / tool), *RUN[tool]]
            if tool == "lakelet":
                found[f"{tool} run, shared files"].append(timed(command, folder, cold_run.ENVIRONMENT)[0])
            elif turn < slow_rounds:
                found[f"{tool} run, shared files"].append(timed_with_java(command, folder, cold_run.ENVIRONMENT)[0])
    if record.stat().st_mtime_ns != before:
        raise SystemExit("an update that was to be answered quickly has started Spark")
    same_gold(folders, datasets)
    ours, theirs = told(found).values()
    print(f"lakelet run / spark-pipelines run, nothing new: {ours[0] / theirs[0]:.3f} wall, {ours[1] / theirs[1]:.3f} processor")


def same_gold(folders: dict[str, Path], datasets: int) -> None:
    """Raise SystemExit unless the gold tables of both tools have the same rows."""
    names = [f"gold_{n}" for n in range(1, (datasets - 1) // 2 + 1)]
    ours, theirs = ([cold_run.rows(tool, folder, name) for name in names] for tool, folder in folders.items())
    if ours != theirs or not all(ours):
        raise SystemExit("the gold tables differ")


def told(found: dict[str, list[Seconds]]) -> dict[str, tuple[float, float]]:
    """Print what each command took; the medians."""
    medians = {
        name: (statistics.median(s[0] for s in seconds), statistics.median(s[1] for s in seconds)) for name, seconds in found.items()
    }
    for name, (wall, cpu) in medians.items():
        rounds = len(found[name])
        print(f"{name}: {wall:.2f} s wall, {cpu:.2f} s processor (median of {rounds}, fastest {min(found[name])[0]:.2f} s)")
    return medians


if __name__ == "__main__":
    main()
