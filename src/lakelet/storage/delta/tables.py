"""Writes Delta tables, each write in one transaction. What their logs say is read in `files/delta_log.py`.

A flow's write, the counts measured while writing, and the txn of the micro-batch are **one** Delta commit: the files, a
`SetTransaction` action, and the counts as JSON in the commit's user metadata. So counts can neither be lost nor doubled, whatever line
the process dies at (docs/decisions/0002-one-commit.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakelet.base.failpoints import reached
from lakelet.base.names import quoted, split_name
from lakelet.config import delta_properties
from lakelet.config.properties import look_up
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.jvm.scala import items
from lakelet.jvm.sessions import java_session, plain_sql
from lakelet.storage.delta import column_mapping, not_null, schemas, table_spec
from lakelet.storage.delta.batch_metrics import BatchMetrics, size_of
from lakelet.storage.delta.identities import IdentityValues, newest_spans
from lakelet.storage.delta.known_files import LiveFiles
from lakelet.storage.delta.locks import lock_of
from lakelet.storage.delta.row_difference import row_difference
from lakelet.storage.delta.split_write import LeavingRows, Marks, split_files
from lakelet.storage.delta.table_spec import CHANGE_FEED, TableSpec
from lakelet.storage.delta.transaction import Transaction, Txn


def stored_schema(spark: SparkSession, path: AnyPath) -> T.StructType:
    """Columns of the table as stored now."""
    return Transaction(spark, path).schema


def known_content(spark: SparkSession, path: AnyPath, live: LiveFiles | None = None, version: int | None = None) -> DataFrame | None:
    """Return the rows of a table whose newest commit replaced its whole content; None for other tables.

    `live`: also those of a small table whose commits are followed. `version`: None also for a table whose newest version is another one.

    Delta itself would run one or two Spark jobs to find the files whenever a query reads the table. None also for tables whose columns
    Delta presents differently than they are stored (column mapping, NOT NULL, CHAR, VARCHAR).
    """
    if TableLog(path).version() < 0:
        return None
    transaction = Transaction(spark, path)
    if version is not None and transaction.read_version != version:
        return None
    plain = all(field.nullable and field.metadata.keys() <= {"comment"} for field in transaction.schema.fields)
    files = transaction.files_of_newest_commit() if plain else None
    if plain and files is None and live is not None:
        lines = live.of(transaction.read_version)
        files = None if lines is None else [transaction.action_of(line) for line in lines]
    return None if files is None else transaction.rows_of(files)


def create_if_absent(spark: SparkSession, path: AnyPath, spec: TableSpec, *, user_metadata: Mapping[str, Any]) -> bool:
    """Make an empty table, unless there is one that belongs to the same reset epoch. Whether it got column mapping with it."""
    with lock_of(path).alone():
        exists = TableLog(path).version() >= 0
        if not exists and spec.cluster_by:
            _create_clustered(spark, path, spec)
            _describe_rest(Transaction(spark, path), spec)
            return column_mapping.is_mapped(spec.properties or {})
        transaction = Transaction(spark, path)
        if exists and not transaction.outdated(spec):
            return False
        mapped = column_mapping.switches(transaction, spec)
        transaction = column_mapping.prepared(transaction, spec)
        transaction.describe(spec, replace=exists)
        transaction.commit(transaction.removals() if exists else [], user_metadata=user_metadata, replace=exists)
        return mapped


def made_before(spark: SparkSession, path: AnyPath, spec: TableSpec) -> bool:
    """Make a table that its first rows cannot make in their commit; whether it got column mapping with it.

    Clustering is set up by Delta's builder, and Delta refuses rows in the commit that gives columns to a mapped table with a change feed.
    """
    properties = spec.properties or {}
    fed = (look_up(properties, CHANGE_FEED) or "").lower() == "true"
    apart = bool(spec.cluster_by) or (fed and column_mapping.is_mapped(properties))
    return apart and TableLog(path).version() < 0 and create_if_absent(spark, path, spec, user_metadata={})


def _create_clustered(spark: SparkSession, path: AnyPath, spec: TableSpec) -> None:
    """Clustering is a table feature with state of its own; Delta's builder sets it up."""
    from delta.tables import DeltaTable

    columns = _clustering_columns(spec.cluster_by, spec.schema.fieldNames())
    builder = DeltaTable.createIfNotExists(spark).location(str(path)).addColumns(spec.schema).clusterBy(*columns)
    record = spec.declared.record() if spec.declared is not None else {}
    for key, value in {**(spec.properties or {}), **record}.items():
        if delta_properties.passes_commands(key):
            builder = builder.property(key, value)
    if spec.comment:
        builder = builder.comment(spec.comment)
    builder.execute()


