"""The workspace on loopback: pipelines, their updates and events, as the real SDK sees them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from databricks.sdk.errors import BadRequest, NotFound, ResourceConflict
from databricks.sdk.service.pipelines import (
    FileLibrary,
    NotebookLibrary,
    PathPattern,
    PipelineLibrary,
    PipelineState,
    RunAs,
    UpdateInfoState,
)

from tests.workspace_double import Workspace, dataset, event, failing_flow, flow

if TYPE_CHECKING:
    from databricks.sdk import WorkspaceClient

Client = Callable[..., "WorkspaceClient"]


def _pipeline(api: WorkspaceClient, name: str = "sales", **settings: Any) -> str:
    made = api.pipelines.create(name=name, catalog="main", schema="s", serverless=True, **settings).pipeline_id
    assert made
    return made


def test_a_pipeline_comes_back_with_what_the_workspace_filled_in(client: Client) -> None:
    api = client()
    library = PipelineLibrary(glob=PathPattern(include="/Workspace/Users/x/files/**"))
    run_as = RunAs(service_principal_name="robot")
    key = _pipeline(api, libraries=[library], configuration={"a": "1"}, run_as=run_as, parameters={"day": "1"}, allow_duplicate_names=True)
    found = api.pipelines.get(key)
    assert (found.name, found.state, found.creator_user_name) == ("sales", PipelineState.IDLE, "dev.user@example.com")
    assert (found.run_as, found.run_as_user_name, found.parameters) == (run_as, "robot", {"day": "1"})
    assert found.spec is not None
    assert found.spec.as_dict() == {
        "id": key,
        "name": "sales",
        "catalog": "main",
        "schema": "s",
        "serverless": True,
        "photon": True,
        "libraries": [{"glob": {"include": "/Workspace/Users/x/files/**"}}],
        "configuration": {"a": "1"},
        "channel": "CURRENT",
        "edition": "ADVANCED",
        "continuous": False,
        "development": False,
    }


def test_a_pipeline_without_a_catalog_gets_a_storage(client: Client) -> None:
    api = client()
    key = api.pipelines.create(name="old").pipeline_id or ""
    spec = api.pipelines.get(key).spec
    assert spec is not None
    assert spec.storage == f"dbfs:/pipelines/{key}"


def test_a_dry_run_makes_nothing(workspace: Workspace, client: Client) -> None:
    settings = client().pipelines.create(name="sales", dry_run=True).effective_settings
    assert settings is not None
    assert settings.name == "sales"
    assert workspace.pipelines == {}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"nme": "x"}, "unrecognized field 'nme'"),
        ({"name": 3}, "name must be a str"),
        ({"target": "a.b"}, "cannot contain a dot"),
        ({"target": "a", "schema": "b"}, "Only one of"),
        ({"catalog": "main", "storage": "/x"}, "'storage' cannot be specified together"),
        ({"configuration": {"n": 1}}, "must be strings"),
        ({"serverless": True, "clusters": [{"label": "default"}]}, "serverless"),
        ({"libraries": [{"glob": {"include": "/x/**"}}, {"file": {"path": "/y"}}]}, "cannot be mixed"),
        ({"libraries": [{"glob": {"path": "/x/**"}}]}, "needs 'include'"),
        ({"notifications": [{"alerts": ["on-update-sucess"], "email_recipients": ["a@b.c"]}]}, "Invalid alert 'on-update-sucess'"),
        ({"tags": {str(number): "" for number in range(26)}}, "maximum of 25 tags"),
        ({"run_as": {"user_name": "a", "group_name": "b"}}, "exactly one of"),
        ({"channel": "LATEST"}, "Invalid channel"),
    ],
)
def test_settings_that_cannot_be_are_400(workspace: Workspace, client: Client, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        client().api_client.do("POST", "/api/2.0/pipelines", body={"name": "sales", **settings})
    assert workspace.pipelines == {}


def test_a_name_is_taken_unless_duplicates_are_allowed(client: Client) -> None:
    api = client()
    _pipeline(api)
    with pytest.raises(ResourceConflict, match="'sales' is already used by another pipeline"):
        _pipeline(api)
    _pipeline(api, allow_duplicate_names=True)
    assert [status.name for status in api.pipelines.list_pipelines(filter="name LIKE 'sal%'")] == ["sales", "sales"]


def test_an_unknown_catalog_is_404(client: Client) -> None:
    with pytest.raises(NotFound, match="Catalog 'none' does not exist"):
        client().pipelines.create(name="sales", catalog="none", schema="s")


def test_an_edit_replaces_all_settings(workspace: Workspace, client: Client) -> None:
    api = client()
    key = _pipeline(api, configuration={"a": "1"})
    api.pipelines.update(key, name="sales", catalog="main", schema="t", serverless=True)
    assert workspace.pipelines[key].spec["schema"] == "t"
    assert "configuration" not in workspace.pipelines[key].spec


def test_an_edit_of_what_somebody_changed_meanwhile_is_a_conflict(workspace: Workspace, client: Client) -> None:
    api = client()
    key = _pipeline(api)
    seen = api.pipelines.get(key).last_modified
    api.pipelines.update(key, name="by hand", catalog="main", schema="s", expected_last_modified=seen)
    with pytest.raises(ResourceConflict, match="were modified"):
        api.pipelines.update(key, name="by me", catalog="main", schema="s", expected_last_modified=seen)
    assert workspace.pipelines[key].name == "by hand"


def test_an_unknown_pipeline_is_404(client: Client) -> None:
    with pytest.raises(NotFound, match="The specified pipeline 42 was not found"):
        client().pipelines.get("42")


def test_a_deleted_pipeline_takes_its_tables_along_unless_told_not_to(workspace: Workspace, client: Client) -> None:
    api = client()
    for name, cascade in (("kept", False), ("gone", None)):
        key = _pipeline(api, name)
        workspace.tables[f"main.s.{name}"] = [{"id": 1}]
        workspace.table_owners[f"main.s.{name}"] = key
        api.pipelines.delete(key, cascade=cascade)
    assert (workspace.pipelines, list(workspace.tables)) == ({}, ["main.s.kept"])


def test_pipelines_are_listed_in_pages(workspace: Workspace, client: Client) -> None:
    api = client()
    for number in range(60):
        _pipeline(api, f"p{number:02}")
    workspace.requests.clear()
    assert [status.name for status in api.pipelines.list_pipelines()] == [f"p{number:02}" for number in range(60)]
    assert len(workspace.requests) == 3
    backwards = [status.name for status in api.pipelines.list_pipelines(order_by=["name desc"], max_results=100)]
    assert backwards[0] == "p59"


def test_an_update_goes_through_the_documented_states(client: Client) -> None:
    api = client()
    key = _pipeline(api)
    update = api.pipelines.start_update(key).update_id or ""
    states: list[str] = []
    while not states or states[-1] not in ("COMPLETED", "FAILED", "CANCELED"):
        info = api.pipelines.get_update(key, update).update
        assert info is not None
        assert info.state is not None
        states.append(info.state.value)
    assert list(dict.fromkeys(states)) == ["WAITING_FOR_RESOURCES", "INITIALIZING", "SETTING_UP_TABLES", "RUNNING", "COMPLETED"]
    latest = api.pipelines.get(key).latest_updates
    assert latest is not None
    assert [(each.update_id, each.state and each.state.value) for each in latest] == [(update, "COMPLETED")]


def test_a_second_update_is_a_conflict_while_one_is_active(workspace: Workspace, client: Client) -> None:
    api = client()
    key = _pipeline(api)
    api.pipelines.start_update(key)
    with pytest.raises(ResourceConflict, match=r"An active update .* already exists"):
        api.pipelines.start_update(key)
    workspace.finish(key)
    api.pipelines.start_update(key, full_refresh=True)
    updates = api.pipelines.list_updates(key).updates or []
    assert [each.full_refresh for each in updates] == [True, False]


@pytest.mark.parametrize("what", ["create", "start"])
def test_of_many_at_once_exactly_one_succeeds(workspace: Workspace, client: Client, what: str) -> None:
    key = "" if what == "create" else _pipeline(client())
    clients = [client() for _ in range(4)]

    def ask(number: int) -> bool:
        api = clients[number % 4]
        try:
            if what == "create":
                _pipeline(api)
            else:
                api.pipelines.start_update(key)
        except ResourceConflict:
            return False
        return True

    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(ask, range(24))) == 1
    assert [pipeline.name for pipeline in workspace.pipelines.values()] == ["sales"]


def test_only_the_clock_of_the_test_moves_an_update_when_polls_do_not(workspace: Workspace, client: Client) -> None:
    workspace.stages_per_poll = 0
    api = client()
    key = _pipeline(api)
    update = api.pipelines.start_update(key).update_id or ""
    states: list[UpdateInfoState | None] = []
    for steps in (0, 1, 2, 100):
        workspace.advance("sales", steps)
        info = api.pipelines.get_update(key, update).update
        assert info is not None
        states.append(info.state)
    expected = [
        UpdateInfoState.CREATED,
        UpdateInfoState.WAITING_FOR_RESOURCES,
        UpdateInfoState.SETTING_UP_TABLES,
        UpdateInfoState.COMPLETED,
    ]
    assert states == expected


def test_stop_ends_at_the_first_look(client: Client) -> None:
    api = client()
    key = _pipeline(api)
    update = api.pipelines.start_update(key).update_id or ""
    api.pipelines.stop_and_wait(key)
    info = api.pipelines.get_update(key, update).update
    assert info is not None
    assert info.state is UpdateInfoState.CANCELED


def _events(api: WorkspaceClient, key: str, **query: Any) -> list[dict[str, Any]]:
    answer = api.api_client.do("GET", f"/api/2.0/pipelines/{key}/events", query=query)
    assert isinstance(answer, dict)
    return list(answer["events"])


def test_events_hold_the_numbers_of_expectations(workspace: Workspace, client: Client) -> None:
    workspace.script(
        "sales",
        [
            dataset("main.s.orders", inputs=["main.s.raw"]),
            flow("main.s.orders", rows=8, expectations={"valid_id": (8, 2), "has_day": (10, 0)}, metrics={"backlog_files": 0}),
            event("planning_information", "planned", {"technique": "INCREMENTAL"}, dataset="main.s.orders"),
        ],
    )
    api = client()
    key = _pipeline(api)
    update = api.pipelines.start_update(key).update_id or ""
    workspace.finish(key)
    told = _events(api, key, order_by=["timestamp asc"], filter="level = 'METRICS'")
    assert [each["details"] for each in told] == [
        {
            "flow_progress": {
                "status": "RUNNING",
                "metrics": {"num_output_rows": 8, "backlog_files": 0},
                "data_quality": {
                    "dropped_records": 2,
                    "expectations": [
                        {"name": "valid_id", "dataset": "main.s.orders", "passed_records": 8, "failed_records": 2},
                        {"name": "has_day", "dataset": "main.s.orders", "passed_records": 10, "failed_records": 0},
                    ],
                },
            }
        }
    ]
    origin = told[0]["origin"]
    assert (origin["update_id"], origin["flow_name"], origin["pipeline_name"]) == (update, "main.s.orders", "sales")
    kinds = [each["event_type"] for each in _events(api, key, order_by=["timestamp asc"])]
    assert kinds[:4] == ["user_action", "user_action", "create_update", "update_progress"]
    assert {"dataset_definition", "flow_definition", "planning_information"} < set(kinds)


def test_numbers_of_a_materialized_view_come_with_its_end(workspace: Workspace, client: Client) -> None:
    workspace.script("*", [flow("v", rows=3, expectations={"ok": (3, 0)}, type="MATERIALIZED_VIEW")])
    api = client()
    key = _pipeline(api)
    api.pipelines.start_update(key)
    workspace.finish(key)
    told = [each for each in workspace.events[key] if each["event_type"] == "flow_progress"]
    progress = [
        (each["level"], each["details"]["flow_progress"]["status"], "data_quality" in each["details"]["flow_progress"]) for each in told
    ]
    assert progress == [("INFO", "STARTING", False), ("INFO", "RUNNING", False), ("INFO", "COMPLETED", True)]


def test_events_of_level_metrics_may_be_in_the_table_only(workspace: Workspace, client: Client) -> None:
    workspace.metrics_over_rest = False
    api = client()
    key = _pipeline(api)
    api.pipelines.start_update(key)
    workspace.finish(key)
    assert {each["level"] for each in _events(api, key)} == {"INFO"}
    levels = api.statement_execution.execute_statement(f"SELECT DISTINCT level FROM event_log('{key}') ORDER BY 1", workspace.warehouse_id)
    assert levels.result is not None
    assert levels.result.data_array == [["INFO"], ["METRICS"]]


def test_a_failed_update_may_be_followed_by_another_one(workspace: Workspace, client: Client) -> None:
    workspace.script("sales", [failing_flow("a", "no such file")], retry=[flow("a", rows=1)])
    api = client()
    key = _pipeline(api)
    api.pipelines.start_update(key)
    workspace.finish(key)
    updates = api.pipelines.list_updates(key).updates or []
    told = [(update.cause and update.cause.value, update.state and update.state.value) for update in updates]
    assert told == [("RETRY_ON_FAILURE", "COMPLETED"), ("API_CALL", "FAILED")]


def test_events_are_the_newest_first_in_pages(workspace: Workspace, client: Client) -> None:
    api = client()
    key = _pipeline(api)
    api.pipelines.start_update(key)
    workspace.finish(key)
    newest = [each.id for each in api.pipelines.list_pipeline_events(key, max_results=5)]
    oldest = [each.id for each in api.pipelines.list_pipeline_events(key, order_by=["timestamp asc"], max_results=7)]
    assert newest == oldest[::-1]
    assert newest == [each["id"] for each in workspace.events[key]][::-1]


def test_events_after_a_time_are_those_not_seen_yet(workspace: Workspace, client: Client) -> None:
    api = client()
    key = _pipeline(api)
    api.pipelines.start_update(key)
    workspace.finish(key)
    every = _events(api, key, order_by=["timestamp asc"])
    middle = every[6]["timestamp"]
    assert _events(api, key, order_by=["timestamp asc"], filter=f"timestamp > '{middle}' AND level in ('INFO', 'METRICS')") == every[7:]


@pytest.mark.parametrize("wrong", ["event_type = 'flow_progress'", "level = INFO", "level = 'INFO' OR level = 'WARN'"])
def test_a_filter_of_events_that_is_not_documented_is_400(client: Client, wrong: str) -> None:
    api = client()
    key = _pipeline(api)
    with pytest.raises(BadRequest, match="Invalid filter"):
        _events(api, key, filter=wrong)


def test_an_update_fails_with_its_flow(workspace: Workspace, client: Client) -> None:
    workspace.script("*", [flow("a", rows=1), failing_flow("b", "[DIVIDE_BY_ZERO] Division by zero.")])
    api = client()
    key = _pipeline(api)
    update = api.pipelines.start_update(key).update_id or ""
    workspace.finish(key)
    info = api.pipelines.get_update(key, update).update
    assert info is not None
    assert info.state is UpdateInfoState.FAILED
    errors = _events(api, key, order_by=["timestamp asc"], filter="level = 'ERROR'")
    assert [(each["event_type"], each["error"]["exceptions"][0]["message"]) for each in errors] == [
        ("flow_progress", "[DIVIDE_BY_ZERO] Division by zero."),
        ("update_progress", "b failed. [DIVIDE_BY_ZERO] Division by zero."),
    ]


def test_a_selection_excludes_the_other_flows(workspace: Workspace, client: Client) -> None:
    workspace.script("*", [flow("main.s.a", rows=1), flow("main.s.b", rows=1)])
    api = client()
    key = _pipeline(api)
    api.pipelines.start_update(key, refresh_selection=["b"])
    workspace.finish(key)
    told = [
        (each["origin"]["flow_name"], each["details"]["flow_progress"]["status"])
        for each in workspace.events[key]
        if "flow_name" in each["origin"]
    ]
    assert ("main.s.a", "EXCLUDED") in told
    assert ("main.s.a", "COMPLETED") not in told
    assert ("main.s.b", "COMPLETED") in told


def test_an_unknown_name_in_a_selection_fails_the_update(workspace: Workspace, client: Client) -> None:
    api = client()
    key = _pipeline(api)
    api.pipelines.start_update(key, refresh_selection=["none"])
    workspace.finish(key)
    assert workspace.pipelines[key].updates[-1].failure == "Unable to resolve the selected tables: none."


@pytest.mark.parametrize(
    ("library", "state"),
    [
        (PipelineLibrary(glob=PathPattern(include="/Workspace/Shared/app/**")), "COMPLETED"),
        (PipelineLibrary(file=FileLibrary(path="/Shared/app/bronze/a.py")), "COMPLETED"),
        (PipelineLibrary(glob=PathPattern(include="/Workspace/Shared/other/**")), "FAILED"),
        (PipelineLibrary(notebook=NotebookLibrary(path="/Shared/app/none")), "FAILED"),
    ],
)
def test_an_update_fails_without_its_sources_where_that_is_checked(
    workspace: Workspace, client: Client, library: PipelineLibrary, state: str
) -> None:
    workspace.check_sources = True
    workspace.files["/Shared/app/bronze/a.py"] = "1"
    api = client()
    key = _pipeline(api, libraries=[library])
    api.pipelines.start_update(key)
    workspace.finish(key)
    assert workspace.pipelines[key].updates[-1].state == state


def test_a_continuous_pipeline_runs_until_it_is_stopped(workspace: Workspace, client: Client) -> None:
    api = client()
    key = _pipeline(api, continuous=True)
    api.pipelines.start_update(key)
    workspace.finish(key)
    assert api.pipelines.get(key).state is PipelineState.RUNNING
    api.pipelines.stop_and_wait(key)
    assert api.pipelines.get(key).state is PipelineState.IDLE
