"""Shows the progress of the first start on a machine."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from lakelet.base.phases import Phase, report_phase
from lakelet.base.text import printable, seconds_text
from lakelet.cli.console import shown_phases, write_lines
from lakelet.cli.summary import Line

if TYPE_CHECKING:
    from lakelet.spark.launch.first_start import Step


def ready_for_spark() -> None:
    """Fetch Delta's jars and make the class-data archive where they are missing, with a line on stderr for each step.

    On a terminal each step has a bar while it goes on. Raises JAVA_MISSING or JARS_MISSING.
    """
    from lakelet.spark.launch.first_start import prepare

    with shown_phases(sys.stderr):
        prepare(StepLines())


def spark_starts(reason: str) -> None:
    """Write on stderr why Spark starts, then do what `ready_for_spark` does. Queries that may need Spark call it right before."""
    write_lines([Line(printable(reason), "quiet")], sys.stderr)
    ready_for_spark()


class StepLines:
    """Reports each step as a phase, and writes a line on stderr at its end; where that is no terminal, also one at its beginning."""

    def __init__(self) -> None:
        self._began: dict[str, float] = {}

    def __call__(self, step: Step) -> None:
        first = step.what not in self._began
        began = self._began.setdefault(step.what, time.monotonic())
        phase = Phase(step.what, step.done or 0, step.total, in_bytes=True)
        report_phase(phase)
        if step.ended or (first and not sys.stderr.isatty()):
            sys.stderr.write(str(phase) + ("" if first else f"  {seconds_text(time.monotonic() - began)}") + "\n")
            sys.stderr.flush()
