"""Processes that run an update and die on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import psutil

from tests.paths import ROOT
from tests.spark.conftest import Project

Row = Mapping[str, Any]


def started(folder: Path, failpoint: str | None, log: IO[str]) -> subprocess.Popen[str]:
    """A process that waits for a request to update the project in a folder; it dies at `failpoint`, if there is one."""
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("runner.py")), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, **({"LAKELET_FAILPOINT": failpoint} if failpoint else {})},
        start_new_session=True,
    )


def die(process: subprocess.Popen[str], request: Mapping[str, Any], failpoint: str, *, seconds: float = 120) -> None:
    """Let a process run its update, and wait until it has died at its failpoint."""
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        process.wait(seconds)
    finally:
        end(process)
    assert process.returncode == -signal.SIGKILL, f"{failpoint} was never reached: exit code {process.returncode}"


def kill_at(failpoint: str, folder: Path, **request: list[str]) -> None:
    """Run an update of the project in a folder, in a process that must die at a failpoint."""
    with (folder.parent / "victim.log").open("w") as log:
        try:
            die(started(folder, failpoint, log), request, failpoint, seconds=180)
        except AssertionError as problem:
            raise AssertionError(f"{problem}\n{Path(log.name).read_text()[-2000:]}") from None


def kill_second_update(project: Project, failpoint: str, first: Sequence[Row], second: Sequence[Row]) -> Project:
    """Update a project with the first records, then with the second ones in a process that must die at a failpoint."""
    project.arrive("a.json", *first)
    project.run()
    project.arrive("b.json", *second)
    kill_at(failpoint, project.folder)
    return project


def end(process: subprocess.Popen[str]) -> None:
    """Kill the whole group of a process and wait until all of it is gone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)
    deadline = time.monotonic() + 10
    while _members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)


def _members(group: int) -> list[int]:
    found = []
    for other in psutil.process_iter(["status"]):
        try:
            if os.getpgid(other.pid) == group and other.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(other.pid)
        except ProcessLookupError:
            continue
    return found
