"""Differences of a comparison as values: rows of both sides as the same exact texts, and which keys differ. Pure.

Times are in UTC to the microsecond, decimals have all digits, nested values are JSON.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from lakelet.base.names import quoted

ExactText = str | None
"""A value in its exact text (see `texts`), None for NULL."""


@dataclass(frozen=True)
class BothSides:
    """Something that the two sides have differently; None for a side that does not have it."""

    local: Any
    hosted: Any


@dataclass(frozen=True)
class KeyDifference:
    """One key whose rows differ. `columns`: values by column, where each side has one row; `local_rows`, `hosted_rows`: how many it has."""

    key: Mapping[str, ExactText]
    local_rows: int
    hosted_rows: int
    columns: Mapping[str, BothSides]


@dataclass(frozen=True)
class RowComparison:
    """Rows that were compared.

    Attributes:
        key: the columns that identify a row.
        compared: how many rows of the workspace were compared.
        complete: whether all rows of both sides were compared; else only a sample of keys of the workspace was searched in the local table.
        differing: how many keys differ.
        sample: the first of them.
        left_out: columns that were not compared: on one side only, or of a type without an exact text.
    """

    key: tuple[str, ...]
    compared: int
    complete: bool
    differing: int
    sample: tuple[KeyDifference, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class DatasetDifference:
    """One dataset on both sides.

    Attributes:
        name: full local name, or that in the workspace where only that side has it.
        hosted_name: full name in the workspace.
        only: `local` or `hosted` where only that side has it.
        failed: why the workspace did not answer.
        columns: type texts of Spark, of the columns that differ.
        rows: numbers of rows.
        rules: (passed, failed) by expectation, where the two differ.
        rows_compared: None where rows were not compared.
        notes: what could not be compared, and why.
    """

    name: str
    hosted_name: str | None
    only: str | None = None
    failed: str | None = None
    columns: Mapping[str, BothSides] | None = None
    rows: BothSides | None = None
    rules: Mapping[str, BothSides] | None = None
    rules_compared: int = 0
    rows_compared: RowComparison | None = None
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether nothing that was compared differs."""
        counts = self.rows is None or self.rows.local == self.rows.hosted
        return (
            not self.only and not self.columns and not self.rules and counts and not (self.rows_compared and self.rows_compared.differing)
        )

    def as_json(self) -> dict[str, Any]:
        rows = self.rows_compared
        return {
            "dataset": self.name,
            "hosted": self.hosted_name,
            "equal": self.equal,
            "only": self.only,
            "failed": self.failed,
            "columns": {name: vars(sides) for name, sides in (self.columns or {}).items()},
            "rows": self.rows and vars(self.rows),
            "expectations": {name: vars(sides) for name, sides in (self.rules or {}).items()},
            "expectations_compared": self.rules_compared,
            "keys": rows
            and {
                "columns": list(rows.key),
                "compared_rows": rows.compared,
                "complete": rows.complete,
                "differing": rows.differing,
                "left_out": list(rows.left_out),
                "sample": [{**vars(one), "columns": {n: vars(s) for n, s in one.columns.items()}} for one in rows.sample],
            },
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Comparison:
    """All datasets that were compared."""

    target: str
    pipeline: str
    datasets: tuple[DatasetDifference, ...]

    @property
    def equal(self) -> bool:
        return all(one.equal for one in self.datasets)

    def as_json(self) -> dict[str, Any]:
        """The facts as JSON values, in the form of `lakelet diff --remote --json`."""
        return {"target": self.target, "pipeline": self.pipeline, "equal": self.equal, "datasets": [one.as_json() for one in self.datasets]}


Row = tuple[ExactText, ...]


class RowsByKey:
    """Rows of one side by key. `key`: positions of the columns that identify a row."""

    def __init__(self, key: Sequence[int]) -> None:
        self._key = tuple(key)
        self.rows: dict[Row, Counter[Row]] = {}
        self.number = 0

    def key_of(self, row: Row) -> Row:
        return tuple(row[position] for position in self._key)

    def add(self, rows: Iterable[Row]) -> RowsByKey:
        for row in rows:
            self.rows.setdefault(self.key_of(row), Counter())[row] += 1
            self.number += 1
        return self


def differences(local: RowsByKey, hosted: RowsByKey, columns: Sequence[str], key: Sequence[str], *, complete: bool) -> list[KeyDifference]:
    """The keys whose rows are not the same, in the order of their texts.

    complete: whether both sides are whole. Else `hosted` is a sample, and of any of its keys it may lack rows; `local` has the rows that
    the sample should have.
    """
    found = []
    for each in sorted(local.rows.keys() | hosted.rows.keys(), key=_sortable_key):
        here, there = local.rows.get(each, Counter()), hosted.rows.get(each, Counter())
        if here == there or (not complete and there and not there - here):
            continue
        found.append(KeyDifference(dict(zip(key, each, strict=True)), here.total(), there.total(), _differing_values(here, there, columns)))
    return found


def _differing_values(here: Counter[Row], there: Counter[Row], columns: Sequence[str]) -> Mapping[str, BothSides]:
    if here.total() != 1 or there.total() != 1:
        return {}
    ours, theirs = next(iter(here)), next(iter(there))
    return {name: BothSides(a, b) for name, a, b in zip(columns, ours, theirs, strict=True) if a != b}


def _sortable_key(key: Row) -> tuple[tuple[bool, int, str], ...]:
    """NULL first, numbers by their length before their digits."""
    return tuple((value is not None, len(value) if value and value.lstrip("-").isdigit() else 0, value or "") for value in key)


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SYNONYMS = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float", "dec": "decimal", "void": "null"}
_WORD = re.compile(r"(?<![\w.])(" + "|".join(_SYNONYMS) + r")(?![\w:])")
_NESTED = ("struct", "array", "map")
_PLAIN = ("tinyint", "smallint", "int", "bigint", "string", "varchar", "char", "date", "decimal")


def type_text(text: str) -> str:
    """A type as Spark writes it in short: `STRUCT<a: INTEGER NOT NULL>` is `struct<a:int>`. Names of nested fields keep their case."""
    text = re.sub(r"\s+(not null|collate \w+)", "", text.strip(), flags=re.IGNORECASE)
    text = re.sub(r"\s*([<>,:()])\s*", r"\1", text)
    pieces = re.split(r"([A-Za-z_0-9`\-]+:)", text)  # names of fields are kept, the words of types are not
    return "".join(piece if piece.endswith(":") else _WORD.sub(lambda found: _SYNONYMS[found[1]], piece.lower()) for piece in pieces)


def comparable(kind: str) -> bool:
    """Whether values of a type (as `type_text` gives it) have an exact text on both sides."""
    base = _base_type(kind)
    return base in _PLAIN or base in _NESTED or base in ("boolean", "float", "double", "timestamp", "timestamp_ntz", "binary")


def selected(column: str, kind: str) -> str:
    """The SQL expression that the workspace is asked for to get a column's exact text."""
    base, name = _base_type(kind), quoted(column)
    if base == "timestamp":
        return f"unix_micros({name})"  # whatever time zone the warehouse has
    if base == "binary":
        return f"hex({name})"
    return f"CAST({name} AS STRING)" if base == "timestamp_ntz" else name


def workspace_text(kind: str) -> Callable[[str], str]:
    """Turns what the workspace answers for a non-null value of a type into its exact text."""
    return _WORKSPACE_TEXTS.get(_base_type(kind), _json_text if _base_type(kind) in _NESTED else str)


def local_text(kind: str) -> Callable[[Any], str]:
    """Turns a non-null value in the form of `lakelet show --json` into its exact text."""
    return _LOCAL_TEXTS.get(_base_type(kind), _json_text if _base_type(kind) in _NESTED else str)


def order_of(kind: str) -> Callable[[str], Any] | None:
    """Turns an exact text into a value that sorts as the workspace sorts the type; None for a type that is sorted in another way."""
    return _SORT_ORDERS.get(_base_type(kind))


def _base_type(kind: str) -> str:
    return re.split(r"[(<]", kind, maxsplit=1)[0]


def _microseconds_text(text: str) -> str:
    try:
        return _time_text(_EPOCH + timedelta(microseconds=int(text)))
    except OverflowError:  # a year that Python's calendar does not have
        return f"{text} us"


def _utc_text(value: str) -> str:
    return _time_text(datetime.fromisoformat(value.replace("Z", "+00:00")))


def _time_text(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _local_time_text(text: str) -> str:
    whole, _, fraction = text.replace(" ", "T").partition(".")
    return f"{whole}.{fraction.ljust(6, '0')}"


def _double_text(value: Any) -> str:
    return repr(float(value))


def _float_text(value: Any) -> str:
    number = float(value)
    try:
        return repr(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return repr(number)


def _json_text(value: Any) -> str:
    found = json.loads(value) if isinstance(value, str) else value
    return json.dumps(_without_nulls(found), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _without_nulls(value: Any) -> Any:
    """Fields that are NULL count as absent: `to_json` of Spark leaves them out."""
    if isinstance(value, Mapping):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


_WORKSPACE_TEXTS: Mapping[str, Callable[[str], str]] = {
    "timestamp": _microseconds_text,
    "timestamp_ntz": _local_time_text,
    "double": _double_text,
    "float": _float_text,
    "binary": str.lower,
}
_LOCAL_TEXTS: Mapping[str, Callable[[Any], str]] = {
    "timestamp": _utc_text,
    "timestamp_ntz": _local_time_text,
    "double": _double_text,
    "float": _float_text,
    "binary": lambda value: base64.b64decode(value).hex(),
    "boolean": lambda value: "true" if value else "false",
}
_SORT_ORDERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    **dict.fromkeys(("string", "date", "timestamp"), lambda text: text.encode()),
    "decimal": Decimal,
}
