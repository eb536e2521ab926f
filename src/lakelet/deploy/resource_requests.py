"""Resources in the workspace: the requests that read, make, change and delete one, by its kind, and those for its permissions.

Requests go through the SDK's own client as JSON: a setting that this version of the SDK does not know is sent and read all the same.
Permissions are read and written as one branch of a resource's settings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lakelet.base.errors import LakeletError
from lakelet.deploy.desired_state import PRINCIPALS, Permission, ResourceKey, ResourceKind, User, Workspace
from lakelet.deploy.plan import ObservedResource
from lakelet.deploy.resource_settings import PERMISSIONS, permissions_of, permissions_tree
from lakelet.deploy.state import state_file
from lakelet.deploy.workspace_objects import make_folder

if TYPE_CHECKING:
    from lakelet.deploy.connection import Client

Settings = Mapping[str, Any]
_DASHBOARD_QUERY = ("dataset_catalog", "dataset_schema")
_PUBLISHED = ("embed_credentials",)


@dataclass(frozen=True)
class CreationAttempt:
    """What is known of a creation that nobody saw succeed. `since`: milliseconds since 1970 of its begin; `user`: who did it."""

    user: str
    since: int


class ResourceRequests(ABC):
    """The requests about resources of one kind."""

    object_type: str | None = None
    """The type of its objects among permissions; None where it has none."""

    def __init__(self, client: Client, workspace: Workspace) -> None:
        self.client = client
        self.marker = {"kind": "BUNDLE", "metadata_file_path": state_file(workspace)}
        self.workspace = workspace

    @abstractmethod
    def read(self, id: str) -> ObservedResource | None:
        """The resource as it is, without permissions; None where there is none."""

    @abstractmethod
    def create(self, settings: Settings) -> str:
        """Make it, at most once, and return its id. Raises Unanswered where nobody knows whether it was made."""

    @abstractmethod
    def find(self, settings: Settings, claimed: Collection[str], birth: CreationAttempt) -> str | None:
        """The id of the resource that an earlier attempt made; None if it made none. `claimed`: ids of others."""

    @abstractmethod
    def update(self, id: str, settings: Settings, observed: ObservedResource) -> None:
        """Replace its settings. Raises WORKSPACE_CONFLICT where they are not those of `observed` any more, if the workspace can tell."""

    @abstractmethod
    def delete(self, id: str, *, data: bool) -> None:
        """Delete it, `data` with what it holds."""

    def full_name(self, settings: Settings) -> str | None:
        """The name that is its id, too; None for a kind whose ids the workspace makes."""
        return None

    def ask(self, method: str, path: str, *, query: Settings | None = None, body: Settings | None = None) -> dict[str, Any]:
        """The answer to a request that may be repeated."""
        return request(self.client.sdk, method, path, query, body)

    def ask_once(self, method: str, path: str, *, query: Settings | None = None, body: Settings | None = None) -> dict[str, Any]:
        """The answer to a request that takes effect at most once."""
        return self.client.once(lambda sdk: request(sdk, method, path, query, body))

    def found(self, path: str, query: Settings | None = None) -> dict[str, Any] | None:
        """The answer to a GET; None where there is nothing."""
        try:
            return self.ask("GET", path, query=query)
        except LakeletError as error:
            if is_missing(error):
                return None
            raise

    def pages(self, path: str, key: str, query: Settings) -> Iterator[dict[str, Any]]:
        """The items of a list, page after page."""
        token: str | None = None
        while True:
            answer = self.ask("GET", path, query={**query, **({"page_token": token} if token else {})})
            yield from answer.get(key, [])
            token = answer.get("next_page_token")
            if not token:
                return


def is_missing(error: LakeletError) -> bool:
    """Whether an error says that what was asked for is not there."""
    return error.code == "WORKSPACE_NOT_FOUND" or (error.code == "WORKSPACE_REFUSED" and "does not exist" in (error.why or ""))


def request(sdk: Any, method: str, path: str, query: Settings | None = None, body: Settings | None = None) -> dict[str, Any]:
    """The answer as it is: the SDK's own types lack fields, `details` of events among them."""
    headers = {"Accept": "application/json"}
    if sdk.config.workspace_id:
        headers["X-Databricks-Workspace-Id"] = str(sdk.config.workspace_id)
    answer = sdk.api_client.do(method, path, query=dict(query) if query else None, headers=headers, body=body)
    return answer if isinstance(answer, dict) else {}


