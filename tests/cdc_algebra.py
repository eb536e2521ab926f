"""Content of a change table as a function of its feed: change events in, rows out, in plain Python (CD-1 to CD-9).

The engine computes the same in Spark, and tests check it against this module. What the rules leave open is said where
it is decided. Events are folded into a state batch by batch, and the rows are read off the state, so that it shows how little
has to be remembered:

- type 1 in row mode: the winning event of each key (a winning delete is the tombstone) and the highest truncate;
- otherwise: the events of each key, once each, with what they author by the options of the flow that brought them.

A bitemporal table (docs/semantics/bitemporal.md) is the type 2 history of the events known by then, for each system time.

A table goes from the first to the second when a flow needs that, and stays there: a winning event authors every leaf, so that the events
which it beat could not matter any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.cdc.state import AUTHORS_ALL, NullRule, keeps_events
from lakelet.language.model import ChangeSpec, ColumnPath

Values = Mapping[ColumnPath, Any]
"""Leaf → value. A leaf is a column, or a field of a struct where nulls are judged field by field."""

Key = tuple[Any, ...]
Copy = Sequence[tuple[Key, Values]]
"""A full copy of a source: keys and values of its rows."""


class Op(Enum):
    """Operation of an event. A condition that is FALSE or NULL makes an upsert (CD-5)."""

    UPSERT = "upsert"
    DELETE = "delete"
    TRUNCATE = "truncate"


@dataclass(frozen=True)
class ChangeEvent:
    """One row of a feed.

    key: values of the key columns; those of a truncate do not matter. seq: orders the events of a key; a struct is a tuple.
    values: the selected columns that are not keys; those of a delete do not matter.
    sets: for columns_to_update, the columns or leaves that the event names; None means all of them (CD-7).
    nulls: whose nulls say nothing, by the options of the flow that brought the event; set when it is folded into a state.
    known: the system sequence, for bitemporal tables.
    """

    key: Key
    seq: Any
    values: Values = field(default_factory=dict)
    op: Op = Op.UPSERT
    sets: frozenset[ColumnPath] | None = None
    nulls: NullRule = AUTHORS_ALL
    known: Any = None


@dataclass(frozen=True)
class Row:
    """One row of a change table.

    start, end: __START_AT and __END_AT of type 2. system_start, system_end: __SYSTEM_START_AT and __SYSTEM_END_AT of bitemporal tables.
    """

    key: Key
    values: Values
    start: Any = None
    end: Any = None
    system_start: Any = None
    system_end: Any = None


@dataclass(frozen=True)
class State:
    """What is remembered between batches: events by key, in the order of arrival, and the sequence of the highest truncate.

    all_events: of each key all events are there, rather than the winning one.
    """

    events: Mapping[Key, tuple[ChangeEvent, ...]] = field(default_factory=dict)
    truncated: Any = None
    all_events: bool = False


def table(spec: ChangeSpec, events: Iterable[ChangeEvent]) -> list[Row]:
    """The table after one batch. Raises CDC_NULL_SEQUENCE or CDC_NULL_KEY."""
    return rows(spec, folded(spec, State(), events))


def folded(spec: ChangeSpec, state: State, batch: Iterable[ChangeEvent]) -> State:
    """The state after one more batch; a batch that raises changes nothing."""
    batch = [_with_options(spec, event) for event in batch]
    check(spec, batch)
    truncates = [e.seq for e in batch if e.op is Op.TRUNCATE]
    truncated = max([*truncates, *([] if state.truncated is None else [state.truncated])], key=order, default=None)
    by_key = {key: list(events) for key, events in state.events.items()}
    touched = {e.key: by_key.setdefault(e.key, []) for e in batch if e.op is not Op.TRUNCATE}
    for event in batch:
        if event.op is not Op.TRUNCATE:
            touched[event.key].append(event)
    all_events = state.all_events or keeps_events(spec)
    remember = _distinct if all_events else lambda events: (_winner(events),)
    return State({key: remember(events) if key in touched else tuple(events) for key, events in by_key.items()}, truncated, all_events)


def _with_options(spec: ChangeSpec, event: ChangeEvent) -> ChangeEvent:
    """The event with what it authors, which later options do not change."""
    return replace(event, nulls=NullRule.of(spec), sets=None if spec.columns_to_update is None else event.sets)


def _distinct(events: Sequence[ChangeEvent]) -> tuple[ChangeEvent, ...]:
    """The events without exact re-deliveries, which are harmless (CD-1); those of one sequence stay in the order of arrival."""
    found: dict[Any, list[ChangeEvent]] = {}
    for event in events:
        found[event.seq] = [*(e for e in found.get(event.seq, ()) if e != event), event]
    return tuple(chain.from_iterable(found.values()))


def rows(spec: ChangeSpec, state: State) -> list[Row]:
    """The visible rows of a state, in the order of keys and versions."""
    found: list[Row] = []
    for key in sorted(state.events, key=order):
        events = state.events[key]
        if spec.bitemporal:
            found += _beliefs(spec, events)
        else:
            found += _history(spec, _one_per_sequence(events)) if spec.scd_type == 2 else _current(events, state.truncated)
    return found


def check(spec: ChangeSpec, batch: Sequence[ChangeEvent]) -> None:
    """Refuse NULL sequences, then NULL keys, before anything is written (CD-8, BT-12)."""
    without_seq = sum(e.seq is None or (spec.bitemporal and e.known is None) for e in batch)
    if without_seq:
        raise LakeletError("CDC_NULL_SEQUENCE", f"{without_seq} event(s) have no sequencing value")
    without_key = sum(e.op is not Op.TRUNCATE and None in e.key for e in batch)
    if without_key:
        raise LakeletError("CDC_NULL_KEY", f"{without_key} event(s) have NULL in a key column")


def order(value: Any) -> tuple[Any, ...]:
    """Sorting key of a sequencing value: structs compare field by field, NULL comes first as in Spark."""
    if isinstance(value, tuple):
        return (1, tuple(order(v) for v in value))
    return (0,) if value is None else (1, value)


# --------------------------------------------------------------------------------------------------------------- type 1


def _winner(events: Sequence[ChangeEvent]) -> ChangeEvent:
    """The event with the highest sequence; upserts beat deletes, and of two upserts the later arrival wins ("Ties")."""
    best = max((order(e.seq), e.op is Op.UPSERT) for e in events)
    return [e for e in events if (order(e.seq), e.op is Op.UPSERT) == best][-1]


def _current(events: Sequence[ChangeEvent], truncated: Any) -> list[Row]:
    """SCD1: the winner's row; none if the winner is a delete or older than a truncate. A truncate of its own sequence spares it (CD-6)."""
    winner = _winner(events)
    if winner.op is Op.DELETE or (truncated is not None and order(winner.seq) < order(truncated)):
        return []
    # A truncate is a delete of all keys; a delete comes before an upsert of the same sequence, and so resets what was before it.
    resets = [] if truncated is None else [ChangeEvent(winner.key, truncated, op=Op.DELETE)]
    walked = sorted([*resets, *events], key=lambda e: (order(e.seq), e.op is Op.UPSERT))
    return [Row(winner.key, _filled(walked)[-1].values)]


