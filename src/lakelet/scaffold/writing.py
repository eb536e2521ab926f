"""Writes new files, never over others. An interrupted attempt is finished by the next one: what it wrote counts as written."""

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


def write_new(folder: Path, files: Sequence[NewFile]) -> tuple[Path, ...]:
    """Write the files below `folder` and return their paths (PF-3).

    A file that is there already with the same text is taken as written by an attempt that was interrupted. Raises FILE_EXISTS, before
    anything is written, if another text is there or if nothing is left to write; STORAGE_FAILED where the disk refuses.
    """
    there = [file for file in files if (folder / file.path).exists()]
    others = [file for file in there if not _same(folder / file.path, file.text)]
    if others or len(there) == len(files):
        raise _exists([file.path for file in others or there])
    for file in files:
        target = folder / file.path
        with writing(target):
            create_atomically(target, file.text, alone=True)
        reached("scaffold.file_written")
    return tuple(folder / file.path for file in files)


def _same(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _exists(paths: Iterable[PurePosixPath]) -> LakeletError:
    names = [str(path) for path in paths]
    verb = "is" if len(names) == 1 else "are"
    return LakeletError(
        "FILE_EXISTS",
        f"{', '.join(names[:3])}{' …' if len(names) > 3 else ''} {verb} there already; nothing was written",
        todo="Choose another name, or move the file away.",
    )
