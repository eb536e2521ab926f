"""Since when something is at fault, over the updates of a history: datasets that fail, rules that rows break, checks that do not hold.

A rule is judged by its present text: a change of the text begins its story again, so that a fall by definition is not a fall by data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakelet.base.text import counted
from lakelet.storage.eventlog.states import FlowState
from lakelet.storage.eventlog.summaries import DatasetSummary, RuleEdit, TableCheckResult, UpdateSummary, seconds_between
from lakelet.storage.rule_counts import RuleCount

_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


@dataclass(frozen=True)
class Streak:
    """The last updates without a break that had a fault. `since`: the first of them; `updates`: how many; `seconds`: up to the newest."""

    since: UpdateSummary
    updates: int
    seconds: float

    @property
    def text(self) -> str:
        """`since update c39c98, 3 updates, 2 hours`."""
        return f"since update {self.since.short}, {counted(self.updates, 'update')}" + (
            f", {span_text(self.seconds)}" if self.seconds else ""
        )


def span_text(seconds: float) -> str:
    """A time in its largest unit: `2 hours`, `3 days`."""
    size, unit = next((one for one in _UNITS if seconds >= one[0]), _UNITS[-1])
    return counted(int(seconds // size), unit)


def failing(updates: Sequence[UpdateSummary], runs: Iterable[DatasetSummary]) -> Streak | None:
    """Since when a dataset fails; None if it does not. A run that did not get to its end for another reason says nothing."""
    return _streak(updates, ((run.number, _is_failure(run.state)) for run in runs))


def breaking(updates: Sequence[UpdateSummary], points: Iterable[tuple[int, RuleCount]], edits: Sequence[RuleEdit]) -> Streak | None:
    """Since when rows break the present text of a rule; None if the newest rows do not."""
    edited = max((edit.number for edit in edits), default=0)
    return _streak(updates, ((number, bool(count.failed) if count.rows else None) for number, count in points if number >= edited))


def not_holding(updates: Sequence[UpdateSummary], results: Iterable[tuple[int, TableCheckResult]]) -> Streak | None:
    """Since when a check of a table fails; None if it does not. `results`: of one check."""
    return _streak(updates, ((number, None if one.success is None else not one.success) for number, one in results))


def _is_failure(state: FlowState) -> bool | None:
    return True if state is FlowState.FAILED else False if state.is_done else None


def _streak(updates: Sequence[UpdateSummary], found: Iterable[tuple[int, bool | None]]) -> Streak | None:
    """`found`: by number of the update, oldest first, whether it had the fault; None where it says nothing."""
    said = [(number, fault) for number, fault in found if fault is not None]
    count = next((i for i, (_, fault) in enumerate(reversed(said)) if not fault), len(said))
    if not count:
        return None
    first, newest = updates[said[-count][0]], updates[said[-1][0]]
    return Streak(first, len({number for number, _ in said[-count:]}), seconds_between(first.started_at, newest.started_at) or 0.0)
