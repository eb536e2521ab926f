"""Rollback and destroy: what comes back, what is taken away, and what never is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakelet.base.errors import LakeletError
from lakelet.deploy.apply import KEPT_DEPLOYMENTS
from lakelet.deploy.state import load_deployment
from tests.deploy.scene import DASH, FILES, IN_TREE, JOB, PIPELINE, PLACE, SCHEMA, VOLUME, Scene, shown


@pytest.fixture
def scene(tmp_path, workspace):
    return Scene(tmp_path, workspace)


@pytest.fixture
def deployed(scene):
    scene.deploy()
    return scene


def second_version(scene):
    scene.files["pipelines/orders.py"] += b"# changed\n"
    scene.files["pipelines/new.py"] = b"import dlt\n"
    scene.files["pipelines/note.py"] = b"import dlt\n"
    del scene.files["data.bin"]
    scene.change(PIPELINE, serverless=False)
    scene.change(DASH, display_name="Numbers", serialized_dashboard='{"pages": []}')
    scene.change(JOB, max_concurrent_runs=5)
    scene.resources[PIPELINE] = replace(scene.resources[PIPELINE], permissions=())
    scene.deploy()


def test_a_rollback_brings_files_settings_and_grants_back_exactly(deployed):
    before = deployed.image()
    second_version(deployed)
    assert deployed.image() != before
    prepared = deployed.roll_back()
    assert deployed.image() == before
    assert prepared.state.serial == 3
    assert deployed.uploaded["data.bin"] == FILES["data.bin"]
    fresh = Scene(deployed.folder, deployed.workspace)
    assert fresh.deploy().plan.changes == ()


def test_rollbacks_go_further_back_each_time_and_to_any_kept_deployment(deployed):
    images = [deployed.image()]
    for number in (2, 3):
        deployed.change(JOB, max_concurrent_runs=number)
        deployed.files["data.bin"] = bytes([number])
        deployed.deploy()
        images.append(deployed.image())
    deployed.roll_back()
    assert deployed.image() == images[1]
    deployed.roll_back()
    assert deployed.image() == images[0]
    with pytest.raises(LakeletError, match="there is no earlier deployment to return to"):
        deployed.roll_back()
    deployed.roll_back(3)
    assert deployed.image() == images[2]
    with pytest.raises(LakeletError, match="deployment 99 is not kept"):
        deployed.roll_back(99)


def test_a_rollback_of_a_deployment_that_failed_returns_to_the_last_that_ended(deployed):
    before = deployed.image()
    deployed.files["data.bin"] = b"new"
    deployed.change(PIPELINE, serverless=False)
    deployed.change(JOB, max_concurrent_runs=7)
    deployed.workspace.fail("POST", "/api/2.2/jobs/reset", status=403)
    with pytest.raises(LakeletError):
        deployed.deploy()
    assert deployed.image() != before
    deployed.roll_back()
    assert deployed.image() == before
    assert deployed.state.pending is None


def test_a_rollback_makes_what_was_deleted_and_keeps_data_of_what_is_new(deployed):
    before = deployed.image()
    for key in (JOB, PIPELINE, DASH):
        del deployed.resources[key]
    deployed.deploy()
    with pytest.raises(LakeletError) as refused:
        deployed.roll_back()
    assert refused.value.code == "DEPLOY_SECRET"  # the password of the pipeline went with it
    assert "hunter" not in str(refused.value)
    fresh = Scene(deployed.folder, deployed.workspace)
    fresh.deploy()
    assert fresh.image() == before


def test_a_rollback_keeps_what_others_changed_unless_forced(deployed):
    deployed.change(JOB, max_concurrent_runs=5)
    deployed.deploy()
    job = int(deployed.state.resources[JOB].id)
    update = {"job_id": job, "new_settings": {"timeout_seconds": 60}}
    deployed.client().sdk.api_client.do("POST", "/api/2.2/jobs/update", body=update)
    deployed.roll_back()
    settings = deployed.workspace.jobs[job].settings
    assert (settings["max_concurrent_runs"], settings["timeout_seconds"]) == (1, 60)


def test_only_the_last_deployments_and_their_contents_are_kept(deployed):
    for number in range(KEPT_DEPLOYMENTS + 2):
        deployed.files["data.bin"] = bytes([number])
        deployed.deploy()
    client = deployed.client()
    assert load_deployment(client, PLACE, 3) is None
    assert load_deployment(client, PLACE, 4) is not None
    packs = [path for path in deployed.workspace.files if "/state/objects/" in path]
    assert len(packs) == KEPT_DEPLOYMENTS + 1  # one for each change of the one file, one for the other files
    deployed.roll_back(4)
    assert deployed.uploaded["data.bin"] == bytes([2])


def test_contents_that_somebody_changed_are_not_rolled_back_to(deployed):
    deployed.files["data.bin"] = b"new"
    deployed.deploy()
    for path in list(deployed.workspace.files):
        if "/state/objects/" in path:
            deployed.workspace.files[path] = b"nonsense"
    with pytest.raises(LakeletError, match="does not hold what was deployed"):
        deployed.roll_back()
    assert deployed.uploaded["data.bin"] == b"new"


def test_destroy_takes_everything_away_but_data(deployed):
    w = deployed.workspace
    w.tables["main.sales.orders"] = []
    w.table_owners["main.sales.orders"] = deployed.state.resources[PIPELINE].id
    w.files[f"{IN_TREE}/files/mine/own.txt"] = b"of somebody else"
    state = deployed.destroy()
    assert (w.pipelines, w.jobs) == ({}, {})
    assert all(one.trashed for one in w.dashboards.values())
    assert sorted(state.resources) == sorted([SCHEMA, VOLUME])
    assert "main.sales.orders" in w.tables
    assert deployed.uploaded == {"mine/own.txt": b"of somebody else"}
    assert sorted(path for path in w.files if "/state/" in path) == [f"{IN_TREE}/state/lakelet.json"]
    assert deployed.plan()[0] == "upload data.bin"
    deployed.deploy()  # what stayed is known, and goes on
    assert deployed.deploy().plan.changes == ()


def test_destroy_with_data_leaves_nothing(deployed):
    w = deployed.workspace
    w.tables["main.sales.orders"] = []
    w.table_owners["main.sales.orders"] = deployed.state.resources[PIPELINE].id
    state = deployed.destroy(with_data=("shop", "sales", "landing"))
    assert not state.resources
    assert (w.pipelines, w.jobs, w.schemas, w.volumes, w.tables, dict(w.files)) == ({}, {}, {}, {}, {}, {})
    assert not [folder for folder in w.folders if folder.startswith(IN_TREE)]
    with pytest.raises(LakeletError, match="nothing was deployed"):
        deployed.destroy()


def test_a_resource_that_the_bundle_protects_is_not_destroyed(scene):
    scene.resources[PIPELINE] = replace(scene.resources[PIPELINE], prevent_destroy=True)
    scene.deploy()
    before = len(scene.workspace.writes)
    with pytest.raises(LakeletError) as refused:
        scene.destroy()
    assert refused.value.code == "DEPLOY_PREVENTED"
    assert len(scene.workspace.writes) == before
    scene.resources[PIPELINE] = replace(scene.resources[PIPELINE], prevent_destroy=False)
    scene.change(PIPELINE, serverless=False)
    scene.deploy()
    assert "delete pipelines.shop" in shown_destroy(scene)


def shown_destroy(scene):
    from lakelet.deploy.deployment import DeploymentOptions, prepare_destroy

    return shown(prepare_destroy(scene.client(), PLACE, DeploymentOptions()))
