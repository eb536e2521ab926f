"""test: runs the tests of a project, YAML unit tests beside the code included."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from lakelet.base.errors import ExitCode, LakeletError
from lakelet.cli.spark_start import warm
from lakelet.config.project_sources import project_above
from lakelet.config.source_files import is_shared, shared_error

_NOTHING_COLLECTED = 5  # pytest's exit code
_CODES = {0: ExitCode.COMPLETED, 1: ExitCode.FAILED, 2: ExitCode.INVALID, 3: ExitCode.FAILED, 4: ExitCode.INVALID}


class _Interrupts:
    """Notices Ctrl-C, for which pytest returns the same exit code as for a file that it cannot read."""

    seen = False

    def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
        self.seen = self.seen or excinfo.type is KeyboardInterrupt


@contextmanager
def _importable(folder: str) -> Iterator[None]:
    """Let tests import what lies in a folder, as `python -m pytest` does with the one where it is typed."""
    before = list(sys.path)
    sys.path[:0] = [] if folder in before else [folder]
    try:
        yield
    finally:
        sys.path[:] = before


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(name="test")(run_tests)


def run_tests(
    paths: Annotated[list[str] | None, typer.Argument(metavar="[PATH]…", help="Files, folders, FILE::NAME (default: all).")] = None,
    keyword: Annotated[str | None, typer.Option("-k", metavar="EXPRESSION", help="Only tests whose names match.")] = None,
    first: Annotated[bool, typer.Option("--exitfirst", "-x", help="Stop at the first failure.")] = False,
    update_snapshots: Annotated[bool, typer.Option("--update-snapshots", help="Write the expected tables instead of comparing.")] = False,
) -> None:
    """Run the project's tests with pytest. They are Python files, and unit tests in YAML beside the code."""
    if importlib.util.find_spec("pytest") is None:
        raise LakeletError("PYTEST_MISSING", "pytest is not installed", todo="Type: pip install pytest")
    if not paths and is_shared(Path.cwd()) and project_above(Path.cwd()) is None:
        raise shared_error(Path.cwd())
    import pytest

    from lakelet.cli.tests_progress import Progress

    wanted = [
        *(paths or []),
        *(["-k", keyword] if keyword else []),
        *(["-x"] if first else []),
        *(["--lakelet-update-snapshots"] if update_snapshots else []),
    ]
    interrupts = _Interrupts()
    with warm(), _importable(os.getcwd()), closing(Progress()) as progress:
        code = int(pytest.main(["-q", "-W", "ignore::pytest.PytestAssertRewriteWarning", *wanted], plugins=[interrupts, progress]))
        if interrupts.seen:
            raise typer.Exit(int(ExitCode.INTERRUPTED))
        if code == _NOTHING_COLLECTED:
            todo = "Tests are functions test_… in test_*.py, and entries of *.unit_tests.yml beside the code."
            raise LakeletError("USAGE", "no test was found", todo=todo)
        raise typer.Exit(int(_CODES.get(code, ExitCode.FAILED)))
