"""Effects of a deployment target's mode and presets on the resources (prefixes, pauses, tags), and the requirements of each mode.

A development target shares no name with another target of the bundle: a deployment of it would touch what that one owns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lakelet.config.yaml_tree import ConfigNode, Problems, Remark, changed, children, elements, found, mapping, scalar, with_entries
from lakelet.deploy.bundle.references import git_checkout
from lakelet.deploy.desired_state import FOLDERS, ResourceKind, User, Workspace

DEVELOPMENT, PRODUCTION = "development", "production"
_CONCURRENT = 4
"""Runs of a job at the same time in a development target, where the job does not say."""

_PAUSED = (("schedule",), ("trigger",), ("continuous",), ("triggers", "*"))
"""Keys that start a job by themselves."""

_PER_USER = "${workspace.current_user."


@dataclass(frozen=True)
class Presets:
    """Changes to all resources of a target.

    Attributes:
        prefix: stands before names; `[dev ada] `.
        pause: `PAUSED` or `UNPAUSED` for schedules and triggers that say neither.
        development: whether pipelines are in development mode; None leaves it to each.
        tags: of jobs and pipelines, which may have others of the same name.
        concurrent_runs: of jobs that do not say.
    """

    prefix: str = ""
    pause: str | None = None
    development: bool | None = None
    tags: Mapping[str, ConfigNode] | None = None
    concurrent_runs: ConfigNode | None = None

    @property
    def identifier(self) -> str:
        """The prefix as it may stand in names of Unity Catalog: `dev_ada_`."""
        name = re.sub(r"\W+", "_", self.prefix).strip("_").lower()
        return f"{name}_" if name else ""


def presets_of(tree: ConfigNode, mode: str | None, user: User) -> Presets:
    """The presets of a target: those that are written, and after them those of its mode. References are filled in already."""
    written = children(tree.get("presets"))
    prefix, pause = written.get("name_prefix"), written.get("trigger_pause_status")
    pipelines, tags, runs = (written.get(key) for key in ("pipelines_development", "tags", "jobs_max_concurrent_runs"))
    of_mode = Presets()
    if mode == DEVELOPMENT:
        dev = scalar(user.short_name, tree)
        of_mode = Presets(f"[dev {user.short_name}] ", "PAUSED", True, {"dev": dev}, scalar(_CONCURRENT, tree))
    return Presets(
        prefix.text if prefix and prefix.text else of_mode.prefix,
        pause.text if pause and pause.value else of_mode.pause,
        pipelines.value if pipelines and isinstance(pipelines.value, bool) else of_mode.development,
        {**(of_mode.tags or {}), **children(tags)},
        runs if runs and runs.value is not None else of_mode.concurrent_runs,
    )


def with_presets(tree: ConfigNode, presets: Presets) -> ConfigNode:
    """The tree with the presets applied to each resource.

    What lies in a schema of the bundle follows it to its name: it gets a reference to it.
    """
    tree = _following_schemas(tree)
    for kind, apply in _PRESETS_BY_KIND.items():
        for key, resource in children(tree.get("resources", kind)).items():
            if isinstance(resource.value, dict):
                after = apply(_with_name(resource, kind, key), presets)
                tree = changed(tree, ("resources", kind, key), lambda _, after=after: after)  # type: ignore[misc]
    return tree


def _with_name(resource: ConfigNode, kind: str, key: str) -> ConfigNode:
    """The resource with a name: its key where none is written. Schemas and volumes must have one."""
    if kind in _NAME_FIELD and resource.get(_NAME_FIELD[kind]) is None:
        return with_entries(resource, **{_NAME_FIELD[kind]: scalar(key, resource)})
    return resource


_NAME_FIELD = {ResourceKind.PIPELINE.value: "name", ResourceKind.JOB.value: "name", ResourceKind.DASHBOARD.value: "display_name"}


def _with_prefix(resource: ConfigNode, field: str, prefix: str) -> ConfigNode:
    return changed(resource, (field,), lambda name: scalar(prefix + name.text, name)) if prefix else resource


def _with_tags(resource: ConfigNode, presets: Presets) -> ConfigNode:
    if not presets.tags:
        return resource
    own = resource.get("tags") or mapping({}, resource)
    return with_entries(resource, tags=mapping({**presets.tags, **children(own)}, own))


def _job_with_presets(job: ConfigNode, presets: Presets) -> ConfigNode:
    job = _with_tags(_with_prefix(job, "name", presets.prefix), presets)
    runs = presets.concurrent_runs
    if runs is not None and job.get("max_concurrent_runs") is None:
        job = with_entries(job, max_concurrent_runs=replace(runs, where=job.where, file=job.file))
    if presets.pause is None:
        return job
    for keys in _PAUSED:
        job = changed(job, keys, lambda start: _with_pause_status(start, presets.pause or ""))
    return job


def _with_pause_status(start: ConfigNode, status: str) -> ConfigNode:
    return start if start.get("pause_status") else with_entries(start, pause_status=scalar(status, start))


def _pipeline_with_presets(pipeline: ConfigNode, presets: Presets) -> ConfigNode:
    pipeline = _with_tags(_with_prefix(pipeline, "name", presets.prefix), presets)
    if presets.development:
        pipeline = with_entries(pipeline, development=scalar(True, pipeline))
    if presets.pause == "PAUSED" and pipeline.get("continuous") is not None:
        pipeline = with_entries(pipeline, continuous=scalar(False, pipeline))
    return pipeline


def _dashboard_with_presets(dashboard: ConfigNode, presets: Presets) -> ConfigNode:
    return _with_prefix(dashboard, "display_name", presets.prefix)


def _schema_with_presets(schema: ConfigNode, presets: Presets) -> ConfigNode:
    return _with_prefix(schema, "name", presets.identifier)


_PRESETS_BY_KIND: Mapping[str, Callable[[ConfigNode, Presets], ConfigNode]] = {
    ResourceKind.PIPELINE.value: _pipeline_with_presets,
    ResourceKind.JOB.value: _job_with_presets,
    ResourceKind.DASHBOARD.value: _dashboard_with_presets,
    ResourceKind.SCHEMA.value: _schema_with_presets,
}


def _following_schemas(tree: ConfigNode) -> ConfigNode:
    """Pipelines and volumes that name a schema of the bundle in words refer to it."""
    schemas = {
        (catalog.text, name.text): key
        for key, schema in children(tree.get("resources", "schemas")).items()
        if (catalog := schema.get("catalog_name")) and (name := schema.get("name"))
    }
    for kind, catalog_field, fields in (("pipelines", "catalog", ("schema", "target")), ("volumes", "catalog_name", ("schema_name",))):
        for key, resource in children(tree.get("resources", kind)).items():
            catalog = resource.get(catalog_field)
            for field in fields:
                name = resource.get(field)
                owner = schemas.get((catalog.text, name.text)) if catalog and name else None
                if owner is not None:
                    follow = scalar(f"${{resources.schemas.{owner}.name}}", name)  # type: ignore[arg-type]
                    tree = changed(tree, ("resources", kind, key, field), lambda _, follow=follow: follow)  # type: ignore[misc]
    return tree


# --- what a mode demands --------------------------------------------------------------------------------------------------------------


def check_mode(written: ConfigNode, tree: ConfigNode, mode: str | None, user: User, root: Path, problems: Problems) -> None:
    """Note what the mode of the target does not allow.

    Args:
        written: the tree as it was written, references and all.
        tree: the same with variables filled in, before presets.
        root: folder of the bundle.
    """
    if mode == DEVELOPMENT:
        _check_development(tree, user, problems)
    elif mode == PRODUCTION:
        _check_production(written, tree, user, root, problems)


def names_user(text: str, user: User) -> bool:
    """Whether a name or path holds the name of the user, as a word of its own."""
    names = "|".join(re.escape(name) for name in (user.user_name, user.short_name) if name)
    return bool(names) and re.search(rf"(?<![A-Za-z0-9])({names})(?![A-Za-z0-9])", text) is not None


def _check_development(tree: ConfigNode, user: User, problems: Problems) -> None:
    for key in FOLDERS:
        node = tree.get("workspace", key)
        if node is not None and not names_user(node.text, user):
            todo = f"Put ${{workspace.current_user.userName}} into it, or leave {key} out."
            problems.bad(node, f"workspace.{key} of a development target is the same for every user: {node.text}", todo=todo)
    prefix = tree.get("presets", "name_prefix")
    if prefix is not None and prefix.text and not names_user(prefix.text, user):
        todo = "Put ${workspace.current_user.short_name} into it."
        problems.bad(prefix, f"the prefix {prefix.text!r} of a development target is the same for every user", todo=todo)
    pause = tree.get("presets", "trigger_pause_status")
    if pause is not None and pause.text == "UNPAUSED":
        todo = "Unpause single jobs: pause_status: UNPAUSED in their schedule."
        problems.bad(pause, "a development target cannot start all of its jobs by itself", todo=todo)
    _check_volumes(tree, user, problems)


def _check_volumes(tree: ConfigNode, user: User, problems: Problems) -> None:
    """A volume gets no prefix; so in a development target its schema must be the user's own."""
    schemas = {
        (catalog.text, name.text)
        for schema in children(tree.get("resources", "schemas")).values()
        if (catalog := schema.get("catalog_name")) and (name := schema.get("name"))
    }
    for key, volume in children(tree.get("resources", "volumes")).items():
        parts = [node.text if (node := volume.get(field)) else "" for field in ("catalog_name", "schema_name", "name")]
        followed = "${resources.schemas." in parts[1] or (parts[0], parts[1]) in schemas
        if all(parts) and not followed and not names_user(".".join(parts), user):
            todo = "Declare the schema in the bundle, which gives it a name of the user's, or put ${workspace.current_user.short_name} in."
            problems.bad(
                volume, f"volumes.{key} would be the same volume for every user of a development target: {'.'.join(parts)}", todo=todo
            )


