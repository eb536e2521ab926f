"""diff: tables here and on Databricks side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from lakelet.base.errors import ExitCode
from lakelet.base.text import aligned, counted, listed, printable
from lakelet.cli import options as o
from lakelet.cli.lines import write_data, write_note
from lakelet.cli.remote import PipelineKey, Remote, opened
from lakelet.cli.storage import storage_root

if TYPE_CHECKING:
    from lakelet.deploy.differences import BothSides, DatasetDifference, RowComparison


_SHOWN_COLUMNS = 6

Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Datasets; without one all are compared.", show_default=False)]
Key = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="COL,...", help="Columns that identify a row (default: the keys of change tables, else all columns)."),
]
MostRows = Annotated[int, typer.Option("--rows", min=0, metavar="N", help="Compare at most N rows of each dataset; 0 only counts them.")]
WarehouseId = Annotated[str | None, typer.Option("--warehouse", metavar="ID", help="SQL warehouse; needed if there are several.")]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(diff)


def diff(
    name: Names = None,
    remote: Remote = False,
    target: o.Target = None,
    pipeline: PipelineKey = None,
    key: Key = None,
    rows: MostRows = 10_000,
    warehouse: WarehouseId = None,
    storage: o.StorageDir = None,
    as_json: o.AsJson = False,
) -> None:
    """Compare the local tables with those of a deployed pipeline: schema, rows, counts of expectations, keys that differ."""
    from lakelet.base.errors import LakeletError

    if not remote:
        raise LakeletError("USAGE", "diff compares with a workspace", todo="Write lakelet diff --remote.")
    root = storage_root(storage)
    where = opened(target)
    chosen = where.pipeline(pipeline)
    from lakelet.deploy.comparison import ComparisonRequest, compare

    found = compare(root, where, chosen, ComparisonRequest(tuple(name or ()), o.names(key), rows, warehouse), notice=write_note)
    if as_json:
        write_data(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
    else:
        for one in found.datasets:
            for line in _difference_lines(one):
                write_data(printable(line))
        different = sum(not one.equal for one in found.datasets)
        verdict = f"{different:,} of them different" if different else "all equal" if found.datasets else "nothing to compare"
        write_note(f"{counted(len(found.datasets), 'dataset')} compared with {found.pipeline} in {found.target}: {verdict}")
    raise typer.Exit(int(ExitCode.COMPLETED if found.equal else ExitCode.FAILED))


def _difference_lines(one: DatasetDifference) -> Iterator[str]:
    """One dataset: a headline, then what differs and what was not compared."""
    if one.only:
        yield f"DIFFERENT  {one.name}: only {'here' if one.only == 'local' else 'in the workspace'}"
        return
    facts = [_rows_text(one)]
    facts += [counted(one.rules_compared, "expectation")] if one.rules_compared else []
    if one.rows_compared:
        facts.append(f"{one.rows_compared.compared:,} compared by {_key_text(one.rows_compared)}")
    other = f" and {one.hosted_name}" if one.hosted_name != one.name else ""
    yield f"{'equal    ' if one.equal else 'DIFFERENT'}  {one.name}{other}: {one.failed or ', '.join(fact for fact in facts if fact)}"
    yield from _side_by_side("column", one.columns or {})
    yield from _side_by_side("expectation (passed, failed)", one.rules or {})
    if one.rows_compared:
        yield from _key_lines(one.rows_compared)
    yield from (f"  not compared: {text}" for text in one.notes)


def _rows_text(one: DatasetDifference) -> str:
    if one.rows is None:
        return ""
    same = one.rows.local == one.rows.hosted
    return counted(one.rows.local, "row") if same else f"{counted(one.rows.local, 'row')} here, {one.rows.hosted:,} in the workspace"


def _key_text(rows: RowComparison) -> str:
    return "all columns" if len(rows.key) > 3 else ", ".join(rows.key)


def _side_by_side(what: str, found: Mapping[str, BothSides]) -> Iterator[str]:
    if found:
        yield from aligned(
            [(name, _side_text(s.local), _side_text(s.hosted)) for name, s in found.items()],
            header=(what, "here", "workspace"),
            indent="  ",
        )


def _side_text(value: object) -> str:
    return "-" if value is None else ", ".join(f"{number:,}" for number in value) if isinstance(value, (tuple, list)) else str(value)


def _key_lines(rows: RowComparison) -> Iterator[str]:
    if rows.differing:
        of = "" if rows.complete else f" of the {rows.compared:,} rows that were looked for here"
        yield f"  {counted(rows.differing, 'differing key')}{of}"
    for one in rows.sample:
        key = ", ".join(f"{name}={_cell_value(value)}" for name, value in list(one.key.items())[:_SHOWN_COLUMNS])
        if not one.local_rows or not one.hosted_rows:
            yield f"    {key}: only {'in the workspace' if not one.local_rows else 'here'}"
        elif one.columns:
            shown = [f"{name} {_cell_value(s.local)} here, {_cell_value(s.hosted)} in the workspace" for name, s in one.columns.items()]
            yield f"    {key}: {'; '.join(shown[:_SHOWN_COLUMNS])}"
        else:
            yield f"    {key}: {counted(one.local_rows, 'row')} here, {one.hosted_rows:,} in the workspace"
    if len(rows.sample) < rows.differing:
        yield f"    and {rows.differing - len(rows.sample):,} more"
    if rows.left_out:
        yield f"  not compared: values of {listed(rows.left_out, _SHOWN_COLUMNS)}"
    if not rows.complete and not rows.differing:
        yield "  not compared: rows beyond the sample; a larger one with --rows N"


def _cell_value(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= 40 else text[:39] + "…"
