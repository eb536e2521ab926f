"""Marker file of a once flow, in its checkpoint folder: it records that the flow has run (DS-9). No Spark.

The txn is in the commit of the rows (`flows.once`). A full refresh or a cleared checkpoint gives the flow a new folder without a marker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakelet.files.durable import write_atomically
from lakelet.files.paths import AnyPath
from lakelet.language.model import Flow
from lakelet.storage.root import Storage


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
