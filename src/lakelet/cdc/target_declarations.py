"""Declarations about a change table: its description, and NOT NULL (docs/semantics/table-properties.md).

The internal table holds tombstones and events, whose columns may be NULL; what is declared counts for the rows that readers see.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelet.base.failpoints import reached
from lakelet.cdc.changes import HIDDEN
from lakelet.cdc.latest import ACTION, UPSERT
from lakelet.cdc.mirror import PART, VISIBLE, mirror
from lakelet.files.paths import AnyPath
from lakelet.storage.delta import not_null, table_spec
from lakelet.storage.delta.locks import lock_of
from lakelet.storage.delta.table_spec import TableSpec
from lakelet.storage.delta.transaction import Transaction
from lakelet.storage.root import INTERNAL

KEPT = {"delta.enableExpiredLogCleanup": "false"}
"""Properties of every internal table: its commits hold what was applied and counted."""


def redescribe(session: SparkSession, target: AnyPath, wanted: TableSpec) -> bool:
    """`tables.redescribe` for a change table: one commit in the internal log, which the target's follows.

    Raises schemas.PartitioningMismatch, NOT_NULL_VIOLATED.
    """
    inner = target / INTERNAL
    with lock_of(inner).alone():
        transaction = Transaction(session, inner)
        if transaction.read_version < 0 or transaction.outdated(wanted):
            return False
        properties = {**(wanted.properties or {}), **KEPT}
        made = replace(wanted, schema=transaction.schema, partition_cols=(PART, *wanted.partition_cols), properties=properties)
        if not transaction.described(made, replace=False):
            check_stored(transaction, wanted)
            transaction.describe(made, replace=False)
            transaction.commit([], user_metadata={})
            reached("table.described")
            mirror(target, HIDDEN)
        return True


def is_needed(made: TableSpec) -> bool:
    """Whether NOT NULL is declared for a column of the table."""
    return made.declared is not None and bool(made.declared.not_null)


def guarded(rows: DataFrame, made: TableSpec, flow: str) -> DataFrame:
    """The rows (or actions) of an internal table; to compute them fails with NOT_NULL_VIOLATED where a visible one lacks a value.

    So nothing is committed, and no job of its own looks at the rows.
    """
    paths = table_spec.paths(rows.schema, made.declared.not_null) if made.declared is not None else []
    if not paths:
        return rows
    seen = F.col(PART).isin(*VISIBLE)
    if ACTION in rows.columns:
        seen = seen & (F.col(ACTION) == UPSERT)
    message: Column = F.lit(None).cast("string")
    for path in reversed(paths):
        message = F.when(not_null.is_missing(path), F.lit(_message(path, flow))).otherwise(message)
    broken = F.when(seen, message)
    return rows.withColumn(PART, F.when(broken.isNotNull(), F.raise_error(broken).cast("string")).otherwise(F.col(PART)))


def _message(path: table_spec.Path, flow: str) -> str:
    """The text of the error, from which `run_failure` reads its code."""
    return f"[{not_null.CODE}] the flow {flow} gives a row without {'.'.join(path)}, which is declared NOT NULL; nothing was written"


def check_stored(transaction: Transaction, wanted: TableSpec) -> None:
    """Raise NOT_NULL_VIOLATED if visible rows lack what is declared for `wanted` and was not declared before."""
    before, now = transaction.declared, wanted.declared
    if now is None:
        return
    new = set(now.not_null) - set(() if before is None else before.not_null)
    paths = table_spec.paths(transaction.schema, sorted(new))
    not_null.check_rows(lambda: transaction.rows().where(F.col(PART).isin(*VISIBLE)), paths)
