"""The rule files of a project, and their errors as coded ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from lakelet.base.errors import DefinitionErrors, LakeletError, Location
from lakelet.config.rule_files import Check, Rule, RuleError, read_rule_file, rule_files
from lakelet.language.model import Dataset, Definitions, Expectation

FOLDER = "expectations"
"""The folder of rule files, in the project's own."""


def folder_above(start: Path) -> Path:
    """The folder of rule files of the project that `start` lies in; that of `start` itself where none is there."""
    return next((f / FOLDER for f in (start, *start.parents) if (f / FOLDER).is_dir()), start / FOLDER)


def rule_file_errors(errors: Iterable[RuleError]) -> list[LakeletError]:
    """Return the errors of rule files as coded ones with their location."""
    return [LakeletError("RULE_FILE_INVALID", e.what, where=Location(e.file, e.line), nearest=e.nearest) for e in errors]


def read_all(folder: Path) -> tuple[list[Rule], list[Check]]:
    """All rules and checks of the folder. Raises DefinitionErrors with every error of every file."""
    found = [read_rule_file(path) for path in rule_files(folder)]
    errors = rule_file_errors(error for file in found for error in file.errors)
    if errors:
        raise DefinitionErrors(errors)
    return [rule for file in found for rule in file.rules], [check for file in found for check in file.checks]


def with_rule_locations(definitions: Definitions, folder: Path) -> Definitions:
    """The definitions with the position in the rule file of each rule that comes from one. Errors in rule files are left to others."""
    if not any(dataset.expectations for dataset in definitions.datasets):
        return definitions
    written = [rule for path in rule_files(folder) for rule in read_rule_file(path).rules]
    return replace(definitions, datasets=tuple(_located(dataset, written) for dataset in definitions.datasets)) if written else definitions


def _located(dataset: Dataset, written: Sequence[Rule]) -> Dataset:
    origins = [(rule, origin(dataset, rule, written)) for rule in dataset.expectations]
    found = tuple(replace(rule, where=Location(entry.file, entry.line)) if entry else rule for rule, entry in origins)
    return replace(dataset, expectations=found) if any(entry for _, entry in origins) else dataset


def origin(dataset: Dataset, expectation: Expectation, written: Sequence[Rule]) -> Rule | None:
    """The entry of the rule files that an expectation comes from: of its name and text, those written for the dataset first."""
    same = [r for r in written if r.name == expectation.name and r.constraint == expectation.text]
    own = [r for r in same if r.section == "datasets" and r.subject.lower() in (dataset.name.name.lower(), dataset.name.key)]
    shared = [r for r in same if r.section != "datasets"]
    return next(iter([*own, *shared, *same]), None)
