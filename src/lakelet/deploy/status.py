"""Status of a target: its deployed resources and the state of its pipelines, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError
from lakelet.deploy.desired import ResourceKey
from lakelet.deploy.lock import Holder, holder_of
from lakelet.deploy.watching import RemoteUpdate, updates

if TYPE_CHECKING:
    from lakelet.deploy.targets import RemotePipeline, Target

MISSING = "MISSING"
"""The state of a pipeline that is in the state file and no more in the workspace."""
SHOWN_UPDATES = 5


@dataclass(frozen=True)
class DeployedResource:
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
            {"update_id": one.id, "state": one.state, "cause": one.cause, "created_at": one.created and _iso(one.created)}
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
    lock: Holder | None
    resources: tuple[DeployedResource, ...]
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
    """Ask the workspace about a target. A pipeline that somebody deleted has the state MISSING."""
    state = target.state
    resources = [DeployedResource(key, one.id, _name(one.settings)) for key, one in sorted(state.resources.items())]
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
        tuple(_pipeline(target, one) for one in target.pipelines),
    )


def _name(settings: Mapping[str, Any]) -> str:
    return str(settings.get("name") or settings.get("display_name") or "")


def _pipeline(target: Target, pipeline: RemotePipeline) -> PipelineStatus:
    try:
        found = target.client.sdk.pipelines.get(pipeline.id)
        newest = updates(target.client, pipeline.id, SHOWN_UPDATES)
    except LakeletError as error:
        if error.code != "WORKSPACE_NOT_FOUND":
            raise
        return PipelineStatus(pipeline.key, pipeline.id, pipeline.name, MISSING, "", ())
    state, health = (str(value.value) if value else "" for value in (found.state, found.health))
    return PipelineStatus(pipeline.key, pipeline.id, found.name or pipeline.name, state, health, tuple(newest))


def _iso(moment: Any) -> str:
    return str(moment.isoformat(timespec="milliseconds")).replace("+00:00", "Z")
