"""Permissions of a resource in the workspace: read and written as one branch of its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

from lakelet.deploy.desired import Permission, ResourceKind, User
from lakelet.deploy.remote import Api
from lakelet.deploy.settings import PERMISSIONS, permissions_of, permissions_tree

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PRINCIPALS = ("user_name", "group_name", "service_principal_name")
_SECURABLES = {ResourceKind.SCHEMA: "schema", ResourceKind.VOLUME: "volume"}
_OWNER = "IS_OWNER"


def read_permissions(api: Api, kind: ResourceKind, id: str) -> dict[str, dict[str, str]]:
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
        who = next((name for name in _PRINCIPALS if entry.get(name)), None)
        levels = [one["permission_level"] for one in entry.get("all_permissions", []) if not one.get("inherited")]
        found += [Permission(level, who, entry[who]) for level in levels if who]
    return permissions_tree(found)


def write_permissions(api: Api, kind: ResourceKind, id: str, wanted: Mapping[str, object], now: Mapping[str, object], user: User) -> None:
    """Give a resource these grants and no others; its owner stays, and whoever deploys can still manage it.

    Args:
        wanted, now: trees with the branch of permissions: as it should be, and as it is.
        user: who deploys.
    """
    if kind in _SECURABLES:
        _write_grants(api, kind, id, wanted, now)
        return
    grants = {(one.principal_kind, one.principal): one.level for one in permissions_of(wanted)}
    me = ("service_principal_name" if _UUID.fullmatch(user.user_name) else "user_name", user.user_name)
    if kind is ResourceKind.DASHBOARD:
        grants.setdefault(me, "CAN_MANAGE")
    elif _OWNER not in grants.values():
        owners = [(one.principal_kind, one.principal) for one in permissions_of(now) if one.level == _OWNER]
        grants[owners[0] if owners else me] = _OWNER
    entries = [{principal_kind: principal, "permission_level": level} for (principal_kind, principal), level in sorted(grants.items())]
    api.ask("PUT", f"/api/2.0/permissions/{api.object_type}/{id}", body={"access_control_list": entries})


def _write_grants(api: Api, kind: ResourceKind, id: str, wanted: Mapping[str, object], now: Mapping[str, object]) -> None:
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
