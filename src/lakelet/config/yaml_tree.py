"""YAML as a tree that remembers where each value was written.

Relative paths stay relative to the file they are written in, so every node carries its file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError, Location, nearest_names

if TYPE_CHECKING:
    import yaml

Remark = tuple[str, Location]
"""What has no effect or was left out, and where it is written."""
_MERGE_TAG = "tag:yaml.org,2002:merge"


@dataclass(frozen=True)
class Node:
    """One value of a bundle file.

    `value` is a dict of nodes by key, a list of nodes, or a scalar; `text` is the scalar as written (`1.10` stays `1.10`).
    """

    value: Any
    where: Location
    file: Path
    text: str = ""

    def get(self, *keys: str) -> Node | None:
        """The node below the keys; None when one is absent or null."""
        node: Node | None = self
        for key in keys:
            if node is None or not isinstance(node.value, dict):
                return None
            node = node.value.get(key)
        return None if node is None or node.value is None else node

    def entries(self, what: str) -> Mapping[str, Node]:
        """The keys of a mapping; an absent value counts as empty. Raises CONFIG_INVALID for another kind of value."""
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            raise self.bad(f"{what} must be a mapping of keys to values")
        return self.value

    def items(self, what: str) -> list[Node]:
        """The elements of a list; raises CONFIG_INVALID for another kind of value."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self.bad(f"{what} must be a list")
        return self.value

    def bad(self, what: str, **more: Any) -> LakeletError:
        """A CONFIG_INVALID error that points at this node."""
        return LakeletError("CONFIG_INVALID", what, where=self.where, **more)

    def refuse_unknown(self, known: frozenset[str], what: str) -> None:
        """Raise CONFIG_INVALID for the first key that is not in `known`."""
        for key, child in self.entries(what).items():
            if key not in known:
                raise child.bad(f"{what} has no key {key!r}", nearest=nearest_names(key, known))


def read_yaml(path: Path, *, shown: str) -> Node:
    """Read one YAML file; `shown` is its name in messages. Raises CONFIG_INVALID with the line of a syntax error or a repeated key."""
    import yaml  # here, because most commands read no bundle

    try:
        text = path.read_text(encoding="utf-8")
        try:
            loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
            root = loader.get_single_node()
        except yaml.MarkedYAMLError:
            loader = yaml.SafeLoader(text)  # slower, with the better line and words
            root = loader.get_single_node()
        if root is None:
            return Node({}, Location(shown, 1), path)
        return _convert(loader, root, path, shown)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = Location(shown, mark.line + 1 if mark else 1)
        raise LakeletError("CONFIG_INVALID", f"{shown} is not valid YAML", where=where, why=error.problem) from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise LakeletError("CONFIG_INVALID", f"{shown} cannot be read", where=Location(shown, 1), why=str(error)) from error


def _convert(loader: yaml.SafeLoader, node: Any, path: Path, shown: str) -> Node:
    where = Location(shown, node.start_mark.line + 1)
    if node.id == "mapping":
        _refuse_repeated_keys(node, shown)
        loader.flatten_mapping(node)
        children: dict[str, Node] = {}
        for key, value in node.value:
            child = _convert(loader, value, path, shown)
            children[str(key.value)] = replace(child, where=Location(shown, key.start_mark.line + 1))
        return Node(children, where, path)
    if node.id == "sequence":
        return Node([_convert(loader, item, path, shown) for item in node.value], where, path)
    value = loader.construct_object(node)
    return Node(value, where, path, text=str(node.value))


def _refuse_repeated_keys(node: yaml.MappingNode, shown: str) -> None:
    seen: dict[str, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if key.id != "scalar":
            todo = "Put text that begins with { or [ into quotes, such as '{{ name }}' of a template."
            raise LakeletError("CONFIG_INVALID", "a key is a mapping or a list here", where=Location(shown, line), todo=todo)
        if key.tag != _MERGE_TAG and key.value in seen:
            what = f"the key {key.value!r} is written twice, first in line {seen[key.value]}"
            raise LakeletError("CONFIG_INVALID", what, where=Location(shown, line))
        seen[str(key.value)] = line


def merge(base: Node, over: Node) -> Node:
    """Return `base` merged with `over` as the bundle format does it: mappings key by key, lists appended, anything else replaced."""
    if isinstance(base.value, dict) and isinstance(over.value, dict):
        merged = dict(base.value)
        for key, child in over.value.items():
            merged[key] = merge(merged[key], child) if key in merged else child
        return replace(base, value=merged)
    if isinstance(base.value, list) and isinstance(over.value, list):
        return replace(base, value=[*base.value, *over.value])
    return base if over.value is None else over


def shown_path(path: Path, cwd: Path) -> str:
    """The path as a user in `cwd` would name it: relative when it lies below, else absolute."""
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)
