"""The files of a bundle as one tree, with the deployment target laid over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.config.bundle import (
    BUNDLE_FILES,
    bundle_file,
    choose_target,
    included_files,
    known_top_keys,
    set_variables,
    with_overrides_file,
)
from lakelet.config.bundle_python import python_section, with_python
from lakelet.config.nodes import changed, children, elements, mapping, scalar, with_entries
from lakelet.config.tool_settings import read_tool_settings
from lakelet.config.yaml_tree import Node, Remark, merge, read_yaml, shown_path
from lakelet.deploy.bundle.checkouts import checkout
from lakelet.deploy.bundle.problems import Problems

_OVERLAID = ("artifacts", "bundle", "permissions", "presets", "resources", "sync", "workspace")
"""What a target adds to the bundle key by key, lists by appending."""

_KEYED = {
    ("jobs", "tasks"): "task_key",
    ("jobs", "job_clusters"): "job_cluster_key",
    ("jobs", "environments"): "environment_key",
    ("jobs", "parameters"): "name",
    ("pipelines", "clusters"): "label",
}
"""Lists whose items have a key: an item of the target is laid over the one with the same key."""


@dataclass(frozen=True)
class ReadBundle:
    """A bundle as it is written.

    Attributes:
        root: its folder.
        tree: everything merged, references as they are written.
        target: name of the deployment target; None for a bundle without targets.
        settings: what is written for the target; None without one.
        targets: all targets by name.
        base: the files merged, without a target.
        cwd: files in messages are named relative to it.
        remarks: warnings of the bundle's Python.
    """

    root: Path
    tree: Node
    target: str | None
    settings: Node | None
    targets: Mapping[str, Node]
    base: Node
    cwd: Path
    remarks: tuple[Remark, ...] = ()

    @property
    def mode(self) -> str | None:
        """`development` or `production`, None if the target does not say."""
        node = self.settings.get("mode") if self.settings else None
        return str(node.value) if node else None


def read_bundle(root: Path, target: str | None, *, environ: Mapping[str, str], cwd: Path, problems: Problems) -> ReadBundle:
    """Read the bundle in a folder for one target, the `LAKELET_TARGET` or the default one for None.

    Mistakes that leave the rest readable go to `problems`. Raises CONFIG_INVALID for a folder without a bundle, for a bundle file that is
    not YAML, and for an unknown target.
    """
    file = bundle_file(root)
    if file is None:
        names = ", ".join(BUNDLE_FILES[:2])
        raise LakeletError("CONFIG_INVALID", f"{root} holds no bundle", todo=f"A bundle has a file {names}: lakelet init writes one.")
    base = _merged(file, cwd, problems)
    choices = children(base.get("targets") or base.get("environments"))
    wanted = target or environ.get("LAKELET_TARGET") or read_tool_settings(root, cwd).target
    return _for_target(root, base, choose_target(base, choices, wanted), cwd, problems)


def with_other_target(read: ReadBundle, target: str, problems: Problems) -> ReadBundle:
    """The same bundle for another of its targets."""
    return _for_target(read.root, read.base, target, read.cwd, problems)


def with_resources_of_python(read: ReadBundle, given: Mapping[str, str], problems: Problems) -> ReadBundle:
    """The bundle with what its Python makes and changes; `given`: values of variables that go before those of the files."""
    with problems.collected():
        section = python_section(read.tree)
        if section is not None:
            tree, remarks = with_python(section, read.tree, read.root, read.target, given=given, cwd=read.cwd)
            return replace(read, tree=tree, remarks=remarks)
    return read


def _for_target(root: Path, base: Node, target: str | None, cwd: Path, problems: Problems) -> ReadBundle:
    choices = children(base.get("targets") or base.get("environments"))
    settings = choices[target] if target is not None else None
    tree = _overlaid(base, settings, problems) if settings is not None else base
    with problems.collected():
        tree = with_overrides_file(tree, root, target, cwd)
    return ReadBundle(root, _merged_by_key(tree), target, settings, choices, base, cwd)


def _merged(file: Path, cwd: Path, problems: Problems) -> Node:
    tree = read_yaml(file, shown=shown_path(file, cwd))
    _check_top(tree, problems)
    included: Sequence[Path] = ()
    with problems.collected():
        included = list(included_files(tree, file.parent))
    for extra in included:
        with problems.collected():
            more = read_yaml(extra, shown=shown_path(extra, cwd))
            _check_top(more, problems)
            _refuse_repeated(tree, more, problems)
            tree = merge(tree, more)
    _refuse_repeated_items(tree, problems)
    return tree


def _check_top(tree: Node, problems: Problems) -> None:
    known = known_top_keys(tree)
    for key, child in tree.entries("a bundle file").items():
        if key not in known:
            problems.bad(child, f"a bundle file has no key {key!r}", nearest=nearest_names(key, known))


def _refuse_repeated(tree: Node, more: Node, problems: Problems) -> None:
    for kind, group in children(more.get("resources")).items():
        for key, node in children(group).items():
            first = tree.get("resources", kind, key)
            if first is not None:
                problems.bad(node, f"the resource {kind}.{key} is declared twice, first in {first.where}", todo="Rename one of them.")


def _refuse_repeated_items(tree: Node, problems: Problems) -> None:
    """Items with one key are merged when a target brings the second one; in the same list they are a slip."""
    for (kind, field), key in _KEYED.items():
        for name, resource in children(tree.get("resources", kind)).items():
            seen: dict[str, Node] = {}
            for item in elements(resource.get(field)):
                named = item.get(key)
                if named is not None and seen.setdefault(named.text, named) is not named:
                    what = f"{kind}.{name} has two items of {field} with the {key} {named.text!r}, the first in {seen[named.text].where}"
                    problems.bad(named, what)


def _overlaid(tree: Node, target: Node, problems: Problems) -> Node:
    """The tree with what the target says laid over it. A target's `run_as` replaces the bundle's, its variables are values."""
    over = {key: node for key in _OVERLAID if (node := target.get(key)) is not None}
    merged = merge(tree, mapping(over, target))
    run_as, git = target.get("run_as"), target.get("git")
    if run_as is not None:
        merged = with_entries(merged, run_as=run_as)
    if git is not None:
        bundle = merged.get("bundle") or mapping({}, target)
        merged = with_entries(merged, bundle=with_entries(bundle, git=git))
    for name, node in children(target.get("variables")).items():
        with problems.collected():
            merged = set_variables(merged, {name: node})
    return merged


def _merged_by_key(tree: Node) -> Node:
    for (kind, field), key in _KEYED.items():
        resources = tree.get("resources", kind)
        for name, resource in children(resources).items():
            if len(elements(resource.get(field))) > 1:
                tree = changed(tree, ("resources", kind, name, field), lambda items, key=key: _joined(items, key))  # type: ignore[misc]
    return tree


def _joined(items: Node, key: str) -> Node:
    """The list with items of the same key merged into the first of them."""
    kept: dict[str, Node] = {}
    for at, item in enumerate(elements(items)):
        named = item.get(key)
        name = named.text if named else f"\0{at}"
        kept[name] = merge(kept[name], item) if name in kept else item
    return replace(items, value=list(kept.values()))


def with_defaults(tree: Node, root: Path) -> Node:
    """The tree with the bundle's name and the folders of the workspace filled in, as references to one another."""
    bundle = tree.get("bundle") or mapping({}, tree)
    if bundle.get("name") is None:
        bundle = with_entries(bundle, name=scalar(root.name, tree))
    here = checkout(root)
    git = bundle.get("git") or mapping({}, tree)
    known = {"branch": here.branch, "commit": here.commit, "origin_url": here.origin_url}
    git = with_entries(git, **{key: scalar(text or "", tree) for key, text in known.items() if git.get(key) is None})
    bundle = with_entries(bundle, git=git)
    workspace = tree.get("workspace") or mapping({}, tree)
    for key, text in _FOLDERS.items():
        node = workspace.get(key) or scalar(text, workspace)
        workspace = with_entries(workspace, **{key: scalar(_absolute(node.text), node)})
    return with_entries(tree, bundle=bundle, workspace=workspace)


_FOLDERS = {
    "root_path": "~/.bundle/${bundle.name}/${bundle.target}",
    "file_path": "${workspace.root_path}/files",
    "resource_path": "${workspace.root_path}/resources",
    "state_path": "${workspace.root_path}/state",
    "artifact_path": "${workspace.root_path}/artifacts",
}


def _absolute(path: str) -> str:
    """A folder of the workspace with its full name: `~/x` is the user's, `/Users/…` and `/Shared/…` lie in `/Workspace`."""
    if path == "~" or path.startswith("~/"):
        path = "/Workspace/Users/${workspace.current_user.userName}" + path[1:]
    elif path.startswith(("/Users/", "/Shared/")):
        path = "/Workspace" + path
    return path.rstrip("/") or "/"
