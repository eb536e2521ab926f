"""Make the CSV drops of three factories, the same for the same seed.

`python generate.py OUT --drops 8` writes `<factory>/<YYYYMMDD>/<HHMM>.csv` for eight quarters of an hour. `--start-drop 8` goes on
from there: its files also hold late movements, repeated lines, files that come hours late, and files of the first eight under another name.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo

START = datetime(2026, 3, 29, tzinfo=timezone.utc)  # the night in which Berlin goes over to summer time
QUARTER = timedelta(minutes=15)
SPAN = 4  # quarters that a box needs at most, from its first movement to its last
LATEST = 12  # quarters by which a movement comes late at most; also how long its line may be repeated
LATE, REPEATED, BROKEN, LOST, REWORK = 0.04, 0.03, 0.01, 0.02, 0.08
INITIALS = ["AK", "BO", "CM"]


@dataclass(frozen=True)
class Movement:
    """A box enters or leaves a station of a line; `at` in UTC, `direction` 'enter' or 'leave'."""

    line: str
    station: str
    box: str
    direction: str
    at: datetime


@dataclass(frozen=True)
class Factory:
    """How a factory writes its files: `columns` name the canonical values in file order, `header` is the first line or ''."""

    delimiter: str
    header: str
    columns: tuple[str, ...]
    directions: Mapping[str, str]
    stations: tuple[str, ...]
    unreadable_time: str


FACTORIES = {
    "abbey": Factory(
        delimiter=",",
        header="line,station,box,dir,ts",
        columns=("line", "station", "box", "direction", "time"),
        directions={"enter": "IN", "leave": "OUT"},
        stations=("picking", "filling", "sealing", "labelling", "dispatch"),
        unreadable_time="2026-03-29T25:61:00Z",
    ),
    "brook": Factory(
        delimiter=";",
        header="Zeit;Linie;Station;Kiste;Richtung",
        columns=("time", "line", "station", "box", "direction"),
        directions={"enter": "ein", "leave": "aus"},
        stations=("Füllen", "Prüfen", "Kleben", "Versand"),
        unreadable_time="31.02.2026 10:00:00",
    ),
    "cedar": Factory(
        delimiter="|",
        header="",
        columns=("box", "station", "line", "time", "direction", "initials"),
        directions={"enter": "E", "leave": "L"},
        stations=("S30", "S10", "S40", "S20"),
        unreadable_time="no clock",
    ),
}
NUMBERS = {name: number for number, name in enumerate(FACTORIES)}


def time_text(factory: str, at: datetime) -> str:
    """The time as the factory writes it: ISO in UTC, Berlin's clock, or milliseconds since 1970."""
    if factory == "abbey":
        return at.strftime("%Y-%m-%dT%H:%M:%SZ")
    if factory == "brook":
        return at.astimezone(ZoneInfo("Europe/Berlin")).strftime("%d.%m.%Y %H:%M:%S")
    return str(round(at.timestamp() * 1000))


def journey(rng: random.Random, factory: str, box: str, first: datetime) -> Iterator[Movement]:
    """The movements of one box from `first` on: its stations in order, now and then one again, now and then a movement not recorded."""
    line, at = f"line-{rng.randrange(2) + 1}", first
    for station in FACTORIES[factory].stations:
        for _ in range(2 if rng.random() < REWORK else 1):
            for direction in ("enter", "leave"):
                if rng.random() >= LOST:
                    yield Movement(line, station, box, direction, at)
                at += timedelta(seconds=rng.randrange(10, 180) if direction == "enter" else rng.randrange(5, 60))
                if factory == "cedar":
                    at += timedelta(milliseconds=rng.randrange(1000))


@lru_cache(maxsize=64)
def started(seed: int, factory: str, quarter: int, boxes: int) -> tuple[Movement, ...]:
    """Every movement of the boxes whose journey begins in the quarter."""
    rng = random.Random(f"{seed} journeys {factory} {quarter}")
    seconds = [rng.randrange(900) for _ in range(boxes)]
    return tuple(
        movement
        for number, second in enumerate(seconds)
        for movement in journey(rng, factory, f"B{quarter:05}{number:04}", START + quarter * QUARTER + timedelta(seconds=second))
    )


