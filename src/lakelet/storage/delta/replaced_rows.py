"""Replaces rows of a table by others in one commit (docs/semantics/replacing.md).

Files that hold a row that goes are written again without it. A change feed gets the rows that go and those that come, and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.failpoints import reached
from lakelet.config.properties import look_up
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.storage.delta import column_mapping, not_null, schemas
from lakelet.storage.delta.batch_metrics import RowChanges, size_of
from lakelet.storage.delta.locks import lock_of
from lakelet.storage.delta.table_spec import CHANGE_FEED, TableSpec
from lakelet.storage.delta.tables import Measure, WriteResult, made_before, merged, numbering_of
from lakelet.storage.delta.transaction import Transaction, Txn

GOES = "__lakelet_goes"
"""The column of `Exchange.leaving`: TRUE for a stored row that goes, FALSE for one that stays."""

_CHANGE = "_change_type"
_FILE = "__lakelet_file"


class Exchange(Protocol):
    """Which stored rows go, and which rows come."""

    def within(self, stored: DataFrame) -> DataFrame:
        """The stored rows under a condition that is true for every one that the exchange must see."""

    def with_stored_rows(self, stored: DataFrame) -> Exchange:
        """The exchange once it knows the stored rows; `stored`: those of the files that have some `within`. Not called without such."""

    def leaving(self, stored: DataFrame) -> DataFrame:
        """The stored rows with the column `GOES`."""

    def arriving(self) -> DataFrame:
        """The rows that come."""


def replace_rows(
    spark: SparkSession,
    path: AnyPath,
    exchange: Exchange,
    spec: TableSpec,
    *,
    measure: Measure,
    txn: Txn | None = None,
    replayed: bool = False,
) -> WriteResult | None:
    """Exchange rows of a table in one commit; None if `txn` had been committed before (only checked when `replayed`).

    The table is made, or gets its new columns, in the same commit; a reader sees it before or after. Rows from before a reset all go.
    Raises what `tables.append` raises; then nothing was written.
    """
    made = made_before(spark, path, spec)
    with lock_of(path).alone():
        transaction = Transaction(spark, path)
        if replayed and txn is not None and transaction.read_version >= 0 and transaction.done(txn):
            return None
        exists = transaction.read_version >= 0
        outdated = exists and transaction.outdated(spec)
        mapped = made or column_mapping.switches(transaction, spec)
        transaction = column_mapping.prepared(transaction, spec)
        wanted = spec if outdated else merged(transaction, spec)
        if exists and not outdated:
            not_null.check_stored(transaction, wanted.schema)
        found = _Stored.within(transaction, exchange, wanted.schema) if exists and not outdated else None
        touched = found.touched() if found is not None else []
        described = exists and transaction.described(wanted, replace=outdated)
        transaction.describe(wanted, replace=outdated)
        removed = transaction.removals() if outdated else [file.remove() for file in touched]
        feeds = bool(touched) and (look_up(transaction.properties, CHANGE_FEED) or "").lower() == "true"
        kept = transaction.write(found.staying(touched, feeds=feeds)) if found is not None and touched else []
        numbering = numbering_of(transaction, wanted)
        rows = schemas.aligned(numbering.numbered((exchange if found is None else found.exchange).arriving()), wanted.schema)
        came = transaction.write(_also_in_feed(rows) if feeds else rows)
        reached("batch.files_written")
        data, again = ([file for file in files if _is_data(file)] for files in (came, kept))
        written = _rows_in(data)
        gone = max(0, _rows_in(touched) - _rows_in(again))  # files of others may have no statistics
        done = RowChanges(written, gone, _rows_in(again) + written, size_of([*again, *data]))
        metrics = measure().with_changes(done)
        if described and not (metrics.worth_a_commit or removed or came):
            return WriteResult(None, metrics, mapped=False)
        user_metadata = {**metrics.user_metadata(), **numbering.user_metadata(transaction, data)}
        actions = [*removed, *kept, *came]
        version = transaction.commit(actions, user_metadata=user_metadata, txn=txn, replace=outdated, whole=outdated)
        reached("batch.committed")
        return WriteResult(version, metrics, mapped)


@dataclass(frozen=True)
class _Stored:
    """The stored rows that an exchange can be about, in the columns that the table gets. `files`: those that have them."""

    transaction: Transaction
    exchange: Exchange
    schema: T.StructType
    files: Sequence[Any]

    @classmethod
    def within(cls, transaction: Transaction, exchange: Exchange, schema: T.StructType) -> _Stored | None:
        """The rows that the exchange must see; None where no file can have one."""
        grows = len(transaction.schema.fields) < len(schema.fields)  # the condition may speak of a column that is not stored yet
        files = transaction.files() if grows else transaction.files_of(exchange.within(transaction.rows()))
        if not files:
            return None
        found = cls(transaction, exchange, schema, files)
        return replace(found, exchange=exchange.with_stored_rows(found.rows(files)))

    def rows(self, files: Sequence[Any], *more: str) -> DataFrame:
        rows = self.transaction.rows_of(files)
        return schemas.conformed(rows.withColumn(_FILE, F.input_file_name()) if more else rows, self.schema, *more)

    def touched(self) -> list[Any]:
        """The files with a row that goes."""
        leaving = self.exchange.leaving(self.rows(self.files, _FILE)).where(F.col(GOES)).select(_FILE).distinct()
        paths = {unquote(urlsplit(row[0]).path) for row in leaving.collect()}
        found = [file for file in self.files if self.transaction.path_of(file) in paths]
        if len(found) != len(paths):
            raise RuntimeError(f"of {len(paths)} file(s) with rows that go, the log of {self.transaction.path} names {len(found)}")
        return found

    def staying(self, files: Sequence[Any], *, feeds: bool) -> DataFrame:
        """The rows of these files that stay; with `feeds` also those that go, marked for the change feed."""
        rows = self.exchange.leaving(self.rows(files))
        if not feeds:
            return rows.where(~F.col(GOES)).drop(GOES)
        return rows.withColumn(_CHANGE, F.when(F.col(GOES), "delete")).drop(GOES)


def _also_in_feed(rows: DataFrame) -> DataFrame:
    """The rows, each a second time for the change feed."""
    return rows.withColumn(_CHANGE, F.explode(F.array(F.lit(None).cast("string"), F.lit("insert"))))


def _rows_in(files: Sequence[Any]) -> int:
    """Rows of files, Delta's actions, by their statistics; a file without them counts as none."""
    counts = (file.numLogicalRecords() for file in files)
    return int(sum(count.get() for count in counts if count.isDefined()))


