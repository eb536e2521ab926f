"""Objects that all flows of an update share: a frozen `Environment`, and an `UpdateMemory` for what changes during the update.

The memory has the streaming queries that stay alive between the rounds of a continuous update (docs/decisions/0050-kept-queries.md).
Starting a query costs more than a small micro-batch does: a session, the flow's function, two Python processes, Spark's analysis. A query
that reads the files of one source and nothing else has no other way to learn of changes than its source, so it can wait for the next
round.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

from pyspark.sql import SparkSession

from lakelet.analysis.analyzer import Analyzer
from lakelet.analysis.file_sources import FileSources
from lakelet.analysis.results import AnalyzedFlow, sampled_rows
from lakelet.analysis.sink_paths import sink_path
from lakelet.autoloader.continuous_rounds import QueryRounds
from lakelet.config.properties import hidden_columns
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.flows.checkpoints import has_run
from lakelet.jvm.streams import end_listening, release
from lakelet.language.model import Dataset, Flow, Kind
from lakelet.plan.kinds import APPEND
from lakelet.spark.expectations.samples import SamplePolicy
from lakelet.spark.names.catalog import Catalog, ReadsFound
from lakelet.spark.session_clones import UpdateSession
from lakelet.storage.delta.known_files import LiveFiles
from lakelet.storage.eventlog.events import Reporter
from lakelet.storage.root import Storage, StoredDataset, new_table_path

MOST_QUERIES = 16
"""Each one has a Python process, some 20 MB: further flows start a query for each of their rounds."""


class KeptQuery(Protocol):
    """A running query with what writes its micro-batches. `rounds`: tell its source when to list its files."""

    @property
    def query(self) -> Future[Any]: ...
    @property
    def rounds(self) -> QueryRounds | None: ...
    def __call__(self, batch: Any, number: int) -> None: ...


class KeptQueries:
    """The queries that stay for their flows' next rounds, by flow. `on`: in a continuous update, the only one with rounds."""

    def __init__(self) -> None:
        self.on = False
        self._queries: dict[str, Any] = {}

    def take_more(self) -> bool:
        """Whether one more query may stay."""
        return self.on and len(self._queries) < MOST_QUERIES

    def of(self, flow: str, spark: SparkSession) -> Any:
        """The flow's query; None if it has none, or one that has ended meanwhile: a new one goes on from the checkpoint."""
        kept = self._queries.get(flow)
        if kept is not None and not kept.query.result().isActive:
            self.end(flow, spark)
            return None
        return kept

    def add(self, flow: str, query: KeptQuery) -> None:
        """Keep a query that was started, instead of the flow's earlier query, which has ended."""
        self._queries[flow] = query

    def end(self, flow: str, spark: SparkSession) -> None:
        """End the flow's query, if there is one. Errors of one that has ended, or whose Java process has, are of no interest here."""
        kept = self._queries.pop(flow, None)
        if kept is None:
            return
        if kept.rounds is not None:
            kept.rounds.close()
        with suppress(Exception):
            kept.query.result().stop()
        release(spark, kept)
        end_listening(kept.query.result())

    def close(self, spark: SparkSession) -> None:
        """End all of them. Their micro-batches have ended before."""
        self.on = False
        for flow in tuple(self._queries):
            self.end(flow, spark)


def may_stay(dataset: Dataset, flow: AnalyzedFlow) -> bool:
    """Whether the flow's query depends on the files of one source alone, and has nothing to do without new ones.

    A watermark lets Spark add batches without rows; tables that the query reads as they are would stay as they were; what a quarantine does
    depends on the state in which a query finds it.
    """
    stream = flow.stream
    if flow.kind is not APPEND or dataset.keeps_dropped or len(flow.sources) != 1 or stream.files != (0,):
        return False
    return not (stream.watermark or stream.processor or stream.groups or stream.aggregates or stream.unversioned)


def new_rounds() -> QueryRounds | None:
    """What a query that is to stay is started with; None where the machine's temporary folder has too long a name for a socket."""
    with suppress(OSError):
        return QueryRounds()
    return None


