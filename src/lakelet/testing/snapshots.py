"""Snapshots: the expected rows of a table in a file beside the test, written on demand and compared afterwards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelet.testing.comparing import compared
from lakelet.testing.rows import Row, columns_of

__tracebackhide__ = True

UPDATE_OPTION = "--lakelet-update-snapshots"


@dataclass(frozen=True)
class Snapshots:
    """The snapshots of one test: `folder` holds a YAML file per table; `write` replaces them instead of comparing."""

    folder: Path
    test: str
    write: bool = False

    def check(self, name: str, table: pa.Table, rows: list[dict[str, Any]]) -> None:
        """Compare a table with its snapshot, or write that. `rows` are the table's, sorted. Raises AssertionError with the difference."""
        import yaml

        file = self.folder / f"{_file_name(self.test)}-{_file_name(name)}.yml"
        if self.write:
            self.folder.mkdir(parents=True, exist_ok=True)
            file.write_text(yaml.safe_dump({"rows": [_plain(row) for row in rows]}, sort_keys=False, allow_unicode=True), encoding="utf-8")
            return
        if not file.is_file():
            raise AssertionError(f"{name} has no snapshot {file}\nLook at the rows, then write it: pytest {UPDATE_OPTION}")
        expected: list[Row] = yaml.safe_load(file.read_text(encoding="utf-8"))["rows"]
        columns = list(dict.fromkeys([*columns_of(expected), *table.column_names])) if expected else table.column_names
        unknown = [column for column in columns if column not in table.column_names]
        if unknown:
            raise AssertionError(f"{name} no longer has the columns {', '.join(unknown)} of its snapshot {file}")
        differing = compared(table, expected, columns)
        if differing:
            lines = differing.lines(name)
            raise AssertionError("\n".join([*lines, f"The snapshot is {file}; if the rows are right: pytest {UPDATE_OPTION}"]))


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.-]+", "_", text)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, Decimal) else value
