"""The table beside a dataset with the rows that its drop rules leave out (docs/decisions/0033-quarantine.md, QU-1 ff).

A batch is two commits: that of the quarantine, then that of the dataset. The second one decides: until it is there, the first can be
replaced by the next attempt at the same batch, and is, also by nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet.base.errors import LakeletError, Location
from lakelet.base.failpoints import reached
from lakelet.config.properties import look_up
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.storage.delta import column_mapping, schemas
from lakelet.storage.delta.batch_metrics import BatchMetrics
from lakelet.storage.delta.locks import lock_of
from lakelet.storage.delta.repeated_rows import RepeatedRows, any_of
from lakelet.storage.delta.split_write import LEAVING, LeavingRows, Marks
from lakelet.storage.delta.table_spec import EPOCH, TableSpec
from lakelet.storage.delta.transaction import Transaction, Txn

BROKEN, AT, UPDATE, FLOW, FILE, RELEASED = "_broken_rules", "_quarantined_at", "_update_id", "_flow_name", "_source_file", "_released_by"
OWN = T.StructType(
    [
        T.StructField(BROKEN, T.ArrayType(T.StringType())),
        T.StructField(AT, T.TimestampType()),
        T.StructField(UPDATE, T.StringType()),
        T.StructField(FLOW, T.StringType()),
        T.StructField(FILE, T.StringType()),
        T.StructField(RELEASED, T.StringType()),
    ]
)
"""The columns of a quarantine after those of its dataset."""
KEY = "lakelet_quarantine"
"""The key in a commit's user metadata under which the quarantine keeps which batch it belongs to (`QuarantineCommit`)."""
_OF_BATCHES = "/quarantine"


@dataclass(frozen=True)
class QuarantineCommit:
    """What a commit of a quarantine says about itself: the batch it belongs to, and what its rows carry.

    `at`: microseconds since 1970. `view`: fingerprint and inputs that a materialized view's rows were computed from. `since`: of a flow
    that reads its sources again, when it first wrote into the quarantine after it began again, like `at`.
    """

    app_id: str
    version: int
    at: int
    update_id: str
    flow: str
    rows: int
    view: Mapping[str, Any] | None = None
    since: int | None = None

    @classmethod
    def of_commit(cls, user_metadata: Mapping[str, Any] | None) -> QuarantineCommit | None:
        """What a commit with this user metadata says; None if it keeps no batch."""
        found = (user_metadata or {}).get(KEY)
        return cls(**found) if found else None

    def condition(self) -> Column:
        """Whether a row of the quarantine came with this commit."""
        at = F.timestamp_micros(F.lit(self.at))
        return (F.col(AT) == at) & F.col(UPDATE).eqNullSafe(F.lit(self.update_id)) & F.col(FLOW).eqNullSafe(F.lit(self.flow))


