"""How Spark computes a view follows from the size of what it reads (docs/decisions/0052-views-by-size.md)."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lakelet.base.errors import LakeletError
from lakelet.flows.context import FlowTask
from lakelet.spark.partitions import query_sizes

COMPILED_BYTES = 128 * 1024
"""From this much on compiled code pays for itself where it is kept for the next round."""

_COMPILED = {"spark.sql.codegen.wholeStage": ("false", "true"), "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "FALLBACK")}
"""Of each setting the value of a session for little input, and that of one that generates code."""


def set_by_size(task: FlowTask, size: int | None, spark: SparkSession) -> None:
    """Set in the view's own session what fits the size of its inputs; what the pipeline, or its user, has set stays.

    `size`: that of `input_bytes`. Nothing is set where it is not known.
    """
    if size is None:
        return
    wanted = dict(query_sizes(spark, size))
    if size > COMPILED_BYTES and task.environment.memory.queries.on:
        wanted |= {name: value for name, (ours, value) in _COMPILED.items() if spark.conf.get(name, None) == ours}
    chosen = {*task.conf, *task.environment.spark.given, *task.environment.spark.settings_of_code()}
    for name, value in wanted.items():
        if name not in chosen:
            spark.conf.set(name, value)


def input_bytes(task: FlowTask) -> int | None:
    """The size of all that the view reads, in bytes of its files; None where it reads something else too, or a size is not known."""
    environment = task.environment
    if not task.inputs or task.flow.batch.always or task.flow.batch.outside:
        return None
    total = 0
    for key in task.inputs:
        size = environment.memory.log(environment.storage.table_path(environment.catalog.datasets[key].name)).bytes()
        if size is None:
            return None
        total += size
    return total


def computed_bytes(task: FlowTask, size: int | None, written: int | None) -> int | None:
    """About how much of its inputs the view was computed from, in bytes; None where that is not known.

    `size`: that of all inputs; `written`: the bytes of the partitions that were computed, which are taken for the same share of the inputs
    as of the view. None where all of the view was.
    """
    if size is None or written is None:
        return size
    try:
        whole = task.environment.memory.log(task.path()).bytes()
    except (LakeletError, OSError):  # the view is written: a guess for the next session must not fail it
        return None
    return round(size * min(1.0, written / whole)) if whole else size


__all__ = ["COMPILED_BYTES", "computed_bytes", "input_bytes", "set_by_size"]
