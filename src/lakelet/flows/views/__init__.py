"""Materialized views: decide whether anything changed, compute, commit.

In: the task of a view. Out: a decision by fingerprint, data versions and logs, then one commit. It has the whole view, rows that are added
or replaced, or the partitions that new rows of its input belong to (UP-8). docs/semantics/view-refreshes.md has the rules.
"""

from lakelet.flows.views.deciding import decide_view
from lakelet.flows.views.running import run_view
from lakelet.flows.views.versions import view_state

__all__ = ["decide_view", "run_view", "view_state"]
