"""Change records of the agents' master data, as a change-capture tool lands them: late, stale, repeated, deletes before their inserts.

A drop's records are a function of seed and drop alone. Some of them land one drop later than they should: that makes them late, and an
insert that comes after the delete of its agent is among them in every drop.
"""

from __future__ import annotations

from random import Random
from typing import Any

import orjson

from sampledata.delivery import DROP_SPAN, FIRST_ARRIVAL
from sampledata.entries import utc_text

AGENTS = 120
HIRED_AT_ONCE = 100  # the other agents of the log entries are hired later, or never
CHANGES = 60
DELETES = 8
SHORT_LIVED = 3  # hired and gone within a drop; the delete lands one drop before the insert
LATE_RATE = 0.15
REPEATED_RATE = 0.1
TEAMS = ("billing", "delivery", "returns", "sales")
SITES = ("Phoenix", "Atlanta", None)

Change = dict[str, Any]


def agent_change_lines(seed: int, drop: int) -> list[bytes]:
    """The lines of one drop, without line ends: its own records, the late ones of the drop before, and repetitions of both."""
    rng = Random(f"{seed}/agent_landing/{drop}")
    before = _changes(seed, drop - 1) if drop > 1 else []
    now = [change for change, late in _changes(seed, drop) if not late]
    landing = [*now, *(change for change, late in before if late)]
    again = rng.choices([*landing, *(change for change, late in before if not late)], k=round(len(landing) * REPEATED_RATE))
    landing += again
    rng.shuffle(landing)
    return [orjson.dumps(change) for change in landing]


def _changes(seed: int, drop: int) -> list[tuple[Change, bool]]:
    """The records of one drop in the order of their time, each with whether it lands one drop too late."""
    rng = Random(f"{seed}/agents/{drop}")
    hires = [_agent(n) for n in range(HIRED_AT_ONCE)] if drop == 1 else []
    changed = [_agent(rng.randrange(AGENTS)) for _ in range(CHANGES)]
    deleted = [_agent(rng.randrange(AGENTS)) for _ in range(DELETES)]
    events = [*((a, "I") for a in hires), *_mixed(rng, [*((a, "U") for a in changed), *((a, "D") for a in deleted)])]
    start = FIRST_ARRIVAL + (drop - 1) * DROP_SPAN
    times = sorted(rng.sample(range(DROP_SPAN), len(events) + 2 * SHORT_LIVED))
    short = [(f"agent-{drop:03d}-{n}", op) for n in range(SHORT_LIVED) for op in ("I", "D")]
    found = [(_change(rng, *event, start + at), rng.random() < LATE_RATE) for event, at in zip(events, times, strict=False)]
    late = times[len(events) :]
    return found + [(_change(rng, agent, op, start + at), op == "I") for (agent, op), at in zip(short, late, strict=True)]


def _mixed(rng: Random, events: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return rng.sample(events, len(events))


def _change(rng: Random, agent: str, op: str, at: int) -> Change:
    head = {"agent_id": agent, "op": op, "changed_at": utc_text(at)}
    if op == "D":
        return head
    return {**head, "name": f"Agent {agent[6:]}", "team": rng.choice(TEAMS), "site": rng.choice(SITES), "level": rng.randint(1, 3)}


def _agent(number: int) -> str:
    return f"agent-{number:03d}"
