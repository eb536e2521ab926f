"""publish: the stored tables in the catalogs that the project names."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelet.base.errors import ExitCode, LakeletError, nearest_names
from lakelet.base.text import aligned, counted, printable
from lakelet.cli import options as o
from lakelet.cli.console import shown_phases
from lakelet.cli.lines import Line, error_lines, write_lines, write_note
from lakelet.cli.spark_start import ready_for_spark, warm
from lakelet.cli.storage import storage_root
from lakelet.config.tool_settings import CATALOGS
from lakelet.config.update_config import project_catalogs

if TYPE_CHECKING:
    from lakelet.storage.catalogs.publishing import PublishResult

_EXAMPLE = 'Write publish = { hive = "thrift://localhost:9083" } below [tool.lakelet] into the pyproject.toml of the project.'


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(publish)


def publish(
    to: Annotated[
        str | None, typer.Option("--to", metavar="KIND", help=f"Only this catalog of the project: {', '.join(CATALOGS)}.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove what was published; the tables stay.")] = False,
    storage: o.StorageDir = None,
    as_json: o.AsJson = False,
) -> None:
    """Register the stored tables in the catalogs that the project names. Other engines find them there by name."""
    from lakelet.storage.catalogs.publishing import publish_stored

    root, chosen = storage_root(storage), _chosen(project_catalogs(Path.cwd()), to)
    with warm(), shown_phases(sys.stderr):
        found, errors = publish_stored(root, chosen, _session, remove_all=remove)
    errors = [*errors, *(result.error for result in found if result.error is not None)]
    if as_json:
        sys.stdout.write(json.dumps([result.as_json() for result in found], indent=2, ensure_ascii=False) + "\n")
    elif found:
        _print_published(found)
    elif not errors:
        write_note(f"Nothing is stored in {root} yet." if not remove else "Nothing was published.")
    for error in errors:
        write_lines(error_lines(error, sys.stderr), sys.stderr)
    if errors:
        raise typer.Exit(int(ExitCode.FAILED))


def _chosen(catalogs: Mapping[str, str], to: str | None) -> Mapping[str, str]:
    """The catalogs of the project, or the one of a kind. Raises USAGE."""
    if to is not None and to not in CATALOGS:
        raise LakeletError("USAGE", f"--to {to}: there is no such kind of catalog", nearest=nearest_names(to, CATALOGS), todo=_EXAMPLE)
    chosen = {kind: address for kind, address in catalogs.items() if to in (None, kind)}
    if not chosen:
        what = "the project names no catalog" if to is None else f"the project names no catalog of the kind {to}"
        raise LakeletError("USAGE", what, todo=_EXAMPLE)
    return chosen


def _session() -> Any:
    from lakelet.spark.launch.session import start_session

    ready_for_spark()
    return start_session(app_name="lakelet publish")


def _print_published(found: list[PublishResult]) -> None:
    rows = [(printable(r.name), r.catalog, printable(r.entry), r.action.value) for r in found]
    for line in aligned(rows, header=("dataset", "catalog", "name there", "")):
        sys.stdout.write(line + "\n")
    counts: dict[str, int] = {}
    for result in found:
        counts[result.action.value] = counts.get(result.action.value, 0) + 1
    text = f"{counted(len(found), 'table')}: " + ", ".join(f"{count:,} {action}" for action, count in counts.items())
    write_lines([Line(text, "bad" if any(r.error for r in found) else "good")], sys.stderr)
