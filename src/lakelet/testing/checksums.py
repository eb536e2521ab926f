"""Writes the checksum file of a given table's newest version, which Delta writes beside each of its commits and delta-rs does not.

With it Spark knows protocol and schema of the table without a job, which would be the first one of the session.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__tracebackhide__ = True

_APPENDING = frozenset({"commitInfo", "protocol", "metaData", "add"})


def write_checksum(table: Path) -> None:
    """Write `_delta_log/<newest version>.crc` of a local table without checkpoint; none where others did more than append rows.

    Delta's protocol document describes the file ("Version Checksum File"). It appears whole or not at all.
    """
    log = table / "_delta_log"
    commits = sorted(log.glob("*.json"))
    found: dict[str, Any] = {}
    sizes = []
    for kind, action in _actions(commits):
        if kind not in _APPENDING:
            return
        if kind == "add":
            sizes.append(action["size"])
        found[kind] = action
    checksum = {
        "tableSizeBytes": sum(sizes),
        "numFiles": len(sizes),
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": [],
        "metadata": found["metaData"],
        "protocol": found["protocol"],
    }
    beside = log / f".{commits[-1].stem}.crc.part"
    beside.write_text(json.dumps(checksum), encoding="utf-8")
    beside.replace(commits[-1].with_suffix(".crc"))


def _actions(commits: list[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    for commit in commits:
        for line in commit.read_text(encoding="utf-8").splitlines():
            yield from json.loads(line).items()
