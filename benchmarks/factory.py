"""From the arrival of a file to all gold tables, in a continuous update of examples/factory; and its memory over time.

    .venv/bin/python benchmarks/factory.py --minutes 30 --every 15

Lands drops of the example's generator while `lakelet run --continuous` follows them in a copy of the example. Nothing looks at the tables
meanwhile: when each gold table had a file's movements follows afterwards from the versions of the table and the times of their commits.
Prints machine, load, p50 and p95 (bar: 3 s), the memory of the process tree (PSS) with its slope, processor time per drop, and where the
time of a drop goes, by flow.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import itertools
import json
import os
import platform
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
BAR_SECONDS = 3.0
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


class Watched(threading.Thread):
    """Memory (bytes of PSS) and processor time (seconds) of a process with everything below it, every five seconds."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(process)
        self.memory: list[tuple[float, int]] = []

    def run(self) -> None:
        with suppress(psutil.NoSuchProcess):
            while True:
                self.memory.append((time.time(), sum(map(pss, self._tree()))))
                time.sleep(5)

    def _tree(self) -> list[psutil.Process]:
        return [self._root, *self._root.children(recursive=True)]

    def processor_seconds(self) -> float:
        """Of the processes that live, and of the ended ones that were waited for."""
        total = 0.0
        for process in self._tree():
            with suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:4])
        return total


def pss(process: psutil.Process) -> int:
    with suppress(OSError, psutil.NoSuchProcess, ValueError):
        for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def slope(samples: Sequence[tuple[float, float]]) -> float:
    """Growth per second, by least squares."""
    if len(samples) < 2:
        return 0.0
    return statistics.linear_regression(*zip(*samples, strict=True)).slope


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
            feed.wait(tables, seconds=300, process=process)
            watched = Watched(process.pid)
            watched.start()
            since, used = run_drops(feed, watched, tables, process, options)
            feed.wait(tables, seconds=300, process=process)
            used = watched.processor_seconds() - used
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=120)
    found = {drop: seconds for drop, seconds in latencies(tables, feed.landed).items() if drop >= options.warm_up}
    report(found, watched, used, since, feed.rows, folder, options)


def run_drops(
    feed: Feed, watched: Watched, tables: Path, process: subprocess.Popen[Any], options: argparse.Namespace
) -> tuple[float, float]:
    """Land drops for as long as was asked for; returns when the first one that counts landed, and the processor seconds used by then."""
    since, used, started = time.time(), 0.0, time.monotonic()
    drops = range(1, 1 + round(options.minutes * 60 / options.every)) if options.every else itertools.count(1)
    for number in drops:
        if not options.every and number > options.warm_up and time.monotonic() - started > options.minutes * 60:
            break
        if number == options.warm_up:
            since, used = time.time(), watched.processor_seconds()
        feed.land()
        if options.every:
            time.sleep(max(0.0, started + number * options.every - time.monotonic()))
        else:
            feed.wait(tables, seconds=300, process=process)
    return since, used


def report(
    found: Mapping[int, float], watched: Watched, used: float, since: float, rows: int, folder: Path, options: argparse.Namespace
) -> None:
    seconds = list(found.values())
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {len(seconds)} drops, one every {options.every:g} s"
    )
    print(f"{rows} movements in the end; the first {options.warm_up} drops are left out")
    p50, p95 = statistics.median(seconds), quantile(seconds, 0.95)
    verdict = "met" if p95 <= BAR_SECONDS else "missed"
    print(f"arrival to all gold tables: p50 {p50:.2f} s, p95 {p95:.2f} s, longest {max(seconds):.2f} s (bar: {BAR_SECONDS:g} s {verdict})")
    third = max(1, len(seconds) // 3)
    print(f"  first third: p50 {statistics.median(seconds[:third]):.2f} s; last third: p50 {statistics.median(seconds[-third:]):.2f} s")
    print(f"processor time: {used / len(seconds):.2f} s per drop")
    memory = [(at - since, bytes_ / 1e6) for at, bytes_ in watched.memory if at >= since]
    if memory:
        first, last = (statistics.median(mb for _, mb in part) for part in (memory[: len(memory) // 3 + 1], memory[-len(memory) // 3 :]))
        growth = slope(memory) * 60
        print(f"memory (PSS): {first:.0f} MB in the first third, {last:.0f} MB in the last, slope {growth:+.1f} MB per minute")
    print("flows, from STARTING to COMPLETED:", *flow_seconds(folder / "events.jsonl", since), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5, help="for how long drops land")
    parser.add_argument("--every", type=float, default=15, help="seconds from one drop to the next; 0: when the former is visible")
    parser.add_argument("--boxes", type=int, default=40, help="boxes per drop")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--warm-up", type=int, default=4, help="drops that do not count")
    parser.add_argument("--example", type=Path, default=EXAMPLE, help="the pipeline, or a changed copy of it to compare with")
    parser.add_argument("--keep", type=Path, help="a new folder for the pipeline and its tables, which stays")
    parser.add_argument("--debug", action="store_true", help="keep what the update says on stderr, in events.jsonl")
    options, more = parser.parse_known_args()
    options.more = more
    folder = (options.keep or Path(tempfile.mkdtemp(prefix="factory-"))).absolute()
    try:
        shutil.copytree(options.example, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("landing", ".lakelet", "__pycache__"))
        measure(folder, options)
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
