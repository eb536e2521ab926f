"""Rows of a table compared with the expected ones, given in a test or in the files of `snapshots/`: rows in, a readable difference out."""

from __future__ import annotations

import json
import math
import re
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelet.base.text import aligned, counted, moment_of, printable

__tracebackhide__ = True

Row = Mapping[str, Any]


def columns_of(rows: Sequence[Row]) -> list[str]:
    """The columns that the rows name, in order."""
    return list(dict.fromkeys(name for row in rows for name in row))


def columns_of_texts(rows: Sequence[Row]) -> list[str]:
    """The columns that hold texts beside single values of other types."""
    values = {name: [row[name] for row in rows if row.get(name) is not None] for name in columns_of(rows)}
    texts = {name: [isinstance(value, str) for value in found] for name, found in values.items()}
    mixed = [name for name, found in texts.items() if any(found) and not all(found)]
    return [name for name in mixed if not any(isinstance(value, list | Mapping | bytes) for value in values[name])]


_SHOWN = 20
_DIGITS = Context(prec=76)
_WIDE = 60


@dataclass(frozen=True)
class TableDifference:
    """Difference of a table from the expected rows: missing rows, unexpected rows, and the number of matching ones."""

    columns: tuple[str, ...]
    missing: tuple[Row, ...]
    unexpected: tuple[Row, ...]
    right: int

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected)

    def lines(self, name: str) -> list[str]:
        """The difference as lines: a headline, then each expected row above the row that is most like it, differing cells underlined."""
        counts = [f"{len(self.missing)} missing" * bool(self.missing), f"{len(self.unexpected)} unexpected" * bool(self.unexpected)]
        head = f"{name}: {' and '.join(filter(None, counts))}, {counted(self.right, 'row')} as expected"
        table: list[list[str]] = []
        for missing, unexpected in _row_pairs(self.missing, self.unexpected, self.columns)[:_SHOWN]:
            table += [["- expected", *map(shown, _differing_cells(missing, self.columns))]] if missing is not None else []
            table += [["+ found", *map(shown, _differing_cells(unexpected, self.columns))]] if unexpected is not None else []
            if missing is not None and unexpected is not None:
                marks = ["^" * len(shown(unexpected[c])) if canonical(missing[c]) != canonical(unexpected[c]) else "" for c in self.columns]
                table.append(["", *marks])
        more = max(len(self.missing), len(self.unexpected)) - _SHOWN
        return [head, *aligned(table, header=["", *self.columns], indent="  "), *([f"  … and {more} more"] if more > 0 else [])]


def difference(found: Iterable[Row], expected: Iterable[Row], columns: Sequence[str]) -> TableDifference:
    """Compare rows as multisets over `columns`; a column that a row does not have counts as NULL."""
    one, other = ([{c: row.get(c) for c in columns} for row in rows] for rows in (found, expected))
    have, want = Counter(map(canonical, one)), Counter(map(canonical, other))
    return TableDifference(
        tuple(columns), tuple(_surplus_rows(other, want - have)), tuple(_surplus_rows(one, have - want)), (have & want).total()
    )


def _surplus_rows(rows: Iterable[Row], surplus: Counter[Any]) -> Iterable[Row]:
    left = Counter(surplus)
    for row in rows:
        key = canonical(row)
        if left[key] > 0:
            left[key] -= 1
            yield row


def canonical(value: Any) -> Any:
    """A hashable value that is equal for equal SQL values: NaN equals NaN, 3.5 equals 3.50, moments are compared in UTC."""
    if isinstance(value, Mapping):
        return ("{}", tuple(sorted((str(key), canonical(inner)) for key, inner in value.items())))
    if isinstance(value, list | tuple):
        return ("[]", tuple(map(canonical, value)))
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc) if value.tzinfo else value
    return value


def _row_pairs(missing: Sequence[Row], unexpected: Sequence[Row], columns: Sequence[str]) -> list[tuple[Row | None, Row | None]]:
    """Pair each missing row with the unexpected one that shares most cells with it, if any does; then the other unexpected ones.

    No more missing rows are paired than are shown.
    """
    left, pairs = list(unexpected[: 10 * _SHOWN]), []
    for row in missing[:_SHOWN]:
        scores = [sum(canonical(row[c]) == canonical(other[c]) for c in columns) for other in left]
        best = max(range(len(left)), key=scores.__getitem__, default=None)
        alone = best is None or (scores[best] == 0 and len(columns) > 1)
        pairs.append((row, None if alone or best is None else left.pop(best)))
    return [*pairs, *((None, row) for row in left)]


