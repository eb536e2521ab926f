"""Delta tables: reading their logs without Spark, and writing them in one transaction. Layer 3.

A flow's write, the counts measured while writing, and the mark that the micro-batch is done are **one** Delta commit: the files, a
`SetTransaction` action, and the counts as JSON in the commit's user metadata. So counts can neither be lost nor doubled, whatever line
the process dies at (docs/decisions/0002-one-commit.md).
"""

from __future__ import annotations

import dataclasses
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelet import schemas
from lakelet.failpoints import reached
from lakelet.places import Place, names_in

# ------------------------------------------------------------------------------------------------------------ reading


@dataclass(frozen=True)
class Commit:
    """One version of a table.

    `added`: partition values of each file that brought data; `changed`: files with data were removed; `described`: it sets columns or
    properties, of the table `table_id`.
    """

    version: int
    added: tuple[Mapping[str, str | None], ...]
    changed: bool
    described: bool
    table_id: str | None
    user_metadata: Mapping[str, Any] | None


class TableLog:
    """The `_delta_log` of one table, read file by file and kept; safe to share between threads."""

    def __init__(self, path: Place) -> None:
        self.path = path
        self._commits: dict[int, Commit | None] = {}
        self._lock = threading.Lock()

    def version(self) -> int:
        """Newest version, or -1 if the table does not exist."""
        names = names_in(self.path / "_delta_log")
        return max((int(name[:20]) for name in names if name.endswith(".json") and name[:20].isdigit()), default=-1)

    def commit(self, version: int) -> Commit | None:
        """One commit, or None if its log file was cleaned up."""
        with self._lock:
            if version not in self._commits:
                file = self.path / "_delta_log" / f"{version:020d}.json"
                try:
                    self._commits[version] = _parse_commit(version, file.read_text())
                except FileNotFoundError:
                    self._commits[version] = None
            return self._commits[version]

    def table_id(self) -> str | None:
        """Delta's id of the table, or None where the log does not reach back to its first version."""
        first = self.commit(0)
        return first.table_id if first else None

    def commits(self, after: int, upto: int) -> list[Commit] | None:
        """Commits in (after, upto], or None if one of them is gone."""
        found = [self.commit(v) for v in range(after + 1, upto + 1)]
        return None if None in found else [c for c in found if c is not None]

    def actions(self, version: int) -> list[Mapping[str, Any]]:
        """Every action of one commit, as Delta's log spells them. Raises FileNotFoundError if its log file was cleaned up."""
        text = (self.path / "_delta_log" / f"{version:020d}.json").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def data_version(self, known: int) -> int:
        """`known` if no commit after it added or removed data, else the newest version that did."""
        latest = self.version()
        commits = self.commits(known, latest)
        if commits is None:
            return latest
        return max((c.version for c in commits if c.added or c.changed), default=known)


_SHORT_LOG = 50


def streams_from_log(log: TableLog) -> bool:
    """Whether a new stream may read the table from version 0 of its log instead of from a snapshot.

    Both give the same rows while the log is whole, only appends and never changed columns. Reading a snapshot costs a Spark job of a
    second or more at the first start **and** at the next one, which plans the last batch again.
    """
    latest = log.version()
    commits = log.commits(-1, latest) if 0 <= latest < _SHORT_LOG else None
    return commits is not None and not any(c.changed or (c.described and c.version > 0) for c in commits)


def _parse_commit(version: int, text: str) -> Commit:
    added: list[Mapping[str, str | None]] = []
    changed = described = False
    user_metadata = table_id = None
    for line in text.splitlines():
        if line.startswith('{"add"'):
            action = json.loads(line)["add"]
            if action.get("dataChange", True):
                added.append(action.get("partitionValues", {}))
        elif line.startswith('{"remove"'):
            changed |= json.loads(line)["remove"].get("dataChange", True)
        elif line.startswith('{"metaData"'):
            described = True
            table_id = json.loads(line)["metaData"].get("id")
        elif line.startswith('{"commitInfo"'):
            raw = json.loads(line)["commitInfo"].get("userMetadata")
            try:
                user_metadata = json.loads(raw) if raw else None
            except ValueError:
                user_metadata = None
    return Commit(version, tuple(added), changed, described, table_id, user_metadata if isinstance(user_metadata, dict) else None)


# ------------------------------------------------------------------------------------------------------------ writing


@dataclass(frozen=True)
class TableSpec:
    """How a table is made: its columns and everything that is declared about it."""

    schema: T.StructType
    partition_cols: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] | None = None
    comment: str | None = None


CHANGE_FEED = "delta.enableChangeDataFeed"
"""Table property: Delta keeps which rows each commit changed."""

