"""Folders in the temporary directory: gone with their process, however it ends."""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelet.files import scratch
from lakelet.files.scratch import process_folder

PROGRAM = """
    import sys, time
    from lakelet.files.scratch import scratch_folder
    folder = scratch_folder("java")
    (folder / "block").write_bytes(b"x")
    print(folder, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp" / "lakelet-run-of-a-user").mkdir()  # without a lock: whose it is is not known
    return tmp_path / "tmp"


def started(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(folder)},
    )  # fmt: skip
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(10)


def test_folders_of_a_killed_process_are_removed_by_the_next_one_and_no_others(folder: Path) -> None:
    killed, left = started(folder)
    living, kept = started(folder)
    killed.send_signal(signal.SIGKILL)
    killed.wait(10)
    assert (left / "block").exists()
    later, own = started(folder)
    assert not left.parent.exists()
    assert (kept / "block").exists()
    assert (own / "block").exists()
    end(later)
    end(living)
    assert sorted(path.name for path in folder.iterdir()) == ["lakelet-run-of-a-user"]


@pytest.fixture
def new_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """Make the folder of a process in `folder`, as if this process had none yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(scratch, "_held", [])
    monkeypatch.setattr(atexit, "register", lambda *_: None)
    return process_folder.__wrapped__


def test_a_folder_that_another_process_removes_before_it_is_locked_is_made_again(
    new_folder: Callable[[], Path], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[Path] = []
    lock = fcntl.flock

    def later(handle: int, how: int) -> None:
        if how == fcntl.LOCK_EX and not removed:
            removed.extend(path.parent for path in folder.glob("*/.held"))
            scratch.remove_abandoned()
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", later)
    made = new_folder()
    assert (made / ".held").exists()
    assert len(removed) == 1
    assert sorted(folder.iterdir()) == sorted([folder / "lakelet-run-of-a-user", made])


def test_whoever_removes_a_folder_holds_it_until_it_is_gone(
    new_folder: Callable[[], Path], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = folder / "lakelet-run-of-a-killed-process"
    left.mkdir()
    (left / ".held").touch()
    free: list[bool] = []

    def looked_at(path: Path, **_: object) -> None:
        with (path / ".held").open("r+") as other:
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                free.append(False)
            else:
                free.append(True)

    monkeypatch.setattr(shutil, "rmtree", looked_at)
    new_folder()
    assert free == [False]
