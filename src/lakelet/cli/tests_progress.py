"""Plugin of `lakelet test` for pytest: shows what happens until the first result."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.phases import report as report_phase
from lakelet.cli.console import PhaseLine, PhaseLog, phase_display
from lakelet.cli.spark_start import ready_for_spark
from lakelet.testing.pytest_items import UnitTestItem

_HIDES_OUTPUT = ("fd", "sys")


class Progress:
    """Shows phases until pytest writes its first result, and prepares the first start where a test needs Spark.

    Pytest takes stderr away from tests and fixtures, so the line of phases has a descriptor of its own.
    """

    def __init__(self) -> None:
        self._stream: IO[str] | None = None
        with suppress(OSError, ValueError):  # stderr is not a file
            self._stream = os.fdopen(os.dup(sys.stderr.fileno()), "w")
        self._line: PhaseLine | PhaseLog | None = None
        self._show("Collecting tests")

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Leave the terminal to pytest where it writes before the first result, or shows what tests write."""
        if config.get_verbosity() >= 0 or config.option.capture not in _HIDES_OUTPUT:
            self.close()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Make the machine ready, unless no test uses the session of the plugin."""
        if not any(map(_uses_spark, session.items)):
            return
        self._hide()
        with suppress(LakeletError):  # the tests that need Spark raise it
            ready_for_spark()
        self._show("Running the first test")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self) -> None:
        """Follow the phases of fixtures."""
        report_phase("Running the first test")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remove the line before the first result is written."""
        if report.when == "call" or not report.passed:
            self.close()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Remove the line before the summary is written."""
        self.close()

    def close(self) -> None:
        """Remove the line for good."""
        self._hide()
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _show(self, waiting: str) -> None:
        if self._stream is not None:
            self._line = phase_display(self._stream, waiting, above=False)

    def _hide(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None


def _uses_spark(item: pytest.Item) -> bool:
    return isinstance(item, UnitTestItem) or "spark" in getattr(item, "fixturenames", ())


__all__ = ["Progress"]
