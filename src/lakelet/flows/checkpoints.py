"""What lies in the checkpoint folder of a flow: Spark's logs of its micro-batches, and the marker of a flow that runs once. No Spark calls.

In: the folder. Out: the batches that were planned and completed; whether a once flow has run (DS-9). The txn of a once flow is in the
commit of its rows (`flows.once`). A full refresh or a cleared checkpoint gives the flow a new folder without a marker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakelet.files.durable import write_atomically
from lakelet.files.paths import AnyPath, names_in, remove_tree
from lakelet.language.model import Flow
from lakelet.storage.root import Storage


@dataclass(frozen=True)
class Checkpoint:
    """`offsets`: JSON text of each source's end offset in the newest planned batch; `planned` and `completed` are batch numbers or -1."""

    offsets: tuple[str | None, ...]
    planned: int
    completed: int

    @property
    def unfinished(self) -> bool:
        return self.planned > self.completed


def read_checkpoint(folder: AnyPath) -> Checkpoint:
    """The state of Spark's offset and commit logs."""
    planned, completed = _newest(folder / "offsets"), _newest(folder / "commits")
    if planned < 0:
        return Checkpoint((), -1, completed)
    lines = (folder / "offsets" / str(planned)).read_text().splitlines()[2:]
    return Checkpoint(tuple(None if line.strip() == "-" else line for line in lines), planned, completed)


def discard_half_written(folder: AnyPath, state: Checkpoint) -> None:
    """Remove what is left of a first batch that was never planned, as its process died while it wrote the offsets.

    Spark refuses to begin in a checkpoint whose offset log has any file (STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY), so the flow could
    never start again. One that has states or completed batches, but no offsets, stays as it is, for Spark to refuse.
    """
    if state.planned < 0 and names_in(folder / "offsets"):
        remove_tree(folder / "offsets")


def _newest(folder: AnyPath) -> int:
    return max((int(name) for name in names_in(folder) if name.isdigit()), default=-1)


def _marker_path(storage: Storage, flow: Flow) -> AnyPath:
    return storage.checkpoint(flow.target, flow.name, storage.reset_id(flow.target.key, flow.name)) / "once.json"


def read_marker(storage: Storage, flow: Flow) -> Mapping[str, Any]:
    """Return the marker's facts; none where there is no marker."""
    try:
        found: Mapping[str, Any] = json.loads(_marker_path(storage, flow).read_text())
    except (FileNotFoundError, ValueError):  # a truncated one is written again when the txn is found in the commit
        return {}
    return found


def has_run(storage: Storage, flow: Flow) -> bool:
    """Whether the flow has run since the last reset."""
    return bool(read_marker(storage, flow).get("done"))


def write_marker(storage: Storage, flow: Flow, **facts: Any) -> None:
    """Write the marker atomically."""
    write_atomically(_marker_path(storage, flow), json.dumps({"format": 1, **facts}))
