"""The event log as a table to be read. No Spark."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from pathlib import Path
from typing import Any

from lakelet.files.delta_rs import open_or_none, query
from lakelet.files.paths import AnyPath
from lakelet.storage.eventlog.failures import coded, log_failure
from lakelet.storage.eventlog.states import EventType


def open_log(path: AnyPath) -> Any:
    """The Delta table of the log at `path`, None where there is none yet. Raises EVENT_LOG_FAILED where its folder is a file."""
    if isinstance(path, Path) and path.exists() and not path.is_dir():
        raise log_failure(NotADirectoryError(f"{path} is a file, not the folder of a table"), path)
    return open_or_none(path)


# --- ids that the log has -----------------------------------------------------------------------------------------------------------------


def known_ids(path: AnyPath, event_type: EventType, ids: Collection[str]) -> frozenset[str]:
    """Those of the ids under which the log at `path` has an event of the type. Raises EVENT_LOG_FAILED for a damaged log."""
    if not ids:
        return frozenset()
    with coded(path):
        table = open_or_none(path)
    if table is None:
        return frozenset()
    listed = ", ".join(f"'{uuid.UUID(one)}'" for one in sorted(ids))
    sql = f"SELECT id FROM t WHERE event_type = '{event_type}' AND id IN ({listed})"
    with coded(path):
        rows = query(table, sql).read_all().to_pylist()
    return frozenset(row["id"] for row in rows)
