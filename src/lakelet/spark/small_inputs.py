"""Settings of a local session for little input (docs/decisions/0052-views-by-size.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from lakelet.spark.launch.session import cores

ONE_TASK_BYTES = 128 * 1024
"""Up to this much one task is quicker than several with an exchange between them."""
_SHUFFLE, _SCAN = "spark.sql.shuffle.partitions", "spark.sql.files.minPartitionNum"
IN_ONE_TASK = {_SHUFFLE: "1", _SCAN: "1"}


def made_by_lakelet() -> Mapping[str, str | None]:
    """The values of a local session that nobody has set otherwise; None for a setting without a value."""
    return {_SHUFFLE: str(cores()), _SCAN: None}


@contextmanager
def one_task(spark: SparkSession, size: int) -> Iterator[None]:
    """Let queries in the block run in one task where they read little: `size` in bytes. Settings of others stay, also on a cluster."""
    conf, before = spark.conf, made_by_lakelet()
    local = (spark.sparkContext.master or "").startswith("local")
    changed = [key for key in IN_ONE_TASK if local and size <= ONE_TASK_BYTES and conf.get(key, None) == before[key]]
    for key in changed:
        conf.set(key, IN_ONE_TASK[key])
    try:
        yield
    finally:
        for key in changed:
            value = before[key]
            if value is None:
                conf.unset(key)
            else:
                conf.set(key, value)


__all__ = ["IN_ONE_TASK", "ONE_TASK_BYTES", "made_by_lakelet", "one_task"]