class PipelineRequests(ResourceRequests):
    """Pipelines: recognised by the mark of their deployment."""

    object_type = "pipelines"
    _path = "/api/2.0/pipelines"

    def read(self, id: str) -> ObservedResource | None:
        answer = self.found(f"{self._path}/{id}")
        if answer is None or answer.get("state") == "DELETED":
            return None
        tree = {key: value for key, value in answer.get("spec", {}).items() if key != "id"}
        tree.update({key: answer[key] for key in ("run_as", "parameters") if answer.get(key)})
        return ObservedResource(id, tree, str(answer.get("last_modified", "")))

    def create(self, settings: Settings) -> str:
        return str(self.ask_once("POST", self._path, body={**settings, "deployment": self.marker})["pipeline_id"])

    def find(self, settings: Settings, claimed: Collection[str], birth: CreationAttempt) -> str | None:
        name = settings["name"]
        query = {} if "'" in name else {"filter": f"name LIKE '{name}'"}
        for status in self.pages(self._path, "statuses", {**query, "max_results": 100}):
            id = str(status["pipeline_id"])
            if status.get("name") != name or id in claimed:
                continue
            full = self.found(f"{self._path}/{id}") or {}
            if full.get("spec", {}).get("deployment", {}).get("metadata_file_path") == self.marker["metadata_file_path"]:
                return id
        return None

    def update(self, id: str, settings: Settings, observed: ObservedResource) -> None:
        guard = {"expected_last_modified": int(observed.version)} if observed.version else {}
        try:
            self.ask_once("PUT", f"{self._path}/{id}", body={**settings, "id": id, "deployment": self.marker, **guard})
        except LakeletError as error:
            if error.code != "WORKSPACE_UNANSWERED":
                raise
            now = self.read(id)
            if now is None or now.version == observed.version:
                self.ask("PUT", f"{self._path}/{id}", body={**settings, "id": id, "deployment": self.marker, **guard})

    def delete(self, id: str, *, data: bool) -> None:
        self.ask("DELETE", f"{self._path}/{id}", query={"cascade": data})


class JobRequests(ResourceRequests):
    """Jobs: recognised by the mark of their deployment; several may have one name."""

    object_type = "jobs"
    _path = "/api/2.2/jobs"
    _LISTS = ("tasks", "job_clusters", "environments", "parameters")

    def read(self, id: str) -> ObservedResource | None:
        answer = self.found(f"{self._path}/get", {"job_id": id})
        if answer is None:
            return None
        tree = dict(answer.get("settings", {}))
        while answer and answer.get("next_page_token"):
            answer = self.ask("GET", f"{self._path}/get", query={"job_id": id, "page_token": answer["next_page_token"]})
            for key in self._LISTS:
                if more := answer.get("settings", {}).get(key):
                    tree[key] = [*tree.get(key, []), *more]
        return ObservedResource(id, tree)

    def create(self, settings: Settings) -> str:
        return str(self.ask_once("POST", f"{self._path}/create", body=self._body(settings))["job_id"])

    def _body(self, settings: Settings) -> dict[str, Any]:
        return {"edit_mode": "UI_LOCKED", "format": "MULTI_TASK", **settings, "deployment": self.marker}

    def find(self, settings: Settings, claimed: Collection[str], birth: CreationAttempt) -> str | None:
        for job in self.pages(f"{self._path}/list", "jobs", {"name": settings["name"], "limit": 100}):
            id = str(job["job_id"])
            full = None if id in claimed else self.read(id)
            if full and full.tree.get("deployment", {}).get("metadata_file_path") == self.marker["metadata_file_path"]:
                return id
        return None

    def update(self, id: str, settings: Settings, observed: ObservedResource) -> None:
        now = self.read(id)
        if now is None or now.tree != {key: value for key, value in observed.tree.items() if key != "permissions"}:
            raise LakeletError("WORKSPACE_CONFLICT", f"job {id} was changed by somebody else")
        self.ask("POST", f"{self._path}/reset", body={"job_id": int(id), "new_settings": self._body(settings)})

    def delete(self, id: str, *, data: bool) -> None:
        self.ask("POST", f"{self._path}/delete", body={"job_id": int(id)})


