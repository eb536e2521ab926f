"""A target of change flows as a value: where it lies, what is declared about it, and how long its tombstones are kept (CD-15).

Tombstones are kept for ever, unless a property of the table says otherwise. One is dated when it is written. Once it is older than the
property says, it has no effect, and the next batch removes it. An upsert that comes later than that and is older than the delete brings its
row back, as on Databricks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakelet.cdc.changes import BURIED, DELETED
from lakelet.cdc.state import ChangeState
from lakelet.config.properties import TOMBSTONES, look_up, whole
from lakelet.files.paths import AnyPath
from lakelet.language.model import ChangeSpec
from lakelet.language.sql.values import ColumnDefinition
from lakelet.storage.delta.table_spec import TableSpec
from lakelet.storage.root import INTERNAL


@dataclass(frozen=True)
class ChangeTable:
    """A target of change flows.

    path: of the target. flows: all change flows into it, as declared. wanted: the target as declared, with the columns of the flow's
    `Layout.visible`. streamed: a stream reads the table's rows, so what only inserts must leave the files that are there.
    computed: columns of `wanted` that are computed from a row's others.
    """

    path: AnyPath
    flows: tuple[ChangeSpec, ...]
    wanted: TableSpec
    streamed: bool = False
    computed: tuple[ColumnDefinition, ...] = ()

    @property
    def internal(self) -> AnyPath:
        """The table that holds the state and all rows."""
        return self.path / INTERNAL

    def retention(self, state: ChangeState) -> Retention | None:
        """How long tombstones are kept; None for a state that keeps all events."""
        return None if state.events else Retention.of(self.wanted.properties or {})


@dataclass(frozen=True)
class Retention:
    """Tombstones live for `seconds`; `now` (seconds since the epoch) is the date of this batch's."""

    seconds: int
    now: float

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Retention | None:
        """What a table's properties say, None if nothing. The value has been checked when the table was declared."""
        given = look_up(properties, TOMBSTONES)
        return None if given is None else cls(whole(given), time.time())

    def dated(self, rows: DataFrame) -> DataFrame:
        """The rows with the date of this batch on those that are deletes."""
        return rows.withColumn(BURIED, F.when(F.col(DELETED), F.timestamp_seconds(F.lit(self.now))))

    def expired(self, table: str = "") -> Column:
        """Whether a stored row is an expired tombstone. Those from before the property have no date, and are kept."""
        date = F.col(f"{table}{BURIED}")
        return F.coalesce(F.col(f"{table}{DELETED}") & (date < F.timestamp_seconds(F.lit(self.now - self.seconds))), F.lit(False))


def dated(rows: DataFrame, retention: Retention | None) -> DataFrame:
    """The rows, dated where tombstones expire."""
    return rows if retention is None else retention.dated(rows)
