"""The bundle of this repository, as a deployment reads it."""

from __future__ import annotations

import pytest

from lakelet.deploy.bundle import desired_state
from lakelet.deploy.desired_state import DesiredState, ResourceKey, User
from tests.paths import ROOT

ADA = User("ada.l@example.com", "ada_l")


def state(target: str) -> DesiredState:
    return desired_state(ROOT, target, ADA, environ={}, cwd=ROOT, lookup=lambda kind, name: f"{kind}-1")


@pytest.mark.parametrize("target", ["dev", "staging", "prod"])
def test_the_bundle_is_valid_for_every_target(target: str) -> None:
    desired = state(target)
    assert (desired.bundle, desired.target, desired.development) == ("lakelet", target, target == "dev")
    assert ResourceKey.parse("pipelines.system_a") in {resource.key for resource in desired.resources}
    assert {"pipelines/silver/event_rows.py", "expectations/events.yml"} <= {file.path for file in desired.files}


def test_a_development_deployment_carries_its_users_name() -> None:
    desired = state("dev")
    pipeline = next(resource for resource in desired.resources if str(resource.key) == "pipelines.system_a")
    assert pipeline.settings["name"] == "[dev ada_l] system_a"
    assert pipeline.settings["root_path"] == desired.workspace.file_path
    assert desired.workspace.file_path == "/Workspace/Users/ada.l@example.com/.bundle/lakelet/dev/files"


def test_dashboard_and_views_of_a_target_read_the_event_log_of_its_own_pipeline() -> None:
    published = {}
    for target in ("dev", "staging", "prod"):
        desired = state(target)
        found = {str(resource.key): resource.settings for resource in desired.resources}
        log = found["pipelines.system_a"]["event_log"]
        (task,) = found["jobs.quality_views"]["tasks"]
        assert log["name"] == "system_a_event_log"
        assert task["sql_task"]["parameters"] == {"catalog": log["catalog"], "schema": log["schema"]}
        assert task["sql_task"]["file"]["path"] == f"{desired.workspace.file_path}/resources/sql/quality_views.sql"
        assert "resources/sql/quality_views.sql" in {file.path for file in desired.files}
        dashboard = found["dashboards.quality"]
        assert (dashboard["dataset_catalog"], dashboard["dataset_schema"]) == (log["catalog"], log["schema"])
        assert (found["pipelines.system_a"]["catalog"], found["pipelines.system_a"]["schema"]) == (log["catalog"], log["schema"])
        published[target] = (log["catalog"], log["schema"])
    assert published == {"dev": ("main", "dev_ada_l_comms"), "staging": ("main", "staging_comms"), "prod": ("prod", "comms")}
