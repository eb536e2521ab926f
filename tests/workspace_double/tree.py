"""The tree of the workspace's objects: folders, files, notebooks, dashboards. No HTTP in here."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, replace
from enum import Enum
from posixpath import dirname

from tests.workspace_double.clock import Clock
from tests.workspace_double.wire import ApiError, invalid, missing


class NodeType(str, Enum):
    DIRECTORY = "DIRECTORY"
    FILE = "FILE"
    NOTEBOOK = "NOTEBOOK"
    DASHBOARD = "DASHBOARD"


@dataclass(frozen=True)
class Node:
    """One object. `resource_id`: what it is called in its own API (a dashboard's id)."""

    path: str
    type: NodeType
    object_id: int
    content: bytes = b""
    language: str | None = None
    created_at: int = 0
    modified_at: int = 0
    resource_id: str = ""


def absolute(path: str) -> str:
    """A path as it is stored: `/Workspace` before it means nothing (facts 1.6), nor does a slash at its end."""
    if not path.startswith("/"):
        raise invalid(f"Path ({path}) doesn't start with '/'")
    parts = [part for part in path.split("/") if part]
    if any(part in (".", "..") for part in parts):
        raise invalid(f"Path ({path}) contains a relative part")
    return "/" + "/".join(parts[1:] if parts[:1] == ["Workspace"] else parts)


def gone(path: str) -> ApiError:
    """Public issue databricks/cli #1822: the text of a path that is not there."""
    return missing(f"Path ({path}) doesn't exist.")


class Tree:
    """Objects by path; `/`, `/Users` and `/Shared` are always there."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ids = iter(range(100_000, 10_000_000))
        self.nodes: dict[str, Node] = {}
        for path in ("/", "/Users", "/Shared"):
            self._put(path, NodeType.DIRECTORY)

    def get(self, path: str) -> Node:
        """The object at a path. Raises 404."""
        try:
            return self.nodes[path]
        except KeyError:
            raise gone(path) from None

    def children(self, path: str) -> list[Node]:
        return [node for key, node in sorted(self.nodes.items()) if key != "/" and dirname(key) == path]

    def below(self, path: str) -> list[Node]:
        """The object and everything below it."""
        return [node for key, node in sorted(self.nodes.items()) if key == path or key.startswith(path.rstrip("/") + "/")]

    def make_folder(self, path: str) -> None:
        """Workspace API 2.0, "Mkdirs": with its parents; RESOURCE_ALREADY_EXISTS where something else lies at a prefix."""
        prefixes = ["/" + "/".join(path.split("/")[1:end]) for end in range(2, path.count("/") + 2)]
        for prefix in [prefix for prefix in prefixes if prefix != "/"]:
            node = self.nodes.get(prefix)
            if node is None:
                self._put(prefix, NodeType.DIRECTORY)
            elif node.type is not NodeType.DIRECTORY:
                raise exists(prefix)

    def write(self, path: str, type: NodeType, content: bytes, *, language: str | None = None, overwrite: bool) -> Node:
        """Write one object (Workspace API 2.0, "Import"): its folder must be there; only with `overwrite` may it be there already."""
        self.folder_of(path)
        old = self.nodes.get(path)
        if old and not overwrite:
            raise exists(path)
        if old and old.type is not type:
            raise invalid(f"Requested node type [{type.value}] is different from the existing node type [{old.type.value}]")
        return self._put(path, type, content, language=language)

    def folder_of(self, path: str) -> None:
        parent = self.nodes.get(dirname(path))
        if parent is None:
            raise missing(f"The parent folder ({dirname(path)}) does not exist.")
        if parent.type is not NodeType.DIRECTORY:
            raise invalid(f"The parent ({dirname(path)}) is not a folder.")

    def put_dashboard(self, path: str, content: bytes, resource_id: str) -> Node:
        return self._put(path, NodeType.DASHBOARD, content, resource_id=resource_id)

    def delete(self, path: str, *, recursive: bool) -> list[Node]:
        """Delete an object, with `recursive` a folder that is not empty (Workspace API 2.0, "Delete"). Returns what is gone."""
        self.get(path)
        if path in ("/", "/Users", "/Shared"):
            raise invalid(f"Folder {path} is protected")
        nodes = self.below(path)
        if len(nodes) > 1 and not recursive:
            raise ApiError(400, "DIRECTORY_NOT_EMPTY", f"Folder ({path}) is not empty")
        for node in nodes:
            del self.nodes[node.path]
        return nodes

    def _put(self, path: str, type: NodeType, content: bytes = b"", *, language: str | None = None, resource_id: str = "") -> Node:
        now, old = self._clock.now(), self.nodes.get(path)
        if old:
            node = replace(old, content=content, language=language, modified_at=now, resource_id=resource_id or old.resource_id)
        else:
            node = Node(path, type, next(self._ids), content, language, now, now, resource_id)
        self.nodes[path] = node
        return node


def exists(path: str) -> ApiError:
    """Workspace API 2.0, "Import" and "Mkdirs": RESOURCE_ALREADY_EXISTS."""
    return ApiError(400, "RESOURCE_ALREADY_EXISTS", f"Path ({path}) already exists.")


class Files(MutableMapping[str, bytes]):
    """The files and notebooks of a workspace as a mapping of paths to bytes, for tests: reading, and changing by hand.

    A path may have `/Workspace` before it. What is written makes its folders; a request would not.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def __getitem__(self, path: str) -> bytes:
        node = self._tree.nodes[absolute(path)]
        if node.type is NodeType.DIRECTORY:
            raise KeyError(path)
        return node.content

    def __setitem__(self, path: str, content: bytes | str) -> None:
        place = absolute(path)
        self._tree.make_folder(dirname(place))
        data = content.encode() if isinstance(content, str) else content
        old = self._tree.nodes.get(place)
        self._tree.write(place, old.type if old else NodeType.FILE, data, language=old.language if old else None, overwrite=True)

    def __delitem__(self, path: str) -> None:
        self[path]
        del self._tree.nodes[absolute(path)]

    def __iter__(self) -> Iterator[str]:
        return iter([path for path, node in sorted(self._tree.nodes.items()) if node.type in (NodeType.FILE, NodeType.NOTEBOOK)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, path: object) -> bool:
        node = self._tree.nodes.get(absolute(path)) if isinstance(path, str) else None
        return node is not None and node.type is not NodeType.DIRECTORY

    def below(self, folder: str) -> dict[str, bytes]:
        """The files below a folder, by their path relative to it."""
        prefix = absolute(folder).rstrip("/") + "/"
        return {path[len(prefix) :]: self[path] for path in self if path.startswith(prefix)}
