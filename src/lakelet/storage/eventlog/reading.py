"""The event log as a table to be read. No Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakelet.files.delta_rs_paths import open_table
from lakelet.files.paths import AnyPath
from lakelet.storage.eventlog.failures import log_failure


def open_log(path: AnyPath) -> Any:
    """The Delta table of the log at `path`, None where there is none yet. Raises EVENT_LOG_FAILED where its folder is a file."""
    from deltalake.exceptions import TableNotFoundError

    if isinstance(path, Path) and path.exists() and not path.is_dir():
        raise log_failure(NotADirectoryError(f"{path} is a file, not the folder of a table"), path)
    try:
        return open_table(path)
    except TableNotFoundError:
        return None
