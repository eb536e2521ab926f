"""Rows on stdout: as a table that fits the terminal, as CSV, JSON or Parquet."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelet.base.errors import LakeletError
from lakelet.base.text import aligned, counted, first_columns, printable, width_of
from lakelet.cli.lines import Line, write_lines

if TYPE_CHECKING:
    from lakelet.inspection.inspector import TableRows

SHOWN_ROWS = 20
WIDEST_CELL = 60
NARROWEST_CUT = 12
"""Cells are cut down to so many columns of the terminal before columns are left out."""
_GAP = 2
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")


class Form(str, Enum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


Format = Annotated[Form | None, typer.Option("--format", help="How the rows are written (default: table).", show_default=False)]
Limit = Annotated[
    int | None, typer.Option("--limit", min=0, metavar="N", help=f"At most N rows (default: {SHOWN_ROWS}; all unless a table).")
]


def form_of(given: Form | None, as_json: bool) -> Form:
    """The form that `--format` and `--json` ask for together. Raises USAGE where they contradict each other."""
    if as_json and given not in (None, Form.JSON):
        raise LakeletError("USAGE", f"--json and --format {given.value if given else ''} contradict each other")
    return Form.JSON if as_json else given or Form.TABLE


def limit_of(limit: int | None, form: Form) -> int | None:
    """How many rows are read: all unless they are asked for, or shown to people."""
    return limit if limit is not None or form is not Form.TABLE else SHOWN_ROWS


def show_rows(found: TableRows, form: Form, limit: int | None) -> None:
    """Write rows, at most `limit` of them, or as many as the form shows by default."""
    allowed = limit_of(limit, form)
    if form is Form.PARQUET:
        _write_parquet(found, allowed)
        return
    rows = islice(found.rows, allowed)
    if form is Form.JSON:
        _write_array(rows)
    elif form is Form.CSV:
        _write_csv(found.columns, rows)
    else:
        _write_table(found, list(rows), limit)


def _write_array(rows: Iterable[Mapping[str, Any]]) -> None:
    """One JSON array, written row by row."""
    sys.stdout.write("[")
    for number, row in enumerate(rows):
        sys.stdout.write((",\n " if number else "") + json.dumps(row, ensure_ascii=False))
    sys.stdout.write("]\n")


def _write_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """A header, then the rows; NULL is an empty field, an empty text a quoted one, nested values are JSON."""
    for values in chain([columns], ([row.get(column) for column in columns] for row in rows)):
        sys.stdout.write(",".join(map(_csv_field, values)) + "\n")


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list, bool)) else str(value)
    return '"' + text.replace('"', '""') + '"' if not text or any(sign in text for sign in ',"\r\n') else text


def _write_parquet(found: TableRows, limit: int | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if sys.stdout.isatty():
        raise LakeletError("USAGE", "Parquet is not text for a terminal", todo="Write it to a file: --format parquet > rows.parquet")
    table = found.batches.read_all() if found.batches is not None else pa.Table.from_pylist(list(found.rows))
    sink = pa.BufferOutputStream()
    pq.write_table(table if limit is None else table.slice(0, limit), sink)
    sys.stdout.buffer.write(sink.getvalue())
    sys.stdout.buffer.flush()


# --- tables for people ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Grid:
    """`cells`: the header, the types, then the rows; `right`: the columns that are flush right; `cut`: columns left out."""

    cells: list[list[str]]
    right: tuple[int, ...]
    cut: int


def _write_table(found: TableRows, rows: Sequence[Mapping[str, Any]], limit: int | None) -> None:
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    grid = fitted(found.columns, found.types, [[row.get(column) for column in found.columns] for row in rows], width)
    lines = aligned(grid.cells[1:], header=grid.cells[0], right=grid.right)
    styles = ["heading", "quiet" if found.types else ""]
    if sys.stdout.isatty():
        write_lines([Line(line, style) for line, style in zip(lines[:2], styles, strict=False)], sys.stdout)
        lines = lines[2:]
    for line in lines:
        sys.stdout.write(line + "\n")
    notes = _notes_below_table(len(rows), found, limit, grid)
    if notes:
        sys.stdout.flush()
        write_lines([Line("; ".join(notes), "quiet")], sys.stderr)


def _notes_below_table(shown: int, found: TableRows, limit: int | None, grid: _Grid) -> list[str]:
    """What is left out, and how to see it."""
    total, columns = found.total, len(found.columns)
    notes = []
    more = ", more with --limit N" if limit is None else ""
    if found.more:
        notes.append(f"{shown:,} of more than {counted(shown, 'row')}{more}")
    elif total is None and shown == limit_of(limit, Form.TABLE):
        notes.append(f"The first {counted(shown, 'row')}{more or ', there may be more'}")
    elif not shown and not total:
        notes.append("No rows.")
    elif total is not None and total > shown:
        notes.append(f"{shown:,} of {counted(total, 'row')}{more}")
    if grid.cut:
        notes.append(f"{columns:,} columns ({columns - grid.cut:,} shown), all with --format csv")
    return notes


def fitted(columns: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None) -> _Grid:
    """The table within `width` columns of the terminal: long cells are cut, the longest first, then the last columns are left out.

    None for what is not a terminal: nothing is cut.
    """
    heads = [[printable(column) for column in columns], *([[printable(kind) for kind in types]] if types else [])]
    cells = [*heads, *([cell_text(value) for value in row] for row in rows)]
    numbers = tuple(at for at in range(len(columns)) if _is_number(types[at] if types else None, [row[at] for row in rows]))
    if width is None or not columns:
        return _Grid(cells, numbers, 0)
    widths = [max(width_of(row[at]) for row in cells) for at in range(len(columns))]
    cap = WIDEST_CELL
    while cap > NARROWEST_CUT and _total_width(widths, cap) > width:
        cap -= 1
    kept = len(columns)
    while kept > 1 and _total_width(widths[:kept], cap) + (0 if kept == len(columns) else _GAP + 1) > width:
        kept -= 1
    cap = min(cap, width)
    short = [[_cut_cell(cell, cap) for cell in row[:kept]] + (["…"] if kept < len(columns) else []) for row in cells]
    return _Grid(short, tuple(at for at in numbers if at < kept), len(columns) - kept)


def _is_number(kind: str | None, values: Sequence[Any]) -> bool:
    """Whether a column is flush right: by its type, else by its values."""
    if kind is not None:
        return kind in _NUMBERS or kind.startswith("decimal(")
    return bool(values) and all(isinstance(value, (int, float, type(None))) for value in values)


def _total_width(widths: Sequence[int], cap: int) -> int:
    return sum(min(width, cap) for width in widths) + _GAP * (len(widths) - 1)


def _cut_cell(text: str, cap: int) -> str:
    return text if width_of(text) <= cap else first_columns(text, cap - 1) + "…"


def cell_text(value: Any) -> str:
    """One value as a cell of a table for people."""
    text = "NULL" if value is None else json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list, bool)) else str(value)
    return printable(text)
