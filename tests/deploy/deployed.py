"""A project whose pipelines are deployed, as far as the commands that watch them can see: a state file and pipelines in the workspace."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelet.deploy import state
from lakelet.deploy.connection import Client, connect
from lakelet.deploy.desired_state import ResourceKey, ResourceKind
from lakelet.deploy.desired_state import Workspace as Place
from lakelet.deploy.state import DeployedResource, DeploymentState
from tests.workspace_double import Workspace

if TYPE_CHECKING:
    from tests.workspace_double.updates import Update

BUNDLE = """\
bundle:
  name: shop
targets:
  dev:
    default: true
  prod:
    workspace:
      root_path: /Workspace/Shared/shop/prod
"""
ROOT = "/Workspace/Shared/shop/prod"


class Deployed:
    """The target `prod` of a project in `root`.

    Attributes:
        ids: the IDs of the deployed pipelines, by key.
    """

    def __init__(self, workspace: Workspace, root: Path) -> None:
        self.workspace, self.root = workspace, root
        self.ids: dict[str, str] = {}
        root.mkdir()
        (root / "databricks.yml").write_text(BUNDLE)
        self._client: Client | None = None
        self._state = DeploymentState()

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = connect(self.workspace.url, None, environ={**os.environ, "DATABRICKS_TOKEN": self.workspace.token})
        return self._client

    @property
    def place(self) -> Place:
        return Place(self.workspace.url, None, ROOT, f"{ROOT}/files", f"{ROOT}/resources", f"{ROOT}/state")

    def pipeline(self, key: str, **settings: Any) -> str:
        """Deploy a pipeline, and return its ID."""
        wanted = {"name": key, "catalog": "main", "schema": "sales", **settings}
        made = self.client.sdk.pipelines.create(**wanted).pipeline_id
        assert made
        self.ids[key] = made
        resource = DeployedResource(ResourceKey(ResourceKind.PIPELINE, key), made, wanted)
        facts = {"deployment_id": "d", "bundle": "shop", "target": "prod", "deployed_at": "2026-08-01T12:00:00Z", "deployed_by": "me@x"}
        known = DeploymentState(**facts, serial=self._state.serial + 1, resources=self._state.resources)  # type: ignore[arg-type]
        self._state = known.with_resource(resource)
        self.client.sdk.workspace.mkdirs(self.place.state_path)
        state.save(self.client, self.place, self._state)
        return made

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make the project's folder the current one, and the workspace that of the environment."""
        monkeypatch.chdir(self.root)
        monkeypatch.delenv("LAKELET_TARGET", raising=False)
        for name, value in self.workspace.environment.items():
            monkeypatch.setenv(name, value)

    def start(self, key: str) -> str:
        """Start an update by other means, and return its ID."""
        return str(self.client.sdk.pipelines.start_update(self.ids[key]).update_id)

    def updates(self, key: str) -> list[Update]:
        """The updates of a pipeline, the oldest first."""
        return self.workspace.pipelines[self.ids[key]].updates

    def state(self) -> DeploymentState:
        return state.load(self.client, self.place)
