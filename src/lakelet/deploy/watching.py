"""Updates of a deployed pipeline: started once, followed by their events, stopped."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError
from lakelet.base.text_enum import TextEnum
from lakelet.deploy.client import Unanswered
from lakelet.deploy.events import Row, body_of, error_of, json_of, time_of, update_of
from lakelet.storage.eventlog.fold import reduce_events
from lakelet.storage.eventlog.states import EventType, UpdateState

if TYPE_CHECKING:
    from lakelet.deploy.client import Client

PAGE = 250
"""Events of one answer; the most that a workspace gives."""
_AGAIN = ("RETRY_ON_FAILURE", "SCHEMA_CHANGE")
"""Causes of updates that the workspace starts after another one that failed."""
OVERLAP = timedelta(seconds=30)
"""Events are asked for again that far back: the workspace lists some later than their time."""


@dataclass(frozen=True)
class Pacing:
    """Seconds between two looks at an update.

    Attributes:
        first: after a look that found something new.
        longest: the pauses between looks that find nothing grow up to this.
        late_events: how long the last events are waited for after the update has ended.
        looks: pauses between looks for an update whose start got no answer.
        recovery: how long a pipeline that is recovering may take until it starts another update.
    """

    first: float = 0.5
    longest: float = 10
    late_events: float = 20
    looks: tuple[float, ...] = (0.5, 1, 2, 4)
    recovery: float = 900
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class UpdateRequest:
    """What an update should do: names of datasets as the workspace knows them, flows to read their sources again, parameters, conditions
    of REPLACE WHERE flows."""

    select: tuple[str, ...] = ()
    full_refresh: tuple[str, ...] = ()
    full_refresh_all: bool = False
    reset_checkpoint: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    replace_where: tuple[tuple[str, str], ...] = ()

    def arguments(self) -> dict[str, Any]:
        """The arguments of the SDK's `start_update`; what is not asked for is not sent."""
        wanted: dict[str, Any] = {
            "full_refresh": self.full_refresh_all,
            "full_refresh_selection": list(self.full_refresh),
            "refresh_selection": list(self.select),
            "reset_checkpoint_selection": list(self.reset_checkpoint),
            "parameters": dict(self.parameters),
            "replace_where_overrides": _overrides(self.replace_where),
        }
        return {name: value for name, value in wanted.items() if value}


def _overrides(conditions: Sequence[tuple[str, str]]) -> list[Any]:
    """Conditions of REPLACE WHERE flows as the SDK takes them. Raises USAGE for a version of it that does not."""
    if not conditions:
        return []
    from databricks.sdk.service import pipelines

    override = getattr(pipelines, "ReplaceWhereOverride", None)
    if override is None:
        what = "the databricks-sdk that is installed cannot ask for --replace-where"
        raise LakeletError("USAGE", what, todo="Install a newer one: pip install --upgrade databricks-sdk")
    return [override(flow_name=flow, predicate_override=condition) for flow, condition in conditions]


@dataclass(frozen=True)
class RemoteUpdate:
    """One update as the workspace lists it. `state`: its word, also one that Lakelet does not know."""

    id: str
    state: str
    cause: str = ""
    created: datetime | None = None
    said: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def has_ended(self) -> bool:
        return self.state in UpdateState.ends()

    def asks_for(self, request: UpdateRequest) -> bool:
        """Whether it could be the one that this request started."""
        wanted = request.arguments()
        lists = ("refresh_selection", "full_refresh_selection")
        same = all(sorted(self.said.get(name) or ()) == sorted(wanted.get(name) or ()) for name in lists)
        return same and bool(self.said.get("full_refresh")) == request.full_refresh_all and not self.said.get("validate_only")


@dataclass(frozen=True)
class Ended:
    """How an update ended; `error` is what its last event says of the failure."""

    update_id: str
    state: UpdateState
    error: LakeletError | None = None


def updates(client: Client, pipeline_id: str, most: int = 25) -> list[RemoteUpdate]:
    """Return the newest updates of a pipeline, the newest first."""
    answer = _get(client, f"/api/2.0/pipelines/{pipeline_id}/updates", {"max_results": most})
    return [_update(one) for one in answer.get("updates") or ()]


def update(client: Client, pipeline_id: str, update_id: str) -> RemoteUpdate:
    """Return one update. Raises WORKSPACE_NOT_FOUND."""
    return _update(_get(client, f"/api/2.0/pipelines/{pipeline_id}/updates/{update_id}", {}).get("update") or {})


def start(client: Client, pipeline_id: str, request: UpdateRequest, before: Collection[str], *, pacing: Pacing | None = None) -> str:
    """Start one update and return its ID; never two, whatever happens to the connection.

    Where the answer was lost, the update is looked for among those that are not in `before` (IDs of the updates that were there) before
    it is asked for again. Raises WORKSPACE_CONFLICT while another update is active, WORKSPACE_UNANSWERED when no look helps.
    """
    pacing = pacing or Pacing()
    doubt: Unanswered | None = None
    for _ in range(3):
        try:
            answer = client.once(lambda sdk: sdk.pipelines.start_update(pipeline_id, **request.arguments()))
            return str(answer.update_id)
        except Unanswered as lost:
            doubt = lost
        except LakeletError as refused:
            if refused.code != "WORKSPACE_CONFLICT":
                raise
            found = started(client, pipeline_id, request, before) if doubt else None
            if found:
                return found
            raise _active(client, pipeline_id, refused) from refused
        for pause in pacing.looks:
            found = started(client, pipeline_id, request, before)
            if found:
                return found
            pacing.sleep(pause)
    assert doubt is not None
    raise doubt


