"""A table as it is wanted: columns, partitions, properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import types as T

from lakelet.storage.delta.declared import Declared


@dataclass(frozen=True)
class IdentityColumn:
    """A column whose numbers are `start`, `start + step`, …; `always`: queries do not return it, else a number of theirs is kept."""

    name: str
    start: int
    step: int
    always: bool

    @property
    def key(self) -> str:
        return self.name.lower()

    def after(self, number: int) -> int:
        """The first number of the column that lies behind `number`, in the direction of its steps."""
        return self.start + (max((number - self.start) // self.step, -1) + 1) * self.step


@dataclass(frozen=True)
class TableSpec:
    """How a table is made: its columns and everything that is declared about it.

    `declared`: what the definition says, of which the table keeps a record; None where a caller changes a stored table in another way.
    `identities`: columns whose numbers its rows get when they are written.
    """

    schema: T.StructType
    partition_cols: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] | None = None
    comment: str | None = None
    declared: Declared | None = None
    identities: tuple[IdentityColumn, ...] = ()


CHANGE_FEED = "delta.enableChangeDataFeed"
"""Table property: Delta keeps which rows each commit changed."""
EPOCH = "lakelet.epoch"
"""Table property: the reset epoch its rows belong to. A spec with a newer one replaces the rows in its first commit."""
