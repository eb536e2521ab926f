"""The table checks of a project: those of its rule files, and its suites of Great Expectations, by dataset."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lakelet.base.errors import DefinitionErrors, LakeletError, Location
from lakelet.base.names import Namespace
from lakelet.config.rule_files import SECTIONS, Check, read_rule_file, rule_files
from lakelet.quality.suites import META, SuiteExpectation, check_name, expectation_of, read_suite, suite_files


@dataclass(frozen=True)
class TableCheck:
    """One check of one table. `check`: what the rule file says, None for an expectation of a suite. `name` is unique in its table."""

    name: str
    severity: str
    expectation: SuiteExpectation
    check: Check | None
    where: Location

    @property
    def about(self) -> Mapping[str, Any]:
        """What its author says of it: `description`, `owner`, `tags`; without what is not said."""
        if self.check is not None:
            given: Mapping[str, Any] = self.check._asdict()
        else:
            given = found if isinstance(found := self.expectation.meta.get(META), Mapping) else {}
        texts = {key: str(given[key]) for key in ("description", "owner") if given.get(key)}
        tags = given.get("tags") or ()
        return {**texts, "tags": list(map(str, tags))} if tags and not isinstance(tags, str) else texts

    @property
    def unique_columns(self) -> tuple[str, ...]:
        """The columns that it finds unique together; empty of another check."""
        return tuple(self.check.arguments["columns"]) if self.check is not None and self.check.kind == "unique" else ()

    @property
    def digest(self) -> str:
        """Changes with what is checked, and with its severity."""
        kwargs = {"type": self.expectation.type, "kwargs": self.expectation.kwargs, "severity": self.severity}
        arguments = {"kind": self.check.kind, **self.check.arguments} if self.check else {}
        text = json.dumps([kwargs, arguments], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def expected(self) -> str:
        """Return the expected value in a few words."""
        if self.check is None:
            return f"{self.expectation.type} {json.dumps(dict(self.expectation.kwargs), default=str)}"
        return expected_text(self.check)


def expected_text(check: Check) -> str:
    """A check in a few words."""
    a = check.arguments
    bounds = " and ".join(f"{words} {a[key]}" for key, words in (("at_least", "at least"), ("at_most", "at most")) if key in a)
    columns = ", ".join(a.get("columns", ()))
    share = f"{a['at_least']:.0%} of the values" if isinstance(a.get("at_least"), float) else "all values"
    texts = {
        "unique": lambda: f"no two rows with the same {columns}",
        "complete": lambda: f"{share} of {a['column']} known",
        "rows": lambda: f"{a['at_least']} rows" if a.get("at_least") == a.get("at_most") else f"{bounds} rows",
        "fresh": lambda: f"newest {a['column']} not older than {_duration(a['within'])}",
        "references": lambda: f"every {columns} in {a['table']} ({', '.join(a.get('to') or a['columns'])})",
        "values": lambda: f"{share} of {a['column']} in {', '.join(map(str, a['in']))}",
        "quantile": lambda: f"{a['q']:g} quantile of {a['column']} {bounds}",
        "no_rows": lambda: f"no rows from {a['query']}",
    }
    return texts[check.kind]() if check.kind in texts else f"{check.kind} of {a['column']} {bounds}"


def _duration(seconds: float) -> str:
    unit, size = next((u, s) for u, s in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)) if seconds % s == 0 or s == 1)
    return f"{seconds / size:g} {unit}{'' if seconds == size else 's'}"


def table_checks(folder: Path, namespace: Namespace) -> Mapping[str, tuple[TableCheck, ...]]:
    """The checks of each dataset, by its key. Files of other forms in the folder are left alone.

    Raises DefinitionErrors with RULE_FILE_INVALID for every error in a rule file, and for two checks of one name on a table.
    """
    found: dict[str, dict[str, TableCheck]] = {}
    errors: list[LakeletError] = []
    for dataset, check in (*_of_rule_files(folder, errors), *_of_suites(folder)):
        try:
            named = found.setdefault(namespace.resolve(dataset).key, {})
        except ValueError as problem:
            errors.append(LakeletError("RULE_FILE_INVALID", str(problem), where=check.where))
            continue
        first = named.setdefault(check.name, check)
        if first is not check:
            what, todo = f"{dataset} has two checks {check.name!r}", f"The first one is in {first.where}. Give each its own name."
            errors.append(LakeletError("RULE_FILE_INVALID", what, where=check.where, todo=todo))
    if errors:
        raise DefinitionErrors(errors)
    return {key: tuple(named.values()) for key, named in found.items()}


def _of_rule_files(folder: Path, errors: list[LakeletError]) -> Iterator[tuple[str, TableCheck]]:
    for path in rule_files(folder):
        found = read_rule_file(path)
        if found.errors and not _is_rule_file(path):
            continue
        errors += found.errors
        for check in found.checks:
            where = Location(check.file, check.line)
            yield check.dataset, TableCheck(check.name, check.severity, expectation_of(check), check, where)


def _is_rule_file(path: Path) -> bool:
    """Return whether a file with errors is one of Lakelet: it has one of its sections."""
    try:
        content = yaml.safe_load(path.read_bytes())
    except yaml.YAMLError:
        return False
    return isinstance(content, dict) and any(section in content for section in SECTIONS)


def _of_suites(folder: Path) -> Iterator[tuple[str, TableCheck]]:
    for path in suite_files(folder):
        suite, taken = read_suite(path), set[str]()
        where = Location(f"{folder.name}/{path.name}", 0)
        for expectation in suite.expectations:
            name, number = check_name(expectation), 1
            while name in taken:
                number += 1
                name = f"{check_name(expectation)}_{number}"
            taken.add(name)
            yield suite.dataset, TableCheck(name, expectation.severity, expectation, None, where)
