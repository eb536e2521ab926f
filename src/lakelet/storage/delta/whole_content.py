"""Finds all files of a table in the commit that replaced its whole content. No Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakelet.storage.delta.batch_metrics import KEY


def whole_content(text: str) -> list[str] | None:
    """Return the `add` actions of a commit that removed all earlier files, as lines of its log file `text`; None for other commits.

    Only Lakelet's own commits to tables without partitions are considered: others may have kept files.
    """
    actions = [(line, json.loads(line)) for line in text.splitlines()]
    info = next((action["commitInfo"] for _, action in actions if "commitInfo" in action), None)
    files = [action[kind] for _, action in actions for kind in ("add", "remove") if kind in action]
    if info is None or not _replaces(info) or not files or any(file.get("partitionValues") != {} for file in files):
        return None
    return [line for line, action in actions if "add" in action]


def _replaces(info: Mapping[str, Any]) -> bool:
    """Return whether `Transaction.commit(replace=True)` made a commit, with the counts of a batch."""
    if info.get("operation") != "WRITE" or info.get("operationParameters", {}).get("mode") != "Overwrite":
        return False
    try:
        noted = json.loads(info.get("userMetadata") or "null")
    except ValueError:
        return False
    return isinstance(noted, dict) and KEY in noted
