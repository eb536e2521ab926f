"""How long the tombstones of a change table are kept: for ever, unless a property of the table says otherwise (CD-15).

A tombstone is dated when it is written. Once it is older than the property says, it has no effect, and the next batch removes it: an upsert
that comes later than that and is older than the delete brings its row back, as on Databricks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakelet.cdc.changes import BURIED, DELETED
from lakelet.config.properties import TOMBSTONES, look_up, whole


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
