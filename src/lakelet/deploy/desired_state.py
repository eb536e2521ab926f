"""Desired state of the workspace: the values between reading a bundle and changing a workspace. No SDK, no network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from lakelet.base.errors import Location
from lakelet.config.yaml_tree import Remark

PRINCIPALS = ("user_name", "group_name", "service_principal_name")
"""Kinds of principals, by the key of a permission that names one."""
FOLDERS = ("root_path", "file_path", "resource_path", "state_path")
"""Folders of a deployment in the workspace."""
_APPLICATION_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class ResourceKind(str, Enum):
    """What a bundle can declare and Lakelet deploys; the value is the key below `resources:`. In the order in which they are made."""

    SCHEMA = "schemas"
    VOLUME = "volumes"
    PIPELINE = "pipelines"
    DASHBOARD = "dashboards"
    JOB = "jobs"

    __str__ = str.__str__

    @property
    def word(self) -> str:
        """The kind in a sentence: `pipeline`."""
        return self.value[:-1]


@dataclass(frozen=True, order=True)
class ResourceKey:
    """Names a resource within its bundle, whatever it is called in the workspace: `pipelines.system_a`."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.name}"

    @classmethod
    def parse(cls, text: str) -> ResourceKey:
        """`pipelines.system_a` as a key. Raises ValueError for anything else."""
        kind, _, name = text.partition(".")
        return cls(ResourceKind(kind), name)


@dataclass(frozen=True)
class Permission:
    """One grant on a resource. `principal_kind` is `user_name`, `group_name` or `service_principal_name`."""

    level: str
    principal_kind: str
    principal: str


@dataclass(frozen=True)
class Resource:
    """One resource as it should be.

    Attributes:
        key: its name within the bundle.
        settings: the body of the request that makes it, as JSON values, all references resolved but `${resources.<kind>.<key>.id}`,
            which stays as text until the other resource has an id. For a dashboard `serialized_dashboard` is the text of its file.
        permissions: grants on it, those of the bundle and the target included.
        where: where it is declared.
        prevent_destroy: `lifecycle.prevent_destroy`: a deployment that would delete it is refused.
        start: whether a deployment starts what runs by itself (`lifecycle.started`); None where the bundle does not say.
    """

    key: ResourceKey
    settings: Mapping[str, Any]
    permissions: tuple[Permission, ...] = ()
    where: Location = field(default_factory=lambda: Location("databricks.yml", 1))
    prevent_destroy: bool = False
    start: bool | None = None


@dataclass(frozen=True)
class SourceFile:
    """One file to be uploaded.

    Attributes:
        path: relative to the bundle's folder, or to the one above it that holds all of `sync.paths`, with `/`; it lies at
            `<file_path>/<path>` in the workspace.
        local: where it lies here.
        sha256, size: of its content.
    """

    path: str
    local: Path
    sha256: str
    size: int


@dataclass(frozen=True)
class Workspace:
    """Where a deployment lies: `workspace` of the target, resolved for one user.

    Attributes:
        host: address of the workspace, None where the SDK's own chain of credentials decides.
        profile: profile of the SDK's configuration file, None for its default.
        root_path, file_path, resource_path, state_path: absolute folders in the workspace, without a slash at the end.
    """

    host: str | None
    profile: str | None
    root_path: str
    file_path: str
    resource_path: str
    state_path: str


@dataclass(frozen=True)
class DesiredState:
    """All that a deployment of one target should leave in the workspace.

    Attributes:
        bundle: the bundle's name.
        target: the target's name, `default` for a bundle without targets.
        development: whether the target's mode is development: names are prefixed, schedules and triggers paused.
        workspace: where it lies.
        resources: in the order of their kinds.
        files: sources, by path.
        remarks: what only this side or only Databricks has, and where it is written.
    """

    bundle: str
    target: str
    development: bool
    workspace: Workspace
    resources: tuple[Resource, ...]
    files: tuple[SourceFile, ...]
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class User:
    """The user that deploys: `current_user.me` of the workspace.

    `short_name` is what Databricks puts into prefixes and paths: the part before `@`, every character but letters and digits `_`.
    """

    user_name: str
    short_name: str
    display_name: str = ""
    id: str = ""

    @property
    def is_service_principal(self) -> bool:
        return is_application_id(self.user_name)


def is_application_id(name: str) -> bool:
    """Whether a user's name is the application ID of a service principal."""
    return _APPLICATION_ID.fullmatch(name) is not None
