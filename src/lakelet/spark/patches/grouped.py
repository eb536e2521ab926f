"""Groups of one data frame that are joined to another (LG-27).

`a` and `b`, two groupings of one frame, share the column of the key, so that Spark cannot tell `a.key` from `b.key` once both are joined.
The sessions of serverless pipelines tell them apart. In a function that Spark refuses for it, each grouping has key columns of its own.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakelet.base.names import quoted
from lakelet.base.patching import Patch, without_context
from lakelet.spark.names.second_calls import OWN_COLUMNS
from lakelet.spark.patches import owners


def _with_own_columns(original: Any) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> DataFrame:
        frame: DataFrame = original(self, *args, **kwargs)
        names = frame.columns if OWN_COLUMNS.on() else []
        if not names or len({name.lower() for name in names}) < len(names):
            return frame
        return frame.select(*(F.col(quoted(name)).alias(name) for name in names))

    return call


_WHY = "columns of two groupings of one frame are told apart in joins, as in the sessions of serverless pipelines"

GROUPED: tuple[Patch, ...] = tuple(
    Patch(owners.GROUPED, name, without_context(_with_own_columns), _WHY, "1.3.0")
    for name in ("agg", "count", "avg", "mean", "max", "min", "sum")
)
"""Patches that give each grouping columns of its own."""

__all__ = ["GROUPED"]
