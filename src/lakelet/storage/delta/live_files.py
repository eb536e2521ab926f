"""Which files a small table has, as the commits of its log say. No Spark.

Delta finds that out with one or two Spark jobs for each new version that a query reads. Where a table grows by a few files at a time, as in
the rounds of a continuous update, adding up its commits costs nothing.
"""

from __future__ import annotations

import json
import threading

from lakelet.files.paths import AnyPath

MOST_COMMITS = 200
"""With more commits that were not looked at before, Delta's own way is not slower."""
MOST_FILES, MOST_BYTES = 200, 64 << 20
"""Of a larger table Delta leaves out files by the statistics of their columns."""


class LiveFiles:
    """The files of one table, followed from commit to commit; safe to share between threads."""

    def __init__(self, path: AnyPath) -> None:
        self._path = path
        self._version = -1
        self._files: dict[str, tuple[int, str]] = {}  # by path: size, and its `add` action as a line of the log
        self._lost = False
        self._lock = threading.Lock()

    def of(self, version: int) -> list[str] | None:
        """The `add` actions of all files of a version, as lines of the log; None for a table that is large, or whose log does not tell.

        It does not where commits were cleaned up, or where rows were marked as deleted in files that stay.
        """
        with self._lock:
            if version < self._version:  # another table in the same folder
                self._version, self._files, self._lost = -1, {}, False
            if self._lost or version - self._version > MOST_COMMITS or not self._followed(version):
                return None
            sizes = [size for size, _ in self._files.values()]
            if not sizes or len(sizes) > MOST_FILES or sum(sizes) > MOST_BYTES:
                return None
            return [line for _, line in self._files.values()]

    def _followed(self, version: int) -> bool:
        """Apply the commits up to a version; False where that is not possible."""
        while self._version < version:
            try:
                text = (self._path / "_delta_log" / f"{self._version + 1:020d}.json").read_text()
            except FileNotFoundError:
                return False
            self._lost = not all(map(self._applied, text.splitlines()))
            if self._lost:
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


__all__ = ["LiveFiles"]
