"""Updates of pipelines over HTTP: started, watched, stopped (facts 1.2, 1.3)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from tests.workspace_double.scripts import ACTIVE, DEFAULT, Event, Item, Stage, stages
from tests.workspace_double.tree import absolute
from tests.workspace_double.wire import Answer, ApiError, Call, User, missing, page

if TYPE_CHECKING:
    from tests.workspace_double.pipelines import Pipeline, Pipelines
    from tests.workspace_double.workspace import Workspace

_FIELDS = {"cause", "development", "full_refresh", "full_refresh_selection", "parameters", "refresh_selection"}
_FIELDS |= {"replace_where_overrides", "reset_checkpoint_selection", "rewind_spec", "validate_only"}


@dataclass
class Update:
    """One update; `left`: the stages that are still to come; `body`: what it was started with."""

    id: str
    cause: str
    created: int
    body: Mapping[str, Any]
    left: list[Stage] = field(default_factory=list)
    state: str = "CREATED"
    failure: str | None = None
    cluster_id: str = ""

    @property
    def active(self) -> bool:
        return self.state in ACTIVE


class Updates:
    """`scripts`: what updates do, by id or name of their pipeline; `*` for all others. `retries`: what the one after a failed one does."""

    def __init__(self, workspace: Workspace, pipelines: Pipelines) -> None:
        self._workspace = workspace
        self._pipelines = pipelines
        self.scripts: dict[str, Sequence[Item]] = {"*": DEFAULT}
        self.retries: dict[str, Sequence[Item] | None] = {}
        one, add = "/api/2.0/pipelines/{id}", workspace.routes.add
        add("POST", f"{one}/updates", self._start)
        add("GET", f"{one}/updates", self._list)
        add("GET", f"{one}/updates/{{update}}", self._get)
        add("GET", f"{one}/events", self._events)
        add("POST", f"{one}/stop", self._stop)

    def start(self, pipeline: Pipeline, body: Mapping[str, Any], cause: str, user: User) -> Update:
        """Start an update. Raises 409 while another one is active (facts 1.2, `start_update`)."""
        if active := pipeline.active:
            raise ApiError(409, "RESOURCE_CONFLICT", f"An active update {active.id} already exists for pipeline {pipeline.id}.")
        update = Update(str(uuid.uuid4()), cause, self._workspace.clock.now(), dict(body), cluster_id=uuid.uuid4().hex[:12])
        update.left = self._stages(pipeline, body)
        pipeline.updates.append(update)
        if cause == "API_CALL":
            self._pipelines.tell(pipeline, "START", user)
        details = {"create_update": {"cause": cause, "config": pipeline.spec, **body}}
        self._tell(pipeline, update, Event("create_update", f"Update {update.id[:6]} started by {cause}.", details))
        self._tell(pipeline, update, _progress(update))
        return update

    def polled(self, pipeline: Pipeline) -> None:
        """Somebody looked: the active update goes on by as many stages as `Workspace.stages_per_poll`; a stop is done at once.

        facts 1.4: the SDK's waiters sleep between looks, so a stop ends at the first one.
        """
        if update := pipeline.active:
            self.advance(pipeline, 1 if update.state == "STOPPING" else self._workspace.stages_per_poll)

    def advance(self, pipeline: Pipeline, steps: int) -> None:
        """Let the active update go on by some stages."""
        for _ in range(steps):
            update = pipeline.active
            if update is None or not update.left:
                return
            self._enter(pipeline, update, update.left.pop(0))

    def cancel(self, pipeline: Pipeline, user: User) -> None:
        """Stop the active update, if there is one; it is STOPPING until the next look."""
        if update := pipeline.active:
            self._pipelines.tell(pipeline, "STOP", user)
            update.left = [Stage("CANCELED")]
            self._enter(pipeline, update, Stage("STOPPING"))

    def _enter(self, pipeline: Pipeline, update: Update, stage: Stage) -> None:
        changed = update.state != stage.state
        update.state, update.failure = stage.state, stage.failure
        final = stage.state in ("COMPLETED", "FAILED", "CANCELED")
        for event in stage.events if final else ():
            self._tell(pipeline, update, event)
        if changed:
            self._tell(pipeline, update, _progress(update))
        for event in () if final else stage.events:
            self._tell(pipeline, update, event)
        key = self._key(pipeline)
        if stage.state == "FAILED" and (script := self.retries.pop(key, None)) is not None:
            self.scripts[key] = script
            owner = User(pipeline.creator, "")
            self.start(pipeline, update.body, "RETRY_ON_FAILURE", owner)

    def _key(self, pipeline: Pipeline) -> str:
        return next((key for key in (pipeline.id, pipeline.name) if key in self.scripts), "*")

    def _tell(self, pipeline: Pipeline, update: Update, event: Event) -> None:
        self._workspace.event_store.add(pipeline.id, pipeline.name, event, update.id)

    def _stages(self, pipeline: Pipeline, body: Mapping[str, Any]) -> list[Stage]:
        script = self.scripts[self._key(pipeline)]
        selection = [*(body.get("refresh_selection") or []), *(body.get("full_refresh_selection") or [])]
        absent = self._absent(pipeline) if self._workspace.check_sources else []
        if absent:
            return [Stage("INITIALIZING"), Stage("FAILED", failure=f"Unable to access the source {absent[0]}: it does not exist.")]
        reset = bool(body.get("full_refresh") or body.get("full_refresh_selection"))
        validate, continuous = bool(body.get("validate_only")), bool(pipeline.spec.get("continuous"))
        return stages(script, selection, reset=reset, validate_only=validate, continuous=continuous)

    def _absent(self, pipeline: Pipeline) -> list[str]:
        """Sources of a pipeline that match no file of the workspace."""
        nodes = self._workspace.objects.tree.nodes
        wanted = []
        for library in pipeline.spec.get("libraries") or []:
            if "glob" in library:
                pattern = absolute(library["glob"]["include"]).replace("/**", "/*")
                wanted += [] if any(fnmatchcase(path, pattern) for path in nodes) else [library["glob"]["include"]]
            for kind in ("file", "notebook"):
                wanted += [library[kind]["path"]] if kind in library and absolute(library[kind]["path"]) not in nodes else []
        return wanted

    def _start(self, call: Call) -> Answer:
        pipeline = self._pipelines.find(call, "CAN_RUN")
        call.only(_FIELDS, "StartUpdate")
        update = self.start(pipeline, call.body, call.body.get("cause") or "API_CALL", call.user)
        return Answer({"update_id": update.id})

    def _get(self, call: Call) -> Answer:
        pipeline = self._pipelines.find(call, "CAN_VIEW")
        update = next((each for each in pipeline.updates if each.id == call.params["update"]), None)
        if update is None:
            raise missing(f"The specified update {call.params['update']} was not found.")
        if update.active:
            self.polled(pipeline)
        return Answer({"update": _shown(pipeline, update) | {"config": pipeline.spec}})

    def _list(self, call: Call) -> Answer:
        """The newest first (SDK docstring of `list_updates`); with `until_update_id` up to and including that one."""
        pipeline = self._pipelines.find(call, "CAN_VIEW")
        chosen = pipeline.updates[::-1]
        if until := call.query.get("until_update_id"):
            ids = [each.id for each in chosen]
            if until not in ids:
                raise missing(f"The specified update {until} was not found.")
            chosen = chosen[: ids.index(until) + 1]
        shown, after, before = page(chosen, call, size_key="max_results", default=25, most=100)
        tokens = {key: token for key, token in {"next_page_token": after, "prev_page_token": before}.items() if token}
        return Answer({"updates": [_shown(pipeline, each) for each in shown]} | tokens)

    def _events(self, call: Call) -> Answer:
        pipeline = self._pipelines.find(call, "CAN_VIEW")
        if "page_token" not in call.query:
            self.polled(pipeline)
        return self._workspace.event_store.answer(call, pipeline.id)

    def _stop(self, call: Call) -> Answer:
        """Stops the active update by canceling it; nothing to do without one (SDK docstring of `stop`)."""
        self.cancel(self._pipelines.find(call, "CAN_RUN"), call.user)
        return Answer()


def _progress(update: Update) -> Event:
    """facts 4: `update_progress` with `details.update_progress.state`; that of a failure holds the error."""
    level, error, message = "INFO", None, f"Update {update.id[:6]} is {update.state}."
    if update.state == "FAILED":
        failure = update.failure or "the update failed"
        level, message = "ERROR", f"Update {update.id[:6]} is FAILED: {failure}"
        error = {"fatal": True, "exceptions": [{"class_name": "com.databricks.pipelines.UpdateFailure", "message": failure, "stack": []}]}
    return Event("update_progress", message, {"update_progress": {"state": update.state}}, level, error=error)


def _shown(pipeline: Pipeline, update: Update) -> dict[str, Any]:
    shown: dict[str, Any] = {"pipeline_id": pipeline.id, "update_id": update.id, "state": update.state, "cause": update.cause}
    shown |= {"creation_time": update.created, "cluster_id": update.cluster_id, "full_refresh": bool(update.body.get("full_refresh"))}
    for key in ("refresh_selection", "full_refresh_selection", "validate_only", "parameters"):
        if update.body.get(key):
            shown[key] = update.body[key]
    return shown
