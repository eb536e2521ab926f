"""init: from a repository that others wrote to one that `lakelet run` takes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lakelet.base.errors import LakeletError
from lakelet.base.text import counted
from lakelet.cli import options as o
from lakelet.cli.console import shown_phases
from lakelet.cli.lines import Line, write_lines
from lakelet.cli.summary import program


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(init)


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The repository (default: this folder).")] = Path(),
    report: Annotated[bool, typer.Option("--report", help="Only report; write nothing.")] = False,
    static: Annotated[bool, typer.Option("--static", help="Only read the code; load none of it.")] = False,
    editor: Annotated[bool, typer.Option("--editor", help="Only write types and settings for editors and type checkers.")] = False,
    as_json: o.AsJson = False,
) -> None:
    """Report what a repository holds and needs. It writes a starter databricks.yml, and types for the editor."""
    from lakelet.project import init as starter

    if editor:
        if report or static or as_json:
            raise LakeletError(
                "USAGE", "--editor excludes the other options: it reads no code and reports nothing", todo="Leave out the other options."
            )
        _write_settings(folder)
        return
    with shown_phases(sys.stderr, "Reading the code"):
        done = starter.start(folder, write=not report, load=not static)
    if as_json:
        report_json = starter.as_json(done.report, str(done.written) if done.written else None)
        sys.stdout.write(json.dumps(report_json, indent=2, ensure_ascii=False) + "\n")
    elif not done.made:
        lines = starter.report_lines(done.report)
        write_lines([Line(line, "heading" if line.endswith(":") and not line.startswith(" ") else "") for line in lines], sys.stdout)
    if done.existing is not None and not report:
        text = f"{done.existing.name} is there already; it was left as it is. Types for the editor: {program()} init --editor"
        write_lines([Line(text, "quiet"), Line(f"Next: {program()} validate", "quiet")], sys.stderr)
    if done.made:
        _write_settings(folder)
        _write_made(done.made)
    elif done.written is not None:
        one = f" {done.report.pipelines[0].key}" if len(done.report.pipelines) > 1 else ""
        write_lines([Line(f"Wrote {done.written}.", "good")], sys.stderr)
        _write_settings(folder)
        write_lines([Line(f"Next: {program()} validate{one}", "quiet")], sys.stderr)


def _write_settings(folder: Path) -> None:
    """Write types and settings for editors, and say where."""
    from lakelet.project.editor import write_settings

    written = write_settings(folder)
    names = [str(file) for file in written if file.suffix != ".pyi"] + ([f"{folder / 'typings'}/"] if written else [])
    said = f"Wrote types for the editor: {', '.join(sorted(names))}" if written else "The types for the editor are up to date."
    write_lines([Line(said, "good" if written else "quiet")], sys.stderr)


def _write_made(files: Sequence[Path]) -> None:
    """List the files of a pipeline that was made for a folder of data files, and the next commands."""
    root = files[0].parent
    write_lines([Line(f"  {file.relative_to(root)}") for file in files], sys.stdout)
    tables = sum(file.suffix == ".py" for file in files)
    configured = any(file.name == "pyproject.toml" for file in files)
    option = "" if configured else " --param landing=."
    lines = [Line(f"No pipeline code here, but data files: wrote a pipeline with {counted(tables, 'bronze table')}. Next:", "good")]
    write_lines([*lines, Line(f"  {program()} run{option}"), Line(f"  {program()} show")], sys.stderr)
