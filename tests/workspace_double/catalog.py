"""Unity Catalog over HTTP: schemas, volumes, tables to read (REST API reference, "Schemas", "Volumes", "Tables")."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from tests.workspace_double.tables import columns_of
from tests.workspace_double.warehouses import type_name
from tests.workspace_double.wire import Answer, ApiError, Call, denied, invalid, page

if TYPE_CHECKING:
    from tests.workspace_double.workspace import Workspace

_ROOT = "/api/2.1/unity-catalog"
_SCHEMA = {"name", "catalog_name", "comment", "properties", "storage_root", "custom_max_retention_hours"}
_VOLUME = {"name", "catalog_name", "schema_name", "comment", "volume_type", "storage_location"}


class Catalog:
    """`schemas`, `volumes`: by full name. `names`: the catalogs."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.names = {"main", "system"}
        self.schemas: dict[str, dict[str, Any]] = {}
        self.volumes: dict[str, dict[str, Any]] = {}
        add = workspace.routes.add
        for kind in ("schema", "volume"):
            add("POST", f"{_ROOT}/{kind}s", getattr(self, f"_create_{kind}"))
            add("GET", f"{_ROOT}/{kind}s", getattr(self, f"_list_{kind}s"))
            add("GET", f"{_ROOT}/{kind}s/{{name}}", getattr(self, f"_get_{kind}"))
            add("PATCH", f"{_ROOT}/{kind}s/{{name}}", getattr(self, f"_update_{kind}"))
            add("DELETE", f"{_ROOT}/{kind}s/{{name}}", getattr(self, f"_delete_{kind}"))
        add("GET", f"{_ROOT}/catalogs/{{name}}", self._get_catalog)
        add("GET", f"{_ROOT}/tables", self._list_tables)
        add("GET", f"{_ROOT}/tables/{{name}}", self._get_table)

    def _catalog(self, name: str) -> None:
        if name not in self.names:
            raise ApiError(404, "CATALOG_DOES_NOT_EXIST", f"Catalog '{name}' does not exist.")

    def _get_catalog(self, call: Call) -> Answer:
        self._catalog(call.params["name"])
        return Answer({"name": call.params["name"], "full_name": call.params["name"], "catalog_type": "MANAGED_CATALOG"})

    def _create_schema(self, call: Call) -> Answer:
        call.only(_SCHEMA, "CreateSchema")
        catalog, name = call.text("catalog_name"), call.text("name")
        self._catalog(catalog)
        self._may(call)
        full = f"{catalog}.{name}"
        if full in self.schemas:  # public issue databricks/cli #2889: the text
            raise ApiError(400, "SCHEMA_ALREADY_EXISTS", f"Schema '{name}' already exists")
        self.schemas[full] = self._made(call, full, "schema_id")
        return Answer(self.schemas[full])

    def _create_volume(self, call: Call) -> Answer:
        call.only(_VOLUME, "CreateVolume")
        schema, name = f"{call.text('catalog_name')}.{call.text('schema_name')}", call.text("name")
        self._catalog(call.text("catalog_name"))
        self._may(call)
        if schema not in self.schemas:
            raise ApiError(404, "SCHEMA_DOES_NOT_EXIST", f"Schema '{schema}' does not exist.")
        kind, place = call.text("volume_type"), call.body.get("storage_location")
        if kind not in ("MANAGED", "EXTERNAL"):
            raise invalid(f"Invalid volume_type {kind!r}")
        if (kind == "EXTERNAL") != bool(place):
            raise invalid("storage_location is required for external volumes, and only for them.")
        full = f"{schema}.{name}"
        if full in self.volumes:
            raise ApiError(400, "VOLUME_ALREADY_EXISTS", f"Volume '{name}' already exists")
        self.volumes[full] = {"storage_location": f"s3://metastore/{full}", **self._made(call, full, "volume_id")}
        return Answer(self.volumes[full])

    def _may(self, call: Call) -> None:
        if not call.user.admin:
            raise denied(f"User does not have CREATE on {call.body.get('catalog_name')}.")

    def _made(self, call: Call, full: str, id_key: str) -> dict[str, Any]:
        now = self._workspace.clock.now()
        body = {key: value for key, value in call.body.items() if value is not None}
        owned = {"owner": call.user.name, "created_by": call.user.name, "updated_by": call.user.name}
        return {**body, **owned, "full_name": full, id_key: str(uuid.uuid4()), "created_at": now, "updated_at": now}

    def _get_schema(self, call: Call) -> Answer:
        return Answer(_one(self.schemas, call, "Schema"))

    def _get_volume(self, call: Call) -> Answer:
        return Answer(_one(self.volumes, call, "Volume"))

    def _list_schemas(self, call: Call) -> Answer:
        catalog = call.text("catalog_name")
        self._catalog(catalog)
        return _listed(call, "schemas", [each for each in self.schemas.values() if each["catalog_name"] == catalog])

    def _list_volumes(self, call: Call) -> Answer:
        place = (call.text("catalog_name"), call.text("schema_name"))
        return _listed(call, "volumes", [each for each in self.volumes.values() if (each["catalog_name"], each["schema_name"]) == place])

    def _update_schema(self, call: Call) -> Answer:
        return self._update(call, self.schemas, "Schema", {"comment", "properties", "owner", "new_name", "enable_predictive_optimization"})

    def _update_volume(self, call: Call) -> Answer:
        return self._update(call, self.volumes, "Volume", {"comment", "owner", "new_name"})

    def _update(self, call: Call, stored: dict[str, dict[str, Any]], kind: str, allowed: set[str]) -> Answer:
        call.only(allowed, f"Update{kind}")
        self._may(call)
        found = _one(stored, call, kind)
        found.update({key: value for key, value in call.body.items() if key != "new_name"})
        found.update(updated_at=self._workspace.clock.now(), updated_by=call.user.name)
        if new := call.body.get("new_name"):
            del stored[found["full_name"]]
            found.update(name=new, full_name=found["full_name"].rpartition(".")[0] + "." + new)
            stored[found["full_name"]] = found
        return Answer(found)

    def _delete_schema(self, call: Call) -> Answer:
        """SDK docstring: with `force` even if the schema is not empty."""
        found = _one(self.schemas, call, "Schema")
        self._may(call)
        prefix = found["full_name"] + "."
        volumes = [name for name in self.volumes if name.startswith(prefix)]
        tables = [name for name in self._workspace.tables if name.startswith(prefix)]
        if (volumes or tables) and not call.flag("force"):
            raise ApiError(400, "INVALID_STATE", f"Schema '{found['full_name']}' is not empty. It contains: {', '.join(volumes + tables)}.")
        for name in volumes:
            self._drop_volume(name)
        for name in tables:
            del self._workspace.tables[name]
        del self.schemas[found["full_name"]]
        self._workspace.privileges.pop(("schema", found["full_name"]), None)
        return Answer()

    def _delete_volume(self, call: Call) -> Answer:
        self._may(call)
        self._drop_volume(_one(self.volumes, call, "Volume")["full_name"])
        return Answer()

    def _drop_volume(self, full: str) -> None:
        """The files of a managed volume go with it."""
        kind = self.volumes.pop(full)["volume_type"]
        self._workspace.privileges.pop(("volume", full), None)
        prefix = "/Volumes/" + full.replace(".", "/") + "/"
        stored = self._workspace.volume_files.stored
        for path in [path for path in stored if kind == "MANAGED" and path.startswith(prefix)]:
            del stored[path]

    def _list_tables(self, call: Call) -> Answer:
        prefix = f"{call.text('catalog_name')}.{call.text('schema_name')}."
        return _listed(call, "tables", [self._table(name) for name in sorted(self._workspace.tables) if name.startswith(prefix)])

    def _get_table(self, call: Call) -> Answer:
        if call.params["name"] not in self._workspace.tables:
            raise ApiError(404, "TABLE_DOES_NOT_EXIST", f"Table '{call.params['name']}' does not exist.")
        return Answer(self._table(call.params["name"]))

    def _table(self, full: str) -> dict[str, Any]:
        catalog, schema, name = full.split(".")
        columns = [
            {"name": column.name, "type_text": column.type.lower(), "type_name": type_name(column.type), "position": place}
            | {"nullable": True}
            for place, column in enumerate(columns_of(self._workspace.tables[full]))
        ]
        known = {"name": name, "catalog_name": catalog, "schema_name": schema, "full_name": full, "table_type": "MANAGED"}
        return {**known, "data_source_format": "DELTA", "columns": columns, "owner": self._workspace.user_name}


def _one(stored: dict[str, dict[str, Any]], call: Call, kind: str) -> dict[str, Any]:
    if call.params["name"] not in stored:
        code = {"Schema": "SCHEMA_DOES_NOT_EXIST", "Volume": "VOLUME_DOES_NOT_EXIST"}[kind]
        raise ApiError(404, code, f"{kind} '{call.params['name']}' does not exist.")
    return stored[call.params["name"]]


def _listed(call: Call, key: str, items: list[dict[str, Any]]) -> Answer:
    shown, after, _ = page(items, call, size_key="max_results", default=100, most=1000)
    return Answer({key: shown} | ({"next_page_token": after} if after else {}))