def _describe_rest(transaction: Transaction, spec: TableSpec) -> None:
    """Give a clustered table the properties that Delta's own commands refuse. It keeps the names that its columns have in files."""
    spec = merged(transaction, spec)
    if not transaction.described(spec, replace=False):
        transaction.describe(spec, replace=False)
        transaction.commit([], user_metadata={})


@dataclass(frozen=True)
class WriteResult:
    """Result of one write, and what was found out meanwhile. `mapped`: the table got column mapping with it.

    `version`: that of the commit. Where nothing had to be committed, None from `append` and `replace_rows`, and the version that was read
    from `overwrite`.
    """

    version: int | None
    metrics: BatchMetrics
    mapped: bool = False


class LeavingRowsTarget(Protocol):
    """Keeps the rows that drop rules leave out, in a commit of its own before that of the batch (docs/decisions/0033-quarantine.md)."""

    @property
    def active(self) -> bool:
        """Whether rows have the column that says which of them leave (`LEAVING`)."""

    def marks(self) -> Marks:
        """What the rows of a batch that is written now carry there."""

    def keep(
        self,
        leaving_rows: LeavingRows | None,
        spec: TableSpec,
        metrics: BatchMetrics,
        dataset: Transaction,
        files: Sequence[Any],
        *,
        txn: Txn | None,
        replayed: bool,
        whole: bool,
    ) -> None:
        """Commit what leaves the batch, if anything. `spec`: of the table, as the batch leaves it; its transaction is to commit `files`."""


Measure = Callable[[], BatchMetrics]
"""Called after the files are written and before the commit: what to keep in the commit, and whether that is worth one without rows.
May raise to refuse the rows; then nothing becomes visible."""


def append(
    spark: SparkSession,
    path: AnyPath,
    rows: DataFrame,
    spec: TableSpec,
    *,
    txn: Txn,
    measure: Measure,
    replayed: bool,
    whole: bool = False,
    quarantine: LeavingRowsTarget | None = None,
) -> WriteResult | None:
    """Append one micro-batch in one commit; None if it had been committed before (only checked when `replayed`).

    The table is made, or gets its new columns, in the same commit. `whole`: the rows are all of the table (complete mode), those it has
    go in the same commit. Raises schemas.Incompatible if a column cannot be stored, and schemas.PartitioningMismatch for other partition
    columns.
    """
    made, lock = made_before(spark, path, spec), lock_of(path)
    with lock.alone() if spec.identities else lock.shared():  # two appends must not give the same numbers
        transaction = Transaction(spark, path)
        if replayed and transaction.read_version >= 0 and transaction.done(txn):
            return None
        outdated = transaction.outdated(spec)
        wanted = spec if outdated else merged(transaction, spec)
        if not outdated and transaction.described(wanted, replace=False):
            written = _append(
                transaction, rows, wanted, txn, measure, truncate=whole, quarantine=quarantine, replayed=replayed, whole=whole
            )
            return replace(written, mapped=made and written.version is not None)
    with lock_of(path).alone():
        transaction = Transaction(spark, path)
        truncate = transaction.read_version >= 0 and transaction.outdated(spec)
        mapped = made or column_mapping.switches(transaction, spec)
        transaction = column_mapping.prepared(transaction, spec)
        wanted = spec if truncate else merged(transaction, spec)
        if not (truncate or whole):
            not_null.check_stored(transaction, wanted.schema)
        transaction.describe(wanted, replace=truncate)
        all_of_it = truncate or whole
        written = _append(
            transaction, rows, wanted, txn, measure, truncate=all_of_it, quarantine=quarantine, replayed=replayed, whole=whole
        )
        return replace(written, mapped=mapped and written.version is not None)