@dataclass(frozen=True)
class Quarantine:
    """The quarantine of a dataset, for the batches of one flow.

    Args:
        path: of its table.
        dataset: full name; `where` it is declared.
        active: whether rows are kept. If not, it only loses what must not stay.
        behind: it may hold rows from before a reset.
        looks: every batch may have been tried before.
        update_id: of the update that judges the rows, `flow` its flow.
        rereads: the flow has begun again while its dataset kept its rows, so rows that it has may come again (QU-15).
    """

    path: AnyPath
    dataset: str
    where: Location
    active: bool
    update_id: str
    flow: str
    behind: bool = False
    looks: bool = False
    rereads: bool = False

    def marks(self) -> Marks:
        """What the rows that leave a batch now carry here."""
        now = datetime.now(timezone.utc)
        at = int(now.timestamp()) * 1_000_000 + now.microsecond
        own = {AT: F.timestamp_micros(F.lit(at)), UPDATE: F.lit(self.update_id), FLOW: F.lit(self.flow)}
        leaves = F.col(LEAVING).isNotNull()
        values = {BROKEN: F.col(f"{LEAVING}.rules"), **{name: F.when(leaves, value) for name, value in own.items()}}
        return Marks(OWN, {**values, FILE: F.col(f"{LEAVING}.file"), RELEASED: F.lit(None).cast("string")}, at)

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
        """Commit the rows that leave the batch which `metrics` counted: before the dataset's own commit, and in place of earlier attempts.

        `leaving_rows`: the rows, None for none. `spec`: of the dataset; `files` are those that its transaction is to commit.
        `whole`: the rows are all of the quarantine.
        Raises QUARANTINE_MISCOUNTED if there are not as many as were counted, QUARANTINE_COLUMN.
        """
        count = metrics.quarantined or 0
        again = replayed or self.looks
        if not (count or again or whole or self.behind or self.rereads):
            return
        with lock_of(self.path).alone():
            exists = TableLog(self.path).version() >= 0
            if not exists and not (self.active and (count or metrics.view is not None)):
                return
            self._commit(leaving_rows if count and self.active else None, spec, metrics, dataset, files, txn=txn, again=again, whole=whole)

    def create(self, spec: TableSpec, spark: SparkSession) -> None:
        """Make the table without rows unless it is there, and empty it where its dataset was reset."""
        with lock_of(self.path).alone():
            exists = TableLog(self.path).version() >= 0
            if not (self.behind if exists else self.active):
                return
            transaction = Transaction(spark, self.path)
            if exists and not transaction.outdated(spec):
                return
            transaction, _ = self._describe(transaction, spec, replaced=exists)
            transaction.commit(transaction.removals() if exists else [], user_metadata={}, replace=exists)
            reached("quarantine.made")

    def _commit(
        self,
        leaving_rows: LeavingRows | None,
        spec: TableSpec,
        metrics: BatchMetrics,
        dataset: Transaction,
        kept_files: Sequence[Any],
        *,
        txn: Txn | None,
        again: bool,
        whole: bool,
    ) -> None:
        transaction = Transaction(dataset.spark, self.path)
        exists = transaction.read_version >= 0
        outdated = exists and transaction.outdated(spec)
        replaced = outdated or (exists and whole and self.active)
        own = Txn(of_batches(txn.app_id), txn.version) if txn is not None else None
        earlier = self._earlier(transaction, own) if exists and own is not None and again and not replaced else None
        made = not exists and metrics.view is not None
        kept = _kept(own, metrics, leaving_rows)
        leaving = None
        if self.rereads and own is not None and exists and not replaced:
            kept = replace(kept, since=_begun(transaction, own, kept.at))
            leaving = _leaving(transaction, dataset, kept, _columns_of(dataset.written_rows(kept_files), leaving_rows))
        nothing = leaving_rows is None and earlier is None and leaving is None and not made
        if nothing and (not replaced or self._has_nothing(transaction, metrics, outdated)):
            return
        transaction, wanted = self._describe(transaction, spec, replaced=replaced)
        removed, rest = (transaction.removals(), None) if replaced else self._removed(transaction, earlier, leaving)
        files = transaction.write(schemas.aligned(rest, wanted.schema)) if rest is not None else []
        if leaving_rows is not None:  # last: their files may be moved, and the rest is compared with them
            moved = None if column_mapping.is_mapped(transaction.properties) else leaving_rows.moved(transaction, wanted.schema)
            found = transaction.write(schemas.aligned(leaving_rows.rows(), wanted.schema)) if moved is None else moved
            self._check_count(found, kept.rows)
            files += found
        reached("quarantine.written")
        transaction.commit([*removed, *files], user_metadata={KEY: asdict(kept)}, txn=own, replace=replaced)
        reached("quarantine.committed")

    def _has_nothing(self, transaction: Transaction, metrics: BatchMetrics, outdated: bool) -> bool:
        """Whether the table is without rows, and says what it is to say about where they come from."""
        return not outdated and metrics.view is None and transaction.is_empty()

    def _earlier(self, transaction: Transaction, own: Txn) -> tuple[int, QuarantineCommit] | None:
        """The commit that an earlier attempt at the batch left, with its version; None if there was none.

        Raises QUARANTINE_MISCOUNTED if the log does not reach back to it.
        """
        if not transaction.done(own):
            return None
        log = TableLog(self.path)
        for number in range(log.version(), -1, -1):
            commit = log.commit(number)
            if commit is None:
                break
            found = QuarantineCommit.of_commit(commit.user_metadata)
            if found is not None and (found.app_id, found.version) == own:
                return number, found
        what = "its quarantine holds rows of the batch from an earlier attempt, and its log does not say which"
        todo = f"Replace the rows of both: lakelet run --full-refresh {self.dataset}"
        raise LakeletError("QUARANTINE_MISCOUNTED", what, dataset=self.dataset, where=self.where, todo=todo)

    def _removed(
        self, transaction: Transaction, earlier: tuple[int, QuarantineCommit] | None, leaving: RepeatedRows | None
    ) -> tuple[list[Any], DataFrame | None]:
        """Removals of the files with the rows of an earlier attempt, and the other rows of these files where there are some.

        Somebody may have changed rows since then, which puts them into other files. `leaving`: rows that come again go, too.
        """
        tried = earlier is not None and earlier[1].rows > 0
        if leaving is not None:
            rows = transaction.rows()
            if earlier is not None and tried:
                rows = rows.where(~F.coalesce(earlier[1].condition(), F.lit(False)))
            return transaction.removals(), leaving.without(rows)
        if earlier is None or not tried:
            return [], None
        added = {action["add"]["path"] for action in TableLog(self.path).actions(earlier[0]) if "add" in action}
        own = [file for file in transaction.files() if file.path() in added]
        if len(own) == len(added) and all(file.deletionVector() is None for file in own):
            return [file.remove() for file in own], None
        return transaction.removals(), transaction.rows().where(~F.coalesce(earlier[1].condition(), F.lit(False)))

    def _describe(self, transaction: Transaction, spec: TableSpec, *, replaced: bool) -> tuple[Transaction, TableSpec]:
        """Give the table the dataset's columns and its own in this transaction; the transaction to go on with, and how it is described."""
        check_columns(spec.schema, dataset=self.dataset, where=self.where)
        given = spec.properties or {}
        shared = {key: value for key in (schemas.WIDENING, column_mapping.MODE, EPOCH) if (value := look_up(given, key)) is not None}
        comment = f"Rows of {self.dataset} that broke a drop rule, with the rules they broke. Kept by Lakelet; Databricks drops them."
        columns = schemas.storable(_bare(spec.schema))
        wanted = TableSpec(T.StructType([*columns.fields, *OWN.fields]), (), (), shared, comment)
        transaction = column_mapping.prepared(transaction, wanted)
        if transaction.read_version >= 0:
            stored = transaction.schema
            if not replaced:
                merged = schemas.merge(stored, wanted.schema, widen=schemas.widens(shared))
                own = {f.name for f in OWN.fields}
                ordered = [f for f in merged.fields if f.name not in own] + [f for f in merged.fields if f.name in own]
                wanted = replace(wanted, schema=T.StructType(ordered))
            elif column_mapping.is_mapped(transaction.properties):
                wanted = replace(wanted, schema=column_mapping.keeping(stored, wanted.schema))
        transaction.describe(wanted, replace=replaced)
        return transaction, wanted

    def _check_count(self, files: Sequence[Any], count: int) -> None:
        written = sum(int(file.numLogicalRecords().get()) for file in files)
        if written == count:
            return
        what = f"{written} rows were to be kept in its quarantine and {count} were counted; nothing was written"
        why = "the query gave other rows when it was evaluated again"
        raise LakeletError("QUARANTINE_MISCOUNTED", what, dataset=self.dataset, where=self.where, why=why, todo="Run the update again.")


