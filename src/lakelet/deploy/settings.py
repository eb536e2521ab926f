"""Settings of resources as trees of JSON values: fields by path, references to other resources, and no secret in what is kept or shown.

Permissions are one branch of the tree (`permissions.user_name:ann@example.com` = `CAN_VIEW`), so that they are compared as settings are.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.base.redaction import REDACTED, is_secret, redacted
from lakelet.deploy.desired import Permission, Resource, ResourceKey, ResourceKind

Tree = Mapping[str, Any]
Path = tuple[str, ...]

PERMISSIONS, DASHBOARD_TEXT = "permissions", "serialized_dashboard"
_IDENTITIES = ("task_key", "job_cluster_key", "environment_key")
"""Keys that name the items of a list, whatever their order."""
_REFERENCE = re.compile(r"\$\{resources\.(\w+)\.([^.}]+)\.id\}")
_SECRET_REFERENCE = re.compile(r"\{\{secrets/[^}]+\}\}")
_SECRET_VALUE = re.compile(
    r"\bdapi[0-9a-f]{16,}|\bdose[0-9a-f]{16,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.|\bAKIA[0-9A-Z]{12,}|\bgh[pousr]_\w{20,}|://[^/\s:@]+:[^/\s@]+@"
    r"|\b(password|pwd|accountkey|sharedaccesskey|sig)=[^;&\s]{4,}",
    re.IGNORECASE,
)
_MASK = re.compile(r"\[REDACTED [0-9a-f]{16}\]")
_LONG = 2000


def tree_of(resource: Resource) -> dict[str, Any]:
    """The settings and permissions that a resource should have, as one tree; references stay as text."""
    return {**resource.settings, **permissions_tree(resource.permissions)}


def permissions_tree(permissions: Iterable[Permission]) -> dict[str, Any]:
    """The branch of the tree for these grants; nothing for none. Several levels of one principal are joined by commas."""
    levels: dict[str, list[str]] = {}
    for one in permissions:
        levels.setdefault(f"{one.principal_kind}:{one.principal}", []).append(one.level)
    return {PERMISSIONS: {who: ", ".join(sorted(set(said))) for who, said in sorted(levels.items())}} if levels else {}


def permissions_of(tree: Tree) -> tuple[Permission, ...]:
    """The grants of a tree's branch."""
    found = []
    for who, levels in tree.get(PERMISSIONS, {}).items():
        kind, _, principal = who.partition(":")
        found += [Permission(level, kind, principal) for level in levels.split(", ")]
    return tuple(found)


def without_permissions(tree: Tree) -> dict[str, Any]:
    """The tree as the body of a request: settings alone."""
    return {key: value for key, value in tree.items() if key != PERMISSIONS}


def fields(tree: Tree) -> dict[Path, Any]:
    """Every leaf by its path. Lists are leaves, but those whose items have a name of their own (`tasks[update].timeout_seconds`)."""
    found: dict[Path, Any] = {}
    _collect(tree, (), found)
    return found


def _collect(value: Any, path: Path, found: dict[Path, Any]) -> None:
    named = _named_items(value)
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            _collect(item, (*path, key), found)
    elif named:
        for name, item in named.items():
            _collect(item, (*path, f"[{name}]"), found)
    elif path:
        found[path] = value


def _named_items(value: Any) -> dict[str, Any]:
    """The items of a list by their names; nothing for a list without names, or with a name that occurs twice."""
    if not isinstance(value, (list, tuple)) or not value or not all(isinstance(item, Mapping) for item in value):
        return {}
    for key in _IDENTITIES:
        names = [str(item[key]) for item in value if key in item]
        if len(names) == len(value) == len(set(names)):
            return dict(zip(names, value, strict=True))
    return {}


def path_text(path: Path) -> str:
    """A path as it is shown: `tasks[update].pipeline_task.full_refresh`."""
    return ".".join(path).replace(".[", "[")


def with_field(tree: Tree, path: Path, value: Any) -> dict[str, Any]:
    """A copy of the tree with another value at the path."""
    copy: dict[str, Any] = json.loads(json.dumps(tree))
    node: Any = copy
    for part, following in pairwise(path):
        node = _child(node, part, make=not following.startswith("["))
    if isinstance(node, list):
        _child(node, path[-1], make=True)
    else:
        node[path[-1]] = value
    return copy


def without_field(tree: Tree, path: Path) -> dict[str, Any]:
    """A copy of the tree without what is at the path, and without branches that this leaves empty."""
    copy: dict[str, Any] = json.loads(json.dumps(tree))
    nodes: list[Any] = [copy]
    for part in path[:-1]:
        named = _named_items(nodes[-1])
        child = named.get(part[1:-1]) if named else nodes[-1].get(part) if isinstance(nodes[-1], dict) else None
        if child is None:
            return copy
        nodes.append(child)
    for part, node in zip(reversed(path), reversed(nodes), strict=True):
        if isinstance(node, dict):
            node.pop(part, None)
            if node:
                break
        else:
            node[:] = [item for item in node if item]
    return copy


