"""Planned files, and what is known about them afterwards (AL-14 to AL-18; cases D01 to D05, D15, D16, E04)."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from lakelet.autoloader import AutoLoaderSource, SourceSpec
from lakelet.autoloader.discovery.listing import LISTING
from lakelet.autoloader.micro_batches import Planner
from lakelet.autoloader.source_options import parse_options
from lakelet.autoloader.source_spec import ReaderSpec
from lakelet.autoloader.state.ledger import Ledger, Limits, batch_of, first_that_fit, offset_of
from lakelet.base.errors import LakeletError


def listing(*names: str, size: int = 10, modified: int | None = None) -> pa.Table:
    times = [at if modified is None else modified for at in range(len(names))]
    return pa.table([list(names), [size] * len(names), times], schema=LISTING)


def paths(ledger: Ledger, up_to: int) -> list[str]:
    return sorted(path for piece in ledger.entries(up_to) for path in piece["path"].to_pylist())


def spec_of(tmp_path: Path, **options: str) -> SourceSpec:
    (tmp_path / "in").mkdir(exist_ok=True)
    return SourceSpec(str(tmp_path / "in"), {"cloudFiles." + key: value for key, value in {"format": "json", **options}.items()})


def source(tmp_path: Path, **options: str) -> AutoLoaderSource:
    return AutoLoaderSource.open(spec_of(tmp_path, **options), state=str(tmp_path / "state"))


def planner(tmp_path: Path, **options: str) -> Planner:
    reader = parse_options(spec_of(tmp_path, **options), {}).reader
    return Planner(replace(reader, state=str(tmp_path / "state")))


def put(tmp_path: Path, *names: str, size: int = 3) -> None:
    (tmp_path / "in").mkdir(exist_ok=True)
    for name in names:
        (tmp_path / "in" / name).write_bytes(b"{}\n".ljust(size))


def files(plans: Planner, after: int, up_to: int) -> list[str]:
    return sorted({os.path.basename(part.path) for task in plans.parts(after, up_to) for part in task})


@pytest.fixture
def clock() -> Callable[[], int]:
    moments = iter(range(1000, 1_000_000, 1000))
    return lambda: next(moments)


def test_d15_a_batch_above_the_logged_offset_is_planned_again(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    ledger.plan(0, listing("a", "b"))
    ledger.plan(1, listing("c"))
    assert ledger.unseen(listing("a", "b", "c", "d"), 0)["path"].to_pylist() == ["c", "d"]
    ledger.plan(1, listing("d"))
    assert ledger.planned(0, 1)["path"].to_pylist() == ["d"]
    assert ledger.unseen(listing("a", "b", "c", "d"), 1)["path"].to_pylist() == ["c"]


def test_compaction_keeps_every_batch_readable(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    for batch in range(100):
        ledger.plan(batch, listing(f"f{batch}"))
    assert len(list((tmp_path / "ledger").iterdir())) < 40
    assert paths(ledger, 99) == sorted(f"f{n}" for n in range(100))
    assert paths(ledger, 50) == sorted(f"f{n}" for n in range(51))
    assert ledger.planned(2, 4)["path"].to_pylist() == ["f3", "f4"]
    assert ledger.planned(97, 99)["path"].to_pylist() == ["f98", "f99"]
    with pytest.raises(LakeletError, match="CF_STATE_DAMAGED"):
        ledger.planned(99, 100)


@pytest.mark.parametrize("removed", [0, 1, 20, 32])
def test_a_compaction_that_died_half_way_changes_nothing(tmp_path: Path, removed: int) -> None:
    ledger = Ledger(str(tmp_path))
    for batch in range(31):
        ledger.plan(batch, listing(f"f{batch}"))
    ledger.mark_committed(30)
    shutil.copytree(tmp_path / "ledger", tmp_path / "before")
    ledger.plan(31, listing("f31"))
    for path in sorted((tmp_path / "before").iterdir())[removed:]:
        shutil.copy(path, tmp_path / "ledger")
    assert paths(ledger, 31) == sorted(f"f{n}" for n in range(32))
    assert len(ledger.unseen(listing(*(f"f{n}" for n in range(40))), 31)) == 8
    assert sorted(ledger.commits(30)) == list(range(31))


@pytest.mark.parametrize("number", [2, 4])
def test_another_format_and_a_damaged_file_are_refused(tmp_path: Path, number: int) -> None:
    ledger = Ledger(str(tmp_path))
    ledger.plan(0, listing("a"))
    path = tmp_path / "ledger" / "0000000000.arrow"
    table = pa.ipc.open_file(path.read_bytes()).read_all()
    other = table.replace_schema_metadata({"lakelet.ledger.format": str(number)})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, other.schema) as writer:
        writer.write_table(other)
    with pytest.raises(LakeletError, match=rf"\[FORMAT_UNKNOWN\] the ledger .* has format {number}; this Lakelet reads format 3\n"):
        paths(ledger, 0)
    path.write_bytes(b"junk")
    with pytest.raises(LakeletError, match="CF_STATE_DAMAGED"):
        paths(ledger, 0)


def test_a_batch_counts_as_committed_from_the_next_plan_or_the_end_of_a_run(tmp_path: Path, clock: Callable[[], int]) -> None:
    ledger = Ledger(str(tmp_path), clock)
    ledger.plan(0, listing("a"))  # 1000
    ledger.plan(1, listing("b"))  # 2000
    assert ledger.commits(1) == {0: 2000}
    ledger.mark_committed(1)  # 3000
    ledger.mark_committed(1)
    ledger.plan(2, listing("c"))  # 4000
    assert ledger.commits(2) == {0: 2000, 1: 3000}
    ledger.mark_committed(2)  # 5000
    assert ledger.commits(2) == {0: 2000, 1: 3000, 2: 5000}
    for batch in range(3, 32):
        ledger.plan(batch, listing(str(batch)))  # 6000, 7000, …
    assert not list((tmp_path / "ledger").glob("committed-*"))
    assert [ledger.commits(3)[batch] for batch in range(4)] == [2000, 3000, 5000, 7000]


def test_unseen_agrees_with_a_set_of_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakelet.autoloader.state.ledger._COMPARED_ROWS", 50)
    rng = random.Random(5)
    ledger, seen, timed = Ledger(str(tmp_path)), set[str](), set[tuple[str, int]]()
    for batch in range(70):
        names = [f"f{rng.randrange(400)}" for _ in range(rng.randrange(12))]
        ledger.plan(batch, listing(*names, modified=batch % 3))
        seen.update(names)
        timed.update((name, batch % 3) for name in names)
    everything = listing(*(f"f{n}" for n in range(400)), modified=1)
    assert ledger.unseen(everything, 69)["path"].to_pylist() == [f"f{n}" for n in range(400) if f"f{n}" not in seen]
    by_time = ledger.unseen(everything, 69, by_time=True)
    assert by_time.schema == LISTING
    assert by_time["path"].to_pylist() == [f"f{n}" for n in range(400) if (f"f{n}", 1) not in timed]


def test_d04_d05_bytes_are_a_soft_cap_and_files_a_hard_one(tmp_path: Path) -> None:
    rows = listing("a", "b", "c", "d", size=300)
    assert len(first_that_fit(rows, Limits(1000, 1000))) == 4
    assert len(first_that_fit(rows, Limits(1000, 500))) == 2
    assert len(first_that_fit(rows, Limits(3, 1000))) == 3
    assert len(first_that_fit(rows, Limits(1000, 1))) == 1
    assert len(first_that_fit(rows, Limits())) == 4
    plans = planner(tmp_path)
    put(tmp_path, *"abcd", size=300)
    plans.freeze()
    assert [plans.plan(at, Limits(1000, 500)) for at in (-1, 0, 1)] == [0, 1, 1]
    assert [files(plans, at, at + 1) for at in (-1, 0)] == [["a", "b"], ["c", "d"]]


def test_the_newest_files_come_first_where_asked(tmp_path: Path) -> None:
    spec = SourceSpec(str(tmp_path / "in"), {"cloudFiles.format": "json", "latestFirst": "true"})
    put(tmp_path, "old.json", "older.json", "new.json")
    for name, modified in (("older.json", 100), ("old.json", 200), ("new.json", 300)):
        os.utime(tmp_path / "in" / name, (modified, modified))
    plans = Planner(replace(parse_options(spec, {}).reader, state=str(tmp_path / "state")))
    assert plans.plan(-1, Limits(1)) == 0
    put(tmp_path, "live.json")  # comes while the backlog is read
    assert [plans.plan(at, Limits(1)) for at in (0, 1, 2, 3)] == [1, 2, 3, 3]
    assert [files(plans, at, at + 1) for at in (-1, 0, 1, 2)] == [["new.json"], ["live.json"], ["old.json"], ["older.json"]]


def test_plans_are_deterministic_and_stop_when_nothing_is_left(tmp_path: Path) -> None:
    plans = planner(tmp_path, maxFilesPerTrigger="2")
    put(tmp_path, "a.json", "b.json", "c.json")
    plans.freeze()
    put(tmp_path, "later.json")
    limits = Limits(2, None)
    assert [plans.plan(-1, limits), plans.plan(0, limits), plans.plan(1, limits)] == [0, 1, 1]
    assert [len(task) for task in plans.parts(-1, 0)] == [2]
    again = planner(tmp_path)
    assert again.plan(1, limits) == 2
    assert files(again, 1, 2) == ["later.json"]


def test_d16_a_new_checkpoint_reads_everything_again(tmp_path: Path) -> None:
    plans = planner(tmp_path)
    put(tmp_path, "a.json")
    assert plans.plan(-1, Limits()) == 0
    assert planner(tmp_path).plan(0, Limits()) == 0
    assert planner(tmp_path).plan(-1, Limits()) == 0


@pytest.mark.parametrize(("overwrites", "batches"), [("false", [0, 0]), ("true", [1, 2])])
def test_d02_a_changed_file_is_read_again_only_with_allow_overwrites(tmp_path: Path, overwrites: str, batches: list[int]) -> None:
    options = {"allowOverwrites": overwrites}
    put(tmp_path, "a.json", "b.json")
    assert planner(tmp_path, **options).plan(-1, Limits()) == 0
    found = []
    for size, seconds in ((9, 2_000_000_000), (12, 2_000_000_001)):
        put(tmp_path, "a.json", size=size)
        os.utime(tmp_path / "in" / "a.json", (seconds, seconds))
        committed = found[-1] if found else 0
        assert source(tmp_path, **options).pending(f'{{"v":1,"batch":{committed}}}').files == (overwrites == "true")
        plans = planner(tmp_path, **options)
        found.append(plans.plan(committed, Limits()))
        assert [part.size for task in plans.parts(committed, found[-1]) for part in task] == ([size] if overwrites == "true" else [])
    assert found == batches


def test_d03_files_from_before_the_first_start_are_skipped_for_good(tmp_path: Path) -> None:
    put(tmp_path, "a.json")
    first = source(tmp_path, includeExistingFiles="false")
    assert first.pending(None).files == 0
    put(tmp_path, "b.json")
    assert source(tmp_path, includeExistingFiles="false").pending(None).files == 1
    assert source(tmp_path, includeExistingFiles="true").pending(None).files == 1
    plans = planner(tmp_path, includeExistingFiles="true")
    assert plans.plan(-1, Limits()) == 0
    assert files(plans, -1, 0) == ["b.json"]


def test_d03_a_first_start_that_died_before_it_recorded_anything_is_still_the_first(tmp_path: Path) -> None:
    put(tmp_path, "a.json")
    (tmp_path / "state" / "ledger").mkdir(parents=True)
    (tmp_path / "state" / "ledger" / ".tmp-half").write_bytes(b"half")
    assert source(tmp_path, includeExistingFiles="false").pending(None).files == 0


def test_e04_files_removed_since_leave_a_batch_that_was_never_committed(tmp_path: Path) -> None:
    options = {"schemaEvolutionMode": "failOnNewColumns"}
    plans = planner(tmp_path, **options)
    put(tmp_path, "a.json", "b.json")
    assert plans.plan(-1, Limits()) == 0
    os.unlink(tmp_path / "in" / "b.json")
    assert files(plans, -1, 0) == ["a.json", "b.json"]  # gone since this start planned it: the read decides
    assert files(planner(tmp_path), -1, 0) == ["a.json", "b.json"]  # other modes never do it
    again = planner(tmp_path, **options)
    assert files(again, -1, 0) == ["a.json"]
    put(tmp_path, "b.json", "c.json")
    assert again.plan(0, Limits()) == 1
    assert files(again, 0, 1) == ["b.json", "c.json"]


def test_a_stream_without_a_driver_cleans_what_was_committed_before_it_plans(tmp_path: Path) -> None:
    keys = {"cleanSource": "MOVE", "cleanSource.retentionDuration": "0 seconds", "cleanSource.moveDestination": str(tmp_path / "done")}
    reader = parse_options(spec_of(tmp_path, **keys), {}).reader
    for alone in (False, True):
        described = ReaderSpec.from_json(replace(reader, state=str(tmp_path / f"state{alone}"), evolve_here=alone).to_json())
        put(tmp_path, "a.json", "b.json")
        assert Planner(described).plan(-1, Limits(files=1)) == 0
        os.utime(tmp_path / "in" / "b.json", (2_000_000_000, 2_000_000_000))
        assert Planner(described).plan(0, Limits()) == 1
        assert sorted(os.listdir(tmp_path / "in")) == (["b.json"] if alone else ["a.json", "b.json"])


def test_offsets_carry_a_format() -> None:
    assert batch_of(offset_of(7)) == 7
    assert batch_of('{"v": 1, "batch": 3}') == 3
    assert batch_of(None) == -1
    with pytest.raises(LakeletError, match="FORMAT_UNKNOWN"):
        batch_of('{"v": 2, "batch": 3}')
    with pytest.raises(LakeletError, match="CF_STATE_DAMAGED"):
        batch_of("junk")
