"""doctor: what this machine needs to run pipelines."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lakelet.base.errors import ExitCode
from lakelet.cli.console import shown_phases
from lakelet.cli.lines import Line, write_lines
from lakelet.cli.spark_start import StepLines


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(doctor)


def doctor(
    fetch: Annotated[bool, typer.Option("--fetch", help="Fetch Delta's jars when they are missing.")] = False,
    fetch_s3: Annotated[bool, typer.Option("--fetch-s3", help="Fetch the jars for s3a:// when they are missing (13 MB).")] = False,
    archive: Annotated[
        bool, typer.Option("--archive", help="Make the class-data archive when it is missing: later starts are quicker (up to a minute).")
    ] = False,
) -> None:
    """Check what this machine needs to run pipelines."""
    if fetch_s3:
        from lakelet.spark.launch.environment import ensure_s3_jars

        ensure_s3_jars()
    if fetch or archive:
        from lakelet.spark.launch.first_preparation import fetch_missing_jars, make_archive

        with shown_phases(sys.stderr):
            (make_archive if archive else fetch_missing_jars)(StepLines())
    from lakelet.project import doctor as found

    checks = found.examine()
    width = max((len(check.name) for check in checks), default=0)
    lines: list[Line] = []
    for check in checks:
        word, style = ("ok", "good") if check.ok else ("PROBLEM", "bad") if check.blocking else ("advice", "warning")
        lines.append(Line(f"{word:<7}  {check.name.ljust(width)}  {check.finding}", style))
        if check.remedy:
            lines.append(Line(f"{' ' * (11 + width)}{check.remedy}"))
    write_lines(lines, sys.stdout)
    if not found.can_run(checks):
        raise typer.Exit(int(ExitCode.ENVIRONMENT))
