"""One bronze table, one streaming table per event type: what a flow costs with new rows and without, against a bare batch append.

    .venv/bin/python benchmarks/fan_out.py --types 300 --busy 30 --rounds 5
    .venv/bin/python benchmarks/fan_out.py --wide --types 40 --rows 160000 --rounds 3

Every round lands rows for `busy` types, runs one update, and appends the same rows to as many plain Delta tables with four threads, in the
same process. Then updates with nothing new. Prints machine, load, quartiles and ratios. Bars: 1.5 ×, 10 ms.

`--wide`: a log of many event types, each with fields of its own, as Windows writes it: 450 columns, an unpartitioned bronze table, a
streaming table for each type by two filters, with the columns of its type. Each round lands `--rows` records. The rival reads the same new
rows of the bronze table once into Spark's cache, and appends each type to a Delta table of its own with four threads, in the same
process. Seconds on the clock and of processor time of both, after bronze. Bar: 1.2.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import tempfile
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from figures import quartiles

PIPELINE = """
import dlt

BRONZE = spark.conf.get("landing")

@dlt.table(partition_cols=["kind"])
def bronze():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
            .option("cloudFiles.inferColumnTypes", "true").load(BRONZE))

def event_table(kind):
    @dlt.table(name=kind)
    def rows():
        return spark.readStream.table("bronze").where(f"kind = '{kind}'").select("id", "amount", "text")

for number in range(int(spark.conf.get("types"))):
    event_table(f"k{number:03d}")
"""

WIDE = """
import dlt
from pyspark.sql import functions as F

TYPES = int(spark.conf.get("types"))
FIELDS = int(spark.conf.get("fields"))

@dlt.table
def bronze():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
            .option("cloudFiles.inferColumnTypes", "true").load(spark.conf.get("landing")))

def event_table(number):
    @dlt.table(name=f"k{number:03d}")
    def rows():
        of_type = dlt.read_stream("bronze").where(F.col("channel") == f"channel {number % 4}").where(F.col("event") == number)
        return of_type.select("at", "channel", "event", "host", *(f"k{number:03d}_{field}" for field in range(FIELDS)))

for number in range(TYPES):
    event_table(number)
"""
FIELDS = 11


def land(folder: Path, name: str, kinds: list[str], per_kind: int) -> None:
    records = ({"kind": k, "id": i, "amount": i / 4, "text": f"text value {i}"} for i in range(per_kind) for k in kinds)
    (folder / name).write_text("".join(json.dumps(r) + "\n" for r in records))


def update(pipeline: Any) -> tuple[float, float, dict[str, int]]:
    """(seconds in all, seconds after analysis and bronze, flows by last status) of one update."""
    marks: dict[str, float] = {}
    last: dict[str, str] = {}

    def listen(event: Any) -> None:
        if event.event_type == "update_progress":
            marks[event.body["state"]] = time.monotonic()
        if event.event_type == "flow_progress":
            last[event.origin.flow_name] = event.body["status"]
            if event.origin.flow_name == "main.default.bronze" and event.body["status"] in ("COMPLETED", "IDLE"):
                marks["BRONZE"] = time.monotonic()

    started = time.monotonic()
    result = pipeline.run(listeners=[listen])
    assert result.state == "COMPLETED", result.errors
    ended = time.monotonic()
    counts = {status: list(last.values()).count(status) for status in set(last.values())}
    return ended - started, ended - marks["BRONZE"], counts


def bare_appends(spark: Any, bronze: str, kinds: list[str], file: str, folder: Path) -> float:
    """Seconds to append each kind's new rows to a Delta table of its own, four at a time."""

    def append(kind: str) -> None:
        rows = spark.read.format("delta").load(bronze).where(f"kind = '{kind}' AND id >= 0").select("id", "amount", "text")
        rows.limit(50).write.format("delta").mode("append").save(str(folder / kind))

    started = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, kinds))
    return time.monotonic() - started


def land_wide(folder: Path, name: str, types: int, rows: int) -> None:
    def record(number: int) -> dict[str, Any]:
        kind = number if number < types else int(types * (number * 0.618 % 1) ** 2)  # each at least once, some far more often
        own = {f"k{kind:03d}_{field}": f"value {number * field % 1000} of {field}" for field in range(FIELDS)}
        return {
            "at": f"2026-01-01T00:00:{number % 60:02d}Z",
            "channel": f"channel {kind % 4}",
            "event": kind,
            "host": f"host {number % 50}",
            **own,
        }

    (folder / name).write_text("".join(json.dumps(record(number)) + "\n" for number in range(rows)))


