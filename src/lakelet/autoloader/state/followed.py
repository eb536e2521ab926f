"""What a file source reads now, related to what it has read so far (docs/decisions/0064-moved-files.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lakelet.autoloader.state.reads import SourceReads
from lakelet.autoloader.state.same_names import SameNames
from lakelet.base.errors import LakeletError
from lakelet.files.moves import Folder, Move, Relocation, is_below, nested, relocation, replaced

Compare = Callable[[Folder, Folder, Sequence[Move]], SameNames]
"""Compares the files that a source knows below a folder with the others that it finds below a second one."""
Ask = Callable[[Folder, Folder, SameNames], LakeletError]
"""The question whether the files of the second folder are those that were read in the first one."""


@dataclass(frozen=True)
class Followed:
    """What a source reads now, with all moves of its files. `moved`: the move that was not known before."""

    now: SourceReads
    moved: Move | None = None


def followed(before: SourceReads | None, now: SourceReads, compare: Compare, told: Sequence[Move], ask: Ask) -> Followed:
    """Relate what a source reads now to what was noted at its last start. Raises what `ask` makes if only the user can tell.

    `told`: what the user says was moved.
    """
    if before is None:
        return Followed(now)
    found = found_at(before.folder, now.folder, lambda: compare(before.folder, now.folder, before.moves), told)
    new = [found.move] if found.move is not None else []
    new += [move for old in before.earlier for move in told if is_below(old.path, move[0]) and is_below(move[1], now.folder.path)]
    new = [move for move in dict.fromkeys(new) if (move,) != before.moves[-1:]]
    moves = (*before.moves, *new)
    others = [*before.earlier, *([before.folder] if found.elsewhere else [])]
    earlier = tuple(old for old in others if replaced(old.path, new) == old.path and not _holds(now.folder, old))
    for old in earlier:
        if (same := compare(old, now.folder, moves)).there:
            raise ask(old, now.folder, same)
    folder = kept_roots(before.folder, now.folder) if found.move is None else now.folder
    return Followed(replace(now, folder=folder, moves=moves, earlier=earlier), new[0] if new else None)


def found_at(before: Folder, now: Folder, compared: Callable[[], SameNames], told: Sequence[Move]) -> Relocation:
    """Return how two folders relate; files are compared only where that decides."""
    found = relocation(before, now, told)
    if not found.likely:
        return found
    same = compared()
    return replace(found, likely=False) if 0 < same.there == same.sized else Relocation(elsewhere=True)


def kept_roots(before: Folder, now: Folder) -> Folder:
    """The folder with the roots of when it was noted, if it has not moved with them: it may do so later."""
    same = (before.store, before.path) == (now.store, now.path)
    return replace(now, roots=before.roots) if same and any(is_below(now.path, root) for root in before.roots.values()) else now


def _holds(folder: Folder, old: Folder) -> bool:
    """Whether an earlier folder is read again: its files are known by their paths."""
    return folder.store == old.store and nested(folder.path, old.path)


__all__ = ["Ask", "Compare", "Followed", "followed", "found_at", "kept_roots"]
