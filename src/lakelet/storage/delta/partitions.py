"""Replaces some partitions of a table in one commit."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession

from lakelet.base.failpoints import reached
from lakelet.files.paths import AnyPath
from lakelet.storage.delta import column_mapping, schemas
from lakelet.storage.delta.locks import lock_of
from lakelet.storage.delta.table_spec import TableSpec
from lakelet.storage.delta.tables import Measure, Written
from lakelet.storage.delta.transaction import Transaction


def overwrite_partitions(
    spark: SparkSession, path: AnyPath, rows: Callable[[], DataFrame], spec: TableSpec, *, of: Column, measure: Measure
) -> Written | None:
    """Replace the rows for which the condition `of` on partition columns is true by `rows()`, for which it is true as well.

    Return None, with nothing written, if the table is missing, belongs to an earlier reset or differs from `spec`: then it must be replaced
    as a whole. A concurrent reader sees either the old or the new content.
    """
    with lock_of(path).alone():
        transaction = Transaction(spark, path)
        if transaction.read_version < 0 or transaction.outdated(spec) or column_mapping.is_mapped(transaction.properties):
            return None
        if not transaction.described(spec, replace=True):
            return None
        removed = transaction.removals(of)
        files = transaction.write(schemas.aligned(rows(), spec.schema))
        reached("view.files_written")
        metrics = measure().with_files(files)
        version = transaction.commit([*removed, *files], user_metadata=metrics.user_metadata(), replace=True)
        reached("view.committed")
        return Written(version, metrics)
