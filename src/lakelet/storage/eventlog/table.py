"""The event log as a Delta table: rows appended and files compacted, without a library on a disk, by delta-rs on an object store. No Spark.

delta-rs cannot write below folders of some names, and prints a panic when the disk is full. One append on a disk is a Parquet file and a
commit file that is made with its whole content or not at all.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelet.base.failpoints import reached
from lakelet.files.delta_log import TableLog
from lakelet.files.delta_rs import open_table
from lakelet.files.durable import create_atomically, writing
from lakelet.files.paths import LOG, AnyPath, RemotePath
from lakelet.files.stores import delta_options

SMALL_FILES = 50
"""From so many small files on the log is compacted."""
SMALL_BYTES = 4 << 20
"""A file below this size is small."""
KEPT_SECONDS = 7 * 24 * 3600
"""So long files that no version needs are kept for readers."""


def append(path: AnyPath, table: pa.Table) -> None:
    """Add rows in one commit; the table is made if it is absent. Raises STORAGE_FAILED on a disk, and then nothing was added."""
    if isinstance(path, RemotePath):
        from deltalake import WriterProperties, write_deltalake

        compression = WriterProperties(compression="SNAPPY")
        write_deltalake(str(path), table, mode="append", writer_properties=compression, storage_options=delta_options(path))
        return
    with writing(path):
        log = path / LOG
        log.mkdir(parents=True, exist_ok=True)
        added = _data_file(path, table, change=True)
        try:
            version = TableLog(path).version() + 1
            while not _commit_version(log, version, [*(_first_actions(table.schema) if version == 0 else ()), {"add": added}], "WRITE"):
                version += 1
        except BaseException:  # also Ctrl-C: no data file is left without its commit
            (path / added["path"]).unlink(missing_ok=True)
            raise


def prepare(path: Path) -> None:
    """Make the folder of the log. Raises OSError, and ValueError where the newest commit is not a whole one, to which none can be added."""
    log = TableLog(path)
    (path / LOG).mkdir(parents=True, exist_ok=True)
    version = log.version()
    with suppress(FileNotFoundError):
        if not log.actions(version):
            raise ValueError(f"{log.file(version).name} is empty")


def compact(path: AnyPath) -> bool:
    """Put many small files into one, and a checkpoint beside the commits; returns whether there was a reason to (ST-10).

    Readers go on with the files they have, which are removed a week later, as are commits before the checkpoint. Dying on the way leaves
    the table as it was. Only for the process that holds the lease: it is the only one that appends. Raises DeltaError and OSError of a
    store; what was committed before stays.
    """
    if isinstance(path, RemotePath):
        return _compact_on_store(path)
    import pyarrow.parquet as pq

    table = open_table(path)
    version, files = int(table.version()), pa.table(table.get_add_actions(flatten=True)).to_pylist()
    small = [file for file in files if file["size_bytes"] < SMALL_BYTES]
    if len(small) < SMALL_FILES:
        return False
    with writing(path):
        rows = pa.concat_tables([pq.read_table(path / file["path"], partitioning=None) for file in small], promote_options="permissive")
        added = _data_file(path, rows, change=False)
        reached("events.compacted")
        moment = int(time.time() * 1000)
        removed = [
            {"remove": {"path": f["path"], "deletionTimestamp": moment, "dataChange": False, "size": f["size_bytes"]}} for f in small
        ]
        if not _commit_version(path / LOG, version + 1, [*removed, {"add": added}], "OPTIMIZE"):
            (path / added["path"]).unlink(missing_ok=True)
            return False
        reached("events.compaction_committed")
        whole = open_table(path)
        whole.create_checkpoint()
        whole.cleanup_metadata()
        _remove_old(path, {added["path"], *(file["path"] for file in files)})
    return True


def _compact_on_store(path: RemotePath) -> bool:
    """`compact` by delta-rs. The compaction is one commit, like that on a disk."""
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


def _remove_old(path: Path, kept: set[str]) -> None:
    """Remove files that are in no version that a reader may still use."""
    with os.scandir(path) as entries:
        old = [e for e in entries if e.name.endswith(".parquet") and e.name not in kept and time.time() - e.stat().st_mtime > KEPT_SECONDS]
    for entry in old:
        with suppress(OSError):
            os.unlink(entry.path)


def _data_file(path: Path, table: pa.Table, *, change: bool) -> dict[str, Any]:
    """Write rows into a new file; returns the action that adds it. Nothing is left if that fails."""
    import pyarrow.parquet as pq

    name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    try:
        with (path / name).open("wb") as stream:
            pq.write_table(table, stream, compression="snappy")
            stream.flush()
            os.fsync(stream.fileno())
            size = stream.tell()
    except BaseException:  # also Ctrl-C: no half of a file is left
        with suppress(OSError):
            (path / name).unlink(missing_ok=True)
        raise
    statistics = json.dumps({"numRecords": table.num_rows})
    moment = int(time.time() * 1000)
    return {"path": name, "partitionValues": {}, "size": size, "modificationTime": moment, "dataChange": change, "stats": statistics}


def _first_actions(schema: pa.Schema) -> Sequence[Mapping[str, Any]]:
    """The first actions of a table."""
    from deltalake import Schema

    described = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": Schema.from_arrow(schema).to_json(),
        "partitionColumns": [],
        "configuration": {"delta.logRetentionDuration": f"interval {KEPT_SECONDS // 86400} days"},
        "createdTime": int(time.time() * 1000),
    }
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": described}]


def _commit_version(log: Path, version: int, actions: Sequence[Mapping[str, Any]], operation: str) -> bool:
    """Make one version; False if it is there already."""
    about = {"commitInfo": {"timestamp": int(time.time() * 1000), "operation": operation, "engineInfo": "lakelet"}}
    text = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in (*actions, about))
    return create_atomically(log / f"{version:020d}.json", text, alone=True)  # only the process that holds the lease writes events
