"""Who may do what with an object of the workspace: `/api/2.0/permissions/{type}/{id}`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.workspace_double.wire import Answer, Call, User, denied, invalid, missing

if TYPE_CHECKING:
    from tests.workspace_double.workspace import Workspace

# Levels by type, the weakest first (REST API reference, "Permissions": the table of levels by object type).
LEVELS: Mapping[str, tuple[str, ...]] = {
    "pipelines": ("CAN_VIEW", "CAN_RUN", "CAN_MANAGE", "IS_OWNER"),
    "jobs": ("CAN_VIEW", "CAN_MANAGE_RUN", "CAN_MANAGE", "IS_OWNER"),
    "dashboards": ("CAN_READ", "CAN_RUN", "CAN_EDIT", "CAN_MANAGE"),
    "directories": ("CAN_READ", "CAN_RUN", "CAN_EDIT", "CAN_MANAGE"),
    "files": ("CAN_READ", "CAN_RUN", "CAN_EDIT", "CAN_MANAGE"),
    "notebooks": ("CAN_READ", "CAN_RUN", "CAN_EDIT", "CAN_MANAGE"),
    "warehouses": ("CAN_VIEW", "CAN_MONITOR", "CAN_USE", "CAN_MANAGE", "IS_OWNER"),
}
_KINDS = ("user_name", "group_name", "service_principal_name")
_OWNED = ("pipelines", "jobs")


@dataclass(frozen=True)
class Grant:
    """One direct grant; `kind` is `user_name`, `group_name` or `service_principal_name`."""

    kind: str
    principal: str
    level: str


class Permissions:
    """Direct grants by object. `principals`: names that exist; None where every name does."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.grants: dict[tuple[str, str], list[Grant]] = {}
        self.principals: set[str] | None = None
        for prefix in ("/api/2.0/permissions/{type}/{id}", "/api/2.0/permissions/sql/{type}/{id}"):
            workspace.routes.add("GET", prefix, self._get)
            workspace.routes.add("PUT", prefix, self._set)
            workspace.routes.add("PATCH", prefix, self._update)
            workspace.routes.add("GET", f"{prefix}/permissionLevels", self._levels)

    def created(self, kind: str, key: str, user: User) -> None:
        """Whoever makes an object owns it; where there are no owners, manages it."""
        principal = "service_principal_name" if user.service_principal else "user_name"
        self.grants[kind, key] = [Grant(principal, user.name, "IS_OWNER" if kind in _OWNED else "CAN_MANAGE")]

    def deleted(self, kind: str, key: str) -> None:
        self.grants.pop((kind, key), None)

    def allows(self, user: User, kind: str, key: str, level: str) -> bool:
        levels = LEVELS[kind]
        names = {user.name, "users"}
        held = [levels.index(grant.level) for grant in self.grants.get((kind, key), ()) if grant.principal in names]
        return user.admin or max(held, default=-1) >= levels.index(level)

    def require(self, user: User, kind: str, key: str, level: str) -> None:
        """Raise 403 where the user may not."""
        if not self.allows(user, kind, key, level):
            raise denied(f"User {user.name} does not have {level} permission on {kind[:-1]} {key}.")

    def owner(self, kind: str, key: str) -> str:
        return next((grant.principal for grant in self.grants.get((kind, key), ()) if grant.level in ("IS_OWNER", "CAN_MANAGE")), "")

    def _get(self, call: Call) -> Answer:
        kind, key = self._object(call)
        return Answer(self._shown(kind, key))

    def _set(self, call: Call) -> Answer:
        """All direct grants are replaced; what is inherited stays (REST API reference, "Set object permissions")."""
        kind, key = self._object(call)
        self._may_change(call.user, kind, key)
        self._store(kind, key, self._read(call, kind))
        return Answer(self._shown(kind, key))

    def _update(self, call: Call) -> Answer:
        """A principal's grant takes the place of that principal's earlier one (REST API reference, "Update object permissions")."""
        kind, key = self._object(call)
        self._may_change(call.user, kind, key)
        new = self._read(call, kind)
        named = {(grant.kind, grant.principal) for grant in new}
        owned = any(grant.level == "IS_OWNER" for grant in new)
        kept = [grant for grant in self.grants[kind, key] if (grant.kind, grant.principal) not in named]
        self._store(kind, key, [grant for grant in kept if not (owned and grant.level == "IS_OWNER")] + new)
        return Answer(self._shown(kind, key))

    def _levels(self, call: Call) -> Answer:
        kind, _ = self._object(call)
        return Answer({"permission_levels": [{"permission_level": level, "description": level} for level in LEVELS[kind]]})

    def _object(self, call: Call) -> tuple[str, str]:
        kind, key = call.params["type"], call.params["id"]
        if kind not in LEVELS:
            raise invalid(f"'{kind}' is not a valid object type.")
        if (kind, key) not in self.grants:
            raise missing(f"{kind[:-1].capitalize()} {key} does not exist.")
        self.require(call.user, kind, key, LEVELS[kind][0])
        return kind, key

    def _may_change(self, user: User, kind: str, key: str) -> None:
        self.require(user, kind, key, "CAN_MANAGE")

    def _read(self, call: Call, kind: str) -> list[Grant]:
        call.only({"access_control_list"}, "SetObjectPermissions")
        return self.read(call.body.get("access_control_list") or [], kind)

    def read(self, entries: Sequence[Mapping[str, Any]], kind: str) -> list[Grant]:
        """An access control list as grants. Raises ApiError for what no object of this kind can have."""
        return [self._grant(entry, kind) for entry in entries]

    def _grant(self, entry: Mapping[str, Any], kind: str) -> Grant:
        named = [key for key in _KINDS if entry.get(key)]
        if len(named) != 1:
            raise invalid("Each access control entry must name exactly one user, group or service principal.")
        level, principal = entry.get("permission_level"), entry[named[0]]
        if level not in LEVELS[kind]:
            raise invalid(f"Permission type {level} is not supported for object type {kind[:-1]}.")
        if level == "IS_OWNER" and named[0] == "group_name":
            raise invalid("Groups can not be owners.")
        if self.principals is not None and principal not in self.principals | {"users", "admins"}:
            raise missing(f"Principal: {principal} does not exist")
        return Grant(named[0], principal, level)

    def _store(self, kind: str, key: str, grants: list[Grant]) -> None:
        """Public issues databricks/cli #3849 and #5682: without its one owner a job or a pipeline refuses the list with 400."""
        if kind in _OWNED and sum(grant.level == "IS_OWNER" for grant in grants) != 1:
            raise invalid(f"The {kind[:-1]} must have exactly one owner.")
        self.grants[kind, key] = grants

    def _shown(self, kind: str, key: str) -> dict[str, Any]:
        entries = [_entry(grant.kind, grant.principal, grant.level) for grant in self.grants[kind, key]]
        inherited = _entry("group_name", "admins", "CAN_MANAGE", inherited_from=f"/{kind}/")
        return {"object_id": f"/{kind}/{key}", "object_type": _type(kind), "access_control_list": [*entries, inherited]}


def _entry(kind: str, principal: str, level: str, inherited_from: str = "") -> dict[str, Any]:
    permission: dict[str, Any] = {"permission_level": level, "inherited": bool(inherited_from)}
    if inherited_from:
        permission["inherited_from_object"] = [inherited_from]
    return {kind: principal, "all_permissions": [permission]}


def _type(kind: str) -> str:
    return {"directories": "directory", "pipelines": "pipelines"}.get(kind, kind[:-1])


def visible(permissions: Permissions, user: User, kind: str, keys: Iterable[str]) -> list[str]:
    """The objects of a list that a user may see."""
    return [key for key in keys if permissions.allows(user, kind, key, LEVELS[kind][0])]
