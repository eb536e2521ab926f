"""AI/BI dashboards over HTTP: `/api/2.0/lakeview/dashboards` (facts 1.2, 1.6)."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from posixpath import basename, dirname
from typing import TYPE_CHECKING, Any

from tests.workspace_double.clock import iso
from tests.workspace_double.permissions import visible
from tests.workspace_double.tree import NodeType, absolute, exists, gone
from tests.workspace_double.wire import Answer, Call, User, conflict, invalid, missing, page, unmodelled

if TYPE_CHECKING:
    from tests.workspace_double.workspace import Workspace

_FIELDS = {"display_name", "serialized_dashboard", "warehouse_id", "parent_path", "etag", "dashboard_id"}
_FIELDS |= {"path", "create_time", "update_time", "lifecycle_state"}


@dataclass
class Dashboard:
    """`serialized`: the stored text. `published`: what was published, None before. `seen`: whether the first GET has been."""

    id: str
    display_name: str
    parent_path: str
    serialized: str
    warehouse_id: str | None
    etag: int
    created: int
    updated: int
    trashed: bool = False
    published: dict[str, Any] | None = None
    seen: bool = False
    schedules: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"{self.parent_path.rstrip('/')}/{self.display_name}.lvdash.json"


class Dashboards:
    """`stored`: dashboards by id, trashed ones included."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.stored: dict[str, Dashboard] = {}
        root = "/api/2.0/lakeview/dashboards"
        one, add = root + "/{id}", workspace.routes.add
        add("POST", root, self._create)
        add("GET", root, self._list)
        add("GET", one, self._get)
        add("PATCH", one, self._update)
        add("DELETE", one, self._trash)
        add("POST", f"{one}/published", self._publish)
        add("GET", f"{one}/published", self._published)
        add("DELETE", f"{one}/published", self._unpublish)
        add("POST", f"{one}/schedules", self._schedule)
        add("GET", f"{one}/schedules", self._schedules)
        add("DELETE", f"{one}/schedules/{{schedule}}", self._unschedule)

    def trash(self, key: str) -> None:
        """Trashing removes the published copy (facts 1.6)."""
        dashboard = self.stored[key]
        dashboard.trashed, dashboard.published = True, None
        self._workspace.objects.tree.nodes.pop(dashboard.path, None)

    def _create(self, call: Call) -> Answer:
        """facts 1.6: 32 hex digits, an existing folder, a path of folder and name."""
        call.only(_FIELDS, "Dashboard")
        name, tree = call.text("display_name"), self._workspace.objects.tree
        parent = absolute(call.body.get("parent_path") or f"/Users/{call.user.name}")
        if parent not in tree.nodes:
            raise gone(parent)
        self._workspace.objects.require(call.user, parent, "CAN_EDIT")
        now = self._workspace.clock.now()
        text = _stored_text(call.body.get("serialized_dashboard"), call.query)
        made = Dashboard(uuid.uuid4().hex, name, parent, text, call.body.get("warehouse_id"), now, now, now)
        if made.path in tree.nodes:
            raise exists(made.path)
        made.seen = not self._workspace.late_dashboards
        self.stored[made.id] = made
        tree.put_dashboard(made.path, made.serialized.encode(), made.id)
        self._workspace.permissions.created("dashboards", made.id, call.user)
        return Answer(_shown(made))

    def imported(self, path: str, text: str, user: User, *, overwrite: bool) -> None:
        """A file called `*.lvdash.json` becomes a dashboard of that name (public issues databricks/cli #2910 and #3673)."""
        tree, now = self._workspace.objects.tree, self._workspace.clock.now()
        tree.folder_of(path)
        old = tree.nodes.get(path)
        if old and not overwrite:
            raise exists(path)
        if old and old.type is not NodeType.DASHBOARD:
            raise invalid(f"Requested node type [DASHBOARD] is different from the existing node type [{old.type.value}]")
        stored = _stored_text(text, {})
        if old:
            found = self.stored[old.resource_id]
            found.serialized, found.etag, found.updated = stored, found.etag + 1, now
        else:
            name = basename(path).removesuffix(".lvdash.json")
            found = Dashboard(uuid.uuid4().hex, name, dirname(path), stored, None, now, now, now, seen=True)
            self.stored[found.id] = found
            self._workspace.permissions.created("dashboards", found.id, user)
        tree.put_dashboard(path, stored.encode(), found.id)

    def _find(self, call: Call, level: str) -> Dashboard:
        found = self.stored.get(call.params["id"])
        if found is None:
            raise missing(f"Unable to find dashboard with id {call.params['id']}.")
        self._workspace.permissions.require(call.user, "dashboards", found.id, level)
        return found

    def _get(self, call: Call) -> Answer:
        """A trashed one is still there, as TRASHED. With `Workspace.late_dashboards` the first look is 404 (facts 1.6)."""
        found = self._find(call, "CAN_READ")
        if not found.seen:
            found.seen = True
            raise missing(f"Unable to find dashboard with id {found.id}.")
        return Answer(_shown(found))

    def _update(self, call: Call) -> Answer:
        """A field that is not sent stays; with `etag` only if nobody wrote since (SDK docstring of `Dashboard.etag`)."""
        call.only(_FIELDS, "Dashboard")
        found = self._live(call, "CAN_EDIT")
        expected = call.body.get("etag")
        if expected is not None and expected != str(found.etag):
            raise conflict(f"The dashboard was modified: its etag is {found.etag}, not {expected}.")
        if absolute(call.body.get("parent_path") or found.parent_path) != found.parent_path:
            raise invalid("The parent path of a dashboard cannot be changed.")
        self._rename(found, call.body.get("display_name") or found.display_name)
        if "serialized_dashboard" in call.body:
            found.serialized = _stored_text(call.body["serialized_dashboard"], call.query)
        found.warehouse_id = call.body.get("warehouse_id", found.warehouse_id)
        found.etag += 1
        found.updated = self._workspace.clock.now()
        self._workspace.objects.tree.put_dashboard(found.path, found.serialized.encode(), found.id)
        return Answer(_shown(found))

    def _rename(self, dashboard: Dashboard, name: str) -> None:
        old, nodes = dashboard.path, self._workspace.objects.tree.nodes
        new = f"{dirname(old).rstrip('/')}/{name}.lvdash.json"
        if new != old and new in nodes:
            raise exists(new)
        dashboard.display_name = name
        if new != old:
            del nodes[old]

    def _live(self, call: Call, level: str) -> Dashboard:
        found = self._find(call, level)
        if found.trashed:
            raise missing(f"Dashboard {found.id} is in the trash.")
        return found

    def _list(self, call: Call) -> Answer:
        """Without their texts; trashed ones only with `show_trashed` (SDK docstring of `lakeview.list`)."""
        if "view" in call.query and call.query["view"] != "DASHBOARD_VIEW_BASIC":
            raise unmodelled(f"the view {call.query['view']}")
        trashed = call.flag("show_trashed")
        keys = visible(self._workspace.permissions, call.user, "dashboards", self.stored)
        chosen = [self.stored[key] for key in keys if trashed or not self.stored[key].trashed]
        shown, after, _ = page(chosen, call, size_key="page_size", default=100, most=1000)
        basic = [{key: value for key, value in _shown(each).items() if key != "serialized_dashboard"} for each in shown]
        return Answer({"dashboards": basic} | ({"next_page_token": after} if after else {}))

    def _trash(self, call: Call) -> Answer:
        found = self._live(call, "CAN_MANAGE")
        self.trash(found.id)
        return Answer()

    def _publish(self, call: Call) -> Answer:
        call.only({"embed_credentials", "warehouse_id"}, "PublishDashboard")
        found = self._live(call, "CAN_EDIT")
        warehouse = call.body.get("warehouse_id") or found.warehouse_id
        if not warehouse:
            raise invalid("A warehouse is required to publish a dashboard.")
        found.published = {
            "display_name": found.display_name,
            "embed_credentials": call.flag("embed_credentials", True),
            "warehouse_id": warehouse,
            "revision_create_time": iso(self._workspace.clock.now()),
        }
        return Answer(found.published)

    def _published(self, call: Call) -> Answer:
        found = self._find(call, "CAN_READ")
        if found.published is None:
            raise missing(f"Unable to find published dashboard [dashboardId={found.id}]")
        return Answer(found.published)

    def _unpublish(self, call: Call) -> Answer:
        found = self._find(call, "CAN_EDIT")
        if found.published is None:
            raise missing(f"Unable to find published dashboard [dashboardId={found.id}]")
        found.published = None
        return Answer()

    def _schedule(self, call: Call) -> Answer:
        found = self._live(call, "CAN_EDIT")
        if not isinstance(call.body.get("cron_schedule"), dict):
            raise invalid("Missing required field: cron_schedule")
        key, now = uuid.uuid4().hex, self._workspace.clock.now()
        made = {"pause_status": "UNPAUSED", **call.body, "schedule_id": key, "dashboard_id": found.id, "etag": str(now)}
        found.schedules[key] = made | {"create_time": iso(now), "update_time": iso(now)}
        return Answer(found.schedules[key])

    def _schedules(self, call: Call) -> Answer:
        shown, after, _ = page(list(self._find(call, "CAN_READ").schedules.values()), call, size_key="page_size", default=20, most=100)
        return Answer({"schedules": shown} | ({"next_page_token": after} if after else {}))

    def _unschedule(self, call: Call) -> Answer:
        if self._find(call, "CAN_EDIT").schedules.pop(call.params["schedule"], None) is None:
            raise missing(f"Schedule {call.params['schedule']} does not exist.")
        return Answer()


