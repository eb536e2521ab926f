"""Auto Loader against a hand-written fixed-schema JSON stream, into the same kind of Delta table, in one process.

    .venv/bin/python benchmarks/autoloader_json.py --records 1000000 --files 100 --dirty 0 0.001 0.01 --rounds 3

Prints one line per case: the quartile seconds of both sides and their ratio. Inference is measured apart (it happens once).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil

EVENTS = [f"event_{n}" for n in range(20)]
OPTIONAL = [f"field_{n:02d}" for n in range(60)]


def record(rng: random.Random, number: int, dirty: float) -> str:
    """One log entry of about 700 bytes with a nested payload of optional fields."""
    payload: dict[str, Any] = {"event_type": rng.choice(EVENTS), "event_id": f"{number:012x}", "conversation_id": f"c-{number % 50000}"}
    first = rng.randrange(50)
    for name in OPTIONAL[first : first + 9]:
        kind = int(name[-2:]) % 4
        payload[name] = [f"text value {number}", number % 1000, number / 8, number % 2 == 0][kind]
    if rng.random() < dirty:
        payload[OPTIONAL[first - first % 4 + 1]] = "n/a"
    entry = {
        "insertId": f"{number:016x}",
        "timestamp": f"2026-03-01T08:{number % 60:02d}:{number % 59:02d}.{number % 1000:03d}Z",
        "receiveTimestamp": f"2026-03-01T09:{number % 60:02d}:{number % 59:02d}.{number % 1000:03d}Z",
        "logName": "projects/acme/logs/communication",
        "severity": rng.choice(["INFO", "NOTICE", "WARNING"]),
        "resource": {"type": "k8s_container", "labels": {"cluster_name": "main", "namespace_name": "chat"}},
        "labels": {"service": "router", "region": "eu-west", "build": f"2026.{number % 40}"},
        "jsonPayload": payload,
    }
    return json.dumps(entry, separators=(",", ":"))


def write_files(folder: Path, records: int, files: int, dirty: float) -> int:
    folder.mkdir(parents=True)
    rng = random.Random(7)
    size = 0
    per_file = records // files
    for at in range(files):
        text = "\n".join(record(rng, at * per_file + n, dirty) for n in range(per_file)) + "\n"
        (folder / f"part-{at:04d}.json").write_text(text)
        size += len(text)
    return size


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--records", type=int, default=140_000)
    arguments.add_argument("--files", type=int, default=20)
    arguments.add_argument("--dirty", type=float, nargs="+", default=[0.0, 0.001, 0.01])
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--sink", choices=["noop", "delta"], default="delta")
    arguments.add_argument("--data", type=Path, help="keep the generated files here")
    choice = arguments.parse_args()
    work = Path(tempfile.mkdtemp(prefix="autoloader-bench-"))
    try:
        run(choice, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def run(choice: argparse.Namespace, work: Path) -> None:
    from pyspark.sql.types import StringType, StructField, StructType

    from lakelet.autoloader import AutoLoaderSource, SourceSpec, register
    from lakelet.session import start_session

    spark = start_session(app_name="autoloader-bench", input_bytes=1 << 30)  # a long run: both compilers
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    say(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, sink {choice.sink}")
    columns: Any = None
    for dirty in choice.dirty:
        folder = (choice.data or work) / f"{choice.records}-{dirty}"
        if not folder.exists():
            write_files(folder, choice.records, choice.files, dirty)
        size = sum(path.stat().st_size for path in folder.iterdir())
        options = {
            "cloudFiles.format": "json",
            "cloudFiles.inferColumnTypes": "true",
            "cloudFiles.schemaHints": "timestamp TIMESTAMP, receiveTimestamp TIMESTAMP",
        }
        spec = SourceSpec(str(folder), options)
        started = time.perf_counter()
        inferred = AutoLoaderSource.open(spec, state=None)
        columns = inferred.columns() if columns is None else columns  # of the first, clean case: in the others some values do not fit it
        inference = time.perf_counter() - started
        schema = StructType([*columns.data.fields, StructField("_rescued_data", StringType())])
        ours: list[Cost] = []
        theirs: list[Cost] = []
        for n in range(choice.rounds + 1):
            place = work / f"run-{dirty}-{n}"
            # inferred above, so that both sides start with a schema
            source = AutoLoaderSource.open(spec, state=str(place / "state"), seed=columns)
            frame = source.read_stream(spark, name="bench")
            ours.append(stream(frame, place / "ours", choice.sink))
            fixed = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1000).json(str(folder))
            theirs.append(stream(fixed, place / "theirs", choice.sink))
            shutil.rmtree(place, ignore_errors=True)
        report(dirty, size, inference, ours[1:], theirs[1:])
    spark.stop()


class Cost(NamedTuple):
    """Seconds on the clock, and of processor time in the whole process tree."""

    wall: float
    cpu: float


def tree_cpu() -> dict[int, float]:
    """Processor seconds of each process below this one."""
    me = psutil.Process()
    found: dict[int, float] = {}
    for process in [me, *me.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            found[process.pid] = times.user + times.system
    return found


def spent(before: dict[int, float], after: dict[int, float]) -> float:
    """What the processes that are still there have used since; short-lived helpers are not seen."""
    return sum(max(0.0, now - before.get(pid, 0.0)) for pid, now in after.items())


def stream(frame: Any, place: Path, sink: str) -> Cost:
    started, cpu = time.perf_counter(), tree_cpu()
    writer = frame.writeStream.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True)
    query = writer.format("noop").start() if sink == "noop" else writer.format("delta").start(str(place / "table"))
    query.awaitTermination()
    return Cost(time.perf_counter() - started, spent(cpu, tree_cpu()))


def report(dirty: float, size: int, inference: float, ours: list[Cost], theirs: list[Cost]) -> None:
    lines = [f"dirty {dirty:.1%}: {size / 1e6:.0f} MB (inference, once: {inference:.2f} s)"]
    for at, name in enumerate(Cost._fields):
        mine, other = (sorted(cost[at] for cost in costs) for costs in (ours, theirs))
        a, b = mine[len(mine) // 4], other[len(other) // 4]
        lines.append(f"  {name}: ours {a:.2f} s, Spark {b:.2f} s, ratio {a / b:.2f}; all {rounded(mine)} / {rounded(other)}")
    say("\n".join(lines))


def rounded(times: list[float]) -> list[float]:
    return [round(seconds, 2) for seconds in times]


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