def _is_data(file: Any) -> bool:
    return str(file.getClass().getSimpleName()) == "AddFile"


# --- views in part ------------------------------------------------------------------------------------------------------------------------


def _unchanged(spark: SparkSession, path: AnyPath, spec: TableSpec, based_on: int | None) -> Transaction | None:
    """A transaction on a table that is as `spec` describes it, and as the commit `based_on` has left its rows; None for another one."""
    transaction = Transaction(spark, path)
    version = transaction.read_version
    if version < 0 or transaction.outdated(spec) or column_mapping.is_mapped(transaction.properties):
        return None
    if based_on is not None and (version < based_on or TableLog(path).data_version(based_on, version) != based_on):
        return None
    return transaction if transaction.described(spec, replace=True) else None


def overwrite_partitions(
    spark: SparkSession, path: AnyPath, rows: Callable[[], DataFrame], spec: TableSpec, *, of: Column, measure: Measure
) -> WriteResult | None:
    """Replace the rows for which the condition `of` on partition columns is true by `rows()`, for which it is true as well.

    Return None, with nothing written, if the table is missing, belongs to an earlier reset or differs from `spec`: then it must be replaced
    as a whole. A concurrent reader sees either the old or the new content.
    """
    with lock_of(path).alone():
        transaction = _unchanged(spark, path, spec, None)
        if transaction is None:
            return None
        removed = transaction.removals(of)
        return _committed(transaction, removed, schemas.aligned(rows(), spec.schema), measure, replace=True)


def rewrite_rows(
    spark: SparkSession,
    path: AnyPath,
    rows: Callable[[DataFrame], DataFrame],
    spec: TableSpec,
    *,
    based_on: int,
    within: Callable[[DataFrame], DataFrame] | None,
    measure: Measure,
) -> WriteResult | None:
    """Replace the rows of some files by `rows` of them in one commit; nothing is asked of the other files.

    `within`: the stored rows under a condition; files that can have one of these are taken, all files where it is None. `based_on`: the
    version that the change was computed for. Return None, with nothing written, for a table that is not as that version left it, belongs to
    an earlier reset or differs from `spec`.
    """
    with lock_of(path).alone():
        transaction = _unchanged(spark, path, spec, based_on)
        if transaction is None:
            return None
        files = transaction.all_files() if within is None else transaction.files_of(within(transaction.rows()))
        changed = schemas.aligned(rows(transaction.rows_of(files)), spec.schema)
        whole = within is None or len(files) == transaction.number_of_files
        return _committed(transaction, [file.remove() for file in files], changed, measure, replace=whole, whole=whole)


def add_rows(
    spark: SparkSession, path: AnyPath, rows: DataFrame, spec: TableSpec, *, based_on: int, measure: Measure
) -> WriteResult | None:
    """Add rows to a view in one commit; none is made where there is no row and no count of rules. Return None as `rewrite_rows` does."""
    with lock_of(path).alone():
        transaction = _unchanged(spark, path, spec, based_on)
        return None if transaction is None else _committed(transaction, [], schemas.aligned(rows, spec.schema), measure)


def _committed(
    transaction: Transaction, removed: Sequence[Any], rows: DataFrame, measure: Measure, *, replace: bool = False, whole: bool = False
) -> WriteResult:
    files = transaction.write(rows)
    reached("view.files_written")
    metrics = measure().with_files(files)
    if not (files or removed or metrics.expectations):
        return WriteResult(None, metrics)
    version = transaction.commit([*removed, *files], user_metadata=metrics.user_metadata(), replace=replace, whole=whole)
    reached("view.committed")
    return WriteResult(version, metrics)
