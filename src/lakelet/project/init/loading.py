"""Adds to what was read of a pipeline's code what loading it finds: the loader of `lakelet run` resolves what reading cannot. No Spark.

The files are loaded by `lakelet.project.init.trial` in another process, which gives rows of JSON.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakelet.project.init.findings import (
    CodeLocation,
    DatasetFound,
    FileReading,
    PathFound,
    RefusedFeature,
    TableRead,
    UnknownParts,
    path_found,
    same_table,
)
from lakelet.project.init.grouping import PipelineFiles
from lakelet.project.init.sql_reading import names_of

_HOLE = re.compile(r"\{[^}]*\}")


def needs_loading(group: PipelineFiles) -> bool:
    """Whether reading leaves open what the code declares or reads, or finds a dataset declared twice."""
    names = [one.parts for reading in group.files for one in reading.datasets if not one.computed]
    return any(reading.incomplete or reading.unresolved for reading in group.readings) or len(set(names)) < len(names)


def add_loaded(group: PipelineFiles, folder: Path, roots: Sequence[Path], values: Mapping[str, str]) -> None:
    """Load the files of a pipeline and put what that finds in place of what was not known. `values`: of its parameters."""
    given = {one.key: one.default for reading in group.readings for one in reading.parameters if one.default is not None}
    given |= values
    unknown = sorted({one.key for reading in group.readings for one in reading.parameters} - set(given))
    found = trial_of(folder, [reading.path for reading in group.files], roots, given, unknown)
    home = {reading.file: reading for reading in group.readings}
    _add_datasets(group, found, home)
    reads: dict[str, list[Mapping[str, Any]]] = {}
    for row in found.reads:
        reads.setdefault(row["file"], []).append(row)
    paths = [one.path for row in found.reads for one in _paths_of(row)]
    tables = [one.name for row in found.reads for one in _tables_of(row)]
    for reading in group.readings:
        rows = reads.get(reading.file, [])
        reading.paths = [one for one in reading.paths if not _is_replaced(one.path, one.location, rows, paths, found.complete)]
        reading.tables = [one for one in reading.tables if not _is_replaced(one.name, one.location, rows, tables, found.complete)]
    for file, rows in reads.items():
        _add_reads(home.get(file, group.files[0]), rows)
    _add_refusals(group, found.refusals, home)


def _add_datasets(group: PipelineFiles, found: LoadingTrial, home: Mapping[str, FileReading]) -> None:
    unfinished = found.unfinished
    for reading in group.readings if unfinished is not None else ():
        own = reading in group.files
        if reading.file not in (unfinished or ()) and (own or not unfinished):
            inner = {one for one in reading.datasets if one.computed or not own}
            reading.datasets = [one for one in reading.datasets if one not in inner]
    for row in found.datasets:
        reading = home.get(row["file"], group.files[0])
        computed = "{" in row["name"].split(".")[-1]
        new = DatasetFound(row["name"], row["kind"], CodeLocation(row["file"], row["line"]), computed, loaded=True)
        if not any(same_table(new.parts, one.parts) and not one.computed for one in reading.datasets):
            reading.datasets.append(new)


def _is_replaced(text: str, location: CodeLocation, rows: Iterable[Mapping[str, Any]], found: Iterable[str], complete: bool) -> bool:
    """Whether loading says what stands for a text with holes: all of the code ran, or the function around it, or one of its names fits."""
    if "{" not in text:
        return False
    pattern = re.compile(".+".join(map(re.escape, _HOLE.split(text))), re.IGNORECASE)
    ran = any(row["first"] <= location.line <= row["last"] and row["cell"] == location.cell for row in rows)
    return complete or ran or any(pattern.fullmatch(one) for one in found)


def _location(row: Mapping[str, Any]) -> CodeLocation:
    return CodeLocation(row["file"], row["line"], row["cell"])


def _tables_of(row: Mapping[str, Any]) -> list[TableRead]:
    names = [row["text"]] if row["what"] == "table" else [one.text for one in names_of(row["text"]).tables] if row["what"] == "sql" else []
    return [TableRead(name, _location(row), row["within"] or None) for name in names]


def _paths_of(row: Mapping[str, Any]) -> list[PathFound]:
    if row["what"] == "path":
        return [path_found(row["text"], UnknownParts(), _location(row), row["format"])]
    named = names_of(row["text"]).paths if row["what"] == "sql" else ()
    return [path_found(one.text, UnknownParts(), _location(row), one.format) for one in named]


def _add_reads(reading: FileReading, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add what the rows name; a name that reading found too stays where it was found."""
    for row in rows:
        for table in _tables_of(row):
            if not any(one.parts == table.parts for one in reading.tables):
                reading.tables.append(table)
        for path in _paths_of(row):
            if not any(one.path.rstrip("/") == path.path.rstrip("/") for one in reading.paths):
                reading.paths.append(path)


def _add_refusals(group: PipelineFiles, refusals: Iterable[Mapping[str, Any]], home: Mapping[str, FileReading]) -> None:
    """Add the errors that an update raises too, those at a line for which reading found none."""
    known = {(one.code, one.location.file, one.location.line) for reading in group.readings for one in reading.refused}
    for row in refusals:
        if (row["code"], row["file"], row["line"]) not in known:
            home.get(row["file"], group.files[0]).refused.append(RefusedFeature(row["code"], row["what"], _location(row)))


TRIAL_SECONDS = 20


@dataclass(frozen=True)
class LoadingTrial:
    """What loading found, as rows of JSON.

    Attributes:
        datasets: each with name, kind, file and line.
        reads: what the functions read (`UnreadSession`).
        refusals: errors that an update raises too, each with code, what, file, line and cell.
        complete: whether every file, and every function of a dataset, came to its end.
        unfinished: the files that did not come to their end, as the report names them; None where nothing was loaded.
    """

    datasets: Sequence[Mapping[str, Any]] = ()
    reads: Sequence[Mapping[str, Any]] = ()
    refusals: Sequence[Mapping[str, Any]] = ()
    complete: bool = False
    unfinished: Sequence[str] | None = None


def trial_of(
    folder: Path, files: Sequence[Path], roots: Sequence[Path], parameters: Mapping[str, str], unknown: Sequence[str] = ()
) -> LoadingTrial:
    """Load the files and run the functions of their datasets.

    `unknown`: parameters without a value; where nothing can be loaded without them, they are `{key}`.
    """
    found = _tried_once(folder, files, roots, dict(parameters))
    if not found.complete and unknown:
        with_names = _tried_once(folder, files, roots, {**{key: "{" + key + "}" for key in unknown}, **parameters})
        found = with_names if len(with_names.datasets) >= len(found.datasets) else found
    return found


def _tried_once(folder: Path, files: Sequence[Path], roots: Sequence[Path], parameters: Mapping[str, str]) -> LoadingTrial:
    asked = {"files": [*map(str, files)], "roots": [*map(str, roots)], "parameters": parameters}
    try:
        done = subprocess.run(
            [sys.executable, "-B", "-m", "lakelet.project.init.trial"],
            input=json.dumps(asked),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=TRIAL_SECONDS,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"},
        )
        return LoadingTrial(**json.loads(done.stdout.splitlines()[-1]))
    except (subprocess.TimeoutExpired, OSError, ValueError, IndexError):
        return LoadingTrial()
