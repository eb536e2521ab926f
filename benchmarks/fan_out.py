"""One bronze table, one streaming table per event type: what a flow costs with new rows and without, against a bare batch append.

    .venv/bin/python benchmarks/fan_out.py --types 300 --busy 30 --rounds 5

Every round lands rows for `busy` types, runs one update, and appends the same rows to as many plain Delta tables with four threads, in the
same process. Then updates with nothing new. Prints machine, load, quartiles and ratios. Bars: 1.5 ×, 10 ms.
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--types", type=int, default=300)
    parser.add_argument("--busy", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    choice = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="fan-out-"))
    try:
        measure(choice, work)
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
