"""Ids of what a workspace has under a name, for variables of a bundle with `lookup`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.deploy.bundle import Lookup

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

_SHOWN = 3  # names in a message

_LISTS: dict[str, tuple[Callable[[Any], Iterable[Any]], str, str]] = {
    "alert": (lambda sdk: sdk.alerts.list(), "display_name", "id"),
    "cluster": (lambda sdk: sdk.clusters.list(), "cluster_name", "cluster_id"),
    "cluster_policy": (lambda sdk: sdk.cluster_policies.list(), "name", "policy_id"),
    "dashboard": (lambda sdk: sdk.lakeview.list(), "display_name", "dashboard_id"),
    "instance_pool": (lambda sdk: sdk.instance_pools.list(), "instance_pool_name", "instance_pool_id"),
    "job": (lambda sdk: sdk.jobs.list(), "settings.name", "job_id"),
    "metastore": (lambda sdk: sdk.metastores.list(), "name", "metastore_id"),
    "notification_destination": (lambda sdk: sdk.notification_destinations.list(), "display_name", "id"),
    "pipeline": (lambda sdk: sdk.pipelines.list_pipelines(), "name", "pipeline_id"),
    "query": (lambda sdk: sdk.queries.list(), "display_name", "id"),
    "service_principal": (lambda sdk: sdk.service_principals.list(), "display_name", "application_id"),
    "warehouse": (lambda sdk: sdk.warehouses.list(), "name", "id"),
}
"""By kind: the call that lists all, the field with the name, the field with the id."""


def workspace_lookup(sdk: WorkspaceClient) -> Lookup:
    """Return the lookup for `desired_state` that asks a workspace; each kind is listed once.

    It raises CONFIG_INVALID where nothing has the name, or more than one thing.
    """
    listed: dict[str, list[tuple[str, str]]] = {}

    def lookup(kind: str, name: str) -> str:
        if kind not in listed:
            listing, name_field, id_field = _LISTS[kind]
            listed[kind] = [(str(_field(one, name_field)), str(_field(one, id_field))) for one in listing(sdk)]
        ids = [id for known, id in listed[kind] if known == name]
        if len(ids) == 1:
            return ids[0]
        word = kind.replace("_", " ")
        if ids:
            what = f"the workspace has {len(ids)} of the name {name!r}: {word} {', '.join(ids[:_SHOWN])}"
            raise LakeletError("CONFIG_INVALID", what, todo="Give the variable the id of one of them as a value.")
        nearest = nearest_names(name, [known for known, _ in listed[kind]])
        raise LakeletError("CONFIG_INVALID", f"the workspace has no {word} {name!r} that you can see", nearest=nearest)

    return lookup


def _field(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = getattr(value, step, None)
    return value
