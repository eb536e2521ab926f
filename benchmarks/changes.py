"""Change tables against a MERGE written by hand, in one process.

    .venv/bin/python benchmarks/changes.py --events 1000000 --keys 100000 --batches 10
    .venv/bin/python benchmarks/changes.py --history --events 1000000 --keys 100000 --batches 10
    .venv/bin/python benchmarks/changes.py --grown 100 --events 30000 --keys 10000 --changes 1000
    .venv/bin/python benchmarks/changes.py --target 3000000 --changes 1000 --rounds 5

The first form applies a feed with late events in micro-batches to a table of type 1, and for comparison a plain MERGE of the same events,
already cleaned (one per key and batch). The second applies a feed in order to a table of type 2, and for comparison a MERGE that keeps
history: it closes the open versions and inserts the new ones. The third applies the same few changes in order to two tables of each kind,
one of which has so many times more events of the same keys, and measures processor time. The last changes a few rows of a large table.
Every form ends in a committed table. All warm up on a part of the feed, then take turns in going first; the ratio of each round counts.
Prints machine, load, seconds and ratios. Bars: 1.5 for either type, 1.3 for the last batch against the first, 1.15 for more history.
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

from figures import quartiles


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


class HistoryMerge:
    """A table whose versions are kept by MERGE statements, for clean input in the order of its events.

    Of each key the first event of a batch closes the open version, and every event opens one, which ends at the next. An event that closes
    has its key to be matched by, one that opens has none, so that it is inserted.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def apply(self, rows: Any) -> None:
        from delta.tables import DeltaTable
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        order = Window.partitionBy("id").orderBy("seq")
        columns = ["id", "name", "score", "amount", "note", "valid_from", "valid_to"]
        numbered = rows.withColumns({"valid_from": F.col("seq"), "valid_to": F.lead("seq").over(order), "n": F.row_number().over(order)})
        opening = numbered.where("NOT gone").select(*columns)
        if not self.path.exists():
            opening.write.format("delta").save(str(self.path))
            return
        closing = numbered.where("n = 1").select(*columns, F.col("id").alias("closes"))
        staged = closing.unionByName(opening.withColumn("closes", F.lit(None).cast("long")))
        target = DeltaTable.forPath(rows.sparkSession, str(self.path)).alias("t")
        merge = target.merge(staged.alias("s"), "t.id = s.closes AND t.valid_to IS NULL")
        merge = merge.whenMatchedUpdate(set={"valid_to": "s.valid_from"})
        merge.whenNotMatchedInsert("s.closes IS NULL", {name: f"s.{name}" for name in columns}).execute()


