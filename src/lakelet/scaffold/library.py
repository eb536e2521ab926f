"""The copy of `lakelet.transforms` in a project, which is deployed with it: there is no Lakelet on Databricks.

Its folder `lakelet` has no `__init__.py`: Python takes the installed package `lakelet` where there is one, and else the copy.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.files.durable import write_atomically
from lakelet.scaffold.writing import NewFile

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
