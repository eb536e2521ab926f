"""Pipelines over HTTP: `/api/2.0/pipelines` (facts 1.2, 1.3)."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.workspace_double import pipeline_spec
from tests.workspace_double.clock import iso
from tests.workspace_double.permissions import visible
from tests.workspace_double.scripts import Event
from tests.workspace_double.updates import Update, Updates
from tests.workspace_double.wire import Answer, ApiError, Call, User, conflict, invalid, missing, page

if TYPE_CHECKING:
    from tests.workspace_double.workspace import Workspace

_NAME_LIKE = re.compile(r"name\s+like\s+'(.*)'", re.IGNORECASE)
_NOTEBOOK = re.compile(r"notebook\s*=\s*'(.*)'", re.IGNORECASE)


@dataclass
class Pipeline:
    """A pipeline as the workspace keeps it; `updates` in the order in which they were started."""

    id: str
    creator: str
    spec: dict[str, Any]
    run_as: dict[str, str] | None
    parameters: dict[str, str]
    last_modified: int
    updates: list[Update] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.spec.get("name", ""))

    @property
    def active(self) -> Update | None:
        return next((update for update in reversed(self.updates) if update.active), None)


class Pipelines:
    """`stored`: pipelines by id, in the order in which they were made."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.stored: dict[str, Pipeline] = {}
        self.updates = Updates(workspace, self)
        one, add = "/api/2.0/pipelines/{id}", workspace.routes.add
        add("POST", "/api/2.0/pipelines", self._create)
        add("GET", "/api/2.0/pipelines", self._list)
        add("GET", one, self._get)
        add("PUT", one, self._edit)
        add("DELETE", one, self._delete)
        add("POST", f"{one}/clone", self._clone)
        add("POST", f"{one}/environment/apply", self._apply)

    def find(self, call: Call, level: str) -> Pipeline:
        """The pipeline that a request is about. Raises 404 with the words of facts 1.6, and 403."""
        key = call.params["id"]
        if key not in self.stored:
            raise missing(f"The specified pipeline {key} was not found.")
        self._workspace.permissions.require(call.user, "pipelines", key, level)
        return self.stored[key]

    def tell(self, pipeline: Pipeline, action: str, user: User) -> None:
        details = {"user_action": {"action": action, "user_name": user.name, "user_id": int(user.id or 0)}}
        message = f"User {user.name} performed the action {action}."
        self._workspace.event_store.add(pipeline.id, pipeline.name, Event("user_action", message, details))

    def _create(self, call: Call) -> Answer:
        pipeline_spec.check(call.body)
        key = str(uuid.uuid4())
        settings = pipeline_spec.spec(call.body, key)
        self._check_name(call, None)
        self._check_folder(settings)
        if call.flag("dry_run"):
            return Answer({"effective_settings": settings})
        made = Pipeline(
            key, call.user.name, settings, call.body.get("run_as"), call.body.get("parameters") or {}, self._workspace.clock.now()
        )
        self.stored[key] = made
        self._workspace.permissions.created("pipelines", key, call.user)
        self.tell(made, "CREATE", call.user)
        return Answer({"pipeline_id": key})

    def _check_name(self, call: Call, own: str | None) -> None:
        name = call.body.get("name")
        others = [each for each in self.stored.values() if each.id != own]
        if name and not call.flag("allow_duplicate_names") and any(each.name == name for each in others):
            raise pipeline_spec.name_taken(name)

    def _check_folder(self, settings: dict[str, Any]) -> None:
        catalog = settings.get("catalog")
        if catalog and catalog not in self._workspace.catalogs:
            raise ApiError(404, "CATALOG_DOES_NOT_EXIST", f"Catalog '{catalog}' does not exist.")

    def _edit(self, call: Call) -> Answer:
        """A full replace; with `expected_last_modified` only if nobody changed it since (facts 1.2, `pipelines.update`)."""
        pipeline = self.find(call, "CAN_MANAGE")
        pipeline_spec.check(call.body)
        expected = call.body.get("expected_last_modified")
        if expected is not None and int(expected) != pipeline.last_modified:
            raise conflict(f"The settings of pipeline {pipeline.id} were modified at {pipeline.last_modified}, not at {expected}.")
        if call.body.get("id", pipeline.id) != pipeline.id:
            raise invalid("The id of a pipeline cannot be changed.")
        self._check_name(call, pipeline.id)
        settings = pipeline_spec.spec(call.body, pipeline.id)
        self._check_folder(settings)
        for key in ("catalog", "storage"):
            old, new = pipeline.spec.get(key), settings.get(key)
            if bool(old) != bool(new) or (key == "storage" and old != new):
                raise invalid(f"{key!r} cannot be changed after the pipeline is created.")
        pipeline.spec, pipeline.last_modified = settings, self._workspace.clock.now()
        pipeline.run_as = call.body.get("run_as", pipeline.run_as)
        pipeline.parameters = call.body.get("parameters") or {}
        self.tell(pipeline, "EDIT", call.user)
        return Answer()

    def _get(self, call: Call) -> Answer:
        pipeline = self.find(call, "CAN_VIEW")
        self.updates.polled(pipeline)
        shown = self._status(pipeline) | {"spec": pipeline.spec, "last_modified": pipeline.last_modified}
        shown["run_as"] = pipeline.run_as or {"user_name": pipeline.creator}
        if pipeline.parameters:
            shown["parameters"] = pipeline.parameters
        if pipeline.active:
            shown["cluster_id"] = pipeline.active.cluster_id
        return Answer(shown)

    def _status(self, pipeline: Pipeline) -> dict[str, Any]:
        runs_as = next(iter((pipeline.run_as or {}).values()), pipeline.creator)
        failed = bool(pipeline.updates) and pipeline.updates[-1].state == "FAILED"
        shown: dict[str, Any] = {"pipeline_id": pipeline.id, "name": pipeline.name, "state": pipeline_state(pipeline)}
        shown |= {"health": "UNHEALTHY" if failed else "HEALTHY", "creator_user_name": pipeline.creator, "run_as_user_name": runs_as}
        if failed:
            shown["cause"] = pipeline.updates[-1].failure
        if pipeline.updates:
            latest = pipeline.updates[:-6:-1]
            shown["latest_updates"] = [{"update_id": u.id, "state": u.state, "creation_time": iso(u.created)} for u in latest]
        return shown

    def _list(self, call: Call) -> Answer:
        keys = visible(self._workspace.permissions, call.user, "pipelines", self.stored)
        test = _filter(call.query.get("filter", ""))
        chosen = [self.stored[key] for key in keys if test(self.stored[key])]
        for order in reversed(call.lists.get("order_by") or []):
            key, _, direction = order.partition(" ")
            if key not in ("id", "name") or direction not in ("", "asc", "desc"):
                raise invalid(f"Invalid order_by: {order!r}")
            chosen.sort(key=lambda each: each.id if key == "id" else each.name, reverse=direction == "desc")
        shown, after, _ = page(chosen, call, size_key="max_results", default=25, most=100)
        return Answer({"statuses": [self._status(each) for each in shown]} | ({"next_page_token": after} if after else {}))

    def _delete(self, call: Call) -> Answer:
        """SDK docstring: stops what runs; with `cascade`, the default, the pipeline's tables go with it."""
        pipeline = self.find(call, "IS_OWNER" if not call.user.admin else "CAN_MANAGE")
        del self.stored[pipeline.id]
        self._workspace.permissions.deleted("pipelines", pipeline.id)
        if call.flag("cascade", True):
            for name in [name for name, owner in self._workspace.table_owners.items() if owner == pipeline.id]:
                self._workspace.tables.pop(name, None)
        return Answer()

    def _clone(self, call: Call) -> Answer:
        pipeline = self.find(call, "CAN_MANAGE")
        own = {"clone_mode", "expected_last_modified"}
        body = {key: value for key, value in pipeline.spec.items() if key not in ("id", "storage")}
        body |= {key: value for key, value in call.body.items() if key not in own}
        made = Call("POST", "/api/2.0/pipelines", {}, {}, b"", body, call.user)
        return self._create(made)

    def _apply(self, call: Call) -> Answer:
        self.find(call, "CAN_RUN")
        return Answer()


def pipeline_state(pipeline: Pipeline) -> str:
    """The state of a pipeline, of those in facts 1.3, by its active update."""
    update = pipeline.active
    if update is None:
        return "IDLE"
    early = {"CREATED": "STARTING", "QUEUED": "STARTING", "WAITING_FOR_RESOURCES": "DEPLOYING", "INITIALIZING": "STARTING"}
    return early.get(update.state, update.state if update.state in ("RESETTING", "STOPPING") else "RUNNING")


def _filter(text: str) -> Callable[[Pipeline], bool]:
    """SDK docstring of `list_pipelines`: `name LIKE '[pattern]'` or `notebook='<path>'`, no composite filters."""
    if not text:
        return lambda pipeline: True
    if match := _NAME_LIKE.fullmatch(text.strip()):
        pattern = re.compile(re.escape(match[1]).replace("%", ".*").replace("_", "."), re.DOTALL)
        return lambda pipeline: bool(pattern.fullmatch(pipeline.name))
    if match := _NOTEBOOK.fullmatch(text.strip()):
        wanted = {"notebook": {"path": match[1]}}
        return lambda pipeline: wanted in (pipeline.spec.get("libraries") or [])
    raise invalid(f"Invalid filter: {text!r}")
