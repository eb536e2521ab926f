"""Identity of a change table, checked in analysis: keys, SCD type, type of the sequence. No Spark.

Its state cannot be carried over when they change, so the update is refused before anything runs.
"""

from __future__ import annotations

import json
from typing import Any

from deltalake.exceptions import TableNotFoundError

from lakelet.base.errors import LakeletError
from lakelet.cdc.changes import Layout
from lakelet.files.delta_rs import open_table
from lakelet.files.paths import LOG
from lakelet.language.model import ChangeSpec
from lakelet.storage.delta.table_spec import EPOCH
from lakelet.storage.root import INTERNAL, Storage

MADE_WITH = "lakelet.changes"
"""Table property that `writing` sets: keys in lower case, SCD type, type of the sequence, as JSON."""


def made_with(storage: Storage, key: str) -> str | None:
    """Return what a change table of the storage was made with; None while it has no rows that count."""
    known = storage.registry().datasets.get(key)
    if known is None:
        return None
    inner = storage.at(known.path) / INTERNAL
    if not (inner / LOG).is_dir():
        return None
    try:
        properties = open_table(inner).metadata().configuration
    except TableNotFoundError:
        return None
    return properties.get(MADE_WITH) if int(properties.get(EPOCH, "0")) >= known.epoch else None


def check(spec: ChangeSpec, shape: Layout, stored: str | None) -> None:
    """Raise CDC_STATE_CHANGED if the flow would need another state than the stored one; None for none."""
    if stored is not None:
        # The versions of snapshots that a function gives are not known before it is called with the last one.
        same_state(stored, shape.made_with, parts=2 if callable(spec.snapshots) else None)


def same_state(stored: str | None, now: list[Any], *, parts: int | None = None) -> None:
    """Raise CDC_STATE_CHANGED unless a table was made with `now`, or with its first `parts` (CO-6)."""
    if json.loads(stored or "[]")[:parts] != now[:parts]:
        raise LakeletError(
            "CDC_STATE_CHANGED",
            f"the table was made with [keys, SCD type, type of the sequence] {stored}, the flow now has {json.dumps(now)}",
            todo="Change it back, or do a full refresh of the table: its state cannot be carried over.",
        )
