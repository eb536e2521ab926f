"""The cases of change data capture as data: D1-D7, C01-C64 and the E-cases (docs/semantics/change-data.md).

A `Feed` is a source with the arguments of its flow, a `Case` is what arrives batch by batch and what the table then holds. The algebra and
the engine run the same table. Structs are dictionaries in records, as they are in JSON.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from lakelet.base.names import Namespace
from lakelet.language import api
from lakelet.language.model import ChangeSpec, ColumnPath
from lakelet.language.registry import Registry, recording
from tests.cdc_algebra import ChangeEvent, Op, Row

Record = Mapping[str, Any]
Batches = tuple[tuple[Record, ...], ...]


@dataclass(frozen=True)
class Feed:
    """A source and the flow that reads it.

    columns: name → type, or name → types of a struct's fields. arguments: of create_auto_cdc_flow.
    seq: what `sequence_by` gives, in Python. op: the column that tells deletes and truncates. sets: columns_to_update.
    alone: its cases cannot share a table, because one event concerns all keys.
    """

    name: str
    columns: Mapping[str, Any]
    arguments: Mapping[str, Any]
    seq: Callable[[Record], Any]
    op: str = "op"
    sets: str | None = None
    alone: bool = False

    @property
    def ddl(self) -> str:
        """The columns of the source."""
        return ", ".join(f"`{name}` {_ddl(kind)}" for name, kind in self.columns.items())

    @property
    def spec(self) -> ChangeSpec:
        """What the declaration makes of the arguments."""
        registry = Registry(Namespace())
        with recording(registry):
            api.DP["create_auto_cdc_flow"](target="t", source="s", **self.arguments)
        (flow,) = registry.definitions(complete=False).flows
        assert flow.changes is not None
        return flow.changes

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.arguments["keys"])

    @property
    def selected(self) -> tuple[str, ...]:
        """The source's columns that the target has."""
        listed, left_out = self.arguments.get("column_list"), self.arguments.get("except_column_list", ())
        return tuple(name for name in self.columns if (listed is None or name in listed) and name not in left_out)

    def leaves(self) -> Iterator[ColumnPath]:
        for name in self.selected:
            kind = self.columns[name]
            if name not in self.keys:
                yield from ((name, f) for f in kind) if isinstance(kind, Mapping) else ((name,),)

    def event(self, record: Record) -> ChangeEvent:
        """A record as the algebra sees it."""
        op = {"d": Op.DELETE, "DELETE": Op.DELETE, "t": Op.TRUNCATE, "TRUNCATE": Op.TRUNCATE}.get(str(record.get(self.op)), Op.UPSERT)
        sets = record.get(self.sets) if self.sets else None
        return ChangeEvent(
            key=tuple(record.get(k) for k in self.keys),
            seq=self.seq(record),
            values={leaf: _value(record, leaf) for leaf in self.leaves()} if op is Op.UPSERT else {},
            op=op,
            sets=None if sets is None else frozenset(tuple(name.split(".")) for name in sets),
        )

    def visible(self, row: Row) -> tuple[Any, ...]:
        """A row of the algebra as the table has it: the columns in the order of the source, then start and end."""
        found = [self._column(name, row) for name in self.selected]
        return (*found, row.start, row.end) if self.spec.scd_type == 2 else tuple(found)

    def _column(self, name: str, row: Row) -> Any:
        if name in self.keys:
            return row.key[self.keys.index(name)]
        kind = self.columns[name]
        if not isinstance(kind, Mapping):
            return row.values.get((name,))
        fields = {f: row.values.get((name, f)) for f in kind}
        return None if all(v is None for v in fields.values()) else fields


def _ddl(kind: Any) -> str:
    return f"STRUCT<{', '.join(f'`{n}`: {t}' for n, t in kind.items())}>" if isinstance(kind, Mapping) else str(kind)


def _value(record: Record, leaf: ColumnPath) -> Any:
    value: Any = record
    for name in leaf:
        value = None if value is None else value.get(name)
    return value


