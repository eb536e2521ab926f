"""Permissions of a resource and the user that it runs as: its own settings, those of the target and of the bundle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lakelet.deploy.bundle.resource_forms import PRINCIPALS
from lakelet.deploy.desired import Permission, ResourceKind

_LEVELS: Mapping[ResourceKind, Mapping[str, str]] = {
    ResourceKind.PIPELINE: {"CAN_MANAGE": "CAN_MANAGE", "CAN_RUN": "CAN_RUN", "CAN_VIEW": "CAN_VIEW"},
    ResourceKind.JOB: {"CAN_MANAGE": "CAN_MANAGE", "CAN_RUN": "CAN_MANAGE_RUN", "CAN_VIEW": "CAN_VIEW"},
    ResourceKind.DASHBOARD: {"CAN_MANAGE": "CAN_MANAGE", "CAN_RUN": "CAN_RUN", "CAN_VIEW": "CAN_READ"},
}
"""What a permission of the bundle is called on a resource."""

_RUNNING = (ResourceKind.PIPELINE, ResourceKind.JOB)


def permissions_of(kind: ResourceKind, own: Any, of_bundle: Iterable[Mapping[str, str]], grants: Any) -> tuple[Permission, ...]:
    """The permissions of one resource: its own, then those of the bundle for whom it does not name.

    A grant on a schema or volume is one permission for each privilege, `principal_kind` being `principal`.
    """
    found = [one for entry in own or () if (one := _permission(entry, entry.get("level", "")))]
    named = {(one.principal_kind, one.principal) for one in found}
    levels = _LEVELS.get(kind, {})
    for entry in of_bundle:
        one = _permission(entry, levels.get(entry.get("level", ""), ""))
        if one and one.level and (one.principal_kind, one.principal) not in named:
            found.append(one)
    for grant in grants or ():
        found += [Permission(privilege, "principal", grant.get("principal", "")) for privilege in grant.get("privileges", ())]
    return tuple(dict.fromkeys(found))


def _permission(entry: Mapping[str, str], level: str) -> Permission | None:
    return next((Permission(level, kind, entry[kind]) for kind in PRINCIPALS if kind in entry), None)


def with_run_as(kind: ResourceKind, settings: Mapping[str, Any], run_as: Mapping[str, str] | None) -> dict[str, Any]:
    """The settings of a job or pipeline with the `run_as` of the bundle, where it has none of its own."""
    if run_as and kind in _RUNNING and "run_as" not in settings:
        return {**settings, "run_as": dict(run_as)}
    return dict(settings)
