"""From the arrival of a file to all gold tables, in a continuous update of examples/factory; and its memory over time.

    .venv/bin/python benchmarks/factory.py --minutes 30 --every 15

Lands drops of the example's generator while `lakelet run --continuous` follows them in a copy of the example. Nothing looks at the tables
meanwhile: when each gold table had a file's movements follows afterwards from the versions of the table and the times of their commits.
Prints machine, load, p50 and p95 (bar: 3 s), the memory of the process tree (PSS), Java's apart from Python's, with its slope, processor
time per drop and how it grew (bar: the last ten drops take at most 1.1 times that of drops 11 to 20), and where the time of a drop goes,
by flow.

What Java keeps is measured after the warm-up, after each sixth of the time and at the end (`--collections`; 0 leaves it out): once a drop
is in all gold tables, `jcmd` forces a full collection in the pause before the next drop, and says what is left in the heap. That drop is
left out of the latencies, because the tables were read meanwhile; the processor time of the measurement does not count. Prints a
table, and the growth of the live heap by least squares with its standard error. Needs a JDK: a JRE has no `jcmd`, and the run says so.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import itertools
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import yaml
from deltalake import DeltaTable

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "factory"
GOLD = ("station_visits", "cycle_times", "throughput", "bottlenecks")
BAR_OF_GROWTH = 1.1
BAR_SECONDS = 3.0
PATIENCE_SECONDS = 900
Sums = dict[str, dict[str, int]]  # by gold table, by factory: a number that only grows, and by which a movement is recognised


@dataclass(frozen=True)
class Landed:
    """A file that brought new movements: when it was there, and what each gold table has for its factory when it has all of them."""

    drop: int
    factory: str
    arrived: float
    wanted: Mapping[str, int]


@dataclass
class Factory:
    """All movements of one factory so far. `unreadable_time`: what broken lines have for a time."""

    layout: Mapping[str, Any]
    unreadable_time: str
    seen: set[tuple[str, ...]] = field(default_factory=set)
    enters: Counter[tuple[str, ...]] = field(default_factory=Counter)
    leaves: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def read(self, text: str) -> bool:
        """Add the movements of a file; whether one of them is new. A time is compared as text: one factory writes all in one way."""
        options = self.layout.get("csv", {})
        lines = list(csv.reader(text.splitlines(), delimiter=options.get("sep", ",")))[1 if options.get("header") else 0 :]
        before = len(self.seen)
        for line in lines:
            row = {name: value for (_, name), value in zip(self.layout["columns"].items(), line, strict=False) if name}
            kind = self.layout["direction"].get(row.get("direction"))
            place = tuple(row.get(name, "") for name in ("line", "box_id", "station"))
            moment = (*place, str(kind), row.get("moved_at", ""))
            if kind is None or "" in moment or row["moved_at"] == self.unreadable_time or moment in self.seen:
                continue
            self.seen.add(moment)
            (self.enters if kind == "enter" else self.leaves)[place] += 1
        return len(self.seen) > before

    def sums(self) -> dict[str, int]:
        """What the gold tables have of these movements."""
        boxes: Counter[tuple[str, ...]] = Counter()
        for (line, box, _), number in self.enters.items():
            boxes[line, box] += number
        return {
            "station_visits": len(self.seen),
            "cycle_times": sum(number - 1 for number in boxes.values()),
            "throughput": sum(self.leaves.values()),
            "bottlenecks": sum(min(number, self.leaves[place]) for place, number in self.enters.items()),
        }


def stored(table: str, rows: Any) -> dict[str, int]:
    """The same of a version of a gold table, by factory."""
    found: Counter[str] = Counter()
    for row in rows.to_pylist():
        if table == "station_visits":
            found[row["factory"]] += (row["entered_at"] is not None) + (row["left_at"] is not None)
        else:
            found[row["factory"]] += {"cycle_times": 1, "throughput": row.get("leaves"), "bottlenecks": row.get("visits")}[table]
    return dict(found)


COLUMNS = {
    "station_visits": ["factory", "entered_at", "left_at"],
    "cycle_times": ["factory"],
    "throughput": ["factory", "leaves"],
    "bottlenecks": ["factory", "visits"],
}


def versions(path: Path, table: str) -> Iterator[tuple[float, dict[str, int]]]:
    """Each version of a gold table: when it was committed, and its sums."""
    for log in sorted((path / "_delta_log").glob("*.json")):
        rows = DeltaTable(str(path), version=int(log.stem)).to_pyarrow_table(columns=COLUMNS[table])
        yield log.stat().st_mtime, stored(table, rows)


def latencies(tables: Path, landed: Sequence[Landed]) -> dict[int, float]:
    """Seconds from a drop's files to the last gold table that has them, by drop. Raises SystemExit where one never came."""
    found: dict[int, float] = defaultdict(float)
    for table in GOLD:
        commits = list(versions(tables / table, table))
        for file in landed:
            moments = (at for at, sums in commits if sums.get(file.factory, 0) >= file.wanted[table])
            visible = next(moments, None)
            if visible is None:
                raise SystemExit(f"drop {file.drop} of {file.factory} is not in {table}: {commits[-1][1]} of {file.wanted[table]}")
            found[file.drop] = max(found[file.drop], visible - file.arrived)
    return dict(found)


