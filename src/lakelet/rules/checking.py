"""All rules of a pipeline, of rule files and of code, each with where it is written, and what is wrong with them.

A rule is judged on its own, against the columns of its dataset, and on the rows that are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakelet.base.errors import DefinitionErrors, LakeletError, Location, nearest_names
from lakelet.base.names import Namespace
from lakelet.config.rule_files import Check, Rule, read_all
from lakelet.language.model import Kind
from lakelet.pipeline import Pipeline
from lakelet.plan.checked import Checked, RuledDataset
from lakelet.quality.applied_rules import origin
from lakelet.rules.judging import Judgements, judged_by_spark, judged_without_spark
from lakelet.storage.root import Storage

_OF_RULES = ("EXPECTATION_INVALID", "DUPLICATE_EXPECTATION")


@dataclass(frozen=True)
class KnownRule:
    """One rule of one dataset.

    Attributes:
        dataset: the full name; for a rule that no dataset uses, the dataset that its file names, None for one of a layer or a column.
        action: what the code declares; that of the file where nothing does.
        where: in the rule file, or in the code for a rule that is written there.
        rule: the entry of the rule file, None for a rule of code.
        used: whether a dataset declares it.
        owner: of the rule, else of its dataset; "" where neither has one.
    """

    dataset: str | None
    name: str
    constraint: str
    action: str
    where: Location
    rule: Rule | None
    used: bool
    owner: str = ""

    def as_json(self) -> dict[str, Any]:
        about = {"tags": list(self.rule.tags) if self.rule else [], "description": self.rule and self.rule.description}
        return {
            "dataset": self.dataset,
            "rule": self.name,
            "constraint": self.constraint,
            "action": self.action,
            "file": self.where.file,
            "line": self.where.line,
            **about,
            "owner": self.owner or None,
            "used": self.used,
        }


def known_rules(datasets: Sequence[RuledDataset], written: Sequence[Rule]) -> list[KnownRule]:
    """The rules of the datasets in the order of their declaration, then those of the files that none of them uses."""
    used: set[Rule] = set()
    found = []
    for dataset in datasets:
        for expectation in dataset.expectations:
            rule = origin(dataset.name, expectation, written)
            used |= {rule} if rule else set()
            action = expectation.action.value
            owner = (rule.owner if rule else None) or dataset.owner
            about = (expectation.name, expectation.text, action, expectation.where, rule)
            found.append(KnownRule(str(dataset.name), *about, used=True, owner=owner))
    for rule in written:
        if rule not in used:
            subject = rule.subject if rule.section == "datasets" else None
            about = (rule.name, rule.constraint, rule.action, Location(rule.file, rule.line), rule)
            found.append(KnownRule(subject, *about, used=False, owner=rule.owner or ""))
    return found


@dataclass(frozen=True)
class Finding:
    """Something about a rule. `severity`: error (the pipeline is refused for it, or a check cannot be made), warning, or info."""

    severity: str
    problem: str
    where: Location
    dataset: str | None = None
    rule: str | None = None
    constraint: str | None = None
    action: str | None = None
    nearest: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        place = {"file": self.where.file, "line": self.where.line}
        about = {"dataset": self.dataset, "rule": self.rule, "constraint": self.constraint, "action": self.action}
        return {"severity": self.severity, **about, **place, "problem": self.problem, "nearest": list(self.nearest)}

    @property
    def is_error(self) -> bool:
        return self.severity == "error"


def list_rules(pipeline: Pipeline, folder: Path, *, new_process: bool = False) -> list[KnownRule]:
    """All rules of the files and of the code. Raises DefinitionErrors, also for errors in rule files. `new_process`: see `check`."""
    written, _ = read_all(folder)
    return known_rules(pipeline.check(strict=False, new_process=new_process).rules, written)


def check_rules(pipeline: Pipeline, folder: Path, *, new_process: bool = False) -> list[Finding]:
    """Everything that is wrong or strange, errors first. Raises LakeletError for what has nothing to do with rules.

    `new_process`: as for `Pipeline.check`; then DuckDB judges the stored rows, and Spark only where DuckDB cannot.
    """
    try:
        written, checks = read_all(folder)
    except DefinitionErrors as broken:
        return [_as_finding(error, ()) for error in broken.errors]
    try:
        checked, known, judgements = _judged(pipeline, written, new_process=new_process)
        of_checks = _of_checks(checked, pipeline.config.namespace, checks)
        found = [*_unused(known), *_other_actions(known), *of_checks, *_on_rows(known, judgements)]
    except DefinitionErrors as refused:
        found = [_as_finding(error, written) for error in refused.errors]
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda finding: (order[finding.severity], finding.where.file, finding.where.line))


def _judged(pipeline: Pipeline, written: Sequence[Rule], *, new_process: bool) -> tuple[Checked, Sequence[KnownRule], Judgements]:
    """The valid pipeline, its rules, and how those of its stored tables judge their rows."""
    recorded = pipeline.known() if new_process else None
    if recorded is not None:
        known = known_rules(recorded.checked.rules, written)
        judgements = judged_without_spark(Storage(pipeline.config.storage), _conditions(known))
        if judgements is not None:
            return recorded.checked, known, judgements
    with pipeline.opened() as opened:
        checked = opened.checked()
        known = known_rules(checked.rules, written)
        return checked, known, judged_by_spark(opened.environment.spark, opened.storage, _conditions(known))


def _conditions(known: Iterable[KnownRule]) -> Mapping[str, Sequence[str]]:
    """The conditions that each dataset declares, by its full name."""
    found: dict[str, list[str]] = {}
    for rule in known:
        if rule.used and rule.dataset is not None:
            found.setdefault(rule.dataset, []).append(rule.constraint)
    return found


def _as_finding(error: LakeletError, written: Sequence[Rule]) -> Finding:
    """An error that analysis found; one about a rule has the location of the rule."""
    same = [rule for rule in written if error.code in _OF_RULES and repr(rule.name) in error.what]
    exact = [rule for rule in same if error.what.endswith(rule.constraint)]
    rule = next(iter([*exact, *same]), None)
    where = Location(rule.file, rule.line) if rule else error.where or Location("", 0)
    problem = " ".join([error.what, *([f"({error.why.splitlines()[0]})"] if error.why else [])])
    name, constraint, action = (rule.name, rule.constraint, rule.action) if rule else (None, None, None)
    return Finding("error", problem, where, error.dataset, name, constraint, action, error.nearest)


def _finding(severity: str, problem: str, rule: KnownRule) -> Finding:
    return Finding(severity, problem, rule.where, rule.dataset, rule.name, rule.constraint, rule.action)


def _unused(known: Iterable[KnownRule]) -> Iterator[Finding]:
    for rule in known:
        if not rule.used and rule.rule is not None:
            yield _finding("warning", f"no dataset uses the rule {rule.name!r} of {rule.rule.section}.{rule.rule.subject}", rule)


def _other_actions(known: Iterable[KnownRule]) -> Iterator[Finding]:
    for rule in known:
        if rule.used and rule.rule is not None and rule.rule.action != rule.action:
            text = f"the file says {rule.rule.action} for the rule {rule.name!r}, {rule.dataset} declares it with {rule.action}"
            yield _finding("warning", text, rule)


# --- table checks ---------------------------------------------------------------------------------------------------------------------


def _of_checks(checked: Checked, namespace: Namespace, checks: Sequence[Check]) -> Iterator[Finding]:
    """Checks of datasets that are not tables of the pipeline, and of columns that a table does not have."""
    names = {dataset.name.key: str(dataset.name) for dataset in checked.rules}
    for check in checks:
        where = Location(check.file, check.line)
        key = namespace.resolve(check.dataset).key
        node = checked.graph.by_key.get(key)
        if key not in names or node is None or node.kind in (Kind.VIEW, Kind.SINK):
            what = "the pipeline has no table" if key not in names else "only stored tables are checked, not"
            near = nearest_names(check.dataset, names.values()) if key not in names else ()
            yield Finding("warning", f"check {check.name!r}: {what} {check.dataset}", where, check.dataset, check.name, nearest=near)
            continue
        columns = [name for name, _ in node.columns]
        for wanted in (*check.arguments.get("columns", ()), *([check.arguments["column"]] if "column" in check.arguments else ())):
            if columns and wanted.lower() not in {column.lower() for column in columns}:
                text = f"check {check.name!r}: {node.name} has no column {wanted!r}"
                yield Finding("error", text, where, str(node.name), check.name, nearest=nearest_names(wanted, columns))


# --- stored rows ----------------------------------------------------------------------------------------------------------------------


def _on_rows(known: Iterable[KnownRule], judgements: Judgements) -> Iterator[Finding]:
    """Rules that always or never hold, by their text or on all stored rows."""
    for rule in known:
        judged = judgements.get((rule.dataset, rule.constraint)) if rule.used and rule.dataset is not None else None
        if judged is None:
            continue
        if judged.decided is not None:
            never = "fail" if judged.decided else "hold"
            yield _finding("warning", f"the rule {rule.name!r} can never {never}: {rule.constraint}", rule)
        elif judged.rows and not judged.held:
            yield _finding("warning", f"the rule {rule.name!r} holds for none of the {judged.rows:,} stored rows: {rule.constraint}", rule)
        elif judged.rows and judged.held == judged.rows and rule.action == "warn":
            yield _finding("info", f"the rule {rule.name!r} holds for all of the {judged.rows:,} stored rows of {rule.dataset}", rule)
