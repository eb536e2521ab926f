"""Random feeds of change events, and the rules of docs/semantics/change-data.md as a program, which algebra and engine are held to."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.cdc_cases import Record

KEYS, EVENTS, DELETES, DUPLICATES, NULLS = 10, 40, 0.2, 0.15, 0.3


def random_feed(seed: int, *, truncates: int = 0) -> list[Record]:
    """Events of 10 keys with 40 events each, every event with a sequence of its own, in the order of arrival; then duplicates of some."""
    rng = random.Random(seed)
    numbers = rng.sample(range(1, 10 * KEYS * EVENTS), KEYS * EVENTS + truncates)
    events: list[Record] = [
        {"id": key, "seq": numbers.pop(), "op": "d" if rng.random() < DELETES else "u", "x": _word(rng), "y": _word(rng)}
        for key in range(KEYS)
        for _ in range(EVENTS)
    ]
    events += [{"id": None, "seq": 9 * KEYS * EVENTS + numbers.pop() // 10, "op": "t", "x": None, "y": None} for _ in range(truncates)]
    rng.shuffle(events)
    return events + rng.choices(events, k=int(len(events) * DUPLICATES))


def _word(rng: random.Random) -> str | None:
    """Few words, so that runs of equal values are common."""
    return None if rng.random() < NULLS else rng.choice("ab")


@dataclass
class _Version:
    row: tuple[Any, ...]
    start: Any
    end: Any = None


def stated(events: Sequence[Record], *, scd_type: int, ignore_null: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    """The table as the rules say, event by event: `(id, x, y)` or `(id, x, y, start, end)`."""
    truncates = [e["seq"] for e in events if e["op"] == "t"]
    last = max(truncates, default=None)
    found: list[tuple[Any, ...]] = []
    for key in sorted({e["id"] for e in events if e["op"] != "t"}):
        mine = _filled([e for e in events if e["id"] == key], truncates if scd_type == 1 else [], ignore_null)
        if scd_type == 1:
            winner = max(mine, key=lambda e: (e["seq"], e["op"] != "d"))
            if winner["op"] != "d" and (last is None or winner["seq"] >= last):
                found.append((key, winner["x"], winner["y"]))
        else:
            found += [(key, *v.row, v.start, v.end) for v in _versions(mine)]
    return found


def _filled(events: Sequence[Record], truncates: Sequence[int], ignore_null: Sequence[str]) -> list[dict[str, Any]]:
    """Walk the events in seq order and replace every ignored null of an upsert by the current value; a delete nulls them all."""
    current: dict[str, Any] = {}
    found = []
    resets = [{"seq": s, "op": "reset"} for s in truncates]
    for event in sorted([*events, *resets], key=lambda e: (e["seq"], e["op"] == "u")):
        if event["op"] == "u":
            current = {c: current.get(c) if event[c] is None and c in ignore_null else event[c] for c in ("x", "y")}
            found.append({**event, **current})
        else:
            current = {}
            found += [] if event["op"] == "reset" else [dict(event)]
    return found


def _versions(events: Sequence[dict[str, Any]]) -> list[_Version]:
    rows: list[_Version] = []
    cur: _Version | None = None
    for e in {e["seq"]: e for e in events}.values():
        row = (e["x"], e["y"])
        if e["op"] == "d":
            if cur:
                cur.end, cur = e["seq"], None
        elif cur and cur.row == row:
            continue
        else:
            if cur:
                cur.end = e["seq"]
            cur = _Version(row, e["seq"])
            rows.append(cur)
    return rows