@dataclass(frozen=True)
class Memory:
    """Megabytes of PSS at a moment, by the kind of process."""

    at: float
    java: float
    python: float

    @property
    def total(self) -> float:
        return self.java + self.python


@dataclass(frozen=True)
class Kept:
    """What is left after a forced full collection after a drop, in megabytes; `before` has the processes right before it."""

    drop: int
    at: float
    heap: float
    metaspace: float
    code_cache: float
    before: Memory


class Watched(threading.Thread):
    """Memory and processor time (seconds) of a process with everything below it, every five seconds."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(process)
        self.memory: list[Memory] = []

    def run(self) -> None:
        with suppress(psutil.NoSuchProcess):
            while True:
                self.memory.append(self.memory_now())
                time.sleep(5)

    def memory_now(self) -> Memory:
        tree = self._tree()
        java = [process for process in tree if is_java(process)]
        return Memory(time.time(), sum(map(pss, java)) / 1e6, sum(pss(process) for process in tree if process not in java) / 1e6)

    def kept(self, drop: int) -> Kept:
        """Force full collections and measure what is left. Spark's cleaner drops what the first one found, so that a second one follows."""
        [java] = [process for process in self._tree() if is_java(process)]
        before = self.memory_now()
        jcmd(java, "GC.run")
        time.sleep(1)
        said = jcmd(java, "GC.run\nGC.heap_info\nCompiler.codecache")
        heap = sum(map(int, re.findall(r"total \d+K, used (\d+)K", said)))
        [metaspace] = map(int, re.findall(r"Metaspace +used (\d+)K", said))
        code = sum(map(int, re.findall(r"size=\d+Kb used=(\d+)Kb", said)))
        if not heap or not code:
            raise SystemExit(f"not the words of jcmd that are known: {said}")
        kb = 1024 / 1e6
        return Kept(drop, time.time(), heap * kb, metaspace * kb, code * kb, before)

    def why_not_kept(self) -> str:
        """Why `kept` cannot be asked, or an empty text."""
        found = [process for process in self._tree() if is_java(process)]
        if len(found) != 1:
            return f"{len(found)} Java processes"
        return "" if jcmd_of(found[0]) else f"no jcmd beside {found[0].exe()} or on the PATH: a JRE has none, a JDK has"

    def _tree(self) -> list[psutil.Process]:
        return [self._root, *self._root.children(recursive=True)]

    def processor_seconds(self) -> float:
        """Of the processes that live, and of the ended ones that were waited for."""
        total = 0.0
        for process in self._tree():
            with suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:4])
        return total


