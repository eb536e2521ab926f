"""The workspace on loopback: the calls that no other test makes, and that no route is left unseen."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING

import pytest
from databricks.sdk.errors import BadRequest, NotFound, NotImplemented
from databricks.sdk.errors.base import DatabricksError
from databricks.sdk.service.catalog import VolumeType
from databricks.sdk.service.dashboards import CronSchedule, Dashboard, Schedule
from databricks.sdk.service.jobs import PipelineTask, RunLifeCycleState, Task
from databricks.sdk.service.workspace import ExportFormat, ImportFormat, Language

from tests.workspace_double import Workspace

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

Client = Callable[..., "WorkspaceClient"]
HOME = "/Users/dev.user@example.com"


def _files(api: WorkspaceClient) -> None:
    api.workspace.mkdirs(f"{HOME}/a")
    api.workspace.upload(f"{HOME}/a/f", b"1", format=ImportFormat.AUTO)
    list(api.workspace.list(HOME))
    api.workspace.get_status(f"{HOME}/a/f")
    api.workspace.export(f"{HOME}/a/f")
    api.workspace.delete(f"{HOME}/a", recursive=True)
    api.schemas.create("s", "main")
    api.schemas.get("main.s")
    api.schemas.update("main.s", comment="c")
    list(api.schemas.list("main"))
    api.volumes.create("main", "s", "v", VolumeType.MANAGED)
    api.volumes.read("main.s.v")
    api.volumes.update("main.s.v", comment="c")
    list(api.volumes.list("main", "s"))
    api.grants.get("volume", "main.s.v")
    api.grants.update("volume", "main.s.v", changes=[])
    folder = "/Volumes/main/s/v/d"
    api.files.create_directory(folder)
    api.files.get_directory_metadata(folder)
    api.files.upload(f"{folder}/f", BytesIO(b"1"))
    api.files.get_metadata(f"{folder}/f")
    api.files.download(f"{folder}/f")
    list(api.files.list_directory_contents(folder))
    api.files.delete(f"{folder}/f")
    api.files.delete_directory(folder)
    api.volumes.delete("main.s.v")
    api.schemas.delete("main.s")
    api.catalogs.get("main")


def _pipelines_and_jobs(api: WorkspaceClient, workspace: Workspace) -> None:
    key = api.pipelines.create(name="p").pipeline_id or ""
    list(api.pipelines.list_pipelines())
    api.pipelines.get(key)
    api.pipelines.update(key, name="p")
    api.pipelines.apply_environment(key)
    api.pipelines.clone(key, name="q", catalog="main", target="t")
    update = api.pipelines.start_update(key).update_id or ""
    api.pipelines.get_update(key, update)
    api.pipelines.list_updates(key)
    list(api.pipelines.list_pipeline_events(key))
    api.pipelines.stop(key)
    workspace.finish(key)
    job: int = api.jobs.create(name="j", tasks=[Task("t", pipeline_task=PipelineTask(key))]).job_id  # type: ignore[assignment]
    api.jobs.get(job)
    list(api.jobs.list())
    api.jobs.update(job)
    run: int = api.jobs.run_now(job).run_id
    api.jobs.get_run(run)
    list(api.jobs.list_runs())
    api.jobs.cancel_run(run)
    api.permissions.get("jobs", str(job))
    api.permissions.get_permission_levels("jobs", str(job))
    api.permissions.update("jobs", str(job), access_control_list=[])
    api.api_client.do("POST", "/api/2.2/jobs/reset", body={"job_id": job, "new_settings": {"name": "k"}})
    owner = {"user_name": "dev.user@example.com", "permission_level": "IS_OWNER"}
    api.api_client.do("PUT", f"/api/2.0/permissions/jobs/{job}", body={"access_control_list": [owner]})
    api.jobs.delete(job)
    api.pipelines.delete(key)


def _dashboards_and_sql(api: WorkspaceClient, workspace: Workspace) -> None:
    board = api.lakeview.create(Dashboard(display_name="d", warehouse_id=workspace.warehouse_id)).dashboard_id or ""
    api.lakeview.get(board)
    list(api.lakeview.list())
    api.lakeview.update(board, Dashboard(display_name="e"))
    api.lakeview.publish(board)
    api.lakeview.get_published(board)
    api.lakeview.unpublish(board)
    schedule = api.lakeview.create_schedule(board, Schedule(CronSchedule("0 0 8 * * ?", "UTC"))).schedule_id or ""
    assert [each.schedule_id for each in api.lakeview.list_schedules(board)] == [schedule]
    api.lakeview.delete_schedule(board, schedule)
    api.lakeview.trash(board)
    list(api.warehouses.list())
    api.warehouses.get(workspace.warehouse_id)
    statement = api.statement_execution.execute_statement("SELECT 1", workspace.warehouse_id).statement_id or ""
    api.statement_execution.get_statement(statement)
    api.statement_execution.get_statement_result_chunk_n(statement, 0)
    api.statement_execution.cancel_execution(statement)
    workspace.tables["main.s.t"] = [{"a": 1}]
    api.tables.get("main.s.t")
    list(api.tables.list("main", "s"))


def test_every_route_answers_the_sdk(workspace: Workspace, client: Client) -> None:
    api = client()
    api.current_user.me()
    _files(api)
    _pipelines_and_jobs(api, workspace)
    _dashboards_and_sql(api, workspace)
    unseen = workspace.routes.names - workspace.routes.used
    of_types_with_a_slash = {name for name in unseen if "/permissions/sql/" in name}
    assert unseen - of_types_with_a_slash == {"GET /oidc/.well-known/oauth-authorization-server", "POST /oidc/v1/token"}
    # The SDK asks for a download address first, and is told that there is none: facts 1.2, `files.download`.
    assert {request.path for request in workspace.requests if request.status not in (200, 204)} == {"/api/2.0/fs/create-download-url"}


def test_updates_are_listed_up_to_one_of_them(workspace: Workspace, client: Client) -> None:
    api = client()
    key = api.pipelines.create(name="p").pipeline_id or ""
    started = []
    for _ in range(4):
        started.append(api.pipelines.start_update(key).update_id)
        workspace.finish(key)
    until = api.pipelines.list_updates(key, until_update_id=started[1]).updates or []
    assert [update.update_id for update in until] == started[:0:-1]
    first = api.pipelines.list_updates(key, max_results=3)
    second = api.pipelines.list_updates(key, max_results=3, page_token=first.next_page_token)
    assert [update.update_id for update in second.updates or []] == started[:1]
    assert second.prev_page_token


def test_a_page_token_of_another_list_is_400(client: Client) -> None:
    api = client()
    keys = [api.pipelines.create(name=name).pipeline_id or "" for name in "ab"]
    token = api.api_client.do("GET", "/api/2.0/pipelines", query={"max_results": 1})
    assert isinstance(token, dict)
    with pytest.raises(BadRequest, match="another list"):
        api.pipelines.list_updates(keys[0], page_token=token["next_page_token"])
    with pytest.raises(BadRequest, match="Invalid page token"):
        api.pipelines.list_updates(keys[0], page_token="nonsense")


def test_canceling_a_run_stops_its_update(workspace: Workspace, client: Client) -> None:
    api = client()
    key = api.pipelines.create(name="p").pipeline_id or ""
    job: int = api.jobs.create(name="j", tasks=[Task("t", pipeline_task=PipelineTask(key))]).job_id  # type: ignore[assignment]
    run: int = api.jobs.run_now(job).run_id
    api.jobs.cancel_run(run)
    workspace.finish(key)
    state = api.jobs.get_run(run).state
    assert state is not None
    assert (state.life_cycle_state, workspace.pipelines[key].updates[0].state) == (RunLifeCycleState.TERMINATED, "CANCELED")


def test_a_clone_has_the_settings_of_the_pipeline_and_an_id_of_its_own(workspace: Workspace, client: Client) -> None:
    api = client()
    key = api.pipelines.create(name="p", configuration={"a": "1"}).pipeline_id or ""
    clone = api.pipelines.clone(key, name="q", catalog="main", target="t").pipeline_id or ""
    spec = workspace.pipelines[clone].spec
    assert (spec["id"], spec["name"], spec["catalog"], spec["configuration"]) == (clone, "q", "main", {"a": "1"})
    assert "storage" not in spec


@pytest.mark.parametrize("shape", [ExportFormat.HTML, ExportFormat.DBC])
def test_export_formats_that_are_not_modelled_are_501(workspace: Workspace, client: Client, shape: ExportFormat) -> None:
    workspace.files[f"{HOME}/f"] = "1"
    with pytest.raises(NotImplemented, match="the export format"):
        client().workspace.export(f"{HOME}/f", format=shape)


def test_a_notebook_and_a_file_do_not_take_each_others_place(workspace: Workspace, client: Client) -> None:
    workspace.files[f"{HOME}/f.py"] = "1"
    with pytest.raises(DatabricksError, match=r"Requested node type \[NOTEBOOK\] is different"):
        client().workspace.upload(f"{HOME}/f.py", b"2", language=Language.PYTHON, overwrite=True)
    assert workspace.files[f"{HOME}/f.py"] == b"1"


def test_a_trashed_dashboard_cannot_be_changed(client: Client) -> None:
    api = client()
    board = api.lakeview.create(Dashboard(display_name="d")).dashboard_id or ""
    with pytest.raises(BadRequest, match="A warehouse is required"):
        api.lakeview.publish(board)
    api.lakeview.trash(board)
    with pytest.raises(NotFound, match="is in the trash"):
        api.lakeview.update(board, Dashboard(display_name="e"))
