"""Change tables against a MERGE written by hand, in one process.

    .venv/bin/python benchmarks/changes.py --events 1000000 --keys 100000 --batches 10
    .venv/bin/python benchmarks/changes.py --target 3000000 --changes 1000 --rounds 5

The first form applies a feed with late events in micro-batches: Lakelet's type 1 and type 2, and for comparison a plain MERGE of the same
events, already cleaned (one per key and batch). The second changes a few rows of a large table. Every form ends in a committed table.
Both warm up on a part of the feed, then take turns in going first; the ratio of each round counts, type 2 is measured in the last one.
Prints machine, load, seconds and ratios. Bars: 1.5 for type 1.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any


def feed(spark: Any, events: int, keys: int, late: float, batches: int) -> Any:
    """id, seq, batch and five columns; `late` of the events come one batch after their turn; a twentieth are deletes."""
    from pyspark.sql import functions as F

    numbered = spark.range(events).withColumnRenamed("id", "seq")
    turn = (F.col("seq") * batches / events).cast("int")
    is_late = F.pmod(F.hash("seq"), F.lit(1000)) < int(late * 1000)
    return numbered.select(
        F.pmod(F.hash(F.col("seq") * 7), F.lit(keys)).cast("long").alias("id"),
        "seq",
        F.least(turn + is_late.cast("int"), F.lit(batches - 1)).alias("batch"),
        F.concat(F.lit("name "), F.col("seq").cast("string")).alias("name"),
        (F.col("seq") % 97).cast("int").alias("score"),
        (F.col("seq") / 8).alias("amount"),
        F.sha2(F.col("seq").cast("string"), 256).alias("note"),
        (F.pmod(F.hash(F.col("seq") + 3), F.lit(20)) == 0).alias("gone"),
    )


class Ours:
    """A change table of Lakelet."""

    def __init__(self, path: Path, kind: int) -> None:
        from lakelet.language.model import ChangeSpec

        self.path, self._batch = path, 0
        left_out = (("seq",), ("gone",), ("batch",))
        self._spec = ChangeSpec(
            source="feed", keys=(("id",),), sequence_by="seq", scd_type=kind, apply_as_deletes="gone", except_column_list=left_out
        )
        self.rewritten = self.changed = 0

    def apply(self, rows: Any) -> None:
        from lakelet.cdc import writing
        from lakelet.cdc.change_table import ChangeTable
        from lakelet.cdc.changes import layout
        from lakelet.storage.delta.batch_metrics import BatchMetrics
        from lakelet.storage.delta.table_spec import TableSpec
        from lakelet.storage.delta.transaction import Txn

        shape = layout(self._spec, rows)
        txn = Txn("benchmark", self._batch)
        table = ChangeTable(self.path, (self._spec,), TableSpec(shape.visible))
        found = BatchMetrics("event", "update", "table", "flow", self._batch, rows=0)
        done = writing.apply(self._spec, table, rows, shape, txn=txn, measure=lambda: found, replayed=False)
        self._batch += 1
        if done is not None and done.changed is not None:
            self.rewritten += done.changed.rewritten
            self.changed += done.changed.upserted + done.changed.deleted


class Plain:
    """A table changed by MERGE statements over clean input: the winner of each key, no tombstones kept."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def apply(self, rows: Any) -> None:
        from delta.tables import DeltaTable

        rows = rows.drop("batch")
        if not self.path.exists():
            rows.where("NOT gone").drop("gone").write.format("delta").save(str(self.path))
            return
        merge = DeltaTable.forPath(rows.sparkSession, str(self.path)).alias("t").merge(rows.alias("s"), "t.id = s.id")
        values: dict[str, Any] = {name: f"s.{name}" for name in rows.columns if name != "gone"}
        newer = "s.seq > t.seq"
        merge = merge.whenMatchedDelete(f"s.gone AND {newer}").whenMatchedUpdate(f"NOT s.gone AND {newer}", values)
        merge.whenNotMatchedInsert("NOT s.gone", values).execute()


