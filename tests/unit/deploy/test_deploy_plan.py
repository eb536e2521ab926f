"""What a deployment changes, decided from three values of each field: the bundle's, the deployed one, the workspace's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelet.base.errors import LakeletError
from lakelet.deploy.desired_state import DesiredState, Permission, Resource, ResourceKey, ResourceKind, SourceFile, Workspace
from lakelet.deploy.plan import LineKind, ObservedResource, PlanLine, plan, refuse_conflicts
from lakelet.deploy.resource_settings import as_found, masked, tree_of
from lakelet.deploy.state import DeployedFile, DeployedResource, DeploymentState, PendingDeployment, PendingResource, state_of, text_of

PLACE = Workspace(None, None, "/W/r", "/W/r/files", "/W/r/resources", "/W/r/state")
PIPELINE, JOB, SCHEMA = ResourceKey(ResourceKind.PIPELINE, "p"), ResourceKey(ResourceKind.JOB, "j"), ResourceKey(ResourceKind.SCHEMA, "s")
SETTINGS = {"name": "p", "catalog": "main", "configuration": {"a": "1"}}


def pipeline(*, permissions=(), **changes):
    return Resource(PIPELINE, {**SETTINGS, **changes}, permissions)


def wanted(*resources, files=()):
    return DesiredState("b", "dev", True, PLACE, resources, tuple(SourceFile(path, Path(path), sha, 1) for path, sha in files))


def deployed(*resources, files=(), ids=("77", "88", "99")):
    found = {
        r.key: DeployedResource(r.key, id, masked(tree_of(r), "d"), {}, as_found(tree_of(r))) for r, id in zip(resources, ids, strict=False)
    }
    return DeploymentState("d", "b", "dev", 1, None, "", "", found, {path: DeployedFile(sha, 1, path, "x") for path, sha in files})


def observed(resource, id="77", **changes):
    return {resource.key: ObservedResource(id, {**tree_of(resource), **changes}, "5")}


def lines(made):
    return [(str(c.action), c.resource, c.field, c.before, c.after) for c in made.changes]


def test_what_is_not_there_is_created_field_by_field():
    made = plan(wanted(pipeline(), files=[("a.py", "s1")]), DeploymentState("d"), {})
    assert made.creates == (PIPELINE,)
    assert made.uploads == ("a.py",)
    assert lines(made) == [
        ("upload", "a.py", None, None, "s1"),
        ("create", "pipelines.p", None, None, None),
        ("create", "pipelines.p", "name", None, "p"),
        ("create", "pipelines.p", "catalog", None, "main"),
        ("create", "pipelines.p", "configuration.a", None, "1"),
    ]


def test_what_is_as_it_should_be_needs_nothing():
    same = pipeline(permissions=(Permission("CAN_VIEW", "group_name", "users"),))
    made = plan(wanted(same, files=[("a.py", "s1")]), deployed(same, files=[("a.py", "s1")]), observed(same))
    assert made.empty
    assert made.changes == ()


def test_one_changed_setting_is_one_line_and_one_update():
    made = plan(wanted(pipeline(catalog="prod")), deployed(pipeline()), observed(pipeline()))
    assert lines(made) == [("change", "pipelines.p", "catalog", "main", "prod")]
    assert made.updates[PIPELINE].settings
    assert not made.updates[PIPELINE].permissions


def test_a_setting_that_is_taken_out_of_the_bundle_is_taken_out_of_the_workspace():
    made = plan(wanted(pipeline(configuration={})), deployed(pipeline()), observed(pipeline()))
    assert lines(made) == [("change", "pipelines.p", "configuration", None, {}), ("change", "pipelines.p", "configuration.a", "1", None)]


def test_a_changed_grant_is_a_permission_and_no_update_of_settings():
    more = pipeline(permissions=(Permission("CAN_VIEW", "group_name", "users"),))
    made = plan(wanted(more), deployed(pipeline()), observed(pipeline()))
    assert lines(made) == [("permission", "pipelines.p", "permissions.group_name:users", None, "CAN_VIEW")]
    assert (made.updates[PIPELINE].settings, made.updates[PIPELINE].permissions) == (False, True)


def test_drift_is_shown_and_kept_and_forced_back_only_when_asked():
    changed = observed(pipeline(), catalog="hand", added="by hand")
    made = plan(wanted(pipeline()), deployed(pipeline()), changed)
    assert made.empty
    assert lines(made) == [("drift", "pipelines.p", "added", "by hand", None), ("drift", "pipelines.p", "catalog", "hand", "main")]
    assert made.updates[PIPELINE].kept == (("added",), ("catalog",))
    forced = plan(wanted(pipeline()), deployed(pipeline()), changed, force=True)
    assert lines(forced) == [("change", "pipelines.p", "added", "by hand", None), ("change", "pipelines.p", "catalog", "hand", "main")]
    assert forced.updates[PIPELINE].kept == ()


def test_the_bundles_change_is_made_beside_drift_in_another_field():
    made = plan(wanted(pipeline(name="q")), deployed(pipeline()), observed(pipeline(), catalog="hand"))
    assert lines(made) == [("drift", "pipelines.p", "catalog", "hand", "main"), ("change", "pipelines.p", "name", "p", "q")]
    refuse_conflicts(made)


def test_a_field_that_both_sides_changed_is_refused_before_anything_is_done():
    made = plan(wanted(pipeline(catalog="prod")), deployed(pipeline()), observed(pipeline(), catalog="hand"))
    assert lines(made) == [("conflict", "pipelines.p", "catalog", "hand", "prod")]
    with pytest.raises(LakeletError, match="catalog was changed in the workspace to 'hand', the bundle says 'prod'"):
        refuse_conflicts(made)
    same = plan(wanted(pipeline(catalog="hand")), deployed(pipeline()), observed(pipeline(), catalog="hand"))
    assert same.changes == ()


def test_a_resource_that_was_deleted_by_hand_is_created_again():
    made = plan(wanted(pipeline()), deployed(pipeline()), {})
    assert made.creates == (PIPELINE,)
    assert lines(made)[0] == ("create", "pipelines.p", None, "deleted in the workspace", None)


def test_a_job_follows_a_pipeline_that_gets_a_new_id():
    job = Resource(JOB, {"pipeline_id": "${resources.pipelines.p.id}"})
    state = deployed(pipeline())
    sent = DeployedResource(JOB, "88", dict(job.settings), {"pipelines.p": "77"}, {"pipeline_id": "77"})
    there = {JOB: ObservedResource("88", {"pipeline_id": "77"})}
    made = plan(wanted(pipeline(), job), state.with_resource(sent), there)
    assert ("change", "jobs.j", "pipeline_id", "77", "${resources.pipelines.p.id}") in lines(made)
    recreated = replace(state.resources[PIPELINE], id="78")
    made = plan(wanted(pipeline(), job), state.with_resource(sent).with_resource(recreated), {**there, **observed(pipeline(), "78")})
    assert lines(made) == [("change", "jobs.j", "pipeline_id", "77", "78")]


def test_a_pipeline_that_is_taken_out_is_deleted_and_its_tables_only_when_named():
    made = plan(wanted(), deployed(pipeline()), observed(pipeline()))
    assert made.deletes == (PIPELINE,)
    assert lines(made) == [("delete", "pipelines.p", None, "77", None), ("keep", "pipelines.p", "tables", "kept", "kept")]
    named = plan(wanted(), deployed(pipeline()), observed(pipeline()), with_data=["pipelines.p"])
    assert lines(named)[1] == ("delete", "pipelines.p", "tables", "kept", None)


def test_a_schema_that_is_taken_out_stays_unless_it_is_named():
    schema = Resource(SCHEMA, {"name": "s", "catalog_name": "main"})
    state, there = deployed(schema, ids=("main.s",)), observed(schema, "main.s")
    made = plan(wanted(), state, there)
    assert made.empty
    assert made.deletes == ()
    assert plan(wanted(), state, there, with_data=["s"]).deletes == (SCHEMA,)
    with pytest.raises(LakeletError, match="--with-data t names nothing that was deployed"):
        plan(wanted(), state, there, with_data=["t"])


def test_deleting_what_the_bundle_protected_is_refused():
    state = deployed(pipeline())
    state = state.with_resource(replace(state.resources[PIPELINE], prevent_destroy=True))
    with pytest.raises(LakeletError, match="prevent_destroy forbids it"):
        plan(wanted(), state, observed(pipeline()))


def test_a_resource_that_is_to_be_started_is_refused():
    with pytest.raises(LakeletError, match="`lifecycle: started` has no effect on a pipeline here"):
        plan(wanted(replace(pipeline(), start=True)), DeploymentState("d"), {})


def test_settings_that_a_resource_has_for_life_cannot_be_changed():
    schema = Resource(SCHEMA, {"name": "s", "catalog_name": "main"})
    moved = Resource(SCHEMA, {"name": "s", "catalog_name": "prod"})
    with pytest.raises(LakeletError, match="catalog_name cannot be changed from 'main' to 'prod'"):
        plan(wanted(moved), deployed(schema, ids=("main.s",)), observed(schema, "main.s"))


def test_changed_files_are_uploaded_and_files_that_are_gone_are_removed():
    state = deployed(files=[("a.py", "s1"), ("b.py", "s2"), ("c.py", "s3")])
    made = plan(wanted(files=[("a.py", "s1"), ("b.py", "new"), ("d.py", "s4")]), state, {})
    assert (made.uploads, made.removals) == (("b.py", "d.py"), ("c.py",))


def pending(resource, *, create=False, files=()):
    intent = PendingResource(tree_of(resource), create)
    return PendingDeployment("deploy", "ann", "", {resource.key: intent}, {path: DeployedFile(sha, 1, path, "x") for path, sha in files})


def test_after_a_death_a_field_counts_as_it_was_before_or_as_it_was_meant():
    meant = pipeline(catalog="prod", name="q")
    state = replace(deployed(pipeline()), pending=pending(meant))
    half = observed(pipeline(), name="q")  # the workspace has one of two changes: never by itself, but after a change by hand
    made = plan(wanted(meant), state, half)
    assert lines(made) == [("change", "pipelines.p", "catalog", "main", "prod"), ("finish", "deployment", None, "deploy", None)]
    done = plan(wanted(meant), state, observed(meant))
    assert lines(done) == [("finish", "deployment", None, "deploy", None)]
    assert not done.empty
    by_hand = plan(wanted(meant), state, observed(meant, catalog="hand"))
    assert ("drift", "pipelines.p", "catalog", "hand", "prod") in lines(by_hand)


def test_after_a_death_files_that_were_about_to_be_uploaded_are_uploaded_again_or_removed():
    state = replace(
        deployed(files=[("a.py", "s1")]),
        pending=PendingDeployment("deploy", "ann", "", {}, {path: DeployedFile("s2", 1, path, "x") for path in ("a.py", "b.py")}),
    )
    made = plan(wanted(files=[("a.py", "s1")]), state, {})
    assert (made.uploads, made.removals) == (("a.py",), ("b.py",))


def test_a_resource_found_again_after_a_death_has_no_drift_and_lacks_its_grants():
    meant = pipeline(permissions=(Permission("CAN_VIEW", "group_name", "users"),))
    state = replace(DeploymentState("d").with_resource(DeployedResource(PIPELINE, "77", {})), pending=pending(meant, create=True))
    there = {PIPELINE: ObservedResource("77", {**SETTINGS, "default": "of the workspace", "permissions": {"user_name:ann": "IS_OWNER"}})}
    made = plan(wanted(meant), state, there)
    assert lines(made) == [
        ("permission", "pipelines.p", "permissions.group_name:users", None, "CAN_VIEW"),
        ("finish", "deployment", None, "deploy", None),
    ]


def test_secrets_are_compared_but_not_shown():
    old, new = pipeline(configuration={"db_password": "first"}), pipeline(configuration={"db_password": "second"})
    state = deployed(old)
    state = state.with_resource(replace(state.resources[PIPELINE], found=as_found(masked(tree_of(old), "d"))))
    made = plan(wanted(new), state, observed(old))
    assert made.changes == (PlanLine(LineKind.CHANGE, "pipelines.p", "configuration.db_password", "[REDACTED]", "[REDACTED]"),)
    assert plan(wanted(old), state, observed(old)).changes == ()
    assert "first" not in text_of(state)


def test_the_state_comes_back_from_its_file():
    import json

    state = replace(deployed(pipeline(), files=[("a.py", "s1")]), pending=pending(pipeline(), create=True, files=[("b.py", "s2")]))
    assert state_of(json.loads(text_of(state))) == state
    assert text_of(state_of(json.loads(text_of(state)))) == text_of(state)
