"""The algebra over random lives of a table: options that change, two flows with different ones, columns that grow."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

from tests.cdc_algebra import ChangeEvent, Op, State, folded, rows
from tests.cdc_cases import Record
from tests.cdc_scenarios import LEAVES, Batch, expected, scenario

_OPS = {"u": Op.UPSERT, "d": Op.DELETE, "t": Op.TRUNCATE}


def event(batch: Batch, record: Record) -> ChangeEvent:
    """A record as the algebra sees it. Inside of arrays and maps it compares whole values, so they have all their fields."""
    op = _OPS[record["op"]]
    if op is not Op.UPSERT:
        return ChangeEvent((record["id"],), record["seq"], op=op)
    values = {leaf: _value(record, leaf) for leaf in batch.leaves()}
    sets = None if record["cols"] is None else frozenset(tuple(name.split(".")) for name in record["cols"])
    return ChangeEvent((record["id"],), record["seq"], values, sets=sets)


def _value(record: Record, leaf: tuple[str, ...]) -> Any:
    value: Any = record
    for name in leaf:
        value = None if value is None else value[name]
    whole = {"c": None, "d": None}
    if isinstance(value, list):
        return [whole | inner for inner in value]
    return {key: whole | inner for key, inner in value.items()} if isinstance(value, dict) else value


def agrees(seed: int) -> None:
    batches = scenario(seed)
    state = reduce(lambda state, batch: folded(batch.spec, state, [event(batch, e) for e in batch.events]), batches, State())
    found = [(*row.key, {leaf: row.values.get(leaf) for leaf in LEAVES}, row.start, row.end) for row in rows(batches[-1].spec, state)]
    wanted = expected(batches)
    assert found == (wanted if batches[0].spec.scd_type == 2 else [(*row, None, None) for row in wanted]), f"seed {seed}"


@pytest.mark.parametrize("seed", range(50))
def test_two_flows_with_changing_options_and_growing_columns_give_the_stated_table(seed):
    agrees(seed)


@pytest.mark.slow
@pytest.mark.parametrize("decade", range(100))
def test_many_more_lives_give_the_stated_table(decade):
    for seed in range(1000 + 10 * decade, 1010 + 10 * decade):
        agrees(seed)


def test_the_random_lives_hold_what_makes_them_hard():
    lives = [scenario(seed) for seed in range(100)]
    batches = [batch for life in lives for batch in life]
    assert sum(len({b.spec.ignore_null_updates for b in life} | {b.spec.columns_to_update for b in life}) > 2 for life in lives) > 30
    assert sum(b.spec.ignore_null_updates != b.other.ignore_null_updates for b in batches) > 50
    assert sum(len({b.grown for b in life}) == 2 for life in lives) > 50
    assert sum(e["op"] == "t" for b in batches for e in b.events) > 20
    assert {life[0].spec.scd_type for life in lives} == {1, 2}
    assert sum(len(expected(life)) > 1 for life in lives) > 80
