"""Counts of one batch of changes: rows of the target that it changed, and how its commit stores them (EL-7). No Spark.

A rewrite of the table counts the rows before its commit. The counts of a MERGE are known only afterwards: its commit stores how many
actions went to the state, and Delta adds its metrics. The update, or the next one after a crash, computes the difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from lakelet.storage.delta.batch_metrics import KEY, BatchMetrics, RowChanges

BURY, CLEAR, TRUNCATE = "bury", "clear", "truncate"
"""Actions on the state of a table that readers do not see: a tombstone set, one removed, a truncate remembered."""

_TO_STATE = "to_state"


def to_be_counted(metrics: BatchMetrics, to_state: Mapping[str, int]) -> dict[str, Any]:
    """The user metadata of the commit of a MERGE. `to_state`: how many of its actions are of the kinds BURY, CLEAR and TRUNCATE."""
    return {KEY: {**metrics.as_json(), _TO_STATE: dict(to_state)}}


def of_merge(info: Mapping[str, Any]) -> RowChanges | None:
    """Return the counts of a MERGE from its `commitInfo`; None for another commit. Actions on the state always take effect."""
    kept = kept_by(info)
    if kept is None or _TO_STATE not in kept:
        return None
    found, to_state = info.get("operationMetrics", {}), kept[_TO_STATE]
    number = {name: int(found.get(f"num{name}", 0)) for name in _METRICS}
    hidden = to_state.get(BURY, 0) + to_state.get(TRUNCATE, 0)
    upserted = number["TargetRowsInserted"] + number["TargetRowsUpdated"] - hidden
    written = found.get("numTargetBytesAdded")
    deleted = number["TargetRowsDeleted"] - to_state.get(CLEAR, 0)
    return RowChanges(upserted, deleted, number["OutputRows"], None if written is None else int(written))


_METRICS = ("TargetRowsInserted", "TargetRowsUpdated", "TargetRowsDeleted", "OutputRows")


def complete(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return a `commitInfo` with the counts of its MERGE among its facts; that of another commit unchanged."""
    done, kept = of_merge(info), kept_by(info)
    if done is None or kept is None:
        return dict(info)
    facts = {name: value for name, value in kept.items() if name != _TO_STATE}
    return {**info, "userMetadata": json.dumps({KEY: {**facts, **done.as_json()}})}


def completed(facts: Mapping[str, Any], actions: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the facts of a commit, with counts if it was a MERGE."""
    if _TO_STATE not in facts:
        return facts
    found = next((kept_by(complete(action["commitInfo"])) for action in actions if "commitInfo" in action), None)
    return found or facts


def kept_by(info: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the facts of Lakelet's commit; None for a foreign commit."""
    try:
        kept = json.loads(info.get("userMetadata") or "null")
    except ValueError:
        return None
    facts = kept.get(KEY) if isinstance(kept, dict) else None
    return facts if isinstance(facts, dict) else None
