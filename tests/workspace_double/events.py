"""Events of pipelines in the form of Databricks, and the listing of them (facts 1.5 and 4)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.workspace_double.clock import iso
from tests.workspace_double.identity import WORKSPACE_ID
from tests.workspace_double.scripts import Event
from tests.workspace_double.wire import Answer, Call, invalid, page

if TYPE_CHECKING:
    from tests.workspace_double.workspace import Workspace

_CONDITION = re.compile(r"(level|id|timestamp)\s*(=|<>|>=|<=|>|<)\s*'([^']*)'", re.IGNORECASE)
_MEMBER = re.compile(r"(level|id|timestamp)\s+in\s*\(([^)]*)\)", re.IGNORECASE)
_TESTS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
}


class Events:
    """Events by pipeline, in the order in which they were written. The event is what the REST answer holds, `details` included."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.by_pipeline: dict[str, list[dict[str, Any]]] = {}
        self._numbers = iter(range(1, 10**9))

    def add(self, pipeline_id: str, name: str, event: Event, update_id: str | None = None) -> None:
        """Write one event. Fields as in the table of the documentation page "Pipeline event log schema"."""
        moment, number = self._workspace.clock.now(), next(self._numbers)
        origin: dict[str, Any] = {"cloud": "AWS", "region": "us-west-2", "org_id": int(WORKSPACE_ID), "pipeline_id": pipeline_id}
        origin |= {"pipeline_type": "WORKSPACE", "pipeline_name": name}
        if update_id:
            origin |= {"update_id": update_id, "request_id": update_id}
        if event.dataset:
            origin |= {"dataset_name": event.dataset, "table_name": event.dataset.rpartition(".")[2]}
        if event.flow:
            origin |= {"flow_name": event.flow, "flow_id": str(uuid.uuid5(uuid.NAMESPACE_OID, pipeline_id + event.flow))}
        written: dict[str, Any] = {"id": str(uuid.uuid4()), "sequence": {"data_plane_id": {"instance": "execution", "seq_no": number}}}
        written |= {"origin": origin, "timestamp": iso(moment), "message": event.message, "level": event.level}
        if event.error:
            written["error"] = event.error
        written |= {"details": event.details, "event_type": event.type, "maturity_level": event.maturity}
        self.by_pipeline.setdefault(pipeline_id, []).append(written)

    def answer(self, call: Call, pipeline_id: str) -> Answer:
        """One page: the newest first by default, filters on `level`, `id` and `timestamp` only, at most 250 of them (facts 1.5).

        Whether METRICS are among them is not certain: the documentation page "Pipeline event log schema" calls them "stored only in the
        Delta table", public code reads their numbers from this answer. `Workspace.metrics_over_rest` chooses.
        """
        orders = call.lists.get("order_by") or ["timestamp desc"]
        if len(orders) != 1 or orders[0] not in ("timestamp asc", "timestamp desc"):
            raise invalid(f"Invalid order_by: {orders[0]!r}; supported are 'timestamp asc' and 'timestamp desc'")
        test = condition(call.query.get("filter", ""))
        told = self.by_pipeline.get(pipeline_id, [])
        hidden = () if self._workspace.metrics_over_rest else ("METRICS",)
        chosen = [event for event in told if event["level"] not in hidden and test(event)]
        if orders[0] == "timestamp desc":
            chosen.reverse()
        shown, after, before = page(chosen, call, size_key="max_results", default=self._workspace.events_per_page, most=250)
        tokens = {"next_page_token": after, "prev_page_token": before}
        return Answer({"events": shown} | {key: token for key, token in tokens.items() if token})


def condition(text: str) -> Callable[[dict[str, Any]], bool]:
    """A filter of events as a test on one: comparisons and `in`, joined by AND. Raises ApiError for anything else."""
    tests = [_one(part.strip()) for part in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE)] if text.strip() else []
    return lambda event: all(test(event) for test in tests)


def _one(part: str) -> Callable[[dict[str, Any]], bool]:
    if match := _CONDITION.fullmatch(part):
        key, compare, value = match[1].lower(), _TESTS[match[2]], match[3]
        return lambda event: compare(str(event[key]), value)
    if match := _MEMBER.fullmatch(part):
        key, values = match[1].lower(), re.findall(r"'([^']*)'", match[2])
        return lambda event: event[key] in values
    raise invalid(f"Invalid filter: {part!r}")
