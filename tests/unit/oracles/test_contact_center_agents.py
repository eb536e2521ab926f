"""The agents' change records of the sample, and what the oracle makes of them (docs/system-a.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sampledata import generate, write_expected
from sampledata.agent_changes import agent_change_lines
from sampledata.agents import AgentState

HOUR = 3_600_000_000
DAY = 20_513  # 2026-03-01


def landed(*drops: int, seed: int = 7) -> list[list[dict[str, Any]]]:
    return [[json.loads(line) for line in agent_change_lines(seed, drop)] for drop in drops]


def test_records_come_late_twice_and_out_of_order_and_deletes_come_before_their_inserts():
    first, second, third = landed(1, 2, 3)
    for drop in (first, second, third):
        texts = [json.dumps(r, sort_keys=True) for r in drop]
        times = [r["changed_at"] for r in drop]
        assert len(set(texts)) < len(texts)
        assert times != sorted(times)
    newest = max(r["changed_at"] for r in first)
    assert sum(r["changed_at"] < newest for r in second) >= 5
    assert any(r in first for r in second)
    deleted = {r["agent_id"] for r in first if r["op"] == "D"} - {r["agent_id"] for r in first if r["op"] != "D"}
    inserted_later = {r["agent_id"] for r in second if r["op"] == "I" and r["changed_at"] <= newest}
    assert len(deleted & inserted_later) >= 3


def test_a_record_is_known_by_its_agent_and_time():
    records = [r for drop in landed(*range(1, 6)) for r in drop]
    assert len({(r["agent_id"], r["changed_at"]) for r in records}) == len({json.dumps(r, sort_keys=True) for r in records})
    assert len({r["changed_at"] for r in records}) == len({(r["agent_id"], r["changed_at"]) for r in records})


def test_the_same_seed_gives_the_same_lines_and_another_one_others():
    assert agent_change_lines(7, 2) == agent_change_lines(7, 2) != agent_change_lines(8, 2)


def change(agent: str, op: str, hour: int, team: str | None = None, **more: Any) -> dict[str, Any]:
    head = {"agent_id": agent, "op": op, "changed_at": f"2026-03-01T{hour:02d}:00:00.000Z"}
    return head if op == "D" else {**head, "name": agent, "team": team, "site": None, "level": 1, **more}


@pytest.fixture
def state(tmp_path: Path) -> AgentState:
    drops = (
        [change("a", "U", 12, "sales"), change("b", "D", 11), change("c", "I", 8, "billing"), change("c", "U", 9, "billing", level=2)],
        [change("a", "I", 10, "billing"), change("b", "I", 10, "sales"), change("c", "I", 8, "billing"), change("d", "I", 8, "sales")],
        [change("d", "D", 20), change("a", "U", 12, "sales")],
    )
    found = AgentState()
    for number, records in enumerate(drops):
        file = tmp_path / f"{number}.json"
        file.write_text("".join(json.dumps(r) + "\n" for r in records))
        found.read(file)
    return found


def test_the_latest_record_of_an_agent_decides_and_history_has_its_teams(state):
    tables = state.tables([])
    start = DAY * 24 * HOUR
    assert tables["agents"] == [("a", "a", "sales", None, 1), ("c", "c", "billing", None, 2)]
    found = [
        (agent, team, level, (since - start) // HOUR, until and (until - start) // HOUR)
        for agent, _, team, _, level, since, until in tables["agents_history"]
    ]
    assert found == [
        ("a", "billing", 1, 10, 12),
        ("a", "sales", 1, 12, None),
        ("b", "sales", 1, 10, 11),
        ("c", "billing", 2, 8, None),
        ("d", "sales", 1, 8, 20),
    ]


def test_work_counts_for_the_team_at_the_end_of_the_day(state):
    counts = ((DAY, "a", 2, 5), (DAY, "d", 1, 1), (DAY, "x", 0, 3), (DAY - 1, "c", 1, 1))
    worked = [(day, agent, 0, closed, sent, 0, None, None) for day, agent, closed, sent in counts]
    assert state.tables(worked)["team_daily"] == [(DAY - 1, None, 1, 1, 1, 1), (DAY, None, 2, 0, 1, 4), (DAY, "sales", 1, 1, 2, 5)]


def test_the_sample_holds_a_file_and_expected_tables_for_each_drop(tmp_path):
    generate(tmp_path / "s", rows=400, seed=7, drops=2)
    write_expected(tmp_path / "s")
    assert sorted(p.name for p in (tmp_path / "s" / "landing" / "agent_changes").iterdir()) == ["drop_001.json", "drop_002.json"]
    for drop in ("drop_001", "drop_002"):
        folder = tmp_path / "s" / "expected" / drop
        found = {name: pq.read_table(folder / f"{name}.parquet") for name in ("agents", "agents_history", "team_daily")}
        still_open = [row for row in found["agents_history"].to_pylist() if row["__END_AT"] is None]
        assert {row["agent_id"]: row["team"] for row in still_open} == {row["agent_id"]: row["team"] for row in found["agents"].to_pylist()}
        assert found["team_daily"].num_rows > 1
