"""One Delta transaction, by the classes of Delta itself."""

from __future__ import annotations

import dataclasses
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T

from lakelet.config.delta_properties import is_of_protocol
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.jvm import delta, later_checkpoint
from lakelet.jvm.expressions import conjuncts, with_constants
from lakelet.jvm.frames import analyzed
from lakelet.jvm.scala import items, mapping, value_of
from lakelet.storage.delta import schemas, table_spec
from lakelet.storage.delta.deferred_upkeep import DEFERRED
from lakelet.storage.delta.known_files import WHOLE, whole_content
from lakelet.storage.delta.table_spec import EPOCH, Declaration, TableSpec


class Txn(NamedTuple):
    """Delta's transaction identifier of a micro-batch: `app_id` names a flow and its checkpoint, `version` is the batch's number."""

    app_id: str
    version: int


class Transaction:
    """One Delta transaction on the table at `path`. Delta's own classes do the work; this only calls them."""

    def __init__(self, spark: SparkSession, path: AnyPath) -> None:
        self.spark = spark
        self.path = path
        log = delta.log_of(spark, str(path))
        self._txn = later_checkpoint.begin(spark, log) if DEFERRED.is_on else log.startTransaction()

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
        return _texts(self._txn.metadata().configuration())

    def is_empty(self) -> bool:
        """Whether the table has no file."""
        if self.read_version < 0:
            return True
        known = self._checksum()
        return int(self._txn.snapshot().numOfFiles() if known is None else known.numFiles()) == 0

    @property
    def number_of_files(self) -> int | None:
        """How many files the table has; None where Delta would run a Spark job to find out."""
        known = self._checksum() if self.read_version >= 0 else None
        return None if known is None else int(known.numFiles())

    @property
    def size(self) -> int:
        """Bytes of the table's files."""
        if self.read_version < 0:
            return 0
        known = self._checksum()
        return int(self._txn.snapshot().sizeInBytes() if known is None else known.tableSizeBytes())

    def _checksum(self) -> Any:
        """What Delta has written beside the newest commit about the table, None for nothing: Delta itself would run a Spark job."""
        return value_of(self._txn.snapshot().checksumOpt())

    def records(self) -> int:
        """Rows of the table, from the statistics of its files (a small table's: each file is asked)."""
        counts = (value_of(file.numLogicalRecords()) for file in self.files())
        return sum(int(count) for count in counts if count is not None)

    def outdated(self, spec: TableSpec) -> bool:
        """Whether the table's rows are from before the reset that `spec` belongs to."""
        found = _texts(self._txn.metadata().configuration()).get(EPOCH, "0")
        return int(found) < int((spec.properties or {}).get(EPOCH, "0"))

    def done(self, txn: Txn) -> bool:
        """Whether this micro-batch has been committed before. Reads the table's state, so ask only of a batch that may be repeated."""
        return int(self._txn.txnVersion(txn.app_id)) >= txn.version

    def transactions(self) -> dict[str, int]:
        """The newest version that the table's log has of each application. Reads the table's state."""
        return {str(one.appId()): int(one.version()) for one in items(self._txn.snapshot().setTransactions())}

    def describe(self, spec: TableSpec, *, replace: bool) -> None:
        """Set columns, properties and comment in this transaction; nothing happens if they are as wished.

        `replace`: the table's columns become exactly those of `spec` (materialized views); else they must contain the stored ones, and
        partition columns stay: raises schemas.PartitioningMismatch.
        """
        if self.read_version < 0:
            properties = table_spec.properties({}, spec.properties or {}, spec.declared)
            self._txn.updateMetadataForNewTable(self._metadata(spec, str(uuid.uuid4()), properties, int(time.time() * 1000)))
            return
        if self.described(spec, replace=replace):
            return
        current = self._txn.metadata()
        created = value_of(current.createdTime())
        properties = self._properties(spec, replace=replace)
        spec = self._completed(spec)
        if not replace:
            stored = _strings(current.partitionColumns())
            if [c.lower() for c in stored] != [c.lower() for c in spec.partition_cols]:
                raise schemas.PartitioningMismatch(stored, spec.partition_cols)
            spec = dataclasses.replace(spec, schema=self._with_type_changes(spec.schema))
        metadata = self._metadata(spec, current.id(), properties, None if created is None else int(created))
        if replace:
            self._txn.updateMetadataForTableOverwrite(metadata)
        else:
            self._txn.updateMetadata(metadata, False)

    def widens(self) -> bool:
        """Whether the table as stored lets its columns get wider types."""
        return schemas.widens(_texts(self._txn.metadata().configuration()))

    def _with_type_changes(self, schema: T.StructType) -> T.StructType:
        """The columns with Delta's notes about types that become wider: its readers need them for the files written before."""
        if not self.widens():
            return schema
        return T.StructType.fromJson(json.loads(delta.with_type_changes(self.spark, self._txn, schema.json())))

    def described(self, spec: TableSpec, *, replace: bool) -> bool:
        """Whether the table is there and `describe` has nothing to set."""
        if self.read_version < 0:
            return False
        current, wanted = self._txn.metadata(), self._completed(spec)
        same = self.schema == wanted.schema and wanted.comment == current.description()
        same = same and _strings(current.partitionColumns()) == list(spec.partition_cols)
        if not same:
            return False
        # What Delta applies to the protocol is not stored; that it was declared is in the record.
        found, stored = self._properties(spec, replace=replace), self.properties
        if spec.declared is not None and found.get(table_spec.RECORD) == stored.get(table_spec.RECORD):
            found = {key: value for key, value in found.items() if not is_of_protocol(key)}
        return found == stored

    @property
    def declared(self) -> Declaration | None:
        """What the definition declared when the table was last described; None if nothing, or for a table of an earlier version."""
        return Declaration.recorded(self.properties)

    def _completed(self, spec: TableSpec) -> TableSpec:
        """`spec` with the comments that the table has afterwards."""
        before, current = self.declared, self._txn.metadata().description()
        comment = table_spec.comment(current, before, spec.declared, spec.comment)
        return dataclasses.replace(spec, schema=table_spec.commented(spec.schema, before, spec.declared), comment=comment)

    def _properties(self, spec: TableSpec, *, replace: bool) -> dict[str, str]:
        current = self.properties
        if replace:  # what Lakelet noted about the rows that go
            current = {k: v for k, v in current.items() if k == table_spec.RECORD or not k.startswith("lakelet.")}
        return table_spec.properties(current, spec.properties or {}, spec.declared)

    def _metadata(self, spec: TableSpec, id: str, properties: Mapping[str, str], created: int | None) -> Any:
        return delta.metadata(
            self.spark,
            id=id,
            comment=spec.comment,
            schema=spec.schema.json(),
            partition_columns=spec.partition_cols,
            properties=properties,
            created=created,
        )

    def spec(self) -> TableSpec:
        """The stored table as it is described."""
        current = self._txn.metadata()
        return TableSpec(self.schema, tuple(_strings(current.partitionColumns())), (), self.properties, current.description())

    def rows(self) -> DataFrame:
        """The table's rows in the version the transaction started from, with all its columns."""
        return self.spark.read.format("delta").option("versionAsOf", str(self.read_version)).load(str(self.path))

    def rows_of(self, files: Sequence[Any]) -> DataFrame:
        """The rows of some files of the table, or of files that `write` made."""
        return delta.rows_of(self.spark, self._txn, files)

    def action_of(self, text: str) -> Any:
        """An action of the log from its JSON."""
        return delta.action_of(self.spark, text)

    def written_rows(self, files: Sequence[Any]) -> DataFrame:
        """The rows of files that `write` made, also of a table that does not exist: with the columns of this transaction."""
        return delta.rows_of(self.spark, self._txn, files, described=True)

    def write(self, rows: DataFrame) -> list[Any]:
        """Write the rows' files; they become visible with `commit`. Returns Delta's file actions."""
        return delta.write_files(self._txn, rows)

    def discard(self, files: Sequence[Any]) -> None:
        """Delete files that `write` made and that no commit names."""
        log = self._txn.deltaLog()
        system = log.dataPath().getFileSystem(log.newDeltaHadoopConf())
        for file in files:
            system.delete(file.absolutePath(log), False)

    def move(self, file: Any, folder: AnyPath) -> str:
        """Move a file that `write` made, and that no commit names, into another folder; its name there. Raises OSError."""
        return delta.move_file(self.spark, self._txn, file, str(folder))

    def files(self) -> list[Any]:
        """Every file the table has, as Delta's actions."""
        return items(self._txn.filterFiles())

    def all_files(self) -> list[Any]:
        """As `files`, without a Spark job where the newest commit replaced all of them. A commit of others meanwhile refuses this one."""
        last = self.files_of_newest_commit()
        if last is None:
            return self.files()
        self._txn.readWholeTable()
        return last

    def removals(self, of: Column | None = None) -> list[Any]:
        """Actions that remove every file the table has, or those of the partitions for which a condition is true.

        A commit of others that adds or removes such files meanwhile refuses this one.
        """
        if of is not None:
            return [file.remove() for file in self.files_of(self.rows().where(of))]
        return [file.remove() for file in self.all_files()]

    def path_of(self, file: Any) -> str:
        """The absolute path of a file, an action of Delta's, without scheme and host."""
        return str(file.absolutePath(self._txn.deltaLog()).toUri().getPath())

    def files_of(self, filtered: DataFrame, *, counted: bool = False) -> list[Any]:
        """The files that can have one of the table's rows in `filtered`, `rows` under a condition: by partition values and statistics.

        Delta compares columns with plain literals only, and each part of a conjunction by itself.
        `counted`: with the number of rows of each.
        """
        plan = with_constants(self.spark, analyzed(filtered))
        return delta.files_that_may_have(self.spark, self._txn, list(conjuncts(plan.condition())), counted=counted)

    def files_of_newest_commit(self) -> list[Any] | None:
        """Every file the table has where the newest commit replaced all of them, else None. Delta would run a Spark job to find them."""
        text = TableLog(self.path).text(self.read_version)
        files = None if text is None else whole_content(text)
        return None if files is None else [self.action_of(line) for line in files]

    def commit(
        self,
        actions: Sequence[Any],
        *,
        user_metadata: Mapping[str, Any],
        txn: Txn | None = None,
        replace: bool = False,
        whole: bool = False,
    ) -> int:
        """Commit and return the new version. The same commit records `txn`, by which a repeated batch is recognised.

        `replace`: how the commit calls itself. `whole`: it removes every file that the table has, which later readers may rely on.
        """
        changes, user_metadata = [*actions], {**user_metadata, **({WHOLE: True} if whole else {})}
        if DEFERRED.is_on:
            self._leave_for_later(changes)
        if txn is not None:
            changes.append(delta.set_transaction(self.spark, txn.app_id, txn.version, int(time.time() * 1000)))
        return delta.commit(self.spark, self._txn, changes, json.dumps(user_metadata), replace=replace)

    def _leave_for_later(self, actions: Sequence[Any]) -> None:
        """Take off what Delta would do in or after the commit and a pause of the update can do."""
        if delta.compacts(self.spark, self._txn):
            kinds = [str(action.getClass().getSimpleName()) for action in actions]
            if DEFERRED.leaves_out_compaction(self.path, kinds.count("AddFile") - kinds.count("RemoveFile")):
                delta.leave_out_compaction(self.spark, self._txn)
        if DEFERRED.leaves_out_checkpoint(self.path):
            later_checkpoint.leave_out(self._txn)


def _strings(sequence: Any) -> list[str]:
    return [str(item) for item in items(sequence)]


def _texts(scala_map: Any) -> dict[str, str]:
    return {key: str(value) for key, value in mapping(scala_map).items()}
