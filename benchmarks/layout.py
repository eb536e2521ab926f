"""Files and bytes that typical queries on audit events read, by how the table is laid out.

    .venv/bin/python benchmarks/layout.py --days 10 --records 120000

The generator of `examples/audit` makes the files. A pipeline writes them to one table per layout, `lakelet maintain` runs once, and Spark's
own scan counts what each query reads. Files are kept small (`delta.targetFileSize`), so that a small table has as many as a large one.
Prints one line per layout and query: files read of all files, megabytes read.
"""

from __future__ import annotations

import argparse
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILES_PER_DAY = 24
LAYOUTS = {
    "as it came": "",
    "partitioned by day": 'partition_cols=["event_date"], ',
    "partitioned by day, ZORDER": 'partition_cols=["event_date"], zorder="user_arn,eventSource", ',
    "clustered by day and user": 'cluster_by=["event_date", "user_arn"], ',
}
PIPELINE = """
import dlt
from pyspark.sql import functions as F

TEXTS = ["eventID", "eventName", "eventSource", "awsRegion", "sourceIPAddress", "userAgent", "errorCode", "requestParameters"]
RECORD = ", ".join(f"{name} STRING" for name in TEXTS) + ", eventTime TIMESTAMP, userIdentity STRUCT<arn STRING>"

@dlt.table
def events():
    files = spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.maxFilesPerTrigger", "120")
    records = files.schema(f"Records ARRAY<STRUCT<{RECORD}>>").load(spark.conf.get("landing")).select(F.inline("Records"))
    first = F.to_date("eventTime").alias("event_date"), F.col("userIdentity.arn").alias("user_arn")
    return records.select(*first, "eventTime", *TEXTS).where("eventID <> '' AND eventTime IS NOT NULL")

def layout(name, zorder=None, **placed):
    properties = {"delta.targetFileSize": "64kb", **({"pipelines.autoOptimize.zOrderCols": zorder} if zorder else {})}

    @dlt.table(name=name, table_properties=properties, **placed)
    def copy():
        return spark.readStream.option("maxFilesPerTrigger", "2").table("events")

"""
QUERIES = {
    "one day": "event_date = '{day}'",
    "one user on one day": "event_date = '{day}' AND user_arn = '{user}'",
    "one user, all days": "user_arn = '{user}'",
    "one service, one week": "event_date BETWEEN '{day}' AND date_add('{day}', 6) AND eventSource = 'iam.amazonaws.com'",
    "one event by its id": "eventID = '{event}'",
}


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--days", type=int, default=10)
    arguments.add_argument("--records", type=int, default=120_000)
    choice = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="layout-bench-") as folder:
        work = Path(folder)
        land(work / "landing", choice.days, choice.records // (choice.days * FILES_PER_DAY))
        (work / "pipeline.py").write_text(PIPELINE + "".join(declared(number, words) for number, words in enumerate(LAYOUTS.values())))
        lakelet(work, "run", "pipeline.py", "--param", f"landing={work}/landing", "--storage", f"{work}/storage")
        lakelet(work, "maintain", "--storage", f"{work}/storage")
        for line in measured(work):
            print(line, flush=True)


def land(landing: Path, days: int, per_file: int) -> None:
    generator = runpy.run_path(str(ROOT / "examples/audit/generate.py"))
    for name, content in generator["files"](days, FILES_PER_DAY, per_file, 1):
        generator["write"](landing / name, content)


def declared(number: int, words: str) -> str:
    return f'layout("layout_{number}", {words})\n'


def lakelet(work: Path, *words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "lakelet", *words], cwd=work, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


def measured(work: Path) -> Iterator[str]:
    from lakelet.base.names import Namespace
    from lakelet.spark.launch.session import start_session
    from lakelet.storage.root import Storage

    spark = start_session(app_name="layout-bench", input_bytes=1 << 30)
    spark.sparkContext.setLogLevel("ERROR")
    spark.conf.set("spark.sql.adaptive.enabled", "false")  # the plan that ran is then the plan that is asked
    storage = Storage(work / "storage")
    names = next(iter(storage.registry().datasets.values())).name.rsplit(".", 1)[0].split(".")
    tables = {text: str(storage.table_path(Namespace(*names).resolve(f"layout_{n}"))) for n, text in enumerate(LAYOUTS)}
    row = spark.read.format("delta").load(tables["as it came"]).where("user_arn IS NOT NULL").orderBy("eventID").first()
    assert row is not None
    yield "| layout | query | rows | files read | MB read |\n|---|---|---|---|---|"
    for text, path in tables.items():
        total, size = scanned(spark, path, "true")[1:]
        for query, condition in QUERIES.items():
            rows, files, read = scanned(spark, path, condition.format(day=row.event_date, user=row.user_arn, event=row.eventID))
            yield f"| {text} | {query} | {rows} | {files} of {total} | {read / 1e6:.2f} of {size / 1e6:.2f} |"
    spark.stop()


def scanned(spark: Any, path: str, condition: str) -> tuple[int, int, int]:
    """Rows that pass the condition; files that Spark's scan read for them, and their bytes."""
    frame = spark.read.format("delta").load(path).where(condition).select("eventID", "user_arn")
    rows = len(frame.collect())
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    metrics = [leaves.apply(i).metrics() for i in range(leaves.size())]
    files, size = (sum(int(m.apply(name).value()) for m in metrics) for name in ("numFiles", "filesSize"))
    return rows, files, size


if __name__ == "__main__":
    main()
