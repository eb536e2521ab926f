"""Auto Loader against a hand-written stream with a fixed schema, into the same kind of Delta table, in one process.

    .venv/bin/python benchmarks/ingest.py --cases json json-narrow json-wide json-strings csv parquet --megabytes 200 --rounds 5

Both sides read the same files, take turns in going first, and start with a schema: inference happens once in the life of a stream, and
its time is shown apart. Prints per case and share of dirty records the quartiles of both sides' seconds, on the clock and of processor
time, and the ratio of the medians. Dirty records carry a text where a number belongs: Spark's stream reads NULL there, ours keeps the
value as rescued data.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from figures import quartiles

FILES = 20
Row = dict[str, Any]


def log_entry(rng: random.Random, number: int, dirty: bool) -> Row:
    """A log entry of about 620 bytes with a nested payload of optional fields."""
    payload: Row = {"event_type": f"event_{rng.randrange(20)}", "event_id": f"{number:012x}", "conversation_id": f"c-{number % 50000}"}
    first = rng.randrange(50)
    for n in range(first, first + 9):
        payload[f"field_{n:02d}"] = [f"text value {number}", number % 1000, number / 8, number % 2 == 0][n % 4]
    if dirty:
        payload[f"field_{first - first % 4 + 1:02d}"] = "n/a"
    return {
        "insertId": f"{number:016x}",
        "timestamp": f"2026-03-01T08:{number % 60:02d}:{number % 59:02d}.{number % 1000:03d}Z",
        "receiveTimestamp": f"2026-03-01T09:{number % 60:02d}:{number % 59:02d}.{number % 1000:03d}Z",
        "logName": "projects/acme/logs/communication",
        "severity": rng.choice(["INFO", "NOTICE", "WARNING"]),
        "resource": {"type": "k8s_container", "labels": {"cluster_name": "main", "namespace_name": "chat"}},
        "labels": {"service": "router", "region": "eu-west", "build": f"2026.{number % 40}"},
        "jsonPayload": payload,
    }


def narrow(rng: random.Random, number: int, dirty: bool) -> Row:
    """Six flat columns, about 130 bytes as JSON."""
    return {
        "id": number,
        "at": f"2026-03-01T08:{number % 60:02d}:{number % 59:02d}.{number % 1000:03d}Z",
        "customer": f"customer {number % 5000}",
        "amount": "n/a" if dirty else rng.randrange(10**6) / 100,
        "items": rng.randrange(50),
        "paid": number % 3 == 0,
    }


def wide(rng: random.Random, number: int, dirty: bool) -> Row:
    """110 flat columns, about 2,200 bytes as JSON."""
    values = (lambda n: f"value {n} of {number % 97}", lambda n: number * n % 10007, lambda n: number % 1000 / 8, lambda n: n % 2 == 0)
    row: Row = {f"column_{n:03d}": values[n % 4](n) for n in range(110)}
    if dirty:
        row[f"column_{4 * rng.randrange(27) + 1:03d}"] = "n/a"
    return row


@dataclass(frozen=True)
class Case:
    """What is read: how a record is made and written, Auto Loader's options, and the rival's."""

    make: Callable[[random.Random, int, bool], Row]
    format: str
    options: dict[str, str]
    bytes_per_record: int
    dirty: tuple[float, ...] = (0.0, 0.001, 0.01)
    rival: dict[str, str] = field(default_factory=dict)


TYPED = {"cloudFiles.inferColumnTypes": "true"}
TIMES = {"cloudFiles.schemaHints": "timestamp TIMESTAMP, receiveTimestamp TIMESTAMP"}
CASES = {
    "json": Case(log_entry, "json", {**TYPED, **TIMES}, 620),
    "json-narrow": Case(narrow, "json", {**TYPED, "cloudFiles.schemaHints": "at TIMESTAMP"}, 130),
    "json-wide": Case(wide, "json", TYPED, 2500),
    "json-strings": Case(log_entry, "json", {}, 620, dirty=(0.0,)),
    "csv": Case(narrow, "csv", {**TYPED, "header": "true"}, 60, rival={"header": "true"}),
    "parquet": Case(narrow, "parquet", TYPED, 30, dirty=(0.0,)),
}


def write_files(folder: Path, case: Case, records: int, share: float) -> int:
    """Write the case's files and return their size in bytes."""
    folder.mkdir(parents=True)
    rng = random.Random(7)
    per_file = records // FILES
    for at in range(FILES):
        rows = [case.make(rng, at * per_file + n, rng.random() < share) for n in range(per_file)]
        _write(folder / f"part-{at:04d}.{case.format}", case.format, rows)
    return sum(path.stat().st_size for path in folder.iterdir())


