"""Compares one actual table, in arrow form, with its expected rows or facts. Pure functions: tables in, differences out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Any, Literal

import pyarrow as pa

from sampledata.contract import BRONZE, KEYS, PRESENCE_ONLY, Columns, Type
from sampledata.facts import TableFacts

Kind = Literal[
    "missing_table",
    "missing_column",
    "extra_column",
    "column_type",
    "row_count",
    "missing_row",
    "unexpected_row",
    "different_row",
    "facts",
    "expectation",
    "dropped",
]
Values = tuple[Any, ...]

EXAMPLES = 3
FLOAT_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Difference:
    """One way in which an actual table is not as expected. `message` says what was expected, what was found, and where."""

    table: str
    kind: Kind
    message: str

    def __str__(self) -> str:
        return f"{self.table}: {self.message}"


# --- columns


def compare_columns(table: str, expected: Columns, actual: pa.Schema) -> list[Difference]:
    """Missing columns, columns of another type, and, outside bronze, columns too many."""
    found = []
    for name, kind in expected.items():
        if name not in actual.names:
            found.append(Difference(table, "missing_column", f"column {name} {kind} is missing"))
        elif not _fits(actual.field(name).type, kind):
            message = f"column {name} has type {actual.field(name).type}, expected {kind}"
            found.append(Difference(table, "column_type", message))
    if table not in BRONZE:
        extra = [name for name in actual.names if name not in expected]
        found.extend(Difference(table, "extra_column", f"column {name} is not in the contract") for name in extra)
    return found


def comparable(expected: Columns, actual: pa.Schema) -> dict[str, Type]:
    """The expected columns that the actual table has with a fitting type."""
    return {name: kind for name, kind in expected.items() if name in actual.names and _fits(actual.field(name).type, kind)}


def _fits(actual: pa.DataType, kind: Type) -> bool:
    if pa.types.is_dictionary(actual):
        return _fits(actual.value_type, kind)
    tests: dict[Type, bool] = {
        "STRING": pa.types.is_string(actual) or pa.types.is_large_string(actual) or pa.types.is_string_view(actual),
        "BIGINT": pa.types.is_int64(actual),
        "DOUBLE": pa.types.is_float64(actual),
        "BOOLEAN": pa.types.is_boolean(actual),
        "TIMESTAMP": pa.types.is_timestamp(actual),
        "DATE": pa.types.is_date32(actual),
        "STRUCT": True,
    }
    return tests[kind]


def plain_values(column: pa.Array, kind: Type) -> list[Any]:
    """An arrow column as Python values; timestamps as microseconds, dates as days, structs as True, NULL as None."""
    if kind == "STRUCT":
        return [valid or None for valid in column.is_valid().to_pylist()]
    if kind == "STRING":
        return _listed(column.cast(pa.string()))
    if kind == "TIMESTAMP":
        return _listed(column.cast(pa.timestamp("us", tz=column.type.tz), safe=False).cast(pa.int64()))
    if kind == "DATE":
        return _listed(column.cast(pa.int32()))
    return _listed(column)


def _listed(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values


# --- facts


def facts_of(columns: Columns, groups: Sequence[str], batches: Iterable[pa.RecordBatch]) -> dict[str, Any]:
    """The compact facts of an actual table, in the form in which the expected ones are stored."""
    facts = TableFacts(columns, groups)
    kinds = {name: "STRUCT" if name == PRESENCE_ONLY else kind for name, kind in columns.items()}
    for batch in batches:
        for start in range(0, batch.num_rows, 50_000):
            piece = batch.slice(start, 50_000)
            facts.add(piece.num_rows, {name: plain_values(piece.column(name), kind) for name, kind in kinds.items()})
    return facts.as_json()


def compare_facts(table: str, expected: Mapping[str, Any], actual: Mapping[str, Any]) -> Iterator[Difference]:
    """Differing row count, null counts, sums and group counts; only of columns that both sides have."""
    if expected["rows"] != actual["rows"]:
        yield Difference(table, "row_count", f"{actual['rows']} rows, expected {expected['rows']}")
    for name, found in actual["columns"].items():
        wanted = expected["columns"][name]
        if found["non_null"] != wanted["non_null"]:
            message = f"column {name} has {found['non_null']} values that are not NULL, expected {wanted['non_null']}"
            yield Difference(table, "facts", message)
        elif found["sum"] != wanted["sum"]:
            message = f"column {name} holds other values than expected: checksum {found['sum']}, expected {wanted['sum']}"
            yield Difference(table, "facts", message)
    if actual["group_by"]:
        yield from _compare_groups(table, expected, actual)


def _compare_groups(table: str, expected: Mapping[str, Any], actual: Mapping[str, Any]) -> Iterator[Difference]:
    wanted = {tuple(group): count for *group, count in expected["groups"]}
    found = {tuple(group): count for *group, count in actual["groups"]}
    differing = sorted((key for key in wanted.keys() | found.keys() if wanted.get(key, 0) != found.get(key, 0)), key=repr)
    if not differing:
        return
    kinds: list[Type] = [expected["columns"][name]["type"] for name in expected["group_by"]]
    examples = [
        f"{_named(expected['group_by'], kinds, key)}: {found.get(key, 0)} rows, expected {wanted.get(key, 0)}"
        for key in differing[:EXAMPLES]
    ]
    yield Difference(table, "facts", _with_examples(f"{len(differing)} group(s) of another size", len(differing), examples))


# --- rows


def rows_of(columns: Columns, batches: Iterable[pa.RecordBatch]) -> list[Values]:
    """All rows as tuples in the order of `columns`."""
    rows: list[Values] = []
    for batch in batches:
        rows.extend(zip(*(plain_values(batch.column(name), kind) for name, kind in columns.items()), strict=True))
    return rows


def compare_rows(table: str, columns: Columns, expected: Sequence[Values], actual: Sequence[Values]) -> Iterator[Difference]:
    """Rows missing, too many, or different under the same key. The order of rows means nothing; equal rows are counted."""
    if len(expected) != len(actual):
        yield Difference(table, "row_count", f"{len(actual)} rows, expected {len(expected)}")
    wanted, found = Counter(expected), Counter(actual)
    names, kinds = list(columns), list(columns.values())
    key_places = [names.index(name) for name in KEYS[table] if name in columns]
    missing, unexpected, pairs = _paired(list((wanted - found).elements()), list((found - wanted).elements()), key_places)
    different = [(w, f) for w, f in pairs if not all(map(_equal, w, f))]
    sides: tuple[tuple[Kind, str, list[Values]], ...] = (
        ("missing_row", "expected row(s) missing", missing),
        ("unexpected_row", "row(s) not expected", unexpected),
    )
    for kind, label, rows in sides:
        if rows:
            examples = [_named(names, kinds, row) for row in rows[:EXAMPLES]]
            yield Difference(table, kind, _with_examples(f"{len(rows)} {label}", len(rows), examples))
    if different:
        examples = [_difference_text(names, kinds, key_places, w, f) for w, f in different[:EXAMPLES]]
        yield Difference(table, "different_row", _with_examples(f"{len(different)} row(s) differ", len(different), examples))


def _paired(
    wanted: Sequence[Values], found: Sequence[Values], key_places: Sequence[int]
) -> tuple[list[Values], list[Values], list[tuple[Values, Values]]]:
    """Rows only wanted, rows only found, and pairs of rows with the same key."""
    by_key: defaultdict[Values, list[Values]] = defaultdict(list)
    for row in sorted(found, key=repr):
        by_key[tuple(row[i] for i in key_places)].append(row)
    missing, pairs = [], []
    for row in sorted(wanted, key=repr):
        candidates = by_key[tuple(row[i] for i in key_places)]
        if candidates:
            pairs.append((row, candidates.pop(0)))
        else:
            missing.append(row)
    return missing, [row for rows in by_key.values() for row in rows], pairs


def _equal(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, float) and isinstance(found, float):
        return math.isclose(wanted, found, rel_tol=FLOAT_TOLERANCE)
    return bool(wanted == found)


def _difference_text(names: Sequence[str], kinds: Sequence[Type], key_places: Sequence[int], wanted: Values, found: Values) -> str:
    keys = _named([names[i] for i in key_places], [kinds[i] for i in key_places], [wanted[i] for i in key_places])
    parts = [
        f"{name} is {_shown(f, kind)}, expected {_shown(w, kind)}"
        for name, kind, w, f in zip(names, kinds, wanted, found, strict=True)
        if not _equal(w, f)
    ]
    return f"{keys}: {'; '.join(parts)}"


# --- text


def _with_examples(headline: str, total: int, examples: Sequence[str]) -> str:
    label = "" if total <= len(examples) else f" (the first {len(examples)})"
    return "\n  ".join([headline + label, *examples])


def _named(names: Sequence[str], kinds: Sequence[Type], values: Sequence[Any]) -> str:
    return ", ".join(f"{name}={_shown(value, kind)}" for name, kind, value in zip(names, kinds, values, strict=True))


def _shown(value: Any, kind: Type) -> str:
    if value is None:
        return "NULL"
    if kind == "TIMESTAMP":
        return (datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=value)).isoformat()
    if kind == "DATE":
        return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
    return repr(value)
