"""show, sql, events: the commands that look into a storage."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelet.base.errors import LakeletError
from lakelet.base.text import aligned, counted, printable
from lakelet.cli import options as o
from lakelet.cli.console import write_lines
from lakelet.cli.remote import PipelineKey, Remote, refuse_here_only, refuse_without_remote
from lakelet.cli.remote_log import remote_events
from lakelet.cli.summary import Line
from lakelet.config.update_config import find_storage
from lakelet.files.paths import AnyPath
from lakelet.plan.explanation import kind_text
from lakelet.storage.eventlog.views import NAMES

if TYPE_CHECKING:
    from lakelet.inspection.inspector import Rows

SHOWN_ROWS = 20
WIDEST_CELL = 60

Limit = Annotated[int | None, typer.Option("--limit", min=0, metavar="N", help=f"At most N rows (default: {SHOWN_ROWS}; with --json all).")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (show, sql, events):
        app.command()(command)


def show(
    name: Annotated[
        str | None, typer.Argument(help="A dataset, or a view of the event log; without it all are listed.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List private tables too.")] = False,
    limit: Limit = None,
    storage: o.StorageDir = None,
    as_json: o.AsJson = False,
) -> None:
    """List the stored datasets, or show the rows of one."""
    from lakelet.inspection.inspector import list_tables, read_rows

    root = storage_root(storage)
    if name is not None:
        show_rows(read_rows(root, name, limit=_limit(limit, as_json), note=_note), as_json, limit)
        return
    tables = list_tables(root, private=every)[:limit]
    if as_json:
        _write(json.dumps([table.as_json() for table in tables], indent=2, ensure_ascii=False))
        return
    if not tables:
        _note(f"Nothing is stored in {root} yet.")
        return
    rows = [(printable(t.name), kind_text(t.kind), _number(t.rows), _number(t.version), f"{len(t.columns)}", _remark(t)) for t in tables]
    for line in aligned(rows, header=("dataset", "kind", "rows", "version", "columns", ""), right=(2, 3, 4)):
        _write(line)
    _note(f"Views of the event log: {', '.join(NAMES)}.")


def _remark(table: Any) -> str:
    ended = "no longer kept" if table.quarantine_of else "no longer defined"
    words = [f"quarantine of {printable(table.quarantine_of)}"] if table.quarantine_of else []
    words += [word for word, said in (("private", table.private), (ended, not table.active)) if said]
    return ", ".join(words)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def sql(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="One query; tables go by the names the pipeline knows.")],
    limit: Limit = None,
    storage: o.StorageDir = None,
    as_json: o.AsJson = False,
) -> None:
    """Run a query over the stored tables. The event log is the table `event_log`; updates, dataset_health and others are its views."""
    from lakelet.inspection.inspector import run_sql

    show_rows(run_sql(storage_root(storage), query), as_json, limit)


def events(
    update: Annotated[str | None, typer.Option("--update", metavar="ID", help="This update; the first characters do.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All updates instead of the latest.")] = False,
    event_type: Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only events of this type.")] = None,
    storage: o.StorageDir = None,
    as_json: o.AsJson = False,
    remote: Remote = False,
    target: o.Target = None,
    pipeline: PipelineKey = None,
) -> None:
    """Show the event log, in sequence order."""
    if update and every:
        raise LakeletError("USAGE", "--update and --all contradict each other")
    if remote:
        refuse_here_only(storage=storage)
        where, found = remote_events(target, pipeline, update=update, every=every, event_type=event_type)
    else:
        from lakelet.inspection.inspector import read_events

        refuse_without_remote(target=target, pipeline=pipeline)
        root = storage_root(storage)
        where, found = str(root), read_events(root, update=update, every=every, event_type=event_type)
    if as_json:
        for event in found:
            _write(json.dumps(event, ensure_ascii=False, separators=(",", ":")))
        return
    if not found:
        _note(f"No events in {where}.")
    rows = [(e["timestamp"][:23].replace("T", " "), e["level"], e["event_type"], printable(e["message"] or "")) for e in found]
    for line in aligned(rows):
        _write(line)


def storage_root(given: str | None) -> AnyPath:
    """The storage root; a folder named by hand must exist."""
    root = find_storage(given)
    if given and not root.is_dir():
        raise LakeletError("USAGE", f"there is no storage {given}")
    return root


def _limit(limit: int | None, as_json: bool) -> int | None:
    return limit if limit is not None or as_json else SHOWN_ROWS


def show_rows(found: Rows, as_json: bool, limit: int | None) -> None:
    allowed = _limit(limit, as_json)
    rows = islice(found.rows, allowed)
    if as_json:
        _write_array(rows)
        return
    shown = list(rows)
    cells = [[_cell(row.get(column)) for column in found.columns] for row in shown]
    numbers = [i for i, c in enumerate(found.columns) if shown and all(isinstance(r.get(c), (int, float, type(None))) for r in shown)]
    for line in aligned(cells, header=[printable(column) for column in found.columns], right=numbers):
        _write(line)
    if limit is None and len(shown) == SHOWN_ROWS:
        _note(f"The first {counted(len(shown), 'row')}; more with --limit N.")
    elif not shown:
        _note("No rows.")


def _write_array(rows: Iterable[Mapping[str, Any]]) -> None:
    """One JSON array, written row by row."""
    sys.stdout.write("[")
    for number, row in enumerate(rows):
        sys.stdout.write((",\n " if number else "") + json.dumps(row, ensure_ascii=False))
    _write("]")


def _cell(value: Any) -> str:
    text = "NULL" if value is None else json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list, bool)) else str(value)
    text = printable(text)
    return text if len(text) <= WIDEST_CELL or not sys.stdout.isatty() else text[: WIDEST_CELL - 1] + "…"


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")


def _note(text: str) -> None:
    write_lines([Line(text, "quiet")], sys.stderr)