def timed(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def by_feed(spark: Any, work: Path, choice: argparse.Namespace) -> None:
    """Micro-batches of a whole feed."""
    from pyspark.sql import functions as F

    feed(spark, choice.events, choice.keys, choice.late, choice.batches).write.partitionBy("batch").parquet(str(work / "feed"))
    all_rows = spark.read.parquet(str(work / "feed"))
    latest = F.max_by(F.struct(*(c for c in all_rows.columns if c != "id")), "seq").alias("w")
    clean = all_rows.groupBy("id", F.col("batch").alias("b")).agg(latest).select("id", "w.*")
    clean.write.partitionBy("batch").parquet(str(work / "clean"))
    small = spark.read.parquet(str(work / "clean")).where("batch < 2 AND id % 50 = 0")
    for table in (Ours(work / "warm-one", 1), Plain(work / "warm-plain")):
        for number in (0, 1):
            table.apply(small.where(F.col("batch") == number))
    ratios = [one_round(spark, work, choice, number) for number in range(choice.rounds)]
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    print(f"type 1 / plain MERGE: {middle:.2f} ({low:.2f}-{high:.2f}, {len(ratios)} rounds; bar 1.5)")


def one_round(spark: Any, work: Path, choice: argparse.Namespace, turn: int) -> float:
    """The whole feed into new tables, who goes first alternating; type 2 in the last round. Returns type 1 / plain MERGE."""
    from pyspark.sql import functions as F

    forms: dict[str, Any] = {"type 1": Ours(work / f"one{turn}", 1), "plain MERGE": Plain(work / f"plain{turn}")}
    if turn == choice.rounds - 1:
        forms["type 2"] = Ours(work / "two", 2)
    seconds: dict[str, list[float]] = {name: [] for name in forms}
    for number in range(choice.batches):
        for name in sorted(forms, reverse=bool((turn + number) % 2)):
            table = forms[name]
            folder = "clean" if isinstance(table, Plain) else "feed"
            rows = spark.read.parquet(str(work / folder)).where(F.col("batch") == number)
            seconds[name].append(timed(partial(table.apply, rows)))
    total = {name: sum(found) for name, found in seconds.items()}
    for name, found in seconds.items():
        each, table = ", ".join(f"{s:.1f}" for s in found), forms[name]
        moved = f"; {table.rewritten / max(1, table.changed):.1f} rows written per changed row" if isinstance(table, Ours) else ""
        print(f"{name}: {total[name]:.1f} s = {total[name] / total['plain MERGE']:.2f} x plain MERGE ({each}){moved}", flush=True)
    return total["type 1"] / total["plain MERGE"]


def on_large(spark: Any, work: Path, choice: argparse.Namespace) -> None:
    """A few changes on a large table."""
    from pyspark.sql import functions as F

    base = feed(spark, choice.target, choice.target, 0, 1).withColumn("id", F.col("seq")).withColumn("gone", F.lit(False))
    forms: dict[str, Ours | Plain] = {"type 1": Ours(work / "one", 1), "plain MERGE": Plain(work / "plain")}
    for table in forms.values():
        table.apply(base)
    seconds: dict[str, list[float]] = {name: [] for name in forms}
    for turn in range(choice.rounds + 1):
        few = base.where(F.pmod(F.hash(F.col("id") + turn), F.lit(choice.target // choice.changes)) == 0)
        few = few.withColumn("seq", F.col("seq") + choice.target * (turn + 1)).localCheckpoint()
        for name, table in forms.items():
            seconds[name].append(timed(partial(table.apply, few)))
    for name, found in seconds.items():
        low, middle, high = statistics.quantiles(found[1:], n=4)
        print(f"{name}: {middle:.2f} s ({low:.2f}-{high:.2f})")
    one = forms["type 1"]
    assert isinstance(one, Ours)
    middles = [statistics.median(found[1:]) for found in seconds.values()]
    print(f"type 1 / plain MERGE: {middles[0] / middles[1]:.2f} (bar 1.5); {one.rewritten / max(1, one.changed):.2f} rows per changed row")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--events", type=int, default=1_000_000)
    arguments.add_argument("--keys", type=int, default=100_000)
    arguments.add_argument("--late", type=float, default=0.1)
    arguments.add_argument("--batches", type=int, default=10)
    arguments.add_argument("--target", type=int, help="rows of a large table; then the second form is measured")
    arguments.add_argument("--changes", type=int, default=1000)
    arguments.add_argument("--rounds", type=int, default=5)
    choice = arguments.parse_args()
    from lakelet.spark.launch.session import start_session

    spark = start_session(app_name="changes-bench", input_bytes=1 << 30)
    spark.sparkContext.setLogLevel("ERROR")
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    work = Path(tempfile.mkdtemp(prefix="changes-bench-"))
    try:
        (on_large if choice.target else by_feed)(spark, work, choice)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        spark.stop()


if __name__ == "__main__":
    main()
