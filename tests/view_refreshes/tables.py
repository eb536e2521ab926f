"""The input tables of the views, and random rows for them: few keys, so that groups meet, and the values that break engines."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = tuple[Any, ...]
UTC = timezone.utc

KEYS = ("a", "A", "b", "b ", "", "ß", "SS", "ss", "Ünder", None)
"""Keys that differ only in case, in a space at the end, or before `upper`; the empty one; and none."""

GROUPS = (None, -1, 0, 1, 2)
FLOATS = (float("nan"), -0.0, 0.0, float("inf"), None)
TAGS = ("x", "X", "", "y,z", None)

CHANGES_OF_CLOCKS = (
    datetime(2026, 3, 29, 1, tzinfo=UTC),  # Berlin, forward
    datetime(2026, 10, 25, 1, tzinfo=UTC),  # Berlin, back
    datetime(2026, 3, 8, 7, tzinfo=UTC),  # New York, forward
    datetime(2026, 11, 1, 6, tzinfo=UTC),  # New York, back
    datetime(2026, 4, 4, 15, tzinfo=UTC),  # Lord Howe, back by half an hour
    datetime(2026, 1, 1, 0, tzinfo=UTC),
)
FAR = (datetime(1890, 5, 1, 0, 0, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC))

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")

POISON = -666
"""A value of `facts.n` that breaks the rule of a view whose action is to fail."""


@dataclass(frozen=True)
class Table:
    """One input: its columns with Spark's and Arrow's types, and what makes a row of it with a given id."""

    name: str
    columns: Mapping[str, tuple[str, pa.DataType]]
    row: Callable[[random.Random, int], Row]

    @property
    def ddl(self) -> str:
        return ", ".join(f"{name} {kind}" for name, (kind, _) in self.columns.items())

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([(name, kind) for name, (_, kind) in self.columns.items()])

    def rows(self, rng: random.Random, ids: Sequence[int]) -> pa.Table:
        return self.of([self.row(rng, id) for id in ids])

    def of(self, rows: Sequence[Row]) -> pa.Table:
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self.columns)
        arrays = [pa.array(list(values), kind) for values, (_, kind) in zip(columns, self.columns.values(), strict=True)]
        return pa.Table.from_arrays(arrays, schema=self.schema)


def instant(rng: random.Random) -> datetime | None:
    """A moment beside a change of clocks; seldom one far away, or none."""
    if rng.random() < 0.06:
        return rng.choice((*FAR, None))
    return rng.choice(CHANGES_OF_CLOCKS) + timedelta(minutes=10 * rng.randrange(-18, 19), microseconds=rng.choice((0, 0, 1, 999_999)))


def number(rng: random.Random) -> int | None:
    return rng.choice((None, 2_147_483_647, -2_147_483_648)) if rng.random() < 0.08 else rng.randrange(-5, 30)


def money(rng: random.Random) -> Decimal | None:
    """Of DECIMAL(20, 2)."""
    if rng.random() < 0.1:
        return rng.choice((None, Decimal("999999999999999999.99"), Decimal("-999999999999999999.99"), Decimal("0.00")))
    return Decimal(rng.randrange(-5_000, 20_000)) / 100


def large(rng: random.Random) -> Decimal | None:
    """Of DECIMAL(38, 2): three hundred of the largest stay just below the largest value of the type."""
    if rng.random() < 0.1:
        return None
    return Decimal(rng.choice((-3, -1, 1, 2, 3))) * Decimal(10) ** 33 + Decimal(rng.randrange(100)) / 100


def double(rng: random.Random) -> float | None:
    """A multiple of an eighth, so that sums in any order are equal to the last bit; or a value that is not a common number."""
    return rng.choice(FLOATS) if rng.random() < 0.15 else rng.randrange(-8_000, 8_000) / 8


def _fact(rng: random.Random, id: int) -> Row:
    tags = None if rng.random() < 0.1 else [rng.choice(TAGS) for _ in range(rng.randrange(4))]
    ok = rng.choice((True, True, False, None))
    row = (id, rng.choice(KEYS), rng.choice(GROUPS), instant(rng), money(rng), large(rng), number(rng), double(rng), ok, tags)
    return (*row, rng.choice(("", "note", None, f"n{rng.randrange(20)}")))


def _other(rng: random.Random, id: int) -> Row:
    return (id, rng.choice(KEYS), rng.choice(GROUPS), instant(rng), money(rng))


def _account(rng: random.Random, id: int) -> Row:
    """An event of an account: `seq` is its id, now and then an older one."""
    sequence = id if rng.random() < 0.9 else max(0, id - rng.randrange(12))
    balance = Decimal(rng.randrange(-500, 5000)) / 10
    return (rng.choice(KEYS[:6]), rng.choice(("Ada", "ada", "", None, "Bo")), balance, sequence, rng.random() < 0.15)


def _dim(rng: random.Random, id: int) -> Row:
    rate = rng.choice((None, Decimal("1.0000"), Decimal("0.0825"), Decimal(rng.randrange(1, 40_000)) / 10_000))
    name = rng.choice(("Oslo", "oslo", "", "Rome", None, f"city {rng.randrange(6)}"))
    return (rng.choice(KEYS), name, rng.choice(("n", "N", "s", None)), rate)


FACTS = Table(
    "facts",
    {
        "id": ("BIGINT", pa.int64()),
        "k": ("STRING", pa.string()),
        "grp": ("INT", pa.int32()),
        "at": ("TIMESTAMP", pa.timestamp("us", "UTC")),
        "amount": ("DECIMAL(20,2)", pa.decimal128(20, 2)),
        "huge": ("DECIMAL(38,2)", pa.decimal128(38, 2)),
        "n": ("INT", pa.int32()),
        "f": ("DOUBLE", pa.float64()),
        "ok": ("BOOLEAN", pa.bool_()),
        "tags": ("ARRAY<STRING>", pa.list_(pa.string())),
        "note": ("STRING", pa.string()),
    },
    _fact,
)
OTHERS = Table(
    "others",
    {
        "id": ("BIGINT", pa.int64()),
        "k": ("STRING", pa.string()),
        "grp": ("INT", pa.int32()),
        "at": ("TIMESTAMP", pa.timestamp("us", "UTC")),
        "amount": ("DECIMAL(20,2)", pa.decimal128(20, 2)),
    },
    _other,
)
DIMS = Table(
    "dims",
    {
        "k": ("STRING", pa.string()),
        "name": ("STRING", pa.string()),
        "region": ("STRING", pa.string()),
        "rate": ("DECIMAL(10,4)", pa.decimal128(10, 4)),
    },
    _dim,
)
_OF_ACCOUNTS = {
    "k": ("STRING", pa.string()),
    "name": ("STRING", pa.string()),
    "balance": ("DECIMAL(12,1)", pa.decimal128(12, 1)),
}
ACCOUNTS = Table("accounts", _OF_ACCOUNTS, _account)
HISTORY = Table(
    "account_history",
    {**_OF_ACCOUNTS, "__START_AT": ("BIGINT", pa.int64()), "__END_AT": ("BIGINT", pa.int64())},
    _account,
)
ACCOUNT_EVENTS = Table("account_events", {**_OF_ACCOUNTS, "seq": ("BIGINT", pa.int64()), "gone": ("BOOLEAN", pa.bool_())}, _account)
"""Change tables that the pipeline writes, and the events that arrive for both."""

TABLES = {table.name: table for table in (FACTS, OTHERS, DIMS)}
