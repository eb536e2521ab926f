"""Back to an earlier deployment: its settings and its files, from what the workspace keeps of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lakelet.base.errors import LakeletError, Location
from lakelet.deploy.deployment import Options, Prepared, deploy, prepare
from lakelet.deploy.desired import Desired, Resource, SourceFile, User, Workspace
from lakelet.deploy.packs import kept_contents
from lakelet.deploy.settings import permissions_of, without_permissions
from lakelet.deploy.state import State, history_file, load, load_deployment

if TYPE_CHECKING:
    from lakelet.deploy.client import Client


@dataclass(frozen=True)
class Return:
    """An earlier deployment that is wanted again, and what that changes."""

    earlier: State
    prepared: Prepared


def prepare_rollback(client: Client, workspace: Workspace, options: Options, serial: int | None = None) -> Return:
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
    return Return(earlier, prepare(client, _desired(earlier, workspace), options))


def roll_back(client: Client, back: Return, user: User, options: Options, *, notice: Callable[[str], None] = lambda text: None) -> Prepared:
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


def _desired(earlier: State, workspace: Workspace) -> Desired:
    where = Location(history_file(workspace, earlier.serial), 0)
    resources = tuple(
        Resource(key, without_permissions(one.settings), permissions_of(one.settings), where, one.prevent_destroy)
        for key, one in sorted(earlier.resources.items())
    )
    files = tuple(SourceFile(path, Path(path), file.sha256, file.size) for path, file in sorted(earlier.files.items()))
    return Desired(earlier.bundle, earlier.target, False, workspace, resources, files)
