"""Files below a folder: which folders are entered, and how far a search goes.

A search stays in its project: it does not enter folders that are projects of their own, nor hidden or generated ones, and follows no
symbolic link to a folder. What cannot be read, or vanishes meanwhile, is left out.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.config.bundle_files import BUNDLE_FILES, bundle_file
from lakelet.config.spark_pipeline_file import SPARK_FILES, spark_file

MOST_FILES = 20_000
"""How many files are looked at in a folder that no project file marks."""

_GENERATED = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "spark-warehouse"})
_PREVIEW = "pipeline.yml"
_SETTINGS = "pyproject.toml"


@dataclass
class FolderWalk:
    """One search.

    Attributes:
        folder: where it begins.
        generated: whether folders that tools write are entered too.
        deep: whether folders below are entered at all; None: where the folder is no shared one, or marked as a project.
        most: the number of files after which it stops with NO_SOURCES; None for no limit.
        projects: the project files of folders that were not entered, in order.
    """

    folder: Path
    generated: bool = False
    deep: bool | None = None
    most: int | None = None
    projects: list[Path] = field(default_factory=list)

    def files(self, suffixes: Sequence[str]) -> Iterator[Path]:
        """The files with these suffixes, folder by folder."""
        seen = 0
        for folder, below, names in os.walk(self.folder):
            seen += len(names) + len(below)
            if self.most is not None and seen > self.most:
                raise self._too_large()
            here = Path(folder)
            project = project_file_in(here, names)
            if here == self.folder:
                self.deep = not is_shared(here) or project is not None if self.deep is None else self.deep
            elif project is not None:
                self.projects.append(project)
                below.clear()
                continue
            below[:] = sorted(name for name in below if self.deep and self._is_entered(name))
            kept = [name for name in sorted(names) if name.endswith(tuple(suffixes)) and not name.startswith(".")]
            yield from (path for name in kept if (path := here / name).is_file())

    def _is_entered(self, name: str) -> bool:
        return not name.startswith(".") and (self.generated or name not in _GENERATED)

    def _too_large(self) -> LakeletError:
        what = f"{self.folder} is not a project, and too large to search: it holds more than {self.most} files"
        return LakeletError("NO_SOURCES", what, todo=begin_a_project())


def is_generated(name: str) -> bool:
    """Whether tools write the folders of this name."""
    return name in _GENERATED


def begin_a_project() -> str:
    """What to do in a folder that is no project."""
    return "Go to the folder of a project, name its folder or source files behind the command, or begin a project: lakelet new project NAME"


def project_file_in(folder: Path, names: Sequence[str]) -> Path | None:
    """The project file of a folder that holds files of these names; None where it is no project."""
    known = set(names)
    if known & {*BUNDLE_FILES, *SPARK_FILES, _PREVIEW}:
        return bundle_file(folder) or spark_file(folder)
    return folder / _SETTINGS if _SETTINGS in known and has_settings(folder) else None


def has_settings(folder: Path) -> bool:
    """Whether the pyproject.toml of a folder has settings of Lakelet."""
    try:
        return "[tool.lakelet" in (folder / _SETTINGS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def shared_error(folder: Path) -> LakeletError:
    """The error for a command that would take a folder of many purposes for a project."""
    why = "Such a folder holds many things, so the folders below it were not searched."
    return LakeletError("NO_SOURCES", f"{folder} is not a project", why=why, todo=begin_a_project())


def is_shared(folder: Path) -> bool:
    """Whether the folder holds the files of many purposes: the root, the home folder, those above it, the temporary folder."""
    home, temporary = Path.home().resolve(), Path(tempfile.gettempdir()).resolve()
    return folder.resolve() in {home, *home.parents, temporary, Path("/tmp"), Path("/var/tmp")}
