"""Random pipelines, random edits of their code and data, and the difference that they must have, computed by plain Python.

A dataset reads a Parquet file, filters it, computes columns, and repeats some rows; one that aggregates groups by `k`. An edit
changes one of these, or the file, or nothing that counts.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Row = Mapping[str, Any]

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.string()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("s", pa.struct([("a", pa.int64()), ("b", pa.float64())])),
        ("l", pa.list_(pa.float64())),
    ]
)
_FLOATS = (0.0, -0.0, math.nan, 1.5, -2.25, math.inf, None)


@dataclass(frozen=True)
class Computed:
    """A column: its SQL, and the same in Python."""

    sql: str
    of: Callable[[Row], Any]


def _negated(row: Row) -> Any:
    return None if row["x"] is None else -row["x"]


def _reversed(row: Row) -> Any:
    return None if row["l"] is None else row["l"][::-1]


def _plus(number: int) -> Computed:
    return Computed(f"n + {number}", lambda row: None if row["n"] is None else row["n"] + number)


def _same(name: str) -> Computed:
    return Computed(name, lambda row: row[name])


CHOICES: dict[str, list[Computed]] = {
    "k": [_same("k"), Computed("upper(k)", lambda r: r["k"] and r["k"].upper()), Computed("coalesce(k, '')", lambda r: r["k"] or "")],
    "n": [_same("n"), _plus(0), _plus(1), Computed("abs(n)", lambda r: None if r["n"] is None else abs(r["n"]))],
    "x": [_same("x"), Computed("-x", _negated), Computed("coalesce(x, 0D)", lambda r: 0.0 if r["x"] is None else r["x"])],
    "m": [
        _same("m"),
        Computed("map_from_entries(reverse(map_entries(m)))", lambda r: r["m"]),
        Computed("map('a', n)", lambda r: {"a": r["n"]}),
    ],
    "s": [
        _same("s"),
        Computed("named_struct('a', s.a, 'b', s.b)", lambda r: dict(r["s"]) if r["s"] is not None else {"a": None, "b": None}),
        Computed("named_struct('a', n, 'b', x)", lambda r: {"a": r["n"], "b": r["x"]}),
    ],
    "l": [_same("l"), Computed("reverse(l)", _reversed), Computed("array(x)", lambda r: [r["x"]])],
}


@dataclass(frozen=True)
class Table:
    """One dataset. `columns`: chosen forms by name; `least`, `repeated`: rows with a smaller `id` are left out, others come twice."""

    name: str
    columns: Mapping[str, int]
    least: int
    repeated: int
    grouped: bool
    key: bool
    remark: str = ""

    def code(self) -> str:
        """The dataset's function, and that of one that counts its rows, if there is one."""
        identity = "id" if self.key else "row"
        chosen = [f"id AS {identity}", *(f"{CHOICES[name][at].sql} AS {name}" for name, at in self.columns.items())]
        lines = [f"frame = spark.read.parquet(LANDING + '/{self.name}').where('id >= {self.least}')  # {self.remark}"]
        lines += [f"frame = frame.unionAll(frame.where('id < {self.repeated}'))", f"frame = frame.selectExpr(*{json.dumps(chosen)})"]
        if self.grouped:
            lines += ["frame = frame.groupBy('k').agg(F.sum('n').alias('total'), F.count('*').alias('rows'))"]
        body = "\n    ".join([*lines, "return frame"])
        own = f"@dlt.table\ndef {self.name}():\n    {body}\n"
        counted = f"spark.read.table('{self.name}').groupBy('k').agg(F.count('*').alias('c'))"
        return f"{own}\n\n@dlt.table\ndef of_{self.name}():\n    return {counted}\n" if self.is_read else own

    @property
    def is_read(self) -> bool:
        """Whether another dataset counts its rows."""
        return self.name == "t0"

    def rows(self, given: Sequence[Row]) -> list[dict[str, Any]]:
        """The rows that it must have."""
        kept = [row for row in given if row["id"] >= self.least]
        kept += [row for row in kept if row["id"] < self.repeated]
        identity = "id" if self.key else "row"
        rows = [{identity: row["id"], **{name: CHOICES[name][at].of(row) for name, at in self.columns.items()}} for row in kept]
        return _grouped(rows) if self.grouped else rows

    @staticmethod
    def reader_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
        """The rows of the dataset that counts those of this one."""
        return [{"k": k, "c": count} for k, count in Counter(row["k"] for row in rows).items()]


def _grouped(rows: Sequence[Row]) -> list[dict[str, Any]]:
    found = []
    for k in dict.fromkeys(row["k"] for row in rows):
        numbers = [row["n"] for row in rows if row["k"] == k]
        known = [number for number in numbers if number is not None]
        found.append({"k": k, "total": sum(known) if known else None, "rows": len(numbers)})
    return found


@dataclass
class Change:
    """Tables and files before and after an edit. `edited`: names whose code is another one; `given`: names with another file."""

    before: list[Table]
    after: list[Table]
    files_before: dict[str, list[Row]]
    files_after: dict[str, list[Row]]
    edited: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)

    @staticmethod
    def code(tables: Sequence[Table], landing: Path) -> str:
        head = f"import dlt\nfrom pyspark.sql import functions as F\n\nLANDING = {str(landing)!r}\n\n\n"
        return head + "\n\n".join(table.code() for table in tables)


