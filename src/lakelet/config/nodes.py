"""Small steps on the trees that bundle files are read into."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from lakelet.config.yaml_tree import Node


def scalar(value: Any, like: Node) -> Node:
    """A single value that is written where another node is."""
    return replace(like, value=value, text=str(value).lower() if isinstance(value, bool) else str(value))


def mapping(value: Mapping[str, Node], like: Node) -> Node:
    """A mapping that is written where another node is."""
    return replace(like, value=dict(value), text="")


def children(node: Node | None) -> Mapping[str, Node]:
    """The entries of a mapping; nothing for any other value."""
    return node.value if node is not None and isinstance(node.value, dict) else {}


def elements(node: Node | None) -> list[Node]:
    """The items of a list; nothing for any other value."""
    return node.value if node is not None and isinstance(node.value, list) else []


def with_entries(node: Node, **entries: Node) -> Node:
    """The mapping with these entries instead of its own."""
    return replace(node, value={**children(node), **entries})


def without(node: Node, *keys: str) -> Node:
    """The mapping without these keys."""
    return replace(node, value={key: child for key, child in children(node).items() if key not in keys})


def changed(node: Node, keys: tuple[str, ...], change: Callable[[Node], Node]) -> Node:
    """The tree with the value below the keys changed; `*` stands for each item of a list. Unchanged where there is none."""
    if not keys:
        return node if node.value is None else change(node)
    first, *rest = keys
    if first == "*":
        return replace(node, value=[changed(item, tuple(rest), change) for item in node.value]) if isinstance(node.value, list) else node
    child = children(node).get(first)
    if child is None:
        return node
    after = changed(child, tuple(rest), change)
    return node if after is child else with_entries(node, **{first: after})


def found(node: Node, keys: tuple[str, ...]) -> Iterator[Node]:
    """The values below the keys; `*` stands for each item of a list."""
    if not keys:
        if node.value is not None:
            yield node
        return
    first, *rest = keys
    below = elements(node) if first == "*" else [child] if (child := children(node).get(first)) is not None else []
    for one in below:
        yield from found(one, tuple(rest))


def plain(node: Node) -> Any:
    """The tree as JSON values, without what is null. A date is the text that was written."""
    if isinstance(node.value, dict):
        return {key: plain(child) for key, child in node.value.items() if child.value is not None}
    if isinstance(node.value, list):
        return [plain(item) for item in node.value if item.value is not None]
    return node.value if isinstance(node.value, (str, bool, int, float)) else node.text
