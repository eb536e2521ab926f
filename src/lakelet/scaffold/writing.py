"""Writes new files and overwrites none. The next attempt finishes an interrupted one: its files count as written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.files.durable import create_atomically, writing


@dataclass(frozen=True)
class NewFile:
    """One file to write: its path below the project's folder, and its text."""

    path: PurePosixPath
    text: str

    @classmethod
    def of(cls, path: str, text: str) -> NewFile:
        return cls(PurePosixPath(path), text)

    def is_in(self, folder: Path) -> bool:
        """Return whether `folder` has this file with this text."""
        found = folder / self.path
        return found.is_file() and found.read_bytes() == self.text.encode()


def write_new(folder: Path, files: Sequence[NewFile]) -> tuple[Path, ...]:
    """Write the files below `folder` and return their paths (PF-3).

    An existing file with the same text counts as written by an interrupted attempt. Raises FILE_EXISTS, before anything is written, if a
    file has a different text or if all files exist; STORAGE_FAILED where the disk refuses.
    """
    existing = [file for file in files if (folder / file.path).exists()]
    others = [file for file in existing if not file.is_in(folder)]
    if others or len(existing) == len(files):
        raise _exists([file.path for file in others or existing])
    for file in files:
        target = folder / file.path
        with writing(target):
            create_atomically(target, file.text, alone=True)
        reached("scaffold.file_written")
    return tuple(folder / file.path for file in files)


def _exists(paths: Iterable[PurePosixPath]) -> LakeletError:
    names = [str(path) for path in paths]
    verb = "is" if len(names) == 1 else "are"
    return LakeletError(
        "FILE_EXISTS",
        f"{', '.join(names[:3])}{' …' if len(names) > 3 else ''} {verb} there already; nothing was written",
        todo="Choose another name, or move the file away.",
    )
