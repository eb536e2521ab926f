"""Files of a new project: written without overwriting one, and the copy of `lakelet.transforms`, which is deployed with the project.

The next attempt finishes an interrupted one: its files count as written. The copy is there because Databricks has no Lakelet. Its folder
`lakelet` has no `__init__.py`: Python takes the installed package `lakelet` where there is one, and else the copy.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.files.durable import create_atomically, write_atomically, writing


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


def invalid_name(name: str, of: str, form: str, proposal: str) -> LakeletError:
    """The error for a name that something new cannot have; `proposal`: a name like it that it can have, empty for none."""
    usable = proposal and not keyword.iskeyword(proposal)
    todo = f"For example: {proposal}" if usable else "Choose another name."
    return LakeletError("NAME_INVALID", f"{name!r} cannot be the name of {of}: {form}", todo=todo)


def _exists(paths: Iterable[PurePosixPath]) -> LakeletError:
    names = [str(path) for path in paths]
    verb = "is" if len(names) == 1 else "are"
    return LakeletError(
        "FILE_EXISTS",
        f"{', '.join(names[:3])}{' …' if len(names) > 3 else ''} {verb} there already; nothing was written",
        todo="Choose another name, or move the file away.",
    )


LIBRARY = PurePosixPath("lakelet/transforms")
"""Its folder below a folder on the import path."""
_INSTALLED = Path(__file__).parents[1] / "transforms"


def library_files() -> list[NewFile]:
    """Return the library's files as they are installed."""
    found = sorted(_INSTALLED.rglob("*.py"))
    return [NewFile(LIBRARY / file.relative_to(_INSTALLED).as_posix(), file.read_text(encoding="utf-8")) for file in found]


def outdated(folder: Path) -> list[NewFile]:
    """Return the library's files that the copy below `folder` lacks or has with another text."""
    return [file for file in library_files() if not file.is_in(folder)]


def write_library(folder: Path, *, overwrite: bool = False) -> tuple[Path, ...]:
    """Write a copy of the library below `folder`; return the paths of the files that were not as they are now.

    Files that the library does not have stay. Raises FILE_EXISTS, before anything is written, if a file has another text and may not be
    overwritten, or if a regular package `lakelet` lies there; STORAGE_FAILED where the disk refuses.
    """
    package = folder / LIBRARY.parent / "__init__.py"
    if package.exists():
        what = f"{package} makes that folder a package, which would hide the installed Lakelet; nothing was written"
        raise LakeletError("FILE_EXISTS", what, todo="Remove that file, or name another folder.")
    new = outdated(folder)
    others = [str(file.path) for file in new if (folder / file.path).exists()]
    if others and not overwrite:
        names = f"{', '.join(others[:3])}{' …' if len(others) > 3 else ''}"
        what = f"the installed Lakelet has other texts of {names}; nothing was written"
        raise LakeletError("FILE_EXISTS", what, todo="Replace them with the installed ones: the same command with --overwrite")
    for file in new:
        write_atomically(folder / file.path, file.text)
        reached("scaffold.file_written")
    return tuple(folder / file.path for file in new)
