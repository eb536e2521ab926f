"""Kill a deployment, rollback or destroy at every named point, then go on: exactly what was wanted, nothing doubled, nothing forgotten."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lakelet.base.failpoints import FAILPOINTS
from lakelet.deploy.desired_state import Permission, Resource, ResourceKey, ResourceKind
from tests.deploy.scene import DASH, IN_TREE, JOB, PIPELINE, SCHEMA, VIEWERS, VOLUME, Scene
from tests.workspace_double import Workspace

pytestmark = pytest.mark.crash

SECOND = ResourceKey(ResourceKind.PIPELINE, "returns")
SECOND_JOB = ResourceKey(ResourceKind.JOB, "returns")
DESTROYING = {point for point in FAILPOINTS if point.startswith("deploy.") and "destroyed" in point} | {"deploy.reduced"}
DEPLOYING = [point for point in FAILPOINTS if point.startswith("deploy.") and point not in DESTROYING]
REPEATED = ["deploy.uploaded@3", "deploy.created@2", "deploy.recorded@2", "deploy.granted@2"]
ONLY_LATER = {"deploy.forgotten", "deploy.updated", "deploy.deleted", "deploy.file_removed"}


def changed(scene: Scene) -> None:
    """The second version of the project: something new, changed and gone of everything."""
    scene.files["pipelines/orders.py"] += b"# changed\n"
    scene.files["pipelines/more/returns.py"] = b"import dlt\n"
    scene.files["pipelines/note.py"] = b"import dlt  # a file now\n"
    del scene.files["expectations/orders.yml"]
    scene.change(SCHEMA, comment="changed")
    scene.change(PIPELINE, serverless=False, configuration={"landing": "/Volumes/x", "db_password": "other22"})
    scene.change(DASH, display_name="Numbers")
    scene.resources[PIPELINE] = replace(scene.resources[PIPELINE], permissions=(Permission("CAN_RUN", "user_name", "ann@example.com"),))
    scene.resources[SECOND] = Resource(SECOND, {"name": "[dev] returns", "catalog": "main", "schema": "sales"}, VIEWERS)
    task = {"task_key": "update", "pipeline_task": {"pipeline_id": "${resources.pipelines.returns.id}"}}
    scene.resources[SECOND_JOB] = Resource(SECOND_JOB, {"name": "[dev] hourly", "tasks": [task]}, VIEWERS)
    del scene.resources[JOB]


def killed(point: str, action: Callable[[], Any]) -> bool:
    """Do it in a process of its own that is killed at the point; False if it never got there."""
    child = os.fork()
    if child == 0:
        os.setsid()
        os.environ["LAKELET_FAILPOINT"] = point
        code = 3
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


@pytest.fixture
def scene(tmp_path, workspace):
    return Scene(tmp_path / "project", workspace)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """What undisturbed deployments leave: the first version, the second one after it, and the first one after that."""
    with Workspace() as workspace:
        scene = Scene(tmp_path_factory.mktemp("twin"), workspace)
        found = []
        for change in (lambda _: None, changed, first_again):
            change(scene)
            scene.deploy()
            found.append(scene.image())
        return found


def first_again(scene: Scene) -> None:
    fresh = Scene(scene.folder, scene.workspace)
    scene.files, scene.resources = fresh.files, fresh.resources


def check(scene: Scene, image: dict[str, Any]) -> None:
    """The workspace holds exactly this, the state knows it, and nothing is left to do."""
    assert scene.image() == image
    state = scene.state
    assert state.pending is None
    w = scene.workspace
    assert sorted(state.resources) == sorted(scene.resources)
    assert {one.id for one in state.resources.values()} == {
        *w.pipelines,
        *map(str, w.jobs),
        *(one.id for one in w.dashboards.values() if not one.trashed),
        *w.schemas,
        *w.volumes,
    }
    assert scene.deploy().plan.changes == ()
    scene.files["one more.txt"] = b"1"
    scene.deploy()  # also past the lock of a process that died when all was done
    assert f"{IN_TREE}/state/deploy.lock" not in w.files


@pytest.mark.parametrize("point", [*DEPLOYING, *REPEATED])
def test_a_deployment_killed_there_is_finished_by_the_next_one(point, scene, images):
    scene.deploy()
    if point == "deploy.forgotten":
        for number in range(10):
            scene.files["data.bin"] = bytes([number])
            scene.deploy()
        first_again(scene)
        scene.deploy()
    changed(scene)
    assert killed(point, scene.deploy)
    scene.deploy()
    check(scene, images[1])


@pytest.mark.in_ci(every=3)
@pytest.mark.parametrize("point", [*DEPLOYING, *REPEATED])
def test_after_a_death_the_bundle_may_be_changed_back(point, scene, images):
    scene.deploy()
    changed(scene)
    if not killed(point, scene.deploy):
        assert point in ONLY_LATER
    first_again(scene)
    scene.deploy(with_data=())
    check(scene, images[2])


@pytest.mark.in_ci(every=3)
@pytest.mark.parametrize("point", [point for point in [*DEPLOYING, *REPEATED] if point.partition("@")[0] not in ONLY_LATER])
def test_the_first_deployment_killed_there_is_finished_by_the_next_one(point, scene, images):
    assert killed(point, scene.deploy)
    scene.deploy()
    check(scene, images[0])


@pytest.mark.parametrize("points", [("deploy.created", "deploy.granted"), ("deploy.updated", "deploy.updated"), ("deploy.announced",) * 2])
def test_two_deaths_in_a_row_with_another_bundle_in_between(points, scene, images):
    scene.deploy()
    changed(scene)
    assert killed(points[0], scene.deploy)
    scene.change(PIPELINE, name="[dev] in between", serverless=True)
    killed(points[1], scene.deploy)
    first_again(scene)
    changed(scene)
    scene.deploy()
    check(scene, images[1])


@pytest.mark.in_ci(every=3)
@pytest.mark.parametrize("point", [point for point in DEPLOYING if point not in ("deploy.packed", "deploy.forgotten")])
def test_a_rollback_killed_there_is_finished_when_it_is_asked_for_again(point, scene, images):
    scene.deploy()
    changed(scene)
    scene.change(PIPELINE, configuration={"landing": "/Volumes/x", "db_password": "hunter22"})  # a secret must still be there
    scene.deploy()
    assert killed(point, scene.roll_back)
    scene.roll_back(1)
    first_again(scene)
    check(scene, images[2])


@pytest.mark.parametrize("point", [*sorted(DESTROYING - {"deploy.reduced"}), "deploy.destroyed@3"])
def test_a_destroy_killed_there_is_finished_by_the_next_one(point, scene):
    scene.deploy()
    data = (str(SCHEMA), str(VOLUME))
    assert killed(point, lambda: scene.destroy(with_data=data))
    if point != "deploy.state_destroyed":
        scene.destroy(with_data=[name for name in data if name.split(".")[1] in ("sales", "landing")] if scene.state.resources else ())
    w = scene.workspace
    assert (w.pipelines, w.jobs, w.schemas, w.volumes, scene.uploaded) == ({}, {}, {}, {}, {})
    assert not scene.state.resources


def test_a_destroy_killed_before_the_state_is_written_still_knows_the_data(scene):
    scene.deploy()
    assert killed("deploy.reduced", scene.destroy)
    assert sorted(scene.destroy().resources) == sorted([SCHEMA, VOLUME])
    scene.deploy()
    assert scene.plan() == []
