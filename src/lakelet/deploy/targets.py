"""Opens the deployment of a target for the commands that watch it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.deploy.bundle import place_of, workspace_of
from lakelet.deploy.client import Client, connect
from lakelet.deploy.desired import ResourceKind, Workspace
from lakelet.deploy.state import State, load


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
    state: State

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
    place = place_of(root, target, client.user(), environ=environ, cwd=cwd)
    return Target(root, place.bundle, place.target, client, place.workspace, load(client, place.workspace))
