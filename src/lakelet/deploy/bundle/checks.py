"""Checks of a bundle that need no workspace: keys and values outside of resources, what is declared twice, keys that exclude others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lakelet.base.errors import nearest_names
from lakelet.config.bundle_files import LISTS_BY_KEY, TARGET_KEYS, VARIABLE_KEYS, BundleFiles
from lakelet.config.yaml_tree import ConfigNode, Problems, children, elements, found
from lakelet.deploy.bundle.forms import (
    SWITCH,
    TEXT,
    TEXT_BY_NAME,
    TEXTS,
    Form,
    IntegerForm,
    ListForm,
    NamedForm,
    RecordForm,
    checked,
    choice,
    switches,
    texts,
)
from lakelet.deploy.bundle.modes import DEVELOPMENT, PRODUCTION
from lakelet.deploy.bundle.references import LOOKUP_KINDS
from lakelet.deploy.bundle.resource_forms import OTHER_KINDS, RUN_AS, permissions
from lakelet.deploy.desired_state import ResourceKey, ResourceKind

LEVELS = ("CAN_MANAGE", "CAN_RUN", "CAN_VIEW")
"""Permissions of a bundle or target, which each kind of resource has under a name of its own."""

_GIT = RecordForm("git", texts("branch origin_url"))
_BUNDLE = RecordForm(
    "bundle",
    {
        **texts("name uuid cluster_id compute_id databricks_cli_version engine"),
        "git": _GIT,
        "deployment": RecordForm(
            "bundle.deployment", {"fail_on_active_runs": SWITCH, "lock": RecordForm("lock", {"enabled": SWITCH, "force": SWITCH})}
        ),
    },
)
CONNECTION = (
    *("host", "profile", "auth_type", "client_id", "account_id", "workspace_id", "azure_client_id", "azure_environment"),
    *("azure_login_app_id", "azure_tenant_id", "azure_use_msi", "azure_workspace_resource_id", "google_service_account"),
)
"""Keys of `workspace` that say which workspace it is and how to sign in."""
_WORKSPACE = RecordForm(
    "workspace",
    {
        **texts("root_path file_path resource_path state_path artifact_path"),
        **texts(" ".join(CONNECTION)),
        **switches("azure_use_msi experimental_is_unified_host"),  # the second one has had no effect anywhere for long
    },
)
_PRESETS = RecordForm(
    "presets",
    {
        "name_prefix": TEXT,
        "trigger_pause_status": choice("PAUSED", "UNPAUSED"),
        "pipelines_development": SWITCH,
        "tags": TEXT_BY_NAME,
        "jobs_max_concurrent_runs": IntegerForm(1),
        "source_linked_deployment": SWITCH,
        "artifacts_dynamic_version": SWITCH,
    },
)
_ARTIFACT = RecordForm(
    "an artifact",
    {
        "type": choice("whl", "jar"),
        **texts("path build"),
        "executable": choice("bash", "sh", "cmd"),
        "files": ListForm(RecordForm("a file of an artifact", {"source": TEXT}, ("source",))),
        "dynamic_version": SWITCH,
    },
)
_SHARED: dict[str, Form] = {
    "bundle": _BUNDLE,
    "workspace": _WORKSPACE,
    "presets": _PRESETS,
    "permissions": permissions(*LEVELS),
    "run_as": RUN_AS,
    "sync": RecordForm("sync", {"include": TEXTS, "exclude": TEXTS, "paths": TEXTS}),
    "artifacts": NamedForm(_ARTIFACT),
}
_TARGET: dict[str, Form] = {**_SHARED, "mode": choice(DEVELOPMENT, PRODUCTION), "default": SWITCH, "git": _GIT}
_VARIABLE: dict[str, Form] = {"description": TEXT, "type": choice("complex"), "lookup": NamedForm(TEXT)}


def check_bundle(read: BundleFiles, problems: Problems) -> None:
    """Note what does not fit in the sections of a bundle and of all its targets, and what is declared twice. `check_resource` has the rest.

    The files are as they are written; a reference fits everywhere.
    """
    tree = read.tree
    _refuse_repeated_resources(read.parts, problems)
    _refuse_repeated_items(read.base, problems)
    for key, form in _SHARED.items():
        if (node := tree.get(key)) is not None:
            checked(node, form, key, problems)
    for name, target in read.targets.items():
        for key, node in children(target).items():
            if key not in TARGET_KEYS:
                problems.bad(node, f"the target {name!r} has no key {key!r}", nearest=nearest_names(key, TARGET_KEYS))
            elif key in _TARGET and node.value is not None:
                checked(node, _TARGET[key], key, problems)
        _refuse_cluster(target, problems)
    for name, variable in children(tree.get("variables")).items():
        _check_variable(name, variable, problems)
    _refuse_cluster(tree, problems)


def _check_variable(name: str, variable: ConfigNode, problems: Problems) -> None:
    for key, node in children(variable).items():
        if key not in VARIABLE_KEYS:
            problems.bad(node, f"the variable {name!r} has no key {key!r}", nearest=nearest_names(key, VARIABLE_KEYS))
        elif key in _VARIABLE and node.value is not None:
            checked(node, _VARIABLE[key], key, problems)
    for kind, node in children(variable.get("lookup")).items():
        if kind not in LOOKUP_KINDS:
            problems.bad(node, f"a lookup knows no {kind!r}", nearest=nearest_names(kind, LOOKUP_KINDS))


def _refuse_cluster(node: ConfigNode, problems: Problems) -> None:
    """Refuse the cluster of a target, on which all jobs of a development deployment would run."""
    for keys in (("cluster_id",), ("compute_id",), ("bundle", "cluster_id"), ("bundle", "compute_id")):
        section = node.get(*keys)
        if section is not None:
            what = f"{keys[-1]!r} of a target is not supported yet"
            problems.bad(section, what, code="NOT_SUPPORTED_YET", todo="Name the cluster in the tasks, or use serverless compute.")


def check_kinds(tree: ConfigNode, problems: Problems) -> None:
    """Note kinds of resources that do not exist, or that are not deployed from here."""
    known = [kind.value for kind in ResourceKind]
    for kind, node in children(tree.get("resources")).items():
        if kind in OTHER_KINDS and children(node):
            what = f"resources of the kind {kind!r} are not supported yet"
            problems.bad(node, what, code="NOT_SUPPORTED_YET", todo="Deploy this bundle with the Databricks CLI, or take them out.")
        elif kind not in known and kind not in OTHER_KINDS:
            problems.bad(node, f"resources has no kind {kind!r}", nearest=nearest_names(kind, [*known, *OTHER_KINDS]))
        elif kind in known and node.value is not None and not isinstance(node.value, dict):
            problems.bad(node, f"resources.{kind} must be a mapping of keys to resources")
    _refuse_shared_keys(tree, problems)


def _refuse_shared_keys(tree: ConfigNode, problems: Problems) -> None:
    """A key names one resource of a bundle, whatever its kind: `databricks bundle run KEY` finds it by the key alone."""
    first: dict[str, str] = {}
    for kind, group in children(tree.get("resources")).items():
        for key, node in children(group).items():
            if first.setdefault(key, kind) != kind:
                what = f"the key {key!r} is that of {first[key]}.{key} and of {kind}.{key}"
                problems.bad(node, what, todo="Keys are unique in a bundle. Rename one of them, and references to it.")


def _refuse_repeated_resources(parts: Sequence[ConfigNode], problems: Problems) -> None:
    """A resource is declared in one file; `parts`: the trees of the bundle's files."""
    first: dict[tuple[str, str], ConfigNode] = {}
    for part in parts:
        for kind, group in children(part.get("resources")).items():
            for key, node in children(group).items():
                if first.setdefault((kind, key), node) is not node:
                    what = f"the resource {kind}.{key} is declared twice, first in {first[kind, key].where}"
                    problems.bad(node, what, todo="Rename one of them.")