def redescribe(spark: SparkSession, path: AnyPath, spec: TableSpec) -> bool:
    """Give a stored table what is declared about it, in one commit that leaves its rows and columns; whether it is described like that now.

    False for a table that does not exist, or whose rows must be replaced first. Raises schemas.PartitioningMismatch, NOT_NULL_VIOLATED.
    """
    with lock_of(path).alone():
        transaction = Transaction(spark, path)
        if transaction.read_version < 0:
            return False
        before = transaction.declared
        if before is not None and before.cluster_by and not spec.cluster_by:
            _cluster_by(spark, path, before.cluster_by, ())
            transaction = Transaction(spark, path)
        if transaction.outdated(spec):
            return False
        wanted = replace(spec, schema=table_spec.required(transaction.schema, before, spec.declared))
        if not transaction.described(wanted, replace=False):
            not_null.check_stored(transaction, wanted.schema)
            transaction.describe(wanted, replace=False)
            transaction.commit([], user_metadata={})
            reached("table.described")
        if spec.cluster_by:
            _cluster_by(spark, path, None, spec.cluster_by)
        return True


def merged(transaction: Transaction, spec: TableSpec) -> TableSpec:
    """`spec` with the columns that the table has already."""
    if transaction.read_version < 0:
        return spec
    merged = schemas.merge(transaction.schema, spec.schema, widen=schemas.widens(spec.properties or {}))
    return replace(spec, schema=table_spec.required(merged, transaction.declared, spec.declared))


def _append(
    transaction: Transaction,
    rows: DataFrame,
    spec: TableSpec,
    txn: Txn,
    measure: Measure,
    *,
    truncate: bool = False,
    quarantine: LeavingRowsTarget | None = None,
    replayed: bool = False,
    whole: bool = False,
) -> WriteResult:
    removed = transaction.removals() if truncate and transaction.read_version >= 0 else []
    numbering = numbering_of(transaction, spec)
    with _files(transaction, numbering.numbered(rows), spec, quarantine) as (files, leaving_rows):
        reached("batch.files_written")
        metrics = measure().with_files(files)
        if quarantine is not None:
            leaving = leaving_rows if metrics.quarantined else None
            quarantine.keep(leaving, spec, metrics, transaction, files, txn=txn, replayed=replayed, whole=whole)
    if not metrics.worth_a_commit and not files and not truncate:
        return WriteResult(None, metrics)
    user_metadata = {**metrics.user_metadata(), **numbering.user_metadata(transaction, files)}
    version = transaction.commit([*removed, *files], user_metadata=user_metadata, txn=txn, replace=truncate)
    reached("batch.committed")
    return WriteResult(version, metrics)


def numbering_of(transaction: Transaction, spec: TableSpec) -> IdentityValues:
    """What numbers the rows of a commit, behind the numbers that earlier commits gave."""

    def user_metadata(log: TableLog, version: int) -> Iterator[Mapping[str, Any] | None]:
        while version >= 0 and (commit := log.commit(version)) is not None:
            yield commit.user_metadata
            version -= 1

    kept = newest_spans(user_metadata(TableLog(transaction.path), transaction.read_version)) if spec.identities else {}
    return IdentityValues.begun(transaction, spec.identities, kept)


@contextmanager
def _files(
    transaction: Transaction, rows: DataFrame, spec: TableSpec, quarantine: LeavingRowsTarget | None
) -> Iterator[tuple[Sequence[Any], LeavingRows | None]]:
    """The files of the rows that are for the table, and the other ones, which can be read in the context."""
    if quarantine is None or not quarantine.active:
        yield transaction.write(schemas.aligned(rows, spec.schema)), None
        return
    with split_files(transaction, rows, spec, quarantine.marks()) as parts:
        yield parts.files, parts.leaving


