"""`${…}` in bundle files, such as `${var.catalog}`: how references are filled in. What one means is said by who reads the bundle."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from lakelet.config.yaml_tree import Node, children, elements, plain, scalar

REFERENCE = re.compile(r"\$\{([A-Za-z][\w-]*(?:\.[\w-]+|\[\d+\])+)\}")
_STEP = re.compile(r"[^.\[\]]+")
_IN_WORKSPACE = re.compile(r"/Workspace/?(?=\$\{workspace\.(file|root|resource|state)_path\})")  # those paths begin with it by themselves
_DEPTH = 50  # more references within one another are a circle

Within = tuple[str, ...]
"""The references whose values are being filled in, the outermost first."""


class References:
    """Fills in the references of one bundle.

    Args:
        meaning: the node that a reference stands for, whose own references are open; None: the reference stays as it is written. The second
            argument is the node with the reference.
        circular: is told of a node with a reference that leads to itself, the reference, and the way there. It stays as it is written.
    """

    def __init__(self, meaning: Callable[[str, Node], Node | None], circular: Callable[[Node, str, str], None]) -> None:
        self._meaning, self._circular = meaning, circular
        self._ready: dict[str, Node] = {}

    def filled(self, node: Node, within: Within = ()) -> Node:
        """The tree with each reference replaced by what it stands for. One that is a whole text keeps the type of what it stands for."""
        if isinstance(node.value, dict):
            return replace(node, value={key: self.filled(child, within) for key, child in node.value.items()})
        if isinstance(node.value, list):
            return replace(node, value=[self.filled(item, within) for item in node.value])
        if not isinstance(node.value, str) or "${" not in node.value:
            return node
        return self._filled_text(scalar(_IN_WORKSPACE.sub("", node.value), node), within)

    def _filled_text(self, node: Node, within: Within) -> Node:
        for _ in range(_DEPTH):  # a reference may stand in the name of another one: ${var.${bundle.target}_catalog}
            text = node.value
            whole = REFERENCE.fullmatch(text)
            if whole:
                value = self._value(whole.group(1), node, within)
                if value is None:
                    return node
                single = not isinstance(value.value, (dict, list))
                return replace(value, where=node.where, file=node.file) if single else replace(value, where=node.where)
            after = REFERENCE.sub(lambda match, node=node: self._text(match, node, within), text)  # type: ignore[misc]
            if after == text:
                return node
            node = scalar(after, node)
        return node

    def _text(self, match: re.Match[str], node: Node, within: Within) -> str:
        value = self._value(match.group(1), node, within)
        if value is None:
            return match.group()
        return json.dumps(plain(value)) if isinstance(value.value, (dict, list)) else value.text

    def _value(self, path: str, node: Node, within: Within) -> Node | None:
        """The value of a reference, with its own references filled in."""
        if path in self._ready:
            return self._ready[path]
        if path in within:
            self._circular(node, path, " → ".join([*within[within.index(path) :], path]))
            return None
        found = self._meaning(path, node)
        if found is None:
            return None
        self._ready[path] = filled = self.filled(found, (*within, path))
        return filled


def steps(path: str) -> list[str]:
    """The parts of a reference: `var.tables[0].name` has four."""
    return _STEP.findall(path)


def below(node: Node | None, path: Sequence[str]) -> Node | None:
    """The value at a path of keys and indexes; None where there is none, or it is null."""
    for step in path:
        if node is None:
            return None
        items = elements(node)
        node = children(node).get(step) if not items else items[int(step)] if step.isdigit() and int(step) < len(items) else None
    return None if node is None or node.value is None else node


def field_of(resource: Node, kind: str, path: Sequence[str]) -> Node | None:
    """A field of a resource as a reference names it; None where it is not known before the resource is made.

    Known are the fields that are written, and the `volume_path` of a volume, which its names give.
    """
    if kind == "volumes" and list(path) == ["volume_path"]:
        names = [below(resource, [key]) for key in ("catalog_name", "schema_name", "name")]
        return None if None in names else scalar("/Volumes/" + "/".join(name.text for name in names if name), resource)
    return below(resource, path)


def full_name(resource: Node, kind: str) -> Node | None:
    """The `id` of a schema or volume: its full name. None for other kinds."""
    keys = {"schemas": ("catalog_name", "name"), "volumes": ("catalog_name", "schema_name", "name")}.get(kind, ())
    names = [below(resource, [key]) for key in keys]
    return None if None in names or not names else scalar(".".join(name.text for name in names if name), resource)
