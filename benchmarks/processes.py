"""Runs a command to its end and measures it, with all processes that it starts."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

_EVERY_SECONDS = 0.05


class Measured(NamedTuple):
    """Seconds of a command on the clock and of processor time, its exit code, and what it printed."""

    wall: float
    processor: float
    code: int
    printed: str


def measured(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Measured:
    """Run `command` in `folder`. Processor time is read while it runs: Java ends with its parent, and is nobody's child by then."""
    spent: dict[int, float] = {}
    with tempfile.TemporaryFile("w+") as output:
        started = time.perf_counter()
        running = psutil.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
        while running.poll() is None:
            with suppress(psutil.Error):
                for process in (running, *running.children(recursive=True)):
                    times = process.cpu_times()
                    spent[process.pid] = times.user + times.system
            time.sleep(_EVERY_SECONDS)
        wall = time.perf_counter() - started
        output.seek(0)
        return Measured(wall, sum(spent.values()), running.returncode, output.read())
