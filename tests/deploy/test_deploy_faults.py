"""What goes wrong on the way to a workspace, and between two who deploy: no double effect, nothing half known."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

from lakelet.base.errors import ExitCode, LakeletError
from lakelet.deploy import apply, deployment
from lakelet.deploy.deployment import DeploymentOptions
from tests.deploy.scene import DASH, IN_TREE, JOB, PIPELINE, PLACE, USER, Scene

CREATIONS = ["/api/2.0/pipelines", "/api/2.2/jobs/create", "/api/2.0/lakeview/dashboards", "/api/2.1/unity-catalog/schemas"]
CREATIONS += ["/api/2.1/unity-catalog/volumes"]
LOCK = f"{IN_TREE}/state/deploy.lock"


@pytest.fixture
def scene(tmp_path, workspace, monkeypatch):
    monkeypatch.setattr(apply, "FIND_PAUSES", (0, 0.05))
    return Scene(tmp_path, workspace)


@pytest.fixture
def deployed(scene):
    scene.deploy()
    return scene


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """What an undisturbed deployment leaves."""
    from tests.workspace_double import Workspace

    with Workspace() as workspace:
        scene = Scene(tmp_path_factory.mktemp("twin"), workspace)
        scene.deploy()
        return scene.image()


FAULTS = [{"status": 429, "retry_after": 0}, {"status": 503, "retry_after": 0}, {"drop": "before"}, {"drop": "after"}]


@pytest.mark.parametrize("fault", FAULTS, ids=["429", "503", "dropped before", "dropped after"])
@pytest.mark.parametrize("path", CREATIONS)
def test_a_creation_takes_effect_once_whatever_becomes_of_its_answer(path, fault, scene, image):
    rule = scene.workspace.fail("POST", path, **fault)
    scene.deploy()
    assert rule.hits == 1
    assert scene.image() == image
    assert scene.deploy().plan.changes == ()


def test_dashboards_that_are_seen_late_are_waited_for(scene, image):
    scene.workspace.late_dashboards = True
    scene.deploy()
    assert scene.image() == image


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("method", "path", "key", "change"),
    [
        ("PUT", "/api/2.0/pipelines/*", PIPELINE, {"serverless": False}),
        ("PATCH", "/api/2.0/lakeview/dashboards/*", DASH, {"display_name": "Numbers"}),
        ("POST", "/api/2.2/jobs/reset", JOB, {"max_concurrent_runs": 3}),
        ("PUT", "/api/2.0/permissions/*", PIPELINE, {"serverless": False}),
        ("POST", "/api/2.0/workspace/import", PIPELINE, {"serverless": False}),
    ],
)
def test_a_dropped_connection_is_no_conflict(method, path, key, change, when, deployed):
    deployed.change(key, **change)
    deployed.resources[PIPELINE] = replace(deployed.resources[PIPELINE], permissions=())
    rule = deployed.workspace.fail(method, path, drop=when)
    deployed.deploy()
    assert rule.hits == 1
    assert deployed.deploy().plan.changes == ()


def test_a_lock_whose_answer_was_lost_is_ones_own(scene, image):
    scene.workspace.fail("POST", "/api/2.0/workspace/import", drop="after")
    scene.deploy()
    assert scene.image() == image
    assert LOCK not in scene.workspace.files


def test_a_wrong_token_is_refused_before_anything_is_written(scene):
    with pytest.raises(LakeletError) as refused:
        scene.deploy(scene.client(DATABRICKS_TOKEN="dapi0123456789abcdef"))
    assert refused.value.code == "WORKSPACE_CREDENTIALS"
    assert refused.value.exit_code == ExitCode.ENVIRONMENT
    assert "dapi0123456789abcdef" not in str(refused.value)
    assert scene.workspace.writes == []


@pytest.mark.parametrize("number", [3, 7, 12, 20])
def test_a_token_that_expires_in_the_middle_leaves_what_the_next_deployment_finishes(number, scene, image):
    client = scene.client()
    prepared = deployment.prepare(client, scene.desired, DeploymentOptions())
    scene.workspace.fail("*", "*", skip=number, times=1000, status=401)
    with pytest.raises(LakeletError) as refused:
        deployment.deploy(client, prepared, USER, DeploymentOptions())
    assert refused.value.code == "WORKSPACE_CREDENTIALS"
    assert LOCK in scene.workspace.files  # nobody could remove it
    scene.workspace.heal()
    scene.deploy(force_lock=True)
    assert scene.image() == image
    assert scene.state.pending is None


def test_of_two_deployments_at_once_one_is_refused_with_holder_and_age(scene, image):
    begun, go_on = threading.Event(), threading.Event()

    def wait(text):
        begun.set()
        go_on.wait(20)

    first = threading.Thread(
        target=lambda: deployment.deploy(
            client, deployment.prepare(client, scene.desired, DeploymentOptions()), USER, DeploymentOptions(), notice=wait
        )
    )
    client = scene.client()
    first.start()
    assert begun.wait(20)
    with pytest.raises(LakeletError, match=r"locked by dev\.user@example\.com on .* for .*: lakelet deploy") as refused:
        scene.deploy()
    assert refused.value.code == "DEPLOY_LOCKED"
    go_on.set()
    first.join()
    assert scene.image() == image
    assert scene.deploy().plan.changes == ()


def test_many_who_ask_for_the_lock_at_once_get_it_once(scene):
    from lakelet.deploy.state import locked

    got, refused, inside = [], [], threading.Barrier(6)

    def ask():
        client = scene.client()
        inside.wait(20)
        try:
            with locked(client, PLACE, USER, "deploy"):
                got.append(1)
                threading.Event().wait(1)
        except LakeletError as error:
            refused.append(error.code)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (got, refused) == ([1], ["DEPLOY_LOCKED"] * 5)
    assert LOCK not in scene.workspace.files


def held_by(scene, **changes):
    holder = {"id": "x", "user": "ann@example.com", "machine": "elsewhere", "pid": 1, "process_started": 0.0}
    holder |= {"since": "2026-01-01T00:00:00+00:00", "operation": "deploy", **changes}
    scene.workspace.files[LOCK] = json.dumps(holder)


def test_a_lock_of_another_machine_stays_until_it_is_taken_by_force(scene, image):
    held_by(scene)
    with pytest.raises(LakeletError, match=r"locked by ann@example\.com on elsewhere"):
        scene.deploy()
    scene.deploy(force_lock=True)
    assert scene.image() == image
    assert LOCK not in scene.workspace.files
    assert any("taken over from ann@example.com" in text for text in scene.notices)


def test_a_lock_of_a_process_of_this_machine_that_ended_is_taken_over(scene, image):
    import socket

    held_by(scene, machine=socket.gethostname(), pid=2**22 + 1)
    scene.deploy()
    assert scene.image() == image


def test_who_lost_the_lock_stops_and_the_other_one_finishes(scene, image):
    client = scene.client()

    def steal(text):
        if text.startswith("Creating pipelines"):
            held_by(scene)

    with pytest.raises(LakeletError, match=r"the lock of this deployment was taken by ann@example\.com"):
        deployment.deploy(client, deployment.prepare(client, scene.desired, DeploymentOptions()), USER, DeploymentOptions(), notice=steal)
    assert scene.workspace.pipelines == {}
    assert LOCK in scene.workspace.files  # the other one's
    scene.deploy(force_lock=True)
    assert scene.image() == image


@pytest.mark.parametrize("key", [PIPELINE, DASH, JOB])
def test_a_resource_that_somebody_changes_meanwhile_is_a_conflict(key, deployed):
    settings = {PIPELINE: {"serverless": False}, DASH: {"display_name": "Numbers"}, JOB: {"max_concurrent_runs": 3}}
    deployed.change(key, **settings[key])
    client = deployed.client()
    prepared = deployment.prepare(client, deployed.desired, DeploymentOptions())
    change_by_hand(deployed, key)
    with pytest.raises(LakeletError, match=f"{key} was changed by somebody else while it was being deployed") as refused:
        deployment.deploy(client, prepared, USER, DeploymentOptions())
    assert refused.value.code == "DEPLOY_CONFLICT"
    assert LOCK not in deployed.workspace.files
    deployed.deploy()
    assert [str(change.action) for change in deployed.deploy().plan.changes] == ["drift"]


def change_by_hand(scene, key):
    api, id = scene.client().sdk.api_client, scene.state.resources[key].id
    if key == PIPELINE:
        spec = api.do("GET", f"/api/2.0/pipelines/{id}")["spec"]
        api.do("PUT", f"/api/2.0/pipelines/{id}", body={**spec, "channel": "PREVIEW"})
    elif key == DASH:
        api.do("PATCH", f"/api/2.0/lakeview/dashboards/{id}", body={"warehouse_id": "w2"})
    else:
        api.do("POST", "/api/2.2/jobs/update", body={"job_id": int(id), "new_settings": {"timeout_seconds": 60}})


def test_what_the_workspace_refuses_is_reported_and_the_rest_is_finished_later(scene, image):
    scene.change(PIPELINE, catalog="nowhere")
    with pytest.raises(LakeletError, match="nowhere"):
        scene.deploy()
    assert LOCK not in scene.workspace.files
    scene.change(PIPELINE, catalog="main")
    scene.deploy()
    assert scene.image() == image


def test_somebody_who_deployed_since_the_plan_is_noticed(deployed):
    client = deployed.client()
    deployed.files["data.bin"] = b"mine"
    prepared = deployment.prepare(client, deployed.desired, DeploymentOptions())
    deployed.change(PIPELINE, serverless=False)
    deployed.deploy()
    after = deployment.deploy(client, prepared, USER, DeploymentOptions())
    assert [(str(c.action), c.resource, c.field) for c in after.plan.changes] == [("change", "pipelines.shop", "serverless")]
    assert after.state.serial == 3
