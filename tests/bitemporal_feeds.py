"""Random feeds for bitemporal tables, and what the tables hold by docs/semantics/bitemporal.md, read point by point of both times.

Sequences are small integers, so that every point of time can be compared: `expected` asks for each system time which events are known, and
for each business time what they say. It shares nothing with `lakelet.cdc`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lakelet.language.model import ChangeSpec, NullUpdates

Record = Mapping[str, Any]
Row = tuple[Any, ...]
"""id, name, team, __START_AT, __END_AT, __SYSTEM_START_AT, __SYSTEM_END_AT."""

DDL = "id INT, at INT, known INT, name STRING, team STRING, op STRING"
VALUES = ("name", "team")
MOMENTS = range(1, 8)
OPTIONS: Sequence[Mapping[str, Any]] = (
    {},
    {"track_history_except_column_list": (("team",),)},
    {"ignore_null_updates": NullUpdates.ALL},
    {"ignore_null_updates": NullUpdates.ON, "ignore_null_columns": (("team",),), "track_history_column_list": (("name",),)},
)


def spec(**options: Any) -> ChangeSpec:
    """A flow for these feeds."""
    return ChangeSpec(
        source="feed",
        keys=(("id",),),
        sequence_by="at",
        scd_type=2,
        system_sequence_by="known",
        apply_as_deletes="op = 'd'",
        except_column_list=(("at",), ("known",), ("op",)),
        **options,
    )


def feed(chance: random.Random, *, keys: int = 2, events: int = 14) -> list[Record]:
    """Events in an order of arrival that has nothing to do with either time; some come twice, some are tied."""
    found = [_event(chance, chance.randint(1, keys)) for _ in range(chance.randint(1, events))]
    found += chance.sample(found, chance.randint(0, len(found) // 3))
    chance.shuffle(found)
    return found


def _event(chance: random.Random, key: int) -> Record:
    times = {"id": key, "at": chance.choice(MOMENTS), "known": chance.choice(MOMENTS)}
    if chance.random() < 0.2:
        return {**times, "name": None, "team": None, "op": "d"}
    return {**times, "name": chance.choice(["ann", "bob", None]), "team": chance.choice(["x", "y", None]), "op": "u"}


def batches(chance: random.Random, events: Sequence[Record]) -> list[list[Record]]:
    """The events in some micro-batches, one of which may be empty."""
    cuts = sorted(chance.randint(0, len(events)) for _ in range(chance.randint(0, 4)))
    return [list(events[a:b]) for a, b in zip([0, *cuts], [*cuts, len(events)], strict=True)]


def expected(flow: ChangeSpec, events: Iterable[Record]) -> list[Row]:
    """The table after these events, in the order of keys and times."""
    events = list(events)
    found: list[Row] = []
    for key in sorted({e["id"] for e in events}):
        of_key = _without_ties([e for e in events if e["id"] == key])
        shown = {s: set(_history(flow, [e for e in of_key if e["known"] <= s])) for s in MOMENTS}
        for version in set().union(*shown.values()):
            believed = [s for s in MOMENTS if version in shown[s]]
            for s in believed:
                if s - 1 not in believed:
                    until = next((t for t in MOMENTS if t > s and t not in believed), None)
                    found.append((key, *version, s, until))
    return sorted(found, key=sorting)


def sorting(row: Row) -> Any:
    return tuple((value is not None, value) for value in (row[0], row[3], row[5]))


def _without_ties(events: Sequence[Record]) -> list[Record]:
    """BT-7."""
    found = []
    for at, known in {(e["at"], e["known"]) for e in events}:
        tied = [e for e in events if (e["at"], e["known"]) == (at, known)]
        deletes = [e for e in tied if e["op"] == "d"]
        found.append(deletes[0] if deletes else max(tied, key=lambda e: json.dumps({n: e[n] for n in VALUES}, separators=(",", ":"))))
    return found


def _history(flow: ChangeSpec, known: Sequence[Record]) -> list[Row]:
    """name, team, start and end of the versions that these events make."""
    moments = sorted({e["at"] for e in known})
    said = {at: _said(flow, known, at) for at in moments}
    found: list[list[Any]] = []
    before = None
    for at in moments:
        now = said[at]
        if before is not None and now is not None and _tracked(flow, before) == _tracked(flow, now):
            found[-1][:2] = now
        else:
            if before is not None:
                found[-1][3] = at
            if now is not None:
                found.append([*now, at, None])
        before = now
    return [tuple(version) for version in found]


def _said(flow: ChangeSpec, known: Sequence[Record], at: int) -> tuple[Any, ...] | None:
    """What the events up to a moment say about the key; None where the last of them is a delete."""
    until = sorted((e for e in known if e["at"] <= at), key=lambda e: (e["at"], e["known"]))
    if until[-1]["op"] == "d":
        return None
    return tuple(_value(flow, until, name) for name in VALUES)


def _value(flow: ChangeSpec, until: Sequence[Record], name: str) -> Any:
    ignored = flow.ignore_null_updates is NullUpdates.ALL or (name,) in flow.ignore_null_columns
    for event in reversed(until):
        if event["op"] == "d":
            return None
        if event[name] is not None or not ignored:
            return event[name]
    return None


def _tracked(flow: ChangeSpec, values: tuple[Any, ...]) -> list[Any]:
    listed, left_out = flow.track_history_column_list, flow.track_history_except_column_list or ()
    return [v for name, v in zip(VALUES, values, strict=True) if (listed is None or (name,) in listed) and (name,) not in left_out]
