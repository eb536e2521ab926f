"""Compact facts about a table: enough to tell two contents apart without keeping rows, and simple enough for any engine.

Per column the number of non-null values and a sum that does not depend on the order of rows:

- STRING: the first 15 hexadecimal digits of the MD5 of the UTF-8 text as a number, added up modulo 2^61
- BIGINT: the values; DOUBLE: round(value * 1,000,000); BOOLEAN: how many are true
- TIMESTAMP: microseconds since 1970 in UTC; DATE: days since 1970
- STRUCT, and any column compared by presence only: no sum
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sampledata.contract import PRESENCE_ONLY, Columns, Type

STRING_MODULUS = 2**61
NOT_A_NUMBER = 10**30  # an infinite value or NaN is never expected, and must show in the sum


@lru_cache(maxsize=20_000)
def text_number(text: str) -> int:
    """First 15 hexadecimal digits of the MD5 of the text."""
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:8], "big") >> 4


def _millionths(value: float) -> int:
    return round(value * 1_000_000) if math.isfinite(value) else NOT_A_NUMBER


NUMBERS: Mapping[Type, Callable[[Any], int]] = {
    "STRING": text_number,
    "BIGINT": int,
    "DOUBLE": _millionths,
    "BOOLEAN": int,
    "TIMESTAMP": int,
    "DATE": int,
}


@dataclass
class ColumnFacts:
    """Facts of one column. `total` is None where only presence counts."""

    kind: Type
    non_null: int = 0
    total: int | None = 0

    def add(self, values: Iterable[Any]) -> None:
        present = [value for value in values if value is not None]
        self.non_null += len(present)
        if self.total is not None:
            self.total += sum(map(NUMBERS[self.kind], present))
            if self.kind == "STRING":
                self.total %= STRING_MODULUS


class TableFacts:
    """Facts of a whole table, fed column-wise. Timestamps come as microseconds, dates as days, structs as anything but None.

    Args:
        columns: the columns to look at.
        groups: columns whose combinations of values are counted too; empty for none.
    """

    def __init__(self, columns: Columns, groups: Sequence[str] = ()) -> None:
        self.rows = 0
        self.columns = {name: ColumnFacts(kind, total=None if _presence(name, kind) else 0) for name, kind in columns.items()}
        self._group_columns = tuple(groups)
        self._groups: Counter[tuple[Any, ...]] = Counter()

    def add(self, rows: int, values: Mapping[str, Sequence[Any]]) -> None:
        """Take in `rows` rows, given as one sequence of values per column."""
        self.rows += rows
        for name, facts in self.columns.items():
            facts.add(values[name])
        if self._group_columns:
            self._groups.update(zip(*(values[name] for name in self._group_columns), strict=True))

    def as_json(self) -> dict[str, Any]:
        """`rows`, `columns` (type, non_null, sum), and `groups`: lists of the group's values and its count, sorted."""
        columns = {name: {"type": f.kind, "non_null": f.non_null, "sum": f.total} for name, f in self.columns.items()}
        groups = sorted(([*group, count] for group, count in self._groups.items()), key=repr)
        return {"rows": self.rows, "columns": columns, "group_by": list(self._group_columns), "groups": groups}


def _presence(name: str, kind: Type) -> bool:
    return kind == "STRUCT" or name == PRESENCE_ONLY
