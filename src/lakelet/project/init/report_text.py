"""The report of `lakelet init` as lines of text. Pure."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from lakelet.base.text import aligned, counted, listed
from lakelet.config.path_map import needs_map
from lakelet.project.init.findings import CodeLocation, ParameterFound
from lakelet.project.init.report import ANSI, PipelineReport, Report


def report_lines(report: Report) -> Iterator[str]:
    """The whole report; a line that ends with a colon begins a part."""
    count = sum(len(one.datasets) for one in report.pipelines)
    files = sum(len(one.resource.group.files) for one in report.pipelines)
    if report.pipelines:
        yield f"{counted(len(report.pipelines), 'pipeline')}, {counted(count, 'dataset')} in {counted(files, 'source file')}"
    else:
        yield "no pipeline: the project file names no source file that declares a dataset"
    for one in report.pipelines:
        yield ""
        yield from _pipeline(one)
    if report.maps or report.tables:
        yield ""
        yield from _settings(report)
    if report.errors:
        yield ""
        yield "The project file stops an update:"
        yield from (f"  {line}" for error in report.errors for line in str(error).splitlines())
    if report.projects:
        yield ""
        yield "Projects of their own, left as they are:"
        yield from (f"  {one}" for one in report.projects)
    if report.left_out:
        yield ""
        yield "Left aside:"
        yield from (f"  {file}: {why}" for file, why in report.left_out)


def _pipeline(one: PipelineReport) -> Iterator[str]:
    home = os.path.commonpath([PurePosixPath(reading.file).parent for reading in one.resource.group.files])
    lead = f"{home}/" if home else ""

    def location(where: CodeLocation) -> str:
        return str(where).removeprefix(lead)

    def locations(found: Sequence[CodeLocation]) -> str:
        return listed([location(where) for where in found], 2)

    yield f"pipeline {one.key}{f', in {lead}' if lead else ''}:"
    kinds = {"table": "table", "streaming_table": "streaming table", "materialized_view": "materialized view"}
    rows = [
        (d.name, kinds.get(d.kind, d.kind) + (" (named when it runs)" if d.computed else ""), location(d.location)) for d in one.datasets
    ]
    yield from _part("datasets", _aligned(rows))
    paths = [(path, form, "" if needs_map(path) else "not on this machine", locations(found)) for path, form, found in one.paths]
    yield from _part("files it names", _aligned(paths))
    outside = [(t.name, f"made by the pipeline {t.made_by}" if t.made_by else "", locations(t.locations)) for t in one.tables]
    yield from _part("tables from outside", _aligned(outside))
    own = [f"{key} {value}: in the bundle, or --{key} {value}" for key, value in one.namespace.items()]
    yield from _part("its own tables, as its code names them", own)
    parameters = [(p.key, _value(p), location(p.location)) for p in one.parameters]
    yield from _part("parameters", _aligned(parameters))
    yield from _part("not supported", [f"{location(r.location)}  [{r.code}] {r.what}" for r in one.refused])
    yield from _part(
        "ANSI mode is on, as in Databricks' serverless pipelines; older runtimes turned such rows into NULL", _strict(one, lead)
    )
    missing = [(m.module, m.remedy, locations(m.locations)) for m in one.missing]
    yield from _part("packages that are not installed", _aligned(missing))


def _strict(one: PipelineReport, lead: str) -> list[str]:
    """One line: the first expression that a row may stop, and what the owner chooses between."""
    if not one.strict:
        return []
    first = one.strict[0]
    text = first.text if len(first.text) <= 60 else first.text[:59] + "…"
    more = f" (and {counted(len(one.strict) - 1, 'more expression')})" if len(one.strict) > 1 else ""
    where = str(first.location).removeprefix(lead)
    return [f'{where}  {text}{more}: write {first.tolerant} for NULL, or set {ANSI}: "false" in the pipeline\'s configuration']


def _value(parameter: ParameterFound) -> str:
    if parameter.default is None:
        return "no default"
    return f'{"set to" if parameter.configured else "default"} "{parameter.default}"'


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows in columns, without those that are empty."""
    filled = [at for at in range(len(rows[0])) if any(row[at] for row in rows)] if rows else []
    return aligned([[row[at] for at in filled] for row in rows])


def _part(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"  {title}:"
        yield from (f"    {line}" for line in lines)


def _settings(report: Report) -> Iterator[str]:
    yield "Inputs to map. Put your own folders behind =, in pyproject.toml:"
    for key, pairs in (("map", report.maps), ("table", report.tables)):
        if pairs:
            yield f"  [tool.lakelet.{key}]"
            yield from (f"  {_toml(name)} = {_toml(path)}" for name, path in pairs.items())
    yield "or after the command:"
    for key, pairs in (("map", report.maps), ("table", report.tables)):
        yield from (f"  --{key} {shlex.quote(f'{name}={path}')}" for name, path in pairs.items())


def _toml(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
