"""Differences between a local run and Databricks with which the same code may give different results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from lakelet.base.errors import LakeletError, Location
from lakelet.config import delta_properties, properties
from lakelet.config.rule_files import read_rule_file, rule_files
from lakelet.config.tool_settings import ToolSettings, read_tool_settings, setting_line
from lakelet.config.yaml_tree import ConfigNode, Problems, Remark, children, elements, shown_path
from lakelet.deploy.bundle.coverage import CODE
from lakelet.deploy.desired_state import ResourceKey

_DATABRICKS_ONLY = {
    "filters": "a local run takes all source files",
    "gateway_definition": "a local run has no gateways",
    "ingestion_definition": "a local run has no managed connectors",
    "storage": "a local run has its own storage",
}
"""Keys of a pipeline that change what it computes, and that a local run ignores."""

_QUARANTINE = re.compile(r"lakelet\.quarantine")


def platform_differences(
    root: Path, cwd: Path, pipelines: Mapping[ResourceKey, ConfigNode], sources: Iterable[Path], problems: Problems
) -> list[Remark]:
    """Return the findings with their locations.

    Args:
        root: folder of the project.
        pipelines: as they are deployed.
        sources: their source files.

    A value that a local run refuses, and a source that only a local run has, are noted in `problems`.
    """
    files = sorted(set(sources))
    remarks: list[Remark] = []
    with problems.collected():
        settings = read_tool_settings(root, cwd)
        remarks += _setting_differences(settings, root, cwd, pipelines)
        _note_local_sources(settings, root, cwd, files, problems)
    for key, pipeline in pipelines.items():
        remarks += _pipeline_differences(key, pipeline, problems)
    remarks += _table_checks(root, cwd)
    remarks += _quarantines(files, cwd)
    return remarks


def _setting_differences(settings: ToolSettings, root: Path, cwd: Path, pipelines: Mapping[ResourceKey, ConfigNode]) -> Iterator[Remark]:
    """Without the values of parameters: they may be secrets."""

    def at(key: str) -> Location:
        return Location(shown_path(root / "pyproject.toml", cwd), setting_line(root, key))

    for prefix, path in settings.maps:
        yield f"only here: {prefix} is mapped to {path}; there it must exist", at("map")
    for name, path in settings.tables:
        yield f"only here: the table {name} is read from {path}; there it must exist", at("table")
    for key, value in settings.parameters.items():
        for pipeline, node in pipelines.items():
            there = node.get("configuration", key)
            if there is None:
                yield f"only here: the parameter {key}; {pipeline} has none in its configuration", at("parameters")
            elif there.text != value:
                yield f"the parameter {key} has one value here, and another one in the configuration of {pipeline}", at("parameters")
    for key, wanted in (("catalog", settings.catalog), ("schema", settings.schema)):
        for pipeline, node in pipelines.items():
            there = node.get(key)
            if wanted and there is not None and there.text != wanted:
                yield f"the {key} of names without one is {wanted} here, and {there.text} for {pipeline}", at(key)


def _note_local_sources(settings: ToolSettings, root: Path, cwd: Path, files: list[Path], problems: Problems) -> None:
    """`[tool.lakelet] sources` name files outright that no pipeline has."""
    known = {str(file) for file in files}
    for source in settings.sources:
        path = (root / source).resolve()
        if path.is_file() and str(path) not in known:
            where = Location(shown_path(root / "pyproject.toml", cwd), setting_line(root, "sources"))
            what = f"{source} is a source of local runs, and no pipeline of the bundle has it in its libraries"
            problems.add(LakeletError(CODE, what, where=where, todo=f"Add it: libraries: [{{file: {{path: {source}}}}}]"))


def _pipeline_differences(key: ResourceKey, pipeline: ConfigNode, problems: Problems) -> Iterator[Remark]:
    for name, why in _DATABRICKS_ONLY.items():
        node = pipeline.get(name)
        if node is not None:
            yield f"only there: {name} of {key}; {why}", node.where
    cascade = pipeline.get("cascade_on_destroy")
    if cascade is not None and cascade.value is True:
        yield f"cascade_on_destroy of {key} has no effect: tables are deleted with --with-data {key} only", cascade.where
    for library in elements(pipeline.get("libraries")):
        for kind in ("jar", "maven"):
            if (node := library.get(kind)) is not None:
                yield f"only there: a library of kind {kind} of {key}; a local run refuses it", node.where
    development = pipeline.get("development")
    for name, node in children(pipeline.get("configuration")).items():
        for found in properties.examine({name: node.text}, of="pipeline", development=bool(development and development.value)):
            if found.invalid:
                problems.bad(node, found.text, code="PROPERTY_INVALID")
            else:
                yield f"only there: {found.text}", node.where
        if name.startswith(delta_properties.DEFAULTS):
            for remark in delta_properties.examine_default(name, node.text):
                yield f"only there: {remark.text}", node.where


def _table_checks(root: Path, cwd: Path) -> Iterator[Remark]:
    for file in rule_files(root / "expectations"):
        checks = read_rule_file(file).checks
        if checks:
            yield (
                f"only here: {len(checks)} table check{'s' if len(checks) > 1 else ''} after each update; Databricks makes none",
                Location(shown_path(file, cwd), checks[0].line),
            )


def _quarantines(files: Iterable[Path], cwd: Path) -> Iterator[Remark]:
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        match = _QUARANTINE.search(text)
        if match:
            line = text.count("\n", 0, match.start()) + 1
            yield (
                "only here: rows that break a drop rule are kept in a quarantine; there they are dropped",
                Location(shown_path(file, cwd), line),
            )
