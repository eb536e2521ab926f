"""The page over HTTP on loopback, following a running update.

Only a browser of this machine that shows the page itself gets anything. Names of other hosts are refused: a foreign name may be made to
lead here. Requests that another site's page makes are refused too: documents are scripts, which any page could load.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.dashboard.page import Page, assets, documents, script

HOST = "127.0.0.1"
POLL_SECONDS = 0.5
"""Between two looks at an event log on this machine."""
_BEAT_SECONDS = 15.0  # a page that is gone is noticed when something is sent to it
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "txt": "text/plain"}
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


class Dashboard:
    """Serves a page until it is closed.

    Args:
        page: what is shown.
        port: of loopback; 0 lets the system choose. Raises OSError if it is taken.
        poll: seconds between two looks at the event log.
        warn: gets a sentence when the storage cannot be read; the last page stays.
    """

    def __init__(self, page: Page, *, port: int = 0, poll: float = POLL_SECONDS, warn: Callable[[str], None] = lambda text: None) -> None:
        self._page, self._poll, self._warn = page, poll, warn
        self._news, self._closed = threading.Condition(), threading.Event()
        page.changed()
        self._version, self._site = 0, page.site()
        self._scripts: dict[str, bytes] = {}
        self._server = _Server(self, port)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self._server.server_address[1]}/"

    def serve(self) -> None:
        """Answer requests and follow the event log until `close`, or until KeyboardInterrupt, which passes."""
        threading.Thread(target=self._follow, name="lakelet-dashboard", daemon=True).start()
        try:
            self._server.serve_forever(poll_interval=0.2)
        finally:
            self._closed.set()
            with self._news:
                self._news.notify_all()
            self._server.server_close()

    def close(self) -> None:
        """End `serve` in another thread."""
        self._server.shutdown()

    def _follow(self) -> None:
        reported = ""
        while not self._closed.wait(self._poll):
            try:
                if not self._page.changed():
                    continue
                site, reported = self._page.site(), ""
            except (LakeletError, OSError) as problem:  # an update may be writing just now
                if str(problem) != reported:
                    reported = str(problem)
                    self._warn(reported)
                continue
            with self._news:
                self._site, self._scripts, self._version = site, {}, self._version + 1
                self._news.notify_all()

    def wait(self, known: int) -> int | None:
        """The version of the page once it is another than `known`; `known` itself after a while, None when the server closes."""
        with self._news:
            self._news.wait_for(lambda: self._version != known or self._closed.is_set(), timeout=_BEAT_SECONDS)
            return None if self._closed.is_set() else self._version

    def data(self, name: str) -> bytes | None:
        """The script of one document, None if there is none of that name."""
        with self._news:
            site, scripts = self._site, self._scripts
        if name not in scripts:
            document = next((document for known, document in documents(site) if known == name), None)
            if document is None:
                return None
            scripts[name] = script(name, document())
        return scripts[name]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, dashboard: Dashboard, port: int) -> None:
        self.dashboard, self.static = dashboard, assets()
        super().__init__((HOST, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is nothing to report; anything else is a defect, and goes to stderr."""
        if not isinstance(sys.exc_info()[1], (BrokenPipeError, ConnectionResetError, TimeoutError)):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version, protocol_version = "lakelet", "", "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].lstrip("/") or "index.html"
        if not self._is_own():
            self._answer(HTTPStatus.FORBIDDEN, b"The dashboard answers only its own page on this machine.\n", "txt")
        elif path == "live":
            self._live()
        else:
            content = self._content(path)
            if content is None:
                self._answer(HTTPStatus.NOT_FOUND, b"There is nothing of that name.\n", "txt")
            else:
                self._answer(HTTPStatus.OK, content, path.rpartition(".")[2])

    def _content(self, path: str) -> bytes | None:
        if path.startswith("data/") and path.endswith(".js"):
            return self.server.dashboard.data(path[len("data/") : -len(".js")])
        return self.server.static.get(path)

    def _is_own(self) -> bool:
        host = self.headers.get("Host", "").rpartition(":")[0]
        return host in (HOST, "localhost") and self.headers.get("Sec-Fetch-Site", "none") in ("same-origin", "none")

    def _answer(self, status: HTTPStatus, content: bytes, ending: str) -> None:
        self._head(status, _TYPES.get(ending, "application/octet-stream"), ("Content-Length", str(len(content))))
        self.wfile.write(content)

    def _head(self, status: HTTPStatus, kind: str, *more: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (("Content-Type", f"{kind}; charset=utf-8"), *_HEADERS.items(), *more):
            self.send_header(name, value)
        self.end_headers()

    def _live(self) -> None:
        """Server-sent events: the version of the page, whenever it is another."""
        self._head(HTTPStatus.OK, "text/event-stream", ("Connection", "close"))
        self.close_connection = True
        version = -1
        while (found := self.server.dashboard.wait(version)) is not None:
            version = found
            self.wfile.write(f"data: {version}\n\n".encode())
            self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not reported."""
