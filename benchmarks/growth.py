"""What the same update costs with 100 times the history, as a ratio: each case of a medallion by itself, and all of it together.

    .venv/bin/python benchmarks/growth.py                                    # every case, hours
    .venv/bin/python benchmarks/growth.py ingest log --rounds 5              # some of them
    .venv/bin/python benchmarks/growth.py --list                             # their names, and what of each grows
    .venv/bin/python benchmarks/growth.py type-2 --few 5 --times 20          # a smaller history: some minutes
    .venv/bin/python benchmarks/growth.py ingest --continuous                # within one process

A delivery is one file of JSON lines. A history is `--few` deliveries on one side and `--times` as many on the other. Each delivery is a
micro-batch, with a commit to every table that streams, a batch in the checkpoints and in the registry of seen files. They are made by one
update, and a last one by a second update, because a thousand updates take an hour. Cases whose cost can depend on the number of updates
(`log`, `medallion`) get as many updates in the event log, too: the events of the second one under other ids and times, appended and
compacted as an update does it. A line says what each side holds.

Then both sides get the same new deliveries, and each updates in a new process, as a job does, in turns; the first round does not count.
Processor time is that of all processes of the command. `--continuous` has one running update for each side: a delivery lands, and its
cost is what the processes took in a window of fixed length. Changed keys are new ones, and those of the last deliveries, `--spread` of
them anywhere in the history. `--keep` stores the histories in a folder, from which the next run with the same options has them.

Prints machine, load, and for each step medians with quartiles of both sides and of the ratio of each round. Bar: 1.15.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
from deltalake import DeltaTable
from figures import quartiles
from processes import ENVIRONMENT, Measured, measured

BAR = 1.15
FEW, MANY = "few", "many"
RECENT = 10
"""So many of the last deliveries have keys that change again."""
FIRST_DAY = datetime(2026, 1, 1, tzinfo=timezone.utc)
COMMAND = [sys.executable, "-m", "lakelet"]

BRONZE = """\
import dlt
from pyspark.sql import functions as F

BATCH = spark.conf.get("files_per_batch")
COLUMNS = "id BIGINT, customer BIGINT, kind STRING, at TIMESTAMP, day DATE, amount DECIMAL(12, 2), note STRING, op STRING"


@dlt.table
def bronze():
    options = {"cloudFiles.format": "json", "cloudFiles.maxFilesPerTrigger": BATCH}
    return spark.readStream.format("cloudFiles").options(**options).schema(COLUMNS).load(spark.conf.get("landing"))


def arrived():
    return spark.readStream.option("maxFilesPerTrigger", BATCH).table("bronze")
"""
WITHIN_WATERMARK = """

@dlt.table
def distinct_rows():
    return arrived().withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["id"])
"""
EVERY_KEY = """

@dlt.table
def distinct_rows():
    return arrived().dropDuplicates(["id"])
"""
FAN_OUT = """

def of_kind(kind):
    @dlt.table(name=kind)
    def rows():
        return arrived().where(f"kind = '{kind}'")


for number in range(8):
    of_kind(f"k{number}")
"""
CHANGES = """

dlt.create_streaming_table("customers_{type}")
dlt.apply_changes(
    target="customers_{type}", source="changes_{type}", keys=["customer"], sequence_by="id", apply_as_deletes="op = 'delete'",
    except_column_list=["op", "day"], stored_as_scd_type={type},
)


@dlt.view
def changes_{type}():
    return arrived()
"""
SNAPSHOTS = """\
import dlt
from pathlib import Path

SNAPSHOTS = Path(spark.conf.get("landing"))

dlt.create_streaming_table("customers")


def next_snapshot(last):
    version = 0 if last is None else last + 1
    file = SNAPSHOTS / f"{version}.parquet"
    return (spark.read.parquet(str(file)), version) if file.exists() else None


dlt.apply_changes_from_snapshot(target="customers", snapshot_and_version=next_snapshot, keys=["customer"], stored_as_scd_type=2)
"""
VIEWS = {
    "append": 'dlt.read("bronze").where("amount > 10").selectExpr("id", "kind", "upper(note) AS note")',
    "groups": 'dlt.read("bronze").groupBy("kind", F.date_trunc("hour", "at").alias("hour"))'
    '.agg(F.countDistinct("customer").alias("customers"), F.avg("amount").alias("mean"))',
    "windows": 'dlt.read("bronze").withColumn("rn", F.expr("row_number() OVER (PARTITION BY customer ORDER BY id DESC)")).where("rn = 1")',
    "merge": 'dlt.read("bronze").groupBy("kind", "day").agg(F.count("*").alias("rows"), F.sum("amount").alias("amount"))',
    "distinct": 'dlt.read("bronze").select("id", "customer", "kind", "at", "amount").distinct()',
}
VIEW = """