def is_java(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.name() == "java"
    return False


def jcmd_of(java: psutil.Process) -> str | None:
    beside = Path(java.exe()).with_name("jcmd")
    return str(beside) if beside.exists() else shutil.which("jcmd")


def jcmd(java: psutil.Process, commands: str) -> str:
    """What `jcmd` prints for commands, one a line."""
    done = subprocess.run([jcmd_of(java) or "jcmd", str(java.pid), commands], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"jcmd {commands!r}: {done.stdout}{done.stderr}")
    return done.stdout


def pss(process: psutil.Process) -> int:
    """Bytes; shared pages count by their share."""
    with suppress(OSError, psutil.NoSuchProcess, ValueError):
        for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def growth(samples: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The slope by least squares, and its standard error (of independent samples). Needs three samples."""
    x, y = zip(*samples, strict=True)
    slope, intercept = statistics.linear_regression(x, y)
    left = sum((b - intercept - slope * a) ** 2 for a, b in samples)
    spread = sum((a - statistics.fmean(x)) ** 2 for a in x)
    return slope, (left / (len(samples) - 2) / spread) ** 0.5


def generator(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location("factory_generate", folder / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def place(landing: Path, relative: str, text: str) -> float:
    """Put a file into the landing folder in one step; returns when."""
    target = landing / relative
    target.parent.mkdir(parents=True, exist_ok=True)
    hidden = target.with_name(f".{target.name}.part")
    hidden.write_text(text, encoding="utf-8")
    os.replace(hidden, target)
    return time.time()


class Feed:
    """Lands the generator's drops and knows what the gold tables must have after each."""

    def __init__(self, folder: Path, *, seed: int, boxes: int) -> None:
        layouts = {path.stem: yaml.safe_load(path.read_text()) for path in (folder / "factories").glob("*.yml")}
        made = generator(folder)
        self._factories = {name: Factory(layout, made.FACTORIES[name].unreadable_time) for name, layout in layouts.items()}
        self._drops = ((number, made.files_of_drop(seed, boxes, number)) for number in itertools.count())
        self._landing = folder / "landing"
        self.landed: list[Landed] = []

    def land(self) -> None:
        """Land the next drop."""
        number, files = next(self._drops)
        made = [(relative, text, relative.split("/")[0]) for relative, text in files]
        news = [(factory, self._factories[factory].read(text), self._factories[factory].sums()) for _, text, factory in made]
        arrived = [place(self._landing, relative, text) for relative, text, _ in made]
        self.landed += [Landed(number, factory, at, sums) for (factory, new, sums), at in zip(news, arrived, strict=True) if new]

    @property
    def rows(self) -> int:
        return sum(len(factory.seen) for factory in self._factories.values())

    def is_visible(self, tables: Path) -> bool:
        """Whether the newest version of every gold table has all that landed."""
        for table in GOLD:
            if not any((tables / table / "_delta_log").glob("*.json")):
                return False
            found = stored(table, DeltaTable(str(tables / table)).to_pyarrow_table(columns=COLUMNS[table]))
            if any(found.get(name, 0) < factory.sums()[table] for name, factory in self._factories.items()):
                return False
        return True

    def wait(self, tables: Path, *, seconds: float, process: subprocess.Popen[Any]) -> None:
        """Wait until all that landed is visible."""
        deadline = time.monotonic() + seconds
        while not self.is_visible(tables):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"not all drops became visible; exit code {process.poll()}")
            time.sleep(0.25)


def flow_seconds(events: Path, since: float) -> list[str]:
    """How long each flow ran, by its events."""
    begun: dict[str, float] = {}
    took: dict[str, list[float]] = defaultdict(list)
    for line in events.read_text().splitlines():
        event = json.loads(line)
        if event["event_type"] != "flow_progress" or event["timestamp"] is None:
            continue
        at = datetime.fromisoformat(event["timestamp"].replace("Z", "+00:00")).timestamp()
        details = event["details"]
        status = (json.loads(details) if isinstance(details, str) else details)["flow_progress"].get("status")
        name = event["origin"]["flow_name"]
        if status == "STARTING":
            begun[name] = at
        elif status == "COMPLETED" and begun.get(name, 0) > since:
            took[name].append(at - begun[name])
    return [f"  {name:40} {len(all_):4} times, median {statistics.median(all_):.2f} s" for name, all_ in took.items()]


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure(folder: Path, options: argparse.Namespace) -> None:
    """Run the update, land the drops, stop it, and print what was found."""
    feed, tables = Feed(folder, seed=options.seed, boxes=options.boxes), folder / ".lakelet" / "tables" / "main" / "factory"
    feed.land()
    with (folder / "events.jsonl").open("w") as output:
        command = [sys.executable, "-m", "lakelet", "run", "--continuous", "--json", *options.more]
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT if options.debug else subprocess.DEVNULL)
        try:
            feed.wait(tables, seconds=PATIENCE_SECONDS, process=process)
            run = Run(feed, Watched(process.pid), tables, process, options)
            run.land()
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=120)
    looked_at = {kept.drop for kept in run.kept}
    found = {drop: s for drop, s in latencies(tables, feed.landed).items() if drop >= options.warm_up and drop not in looked_at}
    report(found, run, folder)