def _check_production(written: ConfigNode, tree: ConfigNode, user: User, root: Path, problems: Problems) -> None:
    for pipeline in children(tree.get("resources", "pipelines")).values():
        development = pipeline.get("development")
        if development is not None and development.value is True:
            problems.bad(development, "a pipeline of a production target cannot be in development mode", todo="Take the key out.")
    _check_branch(written, tree, root, problems)
    if user.is_service_principal:
        return
    folder = written.get("workspace", "root_path")
    if folder is None or folder.text.startswith("~") or _PER_USER in folder.text:
        where = folder or written.get("workspace") or written
        todo = "For example: root_path: /Workspace/Shared/.bundle/${bundle.name}/${bundle.target}"
        problems.bad(where, "a production target needs a workspace.root_path that does not depend on who deploys", todo=todo)


def _check_branch(written: ConfigNode, tree: ConfigNode, root: Path, problems: Problems) -> None:
    """`git.branch` of a production target is the branch that is deployed."""
    wanted, here = written.get("bundle", "git", "branch"), git_checkout(root).branch
    filled = tree.get("bundle", "git", "branch")
    if wanted is not None and filled is not None and here is not None and filled.text != here:
        what = f"the target is deployed from the branch {filled.text}, and {here} is checked out"
        problems.bad(wanted, what, todo=f"git switch {filled.text}, or deploy to another target.")


