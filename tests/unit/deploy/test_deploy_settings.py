"""Settings as trees: fields by path, references, secrets."""

from __future__ import annotations

import json

import pytest

from lakelet.base.errors import LakeletError
from lakelet.deploy.desired_state import Permission, Resource, ResourceKey, ResourceKind
from lakelet.deploy.resource_settings import (
    as_found,
    fields,
    in_order,
    masked,
    path_text,
    permissions_of,
    permissions_tree,
    resolved,
    shown,
    with_field,
    without_field,
)

PIPELINE = ResourceKey(ResourceKind.PIPELINE, "p")
JOB = {"name": "j", "tasks": [{"task_key": "b", "timeout": 1}, {"task_key": "a", "pipeline_task": {"pipeline_id": "x"}}], "tags": {}}


def test_fields_of_tasks_are_named_by_their_key_and_other_lists_are_leaves():
    found = {path_text(path): value for path, value in fields({**JOB, "libraries": [{"file": 1}]}).items()}
    assert found == {
        "name": "j",
        "tasks[b].task_key": "b",
        "tasks[b].timeout": 1,
        "tasks[a].task_key": "a",
        "tasks[a].pipeline_task.pipeline_id": "x",
        "tags": {},
        "libraries": [{"file": 1}],
    }


def test_a_tree_made_of_its_fields_is_the_same_tree():
    tree = {}
    for path, value in fields(JOB).items():
        tree = with_field(tree, path, value)
    assert tree == JOB


def test_a_field_is_put_in_and_taken_out_where_it_belongs():
    changed = with_field(JOB, ("tasks", "[a]", "pipeline_task", "full_refresh"), True)
    assert changed["tasks"][1]["pipeline_task"] == {"pipeline_id": "x", "full_refresh": True}
    assert without_field(changed, ("tasks", "[a]", "pipeline_task", "full_refresh")) == JOB
    assert without_field({"configuration": {"a": "1"}, "name": "p"}, ("configuration", "a")) == {"name": "p"}
    assert without_field(JOB, ("no", "such")) == JOB


def test_references_become_ids_and_those_without_one_stay():
    tree = {"a": "${resources.pipelines.p.id}", "b": ["${resources.jobs.q.id}"]}
    assert resolved(tree, {PIPELINE: "77"}) == {"a": "77", "b": ["${resources.jobs.q.id}"]}


def test_resources_come_after_those_that_they_need_and_circles_are_refused():
    def job(name, *needs):
        return Resource(ResourceKey(ResourceKind.JOB, name), {"needs": [f"${{resources.jobs.{need}.id}}" for need in needs]})

    assert [r.key.name for r in in_order([job("a", "b"), job("b", "c"), job("c")])] == ["c", "b", "a"]
    with pytest.raises(LakeletError, match="in a circle"):
        in_order([job("a", "b"), job("b", "a")])


SECRETS = [
    ("db_password", "hunter22"),
    ("url", "jdbc:x://ann:hunter22@host/db"),
    ("header", "dapi0123456789abcdef0123"),
    ("conn", "Endpoint=sb://x;SharedAccessKey=hunter22;"),
]


@pytest.mark.parametrize(("key", "value"), SECRETS)
def test_values_that_look_like_secrets_are_neither_kept_nor_shown_but_a_change_is_seen(key, value):
    kept = masked({"configuration": {key: value}}, "salt")
    text = json.dumps([kept, shown(kept)])
    assert "hunter22" not in text
    assert "dapi0123" not in text
    assert shown(kept) == {"configuration": {key: "[REDACTED]"}}
    assert kept == masked({"configuration": {key: value}}, "salt")
    assert kept != masked({"configuration": {key: value + "x"}}, "salt")
    assert kept != masked({"configuration": {key: value}}, "other salt")
    assert masked(kept, "salt") == kept


def test_references_to_secrets_are_no_secrets():
    tree = {"db_password": "{{secrets/scope/key}}", "token": "true", "secret_scope": "s"}
    assert masked(tree, "salt") == tree


def test_a_dashboard_means_the_same_with_what_the_workspace_adds():
    mine = {"serialized_dashboard": json.dumps({"pages": [{"name": "p"}], "datasets": [{"name": "d"}]})}
    theirs = json.dumps({"datasets": [{"name": "d", "catalog": "main"}], "pages": [{"name": "p", "pageType": "PAGE_TYPE_CANVAS"}]}) + "\n"
    assert as_found(mine) == as_found({"serialized_dashboard": theirs})
    assert as_found(mine) != as_found({"serialized_dashboard": theirs.replace('"p"', '"q"')})


def test_permissions_are_a_branch_of_the_tree_and_come_back():
    grants = (Permission("CAN_VIEW", "group_name", "users"), Permission("CAN_MANAGE", "user_name", "ann@example.com"))
    assert permissions_tree(grants) == {"permissions": {"group_name:users": "CAN_VIEW", "user_name:ann@example.com": "CAN_MANAGE"}}
    assert set(permissions_of(permissions_tree(grants))) == set(grants)
    assert permissions_tree(()) == {}
