"""The report of `lakelet init`: what each pipeline of a repository declares, reads and lacks here. No Spark."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lakelet.base import phases
from lakelet.config import path_map
from lakelet.files.remote import scheme_of
from lakelet.project.init import trial
from lakelet.project.init.bundlefile import Resource
from lakelet.project.init.findings import (
    CodeLocation,
    DatasetFound,
    FileReading,
    Import,
    ParameterFound,
    PathFound,
    Refused,
    TableRead,
    name_parts,
    same_table,
)
from lakelet.project.init.grouping import OUTSIDE, Group, grouped
from lakelet.project.init.paths import is_here, prefix
from lakelet.project.init.repository import Found
from lakelet.storage.information_schema import names_relation

_PROVIDED = frozenset(
    {"dlt", "pyspark", "databricks.sdk.runtime", "databricks.pipelines", "databricks.connect", "delta", "py4j", "dbruntime"}
)
_DISTRIBUTIONS = {
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
    "cv2": "opencv-python",
    "PIL": "Pillow",
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "kafka": "kafka-python",
    "databricks.feature_engineering": "databricks-feature-engineering",
    "databricks.sdk": "databricks-sdk",
}


@dataclass(frozen=True)
class Outside:
    """A table that the pipeline reads and does not declare. `made_by`: the pipeline of the repository that does."""

    name: str
    locations: tuple[CodeLocation, ...]
    made_by: str | None = None

    @property
    def known(self) -> bool:
        """Whether the whole name is known before the code runs."""
        return "{" not in self.name


@dataclass(frozen=True)
class Missing:
    """A package that the code imports and this environment does not have."""

    module: str
    package: str
    locations: tuple[CodeLocation, ...]


@dataclass(frozen=True)
class PipelineReport:
    """One pipeline: what it declares, and what it needs."""

    resource: Resource
    datasets: tuple[DatasetFound, ...]
    paths: tuple[tuple[str, str, tuple[CodeLocation, ...]], ...]
    tables: tuple[Outside, ...]
    refused: tuple[Refused, ...]
    missing: tuple[Missing, ...]

    @property
    def key(self) -> str:
        return self.resource.group.key

    @property
    def parameters(self) -> tuple[ParameterFound, ...]:
        return self.resource.parameters


@dataclass
class Report:
    """All of it. `maps`, `tables`: what to write after `--map` and `--table`, as pairs of the code's name and a path for it."""

    folder: Path
    pipelines: list[PipelineReport]
    aside: list[tuple[str, str]]
    projects: list[str]
    maps: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)


