"""Reads all pipeline code below a folder: which files take part, what each says, what they import; settings that lie beside it. No Spark.

Settings of pipelines are those that the workspace exports: a JSON file beside the notebooks, with `libraries` and `configuration`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.config import source_files as sources
from lakelet.config.path_map import by_tail
from lakelet.config.source_files import SUFFIXES, FolderWalk, matching
from lakelet.language.notebook import read_source
from lakelet.project.init.findings import FileReading, UnknownParts
from lakelet.project.init.python_files import Repository
from lakelet.project.init.python_reading import read_python
from lakelet.project.init.sql_reading import read_sql


@dataclass
class RepositoryCode:
    """All pipeline code of a folder.

    Attributes:
        sources: files that declare something.
        helpers: files of the folder that they import or run, by path.
        left_out: files that look like pipeline code and are left out, with the reason.
        projects: project files further down: what lies there is theirs.
        settings: settings of pipelines that lie in JSON files beside the code.
        roots: the folder, and those above it that hold the rest of the repository.
    """

    folder: Path
    sources: list[FileReading] = field(default_factory=list)
    helpers: dict[Path, FileReading] = field(default_factory=dict)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    projects: list[Path] = field(default_factory=list)
    settings: list[PipelineSettings] = field(default_factory=list)
    roots: list[Path] = field(default_factory=list)


def read_repository(
    folder: Path, files: Iterable[Path] | None = None, walk: FolderWalk | None = None, above: Iterable[Path] = ()
) -> RepositoryCode:
    """Read the pipeline code below `folder`, or these files of it. Nothing is executed and nothing written.

    `walk`: how the folder is searched. `above`: folders that hold the rest of the repository, such as those that the bundle syncs.
    """
    found = RepositoryCode(folder, roots=list(dict.fromkeys([folder, *above, *_top_of_checkout(folder)])))
    repository = Repository(folder, found.roots)
    holes = UnknownParts()
    if files is None:
        walk = walk or FolderWalk(folder)
        taken = sources.in_folder(folder, walk)
        found.projects = sorted(walk.projects)
        found.settings = settings_files(folder)
    else:
        taken = list(files)
    readings = {file: _read_file(file, repository, holes) for file in taken}
    imported = {helper for reading in readings.values() for helper in reading.helpers}
    for file, reading in readings.items():
        reason = _left_out(file, reading, imported, folder) if files is None else ""
        if reason:
            found.left_out += [(reading.file, reason)] if reason != _HELPER else []
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
    if reading.left_out:
        return reading.left_out
    if not reading.declares and file in imported:
        return _HELPER
    if not reading.declares and any(one.code == "SOURCE_FAILED" for one in reading.refused):
        return reading.refused[0].what
    return "" if reading.declares or reading.hooks or reading.helpers else "it declares no dataset"


def _top_of_checkout(folder: Path) -> Iterator[Path]:
    """The top of the Git checkout that the folder lies in, if there is one."""
    yield from [one for one in folder.parents if (one / ".git").exists()][:1]


def _read_file(file: Path, repository: Repository, holes: UnknownParts) -> FileReading:
    reading = FileReading(file, repository.location(file, 1).file)
    try:
        source = read_source(file)
    except (LakeletError, SyntaxError) as error:
        what = error.what if isinstance(error, LakeletError) else str(error.msg)
        reading.left_out = what
        return reading
    if source.language == "sql":
        read_sql(source, reading, holes)
    else:
        _read_python(file, reading, repository, holes, set())
    return reading


def _read_python(file: Path, reading: FileReading, repository: Repository, holes: UnknownParts, done: set[Path]) -> None:
    """Read a Python file, and after it the notebooks that it runs."""
    done.add(file)
    parsed = repository.read(file)
    read_python(parsed, reading, repository, holes)
    for other in parsed.runs:
        if other not in done:
            _read_python(other, reading, repository, holes, done)


def _read_helpers(found: RepositoryCode, repository: Repository, holes: UnknownParts) -> None:
    waiting = [helper for reading in found.sources for helper in reading.helpers]
    known = {reading.path for reading in found.sources}
    while waiting:
        file = waiting.pop()
        if file in known or file in found.helpers:
            continue
        reading = found.helpers[file] = _read_file(file, repository, holes)
        waiting += reading.helpers


_SETTINGS_KEYS = frozenset(
    {"catalog", "configuration", "target", "schema", "clusters", "storage", "continuous", "development", "edition", "serverless"}
)
_LARGEST_SETTINGS = 1 << 20


@dataclass(frozen=True)
class PipelineSettings:
    """One file: what the pipeline is called, its source files here, its names and its configuration."""

    file: Path
    name: str
    sources: tuple[Path, ...]
    catalog: str | None
    schema: str | None
    configuration: Mapping[str, str]


def settings_files(folder: Path) -> list[PipelineSettings]:
    """The settings files of a repository that name a source file of it."""
    found = (_settings_in(file, folder) for file in FolderWalk(folder).files((".json",)))
    return [one for one in found if one is not None and one.sources]


def _settings_in(file: Path, folder: Path) -> PipelineSettings | None:
    try:
        text = file.read_text(encoding="utf-8-sig") if file.stat().st_size < _LARGEST_SETTINGS else ""
        tree = json.loads(text) if '"libraries"' in text else None
    except (OSError, ValueError, RecursionError):
        return None
    spec = tree.get("spec", tree) if isinstance(tree, dict) else None
    if not isinstance(spec, dict) or not isinstance(spec.get("libraries"), list) or not _SETTINGS_KEYS & set(spec):
        return None
    given = spec.get("configuration")
    values = given.items() if isinstance(given, dict) else ()
    return PipelineSettings(
        file,
        str(spec.get("name") or file.stem),
        tuple(dict.fromkeys(source for entry in spec["libraries"] for source in _files_of_library(entry, file.parent, folder))),
        _known_text(spec.get("catalog")),
        _known_text(spec.get("schema") or spec.get("target")),
        {str(key): str(value) for key, value in values},
    )


def _known_text(value: Any) -> str | None:
    return value if isinstance(value, str) and value and "${" not in value else None


def _files_of_library(entry: Any, beside: Path, folder: Path) -> Iterator[Path]:
    """The files of a library: of a path of the workspace as far as the repository has the same, nearest to the settings file first."""
    for kind, key in (("notebook", "path"), ("file", "path"), ("glob", "include")):
        inner = entry.get(kind) if isinstance(entry, dict) else None
        path = _known_text(inner.get(key)) if isinstance(inner, dict) else None
        if path is not None:
            roots = [one for one in (beside, *beside.parents) if one.is_relative_to(folder)]
            yield from next(filter(None, (_files_at(one, kind) for one in by_tail(path, roots))), ())


def _files_at(path: Path, kind: str) -> Sequence[Path]:
    if kind == "glob":
        return matching(path.name, path.parent) if path.parent.is_dir() else ()
    return [one for one in (path, *(path.with_name(path.name + suffix) for suffix in SUFFIXES)) if one.is_file()][:1]