def mode_remarks(written: ConfigNode, mode: str | None, root_path: str, user: User) -> Iterator[Remark]:
    """What a production target should say and does not, for people: with an account its folder goes."""
    if mode != PRODUCTION or user.is_service_principal:
        return
    owner = root_path.removeprefix("/Workspace/Users/").partition("/")[0]
    if root_path.startswith("/Workspace/Users/") and "@" in owner:
        where = written.get("workspace", "root_path") or written
        yield f"workspace.root_path of a production target is a folder of {owner}; /Workspace/Shared is nobody's", where.where
    says = written.get("run_as") is not None or any(found(written, ("permissions", "*")))
    if not says and not _everything_says_who(written):
        where = written.get("targets") or written
        yield "neither run_as nor permissions of the production target say whose it is; it runs as who deployed it last", where.where


def _everything_says_who(tree: ConfigNode) -> bool:
    kinds = (ResourceKind.PIPELINE, ResourceKind.JOB)
    resources = [one for kind in kinds for one in children(tree.get("resources", kind.value)).values()]
    return all(one.get("run_as") or elements(one.get("permissions")) for one in resources)


_NAME_KEYS = {
    "pipelines": ("name",),
    "jobs": ("name",),
    "schemas": ("catalog_name", "name"),
    "volumes": ("catalog_name", "schema_name", "name"),
}
_OWN_SCHEMA = (
    "Give the target a schema of its own: declare it under resources.schemas, which gets the user's prefix, or put"
    " ${workspace.current_user.short_name} into its name. Targets of different workspaces say so with workspace.host."
)

