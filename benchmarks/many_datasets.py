"""500 datasets, half Python, half SQL: loaded, resolved, analysed and planned; against plain Spark that analyses the same queries by hand.

    .venv/bin/python benchmarks/many_datasets.py --domains 50 --rounds 5

A domain is ten datasets: three bronze tables that Auto Loader fills, silver ones with rules, a view, a change table, three gold views with
joins. The rival makes the same frames in one session, with the columns given by hand, all as batches, each result a temporary view for
those that read it. Both take turns. Prints machine, load, quartiles of wall and processor time of Python and Java, memory, the ratio.
Bars: 12 s, 2 GB.
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from figures import quartiles

ORDERS = "id BIGINT, customer BIGINT, amount DOUBLE, day STRING, kind STRING"
CUSTOMERS = "customer BIGINT, name STRING, country STRING, op STRING, n BIGINT"
PYTHON = """
import dlt
from pyspark.sql import functions as F

LANDING = spark.conf.get("landing")
RULES = {{"has id": "id IS NOT NULL", "positive": "amount > 0", "day": "length(day) = 10"}}

@dlt.table(name="orders_{d}")
def orders():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
            .load(f"{{LANDING}}/orders_{d}"))

@dlt.table(name="customers_{d}")
def customers():
    return (spark.readStream.format("cloudFiles").option("cloudFiles.format", "json").option("cloudFiles.inferColumnTypes", "true")
            .load(f"{{LANDING}}/customers_{d}"))

@dlt.table(name="orders_clean_{d}", partition_cols=["day"])
@dlt.expect_all_or_drop(RULES)
def orders_clean():
    return dlt.read_stream("orders_{d}").select("id", "customer", "amount", "day", F.upper("kind").alias("kind"))

@dlt.view(name="changes_{d}")
@dlt.expect_or_drop("customer", "customer IS NOT NULL")
def changes():
    return spark.readStream.table("customers_{d}").select("customer", F.trim("name").alias("name"), "country", "op", "n")

@dlt.table(name="by_country_{d}")
def by_country():
    joined = dlt.read("orders_clean_{d}").join(dlt.read("customer_{d}"), "customer")
    return joined.groupBy("country", "day").agg(F.sum("amount").alias("total"), F.countDistinct("customer").alias("customers"))
"""
SQL = """
CREATE OR REFRESH STREAMING TABLE returns_{d} AS SELECT * FROM STREAM read_files('${{landing}}/returns_{d}', format => 'json');

CREATE OR REFRESH STREAMING TABLE returns_clean_{d} (
  CONSTRAINT known EXPECT (id IS NOT NULL) ON VIOLATION DROP ROW,
  CONSTRAINT positive EXPECT (amount > 0))
AS SELECT id, customer, amount, to_date(day) AS day, lower(kind) AS kind FROM STREAM returns_{d} WHERE kind <> 'test';

CREATE OR REFRESH STREAMING TABLE customer_{d};
CREATE FLOW customer_flow_{d} AS AUTO CDC INTO customer_{d} FROM STREAM(changes_{d})
  KEYS (customer) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY n COLUMNS * EXCEPT (op, n) STORED AS SCD TYPE 1;

CREATE OR REFRESH MATERIALIZED VIEW balance_{d} AS
WITH back AS (SELECT customer, sum(amount) AS returned FROM returns_clean_{d} GROUP BY customer)
SELECT o.customer, c.name, sum(o.amount) AS bought, coalesce(max(b.returned), 0) AS returned
FROM orders_clean_{d} o JOIN customer_{d} c ON c.customer = o.customer LEFT JOIN back b ON b.customer = o.customer GROUP BY ALL;

