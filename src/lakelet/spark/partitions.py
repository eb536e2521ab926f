"""How many tasks a session uses, by the cores of its master and by the size of what it reads.

One rule for this machine and for clusters (docs/decisions/0102-one-rule-for-partitions.md). Imports neither Spark nor pyspark.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ONE_TASK_BYTES = 128 * 1024
"""Up to this much one task is quicker than several with an exchange between them."""
SPLIT_BYTES = 128 * 1024 * 1024
"""So much a task reads of large files by Spark's default (`spark.sql.files.maxPartitionBytes`): exchanges take as much."""
INTERPRETED_BYTES = 32 * 1024 * 1024
"""Up to this much a query is over before the code generated for it has been compiled. A Delta log is short then: the first reading of a
table as a stream takes three jobs with one partition, and five with two."""
MOST_SHUFFLE, MOST_SNAPSHOT = 200, 50
"""The defaults of Spark and of Delta, which more cores do not exceed: each partition of a stream's state is a store of its own."""
SHUFFLE = "spark.sql.shuffle.partitions"
MADE_BY_LAKELET = "spark.lakelet.shufflePartitions"
"""The number that Lakelet has given `SHUFFLE` for a session: where the two differ, somebody else has set it."""
_SNAPSHOT, _SCAN = "spark.databricks.delta.snapshotPartitions", "spark.sql.files.minPartitionNum"
_IN_ONE_TASK = {SHUFFLE: "1", _SCAN: "1"}
_LITTLE = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    _SNAPSHOT: "1",
}


def session_sizes(cores: int | None, input_bytes: int | None, given: Container[str] = ()) -> dict[str, str]:
    """Return the settings of a session by the cores of its master and by what it will read; None for what is not known.

    `given`: names of settings that the user has made. They are left out.
    """
    shuffle, snapshot = (str(most if cores is None else min(cores, most)) for most in (MOST_SHUFFLE, MOST_SNAPSHOT))
    sizes = {SHUFFLE: shuffle, _SNAPSHOT: snapshot}
    if input_bytes is not None and input_bytes < INTERPRETED_BYTES:
        sizes |= _LITTLE
    if SHUFFLE not in given:
        sizes[MADE_BY_LAKELET] = shuffle
    return {name: value for name, value in sizes.items() if name not in given}


def query_sizes(spark: SparkSession, size: int) -> Mapping[str, str]:
    """Return the settings that fit a query which reads `size` bytes of stored tables: one task for little, more than cores for much.

    Where somebody else than Lakelet has set the number of partitions, it stays.
    """
    made = spark.conf.get(MADE_BY_LAKELET, None)
    ours = {SHUFFLE: made, _SCAN: None}
    if made is None:
        return {}
    splits = -(-size // SPLIT_BYTES)
    wanted = _IN_ONE_TASK if size <= ONE_TASK_BYTES else {SHUFFLE: str(splits)} if splits > int(made) else {}
    return {name: value for name, value in wanted.items() if spark.conf.get(name, None) == ours[name]}


@contextmanager
def sized(spark: SparkSession, size: int, *, little: bool = True) -> Iterator[None]:
    """Give the queries of the block the settings of `query_sizes`. `little`: also fewer tasks, where little is read beside the tables."""
    conf = spark.conf
    changed = query_sizes(spark, size) if little or size > ONE_TASK_BYTES else {}
    before = {name: conf.get(name, None) for name in changed}
    for name, value in changed.items():
        conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                conf.unset(name)
            else:
                conf.set(name, old)


__all__ = ["INTERPRETED_BYTES", "MADE_BY_LAKELET", "ONE_TASK_BYTES", "SHUFFLE", "query_sizes", "session_sizes", "sized"]
