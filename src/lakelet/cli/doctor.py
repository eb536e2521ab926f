"""doctor: what this machine needs to run pipelines."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Annotated

import typer

from lakelet.base.errors import ExitCode, LakeletError, nearest_names
from lakelet.cli.console import shown_phases
from lakelet.cli.lines import Line, write_lines
from lakelet.cli.spark_start import StepLines


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(doctor)


def doctor(
    fetch: Annotated[bool, typer.Option("--fetch", help="Fetch Delta's jars and the project's packages when they are missing.")] = False,
    fetch_store: Annotated[
        str | None,
        typer.Option("--fetch-store", metavar="NAME", help="Fetch the jars for a store: s3 (13 MB), gs (41 MB), azure (1 MB)."),
    ] = None,
    fetch_s3: Annotated[bool, typer.Option("--fetch-s3", help="The same as --fetch-store s3.")] = False,
    archive: Annotated[
        bool, typer.Option("--archive", help="Make the class-data archive when it is missing: later starts are quicker (up to a minute).")
    ] = False,
) -> None:
    """Check what this machine needs to run pipelines."""
    stores = dict.fromkeys([*(["s3"] if fetch_s3 else []), *([fetch_store] if fetch_store is not None else [])])
    if stores:
        _fetch_stores(stores)
    if fetch or archive:
        from lakelet.spark.launch.first_preparation import fetch_missing_jars, make_archive

        with shown_phases(sys.stderr):
            (make_archive if archive else fetch_missing_jars)(StepLines())
    from lakelet.project import doctor as found

    if fetch:
        from lakelet.spark.launch.first_preparation import fetch_missing_packages

        with shown_phases(sys.stderr):
            fetch_missing_packages(StepLines(), found.named_packages())

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


def _fetch_stores(names: Collection[str]) -> None:
    """Fetch the jars for stores. Raises USAGE for a name that no store has, before anything is fetched."""
    from lakelet.spark.launch.environment import STORE_PACKAGES, ensure_package

    for name in names:
        if name not in STORE_PACKAGES:
            known = f"Known: {', '.join(STORE_PACKAGES)}"
            raise LakeletError(
                "USAGE", f"--fetch-store {name}: no store has that name", nearest=nearest_names(name, STORE_PACKAGES), todo=known
            )
    with shown_phases(sys.stderr):
        for name in names:
            ensure_package(STORE_PACKAGES[name])
