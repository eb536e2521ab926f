"""Keys and values of a bundle file other than its resources, and the checks that need no target."""

from __future__ import annotations

from collections.abc import Mapping

from lakelet.base.errors import nearest_names
from lakelet.config.bundle import TARGET_KEYS, VARIABLE_KEYS
from lakelet.config.nodes import children
from lakelet.config.yaml_tree import Node
from lakelet.deploy.bundle.forms import (
    SWITCH,
    TEXT,
    TEXT_BY_NAME,
    TEXTS,
    Form,
    Integer,
    NamedForm,
    RecordForm,
    Several,
    checked,
    choice,
    switches,
    texts,
)
from lakelet.deploy.bundle.modes import DEVELOPMENT, PRODUCTION
from lakelet.deploy.bundle.problems import Problems
from lakelet.deploy.bundle.references import LOOKUP_KINDS
from lakelet.deploy.bundle.resource_forms import OTHER_KINDS, RUN_AS, permissions
from lakelet.deploy.desired import ResourceKind

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
        "jobs_max_concurrent_runs": Integer(1),
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
        "files": Several(RecordForm("a file of an artifact", {"source": TEXT}, ("source",))),
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


def check_bundle(tree: Node, targets: Mapping[str, Node], problems: Problems) -> None:
    """Note what does not fit in the sections of a bundle and of all its targets, resources excepted.

    `tree`: as it is written; a reference fits everywhere.
    """
    for key, form in _SHARED.items():
        if (node := tree.get(key)) is not None:
            checked(node, form, key, problems)
    for name, target in targets.items():
        for key, node in children(target).items():
            if key not in TARGET_KEYS:
                problems.bad(node, f"the target {name!r} has no key {key!r}", nearest=nearest_names(key, TARGET_KEYS))
            elif key in _TARGET and node.value is not None:
                checked(node, _TARGET[key], key, problems)
        _refuse_cluster(target, problems)
    for name, variable in children(tree.get("variables")).items():
        _check_variable(name, variable, problems)
    _refuse_cluster(tree, problems)


def _check_variable(name: str, variable: Node, problems: Problems) -> None:
    for key, node in children(variable).items():
        if key not in VARIABLE_KEYS:
            problems.bad(node, f"the variable {name!r} has no key {key!r}", nearest=nearest_names(key, VARIABLE_KEYS))
        elif key in _VARIABLE and node.value is not None:
            checked(node, _VARIABLE[key], key, problems)
    for kind, node in children(variable.get("lookup")).items():
        if kind not in LOOKUP_KINDS:
            problems.bad(node, f"a lookup knows no {kind!r}", nearest=nearest_names(kind, LOOKUP_KINDS))


def _refuse_cluster(node: Node, problems: Problems) -> None:
    """Refuse the cluster of a target, on which all jobs of a development deployment would run."""
    for keys in (("cluster_id",), ("compute_id",), ("bundle", "cluster_id"), ("bundle", "compute_id")):
        section = node.get(*keys)
        if section is not None:
            what = f"{keys[-1]!r} of a target is not supported yet"
            problems.bad(section, what, code="NOT_SUPPORTED_YET", todo="Name the cluster in the tasks, or use serverless compute.")


def check_kinds(tree: Node, problems: Problems) -> None:
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


def _refuse_shared_keys(tree: Node, problems: Problems) -> None:
    """A key names one resource of a bundle, whatever its kind: `databricks bundle run KEY` finds it by the key alone."""
    first: dict[str, str] = {}
    for kind, group in children(tree.get("resources")).items():
        for key, node in children(group).items():
            if first.setdefault(key, kind) != kind:
                what = f"the key {key!r} is that of {first[key]}.{key} and of {kind}.{key}"
                problems.bad(node, what, todo="Keys are unique in a bundle. Rename one of them, and references to it.")
