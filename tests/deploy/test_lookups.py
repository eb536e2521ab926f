"""Variables with `lookup`: ids by name, asked of the workspace on loopback."""

from __future__ import annotations

import pytest

from lakelet.base.errors import LakeletError
from lakelet.deploy.connection import Client, connect
from lakelet.deploy.workspace_objects import workspace_lookup
from tests.workspace_double import Workspace


def client_of(workspace: Workspace) -> Client:
    return connect(workspace.url, None, environ={"DATABRICKS_TOKEN": workspace.token})


def test_ids_are_found_by_name_and_each_kind_is_listed_once(workspace: Workspace) -> None:
    client = client_of(workspace)
    pipeline = client.sdk.pipelines.create(name="orders", catalog="main", schema="s").pipeline_id
    job = client.sdk.jobs.create(name="nightly").job_id
    lookup = workspace_lookup(client.sdk)
    before = len(workspace.requests)
    assert lookup("warehouse", "Shared warehouse") == workspace.warehouse_id
    assert lookup("pipeline", "orders") == pipeline
    assert lookup("job", "nightly") == str(job)
    assert lookup("pipeline", "orders") == pipeline
    assert len(workspace.requests) == before + 3


def test_a_name_that_nothing_has_is_refused_with_the_nearest(workspace: Workspace) -> None:
    with pytest.raises(LakeletError, match="no warehouse 'Shared warehous' that you can see") as raised:
        workspace_lookup(client_of(workspace).sdk)("warehouse", "Shared warehous")
    assert raised.value.nearest == ("Shared warehouse",)


def test_a_name_that_two_have_is_refused(workspace: Workspace) -> None:
    client = client_of(workspace)
    for _ in range(2):
        client.sdk.jobs.create(name="nightly")
    with pytest.raises(LakeletError, match="the workspace has 2 of the name 'nightly'"):
        workspace_lookup(client.sdk)("job", "nightly")