EPOCH = "lakelet.epoch"
"""Table property: the reset epoch its rows belong to. A spec with a newer one replaces the rows in its first commit."""


class Transaction:
    """One Delta transaction on the table at `path`. Delta's own classes do the work; this only calls them."""

    def __init__(self, spark: SparkSession, path: Place) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._delta = self._jvm.org.apache.spark.sql.delta
        self.path = path
        self._txn = self._delta.DeltaLog.forTable(spark._jsparkSession, str(path)).startTransaction()

    @property
    def read_version(self) -> int:
        """Version the transaction started from; -1 if there is no table yet."""
        return int(self._txn.readVersion())

    @property
    def schema(self) -> T.StructType:
        return T.StructType.fromJson(json.loads(self._txn.metadata().schemaString()))

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return _mapping(self._txn.metadata().configuration())

    def is_empty(self) -> bool:
        """Whether the table has no file."""
        return self.read_version < 0 or int(self._txn.snapshot().numOfFiles()) == 0

    @property
    def size(self) -> int:
        """Bytes of the table's files."""
        return 0 if self.read_version < 0 else int(self._txn.snapshot().sizeInBytes())

    def records(self) -> int:
        """Rows of the table, from the statistics of its files (a small table's: each file is asked)."""
        files = self._txn.filterFiles()
        counts = (files.apply(i).numLogicalRecords() for i in range(files.size()))
        return sum(int(count.get()) for count in counts if count.isDefined())

    def outdated(self, spec: TableSpec) -> bool:
        """Whether the table's rows are from before the reset that `spec` belongs to."""
        found = _mapping(self._txn.metadata().configuration()).get(EPOCH, "0")
        return int(found) < int((spec.properties or {}).get(EPOCH, "0"))

    def done(self, app: str, version: int) -> bool:
        """Whether micro-batch `version` of `app` has been committed before. Reads the table's state: ask only when in doubt."""
        return int(self._txn.txnVersion(app)) >= version

    def describe(self, spec: TableSpec, *, replace: bool) -> None:
        """Set columns, properties and comment in this transaction; nothing happens if they are as wished.

        `replace`: the table's columns become exactly those of `spec` (materialized views); else they must contain the stored ones, and
        partition columns stay: raises schemas.Repartitioned.
        """
        if self.read_version < 0:
            self._txn.updateMetadataForNewTable(self._metadata(spec, str(uuid.uuid4()), {}, int(time.time() * 1000)))
            return
        if self.described(spec, replace=replace):
            return
        current = self._txn.metadata()
        created = current.createdTime()
        properties = self._properties(spec, replace=replace)
        if not replace:
            stored = _strings(current.partitionColumns())
            if [c.lower() for c in stored] != [c.lower() for c in spec.partition_cols]:
                raise schemas.Repartitioned(stored, spec.partition_cols)
            spec = dataclasses.replace(spec, schema=self._with_type_changes(spec.schema))
        metadata = self._metadata(spec, current.id(), properties, int(created.get()) if created.isDefined() else None)
        if replace:
            self._txn.updateMetadataForTableOverwrite(metadata)
        else:
            self._txn.updateMetadata(metadata, False)

    def widens(self) -> bool:
        """Whether the table as stored lets its columns get wider types."""
        return schemas.widens(_mapping(self._txn.metadata().configuration()))

    def _with_type_changes(self, schema: T.StructType) -> T.StructType:
        """The columns with Delta's notes about types that become wider: its readers need them for the files written before."""
        if not self.widens():
            return schema
        columns = self._jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())
        noted = self._delta.TypeWideningMetadata.addTypeWideningMetadata(self._txn, columns, self._txn.metadata().schema())
        return T.StructType.fromJson(json.loads(noted.json()))

    def described(self, spec: TableSpec, *, replace: bool) -> bool:
        """Whether the table is there and `describe` has nothing to set."""
        if self.read_version < 0:
            return False
        current = self._txn.metadata()
        same = self.schema == spec.schema and (spec.comment or None) == current.description()
        same = same and _strings(current.partitionColumns()) == list(spec.partition_cols)
        return same and self._properties(spec, replace=replace) == _mapping(current.configuration())

    def _properties(self, spec: TableSpec, *, replace: bool) -> dict[str, str]:
        current = _mapping(self._txn.metadata().configuration())
        kept = {k: v for k, v in current.items() if not replace or k.startswith("delta.")}
        return {**kept, **(spec.properties or {})}

    def _metadata(self, spec: TableSpec, id: str, properties: Mapping[str, str], created: int | None) -> Any:
        utils = self._jvm.org.apache.spark.api.python.PythonUtils
        actions = self._delta.actions
        return actions.Metadata(
            id,
            None,
            spec.comment,
            actions.Format("parquet", utils.toScalaMap({})),
            spec.schema.json(),
            utils.toSeq(list(spec.partition_cols)),
            utils.toScalaMap({**properties, **(spec.properties or {})}),
            self._option(created),
        )

    def spec(self) -> TableSpec:
        """The stored table as it is described."""
        current = self._txn.metadata()
        return TableSpec(self.schema, tuple(_strings(current.partitionColumns())), (), self.properties, current.description())

    def rows(self) -> DataFrame:
        """The table's rows in the version the transaction started from, with all its columns."""
        return self._spark.read.format("delta").option("versionAsOf", str(self.read_version)).load(str(self.path))

    def write(self, rows: DataFrame) -> list[Any]:
        """Write the rows' files; they become visible with `commit`. Returns Delta's file actions."""
        files = self._txn.writeFiles(rows._jdf)
        return [files.apply(i) for i in range(files.size())]

    def removals(self) -> list[Any]:
        """Actions that remove every file the table has."""
        files = self._txn.filterFiles()
        return [files.apply(i).remove() for i in range(files.size())]

    def commit(
        self, actions: Sequence[Any], *, user_metadata: Mapping[str, Any], app: tuple[str, int] | None = None, replace: bool = False
    ) -> int:
        """Commit and return the new version. `app` marks micro-batch (id, number) as done in the same commit."""
        changes = self._jvm.java.util.ArrayList(len(actions) + 1)
        for action in actions:
            changes.add(action)
        if app is not None:
            changes.add(self._delta.actions.SetTransaction(app[0], app[1], self._option(int(time.time() * 1000))))
        sequence = self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(changes).toSeq()
        return int(self._txn.commit(sequence, self._operation(json.dumps(user_metadata), replace)))

    def _operation(self, user_metadata: str, replace: bool) -> Any:
        mode = self._jvm.org.apache.spark.sql.SaveMode.valueOf("Overwrite" if replace else "Append")
        none = self._option(None)
        write = getattr(self._jvm, "org.apache.spark.sql.delta.DeltaOperations$Write")
        return write(mode, none, none, self._option(user_metadata), none, none, none, none, none)

    def _option(self, value: Any) -> Any:
        return self._jvm.scala.Option.apply(value)