@dlt.table
def result():
    return {query}
"""
PARTITIONS = """

@dlt.table(partition_cols=["day"])
def result():
    return dlt.read("bronze").groupBy("day", "kind").agg(F.countDistinct("customer").alias("customers"))
"""
SILVER = """

@dlt.table(table_properties={"lakelet.quarantine": "true"})
@dlt.expect("noted", "note IS NOT NULL")
@dlt.expect_or_drop("amount_known", "amount IS NOT NULL")
def orders():
    return arrived().withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["id"])


@dlt.table
def large_orders():
    return spark.readStream.option("maxFilesPerTrigger", BATCH).table("orders").where("amount > 90")


@dlt.table
def orders_by_hour():
    hour = F.date_trunc("hour", "at").alias("hour")
    return dlt.read("orders").groupBy("kind", hour).agg(F.countDistinct("customer").alias("customers"), F.avg("amount").alias("mean"))


@dlt.table
def orders_by_day():
    return dlt.read("orders").groupBy("kind", "day").agg(F.count("*").alias("rows"), F.sum("amount").alias("amount"))
"""


@dataclass(frozen=True)
class Case:
    """A pipeline, and what of it is measured.

    Attributes:
        grows: what the large history has more of, beside files and their rows.
        code: the pipeline.
        table: the stored table that the history is counted by.
        streams: what is updated while the history is made; the rest once at its end. Empty: everything.
        technique: of a materialized view, which `LAKELET_REFRESH` asks for.
        steps: the commands of a round, one after the other.
        updates: whether the event log gets as many updates.
        snapshots: whether a delivery is a whole copy of the customers.
    """

    grows: str
    code: str
    table: str
    streams: str = ""
    technique: str = ""
    steps: Mapping[str, Sequence[str]] = field(default_factory=lambda: {"update": ("run",)})
    updates: bool = False
    snapshots: bool = False


def view(technique: str, code: str) -> Case:
    return Case("commits and rows of what the view reads, rows of the view", BRONZE + code, "bronze", "bronze", technique)


LOG_STEPS = {"update": ("run",), "update with nothing new": ("run",), "report": ("report",), "events": ("events", "--json")}
CASES = {
    "ingest": Case("batches, registry of seen files, commits", BRONZE, "bronze"),
    "log": Case("updates and events", BRONZE, "bronze", steps=LOG_STEPS, updates=True),
    "dedup-watermark": Case("batches, commits; the state is bounded by the watermark", BRONZE + WITHIN_WATERMARK, "distinct_rows"),
    "dedup-state": Case("batches, commits, keys in the state", BRONZE + EVERY_KEY, "distinct_rows"),
    "fan-out": Case("batches, commits of nine tables", BRONZE + FAN_OUT, "bronze"),
    "type-1": Case("batches, commits, keys", BRONZE + CHANGES.format(type=1), "customers_1"),
    "type-2": Case("batches, commits, keys, versions of a key", BRONZE + CHANGES.format(type=2), "customers_2"),
    "snapshots": Case("applied snapshots, versions of a key; a snapshot stays as large", SNAPSHOTS, "customers", snapshots=True),
    **{f"view-{name}": view(name, VIEW.format(query=VIEWS[name])) for name in ("append", "groups", "windows", "merge")},
    "view-partitions": view("partitions", PARTITIONS),
    "view-full": view("full", VIEW.format(query=VIEWS["groups"])),
    "dedup-view": view("", VIEW.format(query=VIEWS["distinct"])),
    "medallion": Case(
        "all of it: batches, commits, keys, versions, quarantined rows, updates and events",
        BRONZE + SILVER + CHANGES.format(type=1) + CHANGES.format(type=2),
        "orders",
        "bronze,orders,large_orders,customers_1,customers_2",
        steps={"update": ("run",), "report": ("report",)},
        updates=True,
    ),
}


# --- deliveries ---------------------------------------------------------------------------------------------------------------------------


def scattered(number: int, below: int) -> int:
    """A number below another one, the same for the same number."""
    return (number * 2_654_435_761 >> 7) % max(1, below)


def delivery(number: int, span: int, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The rows of a delivery after `span` earlier ones: a half of them new customers, the others as the options say."""
    half = options.rows // 2
    for row in range(options.rows):
        id = number * options.rows + row
        recent = span - 1 - scattered(id, min(RECENT, span)) if span else 0
        anywhere = scattered(id, span)
        older = anywhere if scattered(id + 1, 1000) < options.spread * 1000 else recent
        at = FIRST_DAY + timedelta(minutes=10 * number, seconds=row % 600)
        yield {
            "id": id if row % 20 or not number else id - options.rows,  # every twentieth line comes again
            "customer": number * half + row // 2 if row % 2 or not span else older * half + scattered(id + 2, half),
            "kind": f"k{scattered(id, 8)}",
            "at": at.isoformat(),
            "day": at.date().isoformat(),
            "amount": None if row % 50 == 49 else scattered(id, 10_000) / 100,
            "note": f"note {scattered(id, 1 << 40)}",
            "op": "delete" if row % 40 == 8 else "upsert",
        }


