"""The target's log: the internal log of a change table without what readers are not to see (docs/decisions/0012-change-tables.md). Layer 4.

Works on the text of Delta's log files and needs no Spark: an internal commit is translated line by line and keeps its version.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from lakelet.cdc.counts import complete
from lakelet.errors import LakeletError
from lakelet.failpoints import reached
from lakelet.places import Place, RemotePath
from lakelet.tables import TableLog

INTERNAL = "_changes"
PART, ROWS, STATE = "__lakelet_part", "rows", "state"
_FILES = ("add", "remove", "cdc")
_STATISTICS = ("minValues", "maxValues", "nullCount")


def mirror(target: Place, hidden: Collection[str]) -> int:
    """Bring the target's log up to the internal one; returns the target's version, -1 while there is no table.

    Args:
        target: folder of the change table.
        hidden: columns of the internal table that the target does not have, its part column among them.

    Doing it again, or after dying half-way, changes nothing. Raises CDC_LOG_GAP when a missing version was removed.
    """
    inner, outer = target / INTERNAL, target / "_delta_log"
    newest, have = TableLog(inner).version(), TableLog(target).version()
    for version in range(have + 1, newest + 1):
        name = f"{version:020d}.json"
        try:
            text = (inner / "_delta_log" / name).read_text()
        except FileNotFoundError:
            what = f"version {version} of {inner} was removed before the log of {target} had it"
            raise LakeletError("CDC_LOG_GAP", what, todo="Put the file of the log back, or do a full refresh of the table.") from None
        _publish(outer, name, "".join(_translated(text, frozenset(hidden))))
        reached("changes.mirrored")
    return max(newest, have)


def _publish(folder: Place, name: str, text: str) -> None:
    """Write a log file so that readers see it whole or not at all."""
    if isinstance(folder, RemotePath):
        (folder / name).write_whole(text)
        return
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{name}.tmp"
    temporary.write_text(text)
    temporary.replace(folder / name)


def _translated(text: str, hidden: frozenset[str]) -> Iterator[str]:
    for line in text.splitlines():
        action: dict[str, Any] = json.loads(line)
        kind = next(iter(action))
        body = action[kind]
        if kind in _FILES:
            if (body.get("partitionValues") or {}).get(PART) != ROWS:
                continue
            _move(body, hidden)
        elif kind == "metaData":
            _describe(body, hidden)
        elif kind == "commitInfo":
            action[kind] = complete(body)
        elif kind != "protocol":
            continue  # marks of micro-batches and domains belong to the internal table
        yield json.dumps(action) + "\n"


def _move(body: dict[str, Any], hidden: frozenset[str]) -> None:
    """The action of one file, seen from the folder above."""
    body["path"] = f"{INTERNAL}/{body['path']}"
    body["partitionValues"].pop(PART)
    if body.get("stats"):
        stats = json.loads(body["stats"])
        for group in _STATISTICS:
            for name in hidden & stats.get(group, {}).keys():
                del stats[group][name]
        body["stats"] = json.dumps(stats)
    vector = body.get("deletionVector")
    if vector and vector["storageType"] == "u":  # a name relative to the table's folder, with an optional folder before it
        vector["pathOrInlineDv"] = INTERNAL + vector["pathOrInlineDv"]


def _describe(body: dict[str, Any], hidden: frozenset[str]) -> None:
    schema = json.loads(body["schemaString"])
    schema["fields"] = [field for field in schema["fields"] if field["name"] not in hidden]
    body["schemaString"] = json.dumps(schema)
    body["partitionColumns"] = [name for name in body["partitionColumns"] if name != PART]
