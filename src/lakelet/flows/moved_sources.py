"""What a file source of a flow reads now, related to what it has read so far (docs/decisions/0064-moved-files.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lakelet.autoloader.discovery.globs import fixed_folder
from lakelet.autoloader.spec import SourceSpec
from lakelet.autoloader.state.reads import Reads
from lakelet.autoloader.state.same_names import SameNames
from lakelet.base.errors import LakeletError
from lakelet.config.path_map import argument
from lakelet.files.moves import PROJECT, STORAGE, Folder, Move, Relocation, is_below, nested, relocation, replaced
from lakelet.files.remote import path_in_store, scheme_of
from lakelet.language.model import Flow
from lakelet.spark.names.outside import active_map
from lakelet.storage.root import Storage

SOURCE_MOVED = "SOURCE_MOVED"
_PATTERNS = frozenset({"pathglobfilter", "filenamepattern"})
_ONE_SPELLING = {"file": "", "s3": "s3a", "s3n": "s3a"}

Compare = Callable[[Folder, Folder, Sequence[Move]], SameNames]
"""Compares the files that a source knows below a folder with the others that it finds below a second one."""


@dataclass(frozen=True)
class Followed:
    """What a source reads now, with all moves of its files. `moved`: the move that was not known before."""

    now: Reads
    moved: Move | None = None


def folder_of(location: str, storage: Storage) -> Folder:
    """Return the folder before the first wildcard of a path or URI, and its surroundings."""
    scheme, paths = scheme_of(location) or "", active_map()
    roots = {PROJECT: paths.root or "", STORAGE: "" if scheme_of(str(storage.root)) else str(storage.root)}
    store, path = _ONE_SPELLING.get(scheme, scheme), fixed_folder(path_in_store(location))
    shown = fixed_folder(location) if store else path
    return Folder(path, store, paths.name_of(shown), {name: root for name, root in roots.items() if root}, shown)


def reads_of(spec: SourceSpec, storage: Storage) -> Reads:
    """Return what a file source reads."""
    pattern = next((value for key, value in sorted(spec.options.items()) if key.lower() in _PATTERNS), "")
    return Reads(path_in_store(spec.path), pattern, folder_of(spec.path, storage))


def followed(flow: Flow, before: Reads | None, now: Reads, compare: Compare) -> Followed:
    """Relate what a source reads now to what was noted at its last start. Raises SOURCE_MOVED if only the user can tell."""
    if before is None:
        return Followed(now)
    found = found_at(before.folder, now.folder, lambda: compare(before.folder, now.folder, before.moves))
    new = [found.move] if found.move is not None else []
    new += [move for old in before.earlier for move in told_moves() if is_below(old.path, move[0]) and is_below(move[1], now.folder.path)]
    new = [move for move in dict.fromkeys(new) if (move,) != before.moves[-1:]]
    moves = (*before.moves, *new)
    others = [*before.earlier, *([before.folder] if found.elsewhere else [])]
    earlier = tuple(old for old in others if replaced(old.path, new) == old.path and not _holds(now.folder, old))
    for old in earlier:
        if (same := compare(old, now.folder, moves)).there:
            raise moved_or_other(flow, old, now.folder, same)
    folder = kept_roots(before.folder, now.folder) if found.move is None else now.folder
    return Followed(replace(now, folder=folder, moves=moves, earlier=earlier), new[0] if new else None)


def found_at(before: Folder, now: Folder, compared: Callable[[], SameNames]) -> Relocation:
    """Return how two folders relate; files are compared only where that decides."""
    found = relocation(before, now, told_moves())
    if not found.likely:
        return found
    same = compared()
    return replace(found, likely=False) if 0 < same.there == same.sized else Relocation(elsewhere=True)


def kept_roots(before: Folder, now: Folder) -> Folder:
    """The folder with the roots of when it was noted, if it has not moved with them: it may do so later."""
    same = (before.store, before.path) == (now.store, now.path)
    return replace(now, roots=before.roots) if same and any(is_below(now.path, root) for root in before.roots.values()) else now


def told_moves() -> tuple[Move, ...]:
    """Return what `--moved` says, as paths inside their stores."""
    return tuple((path_in_store(old), path_in_store(new)) for old, new in active_map().moved)


def moved_or_other(flow: Flow, old: Folder, new: Folder, same: SameNames) -> LakeletError:
    """Return the question whether another folder has the files that a stream has read, with the commands that answer it."""
    return LakeletError(
        "SOURCE_MOVED",
        f"it has read {old.shown} so far and is to read {new.shown}, where {same.there:,} of the {same.known:,} files that it has read "
        f"lie under the same relative path",
        dataset=str(flow.target),
        where=flow.where,
        why=f"{same.sized:,} of them have the size that was read. The same files would come twice; others would be missing if they were "
        "taken for the same",
        todo=f"The same files in a new place: lakelet run --moved {argument(f'{old.shown}={new.shown}')}\n"
        f"Other files, whose rows come to those that are there: lakelet run --reset-checkpoint {flow.name}\n"
        f"Other files, in place of the rows that are there: lakelet run --full-refresh {flow.target}",
    )


def _holds(folder: Folder, old: Folder) -> bool:
    """Whether an earlier folder is read again: its files are known by their paths."""
    return folder.store == old.store and nested(folder.path, old.path)


__all__ = ["SOURCE_MOVED", "Followed", "folder_of", "followed", "found_at", "kept_roots", "moved_or_other", "reads_of", "told_moves"]
