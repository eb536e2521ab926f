"""The target's log mirrors the internal log of a change table, without hidden columns and files (docs/decisions/0012-change-tables.md).

An internal commit is translated line by line, as text; no Spark. The logs have separate version numbers, because others may commit to the
target too; each commit of Lakelet in the target's log stores the internal version that it mirrors.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql import types as T

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.cdc.counts import complete
from lakelet.files.delta_log import TableLog
from lakelet.files.delta_rs import open_table
from lakelet.files.durable import create_atomically, writing
from lakelet.files.paths import AnyPath
from lakelet.files.table_files import is_absolute
from lakelet.storage.delta.table_spec import Declaration, required
from lakelet.storage.root import INTERNAL

PART, ROWS, OPEN, STATE, LAST = "__lakelet_part", "rows", "open", "state", "last"
"""The parts of an internal table. Visible rows are in two, of which one has the rows of a history without an end. The others have events or
tombstones, and the last event of keys whose open row does not say it (see `heads`)."""

VISIBLE = (ROWS, OPEN)
MIRRORED = "lakelet.mirrored"
"""Application id in the target's log; its version is the internal version that the target shows since that commit."""

_FILES = ("add", "remove", "cdc")
_STATISTICS = ("minValues", "maxValues", "nullCount")


@dataclass(frozen=True)
class MirrorPosition:
    """State of the target's log: its version `public` mirrors version `internal` (-1: none); later versions are `foreign`."""

    internal: int
    public: int
    newest: int

    @property
    def foreign(self) -> range:
        """Versions of the target's log that others committed since."""
        return range(self.public + 1, self.newest + 1)


def position(target: AnyPath, upto: int | None = None) -> MirrorPosition:
    """Return the position of the target's log, up to version `upto`. Raises CDC_LOG_GAP if no commit names the internal version."""
    log = TableLog(target)
    newest = log.version() if upto is None else upto
    for version in range(newest, -1, -1):
        shown = _shown(log, version)
        if shown is not None:
            return MirrorPosition(shown, version, newest)
        if log.commit(version) is None:  # cleaned up by Delta after a checkpoint, which keeps the txn
            return MirrorPosition(_marked(target, version), version, newest)
    return MirrorPosition(-1, -1, newest)


def _shown(log: TableLog, version: int) -> int | None:
    """Return the internal version that a commit of the target's log mirrors; None for a foreign commit or a removed one."""
    with suppress(FileNotFoundError):
        for action in log.actions(version, "txn"):
            if action["txn"]["appId"] == MIRRORED:
                return int(action["txn"]["version"])
    return None


def _marked(target: AnyPath, version: int) -> int:
    """Return the internal version that the newest checkpoint of the target names."""
    from deltalake.exceptions import DeltaError

    try:
        found = open_table(target).transaction_version(MIRRORED)
    except DeltaError:
        found = None
    if found is None:
        what = f"version {version} of {target} was removed, and no later one says which internal version it shows"
        raise LakeletError("CDC_LOG_GAP", what, todo="Put the file of the log back, or do a full refresh of the table.")
    return int(found)


def mirror(target: AnyPath, hidden: Collection[str]) -> int | None:
    """Mirror missing internal commits; return the target's version, -1 while there is no table.

    Args:
        target: folder of the change table.
        hidden: columns of the internal table that the target does not have, its part column among them.

    None: others committed to the target's log, which is left as it is (see `foreign_commits`). Repeating it, also after a crash, changes
    nothing. Raises CDC_LOG_GAP when a missing version was removed.
    """
    inner, outer = target / INTERNAL, TableLog(target)
    now, newest = position(target), TableLog(inner).version()
    if now.foreign:
        return None
    public = now.public
    for version in range(now.internal + 1, newest + 1):
        text = "".join(_translated(commit_text(inner, version), frozenset(hidden))) + json.dumps(mirrored_txn(version)) + "\n"
        public += 1
        with writing(target):
            created = create_atomically(outer.file(public), text)
        if not created:
            return mirror(target, hidden)  # another flow or a foreign writer committed this version
        reached("changes.mirrored")
    return public


def mirrored_txn(version: int) -> dict[str, Any]:
    """The txn action that records which internal version a commit shows; Delta keeps it in checkpoints."""
    return {"txn": {"appId": MIRRORED, "version": version, "lastUpdated": int(time.time() * 1000)}}


def commit_text(inner: AnyPath, version: int) -> str:
    """One commit of the internal log. Raises CDC_LOG_GAP."""
    text = TableLog(inner).text(version)
    if text is None:
        what = f"version {version} of {inner} was removed before the log of its table had it"
        raise LakeletError("CDC_LOG_GAP", what, todo="Put the file of the log back, or do a full refresh of the table.")
    return text


def _translated(text: str, hidden: frozenset[str]) -> Iterator[str]:
    for line in text.splitlines():
        action: dict[str, Any] = json.loads(line)
        kind = next(iter(action))
        body = action[kind]
        if kind in _FILES:
            if (body.get("partitionValues") or {}).get(PART) not in VISIBLE:
                continue
            seen_from_above(body, hidden)
        elif kind == "metaData":
            without_hidden(body, hidden)
        elif kind == "commitInfo":
            action[kind] = complete(body)
        elif kind != "protocol":
            continue  # txns and domains belong to the internal table
        yield json.dumps(action) + "\n"


def seen_from_above(body: dict[str, Any], hidden: Collection[str]) -> None:
    """Change the action of one file to paths relative to the folder above; absolute ones stay."""
    body["path"] = body["path"] if is_absolute(body["path"]) else f"{INTERNAL}/{body['path']}"
    body["partitionValues"].pop(PART)
    if body.get("stats"):
        stats = json.loads(body["stats"])
        for group in _STATISTICS:
            for name in set(hidden) & stats.get(group, {}).keys():
                del stats[group][name]
        body["stats"] = json.dumps(stats)
    vector = body.get("deletionVector")
    if vector and vector["storageType"] == "u":  # a name relative to the table's folder, with an optional folder before it
        vector["pathOrInlineDv"] = INTERNAL + vector["pathOrInlineDv"]


def without_hidden(body: dict[str, Any], hidden: Collection[str]) -> None:
    """Change the metadata of the internal table to that of the target."""
    schema = json.loads(body["schemaString"])
    schema["fields"] = [field for field in schema["fields"] if field["name"] not in hidden]
    known = Declaration.recorded(body.get("configuration"))
    if known is not None and known.not_null:  # tombstones have keys only, so the internal columns may be NULL
        schema = json.loads(required(T.StructType.fromJson(schema), None, known, whole=True).json())
    body["schemaString"] = json.dumps(schema)
    body["partitionColumns"] = [name for name in body["partitionColumns"] if name != PART]
