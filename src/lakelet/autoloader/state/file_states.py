"""The state of every file that a source found, as data for `cloud_files_state` (AL-28)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelet.autoloader.discovery.files import LocalFiles, files_for
from lakelet.autoloader.state.ledger import ARCHIVED, SKIPPED, Archive, Ledger, batch_of

_EVERYTHING = 1 << 62
_TIMESTAMP = pa.timestamp("us", "UTC")
STATES = pa.schema(
    [
        ("path", pa.string()),  # as `_metadata.file_path` shows it
        ("size", pa.int64()),
        ("create_time", _TIMESTAMP),  # the modification time
        ("discovery_time", _TIMESTAMP),
        ("processed_time", _TIMESTAMP),  # when its batch was planned
        ("commit_time", _TIMESTAMP),  # NULL: not committed yet
        ("archive_time", _TIMESTAMP),
        ("archive_mode", pa.string()),
        ("move_location", pa.string()),
        ("source_id", pa.string()),
        ("flow_name", pa.string()),
    ]
)


def states(state_folder: str, committed_offset: str | None, *, source_id: str = "0", flow_name: str | None = None) -> Any:
    """One row per file, in the order of the batches; a table with the columns of STATES.

    Args:
        state_folder: the state of a source, as `AutoLoaderSource.open` was given it.
        committed_offset: the source's offset in the newest batch that Spark committed; None: there is none.

    Raises:
        LakeletError: CF_STATE_DAMAGED or FORMAT_UNKNOWN.
    """
    ledger = Ledger(state_folder)
    shown = _shown_paths(state_folder)
    committed = batch_of(committed_offset)
    commit_times = ledger.commits(committed)
    archived = {path: (mode, at, to) for path, mode, at, to in _archived_files(ledger)}
    parts = [STATES.empty_table()]
    for piece in ledger.entries(_EVERYTHING):
        rows = piece.filter(pc.greater(piece["batch"], SKIPPED))
        paths, batches = rows["path"].to_pylist(), rows["batch"].to_pylist()
        done = [archived.get(path) if batch <= committed else None for path, batch in zip(paths, batches, strict=True)]
        columns = [
            pa.array([shown(path) for path in paths], pa.string()),
            rows["size"],
            *(rows[name].cast(_TIMESTAMP) for name in ("modified", "discovered", "planned")),
            pa.array([commit_times.get(batch) for batch in batches], _TIMESTAMP),
            pa.array([found and found[1] for found in done], _TIMESTAMP),
            pa.array([found and found[0] for found in done], pa.string()),
            pa.array([found and found[2] for found in done], pa.string()),
            pa.array([source_id] * len(paths), pa.string()),
            pa.array([flow_name] * len(paths), pa.string()),
        ]
        parts.append(pa.table(columns, schema=STATES))
    return pa.concat_tables(parts)


def _shown_paths(state_folder: str) -> Callable[[str], str]:
    """How paths are shown. The state does not say which store of objects a path without leading slash belongs to; its own is likely."""
    beside, _ = files_for(state_folder)
    local = LocalFiles()
    remote = _as_it_is if isinstance(beside, LocalFiles) else beside.uri
    return lambda path: local.uri(path) if path.startswith("/") else remote(path)


def _as_it_is(path: str) -> str:
    return path


def _archived_files(ledger: Ledger) -> list[tuple[str, str, int, str | None]]:
    """What was done with files, without those that another process removed."""
    table = pa.Table.from_batches(list(Archive(ledger).entries()), ARCHIVED)
    rows = zip(*(table[name].to_pylist() for name in ARCHIVED.names), strict=True)
    return [(path, mode, at, to) for path, mode, at, to in rows if mode is not None]
