"""A table's change feed: which columns it has, and that the table keeps one (CD-16).

Delta keeps a feed from the commit on that sets a property. Lakelet sets it for every table whose feed the pipeline reads, before the reader
starts: its stream begins with the table as it is, as inserts.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from lakelet.cdc.changes import HIDDEN
from lakelet.cdc.mirror import mirror
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.storage.delta.locks import lock_of
from lakelet.storage.delta.table_spec import CHANGE_FEED
from lakelet.storage.delta.transaction import Transaction
from lakelet.storage.root import INTERNAL

COLUMNS = (
    T.StructField("_change_type", T.StringType()),
    T.StructField("_commit_version", T.LongType()),
    T.StructField("_commit_timestamp", T.TimestampType()),
)
"""What a row of the feed has beside the table's columns: insert, delete, update_preimage or update_postimage, and of which commit."""


def keep_feed(spark: SparkSession, path: AnyPath) -> None:
    """Make a stored table keep its change feed; nothing happens if it does. Change tables keep it in their internal log (decision 0012)."""
    inner = path / INTERNAL
    is_change_table = TableLog(inner).version() >= 0
    _set(spark, inner if is_change_table else path)
    if is_change_table and mirror(path, HIDDEN) is None:
        _set(spark, path)  # others wrote to it: its log follows the internal one again with the next changes


def _set(spark: SparkSession, log: AnyPath) -> None:
    with lock_of(log).alone():
        transaction = Transaction(spark, log)
        if transaction.read_version < 0 or transaction.properties.get(CHANGE_FEED) == "true":
            return
        stored = transaction.spec()
        transaction.describe(replace(stored, properties={**(stored.properties or {}), CHANGE_FEED: "true"}), replace=False)
        transaction.commit([], user_metadata={})
