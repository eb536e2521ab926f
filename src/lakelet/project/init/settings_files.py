"""Settings of pipelines as the workspace exports them: a JSON file beside the notebooks, with `libraries` and `configuration`. No Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakelet.config.folder_walk import FolderWalk
from lakelet.config.source_files import SUFFIXES, matching
from lakelet.config.workspace_paths import by_tail

_KEYS = frozenset(
    {"catalog", "configuration", "target", "schema", "clusters", "storage", "continuous", "development", "edition", "serverless"}
)
_LARGEST = 1 << 20


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
    found = (_settings(file, folder) for file in FolderWalk(folder).files((".json",)))
    return [one for one in found if one is not None and one.sources]


def _settings(file: Path, folder: Path) -> PipelineSettings | None:
    try:
        text = file.read_text(encoding="utf-8-sig") if file.stat().st_size < _LARGEST else ""
        tree = json.loads(text) if '"libraries"' in text else None
    except (OSError, ValueError, RecursionError):
        return None
    spec = tree.get("spec", tree) if isinstance(tree, dict) else None
    if not isinstance(spec, dict) or not isinstance(spec.get("libraries"), list) or not _KEYS & set(spec):
        return None
    given = spec.get("configuration")
    values = given.items() if isinstance(given, dict) else ()
    return PipelineSettings(
        file,
        str(spec.get("name") or file.stem),
        tuple(dict.fromkeys(source for entry in spec["libraries"] for source in _library(entry, file.parent, folder))),
        _text(spec.get("catalog")),
        _text(spec.get("schema") or spec.get("target")),
        {str(key): str(value) for key, value in values},
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value and "${" not in value else None


def _library(entry: Any, beside: Path, folder: Path) -> Iterator[Path]:
    """The files of a library: of a path of the workspace as far as the repository has the same, nearest to the settings file first."""
    for kind, key in (("notebook", "path"), ("file", "path"), ("glob", "include")):
        inner = entry.get(kind) if isinstance(entry, dict) else None
        path = _text(inner.get(key)) if isinstance(inner, dict) else None
        if path is not None:
            roots = [one for one in (beside, *beside.parents) if one.is_relative_to(folder)]
            yield from next(filter(None, (_files_at(one, kind) for one in by_tail(path, roots))), ())


def _files_at(path: Path, kind: str) -> Sequence[Path]:
    if kind == "glob":
        return matching(path.name, path.parent) if path.parent.is_dir() else ()
    return [one for one in (path, *(path.with_name(path.name + suffix) for suffix in SUFFIXES)) if one.is_file()][:1]
