"""Where the files of a stream lie after a folder was moved: a prefix of paths, and what replaces it (docs/decisions/0064-moved-files.md).

A path here is that inside its store: absolute on this machine, `bucket/key` behind a URI. No file is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Move = tuple[str, str]
"""A folder and its new path: paths at or below the first lie at or below the second."""

STORAGE, PROJECT = "storage", "project"
"""Names of `Folder.roots`, the ones to be tried first in front: a storage often lies in its project."""


@dataclass(frozen=True)
class Folder:
    """A folder that a stream reads.

    Attributes:
        path: the folder, inside its store.
        store: its store, as `store_name` gives it; empty for this machine.
        name: the folder as the code calls it where `--map` replaces that, else empty.
        roots: paths of the project and the storage at that time.
        shown: the folder as errors and options name it.
    """

    path: str
    store: str = ""
    name: str = ""
    roots: Mapping[str, str] = field(default_factory=dict)
    shown: str = ""


@dataclass(frozen=True)
class Relocation:
    """How a folder that a stream reads now relates to the one that it read before.

    `move`: what became of the files; None if they lie where they were. `likely`: it counts only if the files at the new path are the known
    ones by their sizes. `elsewhere`: no relation is known.
    """

    move: Move | None = None
    likely: bool = False
    elsewhere: bool = False


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def nested(one: str, other: str) -> bool:
    """Return whether one of two folders is or holds the other."""
    return is_below(one, other) or is_below(other, one)


def replaced(path: str, moves: Sequence[Move]) -> str:
    """Return the path after some moves, in their order."""
    for old, new in moves:
        if is_below(path, old):
            path = (new.rstrip("/") + path[len(old.rstrip("/")) :]) or "/"
    return path


def relocation(before: Folder, now: Folder, given: Sequence[Move] = ()) -> Relocation:
    """Relate the folder that a stream reads now to the one that it read before. `given`: what the user says was moved."""
    same_store = before.store == now.store
    for move in (*_moves_given(before, now, given), *_by_name(before, now), *_by_root(before, now)):
        if nested(replaced(before.path, [move]), now.path):
            return Relocation(move)
    if same_store and nested(before.path, now.path):
        return Relocation()
    beside = same_store and _beside(before, now)
    return Relocation((before.path, now.path), likely=True) if beside else Relocation(elsewhere=True)


def _moves_given(before: Folder, now: Folder, given: Sequence[Move]) -> Iterator[Move]:
    """Yield moves of the whole folder, or of one in it that is still read."""
    for old, new in given:
        if (before.path != now.path and is_below(before.path, old)) or (is_below(old, before.path) and is_below(new, now.path)):
            yield old, new


def _by_name(before: Folder, now: Folder) -> Iterator[Move]:
    """Yield the move of a folder that the code calls as before, or one above or below it: `--map` says where it lies."""
    if not before.name or not now.name or not nested(before.name, now.name) or (before.store, before.path) == (now.store, now.path):
        return
    longer, shorter = (before, now) if is_below(before.name, now.name) else (now, before)
    rest = longer.name[len(shorter.name.rstrip("/")) :]
    if not rest or longer.path.endswith(rest):
        at = longer.path[: len(longer.path) - len(rest)]
        yield (at, now.path) if longer is before else (before.path, at)


def _by_root(before: Folder, now: Folder) -> Iterator[Move]:
    """Yield the moves of the project and of the storage that took the folder along."""
    if before.store or before.path == now.path:
        return
    for name in (STORAGE, PROJECT):
        old, new = before.roots.get(name), now.roots.get(name)
        if old and new and old != new and is_below(before.path, old):
            yield old, new


def _beside(before: Folder, now: Folder) -> bool:
    """Whether the folder lies outside the project, where it lay as seen from there, and the project was moved."""
    old, new = before.roots.get(PROJECT), now.roots.get(PROJECT)
    if before.store or not old or not new or old == new:
        return False
    return os.path.relpath(before.path, old) == os.path.relpath(now.path, new)


__all__ = ["PROJECT", "STORAGE", "Folder", "Move", "Relocation", "is_below", "nested", "relocation", "replaced"]
