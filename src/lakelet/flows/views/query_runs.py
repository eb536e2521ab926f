"""Calls of a view's function on other rows than its inputs have: those that changed, those with certain keys, none.

The author's own code gives every row of a result. What it reads is exchanged where the reader opens a table, so Python and SQL are the
same case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from lakelet.base.names import quoted
from lakelet.files.paths import AnyPath
from lakelet.flows.context import Bindings, FlowTask, RunReader
from lakelet.flows.metrics import counted_query
from lakelet.flows.views.deciding import RefreshPlan
from lakelet.flows.views.leaf_rows import Bound, LeafRows, Read
from lakelet.jvm.frames import without_rows
from lakelet.jvm.key_plans import CHANGED, INEXACT, aliases_in
from lakelet.plan.refreshes import OPERATOR, Issue, IssueType
from lakelet.storage.delta.changed_rows import ChangedRows


class WholeRefresh(Exception):
    """The view must be computed as a whole after all. Nothing was written."""

    def __init__(self, issue: Issue) -> None:
        super().__init__(issue.reason)
        self.issue = issue

    @classmethod
    def because(cls, reason: str) -> WholeRefresh:
        """For a reason that lies in the query."""
        return cls(Issue(IssueType.PLAN, reason, OPERATOR))


Change = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class QueryRuns:
    """Runs of one view's function in one session."""

    task: FlowTask
    plan: RefreshPlan
    spark: SparkSession

    def path_of(self, key: str) -> AnyPath:
        """Where the table of an input lies."""
        return self.task.environment.storage.table_path(self.task.environment.catalog.datasets[key].name)

    @property
    def changed(self) -> frozenset[str]:
        """Keys of the inputs with changed rows."""
        return frozenset(key for key, files in self.plan.files.items() if not files.change.is_empty)

    @contextmanager
    def on(self, bound: Bindings, *, judges: bool = False) -> Iterator[tuple[RunReader, DataFrame]]:
        """The query on other rows. `judges`: views that it reads may have rules, whose counts are then those of these rows.

        Raises WholeRefresh where the function does not read as it did in analysis.
        """
        with counted_query(self.task, self.spark, versions=self.plan.versions.read, bound=bound) as (reader, frame):
            if reader.unbound:
                raise WholeRefresh.because(reader.unbound[0])
            if any(reader.opened.get(key, -1) < copy for key, copy in bound):
                raise WholeRefresh.because("its function reads its inputs in another way each time")
            if reader.watches and not judges:
                reason = f"{reader.watches[0].dataset} has rules, which count all of its rows"
                raise WholeRefresh(Issue(IssueType.EXPECTATIONS, reason, remedy="Put the rules on a table instead of a view."))
            yield reader, frame

    def of_rows(self, rows: Bound, *, finds_keys: bool) -> Bindings:
        """What each read gives for its `LeafRows`. `finds_keys`: frames are marked for `KeyPlan`, and rows that left count as changed."""
        return {read: self._change(read[0], kind, finds_keys) for read, kind in rows.items() if kind is not LeafRows.PRESENT}

    def _change(self, key: str, kind: LeafRows, finds_keys: bool) -> Change:
        if kind is LeafRows.NONE:
            return _marked(without_rows, INEXACT) if finds_keys else without_rows
        rows = ChangedRows(self.path_of(key), self.plan.files[key])
        if kind is LeafRows.EVER:
            return _marked(lambda present: present.unionByName(rows.removed(self.spark)), INEXACT)
        if finds_keys:
            return _marked(lambda present: rows.consolidated(self.spark).select(*quoted_columns(present)), CHANGED)
        return lambda present: rows.added(self.spark).select(*quoted_columns(present))


def quoted_columns(frame: DataFrame) -> list[str]:
    """The columns of a frame by their names, whatever these are."""
    return [quoted(name) for name in frame.columns]


def _marked(change: Change, mark: str) -> Change:
    return lambda present: change(present).alias(mark)


_PLACE = "__lakelet_place_"


def in_one_place(reads: Sequence[Read]) -> Bindings:
    """Bindings that leave each read as it is, and mark it for `check_places`."""
    return {read: _marked(lambda present: present, f"{_PLACE}{number}") for number, read in enumerate(reads)}


def check_places(frame: DataFrame) -> None:
    """Raise WholeRefresh if a read of `in_one_place` is in several places of the query: only one of these would need its rows."""
    if any(name.startswith(_PLACE) and count > 1 for name, count in aliases_in(frame).items()):
        raise WholeRefresh.because("a table that did not change is joined with one that did, and read in another place too")


def all_present(reads: Iterable[tuple[str, int]]) -> Bindings:
    """Bindings that leave each read as it is, so that the reads are compared with those of analysis."""
    return {read: lambda present: present for read in reads}


__all__ = ["QueryRuns", "WholeRefresh", "all_present", "check_places", "in_one_place"]
