"""Updates of a deployed pipeline: started once, followed by their events, stopped; the events as values of the local event log.

What one side does not have is left out, never made up.
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import CODES, ExitCode, LakeletError
from lakelet.base.redaction import REDACTED, is_secret, redacted_values
from lakelet.base.text import TextEnum, moment_of
from lakelet.deploy.connection import UnansweredRequest
from lakelet.deploy.resource_requests import request
from lakelet.storage.eventlog.events import Event, Origin
from lakelet.storage.eventlog.fold import reduce_events
from lakelet.storage.eventlog.states import EventType, FlowState, Level, UpdateState

if TYPE_CHECKING:
    from lakelet.deploy.connection import Client


PAGE = 250
"""Events of one answer; the most that a workspace gives."""
_CAUSES_OF_RETRIES = ("RETRY_ON_FAILURE", "SCHEMA_CHANGE")
"""Causes of updates that the workspace starts after another one that failed."""
OVERLAP = timedelta(seconds=30)
"""Events are asked for again that far back: the workspace lists some later than their time."""


@dataclass(frozen=True)
class PollingIntervals:
    """Seconds between two polls of an update.

    Attributes:
        first: after a poll that found something new.
        longest: the pauses between polls that find nothing grow up to this.
        late_events: how long the last events are waited for after the update has ended.
        find_pauses: pauses between two searches for an update whose start got no answer.
        recovery: how long a pipeline that is recovering may take until it starts another update.
    """

    first: float = 0.5
    longest: float = 10
    late_events: float = 20
    find_pauses: tuple[float, ...] = (0.5, 1, 2, 4)
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
class RemoteUpdateResult:
    """How an update ended; `error` is what its last event says of the failure."""

    update_id: str
    state: UpdateState
    error: LakeletError | None = None


def updates(client: Client, pipeline_id: str, most: int = 25) -> list[RemoteUpdate]:
    """Return the newest updates of a pipeline, the newest first."""
    answer = request(client.sdk, "GET", f"/api/2.0/pipelines/{pipeline_id}/updates", {"max_results": most})
    return [_update(one) for one in answer.get("updates") or ()]


def update(client: Client, pipeline_id: str, update_id: str) -> RemoteUpdate:
    """Return one update. Raises WORKSPACE_NOT_FOUND."""
    return _update(request(client.sdk, "GET", f"/api/2.0/pipelines/{pipeline_id}/updates/{update_id}", {}).get("update") or {})


def start(
    client: Client, pipeline_id: str, request: UpdateRequest, before: Collection[str], *, pacing: PollingIntervals | None = None
) -> str:
    """Start one update and return its ID; never two, whatever happens to the connection.

    Where the answer was lost, the update is searched for among those that are not in `before` (IDs of the updates that were there) before
    it is asked for again. Raises WORKSPACE_CONFLICT while another update is active, WORKSPACE_UNANSWERED when it is not found.
    """
    pacing = pacing or PollingIntervals()
    unanswered: UnansweredRequest | None = None
    for _ in range(3):
        try:
            answer = client.once(lambda sdk: sdk.pipelines.start_update(pipeline_id, **request.arguments()))
            return str(answer.update_id)
        except UnansweredRequest as lost:
            unanswered = lost
        except LakeletError as refused:
            if refused.code != "WORKSPACE_CONFLICT":
                raise
            found = started(client, pipeline_id, request, before) if unanswered else None
            if found:
                return found
            raise _active_update_error(client, pipeline_id, refused) from refused
        for pause in pacing.find_pauses:
            found = started(client, pipeline_id, request, before)
            if found:
                return found
            pacing.sleep(pause)
    assert unanswered is not None
    raise unanswered


def started(client: Client, pipeline_id: str, request: UpdateRequest, before: Collection[str]) -> str | None:
    """The ID of the update that this request started; None where there is none among those that are not in `before`."""
    new = [one for one in updates(client, pipeline_id) if one.id not in before and one.asks_for(request)]
    return new[-1].id if new else None


def follow(
    client: Client, pipeline_id: str, update_id: str, on_row: Callable[[Row], None], *, pacing: PollingIntervals | None = None
) -> RemoteUpdateResult:
    """Hand each event of an update to `on_row`, once and in order, until the update has ended, and return how it ended."""
    pacing = pacing or PollingIntervals()
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
                return RemoteUpdateResult(update_id, UpdateState(now.state), error)
        pause = pacing.first if rows else min(pacing.longest, pause * 1.5)
        pacing.sleep(pause)


def successor(client: Client, pipeline_id: str, update_id: str, *, pacing: PollingIntervals | None = None) -> str | None:
    """The update by which the workspace tries a failed one again; None where it leaves it at that.

    In production mode Databricks starts another update after a failure or a change of schema, by itself.
    """
    pacing = pacing or PollingIntervals()
    deadline = time.monotonic() + pacing.recovery
    pause = pacing.first
    while True:
        state = request(client.sdk, "GET", f"/api/2.0/pipelines/{pipeline_id}", {}).get(
            "state"
        )  # before the updates: a new one is then there
        newer = list(itertools.takewhile(lambda one: one.id != update_id, updates(client, pipeline_id)))
        again = [one.id for one in newer if one.cause in _CAUSES_OF_RETRIES]
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
        answer = request(client.sdk, "GET", f"/api/2.0/pipelines/{pipeline_id}/events", query)
        yield from answer.get("events") or ()
        if not answer.get("next_page_token"):
            return
        query["page_token"] = answer["next_page_token"]


def _active_update_error(client: Client, pipeline_id: str, refused: LakeletError) -> LakeletError:
    found = next((one for one in updates(client, pipeline_id) if not one.has_ended), None)
    if found is None:
        return refused
    what = f"update {found.id[:6]} of this pipeline is active already ({found.state})"
    todo = f"Follow it: lakelet events --remote --update {found.id[:6]}\nStop it: lakelet stop --remote"
    return LakeletError("WORKSPACE_CONFLICT", what, why=refused.why, todo=todo)


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


Row = Mapping[str, Any]
"""One event as the workspace answers it: `GET /api/2.0/pipelines/{id}/events`, `details` included."""

_CODE_BEFORE_TEXT = re.compile(r"^\[([A-Z][A-Z0-9_]+)(?:\.[A-Z0-9_.]+)?\]\s*")
_ALARMS = (Level.WARN, Level.ERROR)


def event_of(row: Row) -> Event | None:
    """Return the event for the listeners of an update, None for one that says nothing to them.

    A warning or an error of a type that no update here has becomes a `notice` with its text.
    """
    level, message = _level_of(row), str(row.get("message") or "")
    kind, body = str(row.get("event_type")), body_of(row)
    if kind not in EventType.__members__.values() or kind == EventType.MAINTENANCE_PROGRESS:  # which belongs to no update
        if level not in _ALARMS:
            return None
        kind, level, body = EventType.NOTICE, Level.WARN, {"text": message}
    return Event(
        EventType(kind),
        message,
        _origin_of(row.get("origin") or {}),
        {kind: _with_known_states(kind, body)},
        level=level,
        error=error_of(row),
        timestamp=time_of(row),
        id=str(row.get("id")),
        sequence=sequence_of(row),
    )


def json_of(row: Row) -> dict[str, Any]:
    """The event as plain JSON values, in the form of `lakelet events --json`: everything that the workspace said, without secrets."""
    kind = str(row.get("event_type"))
    found: dict[str, Any] = redacted_values(
        {
            "id": row.get("id"),
            "sequence": sequence_of(row),
            "timestamp": time_of(row).isoformat().replace("+00:00", "Z"),
            "event_type": kind,
            "level": row.get("level"),
            "message": row.get("message") or "",
            "maturity_level": row.get("maturity_level"),
            "origin": {name: value for name, value in (row.get("origin") or {}).items() if value is not None},
            "details": {kind: body_of(row)},
            "error": row.get("error"),
        }
    )
    return found


def error_of(row: Row) -> LakeletError | None:
    """The error of an event: Databricks' own text, under Lakelet's code where the text begins with one that Lakelet has."""
    exceptions = (row.get("error") or {}).get("exceptions") or ()
    if not exceptions:
        return None
    first = exceptions[0]
    text = str(first.get("message") or row.get("message") or "").strip()
    named = _CODE_BEFORE_TEXT.match(text)
    code = named[1] if named else str(first.get("class_name") or "")
    if code in CODES and CODES[code].exit_code is ExitCode.FAILED:
        text = text[named.end() :] if named else text
    else:
        code = "REMOTE_FAILED"
    what, *more = text.splitlines() or [str(first.get("class_name") or "no text")]
    causes = [f"{e.get('class_name')}: {e.get('message')}" for e in exceptions[1:3]]
    kind = [str(first["class_name"])] if first.get("class_name") and code == "REMOTE_FAILED" else []
    why = "\n".join([*more[:8], *kind, *causes])
    return LakeletError(code, what, dataset=_origin_of(row.get("origin") or {}).target_name, why=why or None)


def body_of(row: Row) -> Mapping[str, Any]:
    """The part of the event's `details` below its type."""
    details = row.get("details") or {}
    found = (json.loads(details) if isinstance(details, str) else details).get(row.get("event_type"))
    return _without_secrets(found) if isinstance(found, Mapping) else {}


