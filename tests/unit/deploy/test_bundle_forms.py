"""The keys and words that are checked are those of Databricks' SDK, read from its signatures and types."""

from __future__ import annotations

import dataclasses
import inspect
from enum import Enum
from typing import Any, get_args, get_type_hints

import pytest

from lakelet.deploy.bundle import LOOKUP_KINDS
from lakelet.deploy.bundle import resource_forms as forms
from lakelet.deploy.bundle.forms import Form, ListForm, NamedForm, RecordForm, TextForm
from lakelet.deploy.workspace_objects import _LISTINGS

catalog = pytest.importorskip("databricks.sdk.service.catalog")
from databricks.sdk.service import compute, dashboards, jobs, pipelines  # noqa: E402

LEVELS = {
    "pipelines": (forms.PIPELINE_LEVELS, pipelines.PipelinePermissionLevel),
    "jobs": (forms.JOB_LEVELS, jobs.JobPermissionLevel),
    "schemas": (forms.SCHEMA_PRIVILEGES, catalog.Privilege),
    "volumes": (forms.VOLUME_PRIVILEGES, catalog.Privilege),
}


def parameters(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self"}


def fields(kind: Any) -> dict[str, Any]:
    """Fields of one of the SDK's types, with theirs."""
    names = {**vars(compute), **vars(jobs), **vars(pipelines), **vars(inspect.getmodule(kind))}
    return get_type_hints(kind, localns=names)


def inner(hint: Any) -> Any:
    """The type within Optional, List and Dict."""
    found = [one for one in get_args(hint) if one is not type(None) and one is not str] or ([str] if get_args(hint) else [])
    return inner(found[-1]) if found else hint


def differences(form: Form, hint: Any, path: str) -> list[str]:
    """Keys and words of a form that the SDK's type does not have."""
    kind = inner(hint)
    match form:
        case ListForm(of) | NamedForm(of):
            return differences(of, kind, path)
        case RecordForm() if dataclasses.is_dataclass(kind):
            known = fields(kind)
            wrong = [f"{path}.{key}" for key in form.fields if key not in known]
            return wrong + [
                one for key in form.fields if key in known for one in differences(form.fields[key], known[key], f"{path}.{key}")
            ]
        case TextForm(choices=choices) if choices and inspect.isclass(kind) and issubclass(kind, Enum):
            return [f"{path}: {word}" for word in choices if word not in {one.value for one in kind}]
    return []


def test_keys_of_a_pipeline_are_parameters_of_the_request() -> None:
    assert set(forms.PIPELINE_REQUEST) - parameters(pipelines.PipelinesAPI.create) == set()
    spec = get_type_hints(pipelines.PipelinesAPI.create, localns=vars(pipelines))
    assert [one for key, form in forms.PIPELINE_REQUEST.items() for one in differences(form, spec[key], key)] == []


def test_a_pipeline_may_have_every_setting_of_the_request() -> None:
    assert parameters(pipelines.PipelinesAPI.create) - set(forms.PIPELINE_REQUEST) == {"deployment", "dry_run"}


def test_keys_of_a_job_are_fields_of_its_settings() -> None:
    settings = fields(jobs.JobSettings)
    assert set(forms.JOB_REQUEST) - set(settings) == set()
    assert [one for key, form in forms.JOB_REQUEST.items() for one in differences(form, settings[key], key)] == []


def test_keys_of_dashboards_schemas_and_volumes_are_known_to_the_sdk() -> None:
    dashboard = {*fields(dashboards.Dashboard), *parameters(dashboards.LakeviewAPI.create)}
    assert set(forms.DASHBOARD_REQUEST) - dashboard == set()
    assert set(forms.SCHEMA_REQUEST) - parameters(catalog.SchemasAPI.create) == set()
    assert set(forms.VOLUME_REQUEST) - parameters(catalog.VolumesAPI.create) == set()


def test_the_comparison_sees_a_wrong_key_and_a_wrong_word_at_any_depth() -> None:
    form = ListForm(
        RecordForm("x", {"tsk": TextForm(), "depends_on": ListForm(RecordForm("y", {"task_key": TextForm(), "key": TextForm()}))})
    )
    run_if = ListForm(RecordForm("x", {"run_if": TextForm(("ALL_DONE", "ALWAYS"))}))
    tasks = fields(jobs.JobSettings)["tasks"]
    assert differences(form, tasks, "t") == ["t.tsk", "t.depends_on.key"]
    assert differences(run_if, tasks, "t") == ["t.run_if: ALWAYS"]


@pytest.mark.parametrize("kind", LEVELS)
def test_permission_levels_are_those_of_the_sdk(kind: str) -> None:
    levels, known = LEVELS[kind]
    assert set(levels) - {one.value for one in known} == set()


def test_every_kind_of_lookup_can_be_asked_for() -> None:
    from databricks.sdk import WorkspaceClient

    assert set(_LISTINGS) == LOOKUP_KINDS
    asked = {name for _, (call, *_) in _LISTINGS.items() for name in call.__code__.co_names}
    apis = {name for name in asked if not name.startswith("list")}
    assert [name for name in apis if not hasattr(WorkspaceClient, name)] == []