CREATE OR REFRESH MATERIALIZED VIEW best_{d} AS
SELECT *, rank() OVER (ORDER BY bought DESC) AS place FROM balance_{d} QUALIFY place <= 10;
"""


def land(folder: Path, domains: int) -> None:
    order = {"id": 1, "customer": 2, "amount": 3.5, "day": "2024-01-01", "kind": "web"}
    customer = {"customer": 2, "name": "a", "country": "it", "op": "U", "n": 1}
    for d in range(domains):
        for name, row in (("orders", order), ("returns", order), ("customers", customer)):
            (folder / f"{name}_{d:03d}").mkdir(parents=True)
            (folder / f"{name}_{d:03d}" / "1.json").write_text(json.dumps(row) + "\n")


def write_sources(folder: Path, domains: int) -> tuple[Path, ...]:
    files = []
    for d in range(domains):
        for suffix, text in ((".py", PYTHON), (".sql", SQL)):
            file = folder / f"d{d:03d}{suffix}"
            file.write_text(textwrap.dedent(text.format(d=f"{d:03d}")))
            files.append(file)
    return tuple(files)


def by_hand(spark: Any, landing: Path, domains: int) -> int:
    """Make the frames of all datasets in plain Spark and ask each for its columns; the number of frames."""
    from pyspark.sql import functions as F

    made = 0
    for number in range(domains):
        d = f"{number:03d}"

        def put(name: str, frame: Any, d: str = d) -> None:
            nonlocal made
            made += len(frame.columns) > 0
            frame.createOrReplaceTempView(f"{name}_{d}")

        for name, columns in (("orders", ORDERS), ("customers", CUSTOMERS), ("returns", ORDERS)):
            put(name, spark.read.schema(columns).json(str(landing / f"{name}_{d}")))
        clean = spark.table(f"orders_{d}").select("id", "customer", "amount", "day", F.upper("kind").alias("kind"))
        put("orders_clean", clean.where("id IS NOT NULL AND amount > 0 AND length(day) = 10"))
        put("changes", spark.table(f"customers_{d}").select("customer", F.trim("name").alias("name"), "country", "op", "n"))
        put("customer", spark.table(f"changes_{d}").where("op <> 'D'").drop("op", "n"))
        joined = spark.table(f"orders_clean_{d}").join(spark.table(f"customer_{d}"), "customer")
        totals = joined.groupBy("country", "day").agg(F.sum("amount").alias("total"), F.countDistinct("customer").alias("customers"))
        put("by_country", totals)
        for statement in SQL.format(d=d).split(";"):
            head, _, query = statement.partition("\nAS SELECT")
            view, _, text = statement.partition(" AS\n")
            if "returns_clean" in head and query:
                put("returns_clean", spark.sql("SELECT" + query.replace("STREAM ", "")))
            elif "MATERIALIZED" in view and text:
                name = view.split()[-1].removesuffix(f"_{d}")
                put(name, spark.sql(text))
    return made


@dataclass(frozen=True)
class Spent:
    """Seconds of the wall clock, and of processors: of Python and of Java."""

    wall: float
    python: float
    java: float


def spent(java: psutil.Process, action: Callable[[], object]) -> Spent:
    me = psutil.Process()
    before = (time.monotonic(), sum(me.cpu_times()[:2]), sum(java.cpu_times()[:2]))
    action()
    return Spent(*(b - a for a, b in zip(before, (time.monotonic(), sum(me.cpu_times()[:2]), sum(java.cpu_times()[:2])), strict=True)))


def told(name: str, rounds: list[Spent]) -> None:
    wall, python, java = ([getattr(one, field) for one in rounds] for field in ("wall", "python", "java"))
    print(f"{name}: {quartiles(wall)} s wall; processor {quartiles(python)} s Python, {quartiles(java)} s Java")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--domains", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", help="write a profile of one more round here")
    choice = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="many-datasets-"))
    try:
        measure(choice, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def measure(choice: argparse.Namespace, work: Path) -> None:
    from lakelet.base.names import Namespace
    from lakelet.config.update_config import PipelineConfig
    from lakelet.pipeline import Pipeline
    from lakelet.spark.launch.session import start_session

    count = choice.domains * 10
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {count} datasets")
    land(work / "landing", choice.domains)
    files = write_sources(work, choice.domains)
    spark = start_session(app_name="many-datasets", input_bytes=1 << 30)  # as `lakelet run` does for so much code
    java = next(p for p in psutil.Process().children(recursive=True) if "java" in p.name())
    config = PipelineConfig("many", "many", work, files, (work,), Namespace(), {"landing": str(work / "landing")}, work / "storage")

    def plan() -> None:
        steps = len(Pipeline(config, spark=spark).plan().steps)
        assert steps == choice.domains * 9, steps

    def rival() -> None:
        assert by_hand(spark, work / "landing", choice.domains) == count

    first = spent(java, plan)
    told("first time", [first])
    rival()
    ours: list[Spent] = []
    theirs: list[Spent] = []
    for round_ in range(choice.rounds):
        for side in (0, 1) if round_ % 2 else (1, 0):
            (ours if side == 0 else theirs).append(spent(java, plan if side == 0 else rival))
    told("Lakelet, loaded, resolved, analysed and planned", ours)
    told("plain Spark, analysed by hand", theirs)
    wall = statistics.median(one.wall for one in ours)
    cpu = statistics.median(one.python + one.java for one in ours) / statistics.median(one.python + one.java for one in theirs)
    print(f"{wall:.1f} s for {count} datasets (bar {12 * count / 500:.1f}), {wall / count * 1000:.1f} ms each")
    print(f"ratio {wall / statistics.median(one.wall for one in theirs):.2f} wall, {cpu:.2f} processor")
    held = (psutil.Process().memory_info().rss + java.memory_info().rss) / 2**30
    print(f"memory of Python and Java: {held:.2f} GB (bar 2)")
    if choice.profile:
        import cProfile

        profile = cProfile.Profile()
        profile.runcall(plan)
        profile.dump_stats(choice.profile)


if __name__ == "__main__":
    main()