class DashboardRequests(ResourceRequests):
    """Dashboards: recognised by their path."""

    object_type = "dashboards"
    _path = "/api/2.0/lakeview/dashboards"
    _READ = ("display_name", "warehouse_id", "serialized_dashboard")

    def read(self, id: str) -> ObservedResource | None:
        answer = self.found(f"{self._path}/{id}")
        if answer is None or answer.get("lifecycle_state") == "TRASHED":
            return None
        published = self.found(f"{self._path}/{id}/published")
        return ObservedResource(
            id, {key: answer[key] for key in self._READ if key in answer}, str(answer.get("etag", "")), published is not None
        )

    def create(self, settings: Settings) -> str:
        body = self._body(settings)
        make_folder(self.client, body["parent_path"])
        return str(self.ask_once("POST", self._path, query=self._query(settings), body=body)["dashboard_id"])

    def _query(self, settings: Settings) -> dict[str, Any]:
        return {key: settings[key] for key in _DASHBOARD_QUERY if settings.get(key)}

    def _body(self, settings: Settings) -> dict[str, Any]:
        own = {key: value for key, value in settings.items() if key not in (*_DASHBOARD_QUERY, *_PUBLISHED)}
        return {"parent_path": self.workspace.resource_path, **own}

    def find(self, settings: Settings, claimed: Collection[str], birth: CreationAttempt) -> str | None:
        wanted = _without_workspace(f"{self._body(settings)['parent_path']}/{settings['display_name']}.lvdash.json")
        for dashboard in self.pages(self._path, "dashboards", {"page_size": 100}):
            id = str(dashboard["dashboard_id"])
            if id in claimed or dashboard.get("display_name") != settings["display_name"]:
                continue
            full = self.found(f"{self._path}/{id}") or {}
            if _without_workspace(full.get("path", "")) == wanted:
                return id
        return None

    def update(self, id: str, settings: Settings, observed: ObservedResource) -> None:
        body = {key: value for key, value in self._body(settings).items() if key != "parent_path"}
        guard = {"etag": observed.version} if observed.version else {}
        try:
            self.ask_once("PATCH", f"{self._path}/{id}", query=self._query(settings), body={**body, **guard})
        except LakeletError as error:
            if error.code != "WORKSPACE_UNANSWERED":
                raise
            now = self.read(id)
            if now is None or now.version == observed.version:
                self.ask("PATCH", f"{self._path}/{id}", query=self._query(settings), body={**body, **guard})

    def publish(self, id: str, settings: Settings) -> None:
        """Show the dashboard to its readers as it is now."""
        body = {"embed_credentials": bool(settings.get("embed_credentials", False))}
        if settings.get("warehouse_id"):
            body["warehouse_id"] = settings["warehouse_id"]
        self.ask("POST", f"{self._path}/{id}/published", body=body)

    def delete(self, id: str, *, data: bool) -> None:
        self.ask("DELETE", f"{self._path}/{id}")


class SecurableRequests(ResourceRequests):
    """Schemas and volumes of Unity Catalog: their full name is their id."""

    kind: ResourceKind
    _NAMES: tuple[str, ...]
    _READ: tuple[str, ...]
    _CHANGED: tuple[str, ...]

    @property
    def _path(self) -> str:
        return f"/api/2.1/unity-catalog/{self.kind}"

    def full_name(self, settings: Settings) -> str:
        """The name with its catalog and schema."""
        return ".".join(str(settings[part]) for part in self._NAMES)

    def read(self, id: str) -> ObservedResource | None:
        answer = self.found(f"{self._path}/{quote(id)}")
        return None if answer is None else ObservedResource(id, {key: answer[key] for key in self._READ if answer.get(key) is not None})

    def create(self, settings: Settings) -> str:
        self.ask_once("POST", self._path, body=settings)
        return self.full_name(settings)

    def find(self, settings: Settings, claimed: Collection[str], birth: CreationAttempt) -> str | None:
        """It was not there when the creation began: so one that the same user made since is that one."""
        full = self.full_name(settings)
        answer = self.found(f"{self._path}/{quote(full)}")
        mine = answer is not None and answer.get("created_by") == birth.user and int(answer.get("created_at", 0)) >= birth.since
        return full if mine else None

    def update(self, id: str, settings: Settings, observed: ObservedResource) -> None:
        body = {
            key: settings.get(key, {} if key == "properties" else "")
            for key in self._CHANGED
            if settings.get(key) != observed.tree.get(key)
        }
        if body:
            self.ask("PATCH", f"{self._path}/{quote(id)}", body=body)

    def delete(self, id: str, *, data: bool) -> None:
        self.ask("DELETE", f"{self._path}/{quote(id)}", query={"force": True} if self.kind is ResourceKind.SCHEMA else None)


class SchemaRequests(SecurableRequests):
    kind = ResourceKind.SCHEMA
    _NAMES = ("catalog_name", "name")
    _READ = ("name", "catalog_name", "comment", "properties", "storage_root")
    _CHANGED = ("comment", "properties")


