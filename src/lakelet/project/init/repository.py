"""Reads all pipeline code below a folder: which files take part, what each says, what they import. No Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.config import source_files as sources
from lakelet.config.folder_walk import FolderWalk
from lakelet.language.notebook import read_source
from lakelet.project.init.findings import FileReading, Holes
from lakelet.project.init.pyfiles import Repository
from lakelet.project.init.pyreading import read_python
from lakelet.project.init.settings_files import PipelineSettings, settings_files
from lakelet.project.init.sqlfile import read_sql


@dataclass
class RepositoryCode:
    """All pipeline code of a folder.

    Attributes:
        sources: files that declare something.
        helpers: files of the folder that they import or run, by path.
        aside: files that look like pipeline code and are left out, with the reason.
        projects: project files further down: what lies there is theirs.
        settings: settings of pipelines that lie in JSON files beside the code.
        roots: the folder, and those above it that hold the rest of the repository.
    """

    folder: Path
    sources: list[FileReading] = field(default_factory=list)
    helpers: dict[Path, FileReading] = field(default_factory=dict)
    aside: list[tuple[str, str]] = field(default_factory=list)
    projects: list[Path] = field(default_factory=list)
    settings: list[PipelineSettings] = field(default_factory=list)
    roots: list[Path] = field(default_factory=list)


def read_repository(
    folder: Path, files: Iterable[Path] | None = None, walk: FolderWalk | None = None, above: Iterable[Path] = ()
) -> RepositoryCode:
    """Read the pipeline code below `folder`, or these files of it. Nothing is executed and nothing written.

    `walk`: how the folder is searched. `above`: folders that hold the rest of the repository, such as those that the bundle syncs.
    """
    found = RepositoryCode(folder, roots=list(dict.fromkeys([folder, *above, *_checkout(folder)])))
    repository = Repository(folder, found.roots)
    holes = Holes()
    if files is None:
        walk = walk or FolderWalk(folder)
        taken = sources.in_folder(folder, walk)
        found.projects = sorted(walk.projects)
        found.settings = settings_files(folder)
    else:
        taken = list(files)
    readings = {file: _read(file, repository, holes) for file in taken}
    imported = {helper for reading in readings.values() for helper in reading.helpers}
    for file, reading in readings.items():
        reason = _left_out(file, reading, imported, folder) if files is None else ""
        if reason:
            found.aside += [(reading.file, reason)] if reason != _HELPER else []
        else:
            found.sources.append(reading)
    _read_helpers(found, repository, holes)
    return found


_HELPER = "helper"


def _left_out(file: Path, reading: FileReading, imported: set[Path], folder: Path) -> str:
    """Why a file takes no part; empty if it does."""
    if "{{" in str(file.relative_to(folder)):
        return "a template: its path holds {{…}}"
    if file in imported and all(one.computed or not one.loaded for one in reading.datasets) and reading.incomplete:
        return _HELPER  # it declares what those who import it ask for
    if reading.aside:
        return reading.aside
    if not reading.declares and file in imported:
        return _HELPER
    if not reading.declares and any(one.code == "SOURCE_FAILED" for one in reading.refused):
        return reading.refused[0].what
    return "" if reading.declares or reading.hooks or reading.helpers else "it declares no dataset"


def _checkout(folder: Path) -> Iterator[Path]:
    """The top of the Git checkout that the folder lies in, if there is one."""
    yield from [one for one in folder.parents if (one / ".git").exists()][:1]


def _read(file: Path, repository: Repository, holes: Holes) -> FileReading:
    reading = FileReading(file, repository.location(file, 1).file)
    try:
        source = read_source(file)
    except (LakeletError, SyntaxError) as error:
        what = error.what if isinstance(error, LakeletError) else str(error.msg)
        reading.aside = what
        return reading
    if source.language == "sql":
        read_sql(source, reading, holes)
    else:
        _python(file, reading, repository, holes, set())
    return reading


def _python(file: Path, reading: FileReading, repository: Repository, holes: Holes, done: set[Path]) -> None:
    """Read a Python file, and after it the notebooks that it runs."""
    done.add(file)
    parsed = repository.read(file)
    read_python(parsed, reading, repository, holes)
    for other in parsed.runs:
        if other not in done:
            _python(other, reading, repository, holes, done)


def _read_helpers(found: RepositoryCode, repository: Repository, holes: Holes) -> None:
    waiting = [helper for reading in found.sources for helper in reading.helpers]
    known = {reading.path for reading in found.sources}
    while waiting:
        file = waiting.pop()
        if file in known or file in found.helpers:
            continue
        reading = found.helpers[file] = _read(file, repository, holes)
        waiting += reading.helpers
