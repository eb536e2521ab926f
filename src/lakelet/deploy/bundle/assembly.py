"""From the files of a bundle to what a deployment of one target should leave in the workspace, permissions and `run_as` included."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lakelet.base.errors import DefinitionErrors, LakeletError, nearest_names
from lakelet.config.bundle_files import BUNDLE_FILES, BundleFiles, bundle_file, read_bundle_files, variables_of
from lakelet.config.tool_settings import read_tool_settings
from lakelet.config.yaml_tree import ConfigNode, Problems, children, elements, names_beside, plain, without
from lakelet.deploy.bundle.artifacts import artifacts_of, built
from lakelet.deploy.bundle.checks import CONNECTION, check_bundle, check_kinds, check_resource
from lakelet.deploy.bundle.coverage import BundleFolder, check_coverage
from lakelet.deploy.bundle.forms import checked
from lakelet.deploy.bundle.modes import DEVELOPMENT, check_mode, mode_remarks, presets_of, refuse_shared_names, with_presets
from lakelet.deploy.bundle.paths import PipelineSources, WorkspacePaths
from lakelet.deploy.bundle.platform_differences import platform_differences
from lakelet.deploy.bundle.references import DeploymentReferences, Lookup, with_defaults
from lakelet.deploy.bundle.resource_forms import RESOURCES
from lakelet.deploy.bundle.uploads import synced_files, with_digests
from lakelet.deploy.desired_state import FOLDERS, PRINCIPALS, DesiredState, Permission, Resource, ResourceKey, ResourceKind, User, Workspace

_BEFORE = ("bundle", "var", "variables", "workspace")
"""First words of the references that are known before resources have their names."""

_NOBODY = User("nobody", "nobody")
_JOB_DEFAULTS: Mapping[str, Any] = {"format": "MULTI_TASK", "edit_mode": "UI_LOCKED", "queue": {"enabled": True}}


def desired_state(
    root: Path,
    target: str | None,
    user: User,
    *,
    environ: Mapping[str, str],
    cwd: Path,
    variables: Mapping[str, str] | None = None,
    lookup: Lookup | None = None,
) -> DesiredState:
    """Return what a deployment should leave in the workspace. The artifacts of the bundle are built on the way.

    Args:
        root: the folder that holds `databricks.yml`.
        target: deployment target; None for `LAKELET_TARGET`, else that of `[tool.lakelet]`, else the default one.
        user: who deploys.
        environ: for `BUNDLE_VAR_<name>`.
        cwd: files in messages are named relative to it.
        variables: values by name, which win over all others.
        lookup: finds ids of what the workspace has by a name, for variables with `lookup`. May be called for those that are used only.

    Raises DefinitionErrors with every error that the files, the resources and the mode of the target have, or with that of an artifact;
    nothing is uploaded then.
    """
    problems = Problems()
    try:
        return _desired(root, target, user, environ, cwd, variables or {}, lookup, problems)
    except LakeletError as error:
        problems.add(error)
        raise problems.error() from error


def workspace_of(root: Path, target: str | None, *, environ: Mapping[str, str], cwd: Path) -> dict[str, str]:
    """Return what `workspace` of a target says of the workspace and of signing in (`CONNECTION`): known before the user is.

    Raises DefinitionErrors for a bundle that cannot be read.
    """
    problems = Problems()
    try:
        read = _read_files(root, target, environ, cwd, problems)
        tree, references = _before_resources(read, _NOBODY, environ, Problems())
        said = {key: node for key in CONNECTION if (node := tree.get("workspace", key)) is not None}
        texts = {key: references.filled(node, _BEFORE).text for key, node in said.items()}
        return {key: text for key, text in texts.items() if text.lower() != "false"}  # a switch that is off
    except LakeletError as error:
        problems.add(error)
        raise problems.error() from error


@dataclass(frozen=True)
class TargetLocation:
    """Where the deployment of a target lies, whatever its resources are."""

    bundle: str
    target: str
    workspace: Workspace


def location_of(root: Path, target: str | None, user: User, *, environ: Mapping[str, str], cwd: Path) -> TargetLocation:
    """Return where a user's deployment of a target lies; the resources are not read.

    Raises DefinitionErrors for a bundle that cannot be read.
    """
    problems = Problems()
    try:
        read = _read_files(root, target, environ, cwd, problems)
        tree, references = _before_resources(read, user, environ, problems)
        sections = {key: references.filled(node, _BEFORE) for key, node in children(tree).items() if key in ("bundle", "workspace")}
        problems.raise_all()
        found = ConfigNode(sections, tree.where, tree.file)
        return TargetLocation(found.value["bundle"].value["name"].text, read.target or "default", _workspace(found))
    except DefinitionErrors:
        raise
    except LakeletError as error:
        problems.add(error)
        raise problems.error() from error


def _read_files(root: Path, target: str | None, environ: Mapping[str, str], cwd: Path, problems: Problems) -> BundleFiles:
    """The bundle in a folder for a target, None for the `LAKELET_TARGET`, that of `[tool.lakelet]` or the default one.

    Raises CONFIG_INVALID for a folder without a bundle.
    """
    root = Path(os.path.abspath(root))
    file = bundle_file(root)
    if file is None:
        names = ", ".join(BUNDLE_FILES[:2])
        raise LakeletError("CONFIG_INVALID", f"{root} holds no bundle", todo=f"A bundle has a file {names}: lakelet init writes one.")
    wanted = target or environ.get("LAKELET_TARGET") or read_tool_settings(root, cwd).target
    return read_bundle_files(file, wanted, cwd=cwd, problems=problems)


def _before_resources(
    read: BundleFiles, user: User, environ: Mapping[str, str], problems: Problems
) -> tuple[ConfigNode, DeploymentReferences]:
    """The tree with its defaults, and the references of it that need neither resources nor values of the command line."""
    tree = with_defaults(read.tree, read.root)
    given = _given({}, environ)
    return tree, DeploymentReferences(tree, target=read.target, user=user, given=given, lookup=None, problems=problems)


def _given(variables: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    return {**variables_of(environ), **variables}


@dataclass(frozen=True)
class _Stage:
    """A bundle whose references are filled in, those to ids excepted, and whose resources have their names."""

    read: BundleFiles
    tree: ConfigNode
    workspace: Workspace


def _desired(
    root: Path,
    target: str | None,
    user: User,
    environ: Mapping[str, str],
    cwd: Path,
    variables: Mapping[str, str],
    lookup: Lookup | None,
    problems: Problems,
) -> DesiredState:
    read = _read_files(root, target, environ, cwd, problems)
    check_bundle(read, problems)
    given = _given(variables, environ)
    with problems.collected():
        read = read.with_python(given)
    check_kinds(read.tree, problems)
    stage = _staged(read, user, given, lookup, problems)
    if read.mode == DEVELOPMENT:
        _refuse_what_others_have(stage, user, given, problems)
    synced = synced_files(read.root, stage.tree.get("sync"), problems)
    resources, files = _resources(stage, synced.base, _built(stage, problems), problems)
    synced = replace(synced, files=tuple(sorted({*synced.files, *files.packages})))
    remarks = check_coverage(files.pipelines, BundleFolder.of(read.root, synced, cwd), files.of_jobs, problems)
    pipelines = {key: node for key in files.pipelines if (node := stage.tree.get("resources", key.kind.value, key.name))}
    remarks += platform_differences(read.root, cwd, pipelines, (file for one in files.pipelines.values() for file in one.files), problems)
    remarks += [*mode_remarks(read.tree, read.mode, stage.workspace.root_path, user), *read.remarks]
    problems.raise_all()
    return DesiredState(
        bundle=stage.tree.value["bundle"].value["name"].text,
        target=read.target or "default",
        development=read.mode == DEVELOPMENT,
        workspace=stage.workspace,
        resources=resources,
        files=with_digests(synced),
        remarks=tuple(dict.fromkeys(remarks)),
    )


def _built(stage: _Stage, problems: Problems) -> dict[Path, Path]:
    """Build the artifacts, if the bundle has no mistake so far. Return each of their files with the file that is deployed instead of it."""
    preset = stage.tree.get("presets", "artifacts_dynamic_version")
    found = artifacts_of(stage.tree.get("artifacts"), stage.read.root, dynamic=preset is not None and preset.value is True)
    if found:
        problems.raise_all()
    return built(found, stage.read.root / ".databricks" / "bundle" / (stage.read.target or "default") / "patched_wheels")


def _staged(read: BundleFiles, user: User, given: Mapping[str, str], lookup: Lookup | None, problems: Problems) -> _Stage:
    written = with_defaults(read.tree, read.root)
    references = DeploymentReferences(written, target=read.target, user=user, given=given, lookup=lookup, problems=problems)
    sections = {
        key: references.filled(node, _BEFORE)
        for key, node in children(written).items()
        if key in ("artifacts", "bundle", "permissions", "presets", "resources", "run_as", "sync", "workspace")
    }
    tree = ConfigNode(sections, written.where, written.file)
    check_mode(read.tree, tree, read.mode, user, read.root, problems)
    tree = with_presets(tree, presets_of(tree, read.mode, user))
    resources = tree.get("resources")
    if resources is not None:
        tree = ConfigNode({**sections, "resources": references.over(tree).filled(resources, ("resources",))}, tree.where, tree.file)
    return _Stage(read, tree, _workspace(tree))


def _refuse_what_others_have(stage: _Stage, user: User, given: Mapping[str, str], problems: Problems) -> None:
    """Note each name of a development deployment that another target of the bundle has, too."""
    for name, settings in stage.read.targets.items():
        mode = settings.get("mode")
        if name != stage.read.target and not (mode and mode.value == DEVELOPMENT):
            ignored = Problems()  # those of the other target are reported when it is deployed
            read = stage.read.for_target(name, ignored)
            with ignored.collected():
                read = read.with_python(given)
            other = _staged(read, user, given, lambda kind, text: f"{kind} {text}", ignored)
            refuse_shared_names((stage.tree, stage.workspace), (other.tree, other.workspace), name, problems)


def _workspace(tree: ConfigNode) -> Workspace:
    def text(key: str) -> str | None:
        node = tree.get("workspace", key)
        return node.text if node else None

    folders = {key: (text(key) or "/").rstrip("/") for key in FOLDERS}
    return Workspace(text("host"), text("profile"), **folders)


@dataclass
class _LocalFiles:
    """What resources take from this machine: each pipeline, the tasks of jobs, and packages of both."""

    pipelines: dict[ResourceKey, PipelineSources] = field(default_factory=dict)
    of_jobs: list[Path] = field(default_factory=list)
    packages: frozenset[Path] = frozenset()


def _resources(
    stage: _Stage, base: Path, of_artifacts: Mapping[Path, Path], problems: Problems
) -> tuple[tuple[Resource, ...], _LocalFiles]:
    paths = WorkspacePaths(base, stage.workspace.file_path, problems, of_artifacts)
    of_bundle = [plain(entry) for entry in elements(stage.tree.get("permissions")) if isinstance(entry.value, dict)]
    run_as = stage.tree.get("run_as")
    found: list[Resource] = []
    files = _LocalFiles()
    for kind in ResourceKind:
        for name, node in children(stage.tree.get("resources", kind.value)).items():
            key = ResourceKey(kind, name)
            if kind is ResourceKind.PIPELINE:
                node, files.pipelines[key] = paths.in_pipeline(node)
            elif kind is ResourceKind.JOB:
                node, run = paths.in_job(node)
                files.of_jobs += run
            elif kind is ResourceKind.DASHBOARD:
                node = _with_dashboard_file(node, problems)
            check_resource(key, node, problems)
            body = checked(node, RESOURCES[kind], str(key), problems)
            if isinstance(body, dict) and not problems:
                found.append(_resource(key, node, body, of_bundle, plain(run_as) if run_as else None, stage.workspace))
    files.packages = frozenset(paths.packages)
    return tuple(found), files


def _resource(
    key: ResourceKey, node: ConfigNode, body: dict[str, Any], of_bundle: list[Any], run_as: Any, workspace: Workspace
) -> Resource:
    lifecycle = body.pop("lifecycle", None) or {}
    own, grants = body.pop("permissions", None), body.pop("grants", None)
    body.pop("cascade_on_destroy", None)  # what is deleted with a pipeline is said by --with-data alone
    if key.kind is ResourceKind.JOB:
        body = {**_JOB_DEFAULTS, **body}
    elif key.kind is ResourceKind.DASHBOARD:
        body = {"parent_path": workspace.resource_path, "embed_credentials": False, **body}
    elif key.kind is ResourceKind.VOLUME:
        body = {"volume_type": "MANAGED", **body}
    return Resource(
        key=key,
        settings=with_run_as(key.kind, body, run_as),
        permissions=permissions_of(key.kind, _entries(own), of_bundle, _entries(grants)),
        where=node.where,
        prevent_destroy=lifecycle.get("prevent_destroy") is True if isinstance(lifecycle, dict) else False,
        start=lifecycle.get("started") if isinstance(lifecycle, dict) else None,
    )


def _entries(value: Any) -> list[Any]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _with_dashboard_file(node: ConfigNode, problems: Problems) -> ConfigNode:
    """The dashboard with the text of its file instead of the file's path."""
    file = node.get("file_path")
    if file is None:
        return node
    path = Path(os.path.normpath(file.file.parent / file.text))
    try:
        text = path.read_text(encoding="utf-8")
        json.loads(text)
    except FileNotFoundError:
        problems.bad(file, f"the dashboard file {file.text!r} does not exist", nearest=nearest_names(path.name, names_beside(path)))
        text = "{}"
    except (OSError, ValueError) as error:
        problems.add(LakeletError("CONFIG_INVALID", f"the dashboard file {file.text!r} is not JSON", where=file.where, why=str(error)))
        text = "{}"
    like = without(node, "file_path")
    return ConfigNode({**like.value, "serialized_dashboard": ConfigNode(text, file.where, file.file, text)}, node.where, node.file)