@dataclass
class UpdateMemory:
    """What the flows of one update have met so far.

    unsteady: by flow, a batch whose files changed while they were read, and how often (`streams`). mapped: tables that got column
    mapping by themselves. widened: whether a table got columns that its analysis did not know of. queries: those that wait for the next
    round. refreshes: what was decided last about each materialized view, by dataset, until it is done.
    """

    unsteady: dict[str, tuple[int, int]] = field(default_factory=dict)
    mapped: list[str] = field(default_factory=list)
    widened: bool = False
    queries: KeptQueries = field(default_factory=KeptQueries)
    refreshes: dict[str, Any] = field(default_factory=dict)
    _pins: dict[str, int] = field(default_factory=dict)
    _files: dict[str, LiveFiles] = field(default_factory=dict)
    _logs: dict[str, TableLog] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def log(self, path: AnyPath) -> TableLog:
        """The log of a table, read once for all flows of the update."""
        with self._lock:
            return self._logs.setdefault(str(path), TableLog(path))

    def files(self, path: AnyPath) -> LiveFiles:
        """The files of a table, followed by all flows of the update."""
        with self._lock:
            return self._files.setdefault(str(path), LiveFiles(path))

    def pinned(self, path: AnyPath) -> int:
        """The version in which views read a table: the same for all views of an update, the newest in each round of a continuous one."""
        newest = self.log(path).version()
        if self.queries.on:
            return newest
        with self._lock:
            return self._pins.setdefault(str(path), newest)

    def unpin(self, path: AnyPath) -> None:
        """Let views read the newest version of a table that a flow of the update may have written."""
        with self._lock:
            self._pins.pop(str(path), None)


_NO_KEYS: Mapping[str, tuple[str, ...]] = {}


@dataclass(frozen=True)
class Environment:
    """One update's surroundings, shared by its flows.

    sources: opens the file sources of flows. analyzer: analyses the pipeline, and single datasets again, on what is stored now. keys: by
    dataset the columns that a check finds unique; they identify a row in samples.
    """

    spark: UpdateSession
    storage: Storage
    catalog: Catalog
    reporter: Reporter
    sources: FileSources
    analyzer: Analyzer
    memory: UpdateMemory = field(default_factory=UpdateMemory)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        spark: UpdateSession,
        catalog: Catalog,
        reporter: Reporter,
        parameters: Mapping[str, str],
        keys: Mapping[str, tuple[str, ...]] = _NO_KEYS,
    ) -> Environment:
        """The surroundings of an update that begins. `parameters`: the pipeline's configuration. `keys`: see the class."""
        storage = reporter.storage
        sources = FileSources(spark, storage)
        analyzer = Analyzer(spark, storage, catalog, parameters, sources, partial(has_run, storage))
        return cls(spark, storage, catalog, reporter, sources, analyzer, keys=keys)

    @cached_property
    def hidden_columns(self) -> frozenset[str]:
        """Names in lower case: a column that one dataset calls personal is hidden in the samples of all."""
        return hidden_columns(name for dataset in self.catalog.datasets.values() for name in dataset.personal_columns)

    def samples(self, flow: Flow) -> SamplePolicy:
        """Which rows that break the rules of a flow, its target's and its views', are kept, and by which columns they are known."""
        dataset = self.catalog.datasets.get(flow.target.key)
        of_changes = [path[0] for path in flow.changes.keys] if flow.changes is not None else []
        replaced = flow.replaces.keys if flow.replaces is not None else ()
        keys = (*(dataset.primary_key if dataset is not None else ()), *of_changes, *replaced, *self.keys.get(flow.target.key, ()))
        return SamplePolicy(sampled_rows(self.analyzer.parameters), self.hidden_columns, tuple(dict.fromkeys(keys)))

    def begun_again(self, parameters: Mapping[str, str]) -> Environment:
        """The same before anything was found out about the storage."""
        return Environment.of(self.spark, replace(self.catalog, reads=ReadsFound()), self.reporter, parameters, self.keys)

    def stored(self, dataset: Dataset, kind: Kind) -> StoredDataset:
        """Return the registry entry of a dataset, or a new one."""
        found = self.storage.registry().datasets.get(dataset.name.key)
        path = sink_path(dataset, self.catalog) if dataset.sink is not None else None
        if found is not None:
            return replace(found, private=dataset.private, active=True, path=found.path if path is None else path)
        path, owner = new_table_path(dataset.name) if path is None else path, self.storage.registry().owner
        return StoredDataset(name=str(dataset.name), kind=kind, path=path, private=dataset.private, owner=owner)


__all__ = ["Environment", "KeptQueries", "KeptQuery", "UpdateMemory", "may_stay", "new_rounds"]
