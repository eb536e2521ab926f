"""Results of the analysis of flows that their runs need: file sources and notices. Filled while flows are analysed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lakelet.autoloader import AutoLoaderSource
from lakelet.autoloader.settings import source_settings
from lakelet.autoloader.spec import Columns, Pending, SourceSpec
from lakelet.autoloader.state.source_moves import Followed, SameNames, noted
from lakelet.files.moves import Folder, Move
from lakelet.flows.moved_sources import followed_by, reads_of
from lakelet.language.model import Flow
from lakelet.language.registry import Notice
from lakelet.spark.names.from_json import JsonSchemas
from lakelet.spark.session_clones import UpdateSession
from lakelet.storage.root import Storage


class FlowSources:
    """The cloudFiles sources of the pipeline's flows, and the columns that were inferred for them; the schemas of their `from_json`."""

    def __init__(self, spark: UpdateSession, storage: Storage) -> None:
        self._spark, self._storage = spark, storage
        self._specs: dict[str, tuple[SourceSpec, ...]] = {}
        self._inferred: dict[tuple[str, str], Columns] = {}
        self._watched: dict[str, AutoLoaderSource] = {}
        self._followed: dict[str, Followed] = {}
        self.moves: set[Move] = set()
        """Moves that the sources of flows know of."""
        self.json_schemas = JsonSchemas(storage)

    def of(self, flow: str) -> tuple[SourceSpec, ...]:
        """The sources of a flow, in the order of their numbers."""
        return self._specs.get(flow, ())

    def add(self, flow: str, number: int, spec: SourceSpec) -> None:
        """Keep source `number` of a flow; one that had the number before, and those after it, are forgotten."""
        self._specs[flow] = (*self.of(flow)[:number], spec)

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

    def pending(self, flow: Flow, number: int, spec: SourceSpec, offset: str | None) -> Pending:
        """What a source would read beyond a Spark offset. Nothing is written; one that has run before is opened once for all looks."""
        state = self._storage.source_state(flow.target, flow.name, number)
        has_run = (state / "ledger").exists()
        source = self._watched.get(str(state)) or self.open(flow, number, spec, dry=True)
        if has_run:
            self._watched[str(state)] = source
        return source.pending(offset, self.followed(flow, number, spec).now.moves if has_run else ())

    def followed(self, flow: Flow, number: int, spec: SourceSpec) -> Followed:
        """What a source reads now, related to what it has read so far. Nothing is written. Raises SOURCE_MOVED."""
        state = str(self._storage.source_state(flow.target, flow.name, number))
        key = f"{state}\n{spec.path}"
        if key not in self._followed:

            def compared(old: Folder, new: Folder, moves: Sequence[Move]) -> SameNames:
                return self.open(flow, number, spec, dry=True).same_names(old.path, new.path, moves)

            self._followed[key] = followed_by(flow, noted(state), reads_of(spec, self._storage), compared)
            self.moves.update(self._followed[key].now.moves)
        return self._followed[key]


class FlowNotices:
    """The notices about the pipeline's flows, each once: a query is analysed several times."""

    def __init__(self) -> None:
        self._by_flow: dict[str, dict[Notice, None]] = {}

    def add(self, flow: str, notices: Iterable[Notice]) -> None:
        self._by_flow.setdefault(flow, {}).update(dict.fromkeys(notices))

    def of(self, flow: str) -> tuple[Notice, ...]:
        return tuple(self._by_flow.get(flow, ()))

    def __iter__(self) -> Iterator[Notice]:
        """Those of all flows."""
        return (notice for notices in self._by_flow.values() for notice in notices)
