"""A deployment target for the commands that watch it: what is deployed to it, and the state of its pipelines, as one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.deploy.bundle import location_of, workspace_of
from lakelet.deploy.connection import Client, connect
from lakelet.deploy.desired_state import ResourceKey, ResourceKind, Workspace
from lakelet.deploy.remote_updates import RemoteUpdate, updates
from lakelet.deploy.state import DeploymentState, LockHolder, holder_of, load


@dataclass(frozen=True)
class RemotePipeline:
    """A deployed pipeline: its key in the bundle, its ID in the workspace, its settings as deployed."""

    key: str
    id: str
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.settings.get("name") or self.key)


@dataclass(frozen=True)
class Target:
    """A deployment target, with the connection to its workspace and what was deployed to it."""

    root: Path
    bundle: str
    name: str
    client: Client
    workspace: Workspace
    state: DeploymentState

    @property
    def pipelines(self) -> tuple[RemotePipeline, ...]:
        """The deployed pipelines, by key."""
        found = [(key.name, one) for key, one in self.state.resources.items() if key.kind is ResourceKind.PIPELINE]
        return tuple(RemotePipeline(name, one.id, one.settings) for name, one in sorted(found))

    def pipeline(self, key: str | None) -> RemotePipeline:
        """The pipeline of this key; without one, the only pipeline.

        Raises NOT_DEPLOYED where there is none (of this key), USAGE where a key is needed to choose.
        """
        found = {one.key: one for one in self.pipelines}
        if not found:
            todo = f"Deploy it first: lakelet deploy -t {self.name}"
            raise LakeletError("NOT_DEPLOYED", f"nothing with a pipeline is deployed to the target {self.name}", todo=todo)
        if key is None and len(found) > 1:
            todo = "\n".join(f"--pipeline {name}" for name in found)
            raise LakeletError("USAGE", f"the target {self.name} has {len(found)} pipelines: choose one", todo=todo)
        if key is not None and key not in found:
            what = f"the target {self.name} has no deployed pipeline {key!r}"
            raise LakeletError("NOT_DEPLOYED", what, nearest=nearest_names(key, found), todo=f"Deployed: {', '.join(found)}")
        return found[key] if key is not None else next(iter(found.values()))


def open_target(root: Path, target: str | None, *, environ: Mapping[str, str], cwd: Path, notice: Callable[[str], None]) -> Target:
    """Return a target of the bundle in `root` with what is deployed to it.

    Raises DefinitionErrors for an invalid bundle, LakeletErrors WORKSPACE_… of the connection.
    """
    said = workspace_of(root, target, environ=environ, cwd=cwd)
    client = connect(said.pop("host", None), said.pop("profile", None), said, environ=environ, notice=notice)
    place = location_of(root, target, client.user(), environ=environ, cwd=cwd)
    return Target(root, place.bundle, place.target, client, place.workspace, load(client, place.workspace))


MISSING_IN_WORKSPACE = "MISSING_IN_WORKSPACE"
"""The state of a pipeline that is in the state file and no more in the workspace."""
SHOWN_UPDATES = 5


@dataclass(frozen=True)
class ResourceStatus:
    """One resource of the state file. `name`: what it was called when it was deployed, empty where it has no name."""

    key: ResourceKey
    id: str
    name: str


@dataclass(frozen=True)
class PipelineStatus:
    """A deployed pipeline as the workspace describes it: its state and health in the workspace's words, the newest updates first."""

    key: str
    id: str
    name: str
    state: str
    health: str
    updates: tuple[RemoteUpdate, ...]

    def as_json(self) -> dict[str, Any]:
        shown = [
            {"update_id": one.id, "state": one.state, "cause": one.cause, "created_at": one.created and _iso_text(one.created)}
            for one in self.updates
        ]
        return {"key": self.key, "id": self.id, "name": self.name, "state": self.state, "health": self.health or None, "updates": shown}


@dataclass(frozen=True)
class TargetStatus:
    """A deployment target.

    Attributes:
        serial: number of the last finished deployment, 0 for none; with `deployed_at` (ISO 8601, UTC) and `deployed_by`.
        files: how many files are uploaded.
        pending: the operation that did not end, with who began it and when; empty for none.
        lock: who deploys now; None for nobody.
    """

    bundle: str
    target: str
    host: str
    serial: int
    deployed_at: str
    deployed_by: str
    files: int
    pending: str
    lock: LockHolder | None
    resources: tuple[ResourceStatus, ...]
    pipelines: tuple[PipelineStatus, ...]

    def as_json(self) -> dict[str, Any]:
        """The facts as JSON values, in the form of `lakelet status --json`."""
        facts = {name: getattr(self, name) for name in ("bundle", "target", "host", "serial", "deployed_at", "deployed_by", "files")}
        return {
            **facts,
            "pending": self.pending or None,
            "lock": self.lock and {name: getattr(self.lock, name) for name in ("user", "machine", "pid", "since", "operation")},
            "resources": [{"resource": str(one.key), "id": one.id, "name": one.name} for one in self.resources],
            "pipelines": [one.as_json() for one in self.pipelines],
        }


def read_status(target: Target) -> TargetStatus:
    """Ask the workspace about a target. A pipeline that somebody deleted has the state MISSING_IN_WORKSPACE."""
    state = target.state
    resources = [ResourceStatus(key, one.id, _name_when_deployed(one.settings)) for key, one in sorted(state.resources.items())]
    pending = state.pending
    return TargetStatus(
        target.bundle,
        target.name,
        target.client.host,
        state.serial,
        state.deployed_at,
        state.deployed_by,
        len(state.files),
        f"{pending.operation} by {pending.user} since {pending.since}" if pending else "",
        holder_of(target.client, target.workspace),
        tuple(resources),
        tuple(_pipeline_status(target, one) for one in target.pipelines),
    )


def _name_when_deployed(settings: Mapping[str, Any]) -> str:
    return str(settings.get("name") or settings.get("display_name") or "")


def _pipeline_status(target: Target, pipeline: RemotePipeline) -> PipelineStatus:
    try:
        found = target.client.sdk.pipelines.get(pipeline.id)
        newest = updates(target.client, pipeline.id, SHOWN_UPDATES)
    except LakeletError as error:
        if error.code != "WORKSPACE_NOT_FOUND":
            raise
        return PipelineStatus(pipeline.key, pipeline.id, pipeline.name, MISSING_IN_WORKSPACE, "", ())
    state, health = (str(value.value) if value else "" for value in (found.state, found.health))
    return PipelineStatus(pipeline.key, pipeline.id, found.name or pipeline.name, state, health, tuple(newest))


def _iso_text(moment: Any) -> str:
    return str(moment.isoformat(timespec="milliseconds")).replace("+00:00", "Z")
