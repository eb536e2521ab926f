"""Settings of resources as trees of JSON values: fields by path, references to other resources, and no secret in what is kept or shown.

Permissions are one branch of the tree (`permissions.user_name:ann@example.com` = `CAN_VIEW`), so that they are compared as settings are.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lakelet.base.errors import LakeletError
from lakelet.base.redaction import REDACTED, is_secret, redacted
from lakelet.deploy.desired_state import Permission, Resource, ResourceKey, ResourceKind

Tree = Mapping[str, Any]
Path = tuple[str, ...]

PERMISSIONS, DASHBOARD_TEXT = "permissions", "serialized_dashboard"
_IDENTITIES = {"tasks": "task_key", "job_clusters": "job_cluster_key", "environments": "environment_key"}
"""Lists whose items have a name of their own, whatever their order, and the key of that name."""
_REFERENCE = re.compile(r"\$\{resources\.(\w+)\.([^.}]+)\.id\}")
_SECRET_REFERENCE = re.compile(r"\{\{secrets/[^}]+\}\}")
_SECRET_VALUE = re.compile(
    r"\bdapi[0-9a-f]{16,}|\bdose[0-9a-f]{16,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.|\bAKIA[0-9A-Z]{12,}|\bgh[pousr]_\w{20,}|://[^/\s:@]+:[^/\s@]+@"
    r"|\b(password|pwd|accountkey|sharedaccesskey|sig)=[^;&\s]{4,}",
    re.IGNORECASE,
)
_MASKED_SECRET = re.compile(r"\[REDACTED [0-9a-f]{16}\]")
_LONG_TEXT = 2000


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
    _collect_fields(tree, (), found)
    return found


def _collect_fields(value: Any, path: Path, found: dict[Path, Any]) -> None:
    named = _named_items(value, path[-1] if path else "")
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            _collect_fields(item, (*path, key), found)
    elif named:
        for name, item in named.items():
            _collect_fields(item, (*path, f"[{name}]"), found)
    elif path:
        found[path] = value


def _named_items(value: Any, list_name: str) -> dict[str, Any]:
    """The items of a list by their names; nothing for a list without names, or with a name that occurs twice."""
    key = _IDENTITIES.get(list_name)
    if key is None or not isinstance(value, (list, tuple)) or not all(isinstance(item, Mapping) and key in item for item in value):
        return {}
    named = {str(item[key]): item for item in value}
    return named if len(named) == len(value) else {}


def tree_from(leaves: Mapping[Path, Any]) -> dict[str, Any]:
    """The tree that has these fields."""
    tree: dict[str, Any] = {}
    for path, value in leaves.items():
        _put_field(tree, path, value)
    return tree


def path_text(path: Path) -> str:
    """A path as it is shown: `tasks[update].pipeline_task.full_refresh`."""
    return ".".join(path).replace(".[", "[")


def with_field(tree: Tree, path: Path, value: Any) -> dict[str, Any]:
    """A copy of the tree with another value at the path."""
    copy: dict[str, Any] = json.loads(json.dumps(tree))
    _put_field(copy, path, value)
    return copy


def _put_field(tree: dict[str, Any], path: Path, value: Any) -> None:
    node: Any = tree
    for index, part in enumerate(path[:-1]):
        if isinstance(node, list):
            node = _item_of_list(node, path[index - 1], part[1:-1])
            continue
        into_list = path[index + 1].startswith("[") and part in _IDENTITIES
        if not isinstance(node.get(part), list if into_list else dict):
            node[part] = [] if into_list else {}
        node = node[part]
    node[path[-1]] = value


def _item_of_list(items: list[Any], list_name: str, name: str) -> Any:
    """The item of a list with this name; a new one where there is none."""
    key = _IDENTITIES[list_name]
    for item in items:
        if str(item.get(key)) == name:
            return item
    items.append({key: name})
    return items[-1]


def without_field(tree: Tree, path: Path) -> dict[str, Any]:
    """A copy of the tree without what is at the path, and without branches that this leaves empty."""
    leaves = fields(tree)
    if path not in leaves:
        return json.loads(json.dumps(tree))  # type: ignore[no-any-return]
    copy: dict[str, Any] = json.loads(json.dumps(tree))
    _cut_field(copy, path)
    return copy


def _cut_field(node: Any, path: Path, list_name: str = "") -> None:
    """Take the field out of a tree that has it."""
    if isinstance(node, list):
        item = _item_of_list(node, list_name, path[0][1:-1])
        _cut_field(item, path[1:])
        if not item:
            node.remove(item)
        return
    if len(path) > 1:
        _cut_field(node[path[0]], path[1:], path[0])
        if node[path[0]]:
            return
    del node[path[0]]


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

    def note_reference(_: str, text: str) -> str:
        found.update(ResourceKey(ResourceKind(kind), name) for kind, name in _REFERENCE.findall(text))
        return text

    mapped(tree, note_reference)
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
    if not text or text.lower() in ("true", "false") or _MASKED_SECRET.fullmatch(text):
        return False
    if _SECRET_VALUE.search(text) or redacted(text) != text:
        return True
    return is_secret(key) and not _SECRET_REFERENCE.fullmatch(text) and not _REFERENCE.fullmatch(text)


def _digest(text: str, salt: str) -> str:
    return hmac.new(salt.encode(), text.encode(), hashlib.sha256).hexdigest()[:16]


def has_mask(value: Any) -> bool:
    """Whether a secret that is not known is in a value."""
    return bool(_MASKED_SECRET.search(json.dumps(value)))


def as_found(tree: Tree) -> dict[str, Any]:
    """The tree with digests in place of long texts and dashboards: enough to see that one changed.

    A dashboard's digest is that of its meaning: what the workspace adds to its text when it stores it is left out.
    """

    def cut(key: str, text: str) -> str:
        if key != DASHBOARD_TEXT and len(text) <= _LONG_TEXT:
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
        if len(text) <= _LONG_TEXT and name != DASHBOARD_TEXT:
            return _MASKED_SECRET.sub(REDACTED, text)
        digest = as_found({name: text})[name] if not text.startswith("[sha256 ") else text
        return f"{len(text):,} characters {digest}" if digest is not text else text

    return mapped(value, show, key)
