"""The log of a Delta table, read from the JSON files of its commits: versions, what each commit did, what changed since.

Three engines read a table, each for what it alone can do:

- the JSON files, here: one commit, or those since a version, as flows ask between two batches. No library and no Java; of a commit that was
  cleaned up after a checkpoint nothing is known, and callers say what they do then.
- delta-rs, in `delta_rs`: a version as a whole (columns, protocol, files, history) and its rows, for what runs without Spark.
- Delta's own classes, in `storage/delta/transaction.py`: what a write of Lakelet is based on, since Delta checks it at the commit, and
  versions with features that delta-rs does not know (`maintenance/engine.py`).

What only has to know that a folder is a table looks for its folder `_delta_log`; `signatures` takes the names and times in it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakelet.files.delta_rs import table_id
from lakelet.files.paths import LOG, AnyPath, names_in


@dataclass(frozen=True)
class Commit:
    """One version of a table.

    `added`: partition values of each file that brought data; `changed`: files with data were removed; `removed`: any files were, also by
    OPTIMIZE; `described`: it sets columns or properties, of the table `table_id`. `taken`: partition values of each file with data that
    was removed, None where the log does not say. `change_files`: number of its files of change data, which the change feed has instead
    of the others.
    """

    version: int
    added: tuple[Mapping[str, str | None], ...]
    changed: bool
    removed: bool
    described: bool
    table_id: str | None
    user_metadata: Mapping[str, Any] | None
    taken: tuple[Mapping[str, str | None] | None, ...] = ()
    change_files: int = 0


class TableLog:
    """The log of one table, read file by file and kept; safe to share between threads."""

    def __init__(self, path: AnyPath) -> None:
        self.path = path
        self._commits: dict[int, Commit | None] = {}
        self._lock = threading.Lock()

    # --- versions

    def version(self) -> int:
        """Newest version, or -1 if the table does not exist."""
        names = (name for name in names_in(self.path / LOG) if name.endswith((".json", ".checkpoint.parquet")))
        return max((int(name[:20]) for name in names if name[:20].isdigit()), default=-1)

    def file(self, version: int) -> AnyPath:
        """Where the commit of a version lies."""
        return self.path / LOG / f"{version:020d}.json"

    def text(self, version: int) -> str | None:
        """One commit as it is written, a line for each action; None if its file was cleaned up."""
        try:
            return self.file(version).read_text()
        except FileNotFoundError:
            return None

    def actions(self, version: int, *kinds: str) -> list[dict[str, Any]]:
        """The actions of one commit, those of some kinds or all, as they are written. Raises FileNotFoundError if it was cleaned up."""
        starts = tuple(f'{{"{kind}"' for kind in kinds)
        return [json.loads(line) for line in self.file(version).read_text().splitlines() if not kinds or line.startswith(starts)]

    def written_before(self, version: int, moment: float) -> bool:
        """Whether the file of a commit was written before a moment (seconds since 1970); False where that is not known, as on a store."""
        file = self.file(version)
        return isinstance(file, Path) and file.stat().st_mtime < moment

    def description(self, version: int | None = None) -> Mapping[str, Any] | None:
        """The `metaData` action that counts in a version, the newest by default; None where no commit that is left has one."""
        for number in range(self.version() if version is None else version, -1, -1):
            text = self.text(number)
            if text is None:
                return None
            for line in text.splitlines():
                if line.startswith('{"metaData"'):
                    found: Mapping[str, Any] = json.loads(line)["metaData"]
                    return found
        return None

    # --- commits

    def commit(self, version: int) -> Commit | None:
        """What one commit did, or None if its file was cleaned up."""
        with self._lock:
            if version not in self._commits:
                text = self.text(version)
                self._commits[version] = None if text is None else _parse_commit(version, text)
            return self._commits[version]

    def table_id(self) -> str | None:
        """Delta's id of the table, from its first commit; where that was cleaned up, as after thirty days, from a checksum or checkpoint.

        None where there is no table, and where nothing that is left can be read.
        """
        first = self.commit(0)
        if first or self.version() < 0:
            return first.table_id if first else None
        known: str | None = self._checksum(None).get("metadata", {}).get("id")
        return known or table_id(self.path)  # a writer of another kind leaves no checksum

    def commits(self, after: int, upto: int) -> list[Commit] | None:
        """Commits in (after, upto], or None if one of them is gone."""
        found = [self.commit(v) for v in range(after + 1, upto + 1)]
        return None if None in found else [c for c in found if c is not None]

    def bytes(self, version: int | None = None) -> int | None:
        """The size of all files of a version, the newest by default, from Delta's checksum beside its commit; None where there is none."""
        size = self._checksum(version).get("tableSizeBytes")
        return None if size is None else int(size)

    def _checksum(self, version: int | None) -> Mapping[str, Any]:
        """What Delta has written beside a commit, the newest by default, about the version as a whole; empty for nothing."""
        try:
            text = (self.path / LOG / f"{self.version() if version is None else version:020d}.crc").read_text()
            found = json.loads(text)
        except (FileNotFoundError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def data_version(self, known: int, upto: int | None = None) -> int:
        """`known` if no commit after it, up to a version, added or removed data, else the newest version that did."""
        latest = self.version() if upto is None else upto
        commits = self.commits(known, latest)
        if commits is None:
            return latest
        return max((c.version for c in commits if c.added or c.changed), default=known)

    def content_version(self, known: int) -> int:
        """`known` if the commits after it only put rows into other files, as OPTIMIZE does, else the newest version."""
        latest = self.version()
        commits = self.commits(known, latest)
        same = commits is not None and known <= latest and not any(c.added or c.changed or c.described for c in commits)
        return known if same else latest


_SHORT_LOG = 50


def streams_from_log(log: TableLog) -> bool:
    """Whether a new stream may read the table from version 0 of its log instead of from a snapshot.

    Both give the same rows while the log is whole, only appends and never changed columns; files that OPTIMIZE put together may be gone.
    Reading a snapshot costs a Spark job of a second or more at the first start **and** at the next one, which plans the last batch again.
    """
    latest = log.version()
    commits = log.commits(-1, latest) if 0 <= latest < _SHORT_LOG else None
    return commits is not None and not any(c.removed or (c.described and c.version > 0) for c in commits)


def _parse_commit(version: int, text: str) -> Commit:
    added: list[Mapping[str, str | None]] = []
    taken: list[Mapping[str, str | None] | None] = []
    changed = removed = described = False
    user_metadata = table_id = None
    change_files = 0
    for line in text.splitlines():
        if line.startswith('{"add"'):
            action = json.loads(line)["add"]
            if action.get("dataChange", True):
                added.append(action.get("partitionValues", {}))
        elif line.startswith('{"remove"'):
            removed = True
            action = json.loads(line)["remove"]
            if action.get("dataChange", True):
                changed = True
                taken.append(action.get("partitionValues"))
        elif line.startswith('{"cdc"'):
            change_files += 1
        elif line.startswith('{"metaData"'):
            described = True
            table_id = json.loads(line)["metaData"].get("id")
        elif line.startswith('{"commitInfo"'):
            raw = json.loads(line)["commitInfo"].get("userMetadata")
            try:
                user_metadata = json.loads(raw) if raw else None
            except ValueError:
                user_metadata = None
    return Commit(
        version=version,
        added=tuple(added),
        changed=changed,
        removed=removed,
        described=described,
        table_id=table_id,
        user_metadata=user_metadata if isinstance(user_metadata, dict) else None,
        taken=tuple(taken),
        change_files=change_files,
    )


__all__ = ["Commit", "TableLog", "streams_from_log"]
