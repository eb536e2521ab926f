"""schema: the versions of the columns that were inferred for a dataset, from files or by `from_json`, and going back to an earlier one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelet.base.errors import LakeletError
from lakelet.base.text import aligned
from lakelet.cli import options as o
from lakelet.cli.lines import Line, write_lines
from lakelet.cli.storage import storage_root

if TYPE_CHECKING:
    from lakelet.inspection.schema_history import ColumnDifference, SourceHistory

_AFTER = (
    "Columns that the table has already stay in it, NULL in new rows. A file that brings them again evolves the schema again, or has them\n"
    "rescued, as cloudFiles.schemaEvolutionMode says. To rebuild the table without them: lakelet run --full-refresh {name}"
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(schema)


def schema(
    name: Annotated[str, typer.Argument(metavar="DATASET", help="A streaming table that reads files.")],
    diff: Annotated[tuple[int, int] | None, typer.Option("--diff", metavar="A B", help="What changed from version A to version B.")] = None,
    rollback: Annotated[int | None, typer.Option("--rollback", metavar="N", help="Go back to the columns of version N.")] = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="SOURCE", help="Of several sources this one: FLOW/NUMBER, FLOW/from_json:KEY.")
    ] = None,
    storage: o.StorageDir = None,
    as_json: o.AsJson = False,
) -> None:
    """Show how the inferred columns of a dataset changed. `--rollback` goes back to an earlier version."""
    from lakelet.inspection import schema_history

    if diff is not None and rollback is not None:
        raise LakeletError("USAGE", "--diff and --rollback contradict each other")
    root = storage_root(storage)
    if rollback is not None:
        done = schema_history.roll_back(root, name, rollback, source=source)
        if as_json:
            changes = [change.as_json() for change in done.changes]
            _print_json({"source": done.source, "version": done.number, "equals": rollback, "changes": changes})
        else:
            _print_lines(_change_lines(done.changes))
        text = f"Version {done.number} of {done.source} equals version {rollback}; the next update starts with it."
        write_lines([Line(text, "good"), *(Line(line, "quiet") for line in _AFTER.format(name=name).splitlines())], sys.stderr)
    elif diff is not None:
        changes_found = schema_history.differences(root, name, *diff, source=source)
        if as_json:
            _print_json([change.as_json() for change in changes_found])
        else:
            _print_lines(_change_lines(changes_found))
            if not changes_found:
                write_lines([Line("No difference.", "quiet")], sys.stderr)
    else:
        chosen = [h for h in schema_history.read_history(root, name) if source in (None, h.source, h.source.rpartition("/")[2])]
        _show_histories(chosen, name, as_json)


def _show_histories(histories: list[SourceHistory], name: str, as_json: bool) -> None:
    if as_json:
        _print_json([history.as_json() for history in histories])
        return
    if not histories:
        write_lines([Line(f"{name} has no source whose columns were inferred.", "quiet")], sys.stderr)
    for history in histories:
        _print_lines([f"{history.source}  {history.location}"])
        for version in history.versions:
            origin = [version.at[:19].replace("T", " ") if version.at else None, version.reason, version.file]
            _print_lines([f"  version {version.number}  " + "  ".join(part for part in origin if part)])
            _print_lines(f"    {line}" for line in _change_lines(version.changes))


def _change_lines(changes: Iterable[ColumnDifference]) -> list[str]:
    """One line per change: `+ name type`, `- name type`, `~ name type → type`."""
    rows = []
    for change in changes:
        sign = "+" if change.before is None else "-" if change.after is None else "~"
        kind = " → ".join(part for part in (change.before, change.after) if part is not None)
        rows.append((sign, change.name, kind))
    return [line.rstrip() for line in aligned(rows)]


def _print_json(value: Any) -> None:
    _print_lines([json.dumps(value, indent=2, ensure_ascii=False)])


def _print_lines(lines: Iterable[str]) -> None:
    sys.stdout.writelines(line + "\n" for line in lines)
