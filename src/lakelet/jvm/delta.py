"""Delta's own classes: logs, transactions and the actions that they commit. Its Python library has neither transactions nor checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lakelet.base.names import quoted
from lakelet.jvm.errors import MISSING
from lakelet.jvm.expressions import column
from lakelet.jvm.frames import of_java
from lakelet.jvm.scala import items, java_class, option, scala_map, seq, singleton, static

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

DeltaLog = Any
Snapshot = Any
JavaTransaction = Any
Action = Any
_DELTA = "org.apache.spark.sql.delta"
_AUTO_COMPACT = f"{_DELTA}.hooks.AutoCompact"


def log_of(spark: SparkSession, path: str) -> DeltaLog:
    """The log of the table in a folder, which need not exist."""
    return static(spark._jvm, f"{_DELTA}.DeltaLog", "forTable")(spark._jsparkSession, path)


def newest(spark: SparkSession, log: DeltaLog) -> Snapshot:
    """The newest version of a table."""
    none = option(spark._jvm)
    return log.update(False, none, none)


def forget_logs(spark: SparkSession) -> None:
    """Let Delta read the logs of all tables again: a table may have been replaced by an earlier state of itself."""
    static(spark._jvm, "org.apache.spark.sql.delta.DeltaLog", "clearCache")()


def write_checkpoint(spark: SparkSession, path: str) -> None:
    """Write the checkpoint of a table's newest version."""
    log = log_of(spark, path)
    log.checkpoint(newest(spark, log), option(spark._jvm))


def compact(spark: SparkSession, path: str) -> None:
    """Put small files of a table together, as Delta's automatic compaction does after a commit."""
    hook = singleton(spark._jvm, _AUTO_COMPACT)
    given = [getattr(hook, f"compact$default${number}")() for number in (4, 5, 6)]
    hook.compact(spark._jsparkSession, log_of(spark, path), option(spark._jvm), *given)


def leave_out_compaction(spark: SparkSession, transaction: JavaTransaction) -> None:
    """Let nothing be compacted after the commit of a transaction."""
    hooks = transaction.postCommitHooks()
    at = hooks.indexOf(singleton(spark._jvm, _AUTO_COMPACT))
    if at >= 0:
        hooks.remove(at)


def compacts(spark: SparkSession, transaction: JavaTransaction) -> bool:
    """Whether small files are put together after the commit of a transaction that has written some; no where Delta does not say."""
    try:
        hook = singleton(spark._jvm, _AUTO_COMPACT)
        if transaction.postCommitHooks().indexOf(hook) < 0:
            return False
        return bool(hook.getAutoCompactType(spark._jsparkSession.sessionState().conf(), transaction.metadata()).isDefined())
    except MISSING:
        return False


# ------------------------------------------------------------------------------------------------------------ actions


def metadata(
    spark: SparkSession,
    *,
    id: str,
    comment: str | None,
    schema: str,
    partition_columns: Sequence[str],
    properties: Mapping[str, str],
    created: int | None,
) -> Action:
    """What a log says about its table. `schema`: JSON of a StructType. `created`: milliseconds."""
    jvm = spark._jvm
    nothing, columns = scala_map(jvm, {}), seq(jvm, partition_columns)
    format = java_class(jvm, f"{_DELTA}.actions.Format")("parquet", nothing)
    made = java_class(jvm, f"{_DELTA}.actions.Metadata")
    return made(id, None, comment, format, schema, columns, scala_map(jvm, dict(properties)), option(jvm, created))


def with_type_changes(spark: SparkSession, transaction: JavaTransaction, schema: str) -> str:
    """Columns with Delta's notes about types that become wider in a transaction; both are JSON of a StructType."""
    columns = static(spark._jvm, "org.apache.spark.sql.types.DataType", "fromJson")(schema)
    noted = static(spark._jvm, f"{_DELTA}.TypeWideningMetadata", "addTypeWideningMetadata")
    return str(noted(transaction, columns, transaction.metadata().schema()).json())


def set_transaction(spark: SparkSession, app_id: str, version: int, updated: int) -> Action:
    """The number of a micro-batch, by which a repeated one is known. `updated`: milliseconds."""
    return java_class(spark._jvm, f"{_DELTA}.actions.SetTransaction")(app_id, version, option(spark._jvm, updated))


def action_of(spark: SparkSession, text: str) -> Action:
    """An action from the line of a log."""
    return static(spark._jvm, f"{_DELTA}.actions.Action", "fromJson")(text)