def land(folder: Path, number: int, span: int, options: argparse.Namespace) -> None:
    """Put a delivery into a folder in one step. `number`: what it brings; `span`: how many there were before."""
    hidden = folder / f".{number:09d}"
    hidden.write_text("".join(json.dumps(row) + "\n" for row in delivery(number, span, options)))
    hidden.rename(folder / f"{number:09d}.json")


def land_snapshot(folder: Path, version: int, options: argparse.Namespace) -> None:
    """The customers as a whole; from one snapshot to the next a tenth of them changes."""
    import pyarrow.parquet as pq

    ids = range(options.rows)
    rows = {"customer": list(ids), "note": [f"note {(version + id) // 10}" for id in ids], "kind": [f"k{id % 7}" for id in ids]}
    pq.write_table(pa.table(rows), folder / f".{version}")
    (folder / f".{version}").rename(folder / f"{version}.parquet")


# --- one side -----------------------------------------------------------------------------------------------------------------------------


@dataclass
class Side:
    """A project with its history. `deliveries`: how many it has got."""

    name: str
    folder: Path
    case: Case
    options: argparse.Namespace
    deliveries: int = 0

    @property
    def storage(self) -> Path:
        return self.folder / ".lakelet"

    @property
    def landing(self) -> Path:
        return self.folder / "landing"

    @property
    def environment(self) -> dict[str, str]:
        return {**ENVIRONMENT, **({"LAKELET_REFRESH": self.case.technique} if self.case.technique else {})}

    def make(self, deliveries: int) -> None:
        """Make the project and its history."""
        self.landing.mkdir(parents=True)
        (self.folder / "pipeline.py").write_text(self.case.code)
        for number in range(deliveries):
            self.land(number)
        selected = ("--select", self.case.streams) if self.case.streams else ()
        self.run("run", *selected, batch=1)
        self.land(deliveries)
        self.run("run")
        if self.case.updates:
            add_updates(self.storage, deliveries)
            self.run("report")

    def land(self, number: int) -> None:
        """Land one more delivery, the one of this number."""
        if self.case.snapshots:
            land_snapshot(self.landing, self.deliveries, self.options)
        else:
            land(self.landing, number, self.deliveries, self.options)
        self.deliveries += 1

    def words(self, command: str, *more: str, batch: int = 1000) -> list[str]:
        """A command of Lakelet on this project."""
        if command != "run":
            return [*COMMAND, command, *more]
        return [*COMMAND, "run", "pipeline.py", *more, "--param", f"landing={self.landing}", "--param", f"files_per_batch={batch}"]

    def run(self, command: str, *more: str, batch: int = 1000) -> Measured:
        """Run a command to its end. Raises SystemExit if it fails."""
        done = measured(self.words(command, *more, batch=batch), self.folder, self.environment)
        if done.code:
            raise SystemExit(f"{self.name}, {command}: {done.printed[-3000:]}")
        return done

    def table(self, name: str) -> DeltaTable:
        return DeltaTable(str(self.storage / "tables" / "main" / "default" / name))

    def holds(self) -> dict[str, int]:
        """What the history is made of."""
        main, log = self.table(self.case.table), DeltaTable(str(self.storage / "system" / "events"))
        events = log.to_pyarrow_table(columns=["origin"])["origin"].combine_chunks().field("update_id")
        return {
            "deliveries": self.deliveries,
            "updates": len(events.unique()),
            "events": len(events),
            "commits": main.version() + 1,
            "files": len(main.file_uris()),
            "rows": main.to_pyarrow_dataset().count_rows(),
        }

    def versions(self) -> dict[Path, int]:
        """The newest version of each table, by its log."""
        logs = (self.storage / "tables" / "main" / "default").glob("*/_delta_log")
        return {log: max(int(file.stem) for file in log.glob("[0-9]*.json")) for log in logs}


