"""All rules of a pipeline: those of the rule files and those that its code declares, each with where it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lakelet.base.errors import Location
from lakelet.config.rule_files import Rule
from lakelet.language.model import Dataset
from lakelet.quality.files import origin


@dataclass(frozen=True)
class KnownRule:
    """One rule of one dataset.

    Attributes:
        dataset: the full name; for a rule that no dataset uses, the dataset that its file names, None for one of a layer or a column.
        action: what the code declares; that of the file where nothing does.
        where: in the rule file, or in the code for a rule that is written there.
        rule: the entry of the rule file, None for a rule of code.
        used: whether a dataset declares it.
    """

    dataset: str | None
    name: str
    constraint: str
    action: str
    where: Location
    rule: Rule | None
    used: bool

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
            "owner": self.rule and self.rule.owner,
            "used": self.used,
        }


def known_rules(datasets: Sequence[Dataset], written: Sequence[Rule]) -> list[KnownRule]:
    """The rules of the datasets in the order of their declaration, then those of the files that none of them uses."""
    used: set[Rule] = set()
    found = []
    for dataset in datasets:
        for expectation in dataset.expectations:
            rule = origin(dataset, expectation, written)
            used |= {rule} if rule else set()
            action = expectation.action.value
            found.append(KnownRule(str(dataset.name), expectation.name, expectation.text, action, expectation.where, rule, used=True))
    for rule in written:
        if rule not in used:
            subject = rule.subject if rule.section == "datasets" else None
            found.append(KnownRule(subject, rule.name, rule.constraint, rule.action, Location(rule.file, rule.line), rule, used=False))
    return found