def of_batches(app_id: str) -> str:
    """The application of a quarantine's commits, of that of the batches in its dataset."""
    return app_id + _OF_BATCHES


def _kept(own: Txn | None, metrics: BatchMetrics, leaving_rows: LeavingRows | None) -> QuarantineCommit:
    at = leaving_rows.marks.at if leaving_rows is not None else int(datetime.now(timezone.utc).timestamp() * 1_000_000)
    rows = metrics.quarantined or 0 if leaving_rows is not None else 0
    view = asdict(metrics.view) if metrics.view is not None else None
    return QuarantineCommit(own.app_id if own else "", own.version if own else 0, at, metrics.update_id, metrics.flow, rows, view)


def _begun(transaction: Transaction, own: Txn, now: int) -> int | None:
    """When the flow first wrote into the quarantine since it began again, in microseconds: `now` if it has not.

    None where the log does not say so any more.
    """
    if own.app_id not in transaction.transactions():
        return now
    log = TableLog(transaction.path)
    for number in range(log.version(), -1, -1):
        commit = log.commit(number)
        if commit is None:
            return None
        found = QuarantineCommit.of_commit(commit.user_metadata)
        if found is not None and found.app_id == own.app_id:
            return found.since
    return None


def _leaving(transaction: Transaction, dataset: Transaction, kept: QuarantineCommit, batch: DataFrame) -> RepeatedRows | None:
    """The rows of a quarantine that go because the flow of `kept` has begun again and reads them again; None if there are none."""
    if kept.since is None or not _has_older(transaction, kept.since):
        return None
    held, rows = F.col(RELEASED).isNull(), transaction.rows()
    dead = [
        found.condition() & held
        for found in unfinished_batches(transaction, dataset)
        if found.app_id.startswith(f"{kept.flow}/") and found.app_id != kept.app_id
    ]
    earlier = (F.col(FLOW) == F.lit(kept.flow)) & held & (F.col(AT) < F.timestamp_micros(F.lit(kept.since)))
    leaving = RepeatedRows(any_of(dead), earlier, batch)
    return leaving if leaving.some(rows) else None


