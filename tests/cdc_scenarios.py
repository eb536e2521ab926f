"""Random lives of a change table: two flows whose options and columns change from batch to batch, and the table by the rules' own words.

A value of the table is that of the newest event that says something about it. What an event says depends on the options and columns of its
flow at that moment, never on what comes later. The versions of type 2 are read off the values that a key has after each of its events.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakelet.language.model import ChangeSpec, NullUpdates
from tests.cdc_cases import Record

KEYS, MOST_BATCHES = 6, 6
Path = tuple[str, ...]

COLUMNS: tuple[Mapping[str, Any], ...] = (
    {"x": "STRING", "y": "INT", "p": {"a": "STRING"}, "l": "ARRAY<STRUCT<c: INT>>", "m": "MAP<STRING, STRUCT<c: INT>>"},
    {
        "x": "STRING", "y": "BIGINT", "p": {"a": "STRING", "b": "INT"}, "l": "ARRAY<STRUCT<c: BIGINT, d: STRING>>",
        "m": "MAP<STRING, STRUCT<c: BIGINT, d: STRING>>", "z": "STRING",
    },
)  # fmt: skip
"""The source's columns before and after they grew: a wider type, a column more, fields more in a struct, in an array and in a map."""

LEAVES: tuple[Path, ...] = (("x",), ("y",), ("p", "a"), ("p", "b"), ("l",), ("m",), ("z",))
NULL_OPTIONS: tuple[tuple[NullUpdates, tuple[Path, ...]], ...] = (
    (NullUpdates.NONE, ()),
    (NullUpdates.ALL, ()),
    (NullUpdates.ON, (("x",), ("p", "a"), ("l",))),
    (NullUpdates.EXCEPT, (("y",), ("p", "b"))),
)
TRACKING: tuple[Mapping[str, tuple[Path, ...]], ...] = (
    {},
    {"track_history_column_list": (("x",), ("p",))},
    {"track_history_except_column_list": (("x",), ("m",))},
)


@dataclass(frozen=True)
class Batch:
    """One batch: the options and columns of its flow then, those of the other flow, and its events. `grown`: index of COLUMNS."""

    spec: ChangeSpec
    other: ChangeSpec
    grown: int
    events: tuple[Record, ...]

    @property
    def ddl(self) -> str:
        """The columns of the source."""
        kinds = {"id": "INT", **COLUMNS[self.grown], "seq": "INT", "op": "STRING", "cols": "ARRAY<STRING>"}
        return ", ".join(f"{name} {_ddl(kind)}" for name, kind in kinds.items())

    def leaves(self) -> Iterator[Path]:
        """The leaves that the flow selects."""
        left_out = {path[0] for path in self.spec.except_column_list or ()}
        for name, kind in COLUMNS[self.grown].items():
            if name not in left_out:
                yield from ((name, inner) for inner in kind) if isinstance(kind, Mapping) else ((name,),)