def _refuse_repeated_items(tree: ConfigNode, problems: Problems) -> None:
    """Items with one key are merged when a target brings the second one; in the same list they are a slip."""
    for (kind, field), key in LISTS_BY_KEY.items():
        for name, resource in children(tree.get("resources", kind)).items():
            seen: dict[str, ConfigNode] = {}
            for item in elements(resource.get(field)):
                named = item.get(key)
                if named is not None and seen.setdefault(named.text, named) is not named:
                    what = f"{kind}.{name} has two items of {field} with the {key} {named.text!r}, the first in {seen[named.text].where}"
                    problems.bad(named, what)


_MOST_TAGS = 25
_WITHOUT_SOURCES = ("ingestion_definition", "gateway_definition")
"""Pipelines with one of these have no source files."""


def check_resource(key: ResourceKey, node: ConfigNode, problems: Problems) -> None:
    """Note what does not go together in one resource, references filled in."""
    if len(children(node.get("tags"))) > _MOST_TAGS:
        problems.bad(node.value["tags"], f"{key} has {len(children(node.get('tags')))} tags, and Databricks takes {_MOST_TAGS}")
    if key.kind is ResourceKind.PIPELINE:
        _check_pipeline(key, node, problems)
    elif key.kind is ResourceKind.JOB:
        _check_job(key, node, problems)