def _differing_cells(row: Row, columns: Sequence[str]) -> list[Any]:
    return [row[c] for c in columns]


def shown(value: Any) -> str:
    """A cell as text: texts in quotes, so that '1' and 1 differ to the eye."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        text = value.isoformat().replace("+00:00", "Z")
    elif isinstance(value, Decimal | date):
        text = str(value)
    elif isinstance(value, str | bytes):
        text = repr(value)
    else:
        text = json.dumps(value, default=str, ensure_ascii=False)
    text = printable(text)
    return text if len(text) <= _WIDE else text[: _WIDE - 1] + "…"


def converted(value: Any, kind: pa.DataType) -> Any:
    """A value as it is written in YAML or Python, as a column of that type holds it; unchanged where it does not fit.

    Texts become dates, moments and decimals; numbers and switches become text; moments without a zone are in UTC.
    """
    if value is None:
        return None
    if pa.types.is_struct(kind) and isinstance(value, Mapping):
        return {field.name: converted(value.get(field.name), field.type) for field in kind} | {
            key: inner for key, inner in value.items() if kind.get_field_index(key) < 0
        }
    if pa.types.is_map(kind) and isinstance(value, Mapping | list):
        pairs = value.items() if isinstance(value, Mapping) else value
        return {converted(key, kind.key_type): converted(inner, kind.item_type) for key, inner in pairs}
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and isinstance(value, list):
        return [converted(inner, kind.value_type) for inner in value]
    return _canonical_scalar(value, kind)


def _canonical_scalar(value: Any, kind: pa.DataType) -> Any:
    try:
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
        if pa.types.is_decimal(kind) and isinstance(value, int | float | str) and not isinstance(value, bool):
            return Decimal(str(value))
        if pa.types.is_floating(kind) and isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return struct.unpack("f", struct.pack("f", value))[0] if kind.bit_width == 32 else float(value)
        if pa.types.is_timestamp(kind) and isinstance(value, str | date):
            moment = moment_of(value) if isinstance(value, str) else value
            moment = moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day)
            return moment if kind.tz is None or moment.tzinfo else moment.replace(tzinfo=timezone.utc)
        if pa.types.is_date(kind) and isinstance(value, str | datetime):
            return value.date() if isinstance(value, datetime) else date.fromisoformat(value)
        if pa.types.is_binary(kind) and isinstance(value, str):
            return value.encode()
    except (ValueError, InvalidOperation, OverflowError):
        return value
    return value


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of an Arrow table as dictionaries; maps as dictionaries too."""
    names, columns = table.column_names, [[converted(v, column.type) for v in column.to_pylist()] for column in table.columns]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)] if columns else []


def compared(found: pa.Table, expected: Sequence[Row], columns: Sequence[str], variants: Collection[str] = ()) -> TableDifference:
    """Compare a table with rows as they are written in a test, which take the types of its columns; `variants` hold JSON text."""
    kinds = {field.name: field.type for field in found.schema if field.name not in variants}
    typed = [
        {name: _expected_value(row.get(name), kinds[name]) if name in kinds else row.get(name) for name in columns} for row in expected
    ]
    rows = rows_of(found.select(list(columns)))
    parsed = [{k: json.loads(v) if k in variants and v is not None else v for k, v in row.items()} for row in rows] if variants else rows
    return difference(parsed, typed, columns)


def _expected_value(value: Any, kind: pa.DataType) -> Any:
    """`converted`, and a decimal rounded to the scale of its column."""
    found = converted(value, kind)
    if not (pa.types.is_decimal(kind) and isinstance(found, Decimal) and found.is_finite()):
        return found
    return found.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, _DIGITS)


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
            file.write_text(
                yaml.safe_dump({"rows": [_plain_value(row) for row in rows]}, sort_keys=False, allow_unicode=True), encoding="utf-8"
            )
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


def _plain_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain_value(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain_value(inner) for inner in value]
    return str(value) if isinstance(value, Decimal) else value
