"""What a source reads, noted in its state at each start, and moves of its files since (docs/decisions/0064-moved-files.md).

A file of the ledger holds paths as they were when it was written, and how many moves were known then; whoever reads it applies the later
ones. So one small file, written as a whole, is all that changes when a folder is moved. `followed` relates what a source reads now to what
it has read so far.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow.compute as pc

from lakelet.autoloader.discovery.files import files_for
from lakelet.base.errors import LakeletError, unknown_format
from lakelet.base.failpoints import reached
from lakelet.files.moves import Folder, Move, Relocation, is_below, nested, relocation, replaced

FORMAT = 2
"""1: path and pattern for names. 2: an object with the folder, its surroundings, and moves."""
_NOTE = "reads"


@dataclass(frozen=True)
class SourceReads:
    """What a source reads, and read before.

    Attributes:
        path: folder or pattern, inside its store.
        pattern: pattern for the names of files, empty for all.
        folder: the folder before the first wildcard of `path`, with its surroundings.
        moves: moves of the files, oldest first.
        earlier: folders that the source read before, of which nobody has said that their files were moved.
    """

    path: str
    pattern: str
    folder: Folder
    moves: tuple[Move, ...] = ()
    earlier: tuple[Folder, ...] = ()

    @property
    def what(self) -> tuple[str, str, str]:
        """Store, path and pattern for names: two sources that have the same read the same."""
        return self.folder.store, self.path, self.pattern

    def to_json(self) -> str:
        return json.dumps({"format": FORMAT, **asdict(self)})


def noted(state: str) -> SourceReads | None:
    """Return what was noted in the state of a source; None before its first start. Raises CF_STATE_DAMAGED, FORMAT_UNKNOWN."""
    files, root = files_for(state)
    file = f"{root.rstrip('/')}/{_NOTE}"
    try:
        content = files.read(file)
    except FileNotFoundError:
        return None
    try:
        facts: Any = json.loads(content)
        found = facts["format"]
        if found == FORMAT:
            moves = tuple((old, new) for old, new in facts["moves"])
            earlier = tuple(Folder(**one) for one in facts["earlier"])
            return SourceReads(facts["path"], facts["pattern"], Folder(**facts["folder"]), moves, earlier)
    except (ValueError, KeyError, TypeError) as error:
        raise LakeletError("CF_STATE_DAMAGED", f"{file} cannot be read", why=str(error), todo="Do a full refresh of the dataset.") from None
    raise unknown_format(file, found, FORMAT)


def note(state: str, reads: SourceReads) -> None:
    """Write the note as a whole."""
    files, root = files_for(state)
    files.write(f"{root.rstrip('/')}/{_NOTE}", reads.to_json().encode())
    reached("source.noted")


def moved_paths(paths: Any, moves: Sequence[Move]) -> Any:
    """Return an Arrow array of paths after some moves, in their order."""
    for old, new in moves:
        before, after = (folder.rstrip("/") + "/" for folder in (old, new))
        below = pc.starts_with(paths, before)
        if pc.any(below).as_py():
            paths = pc.if_else(below, pc.replace_substring(paths, before, after, max_replacements=1), paths)
    return paths


@dataclass(frozen=True)
class SameNames:
    """known: files of the folder that the ledger knows. there: how many of their relative paths a new file has. sized: with their size."""

    known: int
    there: int
    sized: int


Compare = Callable[[Folder, Folder, Sequence[Move]], SameNames]
"""Compares the files that a source knows below a folder with the others that it finds below a second one."""
Ask = Callable[[Folder, Folder, SameNames], LakeletError]
"""The question whether the files of the second folder are those that were read in the first one."""


@dataclass(frozen=True)
class TrackedReads:
    """What a source reads now, with all moves of its files. `moved`: the move that was not known before."""

    now: SourceReads
    moved: Move | None = None


def followed(before: SourceReads | None, now: SourceReads, compare: Compare, given: Sequence[Move], ask: Ask) -> TrackedReads:
    """Relate what a source reads now to what was noted at its last start. Raises what `ask` makes if only the user can tell.

    `given`: what the user says was moved.
    """
    if before is None:
        return TrackedReads(now)
    found = found_at(before.folder, now.folder, lambda: compare(before.folder, now.folder, before.moves), given)
    new = [found.move] if found.move is not None else []
    new += [move for old in before.earlier for move in given if is_below(old.path, move[0]) and is_below(move[1], now.folder.path)]
    new = [move for move in dict.fromkeys(new) if (move,) != before.moves[-1:]]
    moves = (*before.moves, *new)
    others = [*before.earlier, *([before.folder] if found.elsewhere else [])]
    earlier = tuple(old for old in others if replaced(old.path, new) == old.path and not _is_read_again(now.folder, old))
    for old in earlier:
        if (same := compare(old, now.folder, moves)).there:
            raise ask(old, now.folder, same)
    folder = kept_roots(before.folder, now.folder) if found.move is None else now.folder
    return TrackedReads(replace(now, folder=folder, moves=moves, earlier=earlier), new[0] if new else None)


def found_at(before: Folder, now: Folder, compared: Callable[[], SameNames], given: Sequence[Move]) -> Relocation:
    """Return how two folders relate; files are compared only where that decides."""
    found = relocation(before, now, given)
    if not found.likely:
        return found
    same = compared()
    return replace(found, likely=False) if 0 < same.there == same.sized else Relocation(elsewhere=True)


def kept_roots(before: Folder, now: Folder) -> Folder:
    """The folder with the roots of when it was noted, if it has not moved with them: it may do so later."""
    same = (before.store, before.path) == (now.store, now.path)
    return replace(now, roots=before.roots) if same and any(is_below(now.path, root) for root in before.roots.values()) else now


def _is_read_again(folder: Folder, old: Folder) -> bool:
    """Whether an earlier folder is read again: its files are known by their paths."""
    return folder.store == old.store and nested(folder.path, old.path)
