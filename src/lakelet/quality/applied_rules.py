"""Which expectation of a dataset comes from which entry of the rule files.

Definitions and rule files in; out come definitions whose expectations have the line of the rule file, and a notice for each section that
no dataset applies, which would be off without a word (EP-16).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from lakelet.base.errors import Location, nearest_names
from lakelet.base.names import TableName
from lakelet.config.rule_files import Rule, read_rule_file, rule_files
from lakelet.config.source_files import FolderWalk
from lakelet.language.model import Dataset, Definitions, Expectation
from lakelet.language.registry import Notice

_DECORATORS = {"warn": "expect_all", "drop": "expect_all_or_drop", "fail": "expect_all_or_fail"}
_VIOLATIONS = {"warn": "", "drop": " ON VIOLATION DROP ROW", "fail": " ON VIOLATION FAIL UPDATE"}
_DP = re.compile(r"^\s*(from pyspark import pipelines as dp|import dlt as dp)\b|\bdp\.", re.MULTILINE)


def with_rule_locations(definitions: Definitions, folder: Path) -> Definitions:
    """The definitions with what the rule file says of each rule that comes from one: its position, description, owner and tags.

    Errors in rule files are left to others.
    """
    if not any(dataset.expectations for dataset in definitions.datasets):
        return definitions
    written = [rule for path in rule_files(folder) for rule in read_rule_file(path).rules]
    return replace(definitions, datasets=tuple(_located(dataset, written) for dataset in definitions.datasets)) if written else definitions


def _located(dataset: Dataset, written: Sequence[Rule]) -> Dataset:
    origins = [(rule, origin(dataset.name, rule, written)) for rule in dataset.expectations]
    found = tuple(_with_entry(rule, entry) if entry else rule for rule, entry in origins)
    return replace(dataset, expectations=found) if any(entry for _, entry in origins) else dataset


def _with_entry(rule: Expectation, entry: Rule) -> Expectation:
    where, description, owner = Location(entry.file, entry.line), entry.description or "", entry.owner or ""
    return replace(rule, where=where, description=description, owner=owner, tags=entry.tags)


def origin(dataset: TableName, expectation: Expectation, written: Sequence[Rule]) -> Rule | None:
    """The entry of the rule files that an expectation comes from: of its name and text, those written for the dataset first."""
    same = [r for r in written if r.name == expectation.name and r.constraint == expectation.text]
    own = [r for r in same if r.section == "datasets" and r.subject.lower() in (dataset.name.lower(), dataset.key)]
    shared = [r for r in same if r.section != "datasets"]
    return next(iter([*own, *shared, *same]), None)


class _Section(NamedTuple):
    """The rules of one subject and action in one file."""

    file: str
    section: str
    subject: str
    action: str


def unapplied(definitions: Definitions, folder: Path, sources: Sequence[Path], *, partial: bool) -> list[Notice]:
    """A notice for each section of the rule files with rules that no dataset applies: the line of the first one, and what applies them.

    Files that are no sound rule files are left to others. A section about something that only code outside of this pipeline names is
    that code's. `sources`: the files of the pipeline, with its modules; `partial`: they are only some of them.
    """
    written = [rule for path in rule_files(folder) if not (found := read_rule_file(path)).errors for rule in found.rules]
    uses = {rule: dataset for dataset in definitions.datasets for rule in _applied(dataset, written)}
    left: dict[_Section, list[Rule]] = {}
    for rule in written:
        if rule not in uses:
            left.setdefault(_of(rule), []).append(rule)
    notices: list[Notice] = []
    texts: list[str] | None = None
    for section, rules in left.items():
        dataset = _named(section, definitions) or next((d for rule, d in uses.items() if _same_subject(rule, section)), None)
        if dataset is None:
            texts = list(_other_texts(folder, sources)) if texts is None else texts
            if partial or any(_is_about(text, section) for text in texts):
                continue
        some = any(_of(rule) == section for rule in uses)
        names = f"rule {rules[0].name!r}" if len(rules) == 1 else f"rules {', '.join(repr(rule.name) for rule in rules)}"
        subject = f"{section.section}.{section.subject}.{section.action}"
        text = f"no dataset applies the {names} of {subject}: {_remedy(section, rules, dataset, definitions, some=some)}"
        notices.append(Notice(text, Location(rules[0].file, rules[0].line)))
    return notices


def _applied(dataset: Dataset, written: Sequence[Rule]) -> Iterator[Rule]:
    """The rules that a dataset applies, those whose text the code completes among them."""
    for expectation in dataset.expectations:
        rule = origin(dataset.name, expectation, written)
        same = [r for r in written if r.name == expectation.name and (r.section != "datasets" or _is_of(r.subject, dataset))]
        yield from [rule] if rule else same


def _of(rule: Rule) -> _Section:
    return _Section(rule.file, rule.section, rule.subject, rule.action)


def _same_subject(rule: Rule, section: _Section) -> bool:
    return (rule.section, rule.subject) == (section.section, section.subject)


def _is_of(subject: str, dataset: Dataset) -> bool:
    return subject.lower() in (dataset.name.name.lower(), dataset.name.key)


def _named(section: _Section, definitions: Definitions) -> Dataset | None:
    """The dataset that a section names."""
    return next((d for d in definitions.datasets if section.section == "datasets" and _is_of(section.subject, d)), None)


def _remedy(section: _Section, rules: Sequence[Rule], dataset: Dataset | None, definitions: Definitions, *, some: bool) -> str:
    subject, action = section.subject, section.action
    if section.section != "datasets":
        scope = f'layer="{subject}"' if section.section == "layers" else f'columns=["{subject}"]'
        return f'name it where a dataset asks for its rules: rules(…, "{action}", {scope})'
    if dataset is None:
        near = nearest_names(subject, [d.name.name for d in definitions.datasets])
        return f"the pipeline has no dataset {subject}" + (f"; did you mean {' or '.join(near)}?" if near else "")
    if _is_sql(dataset, definitions):
        lines = ", ".join(f"CONSTRAINT {rule.name} EXPECT ({rule.constraint}){_VIOLATIONS[action]}" for rule in rules)
        return f"SQL does not read rule files; write them into the statement in {dataset.where}: {lines}"
    if some:
        return f"the code in {dataset.where} asks for some of its {action} rules only: give them the tag that it names, or ask without tag="
    module = "dp" if _DP.search(_text(Path(dataset.where.file))) else "dlt"
    return f'write @{module}.{_DECORATORS[action]}(rules("{subject}", "{action}")) above the function in {dataset.where}'


def _is_sql(dataset: Dataset, definitions: Definitions) -> bool:
    return any(flow.language == "SQL" and flow.default for flow in definitions.flows_by_target()[dataset.name.key])


def _other_texts(folder: Path, sources: Sequence[Path]) -> Iterator[str]:
    """The texts of the project's code that does not belong to this pipeline, without tests and the reader of the rule files."""
    own = {path.resolve() for path in sources}
    for path in FolderWalk(folder.parent).files((".py", ".sql")):
        if path.resolve() not in own and path.parent != folder and not path.name.startswith(("test_", "conftest")):
            yield _text(path)


def _is_about(text: str, section: _Section) -> bool:
    named = re.search(rf"\b{re.escape(section.subject)}\b", text, re.IGNORECASE) is not None
    return named and (section.section == "datasets" or re.search(r"\brules\b", text) is not None)


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


__all__ = ["origin", "unapplied", "with_rule_locations"]
