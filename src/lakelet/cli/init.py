"""init: from a repository that others wrote to one that `lakelet run` takes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from lakelet.base.errors import LakeletError
from lakelet.cli import options as o
from lakelet.cli.console import write_lines
from lakelet.cli.summary import Line, program


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(init)


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The repository (default: this folder).")] = Path(),
    report: Annotated[bool, typer.Option("--report", help="Only report; write nothing.")] = False,
    static: Annotated[bool, typer.Option("--static", help="Only read the code; load none of it.")] = False,
    as_json: o.AsJson = False,
) -> None:
    """Report what a repository holds and needs, and write a starter databricks.yml."""
    from lakelet.project import init as starter

    done = starter.start(folder, write=not report, load=not static)
    if as_json:
        told = starter.as_json(done.report, str(done.written) if done.written else None)
        sys.stdout.write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    else:
        lines = starter.report_lines(done.report)
        write_lines([Line(line, "heading" if line.endswith(":") and not line.startswith(" ") else "") for line in lines], sys.stdout)
    if done.existing is not None and not report:
        raise LakeletError(
            "FILE_EXISTS",
            f"{done.existing.name} is there already; it was left as it is",
            why=f"{done.existing} makes the folder a project, and init overwrites nothing.",
            todo=f"Try it as it is: {program()} validate. Only the report, without this error: {program()} init --report",
        )
    if done.written is not None:
        one = f" {done.report.pipelines[0].key}" if len(done.report.pipelines) > 1 else ""
        write_lines([Line(f"Wrote {done.written}.", "good"), Line(f"Next: {program()} validate{one}", "quiet")], sys.stderr)
