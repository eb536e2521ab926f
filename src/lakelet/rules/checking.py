"""All rules of a pipeline, of rule files and of code, each with where it is written, and what is wrong with them.

A rule is judged on its own, against the columns of its dataset, and on the rows that are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import DefinitionErrors, LakeletError, Location, nearest_names
from lakelet.config.rule_files import Check, Rule, read_all
from lakelet.jvm.frames import optimized
from lakelet.language.model import Dataset
from lakelet.language.sql_text.spark_sql import in_spark_sql
from lakelet.pipeline import Pipeline
from lakelet.plan.checked import RuledDataset
from lakelet.quality.applied_rules import origin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakelet.update.opened import OpenedPipeline


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


def check_rules(pipeline: Pipeline, folder: Path) -> list[Finding]:
    """Everything that is wrong or strange, errors first. Raises LakeletError for what has nothing to do with rules."""
    try:
        written, checks = read_all(folder)
    except DefinitionErrors as broken:
        return [_as_finding(error, ()) for error in broken.errors]
    try:
        with pipeline.opened() as opened:
            known = known_rules(opened.checked().rules, written)
            found = [*_unused(known), *_other_actions(known), *_of_checks(opened, checks), *_on_rows(opened, known)]
    except DefinitionErrors as refused:
        found = [_as_finding(error, written) for error in refused.errors]
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda finding: (order[finding.severity], finding.where.file, finding.where.line))


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


def _of_checks(opened: OpenedPipeline, checks: Sequence[Check]) -> Iterator[Finding]:
    """Checks of datasets that are not tables of the pipeline, and of columns that a table does not have."""
    catalog, analyzed = opened.environment.catalog, opened.analysis.datasets
    names = [str(d.name) for d in catalog.datasets.values()]
    for check in checks:
        where = Location(check.file, check.line)
        key = opened.config.namespace.resolve(check.dataset).key
        dataset = catalog.datasets.get(key)
        if dataset is None or key not in analyzed:
            what = "the pipeline has no table" if dataset is None else "only stored tables are checked, not"
            text, near = f"check {check.name!r}: {what} {check.dataset}", nearest_names(check.dataset, names) if dataset is None else ()
            yield Finding("warning", text, where, check.dataset, check.name, nearest=near)
            continue
        columns = analyzed[key].schema.names
        for wanted in (*check.arguments.get("columns", ()), *([check.arguments["column"]] if "column" in check.arguments else ())):
            if wanted.lower() not in {column.lower() for column in columns}:
                text = f"check {check.name!r}: {dataset.name} has no column {wanted!r}"
                yield Finding("error", text, where, str(dataset.name), check.name, nearest=nearest_names(wanted, columns))


# --- stored rows ----------------------------------------------------------------------------------------------------------------------


def _on_rows(opened: OpenedPipeline, known: Sequence[KnownRule]) -> Iterator[Finding]:
    """Rules that always or never hold, by their text or on all stored rows. One aggregation per table."""
    by_dataset: dict[str, list[KnownRule]] = {}
    for rule in known:
        if rule.used and rule.dataset is not None:
            by_dataset.setdefault(rule.dataset, []).append(rule)
    registry = opened.storage.registry()
    for dataset in opened.loaded.definitions.datasets:
        stored = registry.datasets.get(dataset.name.key)
        rules = by_dataset.get(str(dataset.name), [])
        if stored is None or not stored.path or not rules:
            continue
        rows = _rows(opened, stored.path)
        if rows is not None:
            yield from _of_table(dataset, rows, rules)


def _rows(opened: OpenedPipeline, path: str) -> DataFrame | None:
    from pyspark.errors import PySparkException

    try:
        return opened.environment.spark.read.format("delta").load(str(opened.storage.at(path)))
    except PySparkException:  # known and not written yet
        return None


def _of_table(dataset: Dataset, rows: DataFrame, rules: Sequence[KnownRule]) -> Iterator[Finding]:
    judged = [rule for rule in rules if _optimised(rows, rule.constraint) is not None]
    counts = _counts(rows, judged)
    quiet = []
    for rule in judged:
        if _optimised(rows, f"NOT coalesce(({rule.constraint}), false)"):
            yield _finding("warning", f"the rule {rule.name!r} can never fail: {rule.constraint}", rule)
        elif _optimised(rows, f"coalesce(({rule.constraint}), false)"):
            yield _finding("warning", f"the rule {rule.name!r} can never hold: {rule.constraint}", rule)
        elif counts[""] and not counts[rule.name]:
            yield _finding("warning", f"the rule {rule.name!r} holds for none of the {counts['']:,} stored rows: {rule.constraint}", rule)
        elif counts[""] and counts[rule.name] == counts[""] and rule.action == "warn":
            quiet.append(rule)
    for rule in quiet:
        yield _finding("info", f"the rule {rule.name!r} holds for all of the {counts['']:,} stored rows of {dataset.name}", rule)


def _counts(rows: DataFrame, rules: Sequence[KnownRule]) -> Mapping[str, int]:
    """How many rows each rule holds for, by name; under "" how many there are."""
    from pyspark.sql import functions as F

    held = [F.count_if(F.expr(f"coalesce(({in_spark_sql(rule.constraint)}), false)")).alias(f"r{i}") for i, rule in enumerate(rules)]
    found = rows.agg(F.count(F.lit(1)).alias("n"), *held).collect()[0]
    return {"": found["n"], **{rule.name: found[f"r{i}"] for i, rule in enumerate(rules)}}


def _optimised(rows: DataFrame, condition: str) -> bool | None:
    """Whether Spark knows from the condition alone that no row meets it; None for what does not analyse on the stored columns."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    try:
        plan = optimized(rows.where(F.expr(in_spark_sql(condition))))
    except PySparkException:
        return None
    return bool(plan.nodeName() == "LocalRelation")
