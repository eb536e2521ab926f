"""Groups of one data frame that are joined to another (LG-27).

`a` and `b`, two groupings of one frame, share the column of the key, so that Spark cannot tell `a.key` from `b.key` once both are joined.
The sessions of serverless pipelines tell them apart. In a function that Spark refuses for it, each grouping has key columns of its own.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakelet.base.names import quoted
from lakelet.spark.names.second_calls import OWN_COLUMNS
from lakelet.spark.patches.doors import Call, Rest, around


@around("columns of two groupings of one frame are told apart in joins, as in the sessions of serverless pipelines")
def own_columns(call: Call, rest: Rest) -> DataFrame:
    """Give the result of a grouping columns of its own, in the mode of `OWN_COLUMNS`."""
    frame: DataFrame = rest(call)
    names = frame.columns if OWN_COLUMNS.on() else []
    if not names or len({name.lower() for name in names}) < len(names):
        return frame
    return frame.select(*(F.col(quoted(name)).alias(name) for name in names))


__all__ = ["own_columns"]
