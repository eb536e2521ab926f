"""The connection to a workspace: what it asks, how often, under which code it fails, and that it shows no credential."""

from __future__ import annotations

import base64
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.base.redaction import redacted
from lakelet.cli.main import guarded
from lakelet.deploy.connection import Client, RequestTimeouts, UnansweredRequest, connect

TOKEN = "dapi5ecret5ecret5ecret5ecret5ecret12"
SOON = RequestTimeouts(first=1, repeated=4, answer=5)
Answer = Callable[[BaseHTTPRequestHandler], "tuple[int, object] | None"]


class Server:
    """A workspace that answers each request by the next of `answers`, the last one for ever; None drops the connection."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[Answer] = []
        self.described = True
        self._served = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._served.server_port}"
        threading.Thread(target=self._served.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._served.shutdown()
        self._served.server_close()


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if "/.well-known/" in self.path and not server.described:
                self.close_connection = True
                return None
            if "/.well-known/" in self.path:
                return self._send(404, {"message": "no description"})
            server.asked.append(f"{self.command} {self.path}")
            server.headers.append(dict(self.headers))
            found = (server.answers.pop(0) if len(server.answers) > 1 else server.answers[0])(self)
            if found is None:
                self.close_connection = True
                self.connection.close()
                return None
            return self._send(*found)

        do_POST = do_GET

        def _send(self, status: int, body: object) -> None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if status in (429, 503):
                self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    served = Server()
    yield served
    served.close()


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [n for n in os.environ if n.startswith(("DATABRICKS_", "ARM_", "GOOGLE_CREDENTIALS"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(tmp_path / "databrickscfg"))


def joined(server: Server, *, token: str = TOKEN, patience: RequestTimeouts = SOON) -> Client:
    return connect(server.url, None, environ={**os.environ, "DATABRICKS_TOKEN": token}, patience=patience)


def always(status: int, body: object) -> list[Answer]:
    return [lambda request: (status, body)]


def test_the_user_of_the_credentials_has_the_short_name_of_prefixes(server: Server) -> None:
    server.answers = always(200, {"userName": "first.last-x@example.com", "displayName": "First Last", "id": "7"})
    user = joined(server).user()
    assert (user.user_name, user.short_name, user.display_name, user.id) == ("first.last-x@example.com", "first_last_x", "First Last", "7")
    assert server.headers[0]["User-Agent"].startswith("lakelet/")
    server.answers = always(200, {"userName": "0d5a3c1e-1111-2222-3333-444455556666", "displayName": "deployer of staging"})
    assert joined(server).user().short_name == "deployer_of_staging"


@pytest.mark.parametrize(
    ("status", "body", "code", "exit_code"),
    [
        (401, {"error_code": "UNAUTHENTICATED", "message": "Credential was not sent"}, "WORKSPACE_CREDENTIALS", 3),
        (403, {"error_code": "403", "message": "Invalid access token."}, "WORKSPACE_CREDENTIALS", 3),
        (403, {"error_code": "PERMISSION_DENIED", "message": "u has no CAN_VIEW"}, "WORKSPACE_DENIED", 1),
        (404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "gone"}, "WORKSPACE_NOT_FOUND", 1),
        (400, {"error_code": "RESOURCE_ALREADY_EXISTS", "message": "there"}, "WORKSPACE_CONFLICT", 1),
        (409, {"error_code": "ABORTED", "message": "active update"}, "WORKSPACE_CONFLICT", 1),
        (400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "no"}, "WORKSPACE_REFUSED", 1),
        (500, {"error_code": "INTERNAL_ERROR", "message": "broken"}, "WORKSPACE_REFUSED", 1),
        (501, {"error_code": "NOT_IMPLEMENTED", "message": "no route"}, "WORKSPACE_REFUSED", 1),
        (200, b"<html>sign in</html>", "WORKSPACE_REFUSED", 1),
    ],
)
def test_each_refusal_has_a_code_and_says_what_was_asked(server: Server, status: int, body: object, code: str, exit_code: int) -> None:
    server.answers = always(status, body)
    with pytest.raises(LakeletError) as raised:
        joined(server).sdk.pipelines.get("p-1")
    assert (raised.value.code, int(raised.value.exit_code)) == (code, exit_code)
    assert "GET /api/2.0/pipelines/p-1" in str(raised.value) or code == "WORKSPACE_CREDENTIALS"
    assert "Config:" not in str(raised.value)
    assert len(server.asked) == 1


@pytest.mark.long
def test_a_request_that_may_be_repeated_survives_dropped_connections_and_a_full_workspace(server: Server) -> None:
    busy = {"error_code": "RESOURCE_EXHAUSTED", "message": "slow down"}
    server.answers = [lambda r: None, lambda r: (429, busy), lambda r: (200, {"pipeline_id": "p"})]
    heard: list[str] = []
    environ = {**os.environ, "DATABRICKS_TOKEN": TOKEN}
    found = connect(server.url, None, environ=environ, patience=SOON, notice=heard.append).sdk.pipelines.get("p")
    assert found.pipeline_id == "p"
    assert len(server.asked) == 3
    assert ["next attempt" in text for text in heard] == [True, True]


def test_a_dropped_connection_is_not_asked_again_where_it_may_take_effect_once(server: Server) -> None:
    server.answers = [lambda r: None, lambda r: (200, {"update_id": "u"})]
    client = joined(server)
    with pytest.raises(UnansweredRequest) as raised:
        client.once(lambda sdk: sdk.pipelines.start_update("p"))
    assert raised.value.code == "WORKSPACE_UNANSWERED"
    assert server.asked == ["POST /api/2.0/pipelines/p/updates"]
    assert client.once(lambda sdk: sdk.pipelines.start_update("p")).update_id == "u"


@pytest.mark.parametrize(("status", "body"), [(500, {"message": "broken"}), (504, {"message": "late"}), (200, b"not json")])
def test_a_failure_inside_the_workspace_leaves_the_same_doubt(server: Server, status: int, body: object) -> None:
    server.answers = always(status, body)
    with pytest.raises(UnansweredRequest):
        joined(server).once(lambda sdk: sdk.pipelines.start_update("p"))
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_request_that_may_take_effect_once_is_repeated_where_the_workspace_did_not_act(server: Server, status: int) -> None:
    server.answers = [lambda r: (status, {"message": "later"}), lambda r: (200, {"update_id": "u"})]
    started = time.monotonic()
    assert joined(server).once(lambda sdk: sdk.pipelines.start_update("p")).update_id == "u"
    assert len(server.asked) == 2
    assert time.monotonic() - started >= 1


def test_patience_with_a_full_workspace_ends(server: Server) -> None:
    server.answers = always(429, {"message": "later"})
    with pytest.raises(LakeletError) as raised:
        joined(server, patience=RequestTimeouts(first=1, repeated=1, answer=2)).once(lambda sdk: sdk.pipelines.start_update("p"))
    assert raised.value.code == "WORKSPACE_BUSY"


def test_an_answered_refusal_is_no_doubt(server: Server) -> None:
    server.answers = always(409, {"error_code": "ABORTED", "message": "an update is active"})
    with pytest.raises(LakeletError) as raised:
        joined(server).once(lambda sdk: sdk.pipelines.start_update("p"))
    assert raised.value.code == "WORKSPACE_CONFLICT"


def test_nothing_at_the_address_is_said_after_the_first_seconds() -> None:
    started = time.monotonic()
    with pytest.raises(LakeletError) as raised:
        connect("http://127.0.0.1:9", None, environ={**os.environ, "DATABRICKS_TOKEN": TOKEN}, patience=SOON)
    assert (raised.value.code, int(raised.value.exit_code)) == ("WORKSPACE_UNREACHABLE", 3)
    assert time.monotonic() - started < 6


def test_a_host_whose_description_does_not_answer_is_used_all_the_same(server: Server) -> None:
    server.answers = always(200, {"userName": "u@x"})
    server.described = False
    assert joined(server).user().short_name == "u"


def test_without_the_sdk_the_extra_is_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "databricks.sdk.config", None)
    with pytest.raises(LakeletError, match="pip install 'lakelet\\[deploy\\]'") as raised:
        joined(server)
    assert (raised.value.code, int(raised.value.exit_code)) == ("SDK_MISSING", 3)


@pytest.mark.parametrize("command", ["run", "status", "stop", "events", "report", "diff"])
def test_help_needs_no_sdk_and_no_spark(command: str) -> None:
    forbidden = "import sys; from lakelet.cli.main import main; main([sys.argv[1], '--help'])"
    after = "; print([n for n in sys.modules if n.split('.')[0] in ('databricks', 'pyspark', 'requests', 'deltalake', 'pyarrow')])"
    done = subprocess.run([sys.executable, "-c", forbidden + after, command], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_without_credentials_the_error_says_how_to_sign_in(server: Server) -> None:
    with pytest.raises(LakeletError) as raised:
        connect(server.url, None, environ=os.environ, patience=SOON)
    assert raised.value.code == "WORKSPACE_CREDENTIALS"
    assert "databricks auth login" in str(raised.value)
    assert server.asked == []


def test_a_host_finds_its_profile_as_in_the_databricks_cli(server: Server, tmp_path: Path) -> None:
    server.answers = always(200, {"userName": "u@x"})
    (tmp_path / "databrickscfg").write_text(
        f"[other]\nhost = https://o.example\ntoken = no\n[mine]\nhost = {server.url}/\ntoken = {TOKEN}\n"
    )
    assert connect(server.url, None, environ=os.environ, patience=SOON).user().short_name == "u"
    assert server.headers[0]["Authorization"] == f"Bearer {TOKEN}"


def test_the_way_to_sign_in_that_the_bundle_names_goes_before_that_of_the_environment(server: Server) -> None:
    server.answers = always(200, {"userName": "u@x"})
    environ = {**os.environ, "DATABRICKS_TOKEN": TOKEN, "DATABRICKS_USERNAME": "u", "DATABRICKS_PASSWORD": "p"}
    connect(server.url, None, {"auth_type": "basic"}, environ=environ, patience=SOON).user()
    assert server.headers[0]["Authorization"].startswith("Basic ")
    with pytest.raises(LakeletError, match="has no setting azure_login_app_id, which the bundle's workspace has"):
        connect(server.url, None, {"azure_login_app_id": "x"}, environ=environ, patience=SOON)


def test_a_profile_of_another_host_is_refused_before_its_token_is_sent(server: Server, tmp_path: Path) -> None:
    (tmp_path / "databrickscfg").write_text(f"[other]\nhost = https://o.example\ntoken = {TOKEN}\n")
    with pytest.raises(LakeletError, match="the profile other is for https"):
        connect(server.url, "other", environ=os.environ, patience=SOON)
    with pytest.raises(LakeletError, match="the profile other is for"):
        connect(server.url, None, environ={**os.environ, "DATABRICKS_CONFIG_PROFILE": "other"}, patience=SOON)
    assert server.asked == []


@pytest.mark.parametrize("host", ["https://me:p4ssw0rd@w.example", "http://w.example", "me:p4ssw0rd@w.example"])
def test_an_address_with_a_password_or_without_encryption_is_refused(host: str) -> None:
    with pytest.raises(LakeletError) as raised:
        connect(host, None, environ={**os.environ, "DATABRICKS_TOKEN": TOKEN}, patience=SOON)
    assert raised.value.code == "WORKSPACE_CREDENTIALS"
    assert "p4ssw0rd" not in str(raised.value)


def echo(request: BaseHTTPRequestHandler) -> tuple[int, object]:
    """A refusal that repeats what was sent, as some proxies do."""
    sent = str(request.headers)
    return 400, {"error_code": "BAD_REQUEST", "message": f"bad request: {sent}", "details": [{"metadata": {"h": sent}}]}


SECRET = "s3cr3t-not-to-be-seen"
PLACES = {
    "environment": ({"DATABRICKS_TOKEN": SECRET}, ""),
    "profile": ({"DATABRICKS_CONFIG_PROFILE": "mine"}, "[mine]\ntoken = {secret}\n"),
    "default profile": ({}, "[DEFAULT]\nhost = {host}\ntoken = {secret}\n"),
    "basic": ({"DATABRICKS_USERNAME": "u", "DATABRICKS_PASSWORD": SECRET}, ""),
    "broken file": ({"DATABRICKS_CONFIG_PROFILE": "mine"}, "token = {secret}\n"),
    "two ways": ({"DATABRICKS_TOKEN": SECRET, "DATABRICKS_USERNAME": "u", "DATABRICKS_PASSWORD": SECRET}, ""),
    "secret of a principal": ({"DATABRICKS_CLIENT_ID": "c", "DATABRICKS_CLIENT_SECRET": SECRET}, ""),
    "other tools": ({"DATABRICKS_TOKEN": TOKEN, "ARM_CLIENT_SECRET": SECRET}, ""),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_credential_is_in_no_output_wherever_it_stands(
    server: Server,
    place: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings, file = PLACES[place]
    (tmp_path / "databrickscfg").write_text(file.format(secret=SECRET, host=server.url))
    server.answers = [echo]
    for name, value in {**settings, "DATABRICKS_DEBUG_HEADERS": "true", "DATABRICKS_DEBUG_TRUNCATE_BYTES": "9999"}.items():
        monkeypatch.setenv(name, value)
    caplog.set_level(logging.DEBUG)

    def ask() -> int:
        client = connect(None if place == "default profile" else server.url, None, environ=os.environ, patience=SOON)
        client.sdk.pipelines.get("p")
        return 0

    assert guarded(ask, debug=True) in (1, 3)
    written = capfd.readouterr()
    everything = written.out + written.err + caplog.text + "".join(str(vars(r)) for r in caplog.records if r.name.startswith("databricks"))
    assert "Traceback" in written.err
    for secret in (SECRET, TOKEN, base64.b64encode(f"u:{SECRET}".encode()).decode()):
        assert secret not in everything
    if place in ("environment", "profile", "default profile", "basic"):
        assert len(server.asked) == 1
        assert "bad request" in written.err


def test_credentials_that_nobody_handed_in_are_known_by_their_form() -> None:
    for text in (
        "Authorization: Bearer abcdefgh1234",
        '{"Authorization": "Basic abcdefgh1234"}',
        "https://me:abcdefgh1234@host/x",
        "the token dapi00000000000000000000abcdefgh1234 is expired",
        "eyJhbGciOiJIUzI1NiJ9.eyJhYmMifQ.abcdefgh1234",
    ):
        assert "abcdefgh1234" not in redacted(text), text
    kept = "Basic authentication: more than one way; jdbc://host:80/db reads s3://bucket/key@2"
    assert redacted(kept) == kept
