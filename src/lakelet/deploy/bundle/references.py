"""What `${…}` means in a deployment: variables, the bundle and its Git checkout, the workspace and its user, fields of other resources.

Facts of Git are read from its files, so that no `git` is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.redaction import redacted
from lakelet.config.yaml_tree import (
    ConfigNode,
    Problems,
    References,
    Within,
    below,
    children,
    field_of,
    mapping,
    scalar,
    steps,
    with_entries,
)
from lakelet.deploy.desired_state import ResourceKind, User

_USER = "workspace.current_user"

Lookup = Callable[[str, str], str]
"""Finds the id of what a workspace has under a name: (kind, name) → id. The kinds are those of `lookup` of a variable."""


class DeploymentReferences:
    """Fills in references, in two rounds.

    The first knows variables, bundle and workspace; the second, when presets have given resources their names, the resources. What is
    only known when a resource is there, its `id`, stays as text. References of any other kind belong to others and stay, too.
    """

    def __init__(
        self, tree: ConfigNode, *, target: str | None, user: User, given: Mapping[str, str], lookup: Lookup | None, problems: Problems
    ) -> None:
        self._tree, self._user, self._given, self._lookup, self._problems = tree, user, given, lookup, problems
        self._target = target or "default"
        self._of_heads: dict[frozenset[str], References] = {}

    def over(self, tree: ConfigNode) -> DeploymentReferences:
        """The same for another state of the tree."""
        return DeploymentReferences(
            tree, target=self._target, user=self._user, given=self._given, lookup=self._lookup, problems=self._problems
        )

    def filled(self, node: ConfigNode, heads: Iterable[str], within: Within = ()) -> ConfigNode:
        """The tree with each reference that begins with one of `heads` replaced by what it stands for."""
        wanted = frozenset(heads)
        if wanted not in self._of_heads:
            self._of_heads[wanted] = References(
                lambda path, at: self._found(path, at) if path.split(".", 1)[0] in wanted else None, self._circular
            )
        return self._of_heads[wanted].filled(node, within)

    def _circular(self, node: ConfigNode, path: str, circle: str) -> None:
        self._problems.bad(node, f"${{{path}}} refers to itself", why=circle)

    def _found(self, path: str, node: ConfigNode) -> ConfigNode | None:
        """Return what a reference stands for; None where it stays open or its error has been noted."""
        head, *rest = steps(path)
        if head in ("var", "variables"):
            return self._variable(rest[:1] + rest[2:] if head == "variables" and rest[1:2] == ["value"] else rest, node)
        if head == "resources":
            return self._resource(rest, node)
        if path.startswith(_USER):
            return self._of_user(path, node)
        if path in ("bundle.target", "bundle.environment"):
            return scalar(self._target, node)
        found = below(self._tree.get(head), rest)
        if found is None:
            known = [f"{head}.{key}" for key in children(self._tree.get(head))]
            known += _OF_USER if head == "workspace" else ["bundle.target"] if head == "bundle" else []
            self._problems.bad(node, f"${{{path}}} has no value", nearest=nearest_names(path, known))
        return found

    def _of_user(self, path: str, node: ConfigNode) -> ConfigNode | None:
        name = path.removeprefix(_USER).lstrip(".")
        values = {
            "userName": self._user.user_name,
            "short_name": self._user.short_name,
            "domain_friendly_name": re.sub(r"\W", "_", self._user.user_name),
            "displayName": self._user.display_name or self._user.user_name,
            "id": self._user.id,
        }
        if name not in values:
            self._problems.bad(node, f"${{{path}}} has no value", nearest=nearest_names(path, _OF_USER))
            return None
        return scalar(values[name], node)

    def _variable(self, rest: list[str], node: ConfigNode) -> ConfigNode | None:
        variables = children(self._tree.get("variables"))
        name = rest[0] if rest else ""
        if name not in variables:
            self._problems.bad(node, f"the variable {name!r} is not declared", nearest=nearest_names(name, variables))
            return None
        value = self._value_of(name, variables[name], node)
        if value is None:
            return None
        found = below(value, rest[1:])
        if found is None:
            self._problems.bad(
                node, f"the variable {name!r} has no {'.'.join(rest[1:])!r}", nearest=nearest_names(rest[-1], children(value))
            )
        return found

    def _value_of(self, name: str, definition: ConfigNode, node: ConfigNode) -> ConfigNode | None:
        if name in self._given:
            return scalar(self._given[name], definition)
        for key in ("value", "default"):
            if (value := children(definition).get(key)) is not None and value.value is not None:
                return value
        wanted = children(definition.get("lookup"))
        if len(wanted) == 1:
            kind, text = next(iter(wanted.items()))
            return self._looked_up(kind, self.filled(text, ("var", "variables", "bundle", "workspace"), (f"var.{name}",)), definition)
        todo = f"Give it one: --var {name}=…, BUNDLE_VAR_{name}, or a default."
        self._problems.bad(node, f"the variable {name!r} has no value", todo=todo)
        return None

    def _looked_up(self, kind: str, name: ConfigNode, definition: ConfigNode) -> ConfigNode | None:
        if kind not in LOOKUP_KINDS:
            self._problems.bad(name, f"nothing of the kind {kind!r} can be looked up", nearest=nearest_names(kind, LOOKUP_KINDS))
        elif self._lookup is None:
            what = f"the {kind} {name.text!r} is looked up in a workspace, and there is none here"
            self._problems.bad(definition, what, todo="Give the variable a value: --var or BUNDLE_VAR_….")
        else:
            try:
                return scalar(self._lookup(kind, name.text), definition)
            except LakeletError as error:
                self._problems.bad(definition, error.what, code=error.code, why=error.why, nearest=error.nearest, todo=error.todo)
        return None

    def _resource(self, rest: list[str], node: ConfigNode) -> ConfigNode | None:
        resources = self._tree.get("resources")
        path = ".".join(rest)
        if len(rest) < 3:
            self._problems.bad(
                node, f"${{resources.{path}}} names no field of a resource", todo="For example: ${resources.pipelines.shop.id}"
            )
            return None
        kind, key, *field = rest
        resource = resources.get(kind, key) if resources else None
        if resource is None:
            known = [f"{one}.{name}" for one, group in children(resources).items() for name in children(group)]
            what = f"the bundle declares no resource {kind}.{key}"
            self._problems.bad(node, what, nearest=nearest_names(f"{kind}.{key}", known))
            return None
        if field == ["id"] or kind not in {one.value for one in ResourceKind}:
            return None  # other kinds are refused where they are declared
        found = field_of(resource, kind, field)
        if found is None:
            what = f"{kind}.{key} has no {'.'.join(field)!r} before it is deployed"
            self._problems.bad(node, what, nearest=nearest_names(field[-1], ["id", *children(resource)]))
        return found


_OF_USER = [f"{_USER}.{name}" for name in ("userName", "short_name", "domain_friendly_name", "displayName", "id")]

LOOKUP_KINDS = frozenset(
    (
        *("alert", "cluster", "cluster_policy", "dashboard", "instance_pool", "job", "metastore", "notification_destination", "pipeline"),
        *("query", "service_principal", "warehouse"),
    )
)
"""What a variable may look up by name."""


def with_defaults(tree: ConfigNode, root: Path) -> ConfigNode:
    """The tree with the bundle's name and the folders of the workspace filled in, as references to one another."""
    bundle = tree.get("bundle") or mapping({}, tree)
    if bundle.get("name") is None:
        bundle = with_entries(bundle, name=scalar(root.name, tree))
    here = git_checkout(root)
    git = bundle.get("git") or mapping({}, tree)
    known = {"branch": here.branch, "commit": here.commit, "origin_url": here.origin_url}
    git = with_entries(git, **{key: scalar(text or "", tree) for key, text in known.items() if git.get(key) is None})
    bundle = with_entries(bundle, git=git)
    workspace = tree.get("workspace") or mapping({}, tree)
    for key, text in _FOLDERS.items():
        node = workspace.get(key) or scalar(text, workspace)
        workspace = with_entries(workspace, **{key: scalar(_workspace_folder(node.text), node)})
    return with_entries(tree, bundle=bundle, workspace=workspace)