class Run:
    """Lands drops as long as was asked for, and measures the update meanwhile.

    `since`: when the first drop that counts landed. `spent`: processor time up to each landing and the end, in seconds.
    """

    def __init__(self, feed: Feed, watched: Watched, tables: Path, process: subprocess.Popen[Any], options: argparse.Namespace) -> None:
        self.feed, self.watched, self.options = feed, watched, options
        self.kept: list[Kept] = []
        self.not_kept = watched.why_not_kept() if options.collections else "--collections 0"
        self.since, self.spent, self._of_collections = time.time(), list[float](), 0.0
        self._tables, self._process = tables, process

    def land(self) -> None:
        options, started = self.options, time.monotonic()
        self.watched.start()
        wanted = range(1, 1 + round(options.minutes * 60 / options.every)) if options.every else itertools.count(1)
        begun = part = 0.0  # when the first drop landed that counts, and the time from one collection to the next
        for number in wanted:
            if not options.every and number > options.warm_up and time.monotonic() - started > options.minutes * 60:
                break
            if number == options.warm_up:
                begun = time.monotonic()
                part = max(0.0, options.minutes * 60 - (begun - started)) / max(1, options.collections)
                self.since = time.time()
            self.spent.append(self.watched.processor_seconds() - self._of_collections)
            self.feed.land()
            measured = len(self.kept)
            if measured < options.collections and (number + 1 >= options.warm_up and time.monotonic() - begun >= measured * part):
                self.collect(number)
            if options.every:
                time.sleep(max(0.0, started + number * options.every - time.monotonic()))
            else:
                self.wait()
        self.wait()
        self.spent.append(self.watched.processor_seconds() - self._of_collections)
        self.collect(number)

    def wait(self) -> None:
        self.feed.wait(self._tables, seconds=PATIENCE_SECONDS, process=self._process)

    def collect(self, drop: int) -> None:
        """Wait until the drop is everywhere, and measure what Java keeps; what that costs does not count."""
        if self.not_kept:
            return
        self.wait()
        before = self.watched.processor_seconds()
        self.kept.append(self.watched.kept(drop))
        self._of_collections += self.watched.processor_seconds() - before

    def tell_spent(self) -> None:
        """Print the processor time of a drop, and how it grew."""
        by_drop = [after - before for before, after in itertools.pairwise(self.spent)]
        print(f"processor time: {statistics.fmean(by_drop[self.options.warm_up - 1 :]):.2f} s per drop")
        if len(by_drop) >= 30:
            early, late = statistics.fmean(by_drop[10:20]), statistics.fmean(by_drop[-10:])
            print(f"  drops 11 to 20: {early:.2f} s; the last ten: {late:.2f} s; ratio {late / early:.2f} (bar: {BAR_OF_GROWTH})")


