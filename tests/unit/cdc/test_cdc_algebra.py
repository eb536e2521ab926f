"""The algebra of change data capture: every numbered case, and the same table whatever the order and the batches (CD-1)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.language.model import ChangeSpec, NullUpdates
from tests.cdc_algebra import ChangeEvent, Row, State, folded, rows, snapshot_events, table, with_snapshot
from tests.cdc_cases import BAD_CASES, CASES, NULLS, PAIRS, SNAPSHOT_CASES, Batches, Case, Feed, Record, SnapshotCase, shuffled
from tests.cdc_feeds import random_feed, stated


def visible(feed: Feed, batches: Sequence[Sequence[Record]], spec: ChangeSpec | None = None) -> list[tuple[Any, ...]]:
    """What the target holds after the batches."""
    spec = spec or feed.spec
    state = reduce(lambda state, batch: folded(spec, state, map(feed.event, batch)), batches, State())
    return [feed.visible(row) for row in rows(spec, state)]


def _case_test(case: Case) -> Callable[[], None]:
    def test() -> None:
        for name, batches in case.arrangements(random.Random(case.id), count=10).items():
            found = visible(case.feed, batches)
            assert case.right(found), (name, batches, found)

    return test


for _case in CASES:
    globals()[f"test_{_case.id}_in_one_batch_in_many_and_in_any_order"] = _case_test(_case)


def _snapshot_test(case: SnapshotCase) -> Callable[[], None]:
    def test() -> None:
        spec, state, latest = case.spec, State(), None
        names = [(name,) for name in case.columns][1:]
        for version, copy in case.snapshots:
            state = with_snapshot(
                spec, state, [((row[0],), dict(zip(names, row[1:], strict=True))) for row in copy], version=version, latest=latest
            )
            latest = version
        history = spec.scd_type == 2
        found = [(*r.key, *(r.values[n] for n in names), *((r.start, r.end) if history else ())) for r in rows(spec, state)]
        assert sorted(found, key=repr) == sorted(case.rows, key=repr)

    return test


for _snapshot in SNAPSHOT_CASES:
    globals()[f"test_{_snapshot.id}_from_snapshots"] = _snapshot_test(_snapshot)


@pytest.mark.parametrize("case", BAD_CASES, ids=lambda case: case.id)
def test_C15_C16_a_batch_without_sequences_or_keys_is_refused_and_changes_nothing(case):
    spec = case.feed.spec
    state = folded(spec, State(), map(case.feed.event, case.good))
    before = rows(spec, state)
    with pytest.raises(LakeletError) as caught:
        folded(spec, state, map(case.feed.event, case.bad))
    assert (caught.value.code, rows(spec, state)) == (case.code, before)


def test_C62_a_snapshot_applied_once_beside_changes_gives_way_to_them_in_either_order():
    hydrating, change = {"id": 1, "x": "s", "seq": 0, "op": "u"}, {"id": 1, "x": "n", "seq": 5, "op": "u"}
    assert visible(PAIRS, [[hydrating], [change]]) == visible(PAIRS, [[change], [hydrating]]) == [(1, "n", None)]


def test_C63_two_flows_into_one_table_are_ordered_by_the_sequence():
    first, second = {"id": 1, "x": "a", "seq": 10, "op": "u"}, {"id": 1, "x": "b", "seq": 20, "op": "u"}
    assert visible(PAIRS, [[first], [second]]) == visible(PAIRS, [[second], [first]]) == [(1, "b", None)]


def test_C64_a_column_that_comes_later_is_null_in_the_rows_before_it():
    spec = ChangeSpec("s", (("id",),), "seq")
    found = table(spec, [ChangeEvent((1,), 1, {("x",): "a"}), ChangeEvent((2,), 2, {("x",): "b", ("z",): "c"})])
    assert [(r.key, r.values.get(("x",)), r.values.get(("z",))) for r in found] == [((1,), "a", None), ((2,), "b", "c")]
    history = table(replace(spec, scd_type=2), [ChangeEvent((1,), 1, {("x",): "a"}), ChangeEvent((1,), 2, {("x",): "a", ("z",): None})])
    assert [(r.start, r.end) for r in history] == [(1, None)]


# ---------------------------------------------------------------------------------------------------------- snapshots


def test_only_what_differs_between_a_snapshot_and_the_table_is_an_event():
    same, other = {("v",): "a"}, {("v",): "b"}
    found = snapshot_events({(1,): same, (2,): same, (3,): same}, [((1,), same), ((2,), other), ((4,), same)], 7)
    assert [(e.key, e.op.value) for e in found] == [((3,), "delete"), ((2,), "upsert"), ((4,), "upsert")]


def test_snapshots_with_versions_that_do_not_ascend_or_with_keys_twice_are_refused():
    spec = ChangeSpec("s", (("id",),), snapshots="periodic")
    for version, latest, copy in ((1, 1, []), (1, 2, []), ("a", "b", []), (1, None, [((1,), {}), ((1,), {})])):
        with pytest.raises(LakeletError) as caught:
            with_snapshot(spec, State(), copy, version=version, latest=latest)
        assert caught.value.code == "CDC_SNAPSHOT_INVALID"


# -------------------------------------------------------------------------------------------------------- convergence

_HISTORY = replace(PAIRS.spec, scd_type=2)
_HISTORY_NULLS = replace(NULLS.spec, scd_type=2)
_FEEDS: tuple[tuple[ChangeSpec, dict[str, Any]], ...] = (
    (PAIRS.spec, {"scd_type": 1}),
    (NULLS.spec, {"scd_type": 1, "ignore_null": ("x", "y")}),
    (replace(NULLS.spec, ignore_null_updates=NullUpdates.ON, ignore_null_columns=(("x",),)), {"scd_type": 1, "ignore_null": ("x",)}),
    (_HISTORY, {"scd_type": 2}),
    (_HISTORY_NULLS, {"scd_type": 2, "ignore_null": ("x", "y")}),
)


def _event(record: Record) -> ChangeEvent:
    return PAIRS.event(record)


def _rows(spec: ChangeSpec, batches: Batches) -> list[Row]:
    state = reduce(lambda state, batch: folded(spec, state, map(_event, batch)), batches, State())
    return rows(spec, state)


def _plain(found: Sequence[Row], *, history: bool) -> list[tuple[Any, ...]]:
    return [(*r.key, r.values[("x",)], r.values[("y",)], *((r.start, r.end) if history else ())) for r in found]


def converges(seed: int) -> None:
    """Any order and any split of a random feed gives the stated table; type 1 holds the open rows of type 2."""
    rng = random.Random(seed)
    for spec, stating in _FEEDS:
        history = spec.scd_type == 2
        for truncates in (0,) if history else (0, 3):
            feed = random_feed(seed, truncates=truncates)
            wanted = stated(feed, **stating)
            found = _plain(_rows(spec, shuffled(feed, rng)), history=history)
            assert found == wanted, f"seed {seed}, {spec}, {truncates} truncates"
    feed = random_feed(seed)
    for current, versions in ((PAIRS.spec, _HISTORY), (NULLS.spec, _HISTORY_NULLS)):
        still_open = [replace(r, start=None) for r in _rows(versions, (tuple(feed),)) if r.end is None]
        assert _rows(current, (tuple(feed),)) == still_open, f"seed {seed}: type 1 is not the open part of type 2"


@pytest.mark.parametrize("seed", range(50))
def test_random_feeds_converge(seed):
    converges(seed)


@pytest.mark.slow
@pytest.mark.parametrize("decade", range(100))
def test_many_more_random_feeds_converge(decade):
    for seed in range(1000 + 10 * decade, 1010 + 10 * decade):
        converges(seed)


def test_the_random_feeds_hold_what_makes_them_hard():
    feed = random_feed(1, truncates=3)
    own = [e for e in feed[: 10 * 40 + 3] if e["op"] != "t"]
    assert (len(own), len({e["seq"] for e in own}), sum(e["op"] == "t" for e in feed[:403])) == (400, 400, 3)
    assert 0.12 < sum(e["op"] == "d" for e in own) / 400 < 0.28
    assert len(feed) == 403 + 60
    assert any(e["x"] is None for e in own)
    truncated, whole = (stated([e for e in feed if e["op"] in ops], scd_type=1) for ops in ("udt", "ud"))
    assert 0 < len(truncated) < len(whole) <= 10
    assert len(stated(random_feed(1), scd_type=2)) > 100
