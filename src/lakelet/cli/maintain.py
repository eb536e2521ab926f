"""maintain: OPTIMIZE, ZORDER and VACUUM of the stored tables, as their properties say."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lakelet.base.errors import ExitCode
from lakelet.base.text import aligned, counted, printable
from lakelet.cli import options as o
from lakelet.cli.console import shown_phases
from lakelet.cli.lines import Line, write_lines, write_note
from lakelet.cli.storage import storage_root

if TYPE_CHECKING:
    from lakelet.maintenance.results import Amount, MaintenanceResult

_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB"))


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(maintain)


def maintain(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Datasets or globs; all without any.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing; say what would be done.")] = False,
    storage: o.StorageDir = None,
    as_json: o.AsJson = False,
) -> None:
    """Put small files together, sort them, and remove old ones. Tables are sorted as declared; a file goes if no kept version needs it."""
    from lakelet.maintenance.maintain import maintain as maintained

    root = storage_root(storage)
    with shown_phases(sys.stderr):
        found = maintained(root, o.names(names), dry_run=dry_run, note=write_note)
    if as_json:
        sys.stdout.write(json.dumps([table.as_json() for table in found], indent=2, ensure_ascii=False) + "\n")
    elif not found:
        write_note(f"Nothing is stored in {root} yet.")
    else:
        _print_maintained(found, dry_run)
    for table in found:
        if table.error is not None:
            write_lines([Line(line, "bad") for line in table.error.lines()], sys.stderr)
    if any(table.error is not None for table in found):
        raise typer.Exit(int(ExitCode.FAILED))


def _print_maintained(found: list[MaintenanceResult], dry_run: bool) -> None:
    rows = [
        (printable(t.name), _file_change(t.before, t.after, dry_run), _removed_text(t.removed), printable("; ".join(_result_words(t))))
        for t in found
    ]
    for line in aligned(rows, header=("dataset", "files before → after", "deleted", "")):
        sys.stdout.write(line + "\n")
    optimized, removed = sum(t.job is not None for t in found), sum(t.removed.files for t in found)
    freed = _size_text(sum(t.removed.bytes for t in found))
    would = "would be " if dry_run else ""
    summary = f"{counted(optimized, 'table')} {would}optimized, {counted(removed, 'old file')} ({freed}) {would}deleted"
    write_lines([Line(summary + ("; nothing was written" if dry_run else ""), "good")], sys.stderr)


def _result_words(table: MaintenanceResult) -> list[str]:
    """What was done and why, or why nothing was."""
    if table.error is not None:
        return [f"failed: {table.error.code}"]
    what = ""
    if table.job is not None:
        by = f" by {', '.join(table.job.columns)}" if table.job.columns else ""
        what = f"{table.job.how.value}{by}: "
    elif table.left_alone:
        what = "left alone: "
    return [what + table.why, *table.notes]


def _file_change(before: Amount | None, after: Amount | None, dry_run: bool) -> str:
    if before is None or after is None:
        return "-"
    if before == after:
        return f"{before.files:,} ({_size_text(before.bytes)})"
    size = "" if dry_run else f" ({_size_text(after.bytes)})"
    return f"{before.files:,} ({_size_text(before.bytes)}) → {'about ' if dry_run else ''}{after.files:,}{size}"


def _removed_text(amount: Amount) -> str:
    return f"{amount.files:,} ({_size_text(amount.bytes)})" if amount.files else "-"


def _size_text(number: int) -> str:
    for unit, name in _UNITS:
        if number >= unit:
            return f"{number / unit:,.1f} {name}"
    return f"{number} B"
