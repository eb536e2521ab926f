"""One micro-batch of changes as a value, from its check to its commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakelet.base.names import quoted
from lakelet.cdc import heads, latest
from lakelet.cdc.change_table import Retention
from lakelet.cdc.changes import BatchSummary, Layout
from lakelet.cdc.literals import literal
from lakelet.cdc.state import ChangeState
from lakelet.language.sql.values import ColumnDefinition
from lakelet.storage.delta.batch_metrics import BatchMetrics, RowChanges
from lakelet.storage.delta.transaction import Txn


@dataclass(frozen=True)
class Batch:
    """One micro-batch to be applied: its events, their summary, and the txn and counts that its commit keeps.

    state: of the table after the batch. everything: all keys are computed again, not only those of the batch.
    computed: columns that rows get when they are written; `shape` does not have them.
    """

    state: ChangeState
    shape: Layout
    events: DataFrame
    seen: BatchSummary
    retention: Retention | None
    txn: Txn
    metrics: BatchMetrics
    everything: bool
    streamed: bool
    computed: tuple[ColumnDefinition, ...]

    @property
    def flow(self) -> str:
        """Name of the flow that the batch belongs to."""
        return self.txn.app_id.rpartition("/")[0]

    @property
    def reached(self) -> Mapping[str, Any]:
        """What the commit says about the highest sequence."""
        return heads.kept(self.seen.highest, self.state, self.shape)

    def user_metadata(self, done: RowChanges) -> dict[str, Any]:
        """The user metadata of the batch's commit."""
        return {**self.metrics.with_changes(done).user_metadata(), **self.reached}

    @property
    def folded(self) -> DataFrame:
        """Return the latest event of each key, for tables of latest rows."""
        return latest.folded(self.events, self.shape)

    def truncation(self, stored: DataFrame) -> tuple[Any, bool]:
        """The highest truncate's sequence so far, None if there was none, and whether it is of this batch."""
        return latest.last_truncate(stored, self.shape, self.seen.truncate) if self.state.truncates else (None, False)


def in_ranges(shape: Layout, seen: BatchSummary) -> Column:
    """Whether a row of the table `t` has keys between the least and the greatest of the batch; literals let Delta leave files out."""
    found = [
        F.col(f"t.{quoted(key)}").between(literal(least, kind), literal(greatest, kind))
        for key, (least, greatest) in seen.ranges.items()
        if least is not None and (kind := shape.columns[key].dataType) is not None
    ]
    return reduce(lambda a, b: a & b, found, F.lit(True))


__all__ = ["Batch", "in_ranges"]
