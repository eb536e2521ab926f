"""All files of a version, where commits say them: the newest one because it replaced everything, or all of a small table's. No Spark.

Delta finds them with one or two Spark jobs for each new version that a query reads. The commits of a table that was replaced, or that gets
a few files at a time, as in the rounds of a continuous update, say it for nothing. Lines of the log come out, which `Transaction` takes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.storage.delta.batch_metrics import KEY

WHOLE = "lakelet.whole"
"""Key in the user metadata of commits that say so themselves: all earlier files were removed."""


def whole_content(text: str) -> list[str] | None:
    """Return the `add` actions of a commit that removed all earlier files, as lines of its log file `text`; None for other commits.

    Only Lakelet's own commits are considered, and those to partitioned tables only if they say it: others may have kept files.
    """
    actions = [(line, json.loads(line)) for line in text.splitlines()]
    info = next((action["commitInfo"] for _, action in actions if "commitInfo" in action), None)
    noted = _noted(info) if info is not None else {}
    if noted.get(WHOLE) is not True:
        files = [action[kind] for _, action in actions for kind in ("add", "remove") if kind in action]
        if info is None or not _replaces(info, noted) or not files or any(file.get("partitionValues") != {} for file in files):
            return None
    return [line for line, action in actions if "add" in action]


def _replaces(info: Mapping[str, Any], noted: Mapping[str, Any]) -> bool:
    """Return whether `Transaction.commit(replace=True)` made a commit, with the counts of a batch."""
    return KEY in noted and info.get("operation") == "WRITE" and info.get("operationParameters", {}).get("mode") == "Overwrite"


def _noted(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the user metadata of a commit; nothing where it is not a JSON object."""
    try:
        found = json.loads(info.get("userMetadata") or "null")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# --- files of a small table, followed from commit to commit ------------------------------------------------------------------------------

MOST_COMMITS = 200
"""With more commits that were not read before, Delta's own way is not slower."""
MOST_FILES, MOST_BYTES = 200, 64 << 20
"""Of a larger table Delta leaves out files by the statistics of their columns."""


class LiveFiles:
    """The files of one table, followed from commit to commit; safe to share between threads."""

    def __init__(self, path: AnyPath) -> None:
        self._log = TableLog(path)
        self._version = -1
        self._files: dict[str, tuple[int, str]] = {}  # by path: size, and its `add` action as a line of the log
        self._unknown = False
        self._lock = threading.Lock()

    def of(self, version: int) -> list[str] | None:
        """The `add` actions of all files of a version, as lines of the log; None for a table that is large, or whose log does not tell.

        It does not where commits were cleaned up, or where rows were marked as deleted in files that stay.
        """
        with self._lock:
            if version < self._version:  # another table in the same folder
                self._version, self._files, self._unknown = -1, {}, False
            if self._unknown or version - self._version > MOST_COMMITS or not self._followed(version):
                return None
            sizes = [size for size, _ in self._files.values()]
            if not sizes or len(sizes) > MOST_FILES or sum(sizes) > MOST_BYTES:
                return None
            return [line for _, line in self._files.values()]

    def _followed(self, version: int) -> bool:
        """Apply the commits up to a version; False where that is not possible."""
        while self._version < version:
            text = self._log.text(self._version + 1)
            if text is None:
                return False
            self._unknown = not all(map(self._applied, text.splitlines()))
            if self._unknown:
                return False
            self._version += 1
        return True

    def _applied(self, line: str) -> bool:
        """Apply one action; whether the files are known afterwards."""
        action = json.loads(line)
        if "add" in action:
            file = action["add"]
            self._files[file["path"]] = int(file["size"]), line
            return not file.get("deletionVector")
        if "remove" in action:
            file = action["remove"]
            return not file.get("deletionVector") and self._files.pop(file["path"], None) is not None
        return True


__all__ = ["WHOLE", "LiveFiles", "whole_content"]
