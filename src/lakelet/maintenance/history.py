"""Which files a table got since it was sorted, from its log. No Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from lakelet.maintenance.layout import How
from lakelet.storage.delta.tables import TableLog

_PARAMETER = {How.ZORDER: "zOrderBy", How.CLUSTER: "clusterBy"}


def unsorted(log: TableLog, how: How, columns: Sequence[str]) -> frozenset[str] | None:
    """Paths of the files that were written since OPTIMIZE sorted the table like that; None if its log does not say that it ever was."""
    found: set[str] = set()
    for version in range(log.version(), -1, -1):
        try:
            actions = log.actions(version)
        except FileNotFoundError:
            return None
        commit: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        if commit.get("operation") == "OPTIMIZE":
            sorted_by = json.loads((commit.get("operationParameters") or {}).get(_PARAMETER[how]) or "[]")
            if [str(name).lower() for name in sorted_by] == [name.lower() for name in columns]:
                return frozenset(found)
        found |= {unquote(action["add"]["path"]) for action in actions if "add" in action}
    return None
