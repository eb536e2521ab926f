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

    def without(self, part: RuleCount | None) -> RuleCount:
        """The count without a part of it."""
        if part is None:
            return self
        return RuleCount(self.name, self.dataset, self.passed - part.passed, self.failed - part.failed)

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
        return pass_rate(self.passed, self.failed)


def pass_rate(passed: int, failed: int) -> float | None:
    """Between 0 and 1; None without rows."""
    return passed / (passed + failed) if passed + failed else None


def summed(counts: Iterable[RuleCount]) -> dict[tuple[str, str], RuleCount]:
    """Add up the counts of each rule; by dataset and name."""
    found: dict[tuple[str, str], RuleCount] = {}
    for one in counts:
        key = one.dataset, one.name
        before = found.get(key)
        found[key] = one if before is None else RuleCount(*key[::-1], before.passed + one.passed, before.failed + one.failed)
    return found