# --------------------------------------------------------------------------------------------------------------- type 2


def _history(spec: ChangeSpec, events: Sequence[ChangeEvent]) -> list[Row]:
    """SCD2: consecutive upserts with equal tracked columns are one run and one row; a delete ends a run. No row has zero width.

    `events`: filled, in the order of their sequences, one for each.
    """
    found: list[Row] = []
    is_open = False
    for event in events:
        if is_open and event.op is Op.UPSERT and _same_version(spec, found[-1].values, event.values):
            found[-1] = replace(found[-1], values=event.values)
            continue
        if is_open:
            found[-1] = replace(found[-1], end=event.seq)
        is_open = event.op is Op.UPSERT
        if is_open:
            found.append(Row(event.key, event.values, event.seq))
    return found


def _one_per_sequence(events: Sequence[ChangeEvent]) -> list[ChangeEvent]:
    """The events, filled, in order of their sequence, one for each: a delete beats an upsert, of two upserts the later arrival wins, and
    keeps what it does not say from the earlier one ("Ties")."""
    walked = _filled(sorted(events, key=lambda e: (order(e.seq), e.op is Op.DELETE)))
    return list({event.seq: event for event in walked}.values())


def _same_version(spec: ChangeSpec, before: Values, after: Values) -> bool:
    """Whether all tracked columns are equal, null-safe. A column that one of them does not have is NULL there (schema growth)."""
    return all(before.get(leaf) == after.get(leaf) for leaf in {**before, **after} if _tracks(spec, leaf))


def _tracks(spec: ChangeSpec, leaf: ColumnPath) -> bool:
    if spec.track_history_column_list is not None:
        return within(leaf, spec.track_history_column_list)
    return not within(leaf, spec.track_history_except_column_list or ())


# ----------------------------------------------------------------------------------------------------------- bitemporal