def random_change(seed: int, tables: int) -> Change:
    """A pipeline of some tables, each with an edit of its own."""
    chance = random.Random(seed)
    before = [_table(f"t{number}", chance) for number in range(tables)]
    files = {table.name: _file(chance) for table in before}
    found = Change(before, [], files, dict(files))
    for table in before:
        edit = chance.choice(("column", "column", "drop", "least", "repeated", "file", "file", "remark", "all"))
        after = _edited(table, edit, chance)
        if edit in ("file", "all"):
            found.files_after[table.name] = _changed_file(files[table.name], chance)
            found.given.add(table.name)
        found.after.append(after)
        if replace(after, remark="") != replace(table, remark=""):
            found.edited.add(table.name)
    return found


def _table(name: str, chance: random.Random) -> Table:
    columns = {column: chance.randrange(len(forms)) for column, forms in CHOICES.items()}
    grouped = chance.random() < 0.25
    return Table(name, columns, chance.randrange(3), chance.choice((0, 0, 3)), grouped, chance.random() < 0.6, "as it was")


def _edited(table: Table, edit: str, chance: random.Random) -> Table:
    if edit in ("column", "all"):
        column = chance.choice(list(CHOICES))
        return replace(table, columns={**table.columns, column: chance.randrange(len(CHOICES[column]))})
    if edit == "drop" and not table.grouped:
        column = chance.choice([name for name in CHOICES if name != "k"])
        return replace(table, columns={name: at for name, at in table.columns.items() if name != column})
    if edit == "least":
        return replace(table, least=chance.randrange(4))
    if edit == "repeated":
        return replace(table, repeated=chance.randrange(5))
    return replace(table, remark="with another comment")


def _file(chance: random.Random) -> list[Row]:
    return [_row(number, chance) for number in range(chance.randrange(4, 14))]


def _row(number: int, chance: random.Random) -> Row:
    floats = [chance.choice(_FLOATS) for _ in range(chance.randrange(4))]
    keys = chance.sample(["a", "b", "c"], chance.randrange(4))
    return {
        "id": number if chance.random() < 0.9 else max(0, number - 1),  # a repeated one, sometimes
        "k": chance.choice(["a", "A", "b", "", None]),
        "n": chance.choice([None, -1, 0, 1, 7]),
        "x": chance.choice(_FLOATS),
        "m": chance.choice([None, {key: chance.choice([None, 1, 2]) for key in keys}]),
        "s": chance.choice([None, {"a": chance.choice([None, 1]), "b": chance.choice(_FLOATS)}]),
        "l": chance.choice([None, floats]),
    }


def _changed_file(rows: Sequence[Row], chance: random.Random) -> list[Row]:
    changed = [dict(row) for row in rows if chance.random() < 0.9]
    for row in changed:
        if chance.random() < 0.3:
            name = chance.choice(["k", "n", "x", "m", "s", "l"])
            row[name] = _row(0, chance)[name]
    chance.shuffle(changed)
    return [*changed, *(_row(20 + number, chance) for number in range(chance.randrange(3)))]


def write_files(files: Mapping[str, Sequence[Row]], landing: Path) -> None:
    """Write the file of each table."""
    for name, rows in files.items():
        columns = {column: [row[column] for row in rows] for column in SCHEMA.names}
        columns["m"] = [None if value is None else list(value.items()) for value in columns["m"]]
        (landing / name).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns, schema=SCHEMA), landing / name / "rows.parquet")


# ------------------------------------------------------------------------------------------------------------------- the oracle


@dataclass(frozen=True)
class Expected:
    """What a comparison must find. `columns`: changed rows by column, None where the key does not identify rows."""

    added: int
    removed: int
    changed: int
    columns: Mapping[str, int] | None


def expected(before: Sequence[Row], after: Sequence[Row], key: str | None) -> Expected:
    """The difference of two sets of rows, on the columns that both have."""
    names = _names(before, after)
    old = Counter(_canonical([row[name] for name in names]) for row in before)
    new = Counter(_canonical([row[name] for name in names]) for row in after)
    less, more = old - new, new - old
    if key is None:
        return Expected(more.total(), less.total(), 0, {})
    at = names.index(key)
    gone, come = _by_key(less, at), _by_key(more, at)
    pairs = {one: min(len(gone.get(one, ())), len(come.get(one, ()))) for one in {*gone, *come}}
    changed = sum(pairs.values())
    unique = all(len(rows) == 1 for rows in (*gone.values(), *come.values()))
    both = [one for one, count in pairs.items() if count]
    columns = {name: sum(gone[one][0][n] != come[one][0][n] for one in both) for n, name in enumerate(names)} if unique else None
    known = None if columns is None else {name: count for name, count in columns.items() if count}
    return Expected(more.total() - changed, less.total() - changed, changed, known)


def _names(before: Sequence[Row], after: Sequence[Row]) -> list[str]:
    first = next(iter((*before, *after)), {})
    return [name for name in first if all(name in row for row in (*before, *after))]


def _by_key(rows: Counter[Any], at: int) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for row in rows.elements():
        found.setdefault(row[at], []).append(row)
    return found


def _canonical(value: Any) -> Any:
    """A value that is equal to another one if and only if both are the same in a table."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    if isinstance(value, Mapping):
        return ("map", *((key, _canonical(value[key])) for key in sorted(value)))
    if isinstance(value, list | tuple):
        return tuple(_canonical(one) for one in value)
    return value
