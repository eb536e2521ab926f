"""report, dashboard: the page of the datasets, written as files or served on loopback."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakelet.base.errors import ExitCode, LakeletError
from lakelet.base.text import counted, printable
from lakelet.cli import options as o
from lakelet.cli.console import shown_phases
from lakelet.cli.lines import Line, write_lines
from lakelet.cli.remote import PipelineKey, Remote, refuse_here_only, refuse_without_remote, remote_report
from lakelet.cli.storage import storage_root
from lakelet.config.project_sources import project_above
from lakelet.config.tool_settings import read_tool_settings
from lakelet.config.update_config import PipelineConfig
from lakelet.files.paths import AnyPath
from lakelet.update.stopping import stoppable

if TYPE_CHECKING:
    from lakelet.dashboard.documents import Site


FOLDER = "report"
REMOTE_SECONDS = 5.0
"""Between two looks at an event log on an object store."""

SAMPLE_ROWS = 20
_ROWS = "Sample rows of each table; 0 shows none"

Diff = Annotated[
    str | None, typer.Option("--diff", metavar="FILE", help="Show what changed code would do: the result of lakelet diff --json.")
]
Rows = Annotated[int, typer.Option("--rows", min=0, metavar="N", help=f"{_ROWS}.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    for command in (report, dashboard):
        app.command()(command)


def report(
    out: Annotated[str | None, typer.Option("--out", metavar="DIR", help="Where to write it (default: report in the storage).")] = None,
    rows: Annotated[int | None, typer.Option("--rows", min=0, metavar="N", help=f"{_ROWS} (default: {SAMPLE_ROWS}).")] = None,
    diff: Diff = None,
    storage: o.StorageDir = None,
    env: o.EnvironmentName = None,
    as_json: o.AsJson = False,
    remote: Remote = False,
    target: o.Target = None,
    pipeline: PipelineKey = None,
) -> None:
    """Write a page about datasets, rules and updates. It is made of static files that open from disk."""
    given, project = Path(out).absolute() if out else None, _project_folder()
    if remote:
        refuse_here_only(storage=storage, env=env, rows=rows, diff=diff)
        folder, site = remote_report(target, pipeline, project, given)
    else:
        refuse_without_remote(target=target, pipeline=pipeline)
        found, root = _read_diff(diff), storage_root(storage, env)
        folder = given or _report_folder(root, project)
        with shown_phases(sys.stderr):
            site = _write_page(root, project, folder, SAMPLE_ROWS if rows is None else rows, found)
    if as_json:
        sys.stdout.write(json.dumps({"path": str(folder), **site.summary()}, ensure_ascii=False) + "\n")
        return
    size = f"{counted(len(site.views), 'dataset')}, {counted(len(site.history.updates), 'update')}"
    write_lines([Line(f"Wrote {printable(str(folder / 'index.html'))}: {size}", "good")], sys.stderr)


def dashboard(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, metavar="N", help="Port on this machine; 0 takes a free one.")] = 8642,
    rows: Rows = SAMPLE_ROWS,
    diff: Diff = None,
    storage: o.StorageDir = None,
    env: o.EnvironmentName = None,
    as_json: o.AsJson = False,
) -> None:
    """Serve the page on this machine and follow a running update. Ctrl-C ends it."""
    from lakelet.dashboard.page import Page
    from lakelet.dashboard.server import POLL_SECONDS, Dashboard

    found, root = _read_diff(diff), storage_root(storage, env)
    page = Page(root, _project_folder(), sample_rows=rows, live=True, diff=found)
    poll = POLL_SECONDS if isinstance(root, Path) else REMOTE_SECONDS
    try:
        served = Dashboard(page, port=port, poll=poll, warn=lambda text: write_lines([Line(printable(text), "warning")], sys.stderr))
    except OSError as problem:
        todo = "Let it take a free one: lakelet dashboard --port 0"
        raise LakeletError("USAGE", f"port {port} cannot be used", why=problem.strerror or str(problem), todo=todo) from problem
    if as_json:
        sys.stdout.write(json.dumps({"url": served.url}) + "\n")
        sys.stdout.flush()
    else:
        write_lines([Line(f"The dashboard is at {served.url}  (Ctrl-C ends it)", "good")], sys.stderr)
    try:
        with stoppable():
            served.serve()
    except KeyboardInterrupt:
        write_lines([Line("The dashboard has ended. Nothing was changed.", "quiet")], sys.stderr)
        raise typer.Exit(int(ExitCode.INTERRUPTED)) from None


def write_after_update(config: PipelineConfig) -> None:
    """Write the report if `[tool.lakelet] report` asks for it. What fails is a warning on stderr: the update is what it is."""
    if not read_tool_settings(config.root, Path.cwd()).report:
        return
    folder = _report_folder(config.storage, config.root)
    try:
        _write_page(config.storage, config.root, folder, SAMPLE_ROWS)
    except Exception as problem:  # whatever goes wrong with a page must not change how the update ended
        lines = str(problem).splitlines() or [type(problem).__name__]
        write_lines([Line(f"The report was not written: {printable(lines[0])}", "warning")], sys.stderr)
        return
    write_lines([Line(f"Report: {printable(str(folder / 'index.html'))}", "quiet")], sys.stderr)


def _read_diff(file: str | None) -> Mapping[str, Any] | None:
    """The result of `lakelet diff` that an option names. Raises USAGE."""
    if file is None:
        return None
    from lakelet.dashboard.change_document import read_diff

    return read_diff(Path(file))


def _write_page(storage: AnyPath, project: Path, folder: Path, rows: int, diff: Mapping[str, Any] | None = None) -> Site:
    from lakelet.dashboard.page import write_report

    try:
        return write_report(storage, project, folder, sample_rows=rows, diff=diff)
    except OSError as problem:
        what = f"the report cannot be written to {folder}"
        raise LakeletError("USAGE", what, why=str(problem), todo="Name another folder: lakelet report --out DIR") from problem


def _project_folder() -> Path:
    return project_above(Path.cwd()) or Path.cwd()


def _report_folder(storage: AnyPath, project: Path) -> Path:
    """In the storage, or where a storage of this machine would be."""
    return storage.absolute() / FOLDER if isinstance(storage, Path) else project / ".lakelet" / FOLDER
