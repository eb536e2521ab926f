"""The oracle of the factory example against tables computed by hand, and what its generator writes."""

from __future__ import annotations

import itertools
import runpy
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import factory
from tests.oracles.factory import Movement
from tests.paths import ROOT

GENERATOR = runpy.run_path(str(ROOT / "examples/factory/generate.py"), run_name="generate")


def at(clock: str, day: int = 1) -> datetime:
    """10:00:00 or 10:00:00.250 of a day in March 2026, UTC."""
    return datetime.fromisoformat(f"2026-03-{day:02}T{clock}+00:00")


def land(folder: Path, **files: str) -> Path:
    """The files of a factory each, under `<factory>/20260301/<number>.csv`."""
    for name, text in files.items():
        of, _, number = name.partition("_")
        path = folder / of / "20260301" / f"{number or '0000'}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_each_factory_has_its_own_layout(tmp_path: Path) -> None:
    found = factory.expected(
        land(
            tmp_path,
            abbey="line,station,box,dir,ts\nL1,fill,B1,IN,2026-03-01T10:00:00Z\n",
            brook="Zeit;Linie;Station;Kiste;Richtung\n01.03.2026 11:00:00;L1;Füllen;B1;aus\n",
            cedar="B1|S1|L1|1772359200250|E|AK\n",
        )
    )
    assert found["movements"] == [
        ("abbey", "L1", "fill", "B1", "enter", at("10:00:00")),
        ("brook", "L1", "Füllen", "B1", "leave", at("10:00:00")),
        ("cedar", "L1", "S1", "B1", "enter", at("10:00:00.250")),
    ]
    assert found["broken_lines"] == 0


@pytest.mark.parametrize(
    ("local", "utc"),
    [
        ("28.03.2026 12:00:00", "2026-03-28T11:00:00"),
        ("29.03.2026 01:59:59", "2026-03-29T00:59:59"),
        ("29.03.2026 02:30:00", "2026-03-29T01:30:00"),  # left out by the clock: 03:30 in summer time
        ("29.03.2026 03:00:00", "2026-03-29T01:00:00"),
        ("25.10.2026 02:30:00", "2026-10-25T00:30:00"),  # twice on the clock: the earlier
        ("25.10.2026 03:00:00", "2026-10-25T02:00:00"),
    ],
)
def test_brook_writes_the_clock_of_berlin(local: str, utc: str) -> None:
    assert factory.berlin_time(local) == datetime.fromisoformat(f"{utc}+00:00")


def test_broken_lines_are_counted_each_time_and_give_no_movement(tmp_path: Path) -> None:
    abbey = "line,station,box,dir,ts\nL1,fill,,IN,2026-03-01T10:00:00Z\nL1,fill,B1,IN,2026-03-01T25:61:00Z\nL1,fill,B1\n\nL1,fill,B1,up,x\n"
    brook = "Zeit;Linie;Station;Kiste;Richtung\n31.02.2026 10:00:00;L1;Füllen;B1;ein\n01.03.2026 10:00:00;L1;Füllen\n"
    found = factory.expected(land(tmp_path, abbey=abbey, abbey_again=abbey, brook=brook, cedar="B1|S1|L1|no clock|E|AK\n|S1|L1|1|E|AK\n"))
    assert (found["broken_lines"], found["movements"]) == (12, [])


def rows(*texts: str) -> set[Movement]:
    """Movements of box B1 on line L1 of abbey: 'fill enter 10:00:00'."""
    return {Movement("abbey", "L1", station, "B1", direction, at(clock)) for station, direction, clock in map(str.split, texts)}


def test_the_nth_enter_pairs_with_the_nth_leave() -> None:
    found = factory.tables(
        rows("fill enter 10:00:00", "fill enter 10:20:00", "fill leave 10:01:30", "seal leave 10:30:00", "pack enter 10:40:00.900")
    )
    visits = [row[3:] for row in found["station_visits"]]
    assert visits == [
        ("fill", at("10:00:00"), at("10:01:30"), 90),
        ("fill", at("10:20:00"), None, None),
        ("pack", at("10:40:00.900"), None, None),
        ("seal", None, at("10:30:00"), None),
    ]


def test_seconds_are_those_between_whole_seconds() -> None:
    found = factory.tables(rows("fill enter 10:00:00.900", "fill leave 10:00:02.100"))
    assert found["station_visits"][0][-1] == 2


def test_cycle_times_follow_the_order_of_entering() -> None:
    found = factory.tables(
        rows(
            "seal enter 10:05:00",
            "fill enter 10:00:00",
            "fill leave 10:04:00",
            "seal leave 10:09:00",
            "pack enter 10:08:00",
            "dry leave 10:01:00",
        )
    )
    assert [row[3:] for row in found["cycle_times"]] == [
        ("fill", "seal", at("10:04:00"), at("10:05:00"), 60),
        ("seal", "pack", at("10:09:00"), at("10:08:00"), -60),
    ]


def test_cycle_time_without_a_leave_has_no_seconds_and_equal_times_go_by_station() -> None:
    found = factory.tables(rows("fill enter 10:00:00", "dry enter 10:00:00"))
    assert [row[3:] for row in found["cycle_times"]] == [("dry", "fill", None, at("10:00:00"), None)]