def _check_pipeline(key: ResourceKey, node: ConfigNode, problems: Problems) -> None:
    libraries = elements(node.get("libraries"))
    if not libraries and not any(node.get(name) for name in _WITHOUT_SOURCES):
        todo = "For example: libraries: [{glob: {include: ../pipelines/**}}]"
        problems.bad(node.get("libraries") or node, f"{key} has no libraries: nothing says which files it runs", todo=todo)
    globs = [library for library in libraries if library.get("glob")]
    others = [library for library in libraries if library.get("file") or library.get("notebook")]
    if globs and others:
        problems.bad(others[0], f"{key} has a glob beside a file or notebook, which Databricks refuses", todo="Write all of them as globs.")
    serverless, clusters = node.get("serverless"), node.get("clusters")
    if serverless is not None and serverless.value is True and clusters is not None and elements(clusters):
        problems.bad(clusters, f"{key} is serverless and has clusters", todo="Take one of them out.")
    target = node.get("target")
    if target is not None and "." in target.text and "${" not in target.text:
        problems.bad(
            target, f"target of {key} is {target.text!r}: a schema without its catalog is expected", todo="Use catalog and schema."
        )


def _check_job(key: ResourceKey, node: ConfigNode, problems: Problems) -> None:
    tasks = elements(node.get("tasks"))
    named = {one.text for one in found(node, ("tasks", "*", "task_key"))}
    for wanted in found(node, ("tasks", "*", "depends_on", "*", "task_key")):
        if wanted.text not in named:
            problems.bad(wanted, f"{key} has no task {wanted.text!r} to depend on", nearest=nearest_names(wanted.text, named))
    for field, declared in (("environment_key", "environments"), ("job_cluster_key", "job_clusters")):
        known = {one.text for one in found(node, (declared, "*", field))}
        for task in tasks:
            given = task.get(field)
            if given is not None and given.text not in known:
                problems.bad(given, f"{key} has no {given.text!r} among its {declared}", nearest=nearest_names(given.text, known))
    circle = _circle_of_tasks(tasks)
    if circle:
        problems.bad(node.value["tasks"], f"tasks of {key} depend on one another", why=" → ".join(circle))


def _circle_of_tasks(tasks: list[ConfigNode]) -> list[str]:
    """Tasks that wait for one another, the first one again at the end; empty where there are none."""
    from graphlib import CycleError, TopologicalSorter

    graph = {task.value["task_key"].text: list(_dependencies(task)) for task in tasks if task.get("task_key")}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(one) for one in reversed(error.args[1])]
    return []


def _dependencies(task: ConfigNode) -> Iterator[str]:
    yield from (one.text for one in found(task, ("depends_on", "*", "task_key")))