_FOLDERS = {
    "root_path": "~/.bundle/${bundle.name}/${bundle.target}",
    "file_path": "${workspace.root_path}/files",
    "resource_path": "${workspace.root_path}/resources",
    "state_path": "${workspace.root_path}/state",
    "artifact_path": "${workspace.root_path}/artifacts",
}


def _workspace_folder(path: str) -> str:
    """A folder of the workspace with its full name: `~/x` is the user's, `/Users/…` and `/Shared/…` lie in `/Workspace`."""
    if path == "~" or path.startswith("~/"):
        path = "/Workspace/Users/${workspace.current_user.userName}" + path[1:]
    elif path.startswith(("/Users/", "/Shared/")):
        path = "/Workspace" + path
    return path.rstrip("/") or "/"


_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_ORIGIN = re.compile(r'\[remote "origin"\][^\[]*?^\s*url\s*=\s*(\S+)', re.MULTILINE)
_PASSWORD = re.compile(r"//[^/@]*@")  # a token may stand before the host


@dataclass(frozen=True)
class GitCheckout:
    """The branch that is checked out, its commit, the address of the remote `origin`; None where Git does not know."""

    branch: str | None = None
    commit: str | None = None
    origin_url: str | None = None


def git_checkout(folder: Path) -> GitCheckout:
    """The state of the repository that a folder lies in; nothing outside of one."""
    git = next((one / ".git" for one in (folder, *folder.parents) if (one / ".git").exists()), None)
    if git is not None and git.is_file():  # a worktree or a submodule
        git = (git.parent / _git_file(git).removeprefix("gitdir:").strip()).resolve()
    head = _git_file(git / "HEAD") if git is not None else ""
    if git is None:
        return GitCheckout()
    shared = (git / _git_file(git / "commondir")).resolve() if (git / "commondir").is_file() else git
    remote = _ORIGIN.search(_git_file(shared / "config"))
    origin = redacted(_PASSWORD.sub("//", remote[1])) if remote else None
    if not head.startswith("ref:"):
        return GitCheckout(None, head if _COMMIT.fullmatch(head) else None, origin)
    ref = head.removeprefix("ref:").strip()
    packed = {name: commit for commit, _, name in (line.partition(" ") for line in _git_file(shared / "packed-refs").splitlines())}
    commit = _git_file(git / ref) or _git_file(shared / ref) or packed.get(ref, "")
    return GitCheckout(ref.removeprefix("refs/heads/"), commit if _COMMIT.fullmatch(commit) else None, origin)


def _git_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
