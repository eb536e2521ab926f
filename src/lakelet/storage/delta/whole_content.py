"""What a commit that replaced a table's whole content says of its files. No Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakelet.storage.delta.batch_metrics import KEY


def whole_content(text: str) -> list[str] | None:
    """The `add` actions of a commit that removed every file the table had before, as lines of its log file `text`; None for another commit.

    Only Lakelet's own commits count, and only those to tables without partitions: others may have left files in place.
    """
    actions = [(line, json.loads(line)) for line in text.splitlines()]
    info = next((action["commitInfo"] for _, action in actions if "commitInfo" in action), None)
    files = [action[kind] for _, action in actions for kind in ("add", "remove") if kind in action]
    if info is None or not _replaces(info) or not files or any(file.get("partitionValues") != {} for file in files):
        return None
    return [line for line, action in actions if "add" in action]


def _replaces(info: Mapping[str, Any]) -> bool:
    """Whether a commit was made by `Transaction.commit(replace=True)` with the counts of a batch."""
    if info.get("operation") != "WRITE" or info.get("operationParameters", {}).get("mode") != "Overwrite":
        return False
    try:
        noted = json.loads(info.get("userMetadata") or "null")
    except ValueError:
        return False
    return isinstance(noted, dict) and KEY in noted
