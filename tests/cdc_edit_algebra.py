"""Effects of manual changes to rows on the state of a change table, in plain Python; beside `cdc_algebra` (CT-3 to CT-8).

The engine computes the same in Spark (`cdc.foreign_rows`) and tests check it against this module. A changed row is an event of its key: of
type 1 at the sequence that the key has got to, None being before all others; of type 2 at the row's start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lakelet.language.model import ChangeSpec
from tests.cdc_algebra import ChangeEvent, Key, Op, Row, State, order


def edited(spec: ChangeSpec, state: State, before: Sequence[Row], after: Sequence[Row]) -> State:
    """The state once rows were changed by hand from `before`, the state's own rows, to `after`."""
    events = dict(state.events)
    for key in {row.key for row in (*before, *after)}:
        old, new = ([row for row in rows if row.key == key] for rows in (before, after))
        gone, came = [row for row in old if row not in new], _distinct([row for row in new if row not in old])
        held = tuple(events.get(key, ()))
        if spec.scd_type == 2:
            found = _history(key, held, gone, came)
        elif not gone and (old or not came):
            continue  # beside a row that is there: it came before all events of the key
        else:
            found = _current(state.all_events, key, held, state.truncated, bool(gone), came)
        events[key] = found
        if not found:
            del events[key]
    return replace(state, events=events)


def _current(
    all_events: bool, key: Key, held: tuple[ChangeEvent, ...], truncated: Any, gone: bool, came: Sequence[Row]
) -> tuple[ChangeEvent, ...]:
    """Type 1: the row of a key was deleted or replaced, or a key without row got one."""
    seqs = [event.seq for event in held]
    at = max(seqs if gone else [*seqs, truncated], key=order, default=None)
    put = [ChangeEvent(key, at, row.values) for row in came]
    if all_events:
        reset = [] if at is None else [ChangeEvent(key, at, op=Op.DELETE)]
        return (*(event for event in held if event.seq != at), *reset, *put)
    if put or at is None:
        return tuple(put)
    return (ChangeEvent(key, at, op=Op.DELETE),)


def _history(key: Key, held: tuple[ChangeEvent, ...], gone: Sequence[Row], came: Sequence[Row]) -> tuple[ChangeEvent, ...]:
    """Type 2: versions that went take their events along and leave a delete, versions that came are upserts at their start."""
    starts = {row.start for row in came}
    kept = [event for event in held if event.seq not in starts and not any(_made_of(row, event, came) for row in gone)]
    made = [ChangeEvent(key, row.start, op=Op.DELETE) for row in gone if row.start not in starts]
    made += [ChangeEvent(key, row.start, row.values) for row in came]
    known = [order(event.seq) for event in (*kept, *made)]
    closed = [row for row in came if row.end is not None and not any(order(row.start) < seq <= order(row.end) for seq in known)]
    ends = {row.end for row in closed}
    return (*kept, *made, *(ChangeEvent(key, end, op=Op.DELETE) for end in sorted(ends, key=order)))


def _made_of(row: Row, event: ChangeEvent, came: Sequence[Row]) -> bool:
    """Whether an event goes with a version that went: one of its run, or the delete at its end if a version that came reaches over that."""
    if order(event.seq) < order(row.start):
        return False
    if row.end is None or order(event.seq) < order(row.end):
        return True
    over = any(order(c.start) < order(row.end) and (c.end is None or order(c.end) > order(row.end)) for c in came)
    return event.seq == row.end and event.op is Op.DELETE and over


def _distinct(rows: Sequence[Row]) -> list[Row]:
    found: list[Row] = []
    for row in rows:
        if row not in found:
            found.append(row)
    return found
