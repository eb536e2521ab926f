"""A project that is deployed to a workspace on loopback, for the tests of deployments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lakelet.deploy import deployment
from lakelet.deploy.connection import Client, RequestTimeouts, connect
from lakelet.deploy.deployment import DeploymentOptions, PreparedDeployment
from lakelet.deploy.desired_state import DesiredState, Permission, Resource, ResourceKey, ResourceKind, SourceFile, User
from lakelet.deploy.desired_state import Workspace as Place
from lakelet.deploy.state import DeploymentState, load
from tests.workspace_double import Workspace

ROOT = "/Workspace/Users/dev.user@example.com/.bundle/shop/dev"
PLACE = Place(None, None, ROOT, f"{ROOT}/files", f"{ROOT}/resources", f"{ROOT}/state")
IN_TREE = ROOT.removeprefix("/Workspace")
USER = User("dev.user@example.com", "dev_user")
VIEWERS = (Permission("CAN_VIEW", "group_name", "analysts"),)
DASHBOARD = json.dumps({"datasets": [{"name": "d", "queryLines": ["SELECT 1"]}], "pages": [{"name": "p", "displayName": "Page"}]})


def key(kind: ResourceKind, name: str) -> ResourceKey:
    return ResourceKey(kind, name)


SCHEMA, VOLUME = key(ResourceKind.SCHEMA, "sales"), key(ResourceKind.VOLUME, "landing")
PIPELINE, DASH, JOB = key(ResourceKind.PIPELINE, "shop"), key(ResourceKind.DASHBOARD, "quality"), key(ResourceKind.JOB, "hourly")


def resources() -> dict[ResourceKey, Resource]:
    """A schema, a volume, a pipeline, a dashboard, and a job that starts the pipeline."""
    task = {"task_key": "update", "pipeline_task": {"pipeline_id": "${resources.pipelines.shop.id}"}}
    dashboard = {
        "display_name": "Quality",
        "serialized_dashboard": DASHBOARD,
        "parent_path": PLACE.resource_path,
        "dataset_catalog": "main",
    }
    made = (
        Resource(SCHEMA, {"name": "sales", "catalog_name": "main", "comment": "of the shop"}),
        Resource(VOLUME, {"name": "landing", "catalog_name": "main", "schema_name": "sales", "volume_type": "MANAGED"}),
        Resource(
            PIPELINE,
            {
                "name": "[dev] shop",
                "catalog": "main",
                "schema": "sales",
                "serverless": True,
                "libraries": [{"glob": {"include": f"{PLACE.file_path}/pipelines/**"}}],
                "configuration": {"landing": "/Volumes/main/sales/landing", "db_password": "hunter22"},
            },
            VIEWERS,
        ),
        Resource(DASH, {**dashboard, "dataset_catalog": "main", "warehouse_id": "w1"}),
        Resource(JOB, {"name": "[dev] hourly", "tasks": [task], "max_concurrent_runs": 1}, VIEWERS),
    )
    return {resource.key: resource for resource in made}


FILES = {
    "pipelines/orders.py": b"import dlt\n\n# \xc3\xbcber\n",
    "pipelines/sums.sql": b"CREATE MATERIALIZED VIEW sums AS SELECT 1\r\n",
    "pipelines/note.py": b"# Databricks notebook source\nimport dlt\n",
    "expectations/orders.yml": b"rules: {}\n",
    "data.bin": bytes(range(256)),
}


@dataclass
class Scene:
    """The project, and the workspace that it is deployed to. Tests change `files` and `resources`."""

    folder: Path
    workspace: Workspace
    resources: dict[ResourceKey, Resource] = field(default_factory=resources)
    files: dict[str, bytes] = field(default_factory=lambda: dict(FILES))
    notices: list[str] = field(default_factory=list)

    def client(self, **environ: str) -> Client:
        patience = RequestTimeouts(first=2, repeated=10, answer=10)
        return connect(None, None, environ={**self.workspace.environment, **environ}, patience=patience)

    @property
    def desired(self) -> DesiredState:
        found = []
        for path, content in self.files.items():
            local = self.folder / path
            local.parent.mkdir(parents=True, exist_ok=True)
            local.write_bytes(content)
            found.append(SourceFile(path, local, hashlib.sha256(content).hexdigest(), len(content)))
        return DesiredState("shop", "dev", True, PLACE, tuple(self.resources.values()), tuple(found))

    def change(self, key: ResourceKey, **settings: Any) -> None:
        """Change settings in the bundle; None takes one out."""
        resource = self.resources[key]
        merged = {name: value for name, value in {**resource.settings, **settings}.items() if value is not None}
        self.resources[key] = replace(resource, settings=merged)

    def plan(self, **options: Any) -> list[str]:
        """The plan as lines, shortened to what matters."""
        return shown(deployment.prepare(self.client(), self.desired, DeploymentOptions(**options)))

    def deploy(self, client: Client | None = None, **options: Any) -> PreparedDeployment:
        client, chosen = client or self.client(), DeploymentOptions(**options)
        return deployment.deploy(client, deployment.prepare(client, self.desired, chosen), USER, chosen, notice=self.notices.append)

    def roll_back(self, serial: int | None = None, **options: Any) -> PreparedDeployment:
        client, chosen = self.client(), DeploymentOptions(**options)
        return deployment.roll_back(client, deployment.prepare_rollback(client, PLACE, chosen, serial), USER, chosen)

    def destroy(self, **options: Any) -> DeploymentState:
        client, chosen = self.client(), DeploymentOptions(**options)
        return deployment.destroy(client, deployment.prepare_destroy(client, PLACE, chosen), USER, chosen)

    @property
    def state(self) -> DeploymentState:
        return load(self.client(), PLACE)

    @property
    def uploaded(self) -> dict[str, bytes]:
        """The sources in the workspace, by path."""
        return self.workspace.files.below(PLACE.file_path)

    def writes(self, since: int = 0) -> list[str]:
        """Writes to the workspace, but those of the state and the lock."""
        found = []
        for request in self.workspace.writes[since:]:
            path = request.body.get("path", "") if isinstance(request.body, Mapping) else ""
            if not path.startswith(PLACE.state_path) and not request.path.endswith("/mkdirs"):
                found.append(f"{request.method} {request.path.removeprefix('/api/')} {path.removeprefix(PLACE.file_path)}".strip())
        return found

    def image(self) -> dict[str, Any]:
        """All that a deployment leaves, without ids and times: equal for equal deployments."""
        w = self.workspace
        names = {id: f"<{one.name}>" for id, one in w.pipelines.items()}

        def grants(kind: str, id: str) -> list[str]:
            return sorted(f"{one.principal}: {one.level}" for one in w.permissions.grants[kind, id])

        def plain(value: Any) -> Any:
            text = json.dumps(value)
            for id, name in names.items():
                text = text.replace(id, name)
            return json.loads(text)

        live = [one for one in w.dashboards.values() if not one.trashed]
        return {
            "files": self.uploaded,
            "pipelines": sorted(([plain(one.spec), grants("pipelines", id)] for id, one in w.pipelines.items()), key=str),
            "jobs": sorted(([plain(one.settings), grants("jobs", str(id))] for id, one in w.jobs.items()), key=str),
            "dashboards": sorted([one.display_name, one.path, one.serialized, bool(one.published), one.warehouse_id] for one in live),
            "schemas": {name: (one.get("comment"), one.get("properties")) for name, one in w.schemas.items()},
            "volumes": sorted(w.volumes),
        }


def shown(prepared: PreparedDeployment) -> list[str]:
    """The lines of a plan: `change pipelines.shop catalog`."""
    return [" ".join(filter(None, (str(one.action), one.resource, one.field))) for one in prepared.plan.changes]