def scenario(seed: int, *, scd_type: int | None = None) -> tuple[Batch, ...]:
    """A random life; every event of a key, and every truncate, has a sequence of its own."""
    rng = random.Random(seed)
    kind = scd_type or rng.choice((1, 1, 2))
    count = rng.randrange(2, MOST_BATCHES + 1)
    numbers = rng.sample(range(1, 1000), 60 * count)
    flows = [_options(rng, kind), _options(rng, kind)]
    tracked: Mapping[str, Any] = {}
    found = []
    for _ in range(count):
        who = rng.randrange(2)
        if rng.random() < 0.4:
            flows[who] = _options(rng, kind)
        if kind == 2 and rng.random() < 0.3:
            tracked = rng.choice(TRACKING)
        none = dict.fromkeys(("track_history_column_list", "track_history_except_column_list"))
        spec, other = (replace(flow, **{**none, **tracked}) for flow in (flows[who], flows[1 - who]))
        grown = rng.randrange(2)
        events = [_event(rng, spec, grown, numbers.pop()) for _ in range(rng.randrange(1, 4 * KEYS))]
        found.append(Batch(spec, other, grown, tuple(events + rng.choices(events, k=len(events) // 8))))
    return tuple(found)


def _options(rng: random.Random, kind: int) -> ChangeSpec:
    """Options of a flow, half of them without any that lets an event leave something unsaid."""
    named = rng.random() < 0.2
    nulls, listed = (NullUpdates.NONE, ()) if named or rng.random() < 0.5 else rng.choice(NULL_OPTIONS)
    left_out: list[Path] = [("seq",), ("op",), ("cols",)] + ([("y",)] if rng.random() < 0.2 else [])
    return ChangeSpec(
        source="s",
        keys=(("id",),),
        sequence_by="seq",
        scd_type=kind,
        apply_as_deletes="op = 'd'" if rng.random() < 0.7 else None,
        apply_as_truncates="op = 't'" if kind == 1 and rng.random() < 0.4 else None,
        except_column_list=tuple(left_out),
        ignore_null_updates=nulls,
        ignore_null_columns=listed,
        columns_to_update=("cols",) if named else None,
    )


def _event(rng: random.Random, spec: ChangeSpec, grown: int, seq: int) -> Record:
    """An event that the flow can have: deletes and truncates only where it has a condition for them."""
    dice = rng.random()
    op = "t" if dice < 0.03 and spec.apply_as_truncates else "d" if dice < 0.2 and spec.apply_as_deletes else "u"
    event: dict[str, Any] = {"id": None if op == "t" else rng.randrange(KEYS), "seq": seq, "op": op}
    word, number = (lambda: _maybe(rng, rng.choice("ab"))), (lambda: _maybe(rng, rng.randrange(2) + grown * 2**40))
    parts = {"a": word(), "b": _maybe(rng, rng.randrange(2))} if grown else {"a": word()}
    inner = {"c": number(), "d": word()} if grown else {"c": number()}
    event |= {"x": word(), "y": number(), "p": parts if any(v is not None for v in parts.values()) else None}
    event |= {"l": _maybe(rng, [inner]), "m": _maybe(rng, {"k": inner}), **({"z": word()} if grown else {})}
    names = ["x", "y", "p", "p.a", "l", "z"]
    event["cols"] = _maybe(rng, rng.sample(names, rng.randrange(len(names)))) if spec.columns_to_update else None
    return event


def _maybe(rng: random.Random, value: Any) -> Any:
    return None if rng.random() < 0.3 else value


def _ddl(kind: Any) -> str:
    return f"STRUCT<{', '.join(f'{n}: {t}' for n, t in kind.items())}>" if isinstance(kind, Mapping) else str(kind)


# ------------------------------------------------------------------------------------------------- the table by the rules


@dataclass(frozen=True)
class _Said:
    """One event of a key with its batch."""

    batch: Batch
    event: Record

    @property
    def seq(self) -> int:
        return int(self.event["seq"])

    @property
    def deletes(self) -> bool:
        return bool(self.event["op"] == "d")

    def value(self, leaf: Path) -> Any:
        """What the event has in a leaf: NULL where its flow does not select or have it. Values inside arrays and maps have all fields."""
        if leaf not in set(self.batch.leaves()):
            return None
        value: Any = self.event
        for name in leaf:
            value = None if value is None else value[name]
        if leaf == ("l",) and value is not None:
            return [{"c": None, "d": None} | inner for inner in value]
        if leaf == ("m",) and value is not None:
            return {key: {"c": None, "d": None} | inner for key, inner in value.items()}
        return value

    def authors(self, leaf: Path) -> bool:
        """Whether the event says what a leaf is, by the options of its flow when it came."""
        spec, names = self.batch.spec, self.event["cols"]
        if spec.columns_to_update is not None:
            return names is None or leaf[0] in names or ".".join(leaf) in names
        listed = leaf[:1] in spec.ignore_null_columns or leaf in spec.ignore_null_columns
        ignored = {NullUpdates.NONE: False, NullUpdates.ALL: True, NullUpdates.ON: listed, NullUpdates.EXCEPT: not listed}
        return self.value(leaf) is not None or not ignored[spec.ignore_null_updates]


def expected(batches: Sequence[Batch]) -> list[tuple[Any, ...]]:
    """The table: `(id, {leaf: value})`, of type 2 `(id, {leaf: value}, start, end)`."""
    said = [_Said(batch, event) for batch in batches for event in batch.events]
    truncated = max((s.seq for s in said if s.event["op"] == "t"), default=0)
    found: list[tuple[Any, ...]] = []
    for key in range(KEYS):
        own = sorted(
            {s.seq: s for s in said if s.event["id"] == key and s.event["op"] != "t" and s.seq > truncated}.values(), key=lambda s: s.seq
        )
        if batches[0].spec.scd_type == 2:
            found += [(key, *version) for version in _versions(own, batches[-1].spec)]
        elif own and not own[-1].deletes:
            found.append((key, _values(own)))
    return found


def _values(until: Sequence[_Said]) -> dict[Path, Any]:
    """The values of a key after its events `until`, the last of which is an upsert: of each leaf, what was said last since a delete."""
    since = max((n + 1 for n, s in enumerate(until) if s.deletes), default=0)
    return {leaf: next((s.value(leaf) for s in reversed(until[since:]) if s.authors(leaf)), None) for leaf in LEAVES}


def _versions(own: Sequence[_Said], last: ChangeSpec) -> list[tuple[Any, ...]]:
    """Neighbours with equal tracked values are one version; it ends where the next one, or a delete, begins."""
    listed, left_out = last.track_history_column_list, last.track_history_except_column_list or ()
    tracked = [leaf for leaf in LEAVES if (leaf[:1] in listed if listed is not None else leaf[:1] not in left_out)]
    found: list[list[Any]] = []
    is_open = False
    for n, said in enumerate(own):
        values = {} if said.deletes else _values(own[: n + 1])
        same = is_open and not said.deletes and all(found[-1][0][leaf] == values[leaf] for leaf in tracked)
        if same:
            found[-1][0] = values
            continue
        if is_open:
            found[-1][2] = said.seq
        is_open = not said.deletes
        if is_open:
            found.append([values, said.seq, None])
    return [tuple(version) for version in found]
