"""The bundle of this repository, as a deployment reads it."""

from __future__ import annotations

import pytest

from lakelet.deploy.bundle import desired_state
from lakelet.deploy.desired import Desired, ResourceKey, User
from tests.paths import ROOT

ADA = User("ada.l@example.com", "ada_l")


def state(target: str) -> Desired:
    return desired_state(ROOT, target, ADA, environ={}, cwd=ROOT, lookup=lambda kind, name: f"{kind}-1")


@pytest.mark.parametrize("target", ["dev", "staging", "prod"])
def test_the_bundle_is_valid_for_every_target(target: str) -> None:
    desired = state(target)
    assert (desired.bundle, desired.target, desired.development) == ("lakelet", target, target == "dev")
    assert ResourceKey.parse("pipelines.system_a") in {resource.key for resource in desired.resources}
    assert {"pipelines/silver/event_table.py", "expectations/events.yml"} <= {file.path for file in desired.files}


def test_a_development_deployment_carries_its_users_name() -> None:
    desired = state("dev")
    pipeline = next(resource for resource in desired.resources if str(resource.key) == "pipelines.system_a")
    assert pipeline.settings["name"] == "[dev ada_l] system_a"
    assert pipeline.settings["root_path"] == desired.workspace.file_path
    assert desired.workspace.file_path == "/Workspace/Users/ada.l@example.com/.bundle/lakelet/dev/files"