def overwrite(
    spark: SparkSession,
    path: AnyPath,
    rows: DataFrame,
    spec: TableSpec,
    *,
    measure: Measure,
    streamed: bool = False,
    followed: Callable[[], bool] | None = None,
    quarantine: LeavingRowsTarget | None = None,
) -> WriteResult:
    """Replace content, columns and description of a table in one commit; a concurrent reader sees the old or the new content.

    `streamed`: a stream reads the table, so where it needs only more rows it gets those, and nothing is committed where it needs none.
    `followed`: whether views that follow its changes are worth a comparison, asked once the rows are written. Where few of them are others
    only these are committed, and nothing where there are none.
    """
    made = made_before(spark, path, spec)
    with lock_of(path).alone():
        transaction = Transaction(spark, path)
        mapped = made or column_mapping.switches(transaction, spec)
        transaction = column_mapping.prepared(transaction, spec)
        if column_mapping.is_mapped(transaction.properties):
            spec = replace(spec, schema=column_mapping.keeping(transaction.schema, spec.schema))
        compared = (streamed or followed is not None) and not spec.identities and _compares(transaction, spec)
        same = compared and transaction.described(spec, replace=True)
        transaction.describe(spec, replace=True)
        numbering = numbering_of(transaction, spec)
        with _files(transaction, numbering.numbered(rows), spec, quarantine) as (files, leaving_rows):
            reached("view.files_written")
            metrics = measure()
            if quarantine is not None:
                leaving = leaving_rows if metrics.quarantined else None
                quarantine.keep(leaving, spec, metrics, transaction, files, txn=None, replayed=False, whole=True)
        compared = compared and (streamed or (followed is not None and followed()))
        changes = _changes(transaction, files, streamed=streamed) if compared else None
        metrics = metrics.with_files(files if changes is None else [action for action in changes if _adds(action)])
        if changes is None:
            removed = transaction.removals() if transaction.read_version >= 0 else []
            user_metadata = {**metrics.user_metadata(), **numbering.user_metadata(transaction, files)}
            version = transaction.commit([*removed, *files], user_metadata=user_metadata, replace=True, whole=True)
        else:
            needed = bool(changes) or not same
            version = transaction.commit(changes, user_metadata=metrics.user_metadata()) if needed else transaction.read_version
            transaction.discard(files)
        reached("view.committed")
        return WriteResult(version, metrics, mapped)


# --- a new content as the rows that are others: a stream fails at a commit that takes rows away (UP-6), a view follows what changed (IV-32)


def _compares(transaction: Transaction, spec: TableSpec) -> bool:
    """Whether rows may stay as they are: the table has these columns and partitions and is of this reset epoch, and rows compare."""
    if transaction.read_version < 0 or transaction.outdated(spec):
        return False
    stored = transaction.spec()
    same = stored.schema.simpleString() == spec.schema.simpleString() and stored.partition_cols == tuple(spec.partition_cols)
    return same and schemas.comparable(spec.schema)


_LIKELY = 1.2
"""With more bytes than this many times those of the other content, it is not compared: too many rows would be others."""
_LITTLE = 1 << 20
"""Up to so many bytes are compared in any case: what files hold beside their rows would decide."""


def _changes(transaction: Transaction, files: Sequence[Any], *, streamed: bool) -> list[Any] | None:
    """The actions that give the table the rows of `files`, which no commit names, in a smaller commit; None where there are none.

    `streamed`: rows may come and none may go.
    """
    less, more = sorted((size_of(files), transaction.size))
    if not streamed and more > max(_LIKELY * less, _LITTLE):
        return None
    with row_difference(transaction, files) as difference:
        return None if streamed and difference.leaving else difference.actions()


def _adds(action: Any) -> bool:
    return str(action.getClass().getSimpleName()) == "AddFile"


# --- clustering columns -------------------------------------------------------------------------------------------------------------------


def _clustering_columns(names: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Clustering columns as Delta parses them: the names of `columns` in back quotes, a path into a struct as it is."""
    known = {column.lower() for column in columns}
    return [quoted(name) if name.lower() in known else name for name in names]


def _cluster_by(spark: SparkSession, path: AnyPath, before: Sequence[str] | None, wanted: Sequence[str]) -> None:
    """Let a table be clustered by other columns, in a commit of its own. Rows that are there stay where they are.

    `before`: nothing is done unless the table is clustered by these; None: whatever it is clustered by.
    """
    session = java_session(spark)
    table = f"delta.{quoted(str(path))}"
    detail = plain_sql(session, f"DESCRIBE DETAIL {table}").head()
    columns = items(detail.getSeq(detail.fieldIndex("clusteringColumns")))
    now = [".".join(split_name(str(column))).lower() for column in columns]
    if now == [name.lower() for name in wanted] or (before is not None and now != [name.lower() for name in before]):
        return
    listed = ", ".join(_clustering_columns(wanted, spark.read.format("delta").load(str(path)).columns))
    plain_sql(session, f"ALTER TABLE {table} CLUSTER BY " + (f"({listed})" if wanted else "NONE"))
