"""Tables in Unity Catalog's open server, by its REST interface: catalog, schema and table, external, of the format DELTA. No Spark."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from lakelet.base.errors import LakeletError
from lakelet.base.names import TableName
from lakelet.base.redaction import remember
from lakelet.files.delta_rs import spark_type_text
from lakelet.storage.catalogs.client import OWNER, CatalogClient, CatalogEntry, ForeignTable, unreachable
from lakelet.storage.catalogs.published_tables import PublishedTable

TOKEN = "LAKELET_UC_TOKEN"
"""Environment variable with the token for the server; without it requests have none."""
_ROOT = "/api/2.1/unity-catalog"
_SECONDS = 30
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_TYPE_NAMES = {"bigint": "LONG", "smallint": "SHORT", "tinyint": "BYTE", "void": "NULL"}
_NOT_FOUND, _CONFLICT = 404, 409
_WITH_FILES = frozenset({"MANAGED", "EXTERNAL"})
"""Types of tables that a reader finds by their location; the others are views."""
_PLACE = ("name", "catalog_name", "schema_name")
_OF_TABLES = (*_PLACE, "table_type", "data_source_format", "storage_location", "properties", "columns", "comment")


class _NoRedirects(HTTPRedirectHandler):
    """Follows none: the token would go along to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class UnityCatalog:
    """A connection to a server; see `CatalogClient`."""

    def __init__(self, address: str, token: str | None, opener: OpenerDirector) -> None:
        self._address, self._token, self._opener = address, token, opener

    def entry(self, table: PublishedTable) -> CatalogEntry:
        """How the server would have a table."""
        return _entry(_table_body(table))

    def find(self, name: str) -> CatalogEntry | None:
        """What the server has under a full name."""
        found = self._request("GET", f"/tables/{quote(name)}", none_for=_NOT_FOUND)
        return None if found is None else _entry(found)

    def foreign(self, name: TableName) -> ForeignTable | None:
        """What the server has under the full name, in lower case."""
        found = self._request("GET", f"/tables/{quote(name.key)}", none_for=_NOT_FOUND)
        if found is None:
            return None
        kind, columns = str(found.get("table_type") or "").upper(), found.get("columns") or ()
        return ForeignTable(
            name.key,
            str(found.get("storage_location") or ""),
            (str(found.get("data_source_format") or "") if kind in _WITH_FILES else kind.replace("_", " ")).lower(),
            tuple(one["name"] for one in columns if one.get("partition_index") is not None),
            (found.get("properties") or {}).get(OWNER),
        )

    def create(self, table: PublishedTable) -> None:
        """Register a table, and its catalog and schema if there are none."""
        body = _table_body(table)
        catalog, schema = body["catalog_name"], body["schema_name"]
        self._make("/catalogs", catalog, {"name": catalog})
        self._make("/schemas", f"{catalog}.{schema}", {"name": schema, "catalog_name": catalog})
        self._request("POST", "/tables", body)

    def update(self, table: PublishedTable) -> None:
        """Register a table in place of the one of that name. The server has no request that changes a table: the old one is removed.

        Where the server refuses the new one, the old one is registered again.
        """
        name = _entry(_table_body(table)).name
        before = self._request("GET", f"/tables/{quote(name)}")
        self.remove(name)
        try:
            self.create(table)
        except LakeletError as problem:
            if problem.code == "PUBLISH_FAILED":
                self._request("POST", "/tables", {key: before[key] for key in _OF_TABLES if before.get(key) is not None})
            raise

    def remove(self, name: str) -> None:
        """Remove a table from the catalog; the files of an external table stay."""
        self._request("DELETE", f"/tables/{quote(name)}", none_for=_NOT_FOUND)

    def check(self) -> None:
        """Raise CATALOG_UNREACHABLE where no such server answers."""
        try:
            self._request("GET", "/catalogs?max_results=1")
        except LakeletError as problem:
            raise unreachable(f"Unity Catalog at {self._address}", str(problem.why)) from None

    def _make(self, folder: str, name: str, body: Mapping[str, Any]) -> None:
        if self._request("GET", f"{folder}/{quote(name)}", none_for=_NOT_FOUND) is None:
            self._request("POST", folder, body, none_for=_CONFLICT)  # another pipeline makes the same one at this moment

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, none_for: int | None = None) -> Any:
        """The answer to a request, None for one of the status `none_for`.

        Raises PUBLISH_FAILED where it is refused, CATALOG_UNREACHABLE where no answer comes.
        """
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {self._token}"} if self._token else {}
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._address}{_ROOT}{path}", data=data, headers=headers, method=method)
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                text = answer.read()
                return json.loads(text) if text.strip() else {}
        except HTTPError as refused:
            with refused:
                if refused.code == none_for:
                    return None
                raise LakeletError("PUBLISH_FAILED", "Unity Catalog refused the table", why=_reason(refused)) from None
        except (URLError, OSError, OverflowError, UnicodeError, HTTPException) as problem:
            raise unreachable(f"Unity Catalog at {self._address}", str(getattr(problem, "reason", problem))) from None
        except ValueError:
            raise unreachable(f"Unity Catalog at {self._address}", "its answer is not JSON") from None


