"""Takes a deployment away: resources, files, state. Data stays unless it is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from lakelet.base.errors import LakeletError
from lakelet.base.failpoints import reached
from lakelet.deploy.apply import delete_resource, remove_empty_folders
from lakelet.deploy.deployment import Options, Prepared, prepare
from lakelet.deploy.desired import Desired, User, Workspace
from lakelet.deploy.lock import locked
from lakelet.deploy.looking import in_parallel
from lakelet.deploy.plan import named_resources
from lakelet.deploy.remote import apis
from lakelet.deploy.state import HISTORY, OBJECTS, State, load, save, state_file
from lakelet.deploy.workspace_files import delete_path, list_folder

if TYPE_CHECKING:
    from lakelet.deploy.client import Client


def prepare_destroy(client: Client, workspace: Workspace, options: Options) -> Prepared:
    """Plan to take everything away that was deployed. Writes nothing.

    Raises DEPLOY_UNKNOWN where nothing was deployed, DEPLOY_PREVENTED for a resource with `lifecycle.prevent_destroy`.
    """
    state = load(client, workspace)
    if not state.deployment_id:
        raise LakeletError("DEPLOY_UNKNOWN", f"nothing was deployed to {workspace.root_path}")
    return prepare(client, Desired(state.bundle, state.target, False, workspace, (), ()), options)


def destroy(
    client: Client, prepared: Prepared, user: User, options: Options, *, notice: Callable[[str], None] = lambda text: None
) -> State:
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
        state = _forgotten(client, workspace, state)
    if not state.resources:
        for folder in (workspace.state_path, workspace.resource_path, workspace.file_path, workspace.root_path):
            if _is_empty_folder(client, folder):
                delete_path(client, folder)
    return state


def _forgotten(client: Client, workspace: Workspace, state: State) -> State:
    """Delete what was kept for rollbacks, then the state, or leave in it what still exists."""
    state = replace(state, previous=None, files={}, pending=None) if state.resources else State()
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
