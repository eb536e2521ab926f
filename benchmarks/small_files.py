"""100,000 small JSON files: Auto Loader against Spark's own file source, an update with nothing new, and inference.

    .venv/bin/python benchmarks/small_files.py --files 100000 --per-trigger 0 1000 --rounds 1

1. Both read every file (one record each) into a Delta table, with the same number of files per micro-batch (0: all in one).
2. The same files as a pipeline: the first update, then updates in which nothing is new, in the same session.
3. How long inference takes over 1,000 of them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from figures import quartiles

PIPELINE = """
import dlt

@dlt.table
def bronze():
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json")
    return reader.option("cloudFiles.maxFilesPerTrigger", "{files}").load(spark.conf.get("landing"))
"""


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--files", type=int, default=100_000)
    arguments.add_argument("--per-trigger", type=int, nargs="+", default=[0, 10_000])
    arguments.add_argument("--rounds", type=int, default=1)
    choice = arguments.parse_args()
    work = Path(tempfile.mkdtemp(prefix="small-files-bench-"))
    try:
        for line in run(choice, work):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def write_files(folder: Path, files: int) -> None:
    """One record of 90 bytes per file, 1,000 files per folder."""
    for number in range(files):
        if number % 1000 == 0:
            (folder / f"{number // 1000:04d}").mkdir(parents=True)
        record = {"id": number, "name": f"name {number}", "amount": number / 8, "at": "2026-03-01T08:00:00Z"}
        (folder / f"{number // 1000:04d}" / f"{number:07d}.json").write_text(json.dumps(record) + "\n")


def run(choice: argparse.Namespace, work: Path) -> Iterator[str]:
    from lakelet.autoloader import register
    from lakelet.spark.launch.session import start_session

    landing = work / "landing"
    write_files(landing, choice.files)
    spark = start_session(app_name="small-files-bench", input_bytes=1 << 30)
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    yield f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {choice.files} files"
    for per_trigger in choice.per_trigger:
        yield _against_spark(spark, landing, work, per_trigger or choice.files, choice.rounds)
    yield from _updates(spark, landing, work, choice.files)
    yield _inference(landing)
    spark.stop()


def _against_spark(spark: Any, landing: Path, work: Path, per_trigger: int, rounds: int) -> str:
    ours: list[float] = []
    theirs: list[float] = []
    for n in range(rounds):
        place = work / f"run-{per_trigger}-{n}"
        ours.append(_seconds(partial(_ours, spark, landing, place / "ours", per_trigger)))
        theirs.append(_seconds(partial(_theirs, spark, landing, place / "theirs", per_trigger)))
        shutil.rmtree(place, ignore_errors=True)
    ratio = sorted(ours)[len(ours) // 2] / sorted(theirs)[len(theirs) // 2]
    return f"{per_trigger} files per micro-batch: ours {quartiles(ours)} s, Spark {quartiles(theirs)} s, ratio {ratio:.2f}"


def _ours(spark: Any, landing: Path, place: Path, per_trigger: int) -> None:
    reader = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
    reader = reader.option("cloudFiles.maxFilesPerTrigger", str(per_trigger)).option("cloudFiles.schemaLocation", str(place / "schema"))
    _write(reader.load(str(landing)), place)


def _theirs(spark: Any, landing: Path, place: Path, per_trigger: int) -> None:
    schema = "amount DOUBLE, at STRING, id BIGINT, name STRING, _rescued_data STRING"
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", str(per_trigger)).option("recursiveFileLookup", "true")
    _write(reader.json(str(landing)), place)


def _write(frame: Any, place: Path) -> None:
    writer = frame.writeStream.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True)
    writer.format("delta").start(str(place / "table")).awaitTermination()


def _updates(spark: Any, landing: Path, work: Path, files: int) -> Iterator[str]:
    from lakelet.base.names import Namespace
    from lakelet.config.update_config import PipelineConfig
    from lakelet.pipeline import Pipeline

    source = work / "pipeline.py"
    source.write_text(PIPELINE.format(files=files))
    config = PipelineConfig(
        name="small-files",
        pipeline_id="00000000-0000-0000-0000-000000000001",
        root=work,
        files=(source,),
        import_roots=(),
        namespace=Namespace("main", "default"),
        parameters={"landing": str(landing)},
        storage=work / "storage",
    )
    pipeline = Pipeline(config, spark=spark)
    yield f"first update of a pipeline: {_seconds(pipeline.run):.1f} s"
    yield f"updates with nothing new: {quartiles([_seconds(pipeline.run) for _ in range(5)])} s"


def _inference(landing: Path) -> str:
    from lakelet.autoloader import AutoLoaderSource, SourceSpec

    spec = SourceSpec(str(landing / "0000"), {"cloudFiles.format": "json", "cloudFiles.inferColumnTypes": "true"})
    return f"inference over 1,000 files: {_seconds(lambda: AutoLoaderSource.open(spec, state=None).columns()):.2f} s"


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