def test_throughput_counts_boxes_and_leaves_of_a_quarter() -> None:
    leave = {
        Movement("abbey", "L1", station, box, "leave", at(clock))
        for station, box, clock in [
            ("fill", "B1", "10:00:00"),
            ("seal", "B1", "10:14:59"),
            ("fill", "B2", "10:14:59"),
            ("pack", "B1", "10:15:00"),
        ]
    }
    found = factory.tables(leave | rows("fill enter 10:50:00"))
    assert found["throughput"] == [("abbey", "L1", at("10:00:00"), 2, 3), ("abbey", "L1", at("10:15:00"), 1, 1)]


def test_bottlenecks_rank_stations_by_mean_dwell_in_the_hour_of_entering() -> None:
    found = factory.tables(
        rows("fill enter 10:00:00", "fill leave 10:00:10", "fill enter 10:30:00", "fill leave 10:30:21")
        | rows("seal enter 10:59:50", "seal leave 11:00:10", "dry enter 10:01:00", "dry leave 10:01:20", "pack enter 10:02:00")
    )
    assert [row[3:] for row in found["bottlenecks"]] == [("dry", 1, 20.0, 20, 1), ("fill", 2, 15.5, 21, 3), ("seal", 1, 20.0, 20, 2)]


MOVEMENTS = st.sets(
    st.builds(
        Movement,
        factory=st.sampled_from(["abbey", "cedar"]),
        line=st.sampled_from(["L1", "L2"]),
        station=st.sampled_from(["dry", "fill", "seal"]),
        box_id=st.sampled_from(["B1", "B2"]),
        direction=st.sampled_from(["enter", "leave"]),
        moved_at=st.integers(0, 9_000_000).map(lambda ms: at("09:00:00") + timedelta(milliseconds=ms)),
    ),
    max_size=25,
)


@given(MOVEMENTS)
def test_no_movement_is_lost_or_counted_twice(movements: set[Movement]) -> None:
    found = factory.tables(movements)
    visits, leaves = found["station_visits"], sum(movement.direction == "leave" for movement in movements)
    assert sum(row[5] is not None for row in visits) == leaves == sum(row[4] for row in found["throughput"])
    assert sum(row[4] is not None for row in visits) == len(movements) - leaves
    entered = [row[:3] for row in visits if row[4] is not None]
    assert len(found["cycle_times"]) == len(entered) - len(set(entered))
    assert sum(row[4] for row in found["bottlenecks"]) == sum(row[6] is not None for row in visits)


@given(MOVEMENTS)
def test_factories_have_nothing_to_do_with_each_other(movements: set[Movement]) -> None:
    apart = [factory.tables({movement for movement in movements if movement.factory == name}) for name in ("abbey", "cedar")]
    assert factory.tables(movements) == {name: apart[0][name] + apart[1][name] for name in apart[0]}


def generated(drops: range, seed: int = 1, boxes: int = 5) -> dict[str, str]:
    return dict(file for drop in drops for file in GENERATOR["files_of_drop"](seed, boxes, drop))


def put(folder: Path, files: dict[str, str]) -> dict[str, Any]:
    for name, text in files.items():
        GENERATOR["write"](folder / name, text)
    return factory.expected(folder)


def test_every_generated_movement_arrives_once_however_late(tmp_path: Path) -> None:
    """40 drops hold each movement of the first 15 quarters, those of broken lines too."""
    found = put(tmp_path, generated(range(40)))
    made = {
        (name, move.line, move.station, move.box, move.direction, move.at)
        for name in GENERATOR["FACTORIES"]
        for quarter in range(15)
        for move in GENERATOR["started"](1, name, quarter, 5)
    }
    early = GENERATOR["START"] + 15 * timedelta(minutes=15)
    assert {row for row in found["movements"] if row[5] < early} == {row for row in made if row[5] < early}
    assert found["broken_lines"] > 0
    assert not list(tmp_path.rglob(".*"))


def test_a_second_delivery_has_new_late_repeated_and_renamed_files(tmp_path: Path) -> None:
    first, second = generated(range(8)), generated(range(8, 16))
    assert not first.keys() & second.keys()
    before = put(tmp_path, first)
    assert any("-again" in name and text in first.values() for name, text in second.items())
    assert any(name.endswith("20260329/0145.csv") for name in second)  # a whole file of the first eight quarters
    lines = {(name[:5], line) for name, text in first.items() for line in text.splitlines()[1:]}
    assert any((name[:5], line) in lines for name, text in second.items() if "-again" not in name for line in text.splitlines()[1:])
    after = put(tmp_path, second)
    end = GENERATOR["START"] + timedelta(hours=2)
    assert sum(row[5] < end for row in after["movements"]) > len(before["movements"])


def test_the_same_seed_gives_the_same_files_and_drops_go_on_without_end() -> None:
    assert generated(range(5)) == generated(range(5)) != generated(range(5), seed=2)
    two = generated(range(3, 5))
    assert dict(itertools.islice(GENERATOR["drops"](1, 5, start_drop=3), len(two))) == two
    assert GENERATOR["START"].tzinfo == timezone.utc
