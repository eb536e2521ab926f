"""Folders of one process in the temporary directory. No Spark.

They are removed when the process ends. A process that is killed leaves them behind: the next one that needs a folder removes those
whose process is gone, which shows in a lock that ends with it.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = "lakelet-run-"
_LOCK = ".held"
_held: list[int] = []  # open as long as the process lives


def scratch_folder(purpose: str) -> Path:
    """A new, empty folder of this process."""
    return Path(tempfile.mkdtemp(prefix=f"{purpose}-", dir=process_folder()))


@functools.cache
def process_folder() -> Path:
    """The folder of this process, in which those of `scratch_folder` lie."""
    remove_abandoned()
    while True:
        root = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = os.open(root / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits for a process that found the new folder not locked yet, and removes it
        if (root / _LOCK).exists():
            break
        os.close(lock)
    _held.append(lock)
    atexit.register(_removed_by, os.getpid(), root)
    return root


def remove_abandoned() -> None:
    """Remove the folders of this user's processes that were killed."""
    with suppress(OSError):
        for root in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            with suppress(OSError):
                if root.stat().st_uid == os.getuid():
                    _remove_unless_held(root)


def _remove_unless_held(root: Path) -> None:
    """Remove a folder whose lock nobody holds, and hold it until the folder is gone: a process that is about to take it waits.

    Raises OSError where somebody holds it. A folder without a lock is about to be taken, or about to go: FileNotFoundError.
    """
    handle = os.open(root / _LOCK, os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(root, ignore_errors=True)
    finally:
        os.close(handle)


def _removed_by(process: int, root: Path) -> None:
    if os.getpid() == process:  # not by a fork of it
        shutil.rmtree(root, ignore_errors=True)


__all__ = ["process_folder", "remove_abandoned", "scratch_folder"]