@dataclass(frozen=True)
class Case:
    """`rows`: the table in the end; `either`: another table that is as right. `ordered`: it is about the order of arrival, so keep it."""

    id: str
    feed: Feed
    batches: Batches
    rows: tuple[tuple[Any, ...], ...]
    either: tuple[tuple[Any, ...], ...] | None = None
    ordered: bool = False

    def right(self, found: Sequence[tuple[Any, ...]]) -> bool:
        return sorted(found, key=repr) in [sorted(rows, key=repr) for rows in (self.rows, self.either) if rows is not None]

    def arrangements(self, rng: random.Random, count: int) -> dict[str, Batches]:
        """The events as given; unless their order matters, as one batch, one by one, and at random in random batches."""
        if self.ordered:
            return {"given": self.batches}
        events = [e for batch in self.batches for e in batch]
        found = {
            "given": self.batches,
            "one": (tuple(events),),
            "each": tuple((e,) for e in events),
            "back": tuple((e,) for e in events[::-1]),
        }
        return found | {f"random{n}": shuffled(events, rng, most=4) for n in range(count)}


def shuffled(events: Sequence[Any], rng: random.Random, most: int = 6) -> tuple[tuple[Any, ...], ...]:
    """The events in random order, cut at random into at most `most` batches that are not empty."""
    mixed = rng.sample(list(events), len(events))
    cuts = sorted({0, len(mixed), *(rng.randrange(len(mixed)) for _ in range(rng.randrange(most)))})
    return tuple(tuple(mixed[a:b]) for a, b in pairwise(cuts))


# ---------------------------------------------------------------------------------------------------------------- feeds

_PLAIN = {"id": "INT", "value": "STRING", "seq": "INT", "op": "STRING"}
_PAIR = {"id": "INT", "x": "STRING", "y": "STRING", "seq": "INT", "op": "STRING"}
_USERS = {"userId": "INT", "name": "STRING", "city": "STRING", "operation": "STRING", "sequenceNum": "INT"}
_COMMON: Mapping[str, Any] = {"keys": ["id"], "sequence_by": "seq", "apply_as_deletes": "op = 'd'", "except_column_list": ["op", "seq"]}
_USER_ARGUMENTS: Mapping[str, Any] = {
    "keys": ["userId"], "sequence_by": "sequenceNum", "apply_as_deletes": "operation = 'DELETE'",
    "except_column_list": ["operation", "sequenceNum"],
}  # fmt: skip
_TWO = {"stored_as_scd_type": 2}


def _seq(record: Record) -> Any:
    return record["seq"]


def _number(record: Record) -> Any:
    return record["sequenceNum"]


