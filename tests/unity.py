"""A double of Unity Catalog's open server, on loopback: catalogs, schemas and tables of its published OpenAPI, and its answers to mistakes.

The server itself is not in the repositories that these tests may use. What the double refuses is what the interface describes: names that
are missing or there already, fields that a request must have.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

_ROOT = "/api/2.1/unity-catalog/"
_PARENTS = {"catalogs": (), "schemas": ("catalog_name",), "tables": ("catalog_name", "schema_name")}
_REQUIRED = {
    "catalogs": {"name"},
    "schemas": {"name", "catalog_name"},
    "tables": {"name", "catalog_name", "schema_name", "table_type", "columns"},
}
_OF_COLUMNS = {"name", "type_text", "type_json", "type_name", "position"}


@dataclass
class UnityServer:
    """`address`: where it listens; `objects`: by kind and full name; `token`: what requests need; `headers`: those of the last one.

    `paths`: of all requests, with their methods.

    `refused`: a type of columns that it does not know.
    """

    address: str = ""
    token: str | None = None
    redirect: str | None = None
    refused: str | None = None
    objects: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: {kind: {} for kind in _PARENTS})
    headers: dict[str, str] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        """The tables by full name."""
        return self.objects["tables"]

    def somebody_makes(self, name: str, location: str | None = None, **more: Any) -> None:
        """Have a table as another tool registers it: Delta, unless `more` says otherwise."""
        catalog, schema, table = name.split(".")
        body = {"name": table, "catalog_name": catalog, "schema_name": schema, "storage_location": location, "columns": []}
        self.tables[name] = {"table_type": "EXTERNAL", "data_source_format": "DELTA", **body, **more}

    def answer(self, method: str, kind: str, name: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Status and body of the answer to a request."""
        if self.token and self.headers.get("Authorization") != f"Bearer {self.token}":
            return 401, {"error_code": "UNAUTHENTICATED", "message": f"Invalid token in {self.headers.get('Authorization')}"}
        if kind not in self.objects:
            return 404, {"error_code": "NOT_FOUND", "message": f"no such path: {kind}"}
        if method == "POST":
            return self._created(kind, body)
        if not name:
            return 200, {kind: list(self.objects[kind].values())}
        if name not in self.objects[kind]:
            return 404, {"error_code": f"{kind[:-1].upper()}_NOT_FOUND", "message": f"{kind[:-1].title()} not found: {name}"}
        if method == "DELETE":
            del self.objects[kind][name]
            return 200, {}
        found = self.objects[kind][name]
        mixed = {"columns": found["columns"][::-1]} if "columns" in found else {}  # nothing says that they come in their order
        return (200, {**found, **mixed}) if method == "GET" else (405, {})

    def _created(self, kind: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        missing = _REQUIRED[kind] - body.keys() | {key for one in body.get("columns", ()) for key in _OF_COLUMNS - one.keys()}
        if missing or (kind == "tables" and (body["table_type"] != "EXTERNAL" or not body.get("storage_location"))):
            return 400, {"error_code": "INVALID_ARGUMENT", "message": f"missing: {sorted(missing)}"}
        if self.refused in [one["type_name"] for one in body.get("columns", ())]:
            return 400, {"error_code": "INVALID_ARGUMENT", "message": f"unknown type: {self.refused}"}
        parents = [body[key] for key in _PARENTS[kind]]
        above = {0: None, 1: "catalogs", 2: "schemas"}[len(parents)]
        if above and ".".join(parents) not in self.objects[above]:
            return 404, {"error_code": "NOT_FOUND", "message": f"{above[:-1].title()} not found: {'.'.join(parents)}"}
        full = ".".join([*parents, body["name"]])
        if full in self.objects[kind]:
            return 409, {"error_code": "ALREADY_EXISTS", "message": f"{kind[:-1].title()} already exists: {full}"}
        self.objects[kind][full] = {**body, "owner": None, "full_name": full}
        return 200, self.objects[kind][full]


@contextmanager
def unity_server(token: str | None = None) -> Iterator[UnityServer]:
    """Start the double in a thread of this process, and end it."""
    server = UnityServer(token=token)

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            server.headers = dict(self.headers)
            server.paths.append(f"{self.command} {urlsplit(self.path).path.removeprefix(_ROOT)}")
            if server.redirect:
                self.send_response(302)
                self.send_header("Location", server.redirect)
                self.end_headers()
                return
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kind, _, name = urlsplit(self.path).path.removeprefix(_ROOT).partition("/")
            status, body = server.answer(self.command, kind, unquote(name), json.loads(text) if text else {})
            written = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        do_GET = do_POST = do_DELETE = do_PATCH = _any

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.address = f"http://127.0.0.1:{listening.server_port}"
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
