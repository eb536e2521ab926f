"""Carries a plan out, one write after the other; the process may die between any two of them, and the next deployment goes on from there.

Before the first write the state says what is about to be made; after each creation it has the new id. Everything else may be done twice.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.base.text import counted
from lakelet.deploy.bundle.uploads import begins_notebook
from lakelet.deploy.desired_state import DesiredState, Resource, ResourceKey, ResourceKind, SourceFile, User
from lakelet.deploy.plan import DeploymentPlan, ObservedResource, ResourceUpdate
from lakelet.deploy.resource_requests import (
    CreationAttempt,
    DashboardRequests,
    ResourceRequests,
    has_permissions,
    is_missing,
    observe,
    read_permissions,
    write_permissions,
)
from lakelet.deploy.resource_settings import (
    PERMISSIONS,
    as_found,
    fields,
    has_mask,
    in_order,
    masked,
    referred,
    resolved,
    tree_of,
    with_field,
    without_field,
    without_permissions,
)
from lakelet.deploy.state import (
    HISTORY,
    OBJECTS,
    DeployedFile,
    DeployedResource,
    DeploymentLock,
    DeploymentState,
    PendingDeployment,
    PendingResource,
    archive_path,
    archives_of,
    history_file,
    save,
    text_of,
)
from lakelet.deploy.workspace_objects import delete_path, in_parallel, list_folder, make_folder, read_file, write_file

if TYPE_CHECKING:
    from lakelet.deploy.connection import Client

KEPT_DEPLOYMENTS = 10
"""Deployments that a rollback can return to."""


@dataclass(frozen=True)
class Deployment:
    """All that carrying out a plan needs.

    Attributes:
        contents: gives the bytes of a file that is wanted.
        named: keys of resources that are deleted with what they hold.
        previous: the deployment that a rollback returns to afterwards.
        notice: called with a sentence about what is going on.
    """

    client: Client
    apis: Mapping[ResourceKind, ResourceRequests]
    user: User
    lock: DeploymentLock
    desired: DesiredState
    state: DeploymentState
    observed: Mapping[ResourceKey, ObservedResource]
    plan: DeploymentPlan
    contents: Callable[[SourceFile], bytes]
    named: frozenset[ResourceKey]
    operation: str
    previous: int | None
    notice: Callable[[str], None]

    @property
    def wanted(self) -> dict[ResourceKey, Resource]:
        """Resources by key, each after those that it needs."""
        return {resource.key: resource for resource in in_order(self.desired.resources)}


def carry_out(deployment: Deployment) -> DeploymentState:
    """Do what the plan says and return the state afterwards.

    Raises DEPLOY_CONFLICT where somebody changed a resource meanwhile, DEPLOY_LOCKED where somebody took the lock, DEPLOY_SECRET where a
    rollback lacks a secret, and what the workspace refuses. What was done is kept, and known to the next deployment.
    """
    trees = _trees_to_send(deployment)
    state = _write_pending_state(deployment)
    files = state.pending.files if state.pending else {}
    _upload_files(deployment, files, state.pending.superseded if state.pending else ())
    deployment.lock.check()
    state = _apply_resources(deployment, trees, state)
    state = _delete_resources(deployment, state)
    _remove_files(deployment, files)
    deployment.lock.check()
    return _write_finished_state(deployment, state, files)


def _trees_to_send(deployment: Deployment) -> dict[ResourceKey, dict[str, Any]]:
    """Settings and permissions of each resource as the deployment sends them, with what the workspace keeps; references as text."""
    trees = {}
    for key, resource in deployment.wanted.items():
        seen = deployment.observed.get(key)
        now = fields(seen.tree) if seen else {}
        tree = _with_secrets(key, tree_of(resource), now, deployment.state.deployment_id)
        for path in deployment.plan.updates.get(key, ResourceUpdate()).kept:
            tree = with_field(tree, path, now[path]) if path in now else without_field(tree, path)
        trees[key] = tree
    return trees


def _with_secrets(key: ResourceKey, tree: dict[str, Any], now: Mapping[tuple[str, ...], Any], salt: str) -> dict[str, Any]:
    """The tree of an earlier deployment with the secrets that the workspace still holds."""
    for path, value in fields(tree).items():
        if not has_mask(value):
            continue
        if path not in now or masked({path[-1]: now[path]}, salt)[path[-1]] != value:
            what = f"{key}: the secret value of {'.'.join(path)} is not in the workspace any more, and no deployment keeps it"
            raise LakeletError(
                "DEPLOY_SECRET", what, todo="Check out that version and deploy it, or use {{secrets/scope/key}} as the value."
            )
        tree = with_field(tree, path, now[path])
    return tree


def _write_pending_state(deployment: Deployment) -> DeploymentState:
    """Write contents for a later rollback, and the state with what is about to be made."""
    desired, state, workspace = deployment.desired, deployment.state, deployment.desired.workspace
    for folder in (HISTORY, OBJECTS):
        make_folder(deployment.client, f"{workspace.state_path}/{folder}")
    files = _write_archives(deployment)
    salt = state.deployment_id
    touched = {*deployment.plan.creates, *(key for key, update in deployment.plan.updates.items() if _needs_writing(update))}
    intents = {
        key: PendingResource(masked(tree_of(resource), salt), key in deployment.plan.creates)
        for key, resource in deployment.wanted.items()
        if key in touched or (state.pending and key in state.pending.resources)
    }
    unsure = state.pending.files if state.pending else {}
    removals = set(deployment.plan.removals)
    files = {**{path: file for path, file in {**state.files, **unsure}.items() if path in removals}, **files}
    since = datetime.now(timezone.utc).isoformat(timespec="seconds")
    state = replace(
        state.without_resources(*deployment.plan.creates, *deployment.plan.gone),
        bundle=desired.bundle,
        target=desired.target,
        files={path: file for path, file in state.files.items() if path not in removals},
        pending=PendingDeployment(deployment.operation, deployment.user.user_name, since, intents, files, _superseded(state, files)),
    )
    save(deployment.client, workspace, state)
    reached("deploy.announced")
    return state


def _superseded(state: DeploymentState, files: Mapping[str, DeployedFile]) -> tuple[str, ...]:
    """Where files lay that are uploaded to another path: a notebook that becomes a file, or the other way round."""
    pending = state.pending
    earlier = [state.files, pending.files if pending else {}]
    old = {known[path].remote for known in earlier for path in files if path in known} | set(pending.superseded if pending else ())
    return tuple(sorted(old - {file.remote for file in {**state.files, **files}.values()}))


def _needs_writing(update: ResourceUpdate) -> bool:
    return update.settings or update.permissions or update.publish


def _write_archives(deployment: Deployment) -> dict[str, DeployedFile]:
    """The files that are uploaded, their contents being kept in archives of the workspace."""
    state, uploads = deployment.state, set(deployment.plan.uploads)
    known = {file.sha256: file.pack for file in state.files.values()}
    files = [file for file in deployment.desired.files if file.path in uploads]
    archives = dict(known)
    for archive in archives_of((file.sha256, _file_content(deployment, file)) for file in files if file.sha256 not in known):
        write_file(deployment.client, archive_path(deployment.desired.workspace, archive.name), archive.content)
        archives.update(dict.fromkeys(archive.members, archive.name))
        reached("deploy.packed")
    return {file.path: DeployedFile(file.sha256, file.size, _remote_path(deployment, file), archives[file.sha256]) for file in files}


def _file_content(deployment: Deployment, file: SourceFile) -> bytes:
    content = deployment.contents(file)
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise LakeletError("DEPLOY_CONFLICT", f"{file.path} was changed while it was being deployed", todo="Deploy again.")
    return content


def _remote_path(deployment: Deployment, file: SourceFile) -> str:
    """Where a file lies in the workspace, which keeps notebooks without their extension."""
    path = f"{deployment.desired.workspace.file_path}/{file.path}"
    return path.removesuffix(PurePosixPath(path).suffix) if begins_notebook(path, lambda: _file_content(deployment, file)) else path


def _upload_files(deployment: Deployment, files: Mapping[str, DeployedFile], superseded: tuple[str, ...]) -> None:
    """Upload in parallel, after what lies in the way of it was removed."""
    in_parallel(lambda path: delete_path(deployment.client, path), superseded)
    wanted = {file.path: file for file in deployment.desired.files}
    uploads = {path: file for path, file in files.items() if path in wanted}
    if not uploads:
        return
    folders = {file.remote.rpartition("/")[0] for file in uploads.values()}
    deepest = sorted(folder for folder in folders if not any(other.startswith(f"{folder}/") for other in folders))
    in_parallel(lambda folder: make_folder(deployment.client, folder), deepest)
    done = [0]

    def upload(path: str) -> None:
        write_file(deployment.client, uploads[path].remote, _file_content(deployment, wanted[path]))
        reached("deploy.uploaded")
        done[0] += 1
        if done[0] % 50 == 0 or done[0] == len(uploads):
            deployment.notice(f"Uploaded {done[0]:,} of {counted(len(uploads), 'file')}")

    in_parallel(upload, sorted(uploads))


def _apply_resources(deployment: Deployment, trees: Mapping[ResourceKey, dict[str, Any]], state: DeploymentState) -> DeploymentState:
    """Make and change resources, each after those that it needs."""
    for key in deployment.wanted:
        create, update = key in deployment.plan.creates, deployment.plan.updates.get(key, ResourceUpdate())
        if not create and not _needs_writing(update) and not (state.pending and key in state.pending.resources):
            continue
        deployment.notice(f"{'Creating' if create else 'Updating'} {key}")
        tree = resolved(trees[key], state.ids)
        if create:
            deployment.lock.check()
            state = _create_resource(deployment, key, tree, state)
        elif update.settings:
            _update_resource(deployment, key, tree)
            reached("deploy.updated")
        state = _record_resource(deployment, key, tree, state)
    return state


def _create_resource(deployment: Deployment, key: ResourceKey, tree: dict[str, Any], state: DeploymentState) -> DeploymentState:
    api, settings = deployment.apis[key.kind], without_permissions(tree)
    try:
        id = api.create(settings)
    except LakeletError as error:
        if error.code != "WORKSPACE_UNANSWERED":
            raise _name_taken_error(key, deployment.wanted[key], error) from error
        claimed = {one.id for one in state.resources.values() if one.key.kind is key.kind}
        pending = state.pending
        began = datetime.fromisoformat(pending.since) if pending else datetime.now(timezone.utc)
        found = find_unanswered(api, settings, claimed, CreationAttempt(deployment.user.user_name, int(began.timestamp() * 1000) - 600_000))
        id = found or api.create(settings)
    reached("deploy.created")
    state = state.with_resource(DeployedResource(key, id, {}))
    save(deployment.client, deployment.desired.workspace, state)
    reached("deploy.recorded")
    return state


FIND_PAUSES = (0, 1, 2)
"""Seconds to wait before each search for something that may have been made: lists of the workspace can be a little behind."""


def find_unanswered(api: ResourceRequests, settings: Mapping[str, Any], claimed: set[str], birth: CreationAttempt) -> str | None:
    """The id of what a request without an answer made; None if it made nothing."""
    for seconds in FIND_PAUSES:
        time.sleep(seconds)
        id = api.find(settings, claimed, birth)
        if id is not None:
            return id
    return None


def _name_taken_error(key: ResourceKey, resource: Resource, error: LakeletError) -> LakeletError:
    if error.code != "WORKSPACE_CONFLICT" and "ALREADY_EXISTS" not in (error.why or ""):
        return error
    what = f"{key} cannot be made: its name is taken by something that this bundle did not deploy"
    return LakeletError("DEPLOY_EXISTS", what, where=resource.where, why=error.why, todo="Choose another name, or delete the other one.")


def _update_resource(deployment: Deployment, key: ResourceKey, tree: dict[str, Any]) -> None:
    observed = deployment.observed[key]
    try:
        deployment.apis[key.kind].update(observed.id, without_permissions(tree), observed)
    except LakeletError as error:
        if error.code != "WORKSPACE_CONFLICT":
            raise
        what = f"{key} was changed by somebody else while it was being deployed"
        raise LakeletError("DEPLOY_CONFLICT", what, why=error.why, todo="Deploy again: the plan shows what was changed.") from error


def _record_resource(deployment: Deployment, key: ResourceKey, tree: dict[str, Any], state: DeploymentState) -> DeploymentState:
    """Apply grants and publication of a resource that is up to date apart from them; then record in the state what the workspace has."""
    api, deployed, resource = deployment.apis[key.kind], state.resources[key], deployment.wanted[key]
    update = deployment.plan.updates.get(key, ResourceUpdate(permissions=PERMISSIONS in tree, publish=True))
    if update.permissions:
        now = read_permissions(api, key.kind, deployed.id)
        write_permissions(api, key.kind, deployed.id, tree, now, deployment.user)
        reached("deploy.granted")
    if update.publish and isinstance(api, DashboardRequests):
        api.publish(deployed.id, tree)
        reached("deploy.published")
    seen = _read_after_write(api, key, deployed.id, permissions=has_permissions(tree, deployed.settings))
    found = as_found(masked(seen.tree, state.deployment_id))
    then = fields(deployed.found)
    for path in update.kept:  # the measure of drift stays what it was
        found = with_field(found, path, then[path]) if path in then else without_field(found, path)
    declared = tree_of(resource)
    ids = {str(one): state.ids[one] for one in sorted(referred(declared)) if one in state.ids}
    settings = masked(declared, state.deployment_id)
    return state.with_resource(DeployedResource(key, deployed.id, settings, ids, found, resource.prevent_destroy))


def _read_after_write(api: ResourceRequests, key: ResourceKey, id: str, *, permissions: bool) -> ObservedResource:
    """A resource that exists: the workspace may not show it at once if it was created just now."""
    for seconds in FIND_PAUSES:
        time.sleep(seconds)
        seen = observe(api, key, id, permissions=permissions)
        if seen:
            return seen
    raise LakeletError("DEPLOY_CONFLICT", f"{key} was deleted while it was being deployed", todo="Deploy again.")


def _delete_resources(deployment: Deployment, state: DeploymentState) -> DeploymentState:
    for key in deployment.plan.deletes:
        deployment.lock.check()
        deployment.notice(f"Deleting {key}")
        delete_resource(deployment.apis[key.kind], state.resources[key], data=key in deployment.named)
        reached("deploy.deleted")
    return state.without_resources(*deployment.plan.deletes)


def delete_resource(api: ResourceRequests, deployed: DeployedResource, *, data: bool) -> None:
    """Delete a resource that may be gone already. `data`: with what it holds."""
    try:
        api.delete(deployed.id, data=data)
    except LakeletError as error:
        if not is_missing(error):
            raise


def _remove_files(deployment: Deployment, files: Mapping[str, DeployedFile]) -> None:
    removals = set(deployment.plan.removals)
    known = [(path, file.remote) for earlier in (files, deployment.state.files) for path, file in earlier.items()]
    gone = sorted({remote for path, remote in known if path in removals} - {remote for path, remote in known if path not in removals})

    def remove(remote: str) -> None:
        delete_path(deployment.client, remote)
        reached("deploy.file_removed")

    in_parallel(remove, gone)
    remove_empty_folders(deployment.client, gone, deployment.desired.workspace.file_path)


def remove_empty_folders(client: Client, files: list[str], top: str) -> None:
    """Delete the folders of these files below `top` that are empty now; what others put there stays, with its folder."""
    folders = {folder for file in files for folder in _folders_above(file, top)}
    for folder in sorted(folders, key=len, reverse=True):
        if list_folder(client, folder) == []:
            delete_path(client, folder)


def _folders_above(file: str, top: str) -> list[str]:
    parts = file.removeprefix(f"{top}/").split("/")[:-1]
    return [f"{top}/{'/'.join(parts[:count])}" for count in range(1, len(parts) + 1)]


def _write_finished_state(deployment: Deployment, state: DeploymentState, files: Mapping[str, DeployedFile]) -> DeploymentState:
    """Write the deployment among the earlier ones, then as the state; forget those that are too old."""
    client, workspace = deployment.client, deployment.desired.workspace
    wanted = {file.path for file in deployment.desired.files}
    state = replace(
        state,
        serial=state.serial + 1,
        previous=deployment.previous,
        deployed_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        deployed_by=deployment.user.user_name,
        files={path: file for path, file in {**state.files, **files}.items() if path in wanted},
        pending=None,
    )
    write_file(client, history_file(workspace, state.serial), text_of(state).encode())
    reached("deploy.kept")
    save(client, workspace, state)
    reached("deploy.saved")
    _delete_old_deployments(client, deployment, state)
    return state


def _delete_old_deployments(client: Client, deployment: Deployment, state: DeploymentState) -> None:
    """Delete deployments that a rollback cannot return to any more, and contents that only they had."""
    workspace = deployment.desired.workspace
    kept = {file.pack for file in state.files.values()}
    for entry in list_folder(client, f"{workspace.state_path}/{HISTORY}"):
        name = entry["path"].rpartition("/")[2]
        serial = int(name.removesuffix(".json")) if name.removesuffix(".json").isdigit() else None
        if serial is None:
            continue
        if serial <= state.serial - KEPT_DEPLOYMENTS or serial > state.serial:
            delete_path(client, entry["path"])
            reached("deploy.forgotten")
            continue
        content = read_file(client, entry["path"]) if serial != state.serial else None
        kept |= {file["pack"] for file in json.loads(content)["files"].values()} if content else set()
    for entry in list_folder(client, f"{workspace.state_path}/{OBJECTS}"):
        if entry["path"].rpartition("/")[2] not in kept:
            delete_path(client, entry["path"])
            reached("deploy.forgotten")
