"""Finds all files of a table in the commit that replaced its whole content. No Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

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