def timed(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def processor_seconds() -> float:
    """Processor time that this process and its Java process have used."""
    import psutil

    here = psutil.Process()
    used = [process.cpu_times() for process in (here, *here.children(recursive=True))]
    return sum(time.user + time.system for time in used)


def by_feed(spark: Any, work: Path, choice: argparse.Namespace) -> None:
    """Micro-batches of a whole feed."""
    from pyspark.sql import functions as F

    late = 0.0 if choice.history else choice.late
    feed(spark, choice.events, choice.keys, late, choice.batches).write.partitionBy("batch").parquet(str(work / "feed"))
    all_rows = spark.read.parquet(str(work / "feed"))
    rival: Any = HistoryMerge
    if not choice.history:
        rival = Plain
        latest = F.max_by(F.struct(*(c for c in all_rows.columns if c != "id")), "seq").alias("w")
        clean = all_rows.groupBy("id", F.col("batch").alias("b")).agg(latest).select("id", "w.*")
        clean.write.partitionBy("batch").parquet(str(work / "clean"))
    small = all_rows.where("batch < 2 AND id % 50 = 0")
    kind = 2 if choice.history else 1
    for table in (Ours(work / "warm-ours", kind), rival(work / "warm-plain")):
        for number in (0, 1):
            table.apply(small.where(F.col("batch") == number).dropDuplicates(["id"]))
    found = [one_round(spark, work, choice, number, kind, rival) for number in range(choice.rounds)]
    ratios, growths = zip(*found, strict=True)
    print(f"type {kind} / MERGE: {quartiles(ratios)}, {len(found)} rounds; bar 1.5")
    print(f"last batch / first: {quartiles(growths)}; bar 1.3")


def one_round(spark: Any, work: Path, choice: argparse.Namespace, turn: int, kind: int, rival: Any) -> tuple[float, float]:
    """The whole feed into new tables, who goes first alternating. Returns Lakelet / MERGE, and Lakelet's last batch / its first."""
    from pyspark.sql import functions as F

    ours, plain = Ours(work / f"ours{turn}", kind), rival(work / f"plain{turn}")
    forms: dict[str, Any] = {f"type {kind}": ours, "MERGE": plain}
    seconds: dict[str, list[float]] = {name: [] for name in forms}
    for number in range(choice.batches):
        for name in sorted(forms, reverse=bool((turn + number) % 2)):
            folder = "clean" if isinstance(forms[name], Plain) else "feed"
            rows = spark.read.parquet(str(work / folder)).where(F.col("batch") == number)
            seconds[name].append(timed(partial(forms[name].apply, rows)))
    if choice.history:
        same_versions(spark, ours.path, plain.path)
    total = {name: sum(found) for name, found in seconds.items()}
    for name, found in seconds.items():
        each, table = ", ".join(f"{s:.1f}" for s in found), forms[name]
        moved = f"; {table.rewritten / max(1, table.changed):.1f} rows written per changed row" if isinstance(table, Ours) else ""
        print(f"{name}: {total[name]:.1f} s = {total[name] / total['MERGE']:.2f} x MERGE ({each}){moved}", flush=True)
    own = seconds[f"type {kind}"]
    for path in (ours.path, plain.path):
        shutil.rmtree(path)
    return total[f"type {kind}"] / total["MERGE"], own[-1] / own[0]


def same_versions(spark: Any, ours: Path, plain: Path) -> None:
    """Stop unless both tables have the same versions."""
    own = spark.read.format("delta").load(str(ours)).withColumnsRenamed({"__START_AT": "valid_from", "__END_AT": "valid_to"})
    theirs = spark.read.format("delta").load(str(plain)).select(*own.columns)
    sums = [rows.selectExpr("count(*)", "sum(hash(*))").first() for rows in (own, theirs)]
    if sums[0] != sums[1]:
        raise SystemExit(f"the two tables differ: {sums}")


def grown(spark: Any, work: Path, choice: argparse.Namespace) -> None:
    """The same changes after some history, and after many times as much of the same keys."""
    from pyspark.sql import functions as F

    most = choice.events * choice.grown
    for kind in (1, 2):
        tables = {times: Ours(work / f"kind{kind}-{times}", kind) for times in (1, choice.grown)}
        for times, table in tables.items():
            table.apply(feed(spark, choice.events * times, choice.keys, 0, 1))
        ratios, took = [], []
        for turn in range(choice.rounds + 2):
            few = feed(spark, choice.changes, choice.keys, 0, 1).withColumn("seq", F.col("seq") + most + turn * choice.changes)
            few = few.localCheckpoint()
            used = {}
            for times in sorted(tables, reverse=bool(turn % 2)):
                before, started = processor_seconds(), time.perf_counter()
                tables[times].apply(few)
                used[times] = processor_seconds() - before
                took.append((times, time.perf_counter() - started))
            ratios.append(used[choice.grown] / used[1])
        seconds = ", ".join(f"x{times} {quartiles([s for t, s in took[4:] if t == times])} s" for times in tables)
        print(f"type {kind}, history x {choice.grown} / x 1, processor time: {quartiles(ratios[2:])}; bar 1.15 ({seconds})", flush=True)


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
    arguments.add_argument("--history", action="store_true", help="type 2 against a MERGE that keeps history")
    arguments.add_argument("--grown", type=int, help="so many times more history; then the third form is measured")
    arguments.add_argument("--rounds", type=int, default=5)
    choice = arguments.parse_args()
    from lakelet.spark.launch.session import start_session

    spark = start_session(app_name="changes-bench", input_bytes=1 << 30)
    spark.sparkContext.setLogLevel("ERROR")
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    work = Path(tempfile.mkdtemp(prefix="changes-bench-"))
    try:
        (on_large if choice.target else grown if choice.grown else by_feed)(spark, work, choice)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        spark.stop()


if __name__ == "__main__":
    main()
