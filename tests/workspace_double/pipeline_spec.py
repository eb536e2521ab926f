"""Settings of pipelines: what a workspace refuses, and what it makes of them (facts 1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.workspace_double.wire import ApiError, invalid

_FIELDS = """
allow_duplicate_names budget_policy_id catalog channel clusters configuration continuous deployment development dry_run edition
environment event_log filters gateway_definition id ingestion_definition libraries name notifications parameters parent_path
photon restart_window root_path run_as schema serverless serverless_compute_id storage tags target trigger usage_policy_id
"""
FIELDS = frozenset(_FIELDS.split())
_OF_REQUEST = ("allow_duplicate_names", "dry_run", "expected_last_modified", "run_as", "parameters")
_ALERTS = ("on-update-success", "on-update-failure", "on-update-fatal-failure", "on-flow-failure")
_TYPES: Mapping[str, type] = {
    **dict.fromkeys(("name", "catalog", "schema", "target", "storage", "root_path", "channel", "edition", "budget_policy_id"), str),
    **dict.fromkeys(("continuous", "development", "photon", "serverless", "allow_duplicate_names", "dry_run"), bool),
    **dict.fromkeys(("libraries", "clusters", "notifications"), list),
    **dict.fromkeys(("configuration", "parameters", "tags", "environment", "event_log", "run_as", "deployment", "filters"), dict),
}
_LIBRARIES = ("file", "notebook", "glob", "jar", "whl", "maven")


def check(body: Mapping[str, Any]) -> None:
    """Refuse settings that cannot be. Raises ApiError 400."""
    for key in body:
        if key not in FIELDS | {"expected_last_modified"}:
            raise invalid(f"Could not parse request object: unrecognized field {key!r} in the settings of a pipeline")
        expected = _TYPES.get(key)
        if expected and body[key] is not None and not isinstance(body[key], expected):
            raise invalid(f"Could not parse request object: {key} must be a {expected.__name__}")
    for key in ("configuration", "parameters", "tags"):
        if any(not isinstance(value, str) for value in (body.get(key) or {}).values()):
            raise invalid(f"Could not parse request object: values of {key} must be strings")
    _check_place(body)
    _check_libraries(body.get("libraries") or [])
    for entry in body.get("notifications") or []:
        wrong = [alert for alert in entry.get("alerts") or [] if alert not in _ALERTS]
        if wrong:
            raise invalid(f"Invalid alert {wrong[0]!r}; supported are {', '.join(_ALERTS)}")
    if len(body.get("tags") or {}) > 25:
        raise invalid("A maximum of 25 tags can be added to the pipeline.")
    run_as = body.get("run_as")
    if run_as is not None and len([key for key in run_as if key in ("user_name", "service_principal_name", "group_name")]) != 1:
        raise invalid("run_as must name exactly one of user_name, service_principal_name and group_name.")


def _check_place(body: Mapping[str, Any]) -> None:
    if "." in (body.get("target") or ""):
        raise invalid("Target schema name cannot contain a dot.")  # facts 1.6
    if body.get("target") and body.get("schema"):
        raise invalid("Only one of 'target' and 'schema' can be specified.")
    if body.get("catalog") and body.get("storage"):
        raise invalid("'storage' cannot be specified together with 'catalog'.")
    if body.get("serverless") and body.get("clusters"):
        raise invalid("You cannot provide cluster settings when using serverless compute.")
    if str(body.get("channel") or "CURRENT").upper() not in ("CURRENT", "PREVIEW"):
        raise invalid(f"Invalid channel {body['channel']!r}")
    if str(body.get("edition") or "CORE").upper() not in ("CORE", "PRO", "ADVANCED"):
        raise invalid(f"Invalid edition {body['edition']!r}")


def _check_libraries(libraries: list[Mapping[str, Any]]) -> None:
    """facts 1.3: one kind each; `glob` may not be mixed with `file` and `notebook`."""
    kinds = []
    for library in libraries:
        named = [key for key in library if key in _LIBRARIES]
        if len(named) != 1 or len(library) != 1:
            raise invalid(f"A library must be exactly one of {', '.join(_LIBRARIES)}")
        inner = {"glob": "include", "file": "path", "notebook": "path"}.get(named[0])
        if inner and not (isinstance(library[named[0]], dict) and library[named[0]].get(inner)):
            raise invalid(f"A library of kind {named[0]} needs {inner!r}")
        kinds.append(named[0])
    if "glob" in kinds and {"file", "notebook"} & set(kinds):
        raise invalid("Libraries of kind glob cannot be mixed with file and notebook libraries.")


def spec(body: Mapping[str, Any], pipeline_id: str) -> dict[str, Any]:
    """The spec that a workspace keeps: what was sent without what belongs to the request, and what it fills in.

    facts 1.6: `id`; `storage` where neither a catalog nor a storage is given. The example answer of "Get pipeline details" in the
    documentation page "Delta Live Tables API guide": `continuous`, `development`, `photon`, `channel`, `edition`.
    """
    kept = {key: value for key, value in body.items() if key not in _OF_REQUEST and value is not None}
    filled: dict[str, Any] = {"channel": "CURRENT", "continuous": False, "development": False, "edition": "ADVANCED"}
    filled["photon"] = bool(body.get("serverless"))  # facts 1.3: on serverless compute Photon is always on
    if not body.get("catalog") and not body.get("storage"):
        filled["storage"] = f"dbfs:/pipelines/{pipeline_id}"
    return {**filled, **kept, "id": pipeline_id}


def name_taken(name: str) -> ApiError:
    """SDK docstring, `allow_duplicate_names`: "If false, deployment will fail if name conflicts with that of another pipeline."."""
    text = "This check can be skipped by setting `allow_duplicate_names = true` in the request."
    return ApiError(409, "RESOURCE_CONFLICT", f"The pipeline name '{name}' is already used by another pipeline. {text}")