def add_updates(storage: Path, updates: int) -> None:
    """Add the events of the newest update to the log under other ids, as so many earlier updates, by what writes and compacts it."""
    from lakelet.storage.eventlog import table as log
    from lakelet.storage.eventlog.reading import read_events

    path = storage / "system" / "events"
    newest = read_events(storage)[0]["origin"]["update_id"]
    stored = DeltaTable(str(path)).to_pyarrow_table()
    rows = [row for row in stored.to_pylist() if row["origin"]["update_id"] == newest]
    for number in range(updates, 0, -1):
        id, earlier = str(uuid.uuid4()), timedelta(hours=number)
        copies = [_copied(row, newest, id, earlier) for row in rows]
        log.append(path, pa.Table.from_pylist(copies, schema=stored.schema))
        log.compact(path)


def _copied(row: Mapping[str, Any], newest: str, id: str, earlier: timedelta) -> dict[str, Any]:
    """An event as though it were of another update."""
    sequence = dict(row["sequence"])
    sequence["control_plane_seq_no"] -= int(earlier.total_seconds() * 1_000_000)
    sequence["data_plane_id"] = {**sequence["data_plane_id"], "instance": id}
    return {
        **row,
        "id": str(uuid.uuid4()),
        "sequence": sequence,
        "origin": {**row["origin"], "update_id": id},
        "timestamp": row["timestamp"] - earlier,
        "message": row["message"].replace(newest[:6], id[:6]),
        "details": row["details"].replace(newest, id),
    }


def sides(name: str, work: Path, options: argparse.Namespace) -> dict[str, Side]:
    """Both sides of a case, made, or as they were stored by an earlier run with the same options."""
    found = {}
    for side, deliveries in ((FEW, options.few), (MANY, options.few * options.times)):
        one = found[side] = Side(side, work / name / side, CASES[name], options)
        archive, about = one.folder.with_suffix(".tar"), [CASES[name].code, deliveries, options.rows, options.spread]
        described = archive.with_suffix(".json")
        shutil.rmtree(one.folder, ignore_errors=True)
        started = time.perf_counter()
        if options.keep and described.exists() and json.loads(described.read_text()) == about:
            with tarfile.open(archive) as stored:
                stored.extractall(one.folder.parent, filter="fully_trusted")
            one.deliveries = deliveries + 1
        else:
            one.make(deliveries)
            if options.keep:
                with tarfile.open(archive, "w") as stored:
                    stored.add(one.folder, side)
                described.write_text(json.dumps(about))
        said = ", ".join(f"{number:,} {what}" for what, number in one.holds().items())
        print(f"  {side}: {said}; made in {time.perf_counter() - started:.0f} s", flush=True)
    return found


# --- measuring ----------------------------------------------------------------------------------------------------------------------------

Spent = tuple[float, float]
"""Seconds on the clock, and of processor time."""
Found = dict[str, dict[str, list[Spent]]]
"""What each round of each side took, by step."""


def in_new_processes(both: Mapping[str, Side], options: argparse.Namespace) -> Found:
    """Rounds of the same deliveries, in turns, each command in a new process."""
    steps = next(iter(both.values())).case.steps
    found: Found = {step: {side: [] for side in both} for step in steps}
    for turn in range(options.rounds + 1):
        for name in sorted(both, reverse=bool(turn % 2)):
            land_new(both[name], turn, options)
            for step, words in steps.items():
                done = both[name].run(*words)
                if turn:
                    found[step][name].append((done.wall, done.processor))
    return found


def land_new(side: Side, turn: int, options: argparse.Namespace) -> None:
    """The deliveries of a round: the same numbers on both sides, which come after every old one."""
    for number in range(options.new):
        side.land(options.few * options.times + 1 + turn * options.new + number)


def in_one_process(both: Mapping[str, Side], options: argparse.Namespace) -> Found:
    """Deliveries into two updates that go on, in turns; the processes of the other one count for nothing."""
    found: Found = {"delivery": {side: [] for side in both}}
    with ExitStack() as running:
        processes = {name: running.enter_context(continuous(side)) for name, side in both.items()}
        for name, side in both.items():
            wait_for(side, processes[name], {log: version - 1 for log, version in side.versions().items()}, options)
        for turn in range(options.rounds + options.warm_up):
            for name in sorted(both, reverse=bool(turn % 2)):
                before, used, started = both[name].versions(), processor_seconds(processes[name]), time.time()
                land_new(both[name], turn, options)
                newest = wait_for(both[name], processes[name], before, options)
                time.sleep(max(0.0, started + options.window - time.time()))
                if turn >= options.warm_up:
                    found["delivery"][name].append((newest - started, processor_seconds(processes[name]) - used))
    return found