def _strings(sequence: Any) -> list[str]:
    return [str(sequence.apply(i)) for i in range(sequence.size())]


def _mapping(scala_map: Any) -> dict[str, str]:
    found = {}
    entries = scala_map.iterator()
    while entries.hasNext():
        entry = entries.next()
        found[str(entry._1())] = str(entry._2())
    return found


def stored_schema(spark: SparkSession, path: Place) -> T.StructType:
    """Columns of the table as stored now."""
    return Transaction(spark, path).schema


class TableLock:
    """Lets many appends run beside each other, and a change of the table's description alone.

    Delta refuses a commit when the columns changed since its transaction began (engine.md section 7).
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._shared = 0
        self._alone = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._alone)
            self._shared += 1
        try:
            yield
        finally:
            with self._condition:
                self._shared -= 1
                self._condition.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._alone and not self._shared)
            self._alone = True
        try:
            yield
        finally:
            with self._condition:
                self._alone = False
                self._condition.notify_all()


_locks: dict[str, TableLock] = {}
_locks_guard = threading.Lock()


def lock_of(path: Place) -> TableLock:
    """The one lock of a table."""
    with _locks_guard:
        return _locks.setdefault(str(path), TableLock())


def aligned(rows: DataFrame, schema: T.StructType) -> DataFrame:
    """The rows with the table's spelling and types; columns the rows lack are left out."""
    fits = schemas.fit(schema, rows.schema)
    quoted = [F.col(f"`{f.name.replace('`', '``')}`") for f in fits]
    return rows.select(
        *(c.cast(f.cast).alias(f.name) if f.cast is not None else c.alias(f.name) for c, f in zip(quoted, fits, strict=True))
    )


def create_if_absent(spark: SparkSession, path: Place, spec: TableSpec, *, user_metadata: Mapping[str, Any]) -> None:
    """Make an empty table, unless there is one that belongs to the same reset epoch."""
    with lock_of(path).alone():
        exists = TableLog(path).version() >= 0
        if not exists and spec.cluster_by:
            _create_clustered(spark, path, spec)
            return
        transaction = Transaction(spark, path)
        if exists and not transaction.outdated(spec):
            return
        transaction.describe(spec, replace=exists)
        transaction.commit(transaction.removals() if exists else [], user_metadata=user_metadata, replace=exists)


