"""The file sources of flows: opened with their state, and what one reads now related to what it has read so far.

In: a `SourceSpec` that a flow's function gave. Out: an `AutoLoaderSource`; where its folder has moved, the question to the user
(docs/decisions/0064-moved-files.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from lakelet.autoloader import AutoLoaderSource
from lakelet.autoloader.discovery.path_patterns import fixed_folder
from lakelet.autoloader.session_settings import source_settings
from lakelet.autoloader.source_spec import Columns, PendingFiles, SourceSpec, names_pattern
from lakelet.autoloader.state.source_moves import SameNames, SourceReads, TrackedReads, followed, noted
from lakelet.base.errors import LakeletError
from lakelet.config.path_map import argument
from lakelet.files.moves import PROJECT, STORAGE, Folder, Move
from lakelet.files.remote import path_in_store, store_name
from lakelet.files.stores import scheme_of
from lakelet.language.model import Flow
from lakelet.spark.names.from_json import JsonSchemas
from lakelet.spark.names.outside import active_map
from lakelet.spark.session_clones import UpdateSession
from lakelet.storage.root import Storage

SOURCE_MOVED = "SOURCE_MOVED"


class FileSources:
    """Opens the cloudFiles sources of flows; keeps for an update the inferred columns, the moves, and the schemas of `from_json`."""

    def __init__(self, spark: UpdateSession, storage: Storage) -> None:
        self._spark, self._storage = spark, storage
        self._inferred: dict[tuple[str, str], Columns] = {}
        self._watched: dict[str, AutoLoaderSource] = {}
        self._followed: dict[str, TrackedReads] = {}
        self.moves: set[Move] = set()
        """Moves that the sources of flows know of."""
        self.json_schemas = JsonSchemas(storage)

    def open(self, flow: Flow, number: int, spec: SourceSpec, *, dry: bool) -> AutoLoaderSource:
        """A source of a flow with its state; with `dry` nothing is written.

        What a dry analysis inferred is kept and used for the first schema version, so that the files are sampled once.
        """
        state = self._storage.source_state(flow.target, flow.name, number)
        confs = source_settings(self._spark)
        key = (str(state), repr((spec.path, sorted(spec.options.items()), sorted(confs.items()))))
        if dry and not (state / "_schemas").exists() and not (state / "ledger").exists():
            source = AutoLoaderSource.open(spec, state=None, confs=confs, seed=self._inferred.get(key))
            self._inferred[key] = source.columns()
            return source
        return AutoLoaderSource.open(spec, state=str(state), confs=confs, seed=self._inferred.get(key))

    def pending(self, flow: Flow, number: int, spec: SourceSpec, offset: str | None) -> PendingFiles:
        """What a source would read beyond a Spark offset. Nothing is written; a source that has run before is opened once for all calls."""
        state = self._storage.source_state(flow.target, flow.name, number)
        has_run = (state / "ledger").exists()
        source = self._watched.get(str(state)) or self.open(flow, number, spec, dry=True)
        if has_run:
            self._watched[str(state)] = source
        return source.pending(offset, self.followed(flow, number, spec).now.moves if has_run else ())

    def followed(self, flow: Flow, number: int, spec: SourceSpec) -> TrackedReads:
        """What a source reads now, related to what it has read so far. Nothing is written. Raises SOURCE_MOVED."""
        state = str(self._storage.source_state(flow.target, flow.name, number))
        key = f"{state}\n{spec.path}"
        if key not in self._followed:

            def compared(old: Folder, new: Folder, moves: Sequence[Move]) -> SameNames:
                return self.open(flow, number, spec, dry=True).same_names(old.path, new.path, moves)

            self._followed[key] = followed(
                noted(state),
                reads_of(spec, self._storage),
                compared,
                given_moves(),
                lambda old, new, same: moved_or_other(flow, old, new, same),
            )
            self.moves.update(self._followed[key].now.moves)
        return self._followed[key]


def folder_of(location: str, storage: Storage) -> Folder:
    """Return the folder before the first wildcard of a path or URI, and its surroundings."""
    paths = active_map()
    roots = {PROJECT: paths.root or "", STORAGE: "" if scheme_of(str(storage.root)) else str(storage.root)}
    store, path = store_name(location), fixed_folder(path_in_store(location))
    shown = fixed_folder(location) if store else path
    return Folder(path, store, paths.name_of(shown), {name: root for name, root in roots.items() if root}, shown)


def reads_of(spec: SourceSpec, storage: Storage) -> SourceReads:
    """Return what a file source reads."""
    return SourceReads(path_in_store(spec.path), names_pattern(spec), folder_of(spec.path, storage))


def given_moves() -> tuple[Move, ...]:
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


__all__ = ["SOURCE_MOVED", "FileSources", "folder_of", "given_moves", "moved_or_other", "reads_of"]
