"""The tables of the factory example, computed from its files by the standard library alone.

Written from the contract of the data, without looking at the pipeline. Choices where the contract leaves room:

- A line is broken when its line, station or box is missing or empty, its direction is none of the factory's two words, or its time does
  not parse. Values after the known columns, and missing ones after the last canonical value, break nothing. Blank lines are not lines.
- `broken_lines` counts occurrences: a broken line that comes in two files counts twice.
- A factory is the first folder of the path; the date and time in the path mean nothing.
- Local time that occurs twice (end of summer time) is the earlier instant; local time that was left out is read with the offset before
  the change, so that 02:30 becomes 03:30.
- Seconds between two times: each cut to the whole second since 1970, then subtracted (`unix_timestamp(b) - unix_timestamp(a)`).
- `rank` is without ties: 1, 2, 3 …, by mean dwell downwards, then by station. Texts sort by code point.
- Rows come sorted by all columns from the left, NULL last.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

BERLIN, EPOCH = ZoneInfo("Europe/Berlin"), datetime(1970, 1, 1, tzinfo=timezone.utc)


class Movement(NamedTuple):
    factory: str
    line: str
    station: str
    box_id: str
    direction: str
    moved_at: datetime


class Visit(NamedTuple):
    factory: str
    line: str
    box_id: str
    station: str
    entered_at: datetime | None
    left_at: datetime | None
    dwell_s: int | None


class Layout(NamedTuple):
    """How a factory writes: `columns` of a file without a header, None where the file has one; `names` of the five values."""

    delimiter: str
    columns: list[str] | None
    names: Mapping[str, str]
    directions: Mapping[str, str]
    time: Callable[[str], datetime]


def iso_time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)


def berlin_time(text: str) -> datetime:
    return datetime.strptime(text, "%d.%m.%Y %H:%M:%S").replace(tzinfo=BERLIN).astimezone(timezone.utc)


def epoch_time(text: str) -> datetime:
    return EPOCH + timedelta(milliseconds=int(text))


def named(*columns: str) -> dict[str, str]:
    """The columns of a file by what they hold."""
    return dict(zip(("line", "station", "box", "direction", "time"), columns, strict=True))


LAYOUTS = {
    "abbey": Layout(
        ",",
        None,
        named("line", "station", "box", "dir", "ts"),
        {"IN": "enter", "OUT": "leave"},
        iso_time,
    ),
    "brook": Layout(
        ";",
        None,
        named("Linie", "Station", "Kiste", "Richtung", "Zeit"),
        {"ein": "enter", "aus": "leave"},
        berlin_time,
    ),
    "cedar": Layout(
        "|",
        ["box", "station", "line", "millis", "direction", "initials"],
        named("line", "station", "box", "direction", "millis"),
        {"E": "enter", "L": "leave"},
        epoch_time,
    ),
}


def expected(landing: Path) -> dict[str, Any]:
    """The five tables (named as in the pipeline) as lists of tuples, and `broken_lines`."""
    lines = [movement for path in sorted(landing.glob("*/*/*.csv")) for movement in lines_of(path, factory=path.parts[-3])]
    return {**tables({line for line in lines if line}), "broken_lines": lines.count(None)}


def lines_of(path: Path, factory: str) -> Iterator[Movement | None]:
    """What each line of the file says; None for a broken line."""
    layout = LAYOUTS[factory]
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, fieldnames=layout.columns, delimiter=layout.delimiter):
            yield movement_of(factory, row)


def movement_of(factory: str, row: Mapping[str, str | None]) -> Movement | None:
    """The movement that the values of a line say; None where they say none."""
    layout = LAYOUTS[factory]
    values = {name: row.get(column) or "" for name, column in layout.names.items()}
    if not (values["line"] and values["station"] and values["box"] and values["direction"] in layout.directions):
        return None
    try:
        moved_at = layout.time(values["time"])
    except ValueError:
        return None
    return Movement(factory, values["line"], values["station"], values["box"], layout.directions[values["direction"]], moved_at)


def tables(movements: set[Movement]) -> dict[str, list[tuple[Any, ...]]]:
    """The five tables of distinct movements."""
    visits = station_visits(movements)
    return {
        "movements": in_order(movements),
        "station_visits": in_order(visits),
        "cycle_times": in_order(cycle_times(visits)),
        "throughput": in_order(throughput(movements)),
        "bottlenecks": in_order(bottlenecks(visits)),
    }


def station_visits(movements: Iterable[Movement]) -> list[Visit]:
    """Pair the n-th enter with the n-th leave of a box at a station."""
    enters, leaves = defaultdict(list), defaultdict(list)
    for movement in movements:
        times = enters if movement.direction == "enter" else leaves
        times[movement.factory, movement.line, movement.box_id, movement.station].append(movement.moved_at)
    return [
        Visit(*key, entered_at, left_at, seconds(entered_at, left_at))
        for key in enters.keys() | leaves.keys()
        for entered_at, left_at in zip_longest(sorted(enters[key]), sorted(leaves[key]))
    ]


def cycle_times(visits: Iterable[Visit]) -> list[tuple[Any, ...]]:
    """From leaving a station to entering the next, for each box on a line."""
    by_box = defaultdict(list)
    for visit in visits:
        if visit.entered_at is not None:
            by_box[visit.factory, visit.line, visit.box_id].append(visit)
    return [
        (*key, former.station, latter.station, former.left_at, latter.entered_at, seconds(former.left_at, latter.entered_at))
        for key, of_box in by_box.items()
        for former, latter in pairwise(sorted(of_box, key=lambda visit: (visit.entered_at, visit.station)))
    ]


def throughput(movements: Iterable[Movement]) -> list[tuple[Any, ...]]:
    """Boxes and leaves of a line in each quarter of an hour that has a leave."""
    boxes = defaultdict(list)
    for movement in movements:
        if movement.direction == "leave":
            at = movement.moved_at
            quarter = at.replace(minute=at.minute // 15 * 15, second=0, microsecond=0)
            boxes[movement.factory, movement.line, quarter].append(movement.box_id)
    return [(*key, len(set(ids)), len(ids)) for key, ids in boxes.items()]


def bottlenecks(visits: Iterable[Visit]) -> list[tuple[Any, ...]]:
    """The stations of a line, ranked for each hour by how long boxes stood there."""
    dwells: dict[tuple[str, str, datetime], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for visit in visits:
        if visit.entered_at is not None and visit.dwell_s is not None:
            hour = visit.entered_at.replace(minute=0, second=0, microsecond=0)
            dwells[visit.factory, visit.line, hour][visit.station].append(visit.dwell_s)
    return [
        (*key, station, len(times), sum(times) / len(times), max(times), rank)
        for key, stations in dwells.items()
        for rank, (station, times) in enumerate(sorted(stations.items(), key=lambda item: (-sum(item[1]) / len(item[1]), item[0])), 1)
    ]


def seconds(begin: datetime | None, end: datetime | None) -> int | None:
    """Seconds from one time to another, each cut to the whole second."""
    if begin is None or end is None:
        return None
    return (end - EPOCH) // timedelta(seconds=1) - (begin - EPOCH) // timedelta(seconds=1)


def in_order(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows by their columns from the left, NULL last."""
    return sorted((tuple(row) for row in rows), key=lambda row: [(value is None, value) for value in row])
