"""What a file source of a flow reads now, related to what it has read so far (docs/decisions/0064-moved-files.md)."""

from __future__ import annotations

from lakelet.autoloader.discovery.globs import fixed_folder
from lakelet.autoloader.spec import SourceSpec, names_pattern
from lakelet.autoloader.state.source_moves import Compare, Followed, SameNames, SourceReads, followed
from lakelet.base.errors import LakeletError
from lakelet.config.path_map import argument
from lakelet.files.moves import PROJECT, STORAGE, Folder, Move
from lakelet.files.remote import one_spelling, path_in_store, scheme_of
from lakelet.language.model import Flow
from lakelet.spark.names.outside import active_map
from lakelet.storage.root import Storage

SOURCE_MOVED = "SOURCE_MOVED"


def folder_of(location: str, storage: Storage) -> Folder:
    """Return the folder before the first wildcard of a path or URI, and its surroundings."""
    scheme, paths = scheme_of(location) or "", active_map()
    roots = {PROJECT: paths.root or "", STORAGE: "" if scheme_of(str(storage.root)) else str(storage.root)}
    store, path = one_spelling(scheme), fixed_folder(path_in_store(location))
    shown = fixed_folder(location) if store else path
    return Folder(path, store, paths.name_of(shown), {name: root for name, root in roots.items() if root}, shown)


def reads_of(spec: SourceSpec, storage: Storage) -> SourceReads:
    """Return what a file source reads."""
    return SourceReads(path_in_store(spec.path), names_pattern(spec), folder_of(spec.path, storage))


def followed_by(flow: Flow, before: SourceReads | None, now: SourceReads, compare: Compare) -> Followed:
    """Relate what a source of a flow reads now to what was noted at its last start. Raises SOURCE_MOVED if only the user can tell."""
    return followed(before, now, compare, told_moves(), lambda old, new, same: moved_or_other(flow, old, new, same))


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


__all__ = ["SOURCE_MOVED", "folder_of", "followed_by", "moved_or_other", "reads_of", "told_moves"]