def _write(path: Path, format: str, rows: list[Row]) -> None:
    if format == "json":
        path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    elif format == "csv":
        lines = (",".join(str(value) for value in row.values()) for row in rows)
        path.write_text(",".join(rows[0]) + "\n" + "".join(line + "\n" for line in lines))
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)


class Cost(NamedTuple):
    """Seconds on the clock, and of processor time in the whole process tree."""

    wall: float
    cpu: float


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    arguments.add_argument("--megabytes", type=int, default=200, help="of input per case; Parquet is written smaller")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--data", type=Path, help="keep the generated files here")
    choice = arguments.parse_args()
    work = Path(tempfile.mkdtemp(prefix="ingest-bench-"))
    try:
        for line in run(choice, work):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def run(choice: argparse.Namespace, work: Path) -> Iterator[str]:
    from lakelet.autoloader import register
    from lakelet.spark.launch.session import start_session

    spark = start_session(app_name="ingest-bench", input_bytes=1 << 30)  # a long run: both compilers
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    yield f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {choice.megabytes} MB, {choice.rounds} rounds"
    for name in choice.cases:
        yield from _case(spark, name, choice, work)
    spark.stop()


def _case(spark: Any, name: str, choice: argparse.Namespace, work: Path) -> Iterator[str]:
    from lakelet.autoloader import AutoLoaderSource, SourceSpec

    case = CASES[name]
    columns: Any = None
    for share in case.dirty:
        folder = (choice.data or work) / f"{name}-{choice.megabytes}-{share}"
        if not folder.exists():
            write_files(folder, case, choice.megabytes * 1_000_000 // case.bytes_per_record, share)
        size = sum(path.stat().st_size for path in folder.iterdir())
        spec = SourceSpec(str(folder), {"cloudFiles.format": case.format, **case.options})
        started = time.perf_counter()
        columns = columns or AutoLoaderSource.open(spec, state=None).columns()  # of the clean case: in the others some values do not fit
        inference = time.perf_counter() - started
        costs: dict[str, list[Cost]] = {"ours": [], "theirs": []}
        for n in range(choice.rounds + 1):
            place = work / f"run-{name}-{share}-{n}"
            for side in costs if n % 2 else reversed(costs):
                if side == "ours":
                    source = AutoLoaderSource.open(spec, state=str(place / "state"), seed=columns)
                    frame = source.read_stream(spark, name="bench", metadata=False)  # as a flow opens it that does not read `_metadata`
                else:
                    frame = _rival(spark, case, columns, folder)
                costs[side].append(_stream(frame, place / side))
            shutil.rmtree(place, ignore_errors=True)
        shown = f" (inference, once: {inference:.2f} s)" if share == case.dirty[0] else ""
        yield f"{name}, {share:.1%} dirty, {size / 1e6:.0f} MB{shown}"
        yield from _report(costs["ours"][1:], costs["theirs"][1:])


def _rival(spark: Any, case: Case, columns: Any, folder: Path) -> Any:
    from pyspark.sql import functions as F

    reader = spark.readStream.schema(columns.data).option("maxFilesPerTrigger", 1000).options(**case.rival)
    return reader.format(case.format).load(str(folder)).withColumn("_rescued_data", F.lit(None).cast("string"))


def _stream(frame: Any, place: Path) -> Cost:
    started, cpu = time.perf_counter(), _tree_cpu()
    writer = frame.writeStream.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True)
    query = writer.format("delta").start(str(place / "table"))
    query.awaitTermination()
    return Cost(time.perf_counter() - started, _spent(cpu, _tree_cpu()))


def _tree_cpu() -> dict[int, float]:
    """Processor seconds of each process below this one."""
    me = psutil.Process()
    found: dict[int, float] = {}
    for process in [me, *me.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            found[process.pid] = times.user + times.system
    return found


def _spent(before: dict[int, float], after: dict[int, float]) -> float:
    """What the processes that are still there have used since; short-lived helpers are not seen."""
    return sum(max(0.0, now - before.get(pid, 0.0)) for pid, now in after.items())


def _report(ours: list[Cost], theirs: list[Cost]) -> Iterator[str]:
    for at, name in enumerate(Cost._fields):
        mine, other = ([cost[at] for cost in costs] for costs in (ours, theirs))
        ratio = statistics.median(mine) / statistics.median(other)
        yield f"  {name}: ours {quartiles(mine)} s, Spark {quartiles(other)} s, ratio {ratio:.2f}"


if __name__ == "__main__":
    main()
