"""Processes that run an update and die on the way."""

from __future__ import annotations

import json
import os
import shutil
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


PATIENCE = 400.0
"""Seconds after which an update that neither died nor ended counts as one that hangs; beside other work one may take minutes."""


def die(process: subprocess.Popen[str], request: Mapping[str, Any], failpoint: str) -> None:
    """Let a process run its update, and wait until it has died at its failpoint."""
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        process.wait(PATIENCE)
    finally:
        end(process)
    assert process.returncode == -signal.SIGKILL, f"{failpoint} was never reached: exit code {process.returncode}"


def kill_at(failpoint: str, folder: Path, **request: list[str]) -> None:
    """Run an update of the project in a folder, in a process that must die at a failpoint."""
    with (folder.parent / "victim.log").open("w") as log:
        try:
            die(started(folder, failpoint, log), request, failpoint)
        except AssertionError as problem:
            raise AssertionError(f"{problem}\n{Path(log.name).read_text()[-2000:]}") from None


def stop_at(points: Sequence[str], folder: Path, images: Path, **request: list[str]) -> Mapping[str, Path]:
    """Update the project in a folder, stopped for a moment at each of the points; copies of the folder as it was at each one."""
    asked = images.with_name("asked")
    found = ask(points, asked, images)
    with (images.with_name("victim.log")).open("w") as log:
        process = started(folder, f"STOP:{asked}", log)
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            deadline = time.monotonic() + PATIENCE
            while process.poll() is None:
                assert time.monotonic() < deadline, f"the update did not end within {PATIENCE:g} s"
                copy_where_stopped(process.pid, asked, folder, images)
                time.sleep(0.01)
        finally:
            end(process)
    told = Path(log.name).read_text()[-2000:]
    assert process.returncode == 0, f"the update ended with {process.returncode}\n{told}"
    assert not (left := sorted(file.name for file in asked.iterdir())), f"never reached: {', '.join(left)}\n{told}"
    return found


def ask(points: Sequence[str], asked: Path, images: Path) -> Mapping[str, Path]:
    """Ask a process that was started with `STOP:<asked>` to stop at points; the folders of the copies that are made there."""
    asked.mkdir(parents=True, exist_ok=True)
    found = {}
    for point in points:
        name = point if "@" in point else f"{point}@1"
        (asked / name).touch()
        found[point] = images / name
    return found


def copy_where_stopped(group: int, asked: Path, folder: Path, images: Path) -> None:
    """Copy the folder for each point whose process says that it is there, when all of them have stopped, and let them go on.

    Several processes may get to points at the same time. Planners of Auto Loader may have groups of their own.
    """
    with suppress(psutil.NoSuchProcess):  # one has just ended: the next look sees the others
        leader = psutil.Process(group)
        there = {file: psutil.Process(int(pid)) for file in asked.iterdir() if (pid := file.read_text())}
        if leader.status() != psutil.STATUS_STOPPED:
            if not there:
                _resume_late_stops(asked)
            return
        members = {one for one in (*_asked_to_stop(asked), leader, *there.values()) if one.status() != psutil.STATUS_ZOMBIE}
        for one in members:
            one.suspend()
        if any(one.status() != psutil.STATUS_STOPPED for one in members):
            return
        for file in there:
            shutil.copytree(folder, images / file.name)
            file.unlink()
        for one in members:
            one.resume()


_looked_for_late_stops = [0.0]


def _resume_late_stops(asked: Path) -> None:
    """Let processes go on that stopped themselves after the copy at their point was made: they looked for its file just before that.

    Looks twice a second. A process that has just got to another point stops itself again.
    """
    if time.monotonic() - _looked_for_late_stops[0] < 0.5:
        return
    for one in _asked_to_stop(asked):
        with suppress(psutil.NoSuchProcess):
            if one.status() == psutil.STATUS_STOPPED:
                one.resume()
    _looked_for_late_stops[0] = time.monotonic()


def _asked_to_stop(asked: Path) -> list[psutil.Process]:
    """All processes that were started with `STOP:<asked>`, in whatever group, whoever their parent is now."""
    found = []
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if one.environ().get("LAKELET_FAILPOINT") == f"STOP:{asked}":
                found.append(one)
    return found


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
