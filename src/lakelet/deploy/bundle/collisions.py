"""Names that a development target shares with another target of the bundle: a deployment of it would touch what that one owns."""

from __future__ import annotations

from collections.abc import Iterator

from lakelet.config.nodes import children
from lakelet.config.yaml_tree import Node
from lakelet.deploy.bundle.problems import Problems
from lakelet.deploy.desired import Workspace

_NAMED = {
    "pipelines": ("name",),
    "jobs": ("name",),
    "schemas": ("catalog_name", "name"),
    "volumes": ("catalog_name", "schema_name", "name"),
}
_OWN_SCHEMA = (
    "Give the target a schema of its own: declare it under resources.schemas, which gets the user's prefix, or put"
    " ${workspace.current_user.short_name} into its name. Targets of different workspaces say so with workspace.host."
)

Side = tuple[Node, Workspace]
"""The tree of a target with all names filled in, and where it lies."""


def refuse_shared_names(mine: Side, other: Side, target: str, problems: Problems) -> None:
    """Note each name and folder that both have; nothing where they lie in workspaces with different addresses.

    `target`: name of the other one. Names of Unity Catalog count without regard to case.
    """
    if mine[1].host and other[1].host and mine[1].host.rstrip("/") != other[1].host.rstrip("/"):
        return
    _folders(mine, other, target, problems)
    theirs = dict(_names(*other))
    for name, node in _names(*mine):
        if name in theirs:
            what = f"the {name[0]} {'.'.join(name[1:])} of this development target is also that of the target {target!r}"
            problems.bad(node, what, todo="Names of a development target begin with presets.name_prefix; rename the other one.")
    tables = {where for where, _ in _namespaces(other[0])}
    for where, node in _namespaces(mine[0]):
        if where in tables:
            what = f"a pipeline of this development target would write its tables to {'.'.join(where)}, which the target {target!r} owns"
            problems.bad(node, what, todo=_OWN_SCHEMA)


def _folders(mine: Side, other: Side, target: str, problems: Problems) -> None:
    for key in ("root_path", "file_path", "resource_path", "state_path"):
        path = getattr(mine[1], key) + "/"
        node = mine[0].get("workspace", key) or mine[0]
        taken = (getattr(other[1], one) + "/" for one in ("root_path", "file_path", "resource_path", "state_path"))
        if any(path.startswith(theirs) or theirs.startswith(path) for theirs in taken):
            what = f"workspace.{key} of this development target, {path[:-1]}, meets a folder of the target {target!r}"
            problems.bad(node, what, todo="Give the targets folders of their own.")


def _names(tree: Node, workspace: Workspace) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Yield kind and name of everything that a target names, with the node."""
    for kind, fields in _NAMED.items():
        for resource in children(tree.get("resources", kind)).values():
            parts = [node.text for field in fields if (node := resource.get(field))]
            if len(parts) == len(fields):
                yield (kind[:-1], *(part.lower() if len(fields) > 1 else part for part in parts)), resource
    for dashboard in children(tree.get("resources", "dashboards")).values():
        parent, name = dashboard.get("parent_path"), dashboard.get("display_name")
        if name is not None:
            yield ("dashboard", f"{parent.text.rstrip('/') if parent else workspace.resource_path}/{name.text}"), dashboard


def _namespaces(tree: Node) -> Iterator[tuple[tuple[str, str], Node]]:
    """Where the pipelines of a target write their tables."""
    for pipeline in children(tree.get("resources", "pipelines")).values():
        schema = pipeline.get("schema") or pipeline.get("target")
        if schema is not None:
            catalog = pipeline.get("catalog")
            yield ((catalog.text if catalog else "hive_metastore").lower(), schema.text.lower()), schema
