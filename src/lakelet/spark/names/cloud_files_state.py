"""`cloud_files_state`: which files the streaming flows of a dataset have seen, from ledgers and checkpoints (AL-28).

Reads only, without Spark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from lakelet.autoloader.state.ledger import Ledger, is_offset, offset_of
from lakelet.base.errors import LakeletError, Location
from lakelet.base.names import TableName
from lakelet.files.paths import any_path
from lakelet.storage.root import JSON_SCHEMAS, Storage

_MOMENTS = ("create_time", "discovery_time", "processed_time", "commit_time", "archive_time")
STATES = StructType(
    [
        StructField("path", StringType()),
        StructField("size", LongType()),
        *(StructField(name, TimestampType()) for name in _MOMENTS),
        *(StructField(name, StringType()) for name in ("archive_mode", "move_location", "source_id", "flow_name")),
    ]
)
"""Columns of `cloud_files_state`."""

_CHECKPOINT = re.compile(r"(?P<root>.*)/checkpoints/(?P<flow>[^/]+/[^/]+/[^/]+/[^/]+)/(?P<epoch>\d+(?:r\d+)?(?:-[0-9a-f]{8})?)/?")


def dataset_states(storage: Storage, name: TableName) -> pa.Table:
    """Files of all sources of a dataset's flows, of the time since its last full refresh; none where nothing ran yet."""
    return _joined_states(
        [_states_of_source(s.state, _newest_checkpoint(storage, name, s), str(s.number), s.flow) for s in sources_of(storage, name)]
    )


@dataclass(frozen=True)
class FileSourceState:
    """One source of a streaming flow that reads files: the flow's name, the source's number in it, and its state folder.

    `reset_id` names since when the flow reads it.
    """

    flow: str
    number: int
    reset_id: str
    state: Any


def sources_of(storage: Storage, name: TableName) -> list[FileSourceState]:
    """The sources of a dataset's flows that have state since its last full refresh, by flow and number."""
    found = [
        FileSourceState(flow, int(s.name), reset_id, s)
        for flow, reset_id, folder in _flow_folders(storage, name)
        for s in _subfolders(folder)
        if s.name.isdigit()
    ]
    return sorted(found, key=lambda source: (source.flow, source.number))


def json_logs_of(storage: Storage, name: TableName) -> list[tuple[str, str]]:
    """(flow, folder of the schema log) of each `from_json` without a schema, of a dataset's flows since its last full refresh."""
    return sorted((flow, str(log)) for flow, _, folder in _flow_folders(storage, name) for log in _subfolders(folder / JSON_SCHEMAS))


def _flow_folders(storage: Storage, name: TableName) -> Iterator[tuple[str, str, Any]]:
    """(flow, since when it reads, folder with the states of its sources)."""
    for folder in _subfolders(storage.flow_folders(name)[1]):
        flow = unquote(folder.name)
        reset_id = storage.reset_id(name.key, flow)
        yield flow, reset_id, folder / reset_id


def _newest_checkpoint(storage: Storage, name: TableName, source: FileSourceState) -> Any:
    """The flow's checkpoint since the last full refresh, None where there is none."""
    root = storage.checkpoint(name, source.flow, "0").parent
    found = [folder for folder in _subfolders(root) if folder.name.split("-")[0] == source.reset_id]
    return max(found, key=lambda folder: folder.name) if found else None


def _subfolders(folder: Any) -> list[Any]:
    return list(folder.iterdir()) if folder.is_dir() else []


def checkpoint_states(text: str, where: Location | None) -> pa.Table:
    """Files of the flow whose checkpoint (or of the stand-alone stream whose state folder) is given.

    Raises CF_STATE_INVALID_CHECKPOINT_PATH.
    """
    folder = any_path(text.removeprefix("file://").removeprefix("file:"))
    if (folder / "ledger").is_dir():
        return _joined_states([_states_of_source(folder, None, "0", None)])
    match = _CHECKPOINT.fullmatch(str(folder))
    sources = any_path(match["root"]) / "autoloader" / match["flow"] / match["epoch"].split("-")[0] if match else folder
    if match is None or not sources.is_dir():
        raise LakeletError(
            "CF_STATE_INVALID_CHECKPOINT_PATH",
            f"{text} is neither a checkpoint of a flow that reads files nor the state folder of a stream",
            where=where,
            todo="Use cloud_files_state(TABLE(name)); of a stream outside a pipeline name its cloudFiles.schemaLocation or lakelet.state.",
        )
    flow = unquote(sources.parent.name)
    return _joined_states(
        [_states_of_source(state, folder, state.name, flow) for state in sorted(_subfolders(sources), key=str) if state.name.isdigit()]
    )


def _states_of_source(state: Any, checkpoint: Any, source: str, flow: str | None) -> pa.Table:
    from lakelet.autoloader.state.file_states import states

    if checkpoint is None:
        return states(str(state), _surely_committed(str(state)), source_id=source, flow_name=flow)
    offsets = list(_committed_offsets(checkpoint))
    number = int(source)
    return states(str(state), offsets[number] if number < len(offsets) else None, source_id=source, flow_name=flow)


def _surely_committed(state: str) -> str | None:
    """The offset up to which a stream whose checkpoint is not known has committed: a batch is planned when those before it are done."""
    newest = max((max(piece["batch"].to_pylist(), default=-1) for piece in Ledger(state).entries(1 << 62)), default=-1)
    return json.dumps(offset_of(newest - 1)) if newest > 0 else None


def _committed_offsets(checkpoint: Any) -> Iterator[str]:
    """Offsets of the file sources in the newest completed batch, in the order of their numbers."""
    commits = checkpoint / "commits"
    newest = max((int(file.name) for file in commits.iterdir() if file.name.isdigit()), default=-1) if commits.is_dir() else -1
    if newest >= 0:
        yield from (line for line in (checkpoint / "offsets" / str(newest)).read_text().splitlines()[2:] if is_offset(line))


def _joined_states(tables: list[pa.Table]) -> pa.Table:
    from lakelet.autoloader.state.file_states import STATES as EMPTY

    return pa.concat_tables([EMPTY.empty_table(), *tables]).select(STATES.fieldNames())
