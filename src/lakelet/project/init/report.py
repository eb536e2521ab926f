"""The report of `lakelet init`: what each pipeline of a repository declares, reads and lacks here. No Spark."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakelet.base import phases
from lakelet.base.errors import LakeletError
from lakelet.config import path_map
from lakelet.config.project_sources import import_roots
from lakelet.project.init.findings import (
    CodeLocation,
    DatasetFound,
    FileReading,
    ParameterFound,
    PathFound,
    RefusedFeature,
    StrictExpression,
    TableRead,
    is_here,
    name_parts,
    only_heads,
    prefix,
    same_table,
)
from lakelet.project.init.grouping import OUTSIDE, PipelineFiles, grouped
from lakelet.project.init.loading import add_loaded, needs_loading
from lakelet.project.init.packages import MissingPackage, RepositoryPackages
from lakelet.project.init.repository import RepositoryCode
from lakelet.project.init.starter_bundle import BundlePipeline
from lakelet.storage.information_schema import names_relation

ANSI = "spark.sql.ansi.enabled"


@dataclass(frozen=True)
class OutsideTable:
    """A table that the pipeline reads and does not declare. `made_by`: the pipeline of the repository that does."""

    name: str
    locations: tuple[CodeLocation, ...]
    made_by: str | None = None

    @property
    def known(self) -> bool:
        """Whether the whole name is known before the code runs."""
        return "{" not in self.name


@dataclass(frozen=True)
class PipelineReport:
    """One pipeline: what it declares, and what it needs.

    `namespace`: the catalog and schema that its code takes for its own and no project file gives it. `strict`: expressions that a row may
    stop in ANSI mode; empty where the pipeline switches it off.
    """

    resource: BundlePipeline
    datasets: tuple[DatasetFound, ...]
    paths: tuple[tuple[str, str, tuple[CodeLocation, ...]], ...]
    tables: tuple[OutsideTable, ...]
    refused: tuple[RefusedFeature, ...]
    missing: tuple[MissingPackage, ...]
    namespace: Mapping[str, str] = field(default_factory=dict)
    strict: tuple[StrictExpression, ...] = ()

    @property
    def key(self) -> str:
        return self.resource.group.key

    @property
    def parameters(self) -> tuple[ParameterFound, ...]:
        return self.resource.parameters


@dataclass
class Report:
    """All of it.

    Attributes:
        maps, tables: what to write after `--map` and `--table`, as pairs of the code's name and a path for it.
        errors: those of the project file, with which an update would end.
    """

    folder: Path
    pipelines: list[PipelineReport]
    left_out: list[tuple[str, str]]
    projects: list[str]
    maps: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    errors: list[LakeletError] = field(default_factory=list)


def report_on(found: RepositoryCode, *, load: bool = True, groups: list[PipelineFiles] | None = None) -> Report:
    """Make the report.

    Args:
        load: run code that reading does not fully understand, apart from this process and without Spark.
        groups: the pipelines of the project file; None: by settings files and folders.
    """
    folder = found.folder
    groups = grouped(folder, found.sources, found.settings) if groups is None else groups
    for group in groups:
        group.helpers = _helpers(group, found)
        group.files, group.helpers = ([reading.with_values(group.values) for reading in some] for some in (group.files, group.helpers))
    loaded = [group for group in groups if load and needs_loading(group)]
    for number, group in enumerate(loaded):
        phases.report(f"Loading the code of {group.key}", number, len(loaded))
        add_loaded(group, folder, _import_roots(group, folder), group.values)
    kept = [group for group in groups if _stores(group)]
    views = "it declares views only; a pipeline needs a table"
    left_out = [*found.left_out, *((file.file, views) for group in groups if group not in kept for file in group.files)]
    packages = RepositoryPackages(found.roots)
    pipelines = [_pipeline(group, kept, found.roots, packages) for group in kept]
    projects = [one.relative_to(folder).as_posix() for one in found.projects]
    report = Report(folder, pipelines, sorted(left_out), projects)
    configured = [one.default for pipeline in pipelines for one in pipeline.parameters if one.configured and one.default]
    report.maps = _maps(
        [*(path for pipeline in pipelines for path, _, _ in pipeline.paths), *filter(path_map.only_on_databricks, configured)]
    )
    names = {one.name: None for pipeline in pipelines for one in pipeline.tables if one.made_by is None and one.known}
    report.tables = {name: "data/" + name.replace("`", "").replace(".", "/") for name in sorted(names)}
    return report


def _stores(group: PipelineFiles) -> bool:
    return any(one.kind != "view" for reading in group.readings for one in reading.datasets) or not any(r.datasets for r in group.files)


def _helpers(group: PipelineFiles, found: RepositoryCode) -> list[FileReading]:
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


def _import_roots(group: PipelineFiles, folder: Path) -> list[Path]:
    files = [reading.path for reading in group.files]
    return list(group.roots) or list(dict.fromkeys([_root(group), *import_roots(files, folder, folder)]))


def _pipeline(group: PipelineFiles, groups: Sequence[PipelineFiles], roots: Sequence[Path], packages: RepositoryPackages) -> PipelineReport:
    readings = group.readings
    datasets = tuple(sorted((one for reading in readings for one in reading.datasets), key=lambda one: one.location))
    reads = [one for reading in readings for one in reading.tables]
    seen = _namespace(reads, datasets)
    catalog, schema = group.catalog or seen[0], group.schema or seen[1]
    parameters = tuple(_parameters(group))
    return PipelineReport(
        BundlePipeline(group, catalog, schema, _root(group), parameters),
        datasets,
        tuple(_paths(_data_paths(readings), roots)),
        tuple(_outside(reads, datasets, (catalog, schema), group, groups)),
        tuple(sorted({one for reading in readings for one in reading.refused}, key=lambda one: (one.location, one.what))),
        tuple(packages.missing(one for reading in readings for one in reading.imports)),
        _advised(group, catalog, schema),
        () if _lenient(group) else tuple(one for reading in readings for one in reading.strict),
    )


def _root(group: PipelineFiles) -> Path:
    """The folder that modules are imported from: the highest that an import needs, else the one that holds all files."""
    roots = [root for reading in group.readings for root in reading.roots]
    return min(roots, key=lambda root: len(root.parts)) if roots else group.folder


def _lenient(group: PipelineFiles) -> bool:
    """Whether the pipeline switches ANSI mode off."""
    return group.values.get(ANSI, "").lower() == "false" or any(ANSI in reading.given for reading in group.readings)


def _advised(group: PipelineFiles, catalog: str | None, schema: str | None) -> Mapping[str, str]:
    seen = {"catalog": catalog if group.catalog is None else None, "schema": schema if group.schema is None else None}
    return {key: value for key, value in seen.items() if value}


def _namespace(reads: Sequence[TableRead], datasets: Sequence[DatasetFound]) -> tuple[str | None, str | None]:
    """The catalog and schema that the code assumes for the tables that it writes: what full names have before the name of a dataset."""
    leads = {size: _leads(reads, {one.parts for one in datasets if len(one.parts) == size}, size) for size in (1, 2)}
    of_schema, of_name = (next((lead for lead, _ in leads[size].most_common() if not _circular(reads, lead, size)), ()) for size in (2, 1))
    catalog = of_name[0] if len(of_name) == 2 else of_schema[0] if of_schema else None
    return catalog, of_name[-1] if of_name else None


def _leads(reads: Sequence[TableRead], names: set[tuple[str, ...]], size: int) -> Counter[tuple[str, ...]]:
    """What stands in front of names of `size` parts, and how often."""
    found: Counter[tuple[str, ...]] = Counter()
    for read in reads:
        lead, own = read.parts[:-size], read.parts[-size:]
        if lead and not read.live and "{" not in ".".join(lead) and own in names and lead[0] not in OUTSIDE:
            found[lead] += 1
    return found


def _circular(reads: Sequence[TableRead], home: tuple[str, ...], size: int) -> bool:
    """Whether a dataset would read itself, by way of others, if the names of `size` parts below `home` were the pipeline's own."""
    below: dict[str, set[str]] = {}
    own = [
        (".".join(name_parts(read.within)[-size:]), read)
        for read in reads
        if read.within and (read.live or read.parts[:-size] in ((), home))
    ]
    for reader, read in own:
        below.setdefault(reader, set()).add(".".join(read.parts[-size:]))
    return any(read.parts[:-size] == home and reader in _reached(".".join(read.parts[-size:]), below) for reader, read in own)


