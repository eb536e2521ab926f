"""show, sql, events: the commands that look into a storage."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace
from lakelet.base.text import aligned, printable
from lakelet.cli import options as o
from lakelet.cli.console import shown_phases
from lakelet.cli.lines import Line, write_lines, write_note
from lakelet.cli.options import stored_datasets
from lakelet.cli.remote import PipelineKey, Remote, refuse_here_only, refuse_without_remote, remote_events
from lakelet.cli.row_output import Format, Limit, form_of, limit_of, show_rows
from lakelet.cli.spark_start import spark_starts
from lakelet.config.update_config import find_storage
from lakelet.files.paths import AnyPath
from lakelet.plan.explanation import kind_text
from lakelet.storage.eventlog.states import EventType
from lakelet.storage.eventlog.views import NAMES

_DESCRIBING = frozenset(
    str(kind)
    for kind in (
        EventType.DATASET_DEFINITION,
        EventType.FLOW_DEFINITION,
        EventType.SINK_DEFINITION,
        EventType.COLUMN_LINEAGE,
        EventType.PLANNING_INFORMATION,
        EventType.STREAM_PROGRESS,
    )
)
"""Types of events that describe or measure; the others say what happened."""
_LEVELS = {"WARN": "warning", "ERROR": "bad"}


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (show, sql, events):
        app.command()(command)


def show(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A dataset, or a view of the event log; without it all are listed.", show_default=False, autocompletion=stored_datasets
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List private tables too.")] = False,
    where: Annotated[str | None, typer.Option("--where", metavar="SQL", help="Only rows that fulfil this condition.")] = None,
    order_by: Annotated[str | None, typer.Option("--order-by", metavar="SQL", help="Sort by these columns: 'day DESC, name'.")] = None,
    columns: Annotated[str | None, typer.Option("--columns", metavar="NAME,...", help="Only these columns.")] = None,
    limit: Limit = None,
    form: Format = None,
    storage: o.StorageDir = None,
    env: o.EnvironmentName = None,
    as_json: o.AsJson = False,
) -> None:
    """List the stored datasets, or show the rows of one."""
    from lakelet.inspection.inspector import RowSelection, list_tables, read_rows

    root, chosen = storage_root(storage, env), RowSelection(where, order_by, columns)
    if name is not None:
        written = form_of(form, as_json)
        with shown_phases(sys.stderr, f"Reading {printable(name)}"):
            found = read_rows(root, name, limit=limit_of(limit, written), selection=chosen, note=spark_starts)
        show_rows(found, written, limit)
        return
    if chosen != RowSelection() or form not in (None, "table", "json"):
        raise LakeletError(
            "USAGE", "--where, --order-by, --columns and --format are for the rows of one table", todo="Name it: lakelet show NAME"
        )
    as_json = as_json or form == "json"
    tables = list_tables(root, private=every)[:limit]
    if as_json:
        _write_line(json.dumps([table.as_json() for table in tables], indent=2, ensure_ascii=False))
        return
    if not tables:
        write_note(f"Nothing is stored in {root} yet.")
        return
    rows = [
        (printable(t.name), kind_text(t.kind), _number_text(t.rows), _number_text(t.version), f"{len(t.columns)}", _table_remark(t))
        for t in tables
    ]
    for line in aligned(rows, header=("dataset", "kind", "rows", "version", "columns", ""), right=(2, 3, 4)):
        _write_line(line)
    write_note(f"Views of the event log: {', '.join(NAMES)}.")


def _table_remark(table: Any) -> str:
    ended = "no longer kept" if table.quarantine_of else "no longer defined"
    words = [f"quarantine of {printable(table.quarantine_of)}"] if table.quarantine_of else []
    words += [word for word, said in (("private", table.private), (ended, not table.active)) if said]
    return ", ".join(words)


def _number_text(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def sql(
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="One query; tables go by the names the pipeline knows.", show_default=False)
    ] = None,
    limit: Limit = None,
    form: Format = None,
    catalog: o.Catalog = None,
    schema: o.Schema = None,
    storage: o.StorageDir = None,
    env: o.EnvironmentName = None,
    as_json: o.AsJson = False,
) -> None:
    """Run a query over the stored tables; without one, a shell. The shell needs a terminal. `show tables` and `describe NAME` work, too.

    The event log is the table `event_log`; updates, dataset_health and others are its views.
    """
    from lakelet.inspection.statements import run_statement

    root, written = storage_root(storage, env), form_of(form, as_json)
    space = _namespace(root, catalog, schema)
    if query is not None:
        with shown_phases(sys.stderr, "Running the query"):
            found = run_statement(root, query, limit=limit_of(limit, written), note=spark_starts, space=space)
        show_rows(found, written, limit)
        return
    from lakelet.cli.sql_shell import shell

    if not sys.stdin.isatty():
        raise LakeletError("USAGE", "Missing argument 'QUERY'", todo='For example: lakelet sql "SELECT * FROM …"')
    shell(root, written, limit, space)


def _namespace(root: AnyPath, catalog: str | None, schema: str | None) -> Namespace | None:
    """What completes names where the options say it; each option leaves the other part as the storage has it."""
    if catalog is None and schema is None:
        return None
    from lakelet.storage.root import Storage

    own = Storage(root).registry().namespace
    return Namespace(catalog or own.catalog, schema or own.schema)


def events(
    update: Annotated[str | None, typer.Option("--update", metavar="ID", help="Update ID or a unique prefix.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All updates instead of the latest.")] = False,
    event_type: Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only events of this type.")] = None,
    storage: o.StorageDir = None,
    env: o.EnvironmentName = None,
    as_json: o.AsJson = False,
    remote: Remote = False,
    target: o.Target = None,
    pipeline: PipelineKey = None,
) -> None:
    """Show the event log, in sequence order. On a terminal what happened comes first."""
    if update and every:
        raise LakeletError("USAGE", "--update and --all contradict each other")
    if remote:
        refuse_here_only(storage=storage, env=env)
        where, found = remote_events(target, pipeline, update=update, every=every, event_type=event_type)
    else:
        from lakelet.storage.eventlog.reading import read_events

        refuse_without_remote(target=target, pipeline=pipeline)
        root = storage_root(storage, env)
        where, found = str(root), read_events(root, update=update, every=every, event_type=event_type)
    if as_json:
        for event in found:
            _write_line(json.dumps(event, ensure_ascii=False, separators=(",", ":")))
        return
    if not found:
        write_note(f"No events in {where}.")
    if sys.stdout.isatty():  # a reader looks for what happened; scripts rely on the order of the log
        found = sorted(found, key=lambda e: e["event_type"] in _DESCRIBING)
    rows = [(e["timestamp"][:23].replace("T", " "), e["level"], e["event_type"], printable(e["message"] or "")) for e in found]
    styles = [_LEVELS.get(e["level"], "quiet" if e["event_type"] in _DESCRIBING else "") for e in found]
    write_lines([Line(text, style) for text, style in zip(aligned(rows), styles, strict=True)], sys.stdout)


def storage_root(given: str | None, env: str | None = None) -> AnyPath:
    """The storage root, or that of an environment; a folder named by hand must exist. Raises USAGE."""
    root = find_storage(given)
    if given and not root.is_dir():
        raise LakeletError("USAGE", f"there is no storage {given}")
    if env is None:
        return root
    from lakelet.storage.environments import find_environment

    return find_environment(root, env).root


def _write_line(text: str) -> None:
    sys.stdout.write(text + "\n")