def _stored_text(text: Any, query: Any) -> str:
    """What a workspace makes of a dashboard's text (facts 1.6): types of pages, places of datasets, a newline at the end."""
    if text is None or text == "":
        return ""
    if not isinstance(text, str):
        raise invalid("serialized_dashboard must be a JSON string")
    try:
        content = json.loads(text)
    except ValueError:
        raise invalid("Failed to parse serialized dashboard: it is not JSON") from None
    if not isinstance(content, dict):
        raise invalid("Failed to parse serialized dashboard: expected an object")
    for each in content.get("pages") or []:
        each.setdefault("pageType", "PAGE_TYPE_CANVAS")
    for dataset in content.get("datasets") or []:
        for key in ("catalog", "schema"):
            if query.get(f"dataset_{key}"):
                dataset[key] = query[f"dataset_{key}"]
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False) + "\n"


def _shown(dashboard: Dashboard) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "dashboard_id": dashboard.id,
        "display_name": dashboard.display_name,
        "parent_path": dashboard.parent_path,
        "path": dashboard.path,
        "etag": str(dashboard.etag),
        "create_time": iso(dashboard.created),
        "update_time": iso(dashboard.updated),
        "lifecycle_state": "TRASHED" if dashboard.trashed else "ACTIVE",
        "serialized_dashboard": dashboard.serialized,
    }
    if dashboard.warehouse_id:
        shown["warehouse_id"] = dashboard.warehouse_id
    return shown
