"""Deployments to a workspace on loopback, through the real SDK: what is written, what is not, and what a second one finds."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lakelet.base.errors import LakeletError
from lakelet.deploy.desired_state import Permission
from tests.deploy.scene import DASH, FILES, IN_TREE, JOB, PIPELINE, PLACE, SCHEMA, VOLUME, Scene, shown


@pytest.fixture
def scene(tmp_path, workspace):
    return Scene(tmp_path, workspace)


@pytest.fixture
def deployed(scene):
    scene.deploy()
    return scene


def only(mapping):
    (value,) = mapping.values()
    return value


def test_everything_is_made_and_the_sources_are_byte_identical(scene):
    scene.deploy()
    w = scene.workspace
    notebook = {path.removesuffix(".py") if path == "pipelines/note.py" else path: content for path, content in FILES.items()}
    assert scene.uploaded == notebook
    pipeline, job, dashboard = only(w.pipelines), only(w.jobs), only(w.dashboards)
    assert pipeline.spec["configuration"]["db_password"] == "hunter22"
    assert pipeline.spec["deployment"] == {"kind": "BUNDLE", "metadata_file_path": f"{PLACE.state_path}/lakelet.json"}
    assert job.settings["tasks"][0]["pipeline_task"]["pipeline_id"] == pipeline.id
    assert job.settings["edit_mode"] == "UI_LOCKED"
    assert dashboard.published
    assert dashboard.path == f"{IN_TREE}/resources/Quality.lvdash.json"
    assert [(g.principal, g.level) for g in w.permissions.grants["pipelines", pipeline.id]] == [
        ("analysts", "CAN_VIEW"),
        ("dev.user@example.com", "IS_OWNER"),
    ]
    assert list(w.schemas) == ["main.sales"]
    assert list(w.volumes) == ["main.sales.landing"]
    state = scene.state
    assert state.serial == 1
    assert state.pending is None
    assert {str(key): id for key, id in state.ids.items()} == {
        "schemas.sales": "main.sales",
        "volumes.landing": "main.sales.landing",
        "pipelines.shop": pipeline.id,
        "dashboards.quality": dashboard.id,
        "jobs.hourly": str(job.id),
    }
    assert f"{IN_TREE}/state/deploy.lock" not in w.files


KEPT = {
    "pipelines/orders.py": b'import dlt\n\n\n@dlt.table(table_properties={"lakelet.quarantine": "true"})\n'
    b'@dlt.expect_or_drop("known", "id IS NOT NULL")\ndef orders():\n    return spark.range(3)\n',
    "pipelines/sums.sql": b"CREATE MATERIALIZED VIEW sums (CONSTRAINT some EXPECT (n > 0) ON VIOLATION DROP ROW)\n"
    b"TBLPROPERTIES ('lakelet.quarantine' = 'true') AS SELECT count(*) AS n FROM orders\n",
}


def test_code_with_a_quarantine_is_deployed_as_it_is(scene):
    """QU-1: Databricks gets the property with the code, and nothing else of a quarantine."""
    scene.files |= KEPT
    scene.deploy()
    assert {path: scene.uploaded[path] for path in KEPT} == KEPT
    (pipeline,) = scene.workspace.pipelines.values()
    assert "quarantine" not in json.dumps(pipeline.spec)
    assert scene.plan() == []


def test_a_second_deployment_writes_nothing_not_even_the_lock(deployed):
    before = len(deployed.workspace.writes)
    prepared = deployed.deploy()
    assert prepared.plan.changes == ()
    assert len(deployed.workspace.writes) == before


def test_one_changed_file_is_one_upload(deployed):
    before = len(deployed.workspace.writes)
    deployed.files["pipelines/orders.py"] += b"# more\n"
    assert shown(deployed.deploy()) == ["upload pipelines/orders.py"]
    assert deployed.writes(before) == ["POST 2.0/workspace/import /pipelines/orders.py"]
    assert deployed.uploaded["pipelines/orders.py"] == deployed.files["pipelines/orders.py"]


def test_one_changed_setting_is_one_update(deployed):
    before = len(deployed.workspace.writes)
    deployed.change(PIPELINE, serverless=False)
    assert shown(deployed.deploy()) == ["change pipelines.shop serverless"]
    assert deployed.writes(before) == [f"PUT 2.0/pipelines/{deployed.state.resources[PIPELINE].id}"]
    assert only(deployed.workspace.pipelines).spec["serverless"] is False
    assert deployed.deploy().plan.changes == ()


def test_changes_of_every_kind_arrive(deployed):
    deployed.change(SCHEMA, comment="of all shops", properties={"team": "sales"})
    deployed.change(VOLUME, comment="files")
    deployed.change(DASH, display_name="Data quality", serialized_dashboard=json.dumps({"pages": [{"name": "q", "displayName": "Q"}]}))
    deployed.change(JOB, max_concurrent_runs=2, name=None)
    deployed.change(JOB, name="[dev] every hour")
    deployed.resources[PIPELINE] = replace(
        deployed.resources[PIPELINE], permissions=(Permission("CAN_RUN", "user_name", "ann@example.com"),)
    )
    assert shown(deployed.deploy()) == [
        "change schemas.sales comment",
        "change schemas.sales properties.team",
        "change volumes.landing comment",
        "permission pipelines.shop permissions.group_name:analysts",
        "permission pipelines.shop permissions.user_name:ann@example.com",
        "change dashboards.quality display_name",
        "change dashboards.quality serialized_dashboard",
        "publish dashboards.quality",
        "change jobs.hourly max_concurrent_runs",
        "change jobs.hourly name",
    ]
    w = deployed.workspace
    assert (only(w.schemas)["comment"], only(w.schemas)["properties"]) == ("of all shops", {"team": "sales"})
    assert only(w.volumes)["comment"] == "files"
    assert only(w.dashboards).display_name == "Data quality"
    assert only(w.jobs).settings["max_concurrent_runs"] == 2
    grants = w.permissions.grants["pipelines", only(w.pipelines).id]
    assert [(g.principal, g.level) for g in grants] == [("ann@example.com", "CAN_RUN"), ("dev.user@example.com", "IS_OWNER")]
    assert deployed.deploy().plan.changes == ()


def test_what_is_taken_out_of_the_bundle_is_deleted_but_no_data(deployed):
    deployed.workspace.tables["main.sales.orders"] = []
    deployed.workspace.table_owners["main.sales.orders"] = only(deployed.workspace.pipelines).id
    deployed.resources.clear()
    del deployed.files["data.bin"], deployed.files["expectations/orders.yml"]
    assert shown(deployed.deploy()) == [
        "remove file data.bin",
        "remove file expectations/orders.yml",
        "delete jobs.hourly",
        "delete dashboards.quality",
        "delete pipelines.shop",
        "keep pipelines.shop tables",
        "keep volumes.landing data",
        "keep schemas.sales data",
    ]
    w = deployed.workspace
    assert (w.pipelines, w.jobs) == ({}, {})
    assert only(w.dashboards).trashed
    assert list(w.schemas) == ["main.sales"]
    assert "main.sales.orders" in w.tables
    assert sorted(deployed.uploaded) == ["pipelines/note", "pipelines/orders.py", "pipelines/sums.sql"]
    assert f"{IN_TREE}/files/expectations" not in w.folders
    again = deployed.deploy(with_data=("landing", "sales"))
    assert shown(again) == ["delete volumes.landing", "delete volumes.landing data", "delete schemas.sales", "delete schemas.sales data"]
    assert (w.schemas, w.volumes) == ({}, {})


def test_the_tables_of_a_pipeline_are_dropped_when_it_is_named(deployed):
    deployed.workspace.tables["main.sales.orders"] = []
    deployed.workspace.table_owners["main.sales.orders"] = only(deployed.workspace.pipelines).id
    deployed.resources = {key: one for key, one in deployed.resources.items() if key in (SCHEMA, VOLUME)}
    deployed.deploy(with_data=("pipelines.shop",))
    assert deployed.workspace.tables == {}


def test_drift_is_shown_and_kept_and_overwritten_with_force(deployed):
    spec = only(deployed.workspace.pipelines).spec
    by_hand(deployed, serverless=False, edition="CORE")
    before = len(deployed.workspace.writes)
    assert shown(deployed.deploy()) == ["drift pipelines.shop edition", "drift pipelines.shop serverless"]
    assert len(deployed.workspace.writes) == before
    deployed.change(PIPELINE, name="[dev] shops")
    deployed.deploy()
    spec = only(deployed.workspace.pipelines).spec
    assert (spec["name"], spec["serverless"], spec["edition"]) == ("[dev] shops", False, "CORE")
    assert deployed.plan() == ["drift pipelines.shop edition", "drift pipelines.shop serverless"]
    deployed.deploy(force=True)
    spec = only(deployed.workspace.pipelines).spec
    assert spec["serverless"] is True
    assert spec["edition"] == "ADVANCED"
    assert deployed.plan() == []


def by_hand(scene, **settings):
    """Somebody changes the pipeline in the workspace."""
    client = scene.client()
    id = scene.state.resources[PIPELINE].id
    spec = client.sdk.api_client.do("GET", f"/api/2.0/pipelines/{id}")["spec"]
    client.sdk.api_client.do("PUT", f"/api/2.0/pipelines/{id}", body={**spec, **settings})


def test_a_setting_that_both_sides_changed_stops_the_deployment_before_it_begins(deployed):
    by_hand(deployed, serverless=False)
    deployed.change(PIPELINE, serverless=None)
    before = len(deployed.workspace.writes)
    with pytest.raises(LakeletError, match="serverless was changed in the workspace to False"):
        deployed.deploy()
    assert len(deployed.workspace.writes) == before
    deployed.deploy(force=True)
    assert "serverless" not in only(deployed.workspace.pipelines).spec


def test_dashboards_jobs_and_grants_that_were_changed_by_hand_are_seen(deployed):
    api = deployed.client().sdk.api_client
    ids = deployed.state.ids
    api.do("PATCH", f"/api/2.0/lakeview/dashboards/{ids[DASH]}", body={"serialized_dashboard": json.dumps({"pages": []})})
    api.do("POST", "/api/2.2/jobs/update", body={"job_id": int(ids[JOB]), "new_settings": {"timeout_seconds": 60}})
    grant = {"access_control_list": [{"user_name": "eve@example.com", "permission_level": "CAN_MANAGE"}]}
    api.do("PATCH", f"/api/2.0/permissions/pipelines/{ids[PIPELINE]}", body=grant)
    assert deployed.plan() == [
        "drift pipelines.shop permissions.user_name:eve@example.com",
        "drift dashboards.quality serialized_dashboard",
        "drift jobs.hourly timeout_seconds",
    ]
    deployed.deploy(force=True)
    assert deployed.plan() == []
    assert only(deployed.workspace.dashboards).published
    names = [g.principal for g in deployed.workspace.permissions.grants["pipelines", ids[PIPELINE]]]
    assert "eve@example.com" not in names


def test_privileges_on_schemas_are_granted_changed_and_seen(deployed):
    schema, select, use = deployed.resources[SCHEMA], "SELECT", "USE_SCHEMA"

    def granted(*privileges):
        deployed.resources[SCHEMA] = replace(schema, permissions=tuple(Permission(p, "principal", "analysts") for p in privileges))
        lines = shown(deployed.deploy())
        answer = deployed.client().sdk.api_client.do("GET", "/api/2.1/unity-catalog/permissions/schema/main.sales")
        return lines, {one["principal"]: sorted(one["privileges"]) for one in answer.get("privilege_assignments", [])}

    changed = ["permission schemas.sales permissions.principal:analysts"]
    assert granted(select, use) == (changed, {"analysts": [select, use]})
    assert granted(select, use) == ([], {"analysts": [select, use]})
    assert granted(select) == (changed, {"analysts": [select]})
    grant = {"changes": [{"principal": "eve@example.com", "add": ["MODIFY"]}]}
    deployed.client().sdk.api_client.do("PATCH", "/api/2.1/unity-catalog/permissions/schema/main.sales", body=grant)
    assert granted(select) == (
        ["drift schemas.sales permissions.principal:eve@example.com"],
        {"analysts": [select], "eve@example.com": ["MODIFY"]},
    )
    assert granted(use)[1] == {"analysts": [use], "eve@example.com": ["MODIFY"]}


def test_a_pipeline_deleted_by_hand_is_made_again_and_the_job_follows(deployed):
    old = deployed.state.resources[PIPELINE].id
    deployed.client().sdk.pipelines.delete(old)
    assert deployed.plan()[0] == "create pipelines.shop"
    deployed.deploy()
    new = only(deployed.workspace.pipelines).id
    assert new != old
    assert only(deployed.workspace.jobs).settings["tasks"][0]["pipeline_task"]["pipeline_id"] == new
    assert deployed.plan() == []


def test_names_that_others_have_are_never_taken_over(scene):
    api = scene.client().sdk.api_client
    api.do("POST", "/api/2.1/unity-catalog/schemas", body={"name": "sales", "catalog_name": "main"})
    with pytest.raises(LakeletError, match=r"the schema main\.sales is there already") as refused:
        scene.deploy()
    assert refused.value.code == "DEPLOY_EXISTS"
    assert scene.uploaded == {}
    del scene.resources[SCHEMA]
    api.do("POST", "/api/2.0/pipelines", body={"name": "[dev] shop"})
    with pytest.raises(LakeletError, match="its name is taken"):
        scene.deploy()
    assert len(scene.workspace.pipelines) == 1
    assert scene.state.pending is not None
    scene.change(PIPELINE, name="[dev] my shop")
    scene.deploy()
    assert sorted(one.name for one in scene.workspace.pipelines.values()) == ["[dev] my shop", "[dev] shop"]


def test_a_notebook_that_becomes_a_file_lies_where_it_belongs(deployed):
    deployed.files["pipelines/note.py"] = b"import dlt\n"
    deployed.deploy()
    assert sorted(deployed.uploaded) == sorted(FILES)
    deployed.files["pipelines/note.py"] = FILES["pipelines/note.py"]
    deployed.deploy()
    assert "pipelines/note" in deployed.uploaded
    assert "pipelines/note.py" not in deployed.uploaded


def test_a_state_of_another_bundle_is_not_touched(deployed):
    client = deployed.client()
    from lakelet.deploy import deployment

    other = replace(deployed.desired, bundle="other")
    with pytest.raises(LakeletError, match="holds a deployment of the bundle shop, target dev"):
        deployment.prepare(client, other, deployment.DeploymentOptions())


def test_no_secret_is_in_what_is_kept_or_shown(deployed):
    from lakelet.deploy import deployment

    deployed.change(PIPELINE, configuration={"db_password": "hunter23"})
    prepared = deployment.prepare(deployed.client(), deployed.desired, deployment.DeploymentOptions())
    assert ("configuration.db_password", "[REDACTED]", "[REDACTED]") in [(c.field, c.before, c.after) for c in prepared.plan.changes]
    deployed.deploy()
    kept = {path: content for path, content in deployed.workspace.files.items() if "/state/" in path and path.endswith(".json")}
    assert len(kept) == 3
    assert not any(b"hunter2" in content for content in kept.values())
    assert deployed.plan() == []