def report_on(
    found: Found,
    *,
    load: bool = True,
    groups: list[Group] | None = None,
    values: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Report:
    """Make the report. `load`: run code whose dataset names are known only when it runs, apart from this process and without Spark.

    `values`: what the bundle configures, by the keys of its pipelines.
    """
    folder = found.folder
    groups = grouped(folder, found.sources) if groups is None else groups
    for group in groups:
        group.helpers = _helpers(group, found)
        if group.key in values:
            group.files, group.helpers = ([reading.settled(values[group.key]) for reading in some] for some in (group.files, group.helpers))
    loaded = [group for group in groups if load and any(reading.incomplete for reading in group.readings)]
    for number, group in enumerate(loaded):
        phases.report(f"Loading the code of {group.key}", number, len(loaded))
        _add_loaded(group, folder)
    kept = [group for group in groups if _stores(group)]
    views = "it declares views only; a pipeline needs a table"
    aside = [*found.aside, *((file.file, views) for group in groups if group not in kept for file in group.files)]
    pipelines = [_pipeline(group, kept, folder) for group in kept]
    projects = [one.relative_to(folder).as_posix() for one in found.projects]
    report = Report(folder, pipelines, sorted(aside), projects)
    report.maps = _maps(path for pipeline in pipelines for path, _, _ in pipeline.paths)
    names = {one.name: None for pipeline in pipelines for one in pipeline.tables if one.made_by is None and one.known}
    report.tables = {name: "data/" + name.replace("`", "").replace(".", "/") for name in sorted(names)}
    return report


def _stores(group: Group) -> bool:
    return any(one.kind != "view" for reading in group.readings for one in reading.datasets) or not any(r.datasets for r in group.files)


def _helpers(group: Group, found: Found) -> list[FileReading]:
    known = {reading.path for reading in group.files}
    result: list[FileReading] = []
    waiting = [helper for reading in group.files for helper in reading.helpers]
    while waiting:
        path = waiting.pop(0)
        if path not in known and path in found.helpers:
            known.add(path)
            result.append(found.helpers[path])
            waiting += found.helpers[path].helpers
    return result


def _add_loaded(group: Group, folder: Path) -> None:
    """Put the names that loading the files found."""
    given = {one.key: one.default for reading in group.readings for one in reading.parameters if one.default is not None}
    roots = [*dict.fromkeys([_root(group), *(root for reading in group.readings for root in reading.roots), folder])]
    unknown = sorted({one.key for reading in group.readings for one in reading.parameters} - set(given))
    rows, complete = trial.datasets(folder, [reading.path for reading in group.files], roots, given, unknown)
    home = {reading.file: reading for reading in group.readings}
    if complete:
        for reading in group.readings:
            inner = {one for one in reading.datasets if one.computed or reading not in group.files}
            reading.datasets = [one for one in reading.datasets if one not in inner]
    for row in rows:
        reading = home.get(row["file"], group.files[0])
        computed = "{" in row["name"].split(".")[-1]
        new = DatasetFound(row["name"], row["kind"], CodeLocation(row["file"], row["line"]), computed, loaded=True)
        if not any(same_table(new.parts, one.parts) and not one.computed for one in reading.datasets):
            reading.datasets.append(new)


def _pipeline(group: Group, groups: Sequence[Group], folder: Path) -> PipelineReport:
    readings = group.readings
    datasets = tuple(sorted((one for reading in readings for one in reading.datasets), key=lambda one: one.location))
    reads = [one for reading in readings for one in reading.tables]
    catalog, schema = _namespace(reads, datasets)
    parameters = tuple(_parameters(readings))
    return PipelineReport(
        Resource(group, catalog, schema, _root(group), parameters),
        datasets,
        tuple(_paths((one for reading in readings for one in reading.paths), folder)),
        tuple(_outside(reads, datasets, (catalog, schema), group, groups)),
        tuple(sorted({one for reading in readings for one in reading.refused}, key=lambda one: (one.location, one.what))),
        tuple(_missing(one for reading in readings for one in reading.imports)),
    )


def _root(group: Group) -> Path:
    """The folder that modules are imported from: the highest that an import needs, else the one that holds all files."""
    roots = [root for reading in group.readings for root in reading.roots]
    return min(roots, key=lambda root: len(root.parts)) if roots else group.folder


def _namespace(reads: Sequence[TableRead], datasets: Sequence[DatasetFound]) -> tuple[str | None, str | None]:
    """The catalog and schema that the code takes its own tables to be in: those of full names that end like a dataset of one part."""
    single = {one.parts for one in datasets if len(one.parts) == 1}
    full: Counter[tuple[str, ...]] = Counter()
    for read in reads:
        lead, last = read.parts[:-1], read.parts[-1:]
        if not lead or read.live or "{" in ".".join(lead) or last not in single or lead[0] in OUTSIDE:
            continue
        full[lead] += 1
    for lead, _ in full.most_common():
        if not _circular(reads, lead):
            return (lead[0], lead[1]) if len(lead) == 2 else (None, lead[0])
    return None, None


def _circular(reads: Sequence[TableRead], home: tuple[str, ...]) -> bool:
    """Whether a dataset would read itself, by way of others, if the names below `home` were the pipeline's own."""
    below: dict[str, set[str]] = {}
    own = [(name_parts(read.within)[-1], read) for read in reads if read.within and (read.live or read.parts[:-1] in ((), home))]
    for reader, read in own:
        below.setdefault(reader, set()).add(read.parts[-1])
    return any(read.parts[:-1] == home and reader in _reached(read.parts[-1], below) for reader, read in own)


def _reached(name: str, below: Mapping[str, set[str]]) -> set[str]:
    """The name and all that it reads, directly or by way of others."""
    reached, waiting = set[str](), {name}
    while waiting:
        reached |= waiting
        waiting = {one for found in waiting for one in below.get(found, ())} - reached
    return reached


def _is_own(read: TableRead, datasets: Sequence[DatasetFound], home: tuple[str | None, str | None]) -> bool:
    """Whether a read means a dataset of the pipeline, whose own names live in `home`."""
    lead = read.parts[:-1]
    at_home = all("{" in part or part == known for part, known in zip(reversed(lead), reversed(home), strict=False))
    return any(
        (_made_alike(read, one) if one.computed else same_table(read.parts, one.parts)) and (len(one.parts) >= len(read.parts) or at_home)
        for one in datasets
    )


def _made_alike(read: TableRead, dataset: DatasetFound) -> bool:
    """Whether the name that a read says may be one that is made when the code runs."""
    pattern = ".*".join(map(re.escape, re.split(r"\{[^}]*\}", dataset.parts[-1])))
    return re.fullmatch(pattern, read.parts[-1]) is not None


def _parameters(readings: Iterable[FileReading]) -> Iterable[ParameterFound]:
    """Each key once; one with a default before those without."""
    readings = list(readings)
    given = {key for reading in readings for key in reading.given}
    every = sorted(
        (one for reading in readings for one in reading.parameters), key=lambda one: (one.key, one.default is None, one.location)
    )
    first: dict[str, ParameterFound] = {}
    for one in every:
        if one.key not in given:
            first.setdefault(one.key, one)
    return first.values()


def _paths(paths: Iterable[PathFound], folder: Path) -> Iterable[tuple[str, str, tuple[CodeLocation, ...]]]:
    """The paths that this machine does not have, each with the format of its files and its locations."""
    locations: dict[str, dict[CodeLocation, None]] = {}
    formats: dict[str, str] = {}
    for one in paths:
        if one.fixed < len(one.path) or not is_here(one.path, folder):
            locations.setdefault(one.path, {})[one.location] = None
            formats[one.path] = formats.get(one.path) or one.format
    return [(path, formats[path], tuple(sorted(locations[path]))) for path in sorted(locations) if path.strip("/. ")]


def _outside(
    reads: Iterable[TableRead],
    datasets: Sequence[DatasetFound],
    home: tuple[str | None, str | None],
    group: Group,
    groups: Sequence[Group],
) -> Iterable[Outside]:
    others: dict[str, list[TableRead]] = {}
    for read in reads:
        if not _is_own(read, datasets, home) and not names_relation(read.parts):
            others.setdefault(".".join(read.parts), []).append(read)
    for _, same in sorted(others.items()):
        made = [
            other.key
            for other in groups
            if other is not group and any(one.parts == same[0].parts for reading in other.readings for one in reading.datasets)
        ]
        yield Outside(same[0].name, tuple(sorted({one.location for one in same})), made[0] if made else None)


def _missing(imports: Iterable[Import]) -> Iterable[Missing]:
    locations: dict[str, set[CodeLocation]] = {}
    for one in imports:
        if not one.guarded and (absent := _absent(one.module)):
            locations.setdefault(absent, set()).add(one.location)
    for module in sorted(locations):
        yield Missing(module, _DISTRIBUTIONS.get(module, module.replace(".", "-")), tuple(sorted(locations[module])))


def _absent(module: str) -> str | None:
    """The part of a module's name that is not installed; None where all is there."""
    first, *more = module.split(".")
    if first in sys.stdlib_module_names or {first, module} & _PROVIDED or module.startswith("databricks.sdk.runtime"):
        return None
    try:
        found = importlib.util.find_spec(first)
        if found is None:
            return first if first != "databricks" or not more else f"databricks.{more[0]}"
        shared = found.origin is None or first == "databricks"  # several distributions put modules into it
        if shared and more and importlib.util.find_spec(f"{first}.{more[0]}") is None:
            return f"{first}.{more[0]}"
    except (ImportError, ValueError):
        return first
    return None


# ---------------------------------------------------------------------------------------------------------- suggestions


def needs_map(path: str) -> bool:
    """Whether a path means nothing on this machine without `--map`."""
    return path_map.is_hosted(path) or scheme_of(path) in path_map.CLOUD_SCHEMES


def _maps(paths: Iterable[str]) -> dict[str, str]:
    """A prefix for each folder that files come from, and a folder for it."""
    prefixes = {prefix(PathFound(path, _fixed(path), CodeLocation("", 0))) for path in paths if needs_map(path)} - {""}
    spelt: dict[str, str] = {}
    for one in sorted(prefixes, key=lambda text: (len(text), text)):
        spelt.setdefault(_plain(one), one)
    result: dict[str, str] = {}
    for plain, one in sorted(spelt.items()):
        if any(plain.startswith(_plain(known).rstrip("/") + "/") for known in result):
            continue  # the shorter prefix serves it
        path = "data/" + (plain.strip("/").split("/")[-1].split("@")[0] or "files")
        if path in result.values():
            path = "data/" + plain.replace("://", "/").replace(":", "").strip("/")
        result[one] = path
    return result


def _fixed(path: str) -> int:
    return min((path.find(sign) for sign in "{*?[" if sign in path), default=len(path))


def _plain(path: str) -> str:
    """One spelling of paths that mean the same folder or file."""
    for lead in ("file:", "dbfs:", "/dbfs"):
        path = "/" + path.removeprefix(lead).lstrip("/") if path.startswith(lead) else path
    return path


def as_json(report: Report, written: str | None) -> Mapping[str, Any]:
    """The report as one object of JSON."""
    return {
        "folder": str(report.folder),
        "written": written,
        "pipelines": [_pipeline_json(one) for one in report.pipelines],
        "map": report.maps,
        "table": report.tables,
        "left_aside": [{"file": file, "why": why} for file, why in report.aside],
        "projects": report.projects,
    }


def _pipeline_json(one: PipelineReport) -> Mapping[str, Any]:
    def locations(found: Iterable[CodeLocation]) -> list[str]:
        return [str(location) for location in found]

    return {
        "key": one.key,
        "files": [reading.file for reading in one.resource.group.files],
        "datasets": [{"name": d.name, "kind": d.kind, "where": str(d.location), "computed": d.computed} for d in one.datasets],
        "paths": [
            {"path": p, "format": form or None, "needs_map": needs_map(p), "where": locations(found)} for p, form, found in one.paths
        ],
        "tables": [{"name": t.name, "made_by": t.made_by, "where": locations(t.locations)} for t in one.tables],
        "parameters": [{"key": p.key, "default": p.default, "where": str(p.location)} for p in one.parameters],
        "not_supported": [{"code": r.code, "what": r.what, "where": str(r.location)} for r in one.refused],
        "missing_packages": [{"module": m.module, "package": m.package, "where": locations(m.locations)} for m in one.missing],
    }