def _create_clustered(spark: SparkSession, path: Place, spec: TableSpec) -> None:
    """Clustering is a table feature with state of its own; Delta's builder sets it up."""
    from delta.tables import DeltaTable

    builder = DeltaTable.createIfNotExists(spark).location(str(path)).addColumns(spec.schema).clusterBy(*spec.cluster_by)
    for key, value in (spec.properties or {}).items():
        builder = builder.property(key, value)
    if spec.comment:
        builder = builder.comment(spec.comment)
    builder.execute()


@dataclass(frozen=True)
class Written:
    """Result of one write. `version` is None if nothing had to be committed."""

    version: int | None
    files: int


Measure = Callable[[], tuple[Mapping[str, Any], bool]]
"""Called after the files are written and before the commit: what to keep in the commit, and whether there is anything to commit.
May raise to refuse the rows; then nothing becomes visible."""


def append(
    spark: SparkSession,
    path: Place,
    rows: DataFrame,
    spec: TableSpec,
    *,
    app: tuple[str, int],
    measure: Measure,
    replayed: bool,
    whole: bool = False,
) -> Written | None:
    """Append one micro-batch in one commit; None if it had been committed before (only looked up when `replayed`).

    The table is made, or gets its new columns, in the same commit. `whole`: the rows are all of the table (complete mode), those it has
    go in the same commit. Raises schemas.Incompatible if a column cannot be stored, schemas.Repartitioned for other partition columns.
    """
    if spec.cluster_by and TableLog(path).version() < 0:
        create_if_absent(spark, path, spec, user_metadata={})
    with lock_of(path).shared():
        transaction = Transaction(spark, path)
        if replayed and transaction.read_version >= 0 and transaction.done(*app):
            return None
        outdated = transaction.outdated(spec)
        wanted = spec if outdated else _merged(transaction, spec)
        if not outdated and transaction.described(wanted, replace=False):
            return _append(transaction, rows, wanted, app, measure, truncate=whole)
    with lock_of(path).alone():
        transaction = Transaction(spark, path)
        truncate = transaction.read_version >= 0 and transaction.outdated(spec)
        if not truncate and _let_widen(transaction, spec):
            transaction = Transaction(spark, path)
        wanted = spec if truncate else _merged(transaction, spec)
        transaction.describe(wanted, replace=truncate)
        return _append(transaction, rows, wanted, app, measure, truncate=truncate or whole)


def _let_widen(transaction: Transaction, spec: TableSpec) -> bool:
    """Give a stored table the property delta.enableTypeWidening that `spec` has, in a commit of its own; False if it needs none.

    Delta notes the types of older files only in tables that have the property already.
    """
    if transaction.read_version < 0 or transaction.widens() or not schemas.widens(spec.properties or {}):
        return False
    transaction.describe(replace(spec, schema=transaction.schema), replace=False)
    transaction.commit([], user_metadata={})
    return True


def _merged(transaction: Transaction, spec: TableSpec) -> TableSpec:
    """`spec` with the columns that the table has already."""
    if transaction.read_version < 0:
        return spec
    return replace(spec, schema=schemas.merge(transaction.schema, spec.schema, widen=schemas.widens(spec.properties or {})))


def _append(
    transaction: Transaction, rows: DataFrame, spec: TableSpec, app: tuple[str, int], measure: Measure, *, truncate: bool = False
) -> Written:
    removed = transaction.removals() if truncate and transaction.read_version >= 0 else []
    files = transaction.write(aligned(rows, spec.schema))
    reached("batch.files_written")
    kept, anything = measure()
    if not anything and not files and not truncate:
        return Written(None, 0)
    version = transaction.commit([*removed, *files], user_metadata=kept, app=app, replace=truncate)
    reached("batch.committed")
    return Written(version, len(files))


def overwrite(spark: SparkSession, path: Place, rows: DataFrame, spec: TableSpec, *, measure: Measure) -> Written:
    """Replace content, columns and description of a table in one commit; a concurrent reader sees the old or the new content."""
    if spec.cluster_by and TableLog(path).version() < 0:
        create_if_absent(spark, path, spec, user_metadata={})
    with lock_of(path).alone():
        transaction = Transaction(spark, path)
        transaction.describe(spec, replace=True)
        removed = transaction.removals() if transaction.read_version >= 0 else []
        files = transaction.write(aligned(rows, spec.schema))
        reached("view.files_written")
        kept, _ = measure()
        version = transaction.commit([*removed, *files], user_metadata=kept, replace=True)
        reached("view.committed")
        return Written(version, len(files))
