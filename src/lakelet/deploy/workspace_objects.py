"""Files and folders of a workspace (read, write, delete), and ids of what it has under a name, for variables of a bundle with `lookup`.

Every call may be repeated.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.deploy.bundle import Lookup

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

    from lakelet.deploy.connection import Client

_IMPORT = "/api/2.0/workspace/import"


THREADS = 8
T = TypeVar("T")
R = TypeVar("R")


def in_parallel(call: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """The results of `call` for each item, at most THREADS at the same time. After an error no further call begins; the first is raised."""
    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(call, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def read_file(client: Client, path: str) -> bytes | None:
    """The content of a workspace file, byte for byte; None where there is none."""
    try:
        with client.sdk.workspace.download(path) as content:
            return content.read()
    except LakeletError as error:
        if error.code == "WORKSPACE_NOT_FOUND":
            return None
        raise


def write_file(client: Client, path: str, content: bytes) -> None:
    """Write a file as a whole, over what is there. Its folder exists. What Databricks takes for a notebook becomes one."""
    from databricks.sdk.service.workspace import ImportFormat

    client.sdk.workspace.upload(path, content, format=ImportFormat.AUTO, overwrite=True)


def make_file(client: Client, path: str, content: bytes) -> bool:
    """Write a file that must not exist yet; False where one does."""
    body = {"path": path, "content": base64.b64encode(content).decode(), "format": "AUTO", "overwrite": False}
    try:
        client.sdk.api_client.do("POST", _IMPORT, body=body)
    except LakeletError as error:
        if error.code == "WORKSPACE_CONFLICT" or "RESOURCE_ALREADY_EXISTS" in (error.why or ""):
            return False
        raise
    return True


def make_folder(client: Client, path: str) -> None:
    """Make a folder and those above it, where they do not exist."""
    client.sdk.workspace.mkdirs(path)


def delete_path(client: Client, path: str, *, recursive: bool = False) -> bool:
    """Delete a file or folder; False where there is none. Raises what the workspace says of a folder that is not empty."""
    try:
        client.sdk.workspace.delete(path, recursive=recursive)
    except LakeletError as error:
        if error.code == "WORKSPACE_NOT_FOUND":
            return False
        raise
    return True


def list_folder(client: Client, path: str) -> list[dict[str, Any]]:
    """Return the entries of a folder as the workspace describes them; none for a missing folder."""
    try:
        answer = client.sdk.api_client.do("GET", "/api/2.0/workspace/list", query={"path": path})
    except LakeletError as error:
        if error.code == "WORKSPACE_NOT_FOUND":
            return []
        raise
    return list(answer.get("objects", [])) if isinstance(answer, dict) else []


_IDS_SHOWN = 3  # names in a message

_LISTINGS: dict[str, tuple[Callable[[Any], Iterable[Any]], str, str]] = {
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
            listing, name_field, id_field = _LISTINGS[kind]
            listed[kind] = [(str(_field_of_listing(one, name_field)), str(_field_of_listing(one, id_field))) for one in listing(sdk)]
        ids = [id for known, id in listed[kind] if known == name]
        if len(ids) == 1:
            return ids[0]
        word = kind.replace("_", " ")
        if ids:
            what = f"the workspace has {len(ids)} of the name {name!r}: {word} {', '.join(ids[:_IDS_SHOWN])}"
            raise LakeletError("CONFIG_INVALID", what, todo="Give the variable the id of one of them as a value.")
        nearest = nearest_names(name, [known for known, _ in listed[kind]])
        raise LakeletError("CONFIG_INVALID", f"the workspace has no {word} {name!r} that you can see", nearest=nearest)

    return lookup


def _field_of_listing(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = getattr(value, step, None)
    return value