CURRENT = Feed("latest", _PLAIN, _COMMON, _seq)
TRUNCATED = Feed("truncated", _PLAIN, {**_COMMON, "apply_as_truncates": "op = 't'"}, _seq, alone=True)
CITIES = Feed("cities", {"country": "STRING", "city": "STRING", "seq": "INT"}, {"keys": ["country", "city"], "sequence_by": "seq"}, _seq)
GREATEST = Feed(
    "greatest", {"id": "INT", "s1": "INT", "s2": "INT", "value": "STRING"},
    {"keys": ["id"], "sequence_by": "greatest(s1, s2)", "column_list": ["id", "value"]}, lambda r: max(r["s1"], r["s2"]),
)  # fmt: skip
STRUCT = Feed(
    "structs", {"id": "INT", "value": "STRING", "ts": "INT", "n": "INT"},
    {"keys": ["id"], "sequence_by": "struct(ts, n)", "except_column_list": ["ts", "n"]}, lambda r: (r["ts"], r["n"]),
)  # fmt: skip
PAIRS = Feed("pairs", _PAIR, _COMMON, _seq)
NULLS = Feed("nulls_all", _PAIR, {**_COMMON, "ignore_null_updates": True}, _seq)
NULLS_ON = Feed("nulls_on", _PAIR, {**_COMMON, "ignore_null_updates_column_list": ["x"]}, _seq)
NULLS_EXCEPT = Feed("nulls_except", _PAIR, {**_COMMON, "ignore_null_updates_except_column_list": ["y"]}, _seq)
NULLS_TRUNCATED = Feed(
    "nulls_truncated", _PAIR, {**_COMMON, "ignore_null_updates": True, "apply_as_truncates": "op = 't'"}, _seq, alone=True
)
_PLACE = {"id": "INT", "p": {"city": "STRING", "zip": "STRING"}, "seq": "INT", "op": "STRING"}
PLACES = Feed("places", _PLACE, {**_COMMON, "ignore_null_updates": True}, _seq)
PLACES_ON = Feed("places_on", _PLACE, {**_COMMON, "ignore_null_updates_column_list": ["p.city"]}, _seq)
PLACES_EXCEPT = Feed("places_except", _PLACE, {**_COMMON, "ignore_null_updates_except_column_list": ["p.city"]}, _seq)
SETS = Feed(
    "sets", {**_PAIR, "cols": "ARRAY<STRING>"},
    {**_COMMON, "columns_to_update": "cols", "except_column_list": ["op", "seq", "cols"]}, _seq, sets="cols",
)  # fmt: skip
HISTORY = Feed("history", _PLAIN, {**_COMMON, **_TWO}, _seq)
HISTORY_STRUCT = Feed("history_structs", STRUCT.columns, {**STRUCT.arguments, **_TWO}, STRUCT.seq)
HISTORY_SEQ = Feed("history_with_sequence", _PLAIN, {**_COMMON, **_TWO, "except_column_list": ["op"]}, _seq)
_SCORES = {"id": "INT", "name": "STRING", "score": "INT", "seq": "INT", "op": "STRING"}
TRACKED = Feed("tracked", _SCORES, {**_COMMON, **_TWO, "track_history_column_list": ["name"]}, _seq)
HISTORY_NULLS = Feed("history_nulls", _PLAIN, {**_COMMON, **_TWO, "ignore_null_updates": True}, _seq)
HISTORY_PAIRS = Feed("history_pairs", _PAIR, {**_COMMON, **_TWO, "ignore_null_updates": True}, _seq)
HISTORY_SETS = Feed("history_sets", SETS.columns, {**SETS.arguments, **_TWO}, _seq, sets="cols")
USERS = Feed("users", _USERS, _USER_ARGUMENTS, _number, op="operation")
USERS_TRUNCATED = Feed(
    "users_truncated", _USERS, {**_USER_ARGUMENTS, "apply_as_truncates": "operation = 'TRUNCATE'"}, _number, op="operation", alone=True
)
USERS_HISTORY = Feed("users_history", _USERS, {**_USER_ARGUMENTS, **_TWO}, _number, op="operation")
USERS_TRACKED = Feed(
    "users_tracked", _USERS, {**_USER_ARGUMENTS, **_TWO, "track_history_except_column_list": ["city"]}, _number, op="operation"
)
SDP = Feed(
    "names", {"id": "INT", "name": "STRING", "version": "INT", "op": "STRING"},
    {"keys": ["id"], "sequence_by": "version", "apply_as_deletes": "op = 'DELETE'", "except_column_list": ["op"]}, lambda r: r["version"],
)  # fmt: skip


# ------------------------------------------------------------------------------------------------- the notation of 6.5


def u(key: int, value: Any, seq: Any) -> Record:
    return {"id": key, "value": value, "seq": seq, "op": "u"}


def d(key: int, seq: Any) -> Record:
    return {"id": key, "seq": seq, "op": "d"}


def t(seq: Any) -> Record:
    return {"seq": seq, "op": "t"}


def xy(x: Any, y: Any, seq: Any, **more: Any) -> Record:
    return {"id": 1, "x": x, "y": y, "seq": seq, "op": "u", **more}


def place(city: Any, zip_code: Any, seq: Any) -> Record:
    return {"id": 1, "p": {"city": city, "zip": zip_code}, "seq": seq, "op": "u"}


def _score(name: str, score: int, seq: int) -> Record:
    return {"id": 1, "name": name, "score": score, "seq": seq, "op": "u"}


def _user(key: int | None, name: str | None, city: str | None, operation: str, number: int) -> Record:
    return {"userId": key, "name": name, "city": city, "operation": operation, "sequenceNum": number}


def _named(key: int, name: str, version: int, op: str) -> Record:
    return {"id": key, "name": name, "version": version, "op": op}