def _reached(name: str, below: Mapping[str, set[str]]) -> set[str]:
    """The name and all that it reads, directly or by way of others."""
    reached, waiting = set[str](), {name}
    while waiting:
        reached |= waiting
        waiting = {one for found in waiting for one in below.get(found, ())} - reached
    return reached


def _is_own(read: TableRead, datasets: Sequence[DatasetFound], home: tuple[str | None, str | None]) -> bool:
    """Whether a read means a dataset of the pipeline, whose own names live in `home`."""
    missing = 3 - len(read.parts)

    def at_home(one: DatasetFound) -> bool:
        beyond = read.parts[: max(0, len(read.parts) - len(one.parts))]
        known = [(part or "").lower() for part in home][missing:] if missing >= 0 else []
        return len(known) >= len(beyond) and all("{" in part or part == own for part, own in zip(beyond, known, strict=False))

    return any((_made_alike(read, one) if one.computed else same_table(read.parts, one.parts)) and at_home(one) for one in datasets)


def _made_alike(read: TableRead, dataset: DatasetFound) -> bool:
    """Whether the name that a read says may be the dataset's name, which the code makes when it runs."""
    pattern = ".*".join(map(re.escape, re.split(r"\{[^}]*\}", dataset.parts[-1])))
    return re.fullmatch(pattern, read.parts[-1]) is not None