@contextmanager
def continuous(side: Side) -> Iterator[psutil.Process]:
    """An update of a side that goes on for the block."""
    words = [*side.words("run", "--continuous"), "--param", "pipelines.trigger.interval=1 second"]
    with (side.folder / "continuous.txt").open("w") as output:
        process = subprocess.Popen(words, cwd=side.folder, env=side.environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(120)


def wait_for(side: Side, process: psutil.Process, before: Mapping[Path, int], options: argparse.Namespace) -> float:
    """Wait until each table has a newer version than before, and none for a while; the time of the last commit."""
    deadline, quiet, last = time.monotonic() + 600, time.monotonic(), dict[Path, int]()
    while time.monotonic() - quiet < options.quiet or any(last[log] <= version for log, version in before.items()):
        if not process.is_running() or time.monotonic() > deadline:
            raise SystemExit(f"{side.name}: a delivery did not arrive: {(side.folder / 'continuous.txt').read_text()[-2000:]}")
        time.sleep(0.2)
        now = side.versions()
        if now != last:
            last, quiet = now, time.monotonic()
    return max((log / f"{version:020d}.json").stat().st_mtime for log, version in last.items())


def processor_seconds(root: psutil.Process) -> float:
    """Of the processes that live, and of those below them that ended."""
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])
    return total


def row_of(name: str, step: str, found: Mapping[str, Sequence[Spent]]) -> list[str]:
    """A row of the table: seconds of processor time of both sides, their ratio, and that of the clock."""
    processor = [many[1] / few[1] for few, many in zip(found[FEW], found[MANY], strict=True)]
    clock = [many[0] / few[0] for few, many in zip(found[FEW], found[MANY], strict=True)]
    seconds = [quartiles([spent[1] for spent in found[side]]) for side in (FEW, MANY)]
    return [name, step, *seconds, quartiles(processor), quartiles(clock)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all without a name")
    parser.add_argument("--list", action="store_true", help="print the cases and what grows")
    parser.add_argument("--few", type=int, default=10, help="deliveries of the small history")
    parser.add_argument("--times", type=int, default=100, help="how many times as many the large history has")
    parser.add_argument("--rows", type=int, default=200, help="rows of a delivery")
    parser.add_argument("--new", type=int, default=3, help="deliveries of a round")
    parser.add_argument("--spread", type=float, default=0.1, help="share of the changed keys that may be anywhere in the history")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="folder for the histories")
    parser.add_argument("--continuous", action="store_true", help="one process for all rounds")
    parser.add_argument("--warm-up", type=int, default=4, help="rounds of a continuous update that do not count")
    parser.add_argument("--window", type=float, default=12, help="seconds of a continuous update in which processor time counts")
    parser.add_argument("--quiet", type=float, default=3, help="seconds without a commit after which a delivery counts as processed")
    options = parser.parse_args()
    unknown = set(options.cases) - set(CASES)
    if unknown:
        raise SystemExit(f"no such case: {', '.join(sorted(unknown))}. There are {', '.join(CASES)}")
    if options.list:
        print(*(f"{name:16} {case.grows}" for name, case in CASES.items()), sep="\n")
        return
    way = "one process" if options.continuous else "new process"
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}, {way}")
    with ExitStack() as cleaning:
        work = options.keep or Path(cleaning.enter_context(tempfile.TemporaryDirectory(prefix="growth-")))
        rows = [row for name in options.cases or CASES for row in measure(name, work.absolute(), options)]
    heads = ["case", "step", f"{FEW}, s", f"{MANY}, s", "ratio of processor time", "of the clock"]
    print(f"medians (quartiles) of {options.rounds} rounds, load {os.getloadavg()[0]:.1f}, bar {BAR}")
    print(*("| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows)), sep="\n")


def measure(name: str, work: Path, options: argparse.Namespace) -> list[list[str]]:
    """Make both histories of a case and measure it; the rows of the table, which are printed at once, too."""
    print(f"{name}: {CASES[name].grows}", flush=True)
    both = sides(name, work, options)
    try:
        found = (in_one_process if options.continuous else in_new_processes)(both, options)
    finally:
        for side in both.values():
            shutil.rmtree(side.folder, ignore_errors=True)
    rows = [row_of(name, step, of_step) for step, of_step in found.items()]
    print(*(f"  {step}: {few} s, {many} s, ratio {processor}, clock {clock}" for _, step, few, many, processor, clock in rows), sep="\n")
    sys.stdout.flush()
    return rows


if __name__ == "__main__":
    main()