def started(client: Client, pipeline_id: str, request: UpdateRequest, before: Collection[str]) -> str | None:
    """The ID of the update that this request started; None where there is none among those that are not in `before`."""
    new = [one for one in updates(client, pipeline_id) if one.id not in before and one.asks_for(request)]
    return new[-1].id if new else None


def follow(client: Client, pipeline_id: str, update_id: str, on_row: Callable[[Row], None], *, pacing: Pacing | None = None) -> Ended:
    """Hand each event of an update to `on_row`, once and in order, until the update has ended, and return how it ended."""
    pacing = pacing or Pacing()
    pause, ended_since, error, failed = pacing.first, None, None, False
    tail = EventTail(client, pipeline_id, since=update(client, pipeline_id, update_id).created)
    while True:
        now = update(client, pipeline_id, update_id)  # before the events: those of the end are then there
        rows = [row for row in tail.new() if update_of(row) == update_id]
        for row in rows:
            on_row(row)
            if row.get("event_type") == EventType.UPDATE_PROGRESS and body_of(row).get("state") in UpdateState.ends():
                failed, error = True, error_of(row)
        if now.has_ended:
            ended_since = time.monotonic() if ended_since is None else ended_since
            if failed or time.monotonic() - ended_since >= pacing.late_events:
                return Ended(update_id, UpdateState(now.state), error)
        pause = pacing.first if rows else min(pacing.longest, pause * 1.5)
        pacing.sleep(pause)


def successor(client: Client, pipeline_id: str, update_id: str, *, pacing: Pacing | None = None) -> str | None:
    """The update by which the workspace tries a failed one again; None where it leaves it at that.

    In production mode Databricks starts another update after a failure or a change of schema, by itself.
    """
    pacing = pacing or Pacing()
    deadline = time.monotonic() + pacing.recovery
    pause = pacing.first
    while True:
        state = _get(client, f"/api/2.0/pipelines/{pipeline_id}", {}).get("state")  # before the updates: a new one is then there
        newer = list(itertools.takewhile(lambda one: one.id != update_id, updates(client, pipeline_id)))
        again = [one.id for one in newer if one.cause in _AGAIN]
        if again:
            return again[-1]
        if newer or state in frozenset(PipelineState) or time.monotonic() > deadline:
            return None
        pacing.sleep(pause)
        pause = min(pacing.longest, pause * 1.5)


def stop(client: Client, pipeline_id: str, update_id: str | None = None) -> RemoteUpdate | None:
    """Ask the workspace to stop the active update (only if it is `update_id`, where given) and return it; None without one."""
    found = next((one for one in updates(client, pipeline_id) if not one.has_ended), None)
    if found is None or (update_id is not None and found.id != update_id):
        return None
    client.sdk.pipelines.stop(pipeline_id)
    return found


def unfinished(rows: Iterator[Row]) -> tuple[str, ...]:
    """The datasets that an update did not finish, by its events: failed, skipped because of that, or stopped."""
    return tuple(name for update in reduce_events(json_of(row) for row in rows).updates for name in update.unfinished)


class EventTail:
    """The events of a pipeline as they come, each once."""

    def __init__(self, client: Client, pipeline_id: str, *, since: datetime | None) -> None:
        self._client, self._pipeline = client, pipeline_id
        self._since = since
        self._seen: set[str] = set()

    def new(self) -> list[Row]:
        """The events that no earlier call gave, in the order of their times."""
        found = []
        for row in events(self._client, self._pipeline, since=self._since and self._since - OVERLAP):
            if row.get("id") not in self._seen:
                self._seen.add(str(row.get("id")))
                found.append(row)
        if found:
            newest = max(time_of(row) for row in found)
            self._since = newest if self._since is None else max(newest, self._since)
        return found


def events(client: Client, pipeline_id: str, *, since: datetime | None = None) -> Iterator[Row]:
    """Yield the events of a pipeline, `details` included, the oldest first; those since a time, where it is given."""
    query: dict[str, Any] = {"max_results": PAGE, "order_by": ["timestamp asc"]}
    if since is not None:
        query["filter"] = f"timestamp >= '{since.astimezone(timezone.utc).isoformat(timespec='milliseconds').replace('+00:00', 'Z')}'"
    while True:
        answer = _get(client, f"/api/2.0/pipelines/{pipeline_id}/events", query)
        yield from answer.get("events") or ()
        if not answer.get("next_page_token"):
            return
        query["page_token"] = answer["next_page_token"]


def _active(client: Client, pipeline_id: str, refused: LakeletError) -> LakeletError:
    found = next((one for one in updates(client, pipeline_id) if not one.has_ended), None)
    if found is None:
        return refused
    what = f"update {found.id[:6]} of this pipeline is active already ({found.state})"
    todo = f"Follow it: lakelet events --remote --update {found.id[:6]}\nStop it: lakelet stop --remote"
    return LakeletError("WORKSPACE_CONFLICT", what, why=refused.why, todo=todo)


def _get(client: Client, path: str, query: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer as it is: the SDK's own types lack fields, `details` of events among them."""
    answer = client.sdk.api_client.do("GET", path, query=dict(query), headers={"Accept": "application/json"})
    return answer if isinstance(answer, Mapping) else {}


def _update(said: Mapping[str, Any]) -> RemoteUpdate:
    created = said.get("creation_time")
    moment = None if created is None else datetime.fromtimestamp(int(created) / 1000, timezone.utc)
    return RemoteUpdate(str(said.get("update_id")), str(said.get("state") or ""), str(said.get("cause") or ""), moment, dict(said))


# --- states -------------------------------------------------------------------------------------------------------------------------------


class PipelineState(TextEnum):
    """States of a pipeline in a workspace that matter here: in these it starts nothing by itself."""

    IDLE = "IDLE"
    FAILED = "FAILED"
    DELETED = "DELETED"