def _without_secrets(value: Any) -> Any:
    """The value without texts under keys that sound like secrets: the configuration of a pipeline stands in its events."""
    if isinstance(value, Mapping):
        return {key: REDACTED if isinstance(item, str) and is_secret(str(key)) else _without_secrets(item) for key, item in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value


def update_of(row: Row) -> str:
    """The update that an event belongs to; empty for one of the pipeline itself."""
    return str((row.get("origin") or {}).get("update_id") or "")


def time_of(row: Row) -> datetime:
    """When it happened, in UTC."""
    moment = moment_of(str(row["timestamp"]))
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def sequence_of(row: Row) -> int:
    """Its number within its update, 0 where it has none."""
    sequence = row.get("sequence") or 0
    return int((sequence.get("data_plane_id") or {}).get("seq_no") or 0) if isinstance(sequence, Mapping) else int(sequence)


def _origin_of(origin: Mapping[str, Any]) -> Origin:
    def text(name: str) -> str | None:
        return None if origin.get(name) is None else str(origin[name])

    batch = origin.get("batch_id")
    return Origin(
        text("pipeline_id") or "",
        text("pipeline_name") or "",
        text("update_id") or "",
        text("dataset_name"),
        text("flow_name"),
        text("flow_id"),
        None if batch is None else int(batch),
        text("sink_name"),
    )


def _level_of(row: Row) -> Level:
    return Level(row["level"]) if row.get("level") in Level.__members__.values() else Level.INFO


def _with_known_states(kind: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The body with states that Lakelet has words for: of another one of an update only the message is used, a flow in one is at work."""
    if kind == EventType.UPDATE_PROGRESS and body.get("state") not in UpdateState.__members__.values():
        return {name: value for name, value in body.items() if name != "state"}
    if kind == EventType.FLOW_PROGRESS and body.get("status") not in FlowState.__members__.values():
        return {**body, "status": FlowState.RUNNING}
    return body
