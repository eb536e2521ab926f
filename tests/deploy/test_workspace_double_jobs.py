"""The workspace on loopback: jobs, dashboards and permissions, as the real SDK sees them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from databricks.sdk.errors import BadRequest, NotFound, PermissionDenied, ResourceConflict, ResourceDoesNotExist
from databricks.sdk.service.catalog import PermissionsChange, Privilege
from databricks.sdk.service.dashboards import Dashboard, LifecycleState
from databricks.sdk.service.iam import AccessControlRequest, PermissionLevel
from databricks.sdk.service.jobs import CronSchedule, JobSettings, PipelineTask, RunLifeCycleState, RunResultState, Task
from databricks.sdk.service.workspace import ImportFormat, ObjectType

from tests.workspace_double import Workspace, failing_flow

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

Client = Callable[..., "WorkspaceClient"]
HOME = "/Users/dev.user@example.com"
ME = "dev.user@example.com"


def _job(api: WorkspaceClient, **settings: Any) -> tuple[int, str]:
    """A job that refreshes a pipeline; their ids."""
    key = api.pipelines.create(name="sales", catalog="main", schema="s", allow_duplicate_names=True).pipeline_id or ""
    made = api.jobs.create(name="nightly", tasks=[Task("refresh", pipeline_task=PipelineTask(key))], **settings).job_id
    assert made
    return made, key


def test_a_job_comes_back_with_what_the_workspace_filled_in(client: Client) -> None:
    api = client()
    job, pipeline = _job(api, schedule=CronSchedule("0 0 3 * * ?", "UTC"))
    found = api.jobs.get(job)
    assert found.settings is not None
    assert found.settings.as_dict() == {
        "name": "nightly",
        "format": "MULTI_TASK",
        "max_concurrent_runs": 1,
        "timeout_seconds": 0,
        "email_notifications": {},
        "webhook_notifications": {},
        "schedule": {"quartz_cron_expression": "0 0 3 * * ?", "timezone_id": "UTC", "pause_status": "UNPAUSED"},
        "tasks": [
            {
                "task_key": "refresh",
                "run_if": "ALL_SUCCESS",
                "timeout_seconds": 0,
                "email_notifications": {},
                "pipeline_task": {"pipeline_id": pipeline},
            }
        ],
    }


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"nme": "x"}, "unrecognized field 'nme'"),
        ({"schedule": {"quartz_cron_expression": "0 3 * * *", "timezone_id": "UTC"}}, "Invalid quartz"),
        ({"schedule": {"quartz_cron_expression": "0 0 3 * * ?"}}, "timezone_id"),
        ({"continuous": {"pause_status": "PAUSED"}, "trigger": {"periodic": {"interval": 1, "unit": "DAYS"}}}, "Only one of"),
        ({"tasks": [{"pipeline_task": {"pipeline_id": "x"}}]}, "task_key"),
        ({"tasks": [{"task_key": "a", "pipeline_task": {}}]}, "pipeline_id is missing"),
        ({"tasks": [{"task_key": "a", "pipeline_task": {"pipeline_id": "x"}, "depends_on": [{"task_key": "b"}]}]}, "does not exist"),
    ],
)
def test_settings_of_jobs_that_cannot_be_are_400(workspace: Workspace, client: Client, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        client().api_client.do("POST", "/api/2.2/jobs/create", body={"name": "nightly", **settings})
    assert workspace.jobs == {}


def test_reset_replaces_and_update_merges(client: Client) -> None:
    api = client()
    job, _ = _job(api, description="old", max_concurrent_runs=3)
    api.jobs.update(job, new_settings=JobSettings(name="daily"), fields_to_remove=["description"])
    found = api.jobs.get(job).settings
    assert found is not None
    assert (found.name, found.description, found.max_concurrent_runs) == ("daily", None, 3)
    api.jobs.reset(job, JobSettings(name="weekly"))
    found = api.jobs.get(job).settings
    assert found is not None
    assert (found.name, found.tasks or [], found.max_concurrent_runs) == ("weekly", [], 1)


def test_a_deleted_job_is_gone(client: Client) -> None:
    api = client()
    job, _ = _job(api)
    api.jobs.delete(job)
    with pytest.raises(ResourceDoesNotExist, match="does not exist"):
        api.jobs.get(job)


def test_jobs_are_listed_in_pages_and_by_name(client: Client) -> None:
    api = client()
    for number in range(45):
        api.jobs.create(name=f"job {number}")
    assert len(list(api.jobs.list())) == 45
    assert [job.settings and job.settings.name for job in api.jobs.list(name="JOB 7")] == ["job 7"]


def test_a_run_starts_the_pipelines_and_ends_with_them(workspace: Workspace, client: Client) -> None:
    api = client()
    job, pipeline = _job(api)
    run: int = api.jobs.run_now(job).run_id
    updates = workspace.pipelines[pipeline].updates
    assert [(update.cause, update.active) for update in updates] == [("JOB_TASK", True)]
    workspace.finish(pipeline)
    state = api.jobs.get_run(run).state
    assert state is not None
    assert (state.life_cycle_state, state.result_state) == (RunLifeCycleState.TERMINATED, RunResultState.SUCCESS)
    assert [each.run_id for each in api.jobs.list_runs(job_id=job)] == [run]


def test_a_run_fails_with_its_update(workspace: Workspace, client: Client) -> None:
    workspace.script("sales", [failing_flow("a", "no such column")])
    api = client()
    job, pipeline = _job(api)
    run: int = api.jobs.run_now(job).run_id
    workspace.finish(pipeline)
    state = api.jobs.get_run(run).state
    assert state is not None
    assert (state.result_state, state.state_message) == (RunResultState.FAILED, "a failed. no such column")


def test_a_run_with_a_token_that_was_used_starts_nothing(workspace: Workspace, client: Client) -> None:
    api = client()
    job, pipeline = _job(api)
    first: int = api.jobs.run_now(job, idempotency_token="once").run_id
    second: int = api.jobs.run_now(job, idempotency_token="once").run_id
    assert second == first
    assert len(workspace.pipelines[pipeline].updates) == 1


_BOARD = {"pages": [{"name": "p"}], "datasets": [{"name": "d", "queryLines": ["SELECT 1"]}]}


def _dashboard(api: WorkspaceClient, name: str = "Quality", text: str | None = None, **more: Any) -> Dashboard:
    shape = Dashboard(
        display_name=name, parent_path=f"/Workspace{HOME}", serialized_dashboard=text or json.dumps(_BOARD), warehouse_id="w1"
    )
    return api.lakeview.create(shape, **more)


def test_a_dashboard_is_stored_as_the_workspace_writes_it(workspace: Workspace, client: Client) -> None:
    api = client()
    made = _dashboard(api, dataset_catalog="main", dataset_schema="s")
    found = api.lakeview.get(made.dashboard_id or "")
    assert (found.path, found.parent_path) == (f"{HOME}/Quality.lvdash.json", HOME)
    assert len(made.dashboard_id or "") == 32
    text = found.serialized_dashboard or ""
    assert text.endswith("\n")
    assert json.loads(text) == {
        "pages": [{"name": "p", "pageType": "PAGE_TYPE_CANVAS"}],
        "datasets": [{"name": "d", "queryLines": ["SELECT 1"], "catalog": "main", "schema": "s"}],
    }
    assert api.workspace.get_status(f"{HOME}/Quality.lvdash.json").object_type is ObjectType.DASHBOARD
    assert list(workspace.files) == []


def test_a_dashboard_needs_its_folder_and_a_free_name(client: Client) -> None:
    api = client()
    with pytest.raises(NotFound, match=r"Path \(/none\) doesn't exist"):
        api.lakeview.create(Dashboard(display_name="x", parent_path="/none"))
    _dashboard(api)
    with pytest.raises(ResourceConflict, match="already exists"):
        _dashboard(api)


def test_an_imported_dashboard_file_is_a_dashboard_and_no_file(workspace: Workspace, client: Client) -> None:
    api = client()
    for text in ("{}", json.dumps(_BOARD)):
        api.workspace.upload(f"{HOME}/board.lvdash.json", text.encode(), format=ImportFormat.AUTO, overwrite=True)
    (made,) = workspace.dashboards.values()
    assert (made.display_name, json.loads(made.serialized)["datasets"], list(workspace.files)) == ("board", _BOARD["datasets"], [])
    api.workspace.upload(f"{HOME}/raw.lvdash.json", b"{}", format=ImportFormat.RAW)
    assert list(workspace.files) == [f"{HOME}/raw.lvdash.json"]


def test_every_write_of_a_dashboard_raises_its_etag(client: Client) -> None:
    api = client()
    first = _dashboard(api)
    key = first.dashboard_id or ""
    second = api.lakeview.update(key, Dashboard(display_name="Health", etag=first.etag))
    assert int(second.etag or "0") > int(first.etag or "0")
    assert second.path == f"{HOME}/Health.lvdash.json"
    with pytest.raises(ResourceConflict, match="was modified"):
        api.lakeview.update(key, Dashboard(display_name="Late", etag=first.etag))
    assert api.lakeview.get(key).display_name == "Health"


def test_trashing_a_dashboard_unpublishes_it(client: Client) -> None:
    api = client()
    key = _dashboard(api).dashboard_id or ""
    assert api.lakeview.publish(key, embed_credentials=False).warehouse_id == "w1"
    assert api.lakeview.get_published(key).embed_credentials is False
    api.lakeview.trash(key)
    assert api.lakeview.get(key).lifecycle_state is LifecycleState.TRASHED
    with pytest.raises(NotFound):
        api.lakeview.get_published(key)
    assert list(api.lakeview.list()) == []
    assert [each.dashboard_id for each in api.lakeview.list(show_trashed=True)] == [key]


def test_a_new_dashboard_may_be_late(workspace: Workspace, client: Client) -> None:
    workspace.late_dashboards = True
    api = client()
    key = _dashboard(api).dashboard_id or ""
    with pytest.raises(NotFound):
        api.lakeview.get(key)
    assert api.lakeview.get(key).display_name == "Quality"


def test_deleting_its_folder_trashes_a_dashboard(workspace: Workspace, client: Client) -> None:
    api = client()
    key = _dashboard(api).dashboard_id or ""
    api.workspace.delete(HOME, recursive=True)
    assert workspace.dashboards[key].trashed


def _grant(user: str, level: PermissionLevel) -> AccessControlRequest:
    return AccessControlRequest(user_name=user, permission_level=level)


def test_permissions_of_a_job_are_replaced_with_its_owner_kept(workspace: Workspace, client: Client) -> None:
    api = client()
    job = str(_job(api)[0])
    owner = _grant(ME, PermissionLevel.IS_OWNER)
    api.permissions.set("jobs", job, access_control_list=[owner, _grant("a@example.com", PermissionLevel.CAN_VIEW)])
    api.permissions.update("jobs", job, access_control_list=[_grant("b@example.com", PermissionLevel.CAN_MANAGE)])
    assert workspace.grants("jobs", job) == {(ME, "IS_OWNER"), ("a@example.com", "CAN_VIEW"), ("b@example.com", "CAN_MANAGE")}
    found = api.permissions.get("jobs", job)
    shown = [
        (each.user_name or each.group_name, each.all_permissions and each.all_permissions[0].inherited)
        for each in found.access_control_list or []
    ]
    assert shown == [(ME, False), ("a@example.com", False), ("b@example.com", False), ("admins", True)]


@pytest.mark.parametrize("kind", ["jobs", "pipelines"])
def test_a_list_of_permissions_without_an_owner_is_400(workspace: Workspace, client: Client, kind: str) -> None:
    api = client()
    key = str(_job(api)[0 if kind == "jobs" else 1])
    with pytest.raises(BadRequest, match=f"The {kind[:-1]} must have exactly one owner"):
        api.permissions.set(kind, key, access_control_list=[_grant("a@example.com", PermissionLevel.CAN_MANAGE)])
    assert workspace.grants(kind, key) == {(ME, "IS_OWNER")}


def test_a_level_of_another_kind_of_object_is_400(client: Client) -> None:
    api = client()
    job, pipeline = _job(api)
    with pytest.raises(BadRequest, match="CAN_RUN is not supported for object type job"):
        api.permissions.update("jobs", str(job), access_control_list=[_grant("a@example.com", PermissionLevel.CAN_RUN)])
    with pytest.raises(BadRequest, match="not a valid object type"):
        api.permissions.get("nonsense", pipeline)


def test_what_was_granted_may_be_done_and_no_more(workspace: Workspace, client: Client) -> None:
    api, other = client(), client(workspace.add_user("a@example.com"))
    pipeline = _job(api)[1]
    api.permissions.update("pipelines", pipeline, access_control_list=[_grant("a@example.com", PermissionLevel.CAN_RUN)])
    other.pipelines.start_update(pipeline)
    with pytest.raises(PermissionDenied, match="does not have CAN_MANAGE permission on pipeline"):
        other.pipelines.update(pipeline, name="mine", catalog="main")


def test_a_grant_on_a_folder_counts_below_it(workspace: Workspace, client: Client) -> None:
    api, other = client(), client(workspace.add_user("a@example.com"))
    workspace.files[f"{HOME}/app/a.py"] = "1"
    api.workspace.mkdirs(f"{HOME}/team")
    folder = str(api.workspace.get_status(f"{HOME}/team").object_id)
    api.permissions.update("directories", folder, access_control_list=[_grant("a@example.com", PermissionLevel.CAN_EDIT)])
    other.workspace.mkdirs(f"{HOME}/team/deep")
    with pytest.raises(PermissionDenied):
        other.workspace.get_status(f"{HOME}/app/a.py")


def test_privileges_of_a_schema_are_added_and_removed(workspace: Workspace, client: Client) -> None:
    api = client()
    api.schemas.create("raw", "main")
    both = PermissionsChange(principal="analysts", add=[Privilege.USE_SCHEMA, Privilege.SELECT])
    api.grants.update("schema", "main.raw", changes=[both])
    api.grants.update("schema", "main.raw", changes=[PermissionsChange(principal="analysts", remove=[Privilege.SELECT])])
    found = api.grants.get("schema", "main.raw").privilege_assignments or []
    assert [(each.principal, each.privileges) for each in found] == [("analysts", [Privilege.USE_SCHEMA])]
    assert workspace.privileges == {("schema", "main.raw"): {"analysts": {"USE_SCHEMA"}}}
    with pytest.raises(BadRequest, match="READ_FILES is not applicable"):
        api.grants.update("schema", "main.raw", changes=[PermissionsChange(principal="a", add=[Privilege.READ_FILES])])
    with pytest.raises(NotFound, match=r"Schema 'main\.none' does not exist"):
        api.grants.get("schema", "main.none")
