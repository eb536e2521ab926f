"""The workspace on loopback: credentials, faults, what it does not know, and the record of requests."""

from __future__ import annotations

import base64
import json
import logging
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError

import pytest
from databricks.sdk import WorkspaceClient
from databricks.sdk.core import Config
from databricks.sdk.errors import InternalError, NotFound, NotImplemented, PermissionDenied, ResourceAlreadyExists, Unauthenticated
from databricks.sdk.service.workspace import ImportFormat

from tests.paths import ROOT
from tests.workspace_double import Workspace

Client = Callable[..., WorkspaceClient]
HOME = "/Users/dev.user@example.com"


def test_the_client_learns_who_it_is(client: Client) -> None:
    me = client().current_user.me()
    assert (me.user_name, me.display_name, me.active) == ("dev.user@example.com", "Dev User", True)


def test_making_a_client_warns_of_nothing(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        client().current_user.me()
    assert caplog.messages == []


def test_a_wrong_token_is_unauthenticated(client: Client) -> None:
    with pytest.raises(Unauthenticated, match="Invalid access token"):
        client("dapi-nobody").current_user.me()


def test_older_workspaces_deny_a_wrong_token(workspace: Workspace, client: Client) -> None:
    workspace.identity.wrong_status = 403
    with pytest.raises(PermissionDenied, match="Invalid access token"):
        client("dapi-nobody").current_user.me()


def test_a_token_expires_between_two_requests(workspace: Workspace, client: Client) -> None:
    api = client()
    api.current_user.me()
    workspace.expire_token()
    with pytest.raises(Unauthenticated, match="Access token has expired"):
        api.current_user.me()


def test_a_service_principal_signs_in_by_oauth(workspace: Workspace) -> None:
    client_id, secret = workspace.add_service_principal("deployer")
    api = WorkspaceClient(config=Config(host=workspace.url, client_id=client_id, client_secret=secret))
    assert api.current_user.me().user_name == client_id
    with pytest.raises(ValueError, match="Client authentication failed"):
        WorkspaceClient(config=Config(host=workspace.url, client_id=client_id, client_secret="wrong")).current_user.me()
    assert secret not in repr(workspace.requests)


def test_a_token_of_ci_is_exchanged_where_its_issuer_is_trusted(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    client_id, _ = workspace.add_service_principal("deployer")
    claims = base64.urlsafe_b64encode(json.dumps({"iss": "https://ci.example.com", "sub": "repo:x"}).encode()).decode().rstrip("=")
    monkeypatch.setenv("DATABRICKS_OIDC_TOKEN", f"e30.{claims}.c2ln")
    monkeypatch.setenv("DATABRICKS_HOST", workspace.url)
    monkeypatch.setenv("DATABRICKS_CLIENT_ID", client_id)
    monkeypatch.setenv("DATABRICKS_AUTH_TYPE", "env-oidc")
    with pytest.raises(ValueError, match="No federation policy matches"):
        WorkspaceClient().current_user.me()
    workspace.oauth.issuers[client_id] = "https://ci.example.com"
    assert WorkspaceClient().current_user.me().user_name == client_id
    assert claims not in repr(workspace.requests)


def test_a_user_without_rights_is_denied_what_others_own(workspace: Workspace, client: Client) -> None:
    api, other = client(), client(workspace.add_user("reader@example.com"))
    made = api.pipelines.create(name="sales", catalog="main", schema="s").pipeline_id or ""
    assert other.current_user.me().user_name == "reader@example.com"
    assert list(other.pipelines.list_pipelines()) == []
    for refused in (
        lambda: other.pipelines.get(made),
        lambda: other.workspace.mkdirs(f"{HOME}/x"),
        lambda: other.schemas.create("raw", "main"),
        lambda: other.workspace.list(HOME).__next__(),
    ):
        with pytest.raises(PermissionDenied):
            refused()
    other.workspace.mkdirs("/Users/reader@example.com/x")
    other.workspace.mkdirs("/Shared/x")


def test_an_unknown_route_is_501_and_named(workspace: Workspace, client: Client) -> None:
    with pytest.raises(NotImplemented, match=r"the route GET /api/2\.1/clusters/list-zones"):
        client().clusters.list_zones()
    assert [str(request) for request in workspace.requests if request.status == 501] == ["GET /api/2.1/clusters/list-zones -> 501"]


def test_a_handler_that_crashes_answers_500(client: Client, workspace: Workspace) -> None:
    del workspace.objects.tree.nodes["/"]
    workspace.objects.tree.nodes["/broken"] = None  # type: ignore[assignment]
    with pytest.raises(InternalError, match="the workspace double crashed: AttributeError"):
        client().workspace.get_status("/broken")
    assert len(workspace.crashes) == 1
    workspace.crashes.clear()


def test_throttling_is_waited_for_as_long_as_the_server_says(workspace: Workspace, client: Client) -> None:
    api = client()
    throttled = workspace.fail("GET", "*/Me", status=429, retry_after=0)
    away = workspace.fail("GET", "*/Me", status=503, retry_after=0)
    assert api.current_user.me().user_name == "dev.user@example.com"
    assert (throttled.hits, away.hits) == (1, 1)
    assert [request.status for request in workspace.requests if request.path.endswith("/Me")] == [429, 503, 200]


def test_an_error_of_the_server_is_not_repeated_by_the_sdk(workspace: Workspace, client: Client) -> None:
    workspace.fail("GET", "*/Me", status=500)
    with pytest.raises(InternalError):
        client().current_user.me()


def _raw(workspace: Workspace, method: str, path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {workspace.token}", "Content-Type": "application/json"}
    request = urllib.request.Request(workspace.url + path, json.dumps(body or {}).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.load(answer)


def test_a_connection_dropped_before_nothing_happened(workspace: Workspace) -> None:
    workspace.fail("POST", "/api/2.0/pipelines", drop="before")
    with pytest.raises(OSError):  # noqa: PT011 - whichever way a connection ends
        _raw(workspace, "POST", "/api/2.0/pipelines", {"name": "sales"})
    assert (workspace.pipelines, workspace.writes) == ({}, [])
    assert (workspace.requests[-1].status, workspace.requests[-1].acted) == (None, False)


def test_a_connection_dropped_after_it_happened(workspace: Workspace) -> None:
    workspace.fail("POST", "/api/2.0/pipelines", drop="after")
    with pytest.raises(OSError):  # noqa: PT011 - whichever way a connection ends
        _raw(workspace, "POST", "/api/2.0/pipelines", {"name": "sales"})
    assert [pipeline.name for pipeline in workspace.pipelines.values()] == ["sales"]
    assert [request.method for request in workspace.writes] == ["POST"]


def test_the_sdk_doubles_a_create_whose_answer_is_lost(workspace: Workspace, client: Client) -> None:
    workspace.fail("POST", "/api/2.0/pipelines", drop="after")
    client().pipelines.create(name="sales", allow_duplicate_names=True)
    assert [pipeline.name for pipeline in workspace.pipelines.values()] == ["sales", "sales"]


def test_a_fault_can_skip_requests_and_end(workspace: Workspace, client: Client) -> None:
    fault = workspace.fail("POST", "/api/2.0/workspace/mkdirs", status=404, skip=1, times=2)
    results = []
    for name in "abcd":
        try:
            client().workspace.mkdirs(f"{HOME}/{name}")
            results.append(name)
        except NotFound:
            results.append("-")
    assert (results, fault.hits) == (["a", "-", "-", "d"], 2)


def _folders_under_chaos(workspace: Workspace, seed: int) -> list[str]:
    """What becomes of thirty requests where half of all go wrong."""
    workspace.chaos(seed, rate=0.5, kinds=("before", "after", "500"))
    first = len(workspace.requests)
    for number in range(30):
        try:
            _raw(workspace, "POST", "/api/2.0/workspace/mkdirs", {"path": f"/Shared/{seed}/{number}"})
        except OSError:
            continue
    workspace.heal()
    return [f"{request.status} {request.acted}" for request in workspace.requests[first:]]


def test_what_goes_wrong_by_chance_is_the_same_for_the_same_seed(workspace: Workspace) -> None:
    first, again, other = (_folders_under_chaos(workspace, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert set(first) == {"200 True", "None True", "None False", "500 False"}


def test_somebody_else_acts_just_before_a_request(workspace: Workspace, client: Client) -> None:
    def take_the_lock() -> None:
        workspace.files[f"{HOME}/deploy.lock"] = "somebody else's"

    workspace.when("POST", "*/import", take_the_lock)
    with pytest.raises(ResourceAlreadyExists):
        client().workspace.upload(f"{HOME}/deploy.lock", b"mine", format=ImportFormat.AUTO)
    assert workspace.files[f"{HOME}/deploy.lock"] == b"somebody else's"


def test_the_state_of_a_workspace_can_be_compared(workspace: Workspace, client: Client) -> None:
    api = client()
    key = api.pipelines.create(name="sales", catalog="main", schema="s").pipeline_id or ""
    workspace.files["/Shared/a.py"] = "1"
    before = workspace.state()
    api.pipelines.start_update(key)
    workspace.finish(key)
    assert workspace.state() == before
    api.pipelines.update(key, name="sales", catalog="main", schema="t")
    changed = workspace.state()
    assert [part for part in before if before[part] != changed[part]] == ["pipelines"]
    assert list(workspace.state(below="/Shared")["files"]) == ["/Shared", "/Shared/a.py"]


def test_a_slow_request_is_only_slow(workspace: Workspace, client: Client) -> None:
    api = client()
    workspace.fail("GET", "*/Me", delay=0.1)
    before = time.monotonic()
    assert api.current_user.me().user_name
    assert time.monotonic() - before >= 0.1


def test_requests_are_kept_with_bodies_and_without_credentials(workspace: Workspace, client: Client) -> None:
    api = client()
    workspace.requests.clear()
    api.workspace.mkdirs(f"{HOME}/app")
    api.workspace.upload(f"{HOME}/app/a.py", b"1", format=ImportFormat.AUTO, overwrite=True)
    api.workspace.get_status(f"{HOME}/app/a.py")
    assert [str(request) for request in workspace.requests] == [
        "POST /api/2.0/workspace/mkdirs -> 200",
        "POST /api/2.0/workspace/import -> 200",
        "GET /api/2.0/workspace/get-status -> 200",
    ]
    assert [request.body for request in workspace.writes] == [
        {"path": f"{HOME}/app"},
        {"path": f"{HOME}/app/a.py", "format": "AUTO", "overwrite": "true", "content": b"1"},
    ]
    assert workspace.requests[-1].query == {"path": f"{HOME}/app/a.py"}
    assert workspace.token not in repr(workspace.requests)


def test_a_refused_write_is_none(workspace: Workspace, client: Client) -> None:
    with pytest.raises(NotFound):
        client().workspace.upload(f"{HOME}/none/a.py", b"1", format=ImportFormat.AUTO)
    assert workspace.writes == []


def test_it_runs_in_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "tests.workspace_double", "--user", "ann@example.com"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip().removeprefix("export ").split("=", 1) for _ in range(2)]
        found = dict(lines)
        api = WorkspaceClient(host=found["DATABRICKS_HOST"], token=found["DATABRICKS_TOKEN"])
        assert api.current_user.me().user_name == "ann@example.com"
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


def test_a_body_that_is_not_json_is_400(workspace: Workspace) -> None:
    headers = {"Authorization": f"Bearer {workspace.token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{workspace.url}/api/2.0/workspace/mkdirs", b"{", headers, method="POST")
    with pytest.raises(HTTPError) as caught:
        urllib.request.urlopen(request, timeout=5)
    assert (caught.value.code, json.load(caught.value)["error_code"]) == (400, "INVALID_PARAMETER_VALUE")


def test_fifty_requests_do_not_wait_for_delayed_acknowledgements(workspace: Workspace, client: Client) -> None:
    api = client()
    seconds = []
    for number in range(50):
        before = time.monotonic()
        api.workspace.upload(f"{HOME}/{number}.py", b"1" * 1000, format=ImportFormat.AUTO)
        seconds.append(time.monotonic() - before)
    assert sorted(seconds)[5] < 0.03  # an acknowledgement is delayed by 40 ms, of each request; other work delays some of them
