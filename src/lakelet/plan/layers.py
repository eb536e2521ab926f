"""Layers of a pipeline's datasets: bronze, silver, gold. Pure: names, files and inputs in, layers out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


__all__ = ["LAYERS", "declared_layer", "depths", "layers"]