class VolumeRequests(SecurableRequests):
    kind = ResourceKind.VOLUME
    _NAMES = ("catalog_name", "schema_name", "name")
    _READ = ("name", "catalog_name", "schema_name", "comment", "volume_type")
    _CHANGED = ("comment",)


APIS: Mapping[ResourceKind, type[ResourceRequests]] = {
    ResourceKind.PIPELINE: PipelineRequests,
    ResourceKind.JOB: JobRequests,
    ResourceKind.DASHBOARD: DashboardRequests,
    ResourceKind.SCHEMA: SchemaRequests,
    ResourceKind.VOLUME: VolumeRequests,
}


def apis(client: Client, workspace: Workspace) -> dict[ResourceKind, ResourceRequests]:
    """The requests for each kind of resource."""
    return {kind: api(client, workspace) for kind, api in APIS.items()}


def _without_workspace(path: str) -> str:
    """A path as the workspace gives it: without `/Workspace` before it."""
    return path.removeprefix("/Workspace")


_SECURABLES = {ResourceKind.SCHEMA: "schema", ResourceKind.VOLUME: "volume"}
_OWNER_LEVEL = "IS_OWNER"


def read_permissions(api: ResourceRequests, kind: ResourceKind, id: str) -> dict[str, dict[str, str]]:
    """The direct grants on a resource as a branch of its tree; those that it inherits are not its own."""
    if kind in _SECURABLES:
        answer = api.found(_grants_path(kind, id)) or {}
        found = [
            Permission(privilege, "principal", one["principal"])
            for one in answer.get("privilege_assignments", [])
            for privilege in one.get("privileges", [])
        ]
        return permissions_tree(found)
    answer = api.found(f"/api/2.0/permissions/{api.object_type}/{id}") or {}
    found = []
    for entry in answer.get("access_control_list", []):
        who = next((name for name in PRINCIPALS if entry.get(name)), None)
        levels = [one["permission_level"] for one in entry.get("all_permissions", []) if not one.get("inherited")]
        found += [Permission(level, who, entry[who]) for level in levels if who]
    return permissions_tree(found)


def write_permissions(
    api: ResourceRequests, kind: ResourceKind, id: str, wanted: Mapping[str, object], now: Mapping[str, object], user: User
) -> None:
    """Give a resource these grants and no others; its owner stays, and whoever deploys can still manage it.

    Args:
        wanted, now: trees with the branch of permissions: as it should be, and as it is.
        user: who deploys.
    """
    if kind in _SECURABLES:
        _write_grants(api, kind, id, wanted, now)
        return
    grants = {(one.principal_kind, one.principal): one.level for one in permissions_of(wanted)}
    me = ("service_principal_name" if user.is_service_principal else "user_name", user.user_name)
    if kind is ResourceKind.DASHBOARD:
        grants.setdefault(me, "CAN_MANAGE")
    elif _OWNER_LEVEL not in grants.values():
        owners = [(one.principal_kind, one.principal) for one in permissions_of(now) if one.level == _OWNER_LEVEL]
        grants[owners[0] if owners else me] = _OWNER_LEVEL
    entries = [{principal_kind: principal, "permission_level": level} for (principal_kind, principal), level in sorted(grants.items())]
    api.ask("PUT", f"/api/2.0/permissions/{api.object_type}/{id}", body={"access_control_list": entries})


def _write_grants(api: ResourceRequests, kind: ResourceKind, id: str, wanted: Mapping[str, object], now: Mapping[str, object]) -> None:
    after, before = ({(one.principal, one.level) for one in permissions_of(tree)} for tree in (wanted, now))
    changes = []
    for principal in sorted({principal for principal, _ in after ^ before}):
        add = sorted(level for who, level in after - before if who == principal)
        remove = sorted(level for who, level in before - after if who == principal)
        changes.append({"principal": principal, "add": add, "remove": remove})
    if changes:
        api.ask("PATCH", _grants_path(kind, id), body={"changes": changes})


def _grants_path(kind: ResourceKind, id: str) -> str:
    return f"/api/2.1/unity-catalog/permissions/{_SECURABLES[kind]}/{quote(id)}"


def has_permissions(*trees: Mapping[str, object]) -> bool:
    """Whether one of these trees says who may do what; where none does, permissions are left alone."""
    return any(tree.get(PERMISSIONS) for tree in trees)


def observe(api: ResourceRequests, key: ResourceKey, id: str, *, permissions: bool) -> ObservedResource | None:
    """One resource as it is, with its permissions where they are asked for; None where there is none."""
    seen = api.read(id)
    return replace(seen, tree={**seen.tree, **read_permissions(api, key.kind, id)}) if seen and permissions else seen
