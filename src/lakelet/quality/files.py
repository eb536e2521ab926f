"""The rule files of a project, and their errors as coded ones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lakelet.base.errors import DefinitionErrors, LakeletError, Location
from lakelet.config.rule_files import Check, Rule, RuleError, read_rule_file, rule_files

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