TargetNames = tuple[ConfigNode, Workspace]
"""The tree of a target with all names filled in, and where it lies."""


def refuse_shared_names(mine: TargetNames, other: TargetNames, target: str, problems: Problems) -> None:
    """Note each name and folder that both have; nothing where they lie in workspaces with different addresses.

    `target`: name of the other one. Names of Unity Catalog count without regard to case.
    """
    if mine[1].host and other[1].host and mine[1].host.rstrip("/") != other[1].host.rstrip("/"):
        return
    _refuse_shared_folders(mine, other, target, problems)
    theirs = dict(_resource_names(*other))
    for name, node in _resource_names(*mine):
        if name in theirs:
            what = f"the {name[0]} {'.'.join(name[1:])} of this development target is also that of the target {target!r}"
            problems.bad(node, what, todo="Names of a development target begin with presets.name_prefix; rename the other one.")
    tables = {where for where, _ in _schemas_written(other[0])}
    for where, node in _schemas_written(mine[0]):
        if where in tables:
            what = f"a pipeline of this development target would write its tables to {'.'.join(where)}, which the target {target!r} owns"
            problems.bad(node, what, todo=_OWN_SCHEMA)


def _refuse_shared_folders(mine: TargetNames, other: TargetNames, target: str, problems: Problems) -> None:
    for key in FOLDERS:
        path = getattr(mine[1], key) + "/"
        node = mine[0].get("workspace", key) or mine[0]
        taken = (getattr(other[1], one) + "/" for one in FOLDERS)
        if any(path.startswith(theirs) or theirs.startswith(path) for theirs in taken):
            what = f"workspace.{key} of this development target, {path[:-1]}, meets a folder of the target {target!r}"
            problems.bad(node, what, todo="Give the targets folders of their own.")


def _resource_names(tree: ConfigNode, workspace: Workspace) -> Iterator[tuple[tuple[str, ...], ConfigNode]]:
    """Yield kind and name of everything that a target names, with the node."""
    for kind, fields in _NAME_KEYS.items():
        for resource in children(tree.get("resources", kind)).values():
            parts = [node.text for field in fields if (node := resource.get(field))]
            if len(parts) == len(fields):
                yield (kind[:-1], *(part.lower() if len(fields) > 1 else part for part in parts)), resource
    for dashboard in children(tree.get("resources", "dashboards")).values():
        parent, name = dashboard.get("parent_path"), dashboard.get("display_name")
        if name is not None:
            yield ("dashboard", f"{parent.text.rstrip('/') if parent else workspace.resource_path}/{name.text}"), dashboard


def _schemas_written(tree: ConfigNode) -> Iterator[tuple[tuple[str, str], ConfigNode]]:
    """Where the pipelines of a target write their tables."""
    for pipeline in children(tree.get("resources", "pipelines")).values():
        schema = pipeline.get("schema") or pipeline.get("target")
        if schema is not None:
            catalog = pipeline.get("catalog")
            yield ((catalog.text if catalog else "hive_metastore").lower(), schema.text.lower()), schema
