"""Writes the folder of a new project."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.scaffold.names import project_name
from lakelet.scaffold.starting_points import DEFAULT, StartingPoint, files_of, starting_point
from lakelet.scaffold.writing import NewFile, write_new


@dataclass(frozen=True)
class Created:
    """A new project: its folder, the files that were written, and its template. `left_out`: files with checks that cannot be made here."""

    folder: Path
    written: tuple[Path, ...]
    point: StartingPoint
    left_out: tuple[Path, ...] = ()


def new_project(folder: Path, begin_with: str = DEFAULT) -> Created:
    """Write a project into `folder`, which is made if it does not exist and gives the project its name.

    Raises NAME_INVALID, USAGE for an unknown template, and FILE_EXISTS for a folder with any file that an interrupted attempt has not
    written.
    """
    folder = folder.expanduser().absolute().resolve()
    point = starting_point(begin_with)
    everything = files_of(point, name=project_name(folder.name))
    left_out = () if can_check() else tuple(file for file in everything if _checks_tables(file))
    files = [file for file in everything if file not in left_out]
    if folder.exists():
        _refuse_used(folder, files)
    return Created(folder, write_new(folder, files), point, tuple(folder / file.path for file in left_out))


def can_check() -> bool:
    """Return whether Great Expectations, which makes the checks of whole tables, is installed; looks without importing it."""
    return importlib.util.find_spec("great_expectations") is not None


def _checks_tables(file: NewFile) -> bool:
    """Return whether a file is one of rules and holds checks of whole tables; a template keeps them apart from the rules of rows."""
    return file.path.parts[0] == "expectations" and file.path.suffix == ".yml" and "\n    checks:" in file.text


def _refuse_used(folder: Path, files: list[NewFile]) -> None:
    """Raise FILE_EXISTS for a file, for a folder with a file that is not of the new project, and for one with all of its files."""
    if not folder.is_dir():
        raise LakeletError("FILE_EXISTS", f"{folder} is a file", todo="Choose another name.")
    own = {folder / file.path for file in files}
    existing = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".tmp"))
    foreign = next((path for path in existing if path not in own), None)
    if foreign is None and all(path.exists() for path in own):
        foreign = folder / files[0].path
    if foreign is not None:
        raise LakeletError(
            "FILE_EXISTS",
            f"{folder} is not empty: it holds {foreign.relative_to(folder)}; nothing was written",
            todo="Choose another name. What lies there already becomes a pipeline by: lakelet init",
        )
