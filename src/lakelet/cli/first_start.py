"""Shows the progress of the first start on a machine."""

from __future__ import annotations

import sys
import time
from typing import IO

from lakelet.base.text import seconds_text
from lakelet.spark.launch.first_start import Step, prepare

_MEGABYTE = 1_000_000


def ready_for_spark() -> None:
    """Fetch Delta's jars and make the class-data archive where they are missing, with a line on stderr for each step.

    Raises JAVA_MISSING or JARS_MISSING.
    """
    prepare(StepLines(sys.stderr))


class StepLines:
    """Writes a line per step: redrawn as the step goes on on a terminal, else once at its beginning and once at its end."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream, self._redraws = stream, stream.isatty()
        self._began: dict[str, float] = {}

    def __call__(self, step: Step) -> None:
        first = step.what not in self._began
        began = self._began.setdefault(step.what, time.monotonic())
        if not (self._redraws or first or step.ended):
            return
        text = _text(step) + ("" if first else f"  {seconds_text(time.monotonic() - began)}")
        self._stream.write(f"\r\x1b[K{text}" if self._redraws else f"{text}\n")
        if self._redraws and step.ended:
            self._stream.write("\n")
        self._stream.flush()


def _text(step: Step) -> str:
    if step.done is None or not step.total:
        return step.what
    return f"{step.what} {step.done / _MEGABYTE:.1f}/{step.total / _MEGABYTE:.1f} MB"
