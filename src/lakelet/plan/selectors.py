"""Selectors of `--select`: names, globs, and directions in the graph. Pure.

`agent*` is a glob, `+name` a dataset with everything it reads, `name+` with everything that reads it; a number beside the plus limits the
steps: `1+name`, `name+2`.
A glob is compared with as many parts of a name as it has. `gold.*` selects the tables of the schema gold, or of the layer gold if there is
no such schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from lakelet.plan.graph import Graph
from lakelet.plan.layers import LAYERS, layers

_FORM = re.compile(r"(?P<up>(?P<up_steps>\d*)\+)?(?P<name>.+?)(?P<down>\+(?P<down_steps>\d*))?")


@dataclass(frozen=True)
class Selector:
    """One text of `--select`. `up`, `down`: how many steps to follow what it reads and what reads it; None: to the end; 0: not at all."""

    name: str
    up: int | None = 0
    down: int | None = 0

    @property
    def is_glob(self) -> bool:
        return any(character in self.name for character in "*?[")

    @property
    def is_plain(self) -> bool:
        """Return whether it is only a name."""
        return not self.is_glob and self.up == 0 and self.down == 0


def parsed(text: str) -> Selector:
    """Read one text. A name in back quotes may contain any character."""
    match = _FORM.fullmatch(text.strip())
    if match is None or match["name"].startswith("`") != match["name"].endswith("`"):
        return Selector(text)
    return Selector(match["name"], _steps(match["up"], match["up_steps"]), _steps(match["down"], match["down_steps"]))


def _steps(direction: str | None, number: str | None) -> int | None:
    if direction is None:
        return 0
    return int(number) if number else None


def matching(glob: str, graph: Graph) -> set[str]:
    """Return the keys of the datasets that match a glob, views included."""
    pattern = glob.lower().split(".")
    found = {key for key in graph.by_key if _matches(key.split("."), pattern)}
    if found or len(pattern) != 2 or pattern[0] not in LAYERS:
        return found
    inputs = {key: [i.key for i in node.inputs] for key, node in graph.by_key.items()}
    layer = layers({key: node.where.file for key, node in graph.by_key.items()}, inputs)
    return {key for key in graph.by_key if layer[key] == pattern[0] and fnmatchcase(key.split(".")[-1], pattern[1])}


def _matches(parts: list[str], pattern: list[str]) -> bool:
    last = parts[-len(pattern) :]
    return len(last) == len(pattern) and all(fnmatchcase(part, one) for part, one in zip(last, pattern, strict=True))


def followed(selector: Selector, keys: Iterable[str], graph: Graph) -> set[str]:
    """Return `keys` and what the directions of the selector add to them."""
    start = set(keys)
    return start | graph.upstream(start, selector.up) | graph.downstream(start, selector.down)


__all__ = ["Selector", "followed", "matching", "parsed"]
