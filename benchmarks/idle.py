"""`lakelet run` with nothing to do against the same update with the quick answer switched off, and a bare Python process as floor.

    .venv/bin/python benchmarks/idle.py --datasets 25 --files 1000 --rounds 9

A pipeline of one streaming table over JSON files and of tables below it, up to date. Each command is a new process; wall time and
processor time (user and system, of its child processes too) count. The slow update takes fewer turns. Prints machine, load, medians and
ratios. Bar: 2 s wall.
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

from processes import ENVIRONMENT

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
Seconds = tuple[float, float]


def made(root: Path, datasets: int, files: int) -> None:
    """A project with so many datasets and input files."""
    pairs = range(1, (datasets - 1) // 2 + 1)
    (root / "pipeline.py").write_text(HEAD + "".join(STREAM.format(n) + VIEW.format(n) for n in pairs))
    (root / "landing").mkdir()
    for number in range(files):
        (root / "landing" / f"{number:06d}.json").write_text(f'{{"id": {number}, "kind": "k{number % 7}"}}\n')


def timed(command: list[str], root: Path, environ: dict[str, str]) -> tuple[Seconds, str]:
    """Seconds of a process, wall and processor, and what it said on stderr."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=True)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return (wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), done.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=25)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--slow-rounds", type=int, default=3)
    choice = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        made(root, choice.datasets, choice.files)
        command = [sys.executable, "-m", "lakelet", "run", "pipeline.py", "--param", f"landing={root / 'landing'}"]
        on = dict(ENVIRONMENT)
        rivals = {
            "quick answer": (command, on, choice.rounds),
            "quick answer off": (command, {**on, "LAKELET_IDLE_ANSWER": "off"}, choice.slow_rounds),
            "python -c pass": ([sys.executable, "-c", "pass"], on, choice.rounds),
        }
        print(f"first update: {timed(command, root, on)[0][0]:.1f} s wall")
        record = root / ".lakelet" / "system" / "idle.json"
        if '"doubt"' in record.read_text()[:200]:
            timed(command, root, on)
        print(f"record: {record.stat().st_size / 1000:.0f} kB")
        compare(rivals, root, record)


def compare(rivals: dict[str, tuple[list[str], dict[str, str], int]], root: Path, record: Path) -> None:
    """Run the commands in turns and print the medians, and their ratios to the first."""
    before = record.stat().st_mtime_ns
    found: dict[str, list[Seconds]] = {name: [] for name in rivals}
    for turn in range(max(rounds for _, _, rounds in rivals.values())):
        for name, (command, environ, rounds) in rivals.items():
            if turn < rounds:
                found[name].append(timed(command, root, environ)[0])
    if record.stat().st_mtime_ns != before:
        raise SystemExit("an update that was to be answered quickly has started Spark")
    medians = {name: [statistics.median(column) for column in zip(*seconds, strict=True)] for name, seconds in found.items()}
    for name, (wall, cpu) in medians.items():
        rounds = len(found[name])
        print(f"{name}: {wall:.2f} s wall, {cpu:.2f} s processor (median of {rounds}, fastest {min(found[name])[0]:.2f} s)")
    quick, slow = medians["quick answer"], medians["quick answer off"]
    print(f"off / quick: {slow[0] / quick[0]:.1f} wall, {slow[1] / quick[1]:.1f} processor")


if __name__ == "__main__":
    main()
