"""Python functions that Java calls back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.utils import ForeachBatchFunction


def release(spark: SparkSession, function: Callable[..., Any]) -> None:
    """Forget the function of a streaming query's `foreachBatch`, after the query has ended.

    py4j keeps the function until Java drops its proxy. Java drops it with the query, and the query with its session; the function
    holds both in Python. Neither side's garbage collector sees the whole circle: without this call every flow would leave a session behind.
    """
    gateway: Any = spark.sparkContext._gateway
    pool: Any = gateway.gateway_property.pool
    with pool.lock:
        ended = [key for key, kept in pool.dict.items() if isinstance(kept, ForeachBatchFunction) and kept.func is function]
        for key in ended:
            del pool.dict[key]
