"""Runs a command to its end and measures it, with all processes that it starts; and a `lakelet watch` beside others."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

_EVERY_SECONDS = 0.05
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The variables of a command, as its user has them: Python keeps the byte code of what it has imported once."""
Findings = queue.Queue[tuple[float, dict[str, Any]]]
"""What a watch has written: when, and what it found."""


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
        running = psutil.Popen(command, cwd=folder, env=environment or ENVIRONMENT, stdout=output, stderr=subprocess.STDOUT)
        while running.poll() is None:
            for pid in (running.pid, *_descendants(running)):
                with suppress(psutil.Error):
                    times = psutil.Process(pid).cpu_times()
                    spent[pid] = times.user + times.system
            time.sleep(_EVERY_SECONDS)
        wall = time.perf_counter() - started
        output.seek(0)
        return Measured(wall, sum(spent.values()), running.returncode, output.read())


def _descendants(process: psutil.Process) -> list[int]:
    """Processes below one. Linux lists the children of each; psutil looks at all that there are: a twentieth of a processor."""
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        with suppress(psutil.Error):
            return [child.pid for child in process.children(recursive=True)]
        return []
    found, to_ask = [], [process.pid]
    while to_ask:
        with suppress(OSError):  # it has ended
            for children in Path(f"/proc/{to_ask.pop()}/task").glob("*/children"):
                pids = [int(pid) for pid in children.read_text().split()]
                found += pids
                to_ask += pids
    return found


@contextmanager
def watching(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[Findings]:
    """Run a `lakelet watch --json` of the project in `folder` for the block; yield what it finds.

    Commands with the same variables use its Spark.
    """
    findings: Findings = queue.Queue()
    command = [sys.executable, "-m", "lakelet", "watch", "--json"]
    with subprocess.Popen(
        command, cwd=folder, env=environment or ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        lines = process.stdout
        assert lines is not None

        def read() -> None:
            for line in lines:
                findings.put((time.perf_counter(), json.loads(line)))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield findings
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
            reader.join()
