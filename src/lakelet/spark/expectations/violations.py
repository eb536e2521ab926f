"""The error of a flow whose rows break a rule with the action fail, and what its rules counted until then (EP-5, EP-8)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lakelet.base.errors import ExpectationFailed, LakeletError, Location
from lakelet.base.raised import pointed
from lakelet.base.text import TextEnum
from lakelet.language.model import Action
from lakelet.spark.expectations.measure import VIOLATION, JudgedRows
from lakelet.spark.expectations.samples import columns_named
from lakelet.storage.rule_counts import RowSample, RuleCount

_MOST_VALUES = 4
"""Values of the first row that are named before the whole row."""


class Scope(TextEnum):
    """Which rows the counts of a failed flow cover: the event log's `data_quality.scope`."""

    FAILED_BATCH = "FAILED_BATCH"
    FIRST_VIOLATION = "FIRST_VIOLATION"


@dataclass(frozen=True)
class _BrokenRule:
    """A fail rule, and how many of how many rows broke it; None where only one row is known. `of`: the dataset or view it belongs to."""

    name: str
    constraint: str
    where: Location
    of: str
    failed: int | None = None
    rows: int | None = None

    def sentence(self, dataset: str, link: str = "") -> str:
        """What rows did to it. `dataset`: the flow's target, which is not named as the owner of its own rules."""
        known = self.failed is not None and self.rows is not None
        rows = f"{self.failed:,} of {self.rows:,} row{'' if self.rows == 1 else 's'}" if known else "a row"
        verb = "breaks" if not known or self.failed == 1 else "break"
        of_view = "" if self.of == dataset else f" of the view {self.of}"
        return f"{rows} {verb}{link} the fail rule {self.name!r}{of_view}: {self.constraint}"


def violation_error(dataset: str, judged: Sequence[JudgedRows]) -> ExpectationFailed:
    """The failure of a flow into `dataset`. `judged`: the rows of its failed batch, of which at least one broke a fail rule."""
    shown = next(rows for rows in judged if rows.counts.violation)
    detail = json.loads(shown.counts.violation or "{}")
    broken = [
        _BrokenRule(rule.name, rule.text, rule.where, rows.dataset, failed, rows.counts.rows)
        for rows in judged
        for rule, failed in zip(rows.rules, rows.counts.failed, strict=True)
        if failed and rule.action is Action.FAIL
    ]
    broken.sort(key=lambda rule: rule.of != shown.dataset or rule.name not in detail["rules"])  # those that the shown row breaks come first
    counts = [count for rows in judged for count in rows.rule_counts()]
    samples = [sample for rows in judged for sample in rows.row_samples()]
    return _error(dataset, broken, detail["row"], counts, Scope.FAILED_BATCH, samples)


def violation_in(text: str, dataset: str) -> ExpectationFailed | None:
    """The failure of a flow into the sink `dataset`, of which Spark's message quotes what `measure.enforced` wrote; None for any other."""
    _, found, rest = text.partition(VIOLATION + "{")
    if not found:
        return None
    try:
        detail, _ = json.JSONDecoder().raw_decode("{" + rest)
    except ValueError:  # cut off on its way
        return None
    view = str(detail["view"])
    broken = [_BrokenRule(r["name"], r["constraint"], Location(r["file"], r["line"]), view) for r in detail["rules"]]
    counts = [RuleCount(rule.name, view, 0, 1) for rule in broken]
    return _error(dataset, broken, detail["row"], counts, Scope.FIRST_VIOLATION)


def _error(
    dataset: str,
    broken: Sequence[_BrokenRule],
    row: Mapping[str, Any],
    counts: Sequence[RuleCount],
    scope: Scope,
    samples: Sequence[RowSample] = (),
) -> ExpectationFailed:
    first, others = broken[0], broken[1:]
    named = {name: row[name] for name in columns_named(first.constraint, row)[:_MOST_VALUES]}
    values = ", ".join(f"{name} is {_shown(value)}" for name, value in named.items())
    lines = [f"The first such row{f' ({values})' if values else ''}: {json.dumps(row, ensure_ascii=False)}"]
    lines += [f"{rule.sentence(dataset, ' also')} ({rule.where})" for rule in others]
    lines += ["Nothing of this batch was written."] if scope is Scope.FAILED_BATCH else []
    error = LakeletError(
        "EXPECTATION_VIOLATION",
        first.sentence(dataset),
        dataset=dataset,
        where=pointed(first.where, first.name),
        why="\n".join(lines),
        todo="Correct the data or the query, or let the rule drop or warn.",
    )
    assert isinstance(error, ExpectationFailed)
    shown = {"dataset": first.of, "rule": first.name, "values": {name: None if v is None else _text(v) for name, v in named.items()}}
    counted = [asdict(count) for count in counts]
    error.data_quality = {"scope": scope.value, "dropped_records": 0, "expectations": counted, "first_violation": shown}
    error.data_quality |= {"samples": [asdict(sample) for sample in samples]} if samples else {}
    return error


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shown(value: Any) -> str:
    return "NULL" if value is None else json.dumps(value, ensure_ascii=False)


__all__ = ["Scope", "violation_error", "violation_in"]