@contextmanager
def unity_catalog(address: str, spark: object = None, environ: Mapping[str, str] = os.environ) -> Iterator[CatalogClient]:
    """A connection to the server at `http://host:port`. `spark` is not needed; the token is in the variable `TOKEN`.

    Raises CATALOG_UNREACHABLE, also where the token would be sent without encryption to another machine.
    """
    token, where = environ.get(TOKEN), urlsplit(address)
    if token:
        remember(token)
        if where.scheme == "http" and where.hostname not in _LOOPBACK:
            raise unreachable(f"Unity Catalog at {address}", f"{TOKEN} is set, and http would send it without encryption: use https")
    direct = [ProxyHandler({})] if where.hostname in _LOOPBACK else []  # a proxy is another machine, which would get the token
    client = UnityCatalog(address.rstrip("/"), token, build_opener(_NoRedirects, *direct))
    client.check()
    yield client


def _reason(refused: HTTPError) -> str:
    """What the server says, in one line."""
    text = refused.read(10_000).decode(errors="replace")
    try:
        found = json.loads(text)
        said = f"{found.get('error_code', '')}: {found.get('message', '')}".strip(": ")
    except (ValueError, AttributeError):
        said = text.strip().split("\n")[0][:200]
    return f"{refused.code} {said or refused.reason}"


def _table_body(table: PublishedTable) -> dict[str, Any]:
    """The request that registers a table."""
    uri = table.location.as_uri()
    body: dict[str, Any] = {
        "name": table.name.name.lower(),
        "catalog_name": table.name.catalog.lower(),
        "schema_name": table.name.schema.lower(),
        "table_type": "EXTERNAL",
        "data_source_format": "DELTA",
        "storage_location": re.sub("^s3a:", "s3:", uri),
        "properties": {OWNER: table.owner},
        "columns": [],
    }
    if table.comment:
        body["comment"] = table.comment
    for position, column in enumerate(table.columns):
        text = spark_type_text(column.type)
        field = {"name": column.name, "type": column.type, "nullable": column.nullable, "metadata": {}}
        one: dict[str, Any] = {
            "name": column.name,
            "type_text": text,
            "type_json": json.dumps(field),
            "type_name": _type_name(text),
            "position": position,
            "nullable": column.nullable,
        }
        if column.comment:
            one["comment"] = column.comment
        if decimal := re.fullmatch(r"decimal\((\d+),\s*(\d+)\)", text):
            one |= {"type_precision": int(decimal[1]), "type_scale": int(decimal[2])}
        body["columns"].append(one)
    return body


def _type_name(text: str) -> str:
    word = re.split("[<( ]", text)[0]
    return _TYPE_NAMES.get(word, word.upper())


def _entry(found: Mapping[str, Any]) -> CatalogEntry:
    """A table of the server, or of a request, as an entry."""
    listed = sorted(found.get("columns") or (), key=lambda one: one.get("position") or 0)
    columns = tuple((one["name"], one.get("type_text", ""), one.get("comment") or "") for one in listed)
    location = re.sub("^file:/+", "file:///", str(found.get("storage_location") or "")).rstrip("/")
    name = f"{found['catalog_name']}.{found['schema_name']}.{found['name']}"
    return CatalogEntry(name, location, columns, found.get("comment") or "", (found.get("properties") or {}).get(OWNER))


__all__ = ["TOKEN", "UnityCatalog", "unity_catalog"]
