"""Fixtures of the tests that talk to a workspace on loopback."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.workspace_double import Workspace

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient


@pytest.fixture(autouse=True)
def _no_credentials_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine decides which workspace is asked, and as whom."""
    for name in os.environ:
        if name.startswith(("DATABRICKS_", "ARM_")) or name == "GOOGLE_CREDENTIALS":
            monkeypatch.delenv(name)
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(tmp_path / "no-databrickscfg"))


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    """An empty workspace on loopback."""
    with Workspace() as running:
        yield running


@pytest.fixture
def client(workspace: Workspace) -> Callable[..., WorkspaceClient]:
    """A client of the real SDK: `client()` for the workspace's first user, `client(token)` for another token."""
    from databricks.sdk import WorkspaceClient
    from databricks.sdk.core import Config

    def make(token: str | None = None, *, patience: int = 5) -> WorkspaceClient:
        config = Config(host=workspace.url, token=token or workspace.token, retry_timeout_seconds=patience, http_timeout_seconds=10)
        return WorkspaceClient(config=config)

    return make