def _beliefs(spec: ChangeSpec, events: Sequence[ChangeEvent]) -> list[Row]:
    """BT-3, BT-4: the type 2 histories of what was known at each system time; a row that stays the same is one row."""
    leaves = dict.fromkeys(leaf for event in events for leaf in event.values)
    whole = [replace(event, values={leaf: event.values.get(leaf) for leaf in leaves}) for event in events]  # schema growth
    counted = _one_per_both_sequences(whole)
    found: list[Row] = []
    standing: list[Row] = []
    for now in sorted({event.known for event in counted}, key=order):
        walked = _filled([event for event in counted if order(event.known) <= order(now)])
        newest = {event.seq: event for event in walked}  # BT-6
        believed = _history(spec, [newest[seq] for seq in sorted(newest, key=order)])
        found += [replace(row, system_end=now) for row in standing if _timeless(row) not in believed]
        standing = [row for row in standing if _timeless(row) in believed]
        known = [_timeless(row) for row in standing]
        standing += [replace(row, system_start=now) for row in believed if row not in known]
    return sorted([*found, *standing], key=lambda row: (order(row.start), order(row.system_start)))


def _timeless(row: Row) -> Row:
    return replace(row, system_start=None)


def _one_per_both_sequences(events: Sequence[ChangeEvent]) -> list[ChangeEvent]:
    """The events in order of both sequences, one for each pair: a delete beats upserts, of these the last one by its text counts (BT-7)."""
    best: dict[Any, ChangeEvent] = {}
    for event in sorted(events, key=lambda e: (order(e.seq), order(e.known), e.op is Op.DELETE, _text(e.values))):
        best[event.seq, event.known] = event
    return list(best.values())


def _text(values: Values) -> str:
    return json.dumps({".".join(leaf): value for leaf, value in values.items()}, separators=(",", ":"), default=str)


# -------------------------------------------------------------------------------------- leaves that an event does not set


def _filled(events: Sequence[ChangeEvent]) -> list[ChangeEvent]:
    """The events, walked in order: a leaf that an upsert did not author keeps its current value; a delete sets all of them to NULL."""
    leaves = dict.fromkeys(leaf for event in events for leaf in event.values)
    found: list[ChangeEvent] = []
    current: dict[ColumnPath, Any] = {}
    for event in events:
        if event.op is Op.DELETE:
            current = {}
            found.append(event)
            continue
        current = {leaf: event.values.get(leaf) if _authors(event, leaf) else current.get(leaf) for leaf in leaves}
        found.append(replace(event, values=current))
    return found


def _authors(event: ChangeEvent, leaf: ColumnPath) -> bool:
    """Whether an upsert says what a leaf is: a null of a leaf whose nulls are ignored says nothing. A column that it has not is NULL."""
    if event.sets is not None and not within(leaf, event.sets):
        return False
    return event.values.get(leaf) is not None or not event.nulls.ignores(leaf)


def within(leaf: ColumnPath, paths: Iterable[ColumnPath]) -> bool:
    """Whether a leaf is one of the columns, or a field below one of them; case does not count."""
    lower = tuple(part.lower() for part in leaf)
    return any(lower[: len(path)] == tuple(part.lower() for part in path) for path in paths)


# ------------------------------------------------------------------------------------------------------------ snapshots


def snapshot_events(
    current: Mapping[tuple[Any, ...], Values], snapshot: Sequence[tuple[tuple[Any, ...], Values]], version: Any
) -> list[ChangeEvent]:
    """The events that lead from the open rows of a target to a full copy of the source (CD-17).

    New and changed keys are upserts, missing ones deletes, all at `version`. Raises CDC_SNAPSHOT_INVALID for a key that occurs twice.
    """
    wanted = dict(snapshot)
    if len(wanted) < len(snapshot):
        raise LakeletError(
            "CDC_SNAPSHOT_INVALID", f"{len(snapshot) - len(wanted)} key(s) occur twice in the snapshot of version {version!r}"
        )
    gone = [ChangeEvent(key, version, op=Op.DELETE) for key in current if key not in wanted]
    return [*gone, *(ChangeEvent(key, version, values) for key, values in wanted.items() if key not in current or current[key] != values)]


def with_snapshot(spec: ChangeSpec, state: State, snapshot: Copy, *, version: Any, latest: Any = None) -> State:
    """The state after a snapshot. Raises CDC_SNAPSHOT_INVALID unless `version` is above `latest`, the one before (None: none)."""
    if latest is not None and order(version) <= order(latest):
        raise LakeletError("CDC_SNAPSHOT_INVALID", f"the snapshot has version {version!r}, and {latest!r} has been applied already")
    current = {row.key: row.values for row in rows(spec, state) if row.end is None}
    return folded(spec, state, snapshot_events(current, snapshot, version))