_LEVELS: Mapping[ResourceKind, Mapping[str, str]] = {
    ResourceKind.PIPELINE: {"CAN_MANAGE": "CAN_MANAGE", "CAN_RUN": "CAN_RUN", "CAN_VIEW": "CAN_VIEW"},
    ResourceKind.JOB: {"CAN_MANAGE": "CAN_MANAGE", "CAN_RUN": "CAN_MANAGE_RUN", "CAN_VIEW": "CAN_VIEW"},
    ResourceKind.DASHBOARD: {"CAN_MANAGE": "CAN_MANAGE", "CAN_RUN": "CAN_RUN", "CAN_VIEW": "CAN_READ"},
}
"""What a permission of the bundle is called on a resource."""

_RUNNING = (ResourceKind.PIPELINE, ResourceKind.JOB)


def permissions_of(kind: ResourceKind, own: Any, of_bundle: Iterable[Mapping[str, str]], grants: Any) -> tuple[Permission, ...]:
    """The permissions of one resource: its own, then those of the bundle for whom it does not name.

    A grant on a schema or volume is one permission for each privilege, `principal_kind` being `principal`.
    """
    found = [one for entry in own or () if (one := _permission(entry, entry.get("level", "")))]
    named = {(one.principal_kind, one.principal) for one in found}
    levels = _LEVELS.get(kind, {})
    for entry in of_bundle:
        one = _permission(entry, levels.get(entry.get("level", ""), ""))
        if one and one.level and (one.principal_kind, one.principal) not in named:
            found.append(one)
    for grant in grants or ():
        found += [Permission(privilege, "principal", grant.get("principal", "")) for privilege in grant.get("privileges", ())]
    return tuple(dict.fromkeys(found))


def _permission(entry: Mapping[str, str], level: str) -> Permission | None:
    return next((Permission(level, kind, entry[kind]) for kind in PRINCIPALS if kind in entry), None)


def with_run_as(kind: ResourceKind, settings: Mapping[str, Any], run_as: Mapping[str, str] | None) -> dict[str, Any]:
    """The settings of a job or pipeline with the `run_as` of the bundle, where it has none of its own."""
    if run_as and kind in _RUNNING and "run_as" not in settings:
        return {**settings, "run_as": dict(run_as)}
    return dict(settings)
