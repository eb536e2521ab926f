"""How many rows a rule passed and failed: one type from the commit of a batch to the page (EP-8)."""

from __future__ import annotations

import json
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


@dataclass(frozen=True)
class RowSample:
    """A row of `dataset` that broke the rule `name`: its columns as JSON text, cut and masked, and the file that it came in, if known."""

    name: str
    dataset: str
    row_json: str
    file: str | None = None

    @property
    def values(self) -> tuple[tuple[str, str], ...]:
        """Its columns: (name, value as text)."""
        return tuple((str(name), "NULL" if value is None else str(value)) for name, value in json.loads(self.row_json).items())

    @classmethod
    def of_event(cls, sample: Mapping[str, Any], dataset: str) -> RowSample:
        """Read an entry of `data_quality.samples`. `dataset`: the one of the event."""
        file = sample.get("file")
        row = str(sample.get("row_json") or "{}")
        return cls(str(sample.get("name")), str(sample.get("dataset") or dataset), row, None if file is None else str(file))


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
