"""The HTTP side: one request after another on loopback, with faults, recorded in order."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from tests.workspace_double.faults import Fault
from tests.workspace_double.forms import parsed, shown
from tests.workspace_double.routes import Route
from tests.workspace_double.wire import Answer, ApiError, Call, Request, User, unmodelled

if TYPE_CHECKING:
    from tests.workspace_double.workspace import Workspace

_NOBODY = User("", "", admin=False)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is its own affair."""


class Handler(BaseHTTPRequestHandler):
    """Answers each request; `server` is the one above. A handler that crashes answers 500 as JSON (facts 1.4: Trap)."""

    protocol_version = "HTTP/1.1"  # facts 1.6, 1
    wbufsize = -1  # facts 1.6, 5: unbuffered, every call takes 44 ms
    timeout: ClassVar[float] = 30
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr: `Workspace.requests` is the log."""

    def _serve(self) -> None:
        workspace = self.server.workspace
        split = urlsplit(self.path)
        path, lists = unquote(split.path), parse_qs(split.query, keep_blank_values=True)
        raw = self._read()
        record = Request(self.command, path, {key: values[-1] for key, values in lists.items()}, raw or None, "", self._headers())
        fault = workspace.begin(record)
        if fault and fault.delay:
            time.sleep(fault.delay)
        if fault and fault.drop == "before":
            self._drop()
            return
        if fault and fault.error and not fault.acted:
            self._send(record, _error(fault.error, fault))
            return
        answer = self._act(record, raw, {key: list(values) for key, values in lists.items()})
        if fault and fault.drop == "after":
            self._drop()
        elif fault and fault.error:
            self._send(record, _error(fault.error, fault))
        else:
            self._send(record, answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _serve

    def _act(self, record: Request, raw: bytes, lists: dict[str, list[str]]) -> Answer:
        workspace = self.server.workspace
        try:
            route, params = self._route(record)
            user = _NOBODY if route.open else workspace.identity.user(self.headers.get("Authorization"))
            record.user, record.reads = user.name, route.reads
            body, multipart = parsed(raw, self.headers.get("Content-Type") or "")
            record.body = None if route.open else shown(raw, body)  # requests for tokens hold credentials
            call = Call(record.method, record.path, record.query, lists, raw, body, user, params, multipart, dict(self.headers.items()))
            workspace.happen(record, after=False)
            with workspace.lock:
                record.acted = True
                answer = route.handler(call)
                record.succeeded = True
            workspace.happen(record, after=True)
            return answer
        except ApiError as error:
            return _error(error)
        except Exception as error:
            workspace.crashes.append(traceback.format_exc())
            return _error(ApiError(500, "INTERNAL_ERROR", f"the workspace double crashed: {type(error).__name__}: {error}"))

    def _route(self, record: Request) -> tuple[Route, dict[str, str]]:
        found = self.server.workspace.routes.find(record.method, record.path)
        if found is None:
            self.server.workspace.identity.user(self.headers.get("Authorization"))
            raise unmodelled(f"the route {record.method} {record.path}")
        return found

    def _headers(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name.lower() != "authorization"}

    def _read(self) -> bytes:
        """The body, of known length or in chunks (facts 1.6, 3)."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _send(self, record: Request, answer: Answer) -> None:
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        if answer.status == 204:
            content = b""
        record.status = answer.status
        self.send_response(answer.status)
        if not isinstance(answer.body, bytes):
            self.send_header("Content-Type", "application/json")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in answer.headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _drop(self) -> None:
        """Close the connection without a word."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _error(error: ApiError, fault: Fault | None = None) -> Answer:
    return Answer(error.body, error.status, fault.headers if fault else {})


def start(workspace: Workspace) -> tuple[Server, threading.Thread]:
    """A server that listens on a free port of loopback, in a thread of its own."""
    server = Server(workspace)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    return server, thread
