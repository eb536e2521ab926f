"""Batches in order read and replace only the heads of their keys; with late ones among them the table is the same (decision 0094)."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from lakelet.base import failpoints
from lakelet.cdc import compaction, writing
from lakelet.cdc.change_table import ChangeTable
from lakelet.cdc.changes import layout
from lakelet.files.delta_log import TableLog
from lakelet.storage.delta.batch_metrics import BatchMetrics
from lakelet.storage.delta.table_spec import CHANGE_FEED, TableSpec
from lakelet.storage.delta.transaction import Txn
from tests.cdc_algebra import State, folded, rows
from tests.cdc_cases import HISTORY_SETS, NULLS, PAIRS, SETS, Feed, Record

HISTORY = replace(PAIRS, arguments={**PAIRS.arguments, "stored_as_scd_type": 2})
TRACKED = replace(HISTORY, arguments={**HISTORY.arguments, "track_history_column_list": ["x"]})
HISTORY_NULLS = replace(NULLS, arguments={**NULLS.arguments, "stored_as_scd_type": 2})
FEEDS = {
    "history": HISTORY,
    "tracked": TRACKED,
    "nulls": NULLS,
    "history_nulls": HISTORY_NULLS,
    "sets": SETS,
    "history_sets": HISTORY_SETS,
}
KEYS, BATCHES, EVENTS = 8, 6, 14
LATE, AGAIN = 0.12, 0.08


@dataclass
class Table:
    """A change table that batches are applied to, as a flow applies them."""

    spark: Any
    path: Path
    feed: Feed
    properties: Mapping[str, str]
    streamed: bool = False
    batches: int = 0

    def apply(self, *events: Record, again: bool = False) -> tuple[int, int] | None:
        """Rows inserted or updated, and rows deleted. `again`: the batch has been tried before; None if it had been applied."""
        frame = self.spark.createDataFrame([dict(event) for event in events], self.feed.ddl)
        spec, shape = self.feed.spec, layout(self.feed.spec, frame)
        table = ChangeTable(self.path, (spec,), TableSpec(shape.visible, properties=self.properties), self.streamed)
        measured = BatchMetrics("event", "update", "table", "flow", self.batches, 0)
        txn = Txn("flow/0", self.batches)
        done = writing.apply(spec, table, frame, shape, txn=txn, measure=lambda: measured, replayed=again)
        self.batches += 1
        if done is None:
            return None
        assert done.changed is not None
        return done.changed.upserted, done.changed.deleted

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(map(tuple, self.spark.read.format("delta").load(str(self.path)).collect()), key=repr)

    def files(self, kind: str, folder: str = "_changes") -> list[str]:
        """The parts of the internal files that the newest commit added or removed."""
        log = TableLog(self.path / folder)
        return sorted(action[kind]["partitionValues"]["__lakelet_part"] for action in log.actions(log.version()) if kind in action)


@pytest.fixture
def table(tmp_path, spark, monkeypatch):
    """Makes tables that are never small enough to be written again as a whole."""
    monkeypatch.setattr(writing, "TINY", 0)
    monkeypatch.setattr(writing, "SMALL", 0)

    def make(feed: Feed, name: str = "table", *, streamed: bool = False, **properties: str) -> Table:
        return Table(spark, tmp_path / name, feed, properties, streamed)

    return make


def mostly_in_order(seed: int, *, named: bool) -> list[list[Record]]:
    """Batches of events in order, some of which come later, and some of which come again."""
    rng = random.Random(seed)
    batches: list[list[Record]] = [[] for _ in range(BATCHES)]
    for seq in range(BATCHES * EVENTS):
        event: Record = {
            "id": rng.randrange(KEYS),
            "seq": seq,
            "op": "d" if rng.random() < 0.2 else "u",
            "x": rng.choice(["a", "b", None]),
            "y": rng.choice(["a", "b", None]),
            **({"cols": rng.choice([None, ["x"], ["y"], ["x", "y"]])} if named else {}),
        }
        turn = seq // EVENTS
        batches[min(BATCHES - 1, turn + (rng.randrange(1, 3) if rng.random() < LATE else 0))].append(event)
        if rng.random() < AGAIN:
            batches[rng.randrange(turn, BATCHES)].append(event)
    for batch in batches:
        rng.shuffle(batch)
    return batches


def stated(feed: Feed, batches: Sequence[Sequence[Record]]) -> list[tuple[Any, ...]]:
    """The table as the algebra has it."""
    state = reduce(lambda state, batch: folded(feed.spec, state, map(feed.event, batch)), batches, State())
    return sorted((feed.visible(row) for row in rows(feed.spec, state)), key=repr)


def agrees(table: Any, name: str, seed: int) -> None:
    """Apply the batches of a feed to a table that is replaced by files and to one that is merged, and compare both with the algebra."""
    feed = FEEDS[name]
    batches = mostly_in_order(seed, named=feed.sets is not None)
    made = [table(feed, "replaced"), table(feed, "merged", **{CHANGE_FEED: "true"})]
    for number, batch in enumerate(batches):
        for one in made if seed % 2 else made[:1]:
            one.apply(*batch)
            assert one.rows() == stated(feed, batches[: number + 1]), (name, seed, number, one.path.name)


@pytest.mark.long
@pytest.mark.parametrize("name", FEEDS)
def test_batches_mostly_in_order_give_the_stated_table_after_each_of_them(table, name):
    agrees(table, name, 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(11, 21))
@pytest.mark.parametrize("name", FEEDS)
def test_many_more_feeds_mostly_in_order_give_the_stated_table(table, name, seed):
    agrees(table, name, seed)


def u(id: int, x: str, seq: int) -> Record:
    return {"id": id, "x": x, "y": None, "seq": seq, "op": "u"}


def d(id: int, seq: int) -> Record:
    return {**u(id, "", seq), "op": "d"}


@pytest.mark.long
def test_a_batch_in_order_replaces_files_of_open_rows_only_and_counts_what_it_did(table):
    t = table(HISTORY)
    t.apply(u(1, "a", 1), u(2, "a", 1), u(3, "a", 1), d(3, 2))
    assert t.apply(u(1, "b", 5), u(1, "b", 6), d(2, 7), u(3, "c", 8)) == (4, 0)
    assert set(t.files("remove")) == {"open"}
    assert set(t.files("add")) == {"last", "open", "rows", "state"}
    assert t.rows() == [(1, "a", None, 1, 5), (1, "b", None, 5, None), (2, "a", None, 1, 7), (3, "a", None, 1, 2), (3, "c", None, 8, None)]
    assert t.apply(u(1, "b", 9), u(4, "a", 9)) == (1, 0)  # the first one changes nothing
    t.apply(u(1, "c", 7))
    assert t.rows()[1:4] == [(1, "b", None, 5, 7), (1, "b", None, 9, None), (1, "c", None, 7, 9)]


@pytest.mark.long
def test_a_table_whose_rows_are_streamed_keeps_its_files_where_nothing_that_is_seen_changes(table):
    t = table(HISTORY, streamed=True)
    t.apply(u(1, "a", 1), u(2, "a", 1))
    t.apply(u(1, "a", 2), u(3, "a", 2))
    assert t.files("remove") == []
    t.apply(u(2, "b", 3))
    assert t.rows() == [(1, "a", None, 1, None), (2, "a", None, 1, 3), (2, "b", None, 3, None), (3, "a", None, 2, None)]


@pytest.mark.long
def test_small_files_are_put_together_without_a_change_for_readers_and_the_table_goes_on(table, monkeypatch):
    monkeypatch.setattr(compaction, "EVERY", 5)
    monkeypatch.setattr(compaction, "MOST", 4)
    t = table(HISTORY)
    batches = [[u(1, word, seq), u(2, word, seq), d(3, seq)] for seq, word in enumerate("abcde")]
    for batch in batches:
        t.apply(*batch)
    t.apply(*batches[4])  # the sixth commit, of version 5
    assert set(t.files("remove")) == {"last", "rows", "state"}
    assert t.files("add") == ["last", "rows", "state"]
    log = TableLog(t.path)
    assert not any(action[kind]["dataChange"] for action in log.actions(log.version()) for kind in ("add", "remove") if kind in action)
    assert t.rows() == stated(t.feed, batches)
    more = [[u(1, "f", 9), u(3, "f", 9)], [u(2, "g", 2), u(3, "g", 2)]]
    for batch in more:
        t.apply(*batch)
    assert t.rows() == stated(t.feed, [*batches, *more])


@pytest.mark.long
def test_a_late_event_of_a_table_without_open_rows_is_not_lost(table):
    t = table(HISTORY)
    t.apply(u(1, "a", 1), d(1, 5))
    assert t.apply(u(1, "b", 3), d(2, 3)) == (2, 0)
    assert t.rows() == [(1, "a", None, 1, 3), (1, "b", None, 3, 5)]
    t.apply(u(2, "a", 2), u(1, "c", 7))
    assert t.rows() == [(1, "a", None, 1, 3), (1, "b", None, 3, 5), (1, "c", None, 7, None), (2, "a", None, 2, 3)]


@pytest.mark.long
def test_a_batch_that_ended_at_any_step_is_applied_once(table, monkeypatch):
    monkeypatch.setattr(compaction, "EVERY", 1)
    monkeypatch.setattr(compaction, "MOST", 2)
    monkeypatch.setattr(failpoints, "_hits", Counter())
    t = table(HISTORY)
    batches = [[u(1, "a", 1), u(2, "a", 1), d(3, 2)]]
    t.apply(*batches[0])
    applied = {"batch.files_written": False, "changes.merged": True, "changes.mirrored": True, "changes.compacted": True}
    for number, (point, is_applied) in enumerate(applied.items()):
        batch = [u(1, "b", 5 + number), d(2, 5 + number), u(3, "c", 3), u(4, point, 5 + number)]
        batches.append(batch)
        monkeypatch.setenv("LAKELET_FAILPOINT", f"{point}:ENOSPC")
        with pytest.raises(OSError, match="No space left"):
            t.apply(*batch)
        monkeypatch.delenv("LAKELET_FAILPOINT")
        assert (t.apply(*batch, again=True) is None) == is_applied, point
        assert t.rows() == stated(t.feed, batches), point