def commit(spark: SparkSession, transaction: JavaTransaction, actions: Sequence[Action], user_metadata: str, *, replace: bool) -> int:
    """Commit and return the new version. The commit calls itself a write, one in mode `overwrite` with `replace`."""
    jvm = spark._jvm
    mode, none = java_class(jvm, "org.apache.spark.sql.SaveMode").valueOf("Overwrite" if replace else "Append"), option(jvm)
    write = java_class(jvm, f"{_DELTA}.DeltaOperations$Write")
    operation = write(mode, none, none, option(jvm, user_metadata), none, none, none, none, none)
    return int(transaction.commit(seq(jvm, actions), operation))


# ------------------------------------------------------------------------------------------------------------ files and rows


def write_files(transaction: JavaTransaction, rows: DataFrame) -> list[Action]:
    """Write rows into files that a commit of the transaction may add."""
    return items(transaction.writeFiles(rows._jdf))


def files_that_may_have(
    spark: SparkSession, transaction: JavaTransaction, conditions: Sequence[Any], *, counted: bool = False
) -> list[Action]:
    """The files of a table that can have rows for which these expressions are true, by partition values and statistics.

    `counted`: with the numbers of their rows.
    """
    return items(transaction.filterFiles(seq(spark._jvm, conditions), counted))


def rows_of(spark: SparkSession, transaction: JavaTransaction, files: Sequence[Action], *, described: bool = False) -> DataFrame:
    """The rows of files of a table, or of those that a transaction has written. `described`: with the columns that the transaction sets."""
    jvm, log, none = spark._jvm, transaction.deltaLog(), option(spark._jvm)
    snapshot = transaction.snapshot()
    if described:
        snapshot = java_class(jvm, f"{_DELTA}.DummySnapshot")(log.logPath(), log, transaction.metadata(), none, none)
    return of_java(spark, log.createDataFrame(snapshot, seq(jvm, files), False, none))


def rows_at(spark: SparkSession, path: str, version: int, files: Sequence[str]) -> DataFrame:
    """The rows of files, `add` actions of a log as text, with the columns that the table has in a version."""
    jvm, log, none = spark._jvm, log_of(spark, path), option(spark._jvm)
    actions = [action_of(spark, line) for line in files]
    return of_java(spark, log.createDataFrame(log.getSnapshotAt(version, none, none, False), seq(jvm, actions), False, none))


def changed_rows(spark: SparkSession, path: str, before: int, after: int) -> tuple[DataFrame, DataFrame]:
    """The rows that came, and those that left, in the commits of (before, after], with the columns that the table has in the last one.

    Of a file with new marks for deleted rows these rows alone. A row that came in one commit and left in another one is in both.
    """
    log, none = log_of(spark, path), option(spark._jvm)
    snapshot = log.getSnapshotAt(after, none, none, False)
    reader = singleton(spark._jvm, f"{_DELTA}.commands.cdc.CDCReader")
    at_end = option(spark._jvm, snapshot)
    found = of_java(spark, reader.changesToBatchDF(log, before + 1, after, spark._jsparkSession, none, at_end, True, none))
    columns = [quoted(str(name)) for name in snapshot.schema().fieldNames()]
    came, left = (found.where(f"_change_type = '{kind}'").select(*columns) for kind in ("insert", "delete"))
    return came, left


def files_at(spark: SparkSession, transaction: JavaTransaction, version: int) -> list[Action]:
    """The files of another version of a transaction's table."""
    none = option(spark._jvm)
    return list(transaction.deltaLog().getSnapshotAt(version, none, none, False).allFiles().collectAsList())


def protocol_with(spark: SparkSession, transaction: JavaTransaction, other: JavaTransaction) -> Action | None:
    """The protocol with which a transaction's table can hold files of another one too; None if it can already."""
    own = transaction.protocol()
    both = own.merge(seq(spark._jvm, [other.protocol()]))
    return None if both.equals(own) else both


def move_file(spark: SparkSession, transaction: JavaTransaction, file: Action, folder: str) -> str:
    """Move a file of a transaction into another folder, by the file system that the table lies in; its name there. Raises OSError."""
    log = transaction.deltaLog()
    system = log.dataPath().getFileSystem(log.newDeltaHadoopConf())
    path, hadoop_path = file.absolutePath(log), java_class(spark._jvm, "org.apache.hadoop.fs.Path")
    target = hadoop_path(folder)
    system.mkdirs(target)
    if not system.rename(path, hadoop_path(target, path.getName())):
        raise OSError(f"{path} could not be moved to {folder}")
    return str(path.getName())


def identity_values(spark: SparkSession, begin: int, step: int) -> Column:
    """A column that numbers the rows of a write from a number on, as Delta numbers those of its identity columns."""
    jvm = spark._jvm
    generator = java_class(jvm, f"{_DELTA}.PartitionIdentityValueGenerator")(begin, step, option(jvm))
    return column(spark, java_class(jvm, f"{_DELTA}.GenerateIdentityValues")(generator))
