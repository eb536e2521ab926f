"""The note of a once flow: a file beside its checkpoint which says that the flow has run (DS-9). No Spark.

The mark itself is in the commit of the rows (`flows.once`). A full refresh or a cleared checkpoint gives the flow a new folder without a
note.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakelet.files.durable import write_atomically
from lakelet.files.paths import Place
from lakelet.language.model import Flow
from lakelet.storage.root import Storage


def _note(storage: Storage, flow: Flow) -> Place:
    return storage.checkpoint(flow.target, flow.name, storage.beginning(flow.target.key, flow.name)) / "once.json"


def noted(storage: Storage, flow: Flow) -> Mapping[str, Any]:
    """What the note says; nothing where there is none."""
    try:
        found: Mapping[str, Any] = json.loads(_note(storage, flow).read_text())
    except (FileNotFoundError, ValueError):  # one that is cut off is written again when the mark in the commit is found
        return {}
    return found


def has_run(storage: Storage, flow: Flow) -> bool:
    """Whether the flow has run since the last reset."""
    return bool(noted(storage, flow).get("done"))


def put_note(storage: Storage, flow: Flow, **facts: Any) -> None:
    """Write the note as a whole."""
    write_atomically(_note(storage, flow), json.dumps({"format": 1, **facts}))