def _child(node: Any, part: str, *, make: bool) -> Any:
    if isinstance(node, list):
        found = _named_items(node).get(part[1:-1])
        if found is None:
            found = {_IDENTITIES[0]: part[1:-1]}
            node.append(found)
        return found
    if not isinstance(node.get(part), (dict, list)):
        node[part] = {} if make else []
    return node[part]


def mapped(value: Any, change: Callable[[str, str], Any], key: str = "") -> Any:
    """The tree with `change(key, text)` in place of every text; `key` is that of the innermost object it belongs to."""
    if isinstance(value, Mapping):
        return {name: mapped(item, change, name) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mapped(item, change, key) for item in value]
    return change(key, value) if isinstance(value, str) else value


def referred(tree: Tree) -> frozenset[ResourceKey]:
    """The resources whose ids the tree asks for (`${resources.pipelines.x.id}`)."""
    found: set[ResourceKey] = set()

    def look(_: str, text: str) -> str:
        found.update(ResourceKey(ResourceKind(kind), name) for kind, name in _REFERENCE.findall(text))
        return text

    mapped(tree, look)
    return frozenset(found)


def resolved(tree: Tree, ids: Mapping[ResourceKey, str]) -> dict[str, Any]:
    """The tree with ids in place of references; those without an id stay as text."""

    def put(_: str, text: str) -> str:
        return _REFERENCE.sub(lambda m: ids.get(ResourceKey(ResourceKind(m[1]), m[2]), m[0]), text)

    return dict(mapped(tree, put))


def masked(tree: Tree, salt: str) -> dict[str, Any]:
    """The tree with a keyed digest in place of each value that looks like a secret, so that a change of it is seen and it is not."""

    def mask(key: str, text: str) -> str:
        return f"[REDACTED {_digest(text, salt)}]" if _looks_secret(key, text) else text

    return dict(mapped(tree, mask))


def in_order(resources: Iterable[Resource]) -> list[Resource]:
    """The resources so that each follows those whose ids it asks for. Raises CONFIG_INVALID where they ask for each other in a circle."""
    left, done = list(resources), list[Resource]()
    while left:
        waiting = {resource.key for resource in left}
        ready = [resource for resource in left if not referred(resource.settings) & waiting - {resource.key}]
        if not ready:
            names = ", ".join(str(resource.key) for resource in left)
            raise LakeletError("CONFIG_INVALID", f"resources refer to each other in a circle: {names}", where=left[0].where)
        done.append(ready[0])
        left.remove(ready[0])
    return done


def _looks_secret(key: str, text: str) -> bool:
    if not text or text.lower() in ("true", "false") or _MASK.fullmatch(text):
        return False
    if _SECRET_VALUE.search(text) or redacted(text) != text:
        return True
    return is_secret(key) and not _SECRET_REFERENCE.fullmatch(text) and not _REFERENCE.fullmatch(text)


def _digest(text: str, salt: str) -> str:
    return hmac.new(salt.encode(), text.encode(), hashlib.sha256).hexdigest()[:16]


def is_masked(value: Any) -> bool:
    """Whether a value stands for a secret that is not known."""
    return isinstance(value, str) and bool(_MASK.fullmatch(value))


def as_found(tree: Tree) -> dict[str, Any]:
    """The tree with digests in place of long texts and dashboards: enough to see that one changed.

    A dashboard's digest is that of its meaning: what the workspace adds to its text when it stores it is left out.
    """

    def cut(key: str, text: str) -> str:
        if key != DASHBOARD_TEXT and len(text) <= _LONG:
            return text
        return f"[sha256 {hashlib.sha256((_meaning(text) if key == DASHBOARD_TEXT else text).encode()).hexdigest()[:16]}]"

    return dict(mapped(tree, cut))


def _meaning(text: str) -> str:
    """The text of a dashboard in one form: keys in order, no defaults of pages, no catalog and schema of datasets."""
    try:
        document = json.loads(text)
        for page in document.get("pages", []):
            if page.get("pageType") == "PAGE_TYPE_CANVAS":
                del page["pageType"]
        for dataset in document.get("datasets", []):
            dataset.pop("catalog", None)
            dataset.pop("schema", None)
        return json.dumps(document, sort_keys=True)
    except (ValueError, AttributeError, TypeError):
        return text.strip()


def shown(value: Any, key: str = "") -> Any:
    """The value of a field as a plan shows it: secrets without their digests, long texts as length and digest."""

    def show(name: str, text: str) -> str:
        if len(text) <= _LONG and name != DASHBOARD_TEXT:
            return _MASK.sub(REDACTED, text)
        digest = as_found({name: text})[name] if not text.startswith("[sha256 ") else text
        return f"{len(text):,} characters {digest}" if digest is not text else text

    return mapped(value, show, key)