def report(found: Mapping[int, float], run: Run, folder: Path) -> None:
    options, seconds = run.options, list(found.values())
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {len(seconds)} drops, one every {options.every:g} s"
    )
    left_out = f"left out: the first {options.warm_up} drops, and {len(run.kept)} after which Java was measured"
    print(f"{run.feed.rows} movements in the end; {left_out}")
    p50, p95 = statistics.median(seconds), quantile(seconds, 0.95)
    verdict = "met" if p95 <= BAR_SECONDS else "missed"
    print(f"arrival to all gold tables: p50 {p50:.2f} s, p95 {p95:.2f} s, longest {max(seconds):.2f} s (bar: {BAR_SECONDS:g} s {verdict})")
    third = max(1, len(seconds) // 3)
    print(f"  first third: p50 {statistics.median(seconds[:third]):.2f} s; last third: p50 {statistics.median(seconds[-third:]):.2f} s")
    after = [found[kept.drop + 1] for kept in run.kept if kept.drop + 1 in found]
    if after:
        print(f"  the {len(after)} drops right after a collection: p50 {statistics.median(after):.2f} s, longest {max(after):.2f} s")
    run.tell_spent()
    tell_memory([memory for memory in run.watched.memory if memory.at >= run.since], run.since)
    tell_kept(run)
    print("flows, from STARTING to COMPLETED:", *flow_seconds(folder / "events.jsonl", run.since), sep="\n")


def tell_memory(memory: Sequence[Memory], since: float) -> None:
    """Memory of the processes over time, from samples every five seconds."""
    if len(memory) < 3:
        return
    third = len(memory) // 3
    print("memory (PSS), median of the first third, of the last, slope by least squares:")
    for name in ("total", "java", "python"):
        values = [getattr(each, name) for each in memory]
        per_hour = 3600 * growth([(each.at - since, value) for each, value in zip(memory, values, strict=True)])[0]
        first, last = statistics.median(values[:third]), statistics.median(values[-third:])
        print(f"  {name:7} {first:7.0f} MB {last:7.0f} MB {per_hour:+9.1f} MB per hour")


def tell_kept(run: Run) -> None:
    """What Java kept, after each forced collection."""
    if run.not_kept:
        print(f"live heap: not measured ({run.not_kept})")
        return
    print("after a forced full collection, MB; PSS of the processes right before it:")
    print(f"  {'drop':>5} {'minute':>6} {'live heap':>9} {'metaspace':>9} {'code cache':>10} {'java PSS':>9} {'python PSS':>10}")
    for each in run.kept:
        minute = (each.at - run.since) / 60
        print(
            f"  {each.drop:5} {minute:6.1f} {each.heap:9.1f} {each.metaspace:9.1f} {each.code_cache:10.1f}"
            f" {each.before.java:9.0f} {each.before.python:10.1f}"
        )
    if len(run.kept) < 3:
        return
    for name, values in (("live heap", [each.heap for each in run.kept]), ("python PSS", [each.before.python for each in run.kept])):
        per_drop = growth([(each.drop, value) for each, value in zip(run.kept, values, strict=True)])
        per_second = growth([(each.at - run.since, value) for each, value in zip(run.kept, values, strict=True)])
        by_drops, by_hours = (
            f"{slope * unit:+.1f} ± {error * unit:.1f}" for (slope, error), unit in ((per_drop, 1000), (per_second, 3600))
        )
        print(f"  {name}: {by_drops} MB per 1,000 drops, {by_hours} MB per hour")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5, help="for how long drops land")
    parser.add_argument("--every", type=float, default=15, help="seconds from one drop to the next; 0: when the former is visible")
    parser.add_argument("--boxes", type=int, default=40, help="boxes per drop")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=4, help="drops that do not count")
    parser.add_argument("--collections", type=int, default=6, help="parts of the time after each of which Java's live heap is measured")
    parser.add_argument("--example", type=Path, default=EXAMPLE, help="the pipeline, or a changed copy of it to compare with")
    parser.add_argument("--keep", type=Path, help="a new folder for the pipeline and its tables, which stays")
    parser.add_argument("--debug", action="store_true", help="keep what the update says on stderr, in events.jsonl")
    options, more = parser.parse_known_args()
    options.more, options.warm_up = more, max(1, options.warm_up)
    folder = (options.keep or Path(tempfile.mkdtemp(prefix="factory-"))).absolute()
    try:
        shutil.copytree(options.example, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("landing", ".lakelet", "__pycache__"))
        measure(folder, options)
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
