"""Rules and checks between their three forms: rule files, suites of Great Expectations, CONSTRAINT clauses of SQL.

What the other form has no word for comes back as a note; nothing is left out without one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal

import yaml

from lakelet.base.errors import DefinitionErrors, LakeletError, Location
from lakelet.base.names import Namespace, quoted, quoted_if_needed
from lakelet.base.user_code import display_path
from lakelet.config.rule_files import ABOUT, ACTIONS, SECTIONS, Check, Rule, read_rule_file
from lakelet.quality.suites import META, Suite, SuiteExpectation, check_name, expectation_of, is_suite, kind_of, suite_of
from lakelet.rules.predicates import expectation_kwargs, predicate_of

Form = Literal["gx", "sql", "yaml"]
_SEVERITIES = {"fail": "critical", "drop": "warning", "warn": "warning"}
_CLAUSES = {"warn": "", "drop": " ON VIOLATION DROP ROW", "fail": " ON VIOLATION FAIL UPDATE"}


@dataclass(frozen=True)
class RuleSet:
    """Rules and checks, of one file or several datasets. `notes`: what the source said that is in neither."""

    rules: tuple[Rule, ...]
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conversion:
    """The text in the other form, and what it has no word for."""

    text: str
    notes: tuple[str, ...]


def convert(file: Path, to: Form) -> Conversion:
    """Read a file in any of the three forms and write it in another.

    Raises RULE_FILE_INVALID for a file that is none of them, SQL_SYNTAX and the like for SQL that is not understood.
    """
    found = read(file)
    text, notes = {"gx": as_suites, "sql": as_clauses, "yaml": as_yaml}[to](found)
    return Conversion(text, (*found.notes, *notes))


def read(file: Path) -> RuleSet:
    """What a file holds: a suite or a list of suites (.json, .yml), a rule file (.yml), or SQL (.sql)."""
    where = Location(display_path(str(file)), 0)
    if not file.is_file():
        raise LakeletError("RULE_FILE_INVALID", f"there is no file {where.file}")
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".sql":
        return _of_sql(file, text)
    try:
        content = json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as problem:
        raise LakeletError("RULE_FILE_INVALID", "the file is neither JSON nor YAML", where=where, why=str(problem)) from None
    suites = content if isinstance(content, list) else [content]
    if suites and all(is_suite(suite) for suite in suites):
        return _of_suites([suite_of(suite, file.stem) for suite in suites], where.file)
    if file.suffix not in (".yml", ".yaml"):
        todo = "Give a suite of Great Expectations (.json, .yml), a rule file (.yml) or SQL (.sql)."
        raise LakeletError("RULE_FILE_INVALID", "the file holds no suite", where=where, todo=todo)
    found = read_rule_file(file)
    if found.errors:
        raise DefinitionErrors(found.errors)
    return RuleSet(found.rules, found.checks)


# --- Great Expectations ---------------------------------------------------------------------------------------------------------------


def _of_suites(suites: Sequence[Suite], file: str) -> RuleSet:
    rules: list[Rule] = []
    checks: list[Check] = []
    notes: list[str] = []
    for suite in suites:
        taken: set[str] = set()
        for expectation in suite.expectations:
            about: Mapping[str, Any] = expectation.meta.get(META) or expectation.meta.get("dlt") or {}
            name = _free(str(about.get("name") or check_name(expectation)), taken)
            rest = tuple(about.get("tags") or ()), about.get("description"), about.get("owner")
            kind, constraint = kind_of(expectation), _constraint(expectation, about)
            check = None if kind is None else Check(suite.dataset, name, kind[0], kind[1], expectation.severity, file, 0, *rest)
            partly = expectation.kwargs.get("mostly", 1) != 1
            if check is not None and (constraint is None or "kind" in about or (partly and check.kind != "no_rows")):
                checks.append(check)
            elif constraint is not None:
                section, action = about.get("section", "datasets"), about.get("action", "warn")
                rules.append(Rule(section, suite.dataset, action, name, constraint, file, 0, *rest))
                if partly:
                    notes.append(f"{suite.dataset}.{name}: mostly {expectation.kwargs['mostly']} is left out: a rule judges each row")
            else:
                notes.append(f"{suite.dataset}.{name}: {expectation.type} has no counterpart: {json.dumps(dict(expectation.kwargs))}")
    return RuleSet(tuple(rules), tuple(checks), tuple(notes))


def _constraint(expectation: SuiteExpectation, about: Mapping[str, Any]) -> str | None:
    """The predicate of an expectation: as it was written, where the expectation still says the same."""
    kwargs = {key: value for key, value in expectation.kwargs.items() if key != "mostly"}
    written = about.get("constraint")
    if isinstance(written, str) and expectation_kwargs(written) == (expectation.type, kwargs):
        return written
    return predicate_of(expectation.type, expectation.kwargs)


def _free(name: str, taken: set[str]) -> str:
    free = next(n for n in (name, *(f"{name}_{i}" for i in count(2))) if n not in taken) if name in taken else name
    taken.add(free)
    return free


def as_suites(found: RuleSet) -> tuple[str, tuple[str, ...]]:
    """One suite, or a list of suites where there are several datasets, as JSON."""
    by_subject: dict[str, list[SuiteExpectation]] = {}
    notes = []
    for rule in found.rules:
        type_, kwargs = expectation_kwargs(rule.constraint)
        about: dict[str, Any] = {"name": rule.name, "action": rule.action, "constraint": rule.constraint}
        if rule.section != "datasets":
            about["section"] = rule.section
            notes.append(f"{rule.section}.{rule.subject}.{rule.name}: a rule of {rule.section} is in a suite of the name {rule.subject}")
        about |= {k: v for k, v in (("tags", list(rule.tags)), ("description", rule.description), ("owner", rule.owner)) if v}
        by_subject.setdefault(rule.subject, []).append(SuiteExpectation(type_, kwargs, _SEVERITIES[rule.action], {META: about}))
    for check in found.checks:
        by_subject.setdefault(check.dataset, []).append(expectation_of(check))
        if check.kind in ("fresh", "references"):
            text = "only Lakelet completes its query ({now}, {other})"
            notes.append(f"datasets.{check.dataset}.checks.{check.name}: {text}")
    suites = [Suite(name, tuple(expectations)).as_json() for name, expectations in by_subject.items()]
    return json.dumps(suites[0] if len(suites) == 1 else suites, indent=2, ensure_ascii=False), tuple(notes)


# --- SQL ------------------------------------------------------------------------------------------------------------------------------


def _of_sql(file: Path, text: str) -> RuleSet:
    """The rules of CREATE statements, or of a list of CONSTRAINT clauses alone, which belong to a dataset of the file's name."""
    from lakelet.language.registry import Registry, recording
    from lakelet.language.sql import Cell, declare

    alone = next((line for line in map(str.strip, text.splitlines()) if line and not line.startswith("--")), "")
    if alone.upper().startswith("CONSTRAINT"):
        text = f"CREATE STREAMING TABLE {quoted(file.stem)} ({text.rstrip().rstrip(',;')}\n) AS SELECT * FROM STREAM x"
    registry = Registry(Namespace())
    with recording(registry):
        declare([Cell(text, 1, None)], file, configuration={}, session=None)
    if registry.errors:
        raise DefinitionErrors(registry.errors)
    found = registry.definitions(complete=False).datasets
    rules = [
        Rule("datasets", d.name.name, e.action.value, e.name, e.text, e.where.file, e.where.line) for d in found for e in d.expectations
    ]
    return RuleSet(tuple(rules), ())


