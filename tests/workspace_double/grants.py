"""Privileges in Unity Catalog over HTTP: `/api/2.1/unity-catalog/permissions/{type}/{name}` (REST API reference, "Grants")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.workspace_double.wire import Answer, Call, denied, invalid, missing

if TYPE_CHECKING:
    from tests.workspace_double.workspace import Workspace

# Documentation page "Unity Catalog privileges and securable objects".
_OF_TABLES = {"SELECT", "MODIFY", "APPLY_TAG", "MANAGE", "ALL_PRIVILEGES"}
_OF_VOLUMES = {"READ_VOLUME", "WRITE_VOLUME", "APPLY_TAG", "MANAGE", "ALL_PRIVILEGES"}
_OF_SCHEMAS = _OF_TABLES | _OF_VOLUMES | {"USE_SCHEMA", "CREATE_TABLE", "CREATE_VOLUME", "CREATE_FUNCTION", "CREATE_MODEL", "EXECUTE"}
_OF_SCHEMAS |= {"CREATE_MATERIALIZED_VIEW", "REFRESH", "EXTERNAL_USE_SCHEMA"}
_OF_CATALOGS = _OF_SCHEMAS | {"USE_CATALOG", "CREATE_SCHEMA", "BROWSE"}
PRIVILEGES = {"catalog": _OF_CATALOGS, "schema": _OF_SCHEMAS, "volume": _OF_VOLUMES, "table": _OF_TABLES}


class Grants:
    """`privileges`: principal to privileges, by kind and full name of the object."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.privileges: dict[tuple[str, str], dict[str, set[str]]] = {}
        path = "/api/2.1/unity-catalog/permissions/{type}/{name}"
        workspace.routes.add("GET", path, self._get)
        workspace.routes.add("PATCH", path, self._update)

    def _object(self, call: Call) -> tuple[str, str]:
        kind, name = call.params["type"].lower(), call.params["name"]
        known = {"schema": self._workspace.schemas, "volume": self._workspace.volumes, "table": self._workspace.tables}
        if kind not in PRIVILEGES:
            raise invalid(f"'{kind}' is not a valid securable type.")
        if name not in (self._workspace.catalogs if kind == "catalog" else known[kind]):
            raise missing(f"{kind.capitalize()} '{name}' does not exist.")
        return kind, name

    def _get(self, call: Call) -> Answer:
        held = self.privileges.get(self._object(call), {})
        chosen = {name: all_ for name, all_ in held.items() if call.query.get("principal", name) == name}
        return Answer({"privilege_assignments": [{"principal": name, "privileges": sorted(all_)} for name, all_ in sorted(chosen.items())]})

    def _update(self, call: Call) -> Answer:
        """Changes in their order; what is added twice or removed without being there is no error."""
        call.only({"changes"}, "UpdatePermissions")
        key = self._object(call)
        if not call.user.admin:
            raise denied(f"User does not have MANAGE on {key[0]} '{key[1]}'.")
        changes = call.body.get("changes") or []
        for change in changes:
            wrong = sorted({*(change.get("add") or []), *(change.get("remove") or [])} - PRIVILEGES[key[0]])
            if wrong:
                raise invalid(f"Privilege {wrong[0]} is not applicable to this entity [{key[1]}:{key[0].upper()}].")
        held = self.privileges.setdefault(key, {})
        for change in changes:
            own = held.setdefault(change["principal"], set())
            own |= set(change.get("add") or [])
            own -= set(change.get("remove") or [])
            if not own:
                del held[change["principal"]]
        return self._get(call)
