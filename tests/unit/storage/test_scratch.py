"""Folders in the temporary directory: gone with their process, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

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