@lru_cache(maxsize=64)
def deliveries(seed: int, factory: str, quarter: int, boxes: int) -> Mapping[int, list[str]]:
    """The lines about what happened in the quarter, by the number of quarters after which they are delivered (0 = in its own file)."""
    rng = random.Random(f"{seed} deliveries {factory} {quarter}")
    begin, end = START + quarter * QUARTER, START + (quarter + 1) * QUARTER
    lines: dict[int, list[str]] = {0: []}
    for first in range(max(0, quarter - SPAN), quarter + 1):
        for movement in started(seed, factory, first, boxes):
            if begin <= movement.at < end:
                line = line_text(rng, factory, movement)
                delay = rng.randrange(1, LATEST + 1) if rng.random() < LATE else 0
                lines.setdefault(delay, []).append(line)
                if rng.random() < REPEATED:
                    lines.setdefault(rng.randrange(LATEST + 1), []).append(line)
                if rng.random() < BROKEN:
                    lines[0].append(line_text(rng, factory, movement, broken=rng.choice(["time", "box", "short"])))
    return lines


def line_text(rng: random.Random, factory: str, movement: Movement, broken: str = "") -> str:
    """The line of the movement; `broken` gives it an unreadable time, no box, or the first three values alone."""
    layout = FACTORIES[factory]
    values = {
        "line": movement.line,
        "station": movement.station,
        "box": "" if broken == "box" else movement.box,
        "direction": layout.directions[movement.direction],
        "time": layout.unreadable_time if broken == "time" else time_text(factory, movement.at),
        "initials": rng.choice(INITIALS),
    }
    texts = [values[column] for column in layout.columns]
    return layout.delimiter.join(texts[:3] if broken == "short" else texts)


def file_text(seed: int, factory: str, quarter: int, boxes: int) -> str:
    """The content of the quarter's file: its own lines, those that come late, those that come again, in no order."""
    quarters = range(max(0, quarter - LATEST), quarter + 1)
    lines = [line for earlier in quarters for line in deliveries(seed, factory, earlier, boxes).get(quarter - earlier, [])]
    random.Random(f"{seed} order {factory} {quarter}").shuffle(lines)
    header = [FACTORIES[factory].header] if FACTORIES[factory].header else []
    return "".join(f"{line}\n" for line in [*header, *lines])


def held(factory: str, quarter: int) -> int:
    """By how many quarters the whole file of the quarter comes late."""
    if quarter % 24 == 12 + NUMBERS[factory]:
        return 9
    return 4 if quarter % 6 == 1 + NUMBERS[factory] else 0


def files_of_drop(seed: int, boxes_per_drop: int, drop: int) -> Iterator[tuple[str, str]]:
    """The files that arrive with one drop: (relative path, text)."""

    def file(factory: str, quarter: int, again: str = "") -> tuple[str, str]:
        name = (START + quarter * QUARTER).strftime(f"%Y%m%d/%H%M{again}.csv")
        return f"{factory}/{name}", file_text(seed, factory, quarter, boxes_per_drop)

    for factory, number in NUMBERS.items():
        for quarter in range(max(0, drop - 9), drop + 1):
            if quarter + held(factory, quarter) == drop:
                yield file(factory, quarter)
        if drop >= 4 and drop % 3 == number:
            yield file(factory, drop - 4, again="-again")


def drops(seed: int, boxes_per_drop: int, start_drop: int = 0) -> Iterator[tuple[str, str]]:
    """Every file from a drop on, without end: (relative path, text); two to seven a drop."""
    return itertools.chain.from_iterable(files_of_drop(seed, boxes_per_drop, drop) for drop in itertools.count(start_drop))


def write(path: Path, text: str) -> None:
    """Write the file at once: readers see all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.part")
    hidden.write_text(text, encoding="utf-8", newline="")
    os.replace(hidden, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, metavar="OUT", help="landing folder")
    parser.add_argument("--drops", type=int, default=8, help="quarters of an hour (default 8)")
    parser.add_argument("--boxes-per-drop", type=int, default=20, help="boxes that each factory starts in a quarter (default 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=float, default=0, metavar="SECONDS", help="pause between two drops")
    parser.add_argument("--start-drop", type=int, default=0, help="number of the first drop (default 0)")
    given = parser.parse_args()
    files = lines = 0
    for drop in range(given.start_drop, given.start_drop + given.drops):
        if drop > given.start_drop:
            time.sleep(given.every)
        for name, text in files_of_drop(given.seed, given.boxes_per_drop, drop):
            write(given.out / name, text)
            files, lines = files + 1, lines + text.count("\n")
    print(f"{files} files with {lines} lines in {given.out}")


if __name__ == "__main__":
    main()
