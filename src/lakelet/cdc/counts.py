"""What one batch of changes did to the rows of its target, and how its commit keeps that (EL-7). No Spark.

A pass that writes every row again counts them before its commit. A MERGE knows only afterwards: its commit keeps how many actions went to
the state, Delta adds its own metrics, and the difference is read off the commit, by the update itself or by the one after a death.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

BURY, CLEAR, TRUNCATE = "bury", "clear", "truncate"
"""Actions on the state of a table that readers do not see: a tombstone set, one removed, a truncate remembered."""

_TO_STATE = "to_state"
_FACTS = "lakelet"


@dataclass(frozen=True)
class Applied:
    """What a batch did: rows of the target inserted or updated, and deleted; rows written for it, moved ones included."""

    upserted: int
    deleted: int
    rewritten: int

    def facts(self) -> dict[str, int]:
        """The counts under the names that commits and events give them."""
        return {"rows": self.upserted, "upserted": self.upserted, "deleted": self.deleted, "rewritten": self.rewritten}


def counted(kept: Mapping[str, Any], done: Applied) -> dict[str, Any]:
    """What a commit keeps, with what its batch did."""
    return {_FACTS: {**kept.get(_FACTS, {}), **done.facts()}}


def to_be_counted(kept: Mapping[str, Any], to_state: Mapping[str, int]) -> dict[str, Any]:
    """What the commit of a MERGE keeps. `to_state`: how many of its actions are of the kinds BURY, CLEAR and TRUNCATE."""
    return {_FACTS: {**kept.get(_FACTS, {}), _TO_STATE: dict(to_state)}}


def of_merge(info: Mapping[str, Any]) -> Applied | None:
    """What a MERGE did to visible rows, by its `commitInfo`; None for another commit. Actions on the state always take effect."""
    kept = kept_by(info)
    if kept is None or _TO_STATE not in kept:
        return None
    found, to_state = info.get("operationMetrics", {}), kept[_TO_STATE]
    number = {name: int(found.get(f"num{name}", 0)) for name in _METRICS}
    hidden = to_state.get(BURY, 0) + to_state.get(TRUNCATE, 0)
    upserted = number["TargetRowsInserted"] + number["TargetRowsUpdated"] - hidden
    return Applied(upserted, number["TargetRowsDeleted"] - to_state.get(CLEAR, 0), number["OutputRows"])


_METRICS = ("TargetRowsInserted", "TargetRowsUpdated", "TargetRowsDeleted", "OutputRows")


def complete(info: Mapping[str, Any]) -> dict[str, Any]:
    """A `commitInfo` whose facts tell what its MERGE did, as those of other commits do; any other as it is."""
    done, kept = of_merge(info), kept_by(info)
    if done is None or kept is None:
        return dict(info)
    facts = {name: value for name, value in kept.items() if name != _TO_STATE}
    return {**info, "userMetadata": json.dumps({_FACTS: {**facts, **done.facts()}})}


def completed(facts: Mapping[str, Any], actions: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The facts of a commit with what its MERGE did, if it was one."""
    if _TO_STATE not in facts:
        return facts
    found = next((kept_by(complete(action["commitInfo"])) for action in actions if "commitInfo" in action), None)
    return found or facts


def kept_by(info: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What a commit of ours keeps; None for one of others."""
    try:
        kept = json.loads(info.get("userMetadata") or "null")
    except ValueError:
        return None
    facts = kept.get(_FACTS) if isinstance(kept, dict) else None
    return facts if isinstance(facts, dict) else None
