"""Random feeds with commits of others between their batches, through the engine and the algebra (CT-1 to CT-8)."""

from __future__ import annotations

import random

import pytest

from tests.cdc_algebra import State, folded, rows
from tests.cdc_cases import NULLS, PAIRS, Feed
from tests.cdc_edit_algebra import edited
from tests.cdc_edits import Edits
from tests.cdc_feeds import EVENTS, KEYS, random_feed
from tests.spark.cdc.test_cdc_cases import HEAD

_BATCHES = 3
_TABLES = {"latest": (PAIRS, 2), "nulls": (NULLS, 2), "history": (PAIRS, 0), "history_nulls": (NULLS, 0)}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 31))
def test_random_feeds_with_maintenance_and_changes_by_hand_converge(project, seed):
    rng, p = random.Random(seed), project()
    feeds, states, batches = {}, dict.fromkeys(_TABLES, State()), {}
    for table, (feed, truncates) in _TABLES.items():
        more = {"stored_as_scd_type": 2} if table.startswith("history") else {"apply_as_truncates": "op = 't'"}
        feeds[table] = Feed(table, feed.columns, {**feed.arguments, **more}, feed.seq)
        events = random_feed(seed, truncates=truncates)[: KEYS * EVENTS + truncates]  # without duplicates: their ties are not defined
        size = len(events) // _BATCHES + 1
        batches[table] = [events[n * size : (n + 1) * size] for n in range(_BATCHES)]
    free = sorted(set(range(1, 10 * KEYS * EVENTS)) - {e["seq"] for table in batches.values() for batch in table for e in batch})
    p.write(HEAD + "".join(f"declare({name!r}, {feed.ddl!r}, {feed.arguments!r})\n" for name, feed in feeds.items()))
    done: list[str] = []
    for number in range(_BATCHES):
        for table, feed in feeds.items():
            p.arrive(f"{number}.json", *batches[table][number], folder=table)
            states[table] = folded(feed.spec, states[table], map(feed.event, batches[table][number]))
        p.run()
        for table, feed in feeds.items():
            before = rows(feed.spec, states[table])
            wanted = sorted(map(feed.visible, before), key=repr)
            assert p.rows(table) == wanted, f"seed {seed}, {table}, batch {number}, after {done}"
            if number + 1 < _BATCHES:
                edits = Edits(rng, list(before), rng.sample(free, 40), table.startswith("history"))
                after = edits.make(rng.randrange(1, 6), p.version(table))
                for statement in edits.statements:
                    p.spark.sql(statement.format(t=f"delta.`{p.path(table)}`")).collect()
                done += [f"{table}: {statement}" for statement in edits.statements]
                states[table] = edited(feed.spec, states[table], before, after)
