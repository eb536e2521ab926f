"""A development deployment touches nothing that production owns, and two users' never meet: over random bundles and targets."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from lakelet.base.errors import DefinitionErrors
from lakelet.config.yaml_tree import ConfigNode, merge, plain, read_yaml
from lakelet.deploy.desired_state import DesiredState, User
from tests.unit.deploy.bundles import ADA, BOB, Folder

USER, SHORT = "${workspace.current_user.userName}", "${workspace.current_user.short_name}"
NAMES = st.sampled_from(["a", "b", "dev_ada_l_a", "[dev ada_l] a", f"a_{SHORT}", "ada_l", "staging_a"])
CATALOGS = st.sampled_from(["main", "MAIN", "dev", "${var.catalog}"])
FOLDERS = st.sampled_from(
    [
        *("/Workspace/Shared/x", "/Workspace/Shared", "~/x", "~/.bundle/shop/dev", f"/Workspace/Users/{USER}/x", f"/Shared/{SHORT}"),
        *(f"/Workspace/Users/{ADA.user_name}/.bundle/shop/dev", "${workspace.root_path}/state", "/Users/ada.l@example.com"),
    ]
)
PREFIXES = st.sampled_from(["", "x ", f"[dev {SHORT}] ", f"{SHORT}_", "staging_", "dev_ada_l_"])


def few(kind: str, values: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from([f"{kind}1", f"{kind}2", f"{kind}3"]), values, max_size=most)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


SCHEMA = st.fixed_dictionaries({"name": NAMES, "catalog_name": CATALOGS})
VOLUME = st.fixed_dictionaries({"name": NAMES, "catalog_name": CATALOGS, "schema_name": NAMES})
LIBRARIES = [{"file": {"path": "a.sql"}}]
PIPELINE = st.fixed_dictionaries(
    {"catalog": CATALOGS, "schema": NAMES, "libraries": st.just(LIBRARIES)}, optional={"name": NAMES, "continuous": st.booleans()}
)
JOB = some(name=NAMES, trigger=st.just({"periodic": {"interval": 1, "unit": "DAYS"}}))
DASHBOARD = st.fixed_dictionaries({"serialized_dashboard": st.just("{}")}, optional={"display_name": NAMES, "parent_path": FOLDERS})
RESOURCES = some(
    schemas=few("s", SCHEMA),
    volumes=few("v", VOLUME, 1),
    pipelines=few("p", PIPELINE),
    jobs=few("j", JOB),
    dashboards=few("d", DASHBOARD, 1),
)
WORKSPACE = some(root_path=FOLDERS, file_path=FOLDERS, state_path=FOLDERS, resource_path=FOLDERS)
OVERLAY = {
    "workspace": WORKSPACE,
    "presets": some(name_prefix=PREFIXES),
    "variables": some(catalog=st.sampled_from(["main", "prod"])),
    "resources": some(schemas=few("s", SCHEMA, 1), pipelines=few("p", PIPELINE, 1)),
}
BUNDLES = st.fixed_dictionaries(
    {
        "bundle": st.just({"name": "shop"}),
        "variables": st.just({"catalog": {"default": "main"}}),
        "resources": RESOURCES,
        "targets": st.fixed_dictionaries(
            {
                "dev": st.fixed_dictionaries({"mode": st.just("development")}, optional=OVERLAY),
                "prod": some(**OVERLAY),
            }
        ),
    }
)


def state(bundle: dict[str, Any], target: str, user: User) -> DesiredState | None:
    """What a deployment should leave; None for a bundle that is refused."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return Folder(Path(folder)).put({"a.sql": "SELECT 1"}).bundle(json.dumps(bundle)).state(target, user)
        except DefinitionErrors:
            return None


def owned(desired: DesiredState) -> set[tuple[str, ...]]:
    """What a deployment makes, by the name that the workspace knows it by."""
    found = set()
    for resource in desired.resources:
        of = resource.settings
        if resource.key.kind == "schemas":
            found.add(("schema", of["catalog_name"].lower(), of["name"].lower()))
        elif resource.key.kind == "volumes":
            found.add(("volume", of["catalog_name"].lower(), of["schema_name"].lower(), of["name"].lower()))
        elif resource.key.kind == "dashboards":
            found.add(("dashboard", of["parent_path"], of["display_name"]))
        else:
            found.add((resource.key.kind.word, of["name"]))
    return found


