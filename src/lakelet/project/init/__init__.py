"""`lakelet init`: reads a repository that others wrote, says what it found, and makes a starter `databricks.yml`. No Spark.

Code is read, not run; only names that running code makes are learned by loading it, in a process of its own that cannot write.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lakelet.base.errors import LakeletError
from lakelet.base.text import counted, listed
from lakelet.config.bundle import load_bundle
from lakelet.config.bundle_files import bundle_file
from lakelet.config.project_sources import project_above
from lakelet.config.source_files import MOST_FILES, FolderWalk, all_in_folder, is_shared, shared_error
from lakelet.config.spark_pipeline_file import spark_file
from lakelet.config.update_config import PipelineConfig, load_config
from lakelet.project.init.grouping import group_of, slug
from lakelet.project.init.report import Report, as_json, report_on
from lakelet.project.init.report_text import report_lines
from lakelet.project.init.repository import RepositoryCode, read_repository
from lakelet.project.init.starter_bundle import bundle_text
from lakelet.project.init.undeclared_results import PlainResult, plain_results
from lakelet.scaffold import DataSet, data_sets, pipeline_of, write_new

__all__ = ["InitResult", "Report", "as_json", "report_lines", "start"]

BUNDLE = "databricks.yml"
_SHOWN = 3
_PLAIN = "The code computes data frames and declares no dataset. Lakelet stores the rows of functions that a decorator declares."
_SOURCE = "A source imports dlt or pyspark.pipelines, or holds CREATE STREAMING TABLE and the like."


@dataclass(frozen=True)
class InitResult:
    """Result of `init`.

    Attributes:
        written: the bundle file; None where none was written.
        existing: the project file that was there already; None without.
        made: all files of the pipeline that was made for a folder of data files; empty where there was code.
    """

    report: Report
    written: Path | None
    existing: Path | None
    made: tuple[Path, ...] = ()


def _nothing_found(found: RepositoryCode, report: Report, sets: Sequence[DataSet]) -> LakeletError:
    """Return the error for a folder without pipeline code: what the folder holds, and the next command."""
    folder = found.folder
    why = "\n".join([*(f"{file}: {why}" for file, why in report.left_out[:5]), *_projects_below(found)]) or None
    if sets:
        names = listed([one.name for one in sets], 5)
        todo = f"lakelet init (without --report) makes a pipeline of the data files in it: {names}"
    elif not any(folder.iterdir()):
        todo = "The folder is empty. Begin with a project that runs: lakelet new project ."
    else:
        plain = _plain_files(found)
        lines = [line for one in plain[:_SHOWN] for line in one.advice()]
        more = [f"{counted(len(plain) - _SHOWN, 'more file')} like these: {listed([one.location.file for one in plain[_SHOWN:]], 5)}"]
        lines += more if len(plain) > _SHOWN else []
        last = f"Then again: lakelet init {shlex.quote(str(folder))}" if folder != Path.cwd() else "Then again: lakelet init"
        todo = "\n".join([*lines, last] if lines else [f"{_SOURCE} A project to copy from: lakelet new project NAME"])
        why = "\n".join(filter(None, [why, _PLAIN if lines else ""])) or None
    return LakeletError("NO_SOURCES", f"no pipeline source file in {folder}", why=why, todo=todo)


def _plain_files(found: RepositoryCode) -> list[PlainResult]:
    """What the files compute that declare no dataset, those of other projects left out."""
    others = [one.parent for one in found.projects]
    files = [file for file in all_in_folder(found.folder) if not any(file.is_relative_to(other) for other in others)]
    return plain_results(found.folder, files)


def _projects_below(found: RepositoryCode) -> list[str]:
    """A line for each project further down, whose code was left to it."""
    return [f"{file.relative_to(found.folder)}: a project of its own; lakelet init {file.parent}" for file in found.projects[:5]]


def _declared(folder: Path) -> tuple[dict[str, PipelineConfig], list[LakeletError]]:
    """The pipelines of the folder's own project file, and the errors of those that `lakelet run` refuses."""
    file = bundle_file(folder)
    keys = [str(folder)]
    errors: list[LakeletError] = []
    configs: dict[str, PipelineConfig] = {}
    try:
        keys = keys if file is None else list(load_bundle(file, target=None, cwd=folder, environ=os.environ).pipelines())
    except LakeletError as error:
        return {}, [error]
    for key in keys:
        try:
            configs["pipeline" if file is None else key] = load_config([key], cwd=folder)
        except LakeletError as error:
            errors.append(error)
    return configs, errors


def _project_file_error(folder: Path) -> list[LakeletError]:
    """The error with which an update of a project file without pipelines ends."""
    try:
        load_config([str(folder)])
    except LakeletError as error:
        return [error]
    return []


def start(folder: Path, *, write: bool = True, load: bool = True) -> InitResult:
    """Read the repository in `folder` and write its `databricks.yml`, unless it has a project file already.

    A folder without pipeline code that holds CSV or JSON files gets a pipeline with a bronze table for each set of them. Nothing else is
    written, and nothing outside of the folder. Raises USAGE if there is no such folder, NO_SOURCES if it holds neither, with what to do.
    """
    folder = folder.resolve()
    if not folder.is_dir():
        raise LakeletError("USAGE", f"{folder} is not a folder", todo="Name the folder of the repository: lakelet init FOLDER")
    existing = bundle_file(folder) or spark_file(folder)
    declared, errors = _declared(folder) if existing is not None else ({}, [])
    files = list(dict.fromkeys(file for config in declared.values() for file in config.files))
    marked = project_above(folder) is not None
    walk = FolderWalk(folder, most=None if marked else MOST_FILES)
    found = read_repository(folder, files or None, walk, above=[root for config in declared.values() for root in config.synced])
    groups = [group_of([one for one in found.sources if one.path in config.files], key, config) for key, config in declared.items()]
    report = report_on(found, load=load, groups=groups or None)
    report.errors = errors or (_project_file_error(folder) if existing is not None and report.pipelines and not declared else [])
    if not report.pipelines and existing is None:
        if is_shared(folder):
            raise shared_error(folder)
        sets = data_sets(folder)
        if not (write and sets):
            raise _nothing_found(found, report, sets)
        settings = not (folder / "pyproject.toml").exists()
        made = write_new(folder, pipeline_of(sets, name=slug(folder.name) or "pipeline", settings=settings))
        return InitResult(report, folder / BUNDLE, None, made)
    written = None
    if write and existing is None:
        written = folder / BUNDLE
        with written.open("x", encoding="utf-8") as file:
            file.write(bundle_text(folder, [pipeline.resource for pipeline in report.pipelines]))
    return InitResult(report, written, existing)
