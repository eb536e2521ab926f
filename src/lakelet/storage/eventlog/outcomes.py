"""How the flows of one update ended, as the event log has it. No Spark."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakelet.files.delta_rs import open_table
from lakelet.files.paths import AnyPath
from lakelet.storage.eventlog.failures import coded
from lakelet.storage.eventlog.states import WORST_FIRST, EventType, FlowState, UpdateState

_DONE = (*(state for state in FlowState if state.is_done), FlowState.EXCLUDED)


@dataclass(frozen=True)
class Outcomes:
    """The last status of each flow of an update, by dataset (key) and flow. `ended`: the update's own end was reported.

    A status is a `FlowState`, or the text of one that only a newer Lakelet knows, which counts as not done.
    """

    statuses: Mapping[str, Mapping[str, FlowState | str]] = field(default_factory=dict)
    ended: bool = True

    @property
    def states(self) -> Mapping[str, FlowState | str]:
        """The state of each dataset: of several flows the first in `WORST_FIRST`; one that only a newer Lakelet knows comes first."""

        def weight(state: FlowState | str) -> int:
            return WORST_FIRST.index(state) if isinstance(state, FlowState) else -1

        return {key: min(flows.values(), key=weight) for key, flows in self.statuses.items() if flows}

    @property
    def excluded(self) -> frozenset[str]:
        """Datasets that took no part."""
        return frozenset(key for key, flows in self.statuses.items() if set(flows.values()) == {FlowState.EXCLUDED})

    @property
    def not_done(self) -> frozenset[str]:
        """Datasets with a flow that failed, was skipped or stopped, or did not get to its end."""
        return frozenset(k for k, f in self.statuses.items() if not all(s in _DONE for s in f.values()))


def mark_of(state: FlowState | str) -> str:
    """Return `good`, `warning` or `bad` for a state, "" for one that is none of these."""
    if not isinstance(state, FlowState) or state is FlowState.EXCLUDED:
        return ""
    if state is FlowState.FAILED:
        return "bad"
    return "good" if state.is_done else "warning"


def outcomes(path: AnyPath, update_id: str) -> Outcomes:
    """Look up one update in the log at `path`; an update without events there did not end."""
    import pyarrow as pa
    from deltalake import QueryBuilder
    from deltalake.exceptions import TableNotFoundError

    try:
        with coded(path, passing=TableNotFoundError):
            table = open_table(path)
    except TableNotFoundError:
        return Outcomes(ended=False)
    types = ", ".join(f"'{one}'" for one in (EventType.FLOW_PROGRESS, EventType.UPDATE_PROGRESS))
    sql = f"""
        SELECT event_type, details, coalesce(origin['dataset_name'], origin['sink_name']) AS dataset, origin['flow_name'] AS flow
        FROM events WHERE origin['update_id'] = '{uuid.UUID(update_id)}' AND event_type IN ({types})
        ORDER BY sequence['data_plane_id']['seq_no']"""
    with coded(path):
        rows = pa.RecordBatchReader.from_stream(QueryBuilder().register("events", table).execute(sql)).read_all().to_pylist()
    statuses: dict[str, dict[str, FlowState | str]] = {}
    ended = False
    for row in rows:
        body = json.loads(row["details"])[row["event_type"]]
        if row["event_type"] == EventType.FLOW_PROGRESS:
            statuses.setdefault(row["dataset"].lower(), {})[row["flow"]] = FlowState.read(body["status"])
        else:
            ended = body["state"] in UpdateState.ends()
    return Outcomes(statuses, ended)