def tables(desired: DesiredState) -> set[tuple[str, str]]:
    return {(r.settings["catalog"].lower(), r.settings["schema"].lower()) for r in desired.resources if r.key.kind == "pipelines"}


def folders(desired: DesiredState) -> list[str]:
    place = desired.workspace
    return [f"{path}/" for path in (place.root_path, place.file_path, place.resource_path, place.state_path)]


def meet(one: list[str], other: list[str]) -> bool:
    return any(a.startswith(b) or b.startswith(a) for a in one for b in other)


@settings(max_examples=150, deadline=None)
@given(BUNDLES)
def test_a_development_deployment_names_nothing_that_production_has(bundle: dict[str, Any]) -> None:
    dev, prod = state(bundle, "dev", ADA), state(bundle, "prod", ADA)
    event("refused" if dev is None or prod is None else "deployed" if dev.resources else "empty")
    if dev is not None and prod is not None:
        assert owned(dev) & owned(prod) == set()
        assert tables(dev) & tables(prod) == set()
        assert not meet(folders(dev), folders(prod))


@settings(max_examples=100, deadline=None)
@given(BUNDLES)
def test_the_development_deployments_of_two_users_never_meet(bundle: dict[str, Any]) -> None:
    ada, bob = state(bundle, "dev", ADA), state(bundle, "dev", BOB)
    event("refused" if ada is None or bob is None else "deployed" if ada.resources else "empty")
    if ada is not None and bob is not None:
        assert owned(ada) & owned(bob) == set()
        assert not meet(folders(ada), folders(bob))


# --- nothing is lost ------------------------------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "c", "d"])
TREES = st.recursive(
    st.integers(0, 9) | st.text("xyz", min_size=1, max_size=3),
    lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=3) | st.lists(inner, min_size=1, max_size=2),
    max_leaves=12,
)
MAPPINGS = st.dictionaries(KEYS, TREES, min_size=1, max_size=3)


def read(value: Any) -> ConfigNode:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.yml"
        path.write_text(json.dumps(value))
        return read_yaml(path, shown="x.yml")


def paths(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where the mappings' keys stand, those within lists excepted."""
    for key, child in value.items() if isinstance(value, dict) else ():
        yield (*above, key)
        yield from paths(child, (*above, key))


def at(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


@settings(max_examples=100, deadline=None)
@given(MAPPINGS, MAPPINGS)
def test_merging_loses_no_key_and_no_item(base: dict[str, Any], over: dict[str, Any]) -> None:
    merged = plain(merge(read(base), read(over)))
    assert set(paths(over)) <= set(paths(merged))
    for path in paths(base):
        inside = [at(over, path[:depth]) for depth in range(1, len(path))]
        if all(one is None or isinstance(one, dict) for one in inside):
            mine, theirs = at(base, path), at(over, path)
            if theirs is None:
                assert at(merged, path) == mine
            elif isinstance(mine, list) and isinstance(theirs, list):
                assert at(merged, path) == mine + theirs


VALUES = st.sampled_from(
    ["plain", "${var.a}", "${var.b}/x", "${bundle.target}-${var.a}", "${unknown.thing}", "${resources.jobs.j.id}", 3, True]
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text("abc.", min_size=1, max_size=6), VALUES, max_size=6), st.dictionaries(KEYS, VALUES, max_size=4))
def test_filling_in_references_loses_no_key(configuration: dict[str, Any], tags: dict[str, Any]) -> None:
    bundle = {
        "bundle": {"name": "shop"},
        "variables": {"a": {"default": "1"}, "b": {"default": "${var.a}2"}},
        "resources": {"jobs": {"j": {"tags": tags}}, "pipelines": {"p": {"configuration": configuration, "libraries": LIBRARIES}}},
    }
    desired = state(bundle, "", ADA)
    assert desired is not None
    found = {str(resource.key): resource.settings for resource in desired.resources}
    filled = {"${var.a}": "1", "${var.b}/x": "12/x", "${bundle.target}-${var.a}": "default-1", 3: "3", True: "true"}
    assert found["pipelines.p"].get("configuration", {}) == {key: filled.get(value, value) for key, value in configuration.items()}
    assert found["jobs.j"].get("tags", {}) == {key: filled.get(value, value) for key, value in tags.items()}
