"""How many rows a rule passed and failed: one type from the commit of a batch to the page (EP-8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RuleCount:
    """Rows of `dataset` that the rule `name` passed and failed, before any was dropped; named as in events and commits."""

    name: str
    dataset: str
    passed_records: int
    failed_records: int

    @classmethod
    def of_event(cls, rule: Mapping[str, Any], dataset: str) -> RuleCount:
        """Read an entry of `data_quality.expectations`. `dataset`: the one of the event, which an entry may leave out."""
        passed, failed = (int(rule.get(key) or 0) for key in ("passed_records", "failed_records"))
        return cls(str(rule.get("name")), str(rule.get("dataset") or dataset), passed, failed)

    @property
    def passed(self) -> int:
        return self.passed_records

    @property
    def failed(self) -> int:
        return self.failed_records

    @property
    def rows(self) -> int:
        return self.passed + self.failed

    @property
    def pass_rate(self) -> float | None:
        """Between 0 and 1; None without rows."""
        return self.passed / self.rows if self.rows else None


def summed(counts: Iterable[RuleCount]) -> dict[tuple[str, str], RuleCount]:
    """Add up the counts of each rule; by dataset and name."""
    found: dict[tuple[str, str], RuleCount] = {}
    for one in counts:
        key = one.dataset, one.name
        before = found.get(key, RuleCount(one.name, one.dataset, 0, 0))
        found[key] = RuleCount(one.name, one.dataset, before.passed + one.passed, before.failed + one.failed)
    return found
