"""Projects that are renamed or copied."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path

from tests.spark.conftest import Project


def renamed(project: Project, folder: Path) -> Project:
    """The project after its folder got another path."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    project.folder.rename(folder)
    return at(project, folder)


def copied(project: Project, folder: Path, *, times: bool = False) -> Project:
    """A copy of the project beside the original. `times`: with the modification times of the files."""
    shutil.copytree(project.folder, folder, copy_function=shutil.copy2 if times else shutil.copyfile)
    return at(project, folder)


def at(project: Project, folder: Path) -> Project:
    """The project as it runs from another folder; parameters with paths below the old one go along."""
    found, old = copy.copy(project), str(project.folder)
    found.folder, found.landing = folder, folder / "landing"
    found.files = [folder / file.relative_to(old) for file in project.files]
    found.parameters = {key: value.replace(old, str(folder), 1) for key, value in project.parameters.items()}
    found.maps, found.tables, found.moved = [*project.maps], [*project.tables], []
    return found
