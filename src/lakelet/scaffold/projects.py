"""A new project's folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.scaffold.names import project_name
from lakelet.scaffold.starting_points import DEFAULT, StartingPoint, files_of, starting_point
from lakelet.scaffold.writing import NewFile, write_new


@dataclass(frozen=True)
class Created:
    """What was written, and what the project began with."""

    folder: Path
    written: tuple[Path, ...]
    point: StartingPoint


def new_project(folder: Path, begin_with: str = DEFAULT) -> Created:
    """Write a project into `folder`, which is made if it is not there; its name is the project's.

    Raises NAME_INVALID, USAGE for an unknown starting point, and FILE_EXISTS for a folder with anything in it but what an interrupted
    attempt has written.
    """
    folder = folder.expanduser().absolute().resolve()
    point = starting_point(begin_with)
    files = files_of(point, name=project_name(folder.name))
    if folder.exists():
        _refuse_used(folder, files)
    return Created(folder, write_new(folder, files), point)


def _refuse_used(folder: Path, files: list[NewFile]) -> None:
    """Raise FILE_EXISTS for a file, for a folder that holds what is not a file of the new project, and for one that holds all of these."""
    if not folder.is_dir():
        raise LakeletError("FILE_EXISTS", f"{folder} is a file", todo="Choose another name.")
    own = {folder / file.path for file in files}
    files_there = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".tmp"))
    foreign = next((path for path in files_there if path not in own), None)
    if foreign is None and all(path.exists() for path in own):
        foreign = folder / files[0].path
    if foreign is not None:
        raise LakeletError(
            "FILE_EXISTS",
            f"{folder} is not empty: it holds {foreign.relative_to(folder)}; nothing was written",
            todo="Choose another name. What lies there already becomes a pipeline by: lakelet init",
        )