def _h(*rows: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
    """Rows of the history of key 1."""
    return tuple((1, *row) for row in rows)


DOCUMENTED = (
    _user(124, "Raul", "Oaxaca", "INSERT", 1),
    _user(123, "Isabel", "Monterrey", "INSERT", 1),
    _user(125, "Mercedes", "Tijuana", "INSERT", 2),
    _user(126, "Lily", "Cancun", "INSERT", 2),
    _user(123, None, None, "DELETE", 6),
    _user(125, "Mercedes", "Guadalajara", "UPDATE", 6),
    _user(125, "Mercedes", "Mexicali", "UPDATE", 5),
    _user(123, "Isabel", "Chihuahua", "UPDATE", 5),
)
_TRUNCATE = _user(None, None, None, "TRUNCATE", 3)
_NINE: Batches = ((u(1, "alice", 1), u(1, "bob", 3)), (u(1, "carol", 2),), (u(1, "dave", 4),), (d(1, 2),), (d(1, 5),), (u(1, "ghost", 4),))

CASES: tuple[Case, ...] = (
    Case("D1", USERS, (DOCUMENTED,), ((124, "Raul", "Oaxaca"), (125, "Mercedes", "Guadalajara"), (126, "Lily", "Cancun"))),
    Case("D2", USERS_TRUNCATED, ((*DOCUMENTED, _TRUNCATE),), ((125, "Mercedes", "Guadalajara"),)),
    Case(
        "D3", USERS_HISTORY, (DOCUMENTED,),
        (
            (123, "Isabel", "Monterrey", 1, 5), (123, "Isabel", "Chihuahua", 5, 6), (124, "Raul", "Oaxaca", 1, None),
            (125, "Mercedes", "Tijuana", 2, 5), (125, "Mercedes", "Mexicali", 5, 6), (125, "Mercedes", "Guadalajara", 6, None),
            (126, "Lily", "Cancun", 2, None),
        ),
    ),
    Case(
        "D4", USERS_TRACKED, (DOCUMENTED,),
        (
            (123, "Isabel", "Chihuahua", 1, 6), (124, "Raul", "Oaxaca", 1, None), (125, "Mercedes", "Guadalajara", 2, None),
            (126, "Lily", "Cancun", 2, None),
        ),
    ),
    Case(
        "D7", SDP,
        (
            (_named(1, "alice", 1, "U"), _named(2, "bob", 1, "U")),
            (_named(1, "alicia", 2, "U"), _named(2, "bob", 2, "DELETE"), _named(3, "carol", 1, "U")),
            (_named(1, "alice", 1, "U"),),
        ),
        ((1, "alicia", 2), (3, "carol", 1)),
    ),
    Case("C01", CURRENT, ((u(1, "a", 1),),), ((1, "a"),)),
    Case("C02", CURRENT, ((u(1, "alice", 1), d(1, 2), u(1, "alice2", 3)),), ((1, "alice2"),)),
    Case("C03", CURRENT, ((u(1, "a", 10),), (u(1, "b", 5),)), ((1, "a"),)),
    Case("C04", CURRENT, ((u(1, "a", 5),), (d(1, 2),)), ((1, "a"),)),
    Case("C05", CURRENT, ((u(1, "a", 10),), (d(1, 20),)), ()),
    Case("C06", CURRENT, ((d(99, 1),),), ()),
    Case("C07", CURRENT, ((d(1, 10),), (u(1, "stale", 5),)), ()),
    Case("C08", CURRENT, ((d(1, 10),), (u(1, "new", 20),)), ((1, "new"),)),
    Case("C09_before_the_last_delete", CURRENT, _NINE[:4], ((1, "dave"),)),
    Case("C09", CURRENT, _NINE, ()),
    Case("C10", CURRENT, ((d(1, 2), u(1, "bob", 3)),), ((1, "bob"),)),
    Case("C11", CURRENT, ((u(1, "a", 10), u(1, "b", 10)),), ((1, "a"),), either=((1, "b"),)),
    Case("C12", CURRENT, ((u(1, "a", 10),), (u(1, "b", 10),)), ((1, "b"),), ordered=True),
    Case("C13", CURRENT, ((u(1, "a", 10),), (d(1, 10),)), ((1, "a"),)),
    Case("C13_delete_first", CURRENT, ((d(1, 10),), (u(1, "a", 10),)), ((1, "a"),)),
    Case("C14", CURRENT, (({**u(1, "a", 10), "op": None},),), ((1, "a"),)),
    Case(
        "C17", CITIES, (tuple({"country": c, "city": n, "seq": 1} for c, n in (("US", "NY"), ("US", "LA"), ("UK", "London"))),),
        (("UK", "London", 1), ("US", "LA", 1), ("US", "NY", 1)),
    ),
    Case(
        "C18", GREATEST, (tuple({"id": 1, "s1": a, "s2": b, "value": v} for a, b, v in ((10, 30, "w"), (25, 20, "x"), (15, 15, "y"))),),
        ((1, "w"),),
    ),
    Case(
        "C19", STRUCT, (tuple({"id": 1, "value": v, "ts": a, "n": b} for v, a, b in (("a", 5, 1), ("b", 5, 2), ("c", 4, 9))),), ((1, "b"),)
    ),
    Case("C20", TRUNCATED, ((u(1, "a", 1), u(2, "b", 5)), (t(3),)), ((2, "b"),)),
    Case("C21", TRUNCATED, ((t(3),), (u(1, "late", 2), u(2, "x", 4))), ((2, "x"),)),
    Case("C22", TRUNCATED, ((t(3), u(1, "a", 3)),), ((1, "a"),)),
    Case("C23", NULLS, ((xy("a", "b", 1),), (xy(None, "c", 2),)), ((1, "a", "c"),)),
    Case("C24", NULLS, ((xy("l1", "r1", 1), xy("l2", None, 2), xy(None, "r3", 3)),), ((1, "l2", "r3"),)),
    Case("C25", NULLS, ((xy("v", None, 1), d(1, 2), xy(None, None, 3)),), ((1, None, None),)),
    Case(
        "C26", NULLS, ((xy("v", None, 1), d(1, 2), xy(None, None, 3), xy("after", None, 4), xy(None, None, 5)),), ((1, "after", None),)
    ),
    Case("C27", NULLS_ON, ((xy("a", "b", 1),), (xy(None, None, 2),)), ((1, "a", None),)),
    Case("C28", PLACES, ((place("SF", "94107", 1), place(None, "10001", 2)),), ((1, {"city": "SF", "zip": "10001"}),)),
    Case("C29", SETS, ((xy("a", "b", 1),), (xy(None, "z", 2, cols=["x"]),)), ((1, None, "b"),)),
    Case("C30", PAIRS, ((xy("a", "b", 1),), (xy(None, "c", 2),)), ((1, None, "c"),)),
    Case("C31", HISTORY, ((u(1, "a", 10),),), _h(("a", 10, None))),
    Case("C32", HISTORY, ((u(1, "a", 10), u(1, "b", 20)),), _h(("a", 10, 20), ("b", 20, None))),
    Case("C33", HISTORY, ((u(1, "a", 10), d(1, 20)),), _h(("a", 10, 20))),
    Case(
        "C34", HISTORY, ((u(1, "a", 10), u(1, "b", 20), d(1, 30), u(1, "c", 40)),), _h(("a", 10, 20), ("b", 20, 30), ("c", 40, None))
    ),
    Case("C35", HISTORY, ((u(1, "a", 10), u(1, "a", 20)),), _h(("a", 10, None))),
    Case("C36", HISTORY, ((u(1, "a", 10),), (u(1, "a", 20),), (u(1, "b", 30),)), _h(("a", 10, 30), ("b", 30, None))),
    Case("C37", HISTORY, ((d(1, 5),),), ()),
    Case("C38", HISTORY, ((d(1, 20),), (u(1, "x", 10),)), _h(("x", 10, 20))),
    Case("C39", HISTORY, ((d(1, 20),), (u(1, "x", 30),)), _h(("x", 30, None))),
    Case("C40", HISTORY, ((u(1, "a", 10),), (u(1, "b", 5),)), _h(("b", 5, 10), ("a", 10, None))),
    Case("C41", HISTORY, ((u(1, "a", 10), u(1, "c", 20)), (u(1, "b", 15),)), _h(("a", 10, 15), ("b", 15, 20), ("c", 20, None))),
    Case("C42", HISTORY, ((u(1, "a", 10), u(1, "b", 30)), (d(1, 20),)), _h(("a", 10, 20), ("b", 30, None))),
    Case("C43", HISTORY, ((u(1, "a", 10), d(1, 20)), (d(1, 15),)), _h(("a", 10, 15))),
    Case("C44", HISTORY, ((u(1, "Seattle", 10), d(1, 20)), (u(1, "Tacoma", 15),)), _h(("Seattle", 10, 15), ("Tacoma", 15, 20))),
    Case(
        "C45", HISTORY, ((u(1, "a", 1), u(1, "b", 5), u(1, "c", 10), u(1, "d", 20)), (u(1, "x", 7), u(1, "y", 15))),
        _h(("a", 1, 5), ("b", 5, 7), ("x", 7, 10), ("c", 10, 15), ("y", 15, 20), ("d", 20, None)),
    ),
    Case(
        "C46", HISTORY, ((u(1, "Alice", 5), u(1, "Alice", 10), u(1, "Alice", 15)), (u(1, "Charlie", 20),), (u(1, "Bob", 12),)),
        _h(("Alice", 5, 12), ("Bob", 12, 15), ("Alice", 15, 20), ("Charlie", 20, None)),
    ),
    Case("C47", HISTORY, ((u(1, "a", 10), u(1, "a", 10)),), _h(("a", 10, None))),
    Case("C47_in_the_next_batch", HISTORY, ((u(1, "a", 10),), (u(1, "a", 10),)), _h(("a", 10, None))),
    Case("C48", HISTORY, ((u(1, "a", 10), u(1, "b", 10)),), _h(("a", 10, None)), either=_h(("b", 10, None))),
    Case("C49", HISTORY, ((u(1, "a", 10), d(1, 10)),), ()),
    Case(
        "C50", TRACKED, ((_score("alice", 39, 39), _score("alice", 41, 41), _score("bob", 42, 42), _score("carol", 43, 43)),),
        _h(("alice", 41, 39, 42), ("bob", 42, 42, 43), ("carol", 43, 43, None)),
    ),
    Case(
        "C51", TRACKED, ((_score("alice", 100, 10), _score("alice", 200, 20)), (_score("alice", 300, 30),)), _h(("alice", 300, 10, None))
    ),
    Case("C52", HISTORY, ((u(1, "a", 10), u(1, "a", 11)), (d(1, 12),), (u(1, "b", 20),)), _h(("a", 10, 12), ("b", 20, None))),
    Case("C53", HISTORY, ((u(1, "a", 5), u(1, "a", 10), u(1, "b", 20)), (u(1, "a", 15),)), _h(("a", 5, 20), ("b", 20, None))),
    Case("C54", HISTORY, ((u(1, "a", 10), u(1, "b", 20)), (u(1, "a", 5), u(1, "a", 15))), _h(("a", 5, 20), ("b", 20, None))),
    Case("C55", HISTORY_NULLS, ((u(1, "v", 10), u(1, None, 20)), (u(1, "w", 15),)), _h(("v", 10, 15), ("w", 15, None))),
    Case("C56", HISTORY_NULLS, ((u(1, "v", 10), d(1, 20), u(1, None, 30)),), _h(("v", 10, 20), (None, 30, None))),
    Case("C57", HISTORY, ((u(1, "a", 10),), *((u(1, "b", 20), d(1, 30)),) * 2), _h(("a", 10, 20), ("b", 20, 30))),
    # Said in the text of 6.1, without a number of their own.
    Case("E01_nulls_of_all_but_y", NULLS_EXCEPT, ((xy("a", "b", 1),), (xy(None, None, 2),)), ((1, "a", None),)),
    Case("E02_null_of_one_field", PLACES_ON, ((place("SF", "94107", 1), place(None, None, 2)),), ((1, {"city": "SF", "zip": None}),)),
    Case("E03_nulls_of_all_but_a_field", PLACES_EXCEPT, ((place("SF", "1", 1), place(None, None, 2)),), ((1, {"city": None, "zip": "1"}),)),
    Case("E04_a_struct_of_nulls_is_null", PLACES, ((place("SF", "1", 1), d(1, 2), place(None, None, 3)),), ((1, None),)),
    Case(
        "E05_a_null_struct_says_nothing", PLACES,
        ((place("SF", "1", 1), {"id": 1, "p": None, "seq": 2, "op": "u"}),), ((1, {"city": "SF", "zip": "1"}),),
    ),
    Case(
        "E06_nothing_leaks_across_a_delete_of_the_same_sequence", NULLS,
        ((xy("v", "w", 1), d(1, 2), xy(None, "z", 2)),), ((1, None, "z"),),
    ),
    Case("E07_nothing_leaks_across_a_truncate", NULLS_TRUNCATED, ((xy("v", "w", 1), t(3)), (xy(None, "z", 4),)), ((1, None, "z"),)),
    Case("E08_a_truncate_ends_a_row_of_leaves", NULLS_TRUNCATED, ((xy("v", "w", 1), xy(None, "z", 2)), (t(3),)), ()),
    Case("E09_an_upsert_at_a_truncate_starts_again", NULLS_TRUNCATED, ((xy("v", "w", 1), t(3), xy(None, "z", 3)),), ((1, None, "z"),)),
    Case(
        "E10_late_leaves", SETS,
        ((xy("new", None, 3, cols=["x"]), xy("late", "b", 1)), (xy("old", "c", 2, cols=["x", "y"]),)), ((1, "new", "c"),),
    ),
    Case("E11_sets_after_a_delete", SETS, ((xy("a", "b", 1), d(1, 2), xy("c", "z", 3, cols=["x"])),), ((1, "c", None),)),
    Case("E12_sets_nothing", SETS, ((xy("a", "b", 1), xy("c", "z", 3, cols=[])),), ((1, "a", "b"),)),
    Case(
        "E13_sets_in_a_history", HISTORY_SETS,
        ((xy("a", "b", 1), xy("c", None, 3, cols=["x"])), (xy(None, None, 2, cols=["y"]),)),
        _h(("a", "b", 1, 2), ("a", None, 2, 3), ("c", None, 3, None)),
    ),
    Case(
        "E14_structs_order_a_history", HISTORY_STRUCT,
        (({"id": 1, "value": "b", "ts": 5, "n": 2}, {"id": 1, "value": "c", "ts": 6, "n": 0}), ({"id": 1, "value": "a", "ts": 5, "n": 1},)),
        _h(("a", (5, 1), (5, 2)), ("b", (5, 2), (6, 0)), ("c", (6, 0), None)),
    ),
    Case("E15_a_sequence_that_is_kept_is_tracked", HISTORY_SEQ, ((u(1, "a", 1), u(1, "a", 2)),), _h(("a", 1, 1, 2), ("a", 2, 2, None))),
    Case("E16_two_truncates", TRUNCATED, ((t(5), u(1, "a", 4)), (t(3), u(2, "b", 6))), ((2, "b"),)),
    Case("E17_a_truncate_below_the_delete", TRUNCATED, ((u(1, "a", 1), d(1, 4)), (t(2), u(1, "late", 3), u(2, "b", 1))), ()),
    Case(
        "E18_null_to_value_and_back", HISTORY,
        ((u(1, None, 1), u(1, None, 2), u(1, "a", 3), u(1, None, 4)),), _h((None, 1, 3), ("a", 3, 4), (None, 4, None)),
    ),
    Case("E19_upserts_of_one_sequence_say_what_both_say", NULLS, ((xy("a", None, 1), xy(None, "b", 1)),), ((1, "a", "b"),)),
    Case(
        "E20_the_later_one_of_a_sequence_wins_where_both_say_something", NULLS,
        ((xy("a", None, 1),), (xy("b", None, 1), xy(None, "y", 0)), (xy(None, "z", 1),)), ((1, "b", "z"),), ordered=True,
    ),
    Case(
        "E21_only_nulls_that_are_ignored_keep_values", NULLS_ON,
        ((xy("a", "b", 1),), (xy(None, None, 1),)), ((1, "a", None),), ordered=True,
    ),
    Case("E22_fields_of_one_sequence", PLACES, ((place("SF", None, 1), place(None, "1", 1)),), ((1, {"city": "SF", "zip": "1"}),)),
    Case(
        "E23_named_columns_of_one_sequence", SETS,
        ((xy("a", "n", 1, cols=["x"]), xy("n", None, 1, cols=["y"]), xy("o", "b", 0)),), ((1, "a", None),),
    ),
    Case(
        "E24_upserts_of_one_sequence_are_one_version", HISTORY_PAIRS,
        ((xy("a", None, 1), xy(None, "b", 1), xy("c", None, 2)),), ((1, "a", "b", 1, 2), (1, "c", "b", 2, None)),
    ),
    Case(
        "E25_a_delete_of_their_sequence_wins", HISTORY_PAIRS,
        ((xy("a", None, 1), xy(None, "b", 1), d(1, 1), xy("c", None, 2)),), _h(("c", None, 2, None)),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class BadCase:
    """A batch that is refused as a whole, after an accepted one."""

    id: str
    good: tuple[Record, ...]
    bad: tuple[Record, ...]
    code: str
    feed: Feed = field(default=TRUNCATED)


BAD_CASES = (
    BadCase("C15", (u(1, "a", 1),), (u(2, "b", 2), u(3, "c", None)), "CDC_NULL_SEQUENCE"),
    BadCase("C15_delete", (u(1, "a", 1),), (d(1, None),), "CDC_NULL_SEQUENCE"),
    BadCase("C15_truncate", (u(1, "a", 1),), (t(None),), "CDC_NULL_SEQUENCE"),
    BadCase("C16", (u(1, "a", 1),), (u(2, "b", 2), {"value": "c", "seq": 3, "op": "u"}), "CDC_NULL_KEY"),
    BadCase("C16_delete", (u(1, "a", 1),), ({"seq": 3, "op": "d"},), "CDC_NULL_KEY"),
    BadCase("C16_after_C15", (u(1, "a", 1),), ({"value": "c", "seq": 3, "op": "u"}, u(2, "b", None)), "CDC_NULL_SEQUENCE"),
)


@dataclass(frozen=True)
class SnapshotCase:
    """Snapshots by version, as rows (key first), and the table in the end."""

    id: str
    columns: Mapping[str, str]
    arguments: Mapping[str, Any]
    snapshots: tuple[tuple[Any, tuple[tuple[Any, ...], ...]], ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def spec(self) -> ChangeSpec:
        registry = Registry(Namespace())
        with recording(registry):
            api.DP["create_auto_cdc_from_snapshot_flow"]("t", "s", [next(iter(self.columns))], **self.arguments)
        (flow,) = registry.definitions(complete=False).flows
        assert flow.changes is not None
        return flow.changes


_KV = {"id": "INT", "value": "STRING"}
_TRACKING = {"Key": "INT", "TrackingColumn": "STRING", "NonTrackingColumn": "STRING"}
MIDNIGHT, NOON = "2024-01-01 00:00:00", "2024-01-01 12:00:00"

SNAPSHOT_CASES = (
    SnapshotCase(
        "D5", {"Key": "INT", "Value": "STRING"}, _TWO, ((MIDNIGHT, ((1, "a1"), (2, "a2"))), (NOON, ((2, "b2"), (3, "a3")))),
        ((1, "a1", MIDNIGHT, NOON), (2, "a2", MIDNIGHT, NOON), (2, "b2", NOON, None), (3, "a3", NOON, None)),
    ),
    SnapshotCase(
        "D6", _TRACKING, {**_TWO, "track_history_column_list": ["TrackingColumn"]},
        (
            (1, ((1, "a1", "b1"), (2, "a2", "b2"), (4, "a4", "b4"))),
            (2, ((2, "a2_new", "b2"), (3, "a3", "b3"), (4, "a4", "b4_new"))),
        ),
        (
            (1, "a1", "b1", 1, 2), (2, "a2", "b2", 1, 2), (2, "a2_new", "b2", 2, None), (3, "a3", "b3", 2, None),
            (4, "a4", "b4_new", 1, None),
        ),
    ),
    SnapshotCase("C59", _KV, {}, ((1, ((1, "a"), (2, "b"))), (2, ((2, "c"),))), ((2, "c"),)),
    SnapshotCase("C60", _KV, _TWO, ((1, ((1, "a"),)), (2, ()), (3, ((1, "a"),))), ((1, "a", 1, 2), (1, "a", 3, None))),
    SnapshotCase("C61", _KV, _TWO, ((1, ((1, "a"),)), (2, ((1, "a"),))), ((1, "a", 1, None),)),
)  # fmt: skip