def _has_older(transaction: Transaction, since: int) -> bool:
    """Whether a file of the table may have a row from before `since`, by its statistics, which know milliseconds."""
    for file in transaction.files():
        least = json.loads(json.loads(file.json())["add"].get("stats") or "{}").get("minValues", {}).get(AT)
        if least is None or datetime.fromisoformat(least.replace("Z", "+00:00")).timestamp() * 1000 < since // 1000:
            return True
    return False


def _columns_of(rows: DataFrame, leaving_rows: LeavingRows | None) -> DataFrame:
    """All rows of a batch with the columns of its dataset: those that stay, and those that leave."""
    return rows if leaving_rows is None else rows.unionByName(leaving_rows.rows().drop(*OWN.fieldNames()))


def check_columns(schema: T.StructType, *, dataset: str, where: Location) -> None:
    """Raise QUARANTINE_COLUMN for a column of the dataset that has the name of one of the quarantine's own."""
    own = {f.name.lower() for f in OWN.fields}
    taken = [f.name for f in schema.fields if f.name.lower() in own or f.name.lower().startswith("__lakelet_")]
    if taken:
        what = f"its column {taken[0]} has the name of a column that its quarantine adds"
        todo = "Rename the column, or leave out the table property lakelet.quarantine."
        raise LakeletError("QUARANTINE_COLUMN", what, dataset=dataset, where=where, todo=todo)


def _bare(data_type: Any) -> Any:
    """The type without what is noted of its fields: comments, and the names that another table's files give them."""
    if isinstance(data_type, T.StructType):
        return T.StructType([T.StructField(f.name, _bare(f.dataType), f.nullable) for f in data_type.fields])
    if isinstance(data_type, T.ArrayType):
        return T.ArrayType(_bare(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, T.MapType):
        return T.MapType(_bare(data_type.keyType), _bare(data_type.valueType), data_type.valueContainsNull)
    return data_type


def unfinished_batches(transaction: Transaction, dataset: Transaction) -> list[QuarantineCommit]:
    """The batches whose rows a quarantine has and whose commit its dataset has not.

    The next attempt at one decides about its rows, unless its flow has begun again, or is gone: then there is none.
    """
    pending = {
        Txn(app_id, version)
        for app_id, version in transaction.transactions().items()
        if app_id.endswith(_OF_BATCHES) and not dataset.done(Txn(app_id.removesuffix(_OF_BATCHES), version))
    }
    log = TableLog(transaction.path)
    found: dict[Txn, QuarantineCommit] = {}
    for number in range(log.version(), -1, -1) if pending else ():
        commit = log.commit(number)
        kept = QuarantineCommit.of_commit(commit.user_metadata) if commit is not None else None
        if kept is not None and (own := Txn(kept.app_id, kept.version)) in pending:
            found.setdefault(own, kept)
    return [kept for kept in found.values() if kept.rows]


def newest_view(log: TableLog) -> Mapping[str, Any] | None:
    """What the rows of a materialized view's quarantine were computed from; None where it does not say so."""
    for number in range(log.version(), -1, -1):
        commit = log.commit(number)
        if commit is None:
            return None
        found = QuarantineCommit.of_commit(commit.user_metadata)
        if found is not None:
            return found.view
    return None


__all__ = [
    "AT",
    "BROKEN",
    "FILE",
    "FLOW",
    "KEY",
    "OWN",
    "RELEASED",
    "UPDATE",
    "Quarantine",
    "QuarantineCommit",
    "check_columns",
    "newest_view",
    "of_batches",
    "unfinished_batches",
]