def _parameters(group: PipelineFiles) -> Iterable[ParameterFound]:
    """Each key once; one with a default before those without. Those of a settings file belong to the pipeline, whoever asks for them."""
    readings = group.readings
    given = {key for reading in readings for key in reading.given}
    every = sorted(
        (one for reading in readings for one in reading.parameters), key=lambda one: (one.key, one.default is None, one.location)
    )
    first: dict[str, ParameterFound] = {}
    for one in every:
        if one.key not in given:
            first.setdefault(one.key, one)
    if group.settings:
        where = CodeLocation(group.settings, 1)
        first |= {key: ParameterFound(key, value, where, configured=True) for key, value in group.values.items()}
    return first.values()


def _data_paths(readings: Iterable[FileReading]) -> list[PathFound]:
    """The paths that the code names, without those that it imports modules from."""
    readings = list(readings)
    imported = {path for reading in readings for path in reading.import_paths}
    return [one for reading in readings for one in reading.paths if one.path not in imported]


def _paths(paths: Sequence[PathFound], roots: Sequence[Path]) -> Iterable[tuple[str, str, tuple[CodeLocation, ...]]]:
    """The paths that this machine does not have, each with the format of its files and its locations."""
    locations: dict[str, dict[CodeLocation, None]] = {}
    formats: dict[str, str] = {}
    heads = only_heads(paths)
    for one in paths:
        if one.path not in heads and (one.fixed < len(one.path) or not is_here(one.path, roots)):
            locations.setdefault(one.path, {})[one.location] = None
            formats[one.path] = formats.get(one.path) or one.format
    return [(path, formats[path], tuple(sorted(locations[path]))) for path in sorted(locations) if path.strip("/. ")]


def _outside(
    reads: Iterable[TableRead],
    datasets: Sequence[DatasetFound],
    home: tuple[str | None, str | None],
    group: PipelineFiles,
    groups: Sequence[PipelineFiles],
) -> Iterable[OutsideTable]:
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
        yield OutsideTable(same[0].name, tuple(sorted({one.location for one in same})), made[0] if made else None)


# ---------------------------------------------------------------------------------------------------------- suggestions


def _maps(paths: Iterable[str]) -> dict[str, str]:
    """A prefix for each folder that files come from, and a folder for it."""
    prefixes = {prefix(PathFound(path, _fixed(path), CodeLocation("", 0))) for path in paths if path_map.needs_map(path)} - {""}
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
        "left_aside": [{"file": file, "why": why} for file, why in report.left_out],
        "projects": report.projects,
        "errors": [{"code": e.code, "what": e.what, "where": str(e.where) if e.where else None} for e in report.errors],
    }


def _pipeline_json(one: PipelineReport) -> Mapping[str, Any]:
    def locations(found: Iterable[CodeLocation]) -> list[str]:
        return [str(location) for location in found]

    return {
        "key": one.key,
        "files": [reading.file for reading in one.resource.group.files],
        "datasets": [{"name": d.name, "kind": d.kind, "where": str(d.location), "computed": d.computed} for d in one.datasets],
        "paths": [
            {"path": p, "format": form or None, "needs_map": path_map.needs_map(p), "where": locations(found)}
            for p, form, found in one.paths
        ],
        "tables": [{"name": t.name, "made_by": t.made_by, "where": locations(t.locations)} for t in one.tables],
        "parameters": [{"key": p.key, "default": p.default, "where": str(p.location)} for p in one.parameters],
        "not_supported": [{"code": r.code, "what": r.what, "where": str(r.location)} for r in one.refused],
        "namespace": dict(one.namespace),
        "ansi": [{"expression": s.text, "instead": s.tolerant, "where": str(s.location)} for s in one.strict],
        "missing_packages": [{"module": m.module, "package": m.package, "where": locations(m.locations)} for m in one.missing],
    }
