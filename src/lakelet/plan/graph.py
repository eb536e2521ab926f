"""The dataset graph: who reads whom, and in which layer each dataset is. Pure values and traversal, no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lakelet.base.errors import Location
from lakelet.base.names import TableName
from lakelet.language.model import Expectation, Kind


@dataclass(frozen=True)
class GraphNode:
    """One dataset after analysis. `external`: inputs that are not datasets of the pipeline, as text. `columns`: (name, type) pairs."""

    name: TableName
    kind: Kind
    inputs: tuple[TableName, ...]
    external: tuple[str, ...]
    flows: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    expectations: tuple[Expectation, ...]
    where: Location


@dataclass(frozen=True)
class Graph:
    """Nodes in topological order: inputs before readers."""

    nodes: tuple[GraphNode, ...]

    @cached_property
    def by_key(self) -> Mapping[str, GraphNode]:
        return {node.name.key: node for node in self.nodes}

    @cached_property
    def readers(self) -> Mapping[str, tuple[str, ...]]:
        """Keys of the datasets that read each dataset directly."""
        found: dict[str, list[str]] = {node.name.key: [] for node in self.nodes}
        for node in self.nodes:
            for source in node.inputs:
                found[source.key].append(node.name.key)
        return {key: tuple(dict.fromkeys(keys)) for key, keys in found.items()}

    def stored_inputs(self, key: str) -> tuple[str, ...]:
        """Keys of the stored datasets that `key` reads, views resolved to what they read."""
        return stored_inputs(self.by_key, key)

    def views_read(self, key: str) -> tuple[GraphNode, ...]:
        """The views that `key` reads, those that other views read too."""
        found: dict[str, GraphNode] = {}
        for source in self.by_key[key].inputs:
            node = self.by_key[source.key]
            if node.kind is Kind.VIEW and node.name.key not in found:
                found[node.name.key] = node
                found.update((n.name.key, n) for n in self.views_read(node.name.key))
        return tuple(found.values())

    def downstream(self, keys: Iterable[str], steps: int | None = None) -> set[str]:
        """`keys` and everything that reads them, directly or not; with `steps` no further than that."""
        return _closure(keys, self.readers, steps)

    def upstream(self, keys: Iterable[str], steps: int | None = None) -> set[str]:
        """`keys` and every dataset that they read, directly or not; with `steps` no further than that."""
        return _closure(keys, {key: [source.key for source in node.inputs] for key, node in self.by_key.items()}, steps)


def stored_inputs(nodes: Mapping[str, GraphNode], key: str) -> tuple[str, ...]:
    """Keys of the stored datasets that `key` reads, views resolved to what they read. `nodes`: by key, at least those that it reads."""
    found: list[str] = []
    for source in nodes[key].inputs:
        found.extend(stored_inputs(nodes, source.key) if nodes[source.key].kind is Kind.VIEW else [source.key])
    return tuple(dict.fromkeys(found))


def _closure(start: Iterable[str], edges: Mapping[str, Sequence[str]], steps: int | None) -> set[str]:
    found: set[str] = set()
    pending, left = set(start), steps
    while pending:
        found |= pending
        if left == 0:
            break
        left = None if left is None else left - 1
        pending = {following for key in pending for following in edges[key]} - found
    return found


def topological(names: Sequence[str], inputs: Mapping[str, Sequence[str]]) -> list[str]:
    """`names` with inputs first; otherwise in the order given. The graph must have no cycle."""
    done: dict[str, None] = {}

    def visit(name: str) -> None:
        stack = [(name, iter(inputs[name]))]
        while stack:
            current, rest = stack[-1]
            following = next((n for n in rest if n not in done), None)
            if following is None:
                done.setdefault(current)
                stack.pop()
            else:
                stack.append((following, iter(inputs[following])))

    for name in names:
        if name not in done:
            visit(name)
    return list(done)


LAYERS = ("bronze", "silver", "gold")


def declared_layer(name: str, file: str | None) -> str:
    """Return the layer that a dataset's name begins or ends with (`silver_orders`), else its schema's, else that of the folder of its file.

    "" where none of them says one.
    """
    *schema, own = name.lower().split(".")[-2:]
    folders = file.replace("\\", "/").lower().split("/")[:-1] if file else []
    ends = [[words[0], words[-1]] for words in [_words(own)] if len(words) > 1]
    said = [*ends, *map(_words, (*schema, *reversed(folders)))]
    return next((layer for words in said for layer in LAYERS if layer in words), "")


def _words(text: str) -> list[str]:
    return text.replace("-", "_").split("_")


def layers(files: Mapping[str, str | None], inputs: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the layer of each dataset of `files`: the declared one, else by its position in the graph.

    A dataset that reads no other one is bronze; one that reads others and that none reads is gold; any other is silver, but gold if it
    reads gold.
    """
    read = {source for sources in inputs.values() for source in sources}
    depth = depths(list(files), inputs)
    found: dict[str, str] = {}
    for name in sorted(files, key=lambda n: depth[n]):
        sources = [found[i] for i in inputs.get(name, ()) if i in found]
        placed = "bronze" if not sources else "silver" if name in read and "gold" not in sources else "gold"
        found[name] = declared_layer(name, files[name]) or placed
    return found


def depths(names: Sequence[str], inputs: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the number of datasets before each one on the longest path to it. In a cycle the edge that closes it is left out."""
    depth: dict[str, int] = {}

    def visit(start: str) -> None:
        stack, within = [(start, iter(inputs.get(start, ())))], {start}
        while stack:
            name, rest = stack[-1]
            following = next((i for i in rest if i not in depth and i not in within), None)
            if following is not None:
                within.add(following)
                stack.append((following, iter(inputs.get(following, ()))))
                continue
            depth[name] = max((depth[i] + 1 for i in inputs.get(name, ()) if i in depth), default=0)
            stack.pop()

    for name in names:
        if name not in depth:
            visit(name)
    return depth


__all__ = ["LAYERS", "Graph", "GraphNode", "declared_layer", "depths", "layers", "stored_inputs", "topological"]
