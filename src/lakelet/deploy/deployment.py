"""The operations on a target: deploying, returning to an earlier deployment, taking everything away.

Each is prepared without a lock from what is wanted, what was deployed and what the workspace holds; it is carried out with one. Data stays
unless it is named.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from lakelet.base.errors import LakeletError, Location
from lakelet.base.failpoints import reached
from lakelet.deploy.apply import Deployment, carry_out, delete_resource, remove_empty_folders
from lakelet.deploy.desired_state import DesiredState, Resource, ResourceKey, ResourceKind, SourceFile, User, Workspace
from lakelet.deploy.plan import HOLDING_DATA, DeploymentPlan, ObservedResource, as_if_finished, named_resources, plan, refuse_conflicts
from lakelet.deploy.resource_requests import CreationAttempt, ResourceRequests, apis, has_permissions, observe
from lakelet.deploy.resource_settings import in_order, permissions_of, resolved, tree_of, without_permissions
from lakelet.deploy.state import (
    HISTORY,
    OBJECTS,
    DeployedResource,
    DeploymentState,
    history_file,
    kept_contents,
    load,
    load_deployment,
    locked,
    save,
    state_file,
)
from lakelet.deploy.workspace_objects import delete_path, in_parallel, list_folder

if TYPE_CHECKING:
    from lakelet.deploy.connection import Client


@dataclass(frozen=True)
class DeploymentOptions:
    """What a user chooses for a deployment.

    Attributes:
        force: overwrite what others changed in the workspace.
        force_lock: take the lock over, whoever holds it.
        with_data: keys of resources that may be deleted with what they hold.
    """

    force: bool = False
    force_lock: bool = False
    with_data: tuple[str, ...] = ()


@dataclass(frozen=True)
class PreparedDeployment:
    """A deployment that could begin: what is wanted, what was deployed, what is there, and what to do."""

    desired: DesiredState
    state: DeploymentState
    observed: Mapping[ResourceKey, ObservedResource]
    plan: DeploymentPlan


def prepare(client: Client, desired: DesiredState, options: DeploymentOptions) -> PreparedDeployment:
    """Read the state and the workspace, and plan. Writes nothing.

    Raises DEPLOY_STATE for a state of another bundle or target, and what `plan` raises.
    """
    state = load(client, desired.workspace)
    return _prepared_from(client, apis(client, desired.workspace), desired, options, state)


def _prepared_from(
    client: Client,
    calls: Mapping[ResourceKind, ResourceRequests],
    desired: DesiredState,
    options: DeploymentOptions,
    state: DeploymentState,
) -> PreparedDeployment:
    if state.deployment_id and (state.bundle, state.target) != (desired.bundle, desired.target):
        what = f"{desired.workspace.state_path} holds a deployment of the bundle {state.bundle}, target {state.target}"
        todo = "Give each bundle and each target a workspace.root_path of its own."
        raise LakeletError("DEPLOY_STATE", what, why=f"this one is {desired.bundle}, target {desired.target}", todo=todo)
    state = state if state.deployment_id else replace(state, deployment_id=uuid.uuid4().hex)
    state, observed = read_workspace(calls, desired, state)
    state = as_if_finished(state, observed)
    return PreparedDeployment(desired, state, observed, plan(desired, state, observed, force=options.force, with_data=options.with_data))


def deploy(
    client: Client,
    prepared: PreparedDeployment,
    user: User,
    options: DeploymentOptions,
    *,
    contents: Callable[[SourceFile], bytes] = lambda file: file.local.read_bytes(),
    operation: str = "deploy",
    previous: int | None = None,
    notice: Callable[[str], None] = lambda text: None,
) -> PreparedDeployment:
    """Carry a prepared deployment out; return it with the plan that was followed and the state afterwards.

    Nothing is written where there is nothing to do. If somebody deployed since, it is prepared again under the lock.

    Args:
        contents: gives the bytes of a file that is wanted.
        operation: the command, as others see it in the lock.
        previous: the deployment that a rollback returns to afterwards; None for the one before.
        notice: called with a sentence about what is going on.

    Raises what `carry_out` and `prepare` raise, DEPLOY_DRIFT, DEPLOY_EXISTS, DEPLOY_LOCKED.
    """
    refuse_conflicts(prepared.plan)
    if prepared.plan.empty:
        return prepared
    desired, calls = prepared.desired, apis(client, prepared.desired.workspace)
    with locked(client, desired.workspace, user, operation, force=options.force_lock, notice=notice) as lock:
        prepared = _planned_again(client, calls, prepared, options)
        if prepared.plan.empty:
            return prepared
        refuse_taken(calls, desired, (key for key in prepared.plan.creates if key.kind in HOLDING_DATA))
        state = prepared.state
        job = Deployment(
            client=client,
            apis=calls,
            user=user,
            lock=lock,
            desired=desired,
            state=state,
            observed=prepared.observed,
            plan=prepared.plan,
            contents=contents,
            named=named_resources(options.with_data, state),
            operation=operation,
            previous=previous if operation == "rollback" else (state.serial or None),
            notice=notice,
        )
        return replace(prepared, state=carry_out(job))


def _planned_again(
    client: Client, calls: Mapping[ResourceKind, ResourceRequests], prepared: PreparedDeployment, options: DeploymentOptions
) -> PreparedDeployment:
    """The same under the lock; planned again if the state was written since."""
    state = load(client, prepared.desired.workspace)
    before = prepared.state
    if (state.serial, state.deployment_id or before.deployment_id, state.pending) == (before.serial, before.deployment_id, before.pending):
        return prepared
    again = _prepared_from(client, calls, prepared.desired, options, state)
    refuse_conflicts(again.plan)
    return again


_CLOCKS_DIFFER = 600_000
"""Milliseconds by which this machine's clock and the workspace's may differ."""


def read_workspace(
    apis: Mapping[ResourceKind, ResourceRequests], desired: DesiredState, state: DeploymentState
) -> tuple[DeploymentState, dict[ResourceKey, ObservedResource]]:
    """Return the state with the resources that a dead deployment made, and what the workspace holds of all of them."""
    granted = {resource.key for resource in desired.resources if resource.permissions}
    state = _with_unrecorded(apis, desired, state)

    def read(deployed: DeployedResource) -> ObservedResource | None:
        asked = deployed.key in granted or has_permissions(deployed.settings)
        return observe(apis[deployed.key.kind], deployed.key, deployed.id, permissions=asked)

    observed = in_parallel(read, state.resources.values())
    return state, {one.key: seen for one, seen in zip(state.resources.values(), observed, strict=True) if seen is not None}


def _with_unrecorded(apis: Mapping[ResourceKind, ResourceRequests], desired: DesiredState, state: DeploymentState) -> DeploymentState:
    """The state with the ids of resources that were about to be made when a deployment died, if they were made."""
    pending = state.pending
    if pending is None:
        return state
    birth = CreationAttempt(pending.user, int(datetime.fromisoformat(pending.since).timestamp() * 1000) - _CLOCKS_DIFFER)
    waiting = {key: intent for key, intent in pending.resources.items() if intent.create and key not in state.resources}
    order = [resource.key for resource in in_order(desired.resources)]
    for key in sorted(waiting, key=lambda key: (order.index(key) if key in order else len(order), key)):
        intent = waiting[key]
        settings = resolved(intent.settings, state.ids)
        claimed = {one.id for one in state.resources.values() if one.key.kind is key.kind}
        id = apis[key.kind].find(settings, claimed, birth)
        if id is not None:
            state = state.with_resource(DeployedResource(key, id, {}))
    return state


def refuse_taken(apis: Mapping[ResourceKind, ResourceRequests], desired: DesiredState, creates: Iterable[ResourceKey]) -> None:
    """Raise DEPLOY_EXISTS if a schema or volume that the deployment must create exists already."""
    wanted = {resource.key: resource for resource in desired.resources}
    for key in creates:
        api = apis[key.kind]
        name = api.full_name(tree_of(wanted[key]))
        if name is not None and api.read(name) is not None:
            what = f"{key}: the {key.kind.word} {name} is there already, and this bundle did not make it"
            todo = "Take it out of the bundle: pipelines write to it as it is. Or delete it in the workspace."
            raise LakeletError("DEPLOY_EXISTS", what, where=wanted[key].where, todo=todo)


@dataclass(frozen=True)
class Rollback:
    """An earlier deployment that is wanted again, and what that changes."""

    earlier: DeploymentState
    prepared: PreparedDeployment


def prepare_rollback(client: Client, workspace: Workspace, options: DeploymentOptions, serial: int | None = None) -> Rollback:
    """Plan the way back. Writes nothing.

    Args:
        serial: number of the deployment to return to; None for the one before the last, or the last one if a later one did not end.

    Raises DEPLOY_UNKNOWN where there is none, or it is not kept any more.
    """
    state = load(client, workspace)
    if not state.serial:
        raise LakeletError("DEPLOY_UNKNOWN", f"nothing was deployed to {workspace.root_path}", todo="Deploy first: lakelet deploy")
    wanted = serial if serial is not None else state.serial if state.pending else state.previous
    earlier = load_deployment(client, workspace, wanted) if wanted else None
    if earlier is None:
        what = f"deployment {wanted} is not kept" if wanted else "there is no earlier deployment to return to"
        raise LakeletError("DEPLOY_UNKNOWN", what, todo="Check out the version that you want and deploy it: lakelet deploy")
    return Rollback(earlier, prepare(client, _desired_again(earlier, workspace), options))


def roll_back(
    client: Client, back: Rollback, user: User, options: DeploymentOptions, *, notice: Callable[[str], None] = lambda text: None
) -> PreparedDeployment:
    """Carry it out; see `deploy`."""
    needed = {path: back.earlier.files[path] for path in back.prepared.plan.uploads}
    contents = kept_contents(client, back.prepared.desired.workspace, {file.sha256: file.pack for file in needed.values()})

    def content(file: SourceFile) -> bytes:
        if file.sha256 not in contents:
            place = back.earlier.files[file.path]
            contents.update(kept_contents(client, back.prepared.desired.workspace, {place.sha256: place.pack}))
        return contents[file.sha256]

    return deploy(
        client, back.prepared, user, options, contents=content, operation="rollback", previous=back.earlier.previous, notice=notice
    )


def _desired_again(earlier: DeploymentState, workspace: Workspace) -> DesiredState:
    where = Location(history_file(workspace, earlier.serial), 0)
    resources = tuple(
        Resource(key, without_permissions(one.settings), permissions_of(one.settings), where, one.prevent_destroy)
        for key, one in sorted(earlier.resources.items())
    )
    files = tuple(SourceFile(path, Path(path), file.sha256, file.size) for path, file in sorted(earlier.files.items()))
    return DesiredState(earlier.bundle, earlier.target, False, workspace, resources, files)


def prepare_destroy(client: Client, workspace: Workspace, options: DeploymentOptions) -> PreparedDeployment:
    """Plan to take everything away that was deployed. Writes nothing.

    Raises DEPLOY_UNKNOWN where nothing was deployed, DEPLOY_PREVENTED for a resource with `lifecycle.prevent_destroy`.
    """
    state = load(client, workspace)
    if not state.deployment_id:
        raise LakeletError("DEPLOY_UNKNOWN", f"nothing was deployed to {workspace.root_path}")
    return prepare(client, DesiredState(state.bundle, state.target, False, workspace, (), ()), options)


def destroy(
    client: Client,
    prepared: PreparedDeployment,
    user: User,
    options: DeploymentOptions,
    *,
    notice: Callable[[str], None] = lambda text: None,
) -> DeploymentState:
    """Carry it out and return what is left: an empty state, or one with the schemas and volumes that were not named.

    What died is done again from its begin: what is gone is passed over.
    """
    workspace = prepared.desired.workspace
    calls = apis(client, workspace)
    with locked(client, workspace, user, "destroy", force=options.force_lock, notice=notice) as lock:
        prepared = prepare_destroy(client, workspace, options)
        state, named = prepared.state, named_resources(options.with_data, prepared.state)
        for key in prepared.plan.deletes:
            lock.check()
            notice(f"Deleting {key}")
            delete_resource(calls[key.kind], state.resources[key], data=key in named)
            reached("deploy.destroyed")
        files = sorted(file.remote for file in {**(state.pending.files if state.pending else {}), **state.files}.values())
        in_parallel(lambda path: delete_path(client, path), files)
        remove_empty_folders(client, files, workspace.root_path)
        reached("deploy.files_destroyed")
        state = state.without_resources(*prepared.plan.deletes, *prepared.plan.gone)
        lock.check()
        state = _without_history(client, workspace, state)
    if not state.resources:
        for folder in (workspace.state_path, workspace.resource_path, workspace.file_path, workspace.root_path):
            if _is_empty_folder(client, folder):
                delete_path(client, folder)
    return state


def _without_history(client: Client, workspace: Workspace, state: DeploymentState) -> DeploymentState:
    """Delete what was kept for rollbacks, then the state, or leave in it what still exists."""
    state = replace(state, previous=None, files={}, pending=None) if state.resources else DeploymentState()
    if state.resources:
        save(client, workspace, state)
        reached("deploy.reduced")
    for folder in (HISTORY, OBJECTS):
        delete_path(client, f"{workspace.state_path}/{folder}", recursive=True)
        reached("deploy.history_destroyed")
    if not state.resources:
        delete_path(client, state_file(workspace))
        reached("deploy.state_destroyed")
    return state


def _is_empty_folder(client: Client, path: str) -> bool:
    return list_folder(client, path) == []
