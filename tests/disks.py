"""A small file system of its own for a test, which can be filled up, or made read-only for root too."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest


class Disk:
    """A file system in memory, mounted at `folder`."""

    def __init__(self, folder: Path, megabytes: int = 2) -> None:
        self.folder = folder
        folder.mkdir()
        self._do("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder))

    @staticmethod
    def _do(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True)

    def fill(self) -> None:
        """Leave no space on it."""
        with (self.folder / "filler").open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 4096)

    def seal(self) -> None:
        """Make it read-only. Files that are being written keep it from that."""
        self._do("mount", "-o", "remount,ro", str(self.folder))

    def repair(self) -> None:
        """Make it writable, with space."""
        self._do("mount", "-o", "remount,rw", str(self.folder))
        (self.folder / "filler").unlink(missing_ok=True)

    def close(self) -> None:
        self._do("umount", "-l", str(self.folder))

    @staticmethod
    def at(failpoint: str, action: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
        """Do `action` the first time that execution comes to a failpoint."""
        done: list[str] = []

        def reached(name: str) -> None:
            if name == failpoint and not done:
                done.append(name)
                action()

        for name, module in list(sys.modules.items()):
            if name.startswith("lakelet") and hasattr(module, "reached"):
                monkeypatch.setattr(module, "reached", reached)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Disk]:
    try:
        made = Disk(tmp_path / "disk")
    except (OSError, subprocess.CalledProcessError) as problem:
        pytest.skip(f"this machine lets nobody mount a file system: {problem}")
    yield made
    made.close()
