"""Rows changed by hand in the algebra of change tables (CT-4 to CT-8)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from lakelet.language.model import ChangeSpec
from tests.cdc_algebra import ChangeEvent, Op, Row, State, folded, rows
from tests.cdc_cases import NULLS, PAIRS
from tests.cdc_edit_algebra import edited
from tests.cdc_edits import Edits
from tests.cdc_feeds import random_feed

LATEST, LEAVES, HISTORY = PAIRS.spec, NULLS.spec, replace(PAIRS.spec, scd_type=2)


def u(key: int, value: Any, seq: Any) -> ChangeEvent:
    return ChangeEvent((key,), seq, {("x",): value})


def d(key: int, seq: Any) -> ChangeEvent:
    return ChangeEvent((key,), seq, op=Op.DELETE)


def row(key: int, value: Any, *times: Any) -> Row:
    return Row((key,), {("x",): value}, *times)


def after(spec: ChangeSpec, events: Sequence[ChangeEvent], edit: Any, later: Sequence[ChangeEvent]) -> list[tuple[Any, ...]]:
    """What the table holds after events, a change of its rows by hand, and more events."""
    state = folded(spec, State(), events)
    before = rows(spec, state)
    state = folded(spec, edited(spec, state, before, edit(before)), later)
    return [(*r.key, r.values[("x",)], *((r.start, r.end) if spec.scd_type == 2 else ())) for r in rows(spec, state)]


@pytest.mark.parametrize("spec", [LATEST, LEAVES])
def test_C67_C68_C69_rows_of_type_1(spec):
    a = [u(1, "a", 10)]
    assert after(spec, a, lambda r: [*r, row(1, "h"), row(2, "h")], []) == [(1, "a"), (2, "h")]
    assert after(spec, a, lambda r: [*r, row(2, "h")], [u(2, "late", -5)]) == [(1, "a"), (2, "late")]
    assert after(spec, [*a, d(2, 9)], lambda r: [*r, row(2, "h")], [u(2, "late", 8)]) == [(1, "a"), (2, "h")]
    assert after(spec, a, lambda r: [], [u(1, "late", 5)]) == []
    assert after(spec, a, lambda r: [], [u(1, "new", 11)]) == [(1, "new")]
    assert after(spec, a, lambda r: [row(1, None)], [u(1, "late", 5)]) == [(1, None)]
    hand = after(spec, [], lambda r: [row(1, "h")], [])
    assert hand == [(1, "h")]


def test_rows_put_after_a_truncate_stay_until_the_next_one():
    truncate = ChangeEvent((None,), 5, op=Op.TRUNCATE)
    assert after(LATEST, [u(1, "a", 1), truncate], lambda r: [row(1, "h"), row(2, "h")], [u(2, "late", 4)]) == [(1, "h"), (2, "h")]
    assert after(LATEST, [], lambda r: [row(1, "h")], [truncate]) == []


def test_C67_C68_C69_versions_of_type_2():
    feed = [u(1, "a", 1), u(1, "b", 5), u(1, "b", 7), u(1, "c", 10)]
    assert after(HISTORY, feed, lambda r: [*r, row(2, "h", 5)], [u(2, "late", 3)]) == [
        (1, "a", 1, 5), (1, "b", 5, 10), (1, "c", 10, None), (2, "late", 3, 5), (2, "h", 5, None),
    ]  # fmt: skip
    assert after(HISTORY, feed, lambda r: [r[0], row(1, "B", 5, 10), r[2]], []) == [(1, "a", 1, 5), (1, "B", 5, 10), (1, "c", 10, None)]
    assert after(HISTORY, feed, lambda r: [r[0], r[2]], []) == [(1, "a", 1, 5), (1, "c", 10, None)]
    assert after(HISTORY, feed, lambda r: [*r[:2], row(1, "c", 10, 20)], [u(1, "d", 30)])[2:] == [(1, "c", 10, 20), (1, "d", 30, None)]
    closed = [u(1, "a", 1), d(1, 5)]
    assert after(HISTORY, closed, lambda r: [row(1, "a", 1, None)], []) == [(1, "a", 1, None)]
    assert after(HISTORY, closed, lambda r: [row(1, "A", 1, 5)], []) == [(1, "A", 1, 5)]
    assert after(HISTORY, closed, lambda r: [*r, row(1, "x", 7, 9)], []) == [(1, "a", 1, 5), (1, "x", 7, 9)]
    assert after(HISTORY, closed, lambda r: [*r, row(1, "x", 0, 4)], []) == [(1, "x", 0, 1), (1, "a", 1, 5)]


@pytest.mark.parametrize("seed", range(50))
def test_what_was_changed_by_hand_stays_as_it_is_until_an_event_of_its_key(seed):
    for feed, spec in ((PAIRS, LATEST), (NULLS, LEAVES), (PAIRS, HISTORY)):
        rng = random.Random(seed)
        state = folded(spec, State(), map(feed.event, random_feed(seed, truncates=0)[:400]))
        before = rows(spec, state)
        edits = Edits(rng, list(before), rng.sample(range(5000, 6000), 40), spec.scd_type == 2)
        wanted = edits.make(4, 0)
        put = [r for r in wanted if r not in before]
        changed = {r.key for r in wanted if r not in before} | {r.key for r in before if r not in wanted}
        found = rows(spec, edited(spec, state, before, wanted))
        assert [r for r in found if r.key not in changed] == [r for r in before if r.key not in changed]
        beside = {r.key for r in before if r in wanted}
        assert spec.scd_type == 2 or all((r in found) == (r.key not in beside) for r in put)
