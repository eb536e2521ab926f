"""A table as it is wanted: columns, partitions, properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import types as T


@dataclass(frozen=True)
class TableSpec:
    """How a table is made: its columns and everything that is declared about it."""

    schema: T.StructType
    partition_cols: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] | None = None
    comment: str | None = None


CHANGE_FEED = "delta.enableChangeDataFeed"
"""Table property: Delta keeps which rows each commit changed."""
EPOCH = "lakelet.epoch"
"""Table property: the reset epoch its rows belong to. A spec with a newer one replaces the rows in its first commit."""