def as_clauses(found: RuleSet) -> tuple[str, tuple[str, ...]]:
    """CONSTRAINT clauses, for the list after a table's name in CREATE; SQL has no table checks, tags, descriptions and owners."""
    blocks, notes = [], []
    for (section, subject), rules in _by_subject(found.rules).items():
        clauses = [f"CONSTRAINT {quoted_if_needed(r.name)} EXPECT ({_enclosed(r.constraint)}){_CLAUSES[r.action]}" for r in rules]
        blocks.append(f"-- {section}.{subject}\n" + ",\n".join(clauses))
    for rule in found.rules:
        more = [field for field in ("tags", "description", "owner") if getattr(rule, field)]
        if more:
            notes.append(f"{rule.section}.{rule.subject}.{rule.name}: {', '.join(more)} have no counterpart in SQL")
    notes += [f"datasets.{c.dataset}.checks.{c.name}: a table check has no counterpart in SQL" for c in found.checks]
    return "\n\n".join(blocks), tuple(notes)


def _enclosed(constraint: str) -> str:
    """The constraint on lines of its own where it has a comment, which would take the parenthesis along."""
    return f"\n  {constraint}\n" if "--" in constraint else constraint


# --- rule files -----------------------------------------------------------------------------------------------------------------------


def as_yaml(found: RuleSet) -> tuple[str, tuple[str, ...]]:
    """A rule file."""
    content: dict[str, Any] = {}
    for section in SECTIONS:
        for (its, subject), rules in _by_subject(found.rules).items():
            for action in ACTIONS if its == section else ():
                named = {rule.name: _rule_value(rule) for rule in rules if rule.action == action}
                if named:
                    content.setdefault(section, {}).setdefault(subject, {})[action] = named
        for check in found.checks if section == "datasets" else ():
            content.setdefault(section, {}).setdefault(check.dataset, {}).setdefault("checks", {})[check.name] = check_value(check)
    comments = "".join(f"# {note}\n" for note in found.notes)
    return (comments + dumped(content)).rstrip("\n"), ()


def dumped(content: Any) -> str:
    """YAML in the order of the content, one line per text."""
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100_000) if content else ""


def _rule_value(rule: Rule) -> Any:
    about = _about(rule)
    return {"constraint": rule.constraint, **about} if about else rule.constraint


def check_value(check: Check) -> dict[str, Any]:
    """A check as a rule file has it."""
    arguments: Any = {key: _argument(key, value) for key, value in check.arguments.items() if not (key == "to" and not value)}
    if set(arguments) in ({"columns"}, {"query"}):
        (arguments,) = arguments.values()
    elif check.kind == "complete" and len(arguments) == 1:
        arguments = arguments["column"]
    elif check.kind == "rows" and arguments.get("at_least") == arguments.get("at_most"):
        arguments = arguments["at_least"]
    return {check.kind: arguments, "severity": check.severity, **_about(check)}


def _argument(key: str, value: Any) -> Any:
    if key == "within":
        return next(
            f"{value / s:g} {unit}s" for unit, s in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)) if value % s == 0
        )
    several = list(value) if isinstance(value, tuple | list) else value
    return several[0] if key in ("columns", "to") and isinstance(several, list) and len(several) == 1 else several


def _about(one: Rule | Check) -> dict[str, Any]:
    values = ((field, getattr(one, field)) for field in ABOUT if field != "severity")
    return {field: list(value) if isinstance(value, tuple) else value for field, value in values if value}


def _by_subject(rules: Iterable[Rule]) -> dict[tuple[str, str], list[Rule]]:
    found: dict[tuple[str, str], list[Rule]] = {}
    for rule in rules:
        found.setdefault((rule.section, rule.subject), []).append(rule)
    return found
