"""The event log as a Delta table on an object store: appended to and compacted by delta-rs. No Spark."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa

from lakelet.base.failpoints import reached
from lakelet.files.paths import RemotePath
from lakelet.files.remote import delta_options
from lakelet.storage.eventlog.table import KEPT_SECONDS, SMALL_BYTES, SMALL_FILES


def append(path: RemotePath, rows: pa.Table) -> None:
    """Add rows in one commit; the table is made if it is absent."""
    from deltalake import WriterProperties, write_deltalake

    compression = WriterProperties(compression="SNAPPY")
    write_deltalake(str(path), rows, mode="append", writer_properties=compression, storage_options=delta_options(path))


def compact(path: RemotePath) -> bool:
    """Put many small files into one, write a checkpoint, and remove what no reader needs (ST-10). Return whether there was a reason to.

    The compaction is one commit: a process that dies before it leaves the log as it was, and files in no version, which are removed a week
    later. Raises DeltaError and OSError of the store; what was committed before stays.
    """
    from deltalake import DeltaTable, WriterProperties

    table = DeltaTable(str(path), storage_options=delta_options(path))
    sizes = pa.table(table.get_add_actions(flatten=True))["size_bytes"].to_pylist()
    if sum(size < SMALL_BYTES for size in sizes) < SMALL_FILES:
        return False
    table.optimize.compact(target_size=SMALL_BYTES, writer_properties=WriterProperties(compression="SNAPPY"))
    reached("events.compaction_committed")
    table.create_checkpoint()
    hours = int(timedelta(seconds=KEPT_SECONDS).total_seconds() // 3600)
    table.vacuum(retention_hours=hours, dry_run=False, full=True)  # also what a process that died left in no version
    return True
