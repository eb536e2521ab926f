"""Lookups of `lakelet new table` before it writes: the project, the source table, and the rules that its rows suggest."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from lakelet.base.errors import LakeletError, Location
from lakelet.cli.console import shown_phases
from lakelet.cli.spark_start import spark_starts
from lakelet.config.update_config import PipelineConfig, load_config
from lakelet.files.paths import AnyPath
from lakelet.scaffold import NewFile, NewName, NewTable, SourceTable, SuggestedRule, named_source, table_files, table_name
from lakelet.scaffold.projects import rules_loader
from lakelet.scaffold.tables import LAYERS, Language

if TYPE_CHECKING:
    from lakelet.inspection.inspector import TableInfo
    from lakelet.rules.suggestions import Suggestion


Layers = dict[str, tuple[str, Location]]


@dataclass(frozen=True)
class PlannedTable:
    """The files of a new table, not yet written. `root`: the project's folder."""

    root: Path
    files: tuple[NewFile, ...]
    new: NewTable


def planned(
    name: str, source: str, *, where: str | None, language: Language, storage: str | None, note: Callable[[str], None]
) -> PlannedTable:
    """Read the project in the current folder and its storage, profile the source, and return the files to write.

    Raises NAME_INVALID, DUPLICATE_DATASET, UNKNOWN_TABLE, UNKNOWN_COLUMN, and SQL_FAILED for a condition that fails analysis.
    """
    asked, config = table_name(name), load_config((), storage=storage)
    declared = _declared_tables(config)
    if asked.name in declared:
        where_declared = declared[asked.name][1]
        raise LakeletError("DUPLICATE_DATASET", f"the pipeline has a dataset {asked.name} already", where=where_declared)
    table = named_source(source, _stored_tables(config, declared))
    note(f"Profiling {table.full_name} ...")
    with shown_phases(sys.stderr, "Running the queries"):
        found = _suggested_rules(config, table, asked.name, where)
    rules = tuple(SuggestedRule(one.action, one.rule, one.constraint) for one in found if one.action != "checks")
    new = NewTable(asked, table, where, language, rules, _rules_text(found), _folder_of_layer(config, asked))
    return PlannedTable(config.root, (*table_files(new), *_loader_of_rule_files(config.root)), new)


def belongs(planned: PlannedTable) -> bool:
    """Return whether the libraries of the pipeline include the written source file."""
    return planned.root / planned.new.file in load_config((), cwd=planned.root).files


def _declared_tables(config: PipelineConfig) -> Layers:
    """Return the folder name and location of each dataset that the project's code declares, by name in lower case. No code is run."""
    from lakelet.project.init.repository import read_repository

    found: Layers = {}
    for reading in read_repository(config.root, config.files).sources:
        for one in reading.datasets:
            location = Location(one.location.file, one.location.line)
            found.setdefault(one.parts[-1], (reading.path.parent.name, location))
    return found


def _stored_tables(config: PipelineConfig, declared: Layers) -> list[SourceTable]:
    from lakelet.inspection.inspector import list_tables

    if not config.storage.is_dir():
        return []
    changing, stored = _change_tables(config.storage), list_tables(config.storage, private=True)
    return [_source_table(config, info, declared, changing) for info in stored if info.columns and not info.quarantine_of]


def _change_tables(folder: AnyPath) -> frozenset[str]:
    """Return the names of the stored tables whose rows change events update: no stream can read them."""
    from lakelet.storage.root import INTERNAL, Storage

    storage = Storage(folder)
    return frozenset(d.name for d in storage.registry().datasets.values() if d.path and (storage.at(d.path) / INTERNAL).exists())


def _source_table(config: PipelineConfig, info: TableInfo, declared: Layers, changing: Container[str]) -> SourceTable:
    from lakelet.language.model import Kind

    prefix = f"{config.namespace.catalog}.{config.namespace.schema}."
    short = info.name.removeprefix(prefix)
    layer = declared.get(info.name.rsplit(".", 1)[-1].lower(), ("", None))[0]
    streamable = info.kind is Kind.STREAMING_TABLE and info.name not in changing
    columns = tuple((column["name"], column["type"]) for column in info.columns)
    return SourceTable(short, info.name, layer if layer in LAYERS else "", streamable, columns)


def _suggested_rules(config: PipelineConfig, table: SourceTable, dataset: str, where: str | None) -> Sequence[Suggestion]:
    from lakelet.rules.suggestions import suggest_for_new

    try:
        found = suggest_for_new(config.storage, table.full_name, dataset, where, note=spark_starts)
    except LakeletError as error:
        if error.code != "SQL_FAILED" or where is None:
            raise
        reason = (error.why or error.what).splitlines()[0]  # what follows is the plan of the profile
        raise LakeletError("SQL_FAILED", f"the condition {where!r} of --where failed analysis", why=reason) from error
    checked = importlib.util.find_spec("great_expectations") is not None
    return [one for one in found if checked or one.action != "checks"]


def _rules_text(found: Sequence[Suggestion]) -> str:
    from lakelet.rules.suggestions import suggested_yaml

    return suggested_yaml(found)


def _folder_of_layer(config: PipelineConfig, asked: NewName) -> PurePosixPath:
    """Return the project's folder of that layer, else a new one beside another layer's, else `pipelines/<layer>`."""
    folders = dict.fromkeys(parent for file in config.files for parent in file.parents if parent.is_relative_to(config.root))
    same = [folder for folder in folders if folder.name == asked.layer]
    beside = [folder.with_name(asked.layer) for folder in folders if folder.name in LAYERS]
    found = next(iter([*same, *beside]), config.root / "pipelines" / asked.layer)
    return PurePosixPath(found.relative_to(config.root).as_posix())


def _loader_of_rule_files(root: Path) -> list[NewFile]:
    """Return the loader of rule files, if the project has none."""
    loader = rules_loader()
    return [] if (root / loader.path).exists() else [loader]