def cached_appends(spark: Any, bronze: str, before: int, types: int, folder: Path) -> float:
    """Seconds to read the rows of the newest version of a table once and to append those of each type to a table of its own."""
    from pyspark.sql import functions as F

    started = time.monotonic()
    known = set(spark.read.format("delta").option("versionAsOf", before).load(bronze).inputFiles()) if before >= 0 else set()
    table = spark.read.format("delta").load(bronze)
    rows = spark.read.schema(table.schema).parquet(*(file for file in table.inputFiles() if file not in known)).cache()

    def append(number: int) -> None:
        of_type = rows.where(F.col("channel") == f"channel {number % 4}").where(F.col("event") == number)
        columns = ["at", "channel", "event", "host", *(f"k{number:03d}_{field}" for field in range(FIELDS))]
        of_type.select(*columns).write.format("delta").mode("append").save(str(folder / f"k{number:03d}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(types)))
    rows.unpersist()
    return time.monotonic() - started


def processor_time() -> float:
    """Seconds that this process and its children have used."""
    import psutil

    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return float(sum(one.user + one.system for one in times))


def measure_wide(choice: argparse.Namespace, work: Path) -> None:
    from lakelet.base.names import Namespace
    from lakelet.config.update_config import PipelineConfig
    from lakelet.pipeline import Pipeline
    from lakelet.spark.launch.session import start_session

    print(
        f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {choice.types} types, {choice.rows:,} rows a round"
    )
    landing = work / "landing"
    landing.mkdir()
    (work / "pipeline.py").write_text(textwrap.dedent(WIDE))
    land_wide(landing, "000.json", choice.types, choice.rows)
    spark = start_session(app_name="fan-out", input_bytes=(landing / "000.json").stat().st_size)  # as `lakelet run` starts it
    parameters = {"landing": str(landing), "types": str(choice.types), "fields": str(FIELDS)}
    config = PipelineConfig("fan_out", "wide", work, (work / "pipeline.py",), (work,), Namespace(), parameters, work / "wide")
    pipeline, bronze = Pipeline(config, spark=spark), work / "wide" / "tables" / "main" / "default" / "bronze"
    ratios: list[tuple[float, float]] = []
    for round_ in range(choice.rounds + 1):
        before = round_ - 1
        if round_:
            land_wide(landing, f"{round_:03d}.json", choice.types, choice.rows)
        at_bronze = processor_time()
        marks: dict[str, float] = {}

        def listen(event: Any, marks: dict[str, float] = marks) -> None:
            if event.origin.flow_name == "main.default.bronze" and event.body.get("status") == "COMPLETED":
                marks["clock"], marks["processor"] = time.monotonic(), processor_time()

        result = pipeline.run(listeners=[listen])
        assert result.state == "COMPLETED", result.errors
        clock, processor = time.monotonic() - marks["clock"], processor_time() - marks["processor"]
        start = processor_time()
        bare = cached_appends(spark, str(bronze), before, choice.types, work / "bare")
        bare_processor = processor_time() - start
        print(
            f"  round {round_}: bronze {marks['processor'] - at_bronze:.1f} s, flows {clock:.1f} s ({processor:.1f}), "
            f"cached appends {bare:.1f} s ({bare_processor:.1f})",
            flush=True,
        )
        ratios.append((clock / bare, processor / bare_processor))
    clocks, processors = zip(*ratios[1:], strict=True)
    print(f"flows / cached appends: clock {quartiles(list(clocks), 2)}, processor {quartiles(list(processors), 2)} (bar 1.2)")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--types", type=int, default=300)
    parser.add_argument("--busy", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--wide", action="store_true", help="one table for each type of a wide log")
    parser.add_argument("--rows", type=int, default=160_000, help="with --wide: records of a round")
    choice = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="fan-out-"))
    try:
        (measure_wide if choice.wide else measure)(choice, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def measure(choice: argparse.Namespace, work: Path) -> None:
    from lakelet.base.names import Namespace
    from lakelet.config.update_config import PipelineConfig
    from lakelet.pipeline import Pipeline
    from lakelet.spark.launch.session import start_session

    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {choice.types} types, {choice.busy} busy")
    landing = work / "landing"
    landing.mkdir()
    (work / "pipeline.py").write_text(textwrap.dedent(PIPELINE))
    spark = start_session(app_name="fan-out", input_bytes=0)

    def pipeline(types: int, storage: str) -> Any:
        parameters = {"landing": str(landing), "types": str(types)}
        config = PipelineConfig("fan_out", storage, work, (work / "pipeline.py",), (work,), Namespace(), parameters, work / storage)
        return Pipeline(config, spark=spark)

    kinds = [f"k{n:03d}" for n in range(choice.types)]
    land(landing, "000.json", kinds, 20)
    many, one = pipeline(choice.types, "many"), pipeline(1, "one")
    first, _, _ = update(many)
    update(one)
    print(f"first update, {choice.types} tables made: {first:.1f} s, {first / choice.types:.3f} s per table")
    busy = kinds[: choice.busy]
    flows: list[float] = []
    bare: list[float] = []
    for round_ in range(choice.rounds):
        land(landing, f"{round_ + 1:03d}.json", busy, 50)
        _, seconds, counts = update(many)
        assert counts == {"COMPLETED": choice.busy + 1, "IDLE": choice.types - choice.busy}, counts
        appended = bare_appends(spark, str(work / "many/tables/main/default/bronze"), busy, "", work / "bare")
        flows.append(seconds / choice.busy)
        bare.append(appended / choice.busy)
    flows, bare = flows[1:] or flows, bare[1:] or bare  # the first round makes the plain tables and warms up
    print(f"per flow with new rows: {quartiles(flows, 3)} s; bare batch append: {quartiles(bare, 3)} s")
    print(f"ratio {statistics.median(flows) / statistics.median(bare):.2f} (bar 1.5)")
    update(one)
    idle = [(update(many), update(one)) for _ in range(choice.rounds)]
    whole = [(m[0] - o[0]) / (choice.types - 1) * 1000 for m, o in idle]
    after = [(m[1] - o[1]) / (choice.types - 1) * 1000 for m, o in idle]
    print(f"per idle flow: {quartiles(after, 3)} ms after analysis, {quartiles(whole, 3)} ms with analysis (bar 10)")


if __name__ == "__main__":
    main()
