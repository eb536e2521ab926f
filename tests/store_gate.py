"""A door in front of a server of the tests, on loopback: bytes pass in both directions until it is shut, then nothing answers."""

from __future__ import annotations

import re
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

_REQUEST = re.compile(rb"(GET|HEAD|PUT|POST|DELETE) (\S+) HTTP/1\.1\r\n")
_NAME_IN_BODY = "uploadType=multipart"
_CALL = re.compile(rb"\n[\x06\x07](create|rename2?)")
"""A call of HDFS's name node that gives a file a name: behind it stand the paths as they are."""


@dataclass
class Gate:
    """`url`: where it listens. `shut_at`: a part of a path; the first request that would write there is refused, as are all after it."""

    url: str = ""
    shut_at: str | None = None
    is_shut: bool = False
    refused: list[str] = field(default_factory=list)
    """Method and path of each request that got no answer, or the name of a call."""
    meanwhile: Callable[[str], None] | None = None
    """Called with method and path of each request before the server sees it."""

    def open(self) -> None:
        self.shut_at, self.is_shut = None, False

    def lets_through(self, sent: bytes, before: str) -> tuple[bool, str]:
        """Whether these bytes of a client reach the server, and the request line that they belong to; `before`: that of the last ones."""
        if self.url.startswith("hdfs:"):
            return self._lets_call_through(sent)
        request = _REQUEST.match(sent)
        line = f"{request[1].decode()} {unquote(request[2].decode())}" if request else before
        named = line if request else ""
        if _NAME_IN_BODY in line:  # Google's protocol: behind the headers stand the object's name and its bytes
            named += unquote(sent.decode(errors="replace"))
        if request and self.meanwhile is not None:
            self.meanwhile(line)
        if self.shut_at is not None and line.startswith(("PUT", "POST")) and self.shut_at in named:
            self.is_shut = True
        if self.is_shut:
            self.refused.append(line)
        return not self.is_shut, line

    def _lets_call_through(self, sent: bytes) -> tuple[bool, str]:
        call = _CALL.search(sent)
        if self.shut_at is not None and call and self.shut_at.encode() in sent:
            self.is_shut = True
        if self.is_shut:
            self.refused.append(call[1].decode() if call else "")
        return not self.is_shut, ""


@contextmanager
def store_gate(server: str) -> Iterator[Gate]:
    """A gate in front of the server at that URL, open."""
    target = urlsplit(server)
    gate = Gate()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            if gate.is_shut:
                gate.refused.append("")
                return
            with socket.create_connection((target.hostname or "", target.port or 80)) as behind:
                back = threading.Thread(target=_copy, args=(behind, self.request), daemon=True)
                back.start()
                line = ""
                with suppress(OSError):
                    while sent := self.request.recv(1 << 16):
                        passes, line = gate.lets_through(sent, line)
                        if not passes:
                            break
                        behind.sendall(sent)
                _end(behind), _end(self.request)
                back.join()

    class Listener(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Listener(("127.0.0.1", 0), Handler) as listener:
        gate.url = f"{target.scheme}://127.0.0.1:{listener.server_address[1]}"
        thread = threading.Thread(target=listener.serve_forever, daemon=True)
        thread.start()
        try:
            yield gate
        finally:
            listener.shutdown()
            thread.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Pass on what the server says, to its end: a client that used the connection afterwards would wait for an answer in vain."""
    with suppress(OSError):
        while received := source.recv(1 << 16):
            target.sendall(received)
    _end(target)


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
