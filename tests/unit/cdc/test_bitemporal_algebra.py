"""The algebra of bitemporal tables against a reading of the rules point by point of both times (docs/semantics/bitemporal.md)."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import permutations
from typing import Any

import pytest

from lakelet.base.errors import LakeletError
from lakelet.language.model import ChangeSpec, NullUpdates
from tests import bitemporal_feeds as feeds
from tests.bitemporal_feeds import MOMENTS, OPTIONS, Record, Row, expected, spec
from tests.cdc_algebra import ChangeEvent, Op, State, folded, rows


def event(record: Record) -> ChangeEvent:
    values = {(name,): record[name] for name in feeds.VALUES}
    if record["op"] == "d":
        return ChangeEvent((record["id"],), record["at"], op=Op.DELETE, known=record["known"])
    return ChangeEvent((record["id"],), record["at"], values, known=record["known"])


def table(flow: ChangeSpec, *batches: Iterable[Record]) -> list[Row]:
    """The table after some batches."""
    state = reduce(lambda state, batch: folded(flow, state, map(event, batch)), batches, State())
    found = [
        (*row.key, *(row.values[(name,)] for name in feeds.VALUES), row.start, row.end, row.system_start, row.system_end)
        for row in rows(flow, state)
    ]
    return sorted(found, key=feeds.sorting)


def upsert(at: int, known: int, name: str | None, team: str | None = None) -> Record:
    return {"id": 1, "at": at, "known": known, "name": name, "team": team, "op": "u"}


def delete(at: int, known: int) -> Record:
    return {"id": 1, "at": at, "known": known, "name": None, "team": None, "op": "d"}


@pytest.mark.parametrize("seed", range(300))
def test_random_feeds_in_any_order_and_any_batches_give_the_same_table(seed):
    """BT-3 to BT-10."""
    chance = random.Random(seed)
    flow = spec(**OPTIONS[seed % len(OPTIONS)])
    events = feeds.feed(chance)
    wanted = expected(flow, events)
    for _ in range(3):
        chance.shuffle(events)
        assert table(flow, *feeds.batches(chance, events)) == wanted


def test_the_random_feeds_hold_what_makes_them_hard():
    found = [feeds.feed(random.Random(seed)) for seed in range(100)]
    assert sum(len({(e["id"], e["at"], e["known"]) for e in events}) < len(events) for events in found) > 50
    assert sum(any(e["op"] == "d" for e in events) for events in found) > 50
    assert sum(any(a["at"] < b["at"] and a["known"] > b["known"] for a in events for b in events) for events in found) > 70
    assert sum(any(row[6] is not None for row in expected(spec(), events)) for events in found) > 70


def shown(table: Sequence[Row], s: int) -> list[Row]:
    return [row[:5] for row in table if row[5] <= s and (row[6] is None or row[6] > s)]


@pytest.mark.parametrize("seed", range(50))
def test_at_every_system_time_the_table_shows_the_history_of_the_events_known_by_then(seed):
    """BT-3, by the algebra of type 2, for feeds without two events of one sequence."""
    chance = random.Random(1000 + seed)
    events = list({(e["id"], e["at"]): e for e in feeds.feed(chance)}.values())
    flow = spec(**OPTIONS[seed % len(OPTIONS)])
    history = ChangeSpec(**{**vars(flow), "system_sequence_by": None})
    found = table(flow, events)
    for s in MOMENTS:
        assert shown(found, s) == [row[:5] for row in table(history, [e for e in events if e["known"] <= s])]


@pytest.mark.parametrize("seed", range(50))
def test_the_table_is_as_short_as_it_can_be(seed):
    """BT-2, BT-4: no row is empty, none goes on in another one, and no two rows say something of one point of both times."""
    found = table(spec(), feeds.feed(random.Random(2000 + seed), keys=1))
    for row in found:
        start, end, system_start, system_end = row[3:]
        assert end is None or start < end
        assert system_end is None or system_start < system_end
        assert not [other for other in found if other[:5] == row[:5] and other[5] == system_end]
    covered = [(v, s) for row in found for v in _points(row[3], row[4]) for s in _points(row[5], row[6])]
    assert len(covered) == len(set(covered))


def _points(start: int, end: int | None) -> range:
    return range(start, MOMENTS.stop if end is None else end)


LIFE = [upsert(1001, 1005, "v1"), upsert(1215, 1220, "v2"), upsert(1205, 1225, "v3"), delete(1230, 1230)]
"""The public example: a company is added, changed, changed before that, deleted; each time it becomes known later."""
LIVED: list[list[tuple[Any, ...]]] = [
    [("v1", 1001, None, 1005, None)],
    [("v1", 1001, None, 1005, 1220), ("v1", 1001, 1215, 1220, None), ("v2", 1215, None, 1220, None)],
    [
        ("v1", 1001, None, 1005, 1220),
        ("v1", 1001, 1215, 1220, 1225),
        ("v1", 1001, 1205, 1225, None),
        ("v3", 1205, 1215, 1225, None),
        ("v2", 1215, None, 1220, None),
    ],
    [
        ("v1", 1001, None, 1005, 1220),
        ("v1", 1001, 1215, 1220, 1225),
        ("v1", 1001, 1205, 1225, None),
        ("v3", 1205, 1215, 1225, None),
        ("v2", 1215, None, 1220, 1230),
        ("v2", 1215, 1230, 1230, None),
    ],
]


@pytest.mark.parametrize("count", range(1, 5))
def test_the_documented_life_of_a_company_in_every_order(count):
    for order in permutations(LIFE[:count]):
        assert [(row[1], *row[3:]) for row in table(spec(), *([e] for e in order))] == LIVED[count - 1]


def test_a_change_of_an_untracked_column_replaces_the_belief_and_keeps_the_version():
    """BT-9."""
    flow = spec(track_history_except_column_list=(("team",),))
    assert table(flow, [upsert(1, 1, "ann", "x"), upsert(5, 6, "ann", "y")]) == [
        (1, "ann", "x", 1, None, 1, 6),
        (1, "ann", "y", 1, None, 6, None),
    ]


def test_nulls_that_are_ignored_take_what_was_known_before_them():
    """BT-10: a late event flows into the versions after it; a correction keeps what it does not say."""
    flow = spec(ignore_null_updates=NullUpdates.ALL)
    first, later = upsert(1, 1, "ann", "x"), upsert(5, 2, "bob", None)
    assert table(flow, [first, later, upsert(3, 4, None, "y")]) == [
        (1, "ann", "x", 1, None, 1, 2),
        (1, "ann", "x", 1, 5, 2, 4),
        (1, "ann", "x", 1, 3, 4, None),
        (1, "ann", "y", 3, 5, 4, None),
        (1, "bob", "x", 5, None, 2, 4),
        (1, "bob", "y", 5, None, 4, None),
    ]
    assert table(flow, [first, upsert(1, 3, "anna", None)]) == [(1, "ann", "x", 1, None, 1, 3), (1, "anna", "x", 1, None, 3, None)]


def test_columns_that_come_later_are_null_before_and_change_no_belief():
    """BT-16."""
    flow = spec()
    old = ChangeEvent((1,), 1, {("name",): "ann"}, known=1)
    state = folded(flow, folded(flow, State(), [old]), [ChangeEvent((1,), 5, {("name",): "bob", ("team",): "x"}, known=2)])
    assert [(dict(row.values), row.start, row.end, row.system_start, row.system_end) for row in rows(flow, state)] == [
        ({("name",): "ann", ("team",): None}, 1, None, 1, 2),
        ({("name",): "ann", ("team",): None}, 1, 5, 2, None),
        ({("name",): "bob", ("team",): "x"}, 5, None, 2, None),
    ]


def test_an_event_that_nobody_knew_is_refused():
    """BT-12."""
    with pytest.raises(LakeletError) as caught:
        folded(spec(), State(), [ChangeEvent((1,), 1, {("name",): "ann"})])
    assert caught.value.code == "CDC_NULL_SEQUENCE"
