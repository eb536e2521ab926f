"""Objects that all flows of an update share: a frozen `Environment`, and an `UpdateMemory` for what changes during the update."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lakelet.analysis.sink_paths import sink_path
from lakelet.files.delta_log import TableLog
from lakelet.files.paths import AnyPath
from lakelet.flows.analysed_flows import FlowNotices, FlowSources
from lakelet.flows.analyses import Analyses
from lakelet.flows.kept_queries import KeptQueries
from lakelet.language.model import Dataset, Kind
from lakelet.spark.names.catalog import Catalog
from lakelet.spark.session_clones import UpdateSession
from lakelet.storage.delta.known_files import LiveFiles
from lakelet.storage.eventlog.reporter import Reporter
from lakelet.storage.root import Storage, StoredDataset, new_table_path


@dataclass
class UpdateMemory:
    """What the flows of one update have met so far.

    unsteady: by flow, a batch whose files changed while they were read, and how often (`attempts`). mapped: tables that got column
    mapping by themselves. widened: whether a table got columns that its analysis did not know of. queries: those that wait for the next
    round.
    """

    unsteady: dict[str, tuple[int, int]] = field(default_factory=dict)
    mapped: list[str] = field(default_factory=list)
    widened: bool = False
    queries: KeptQueries = field(default_factory=KeptQueries)
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


@dataclass(frozen=True)
class Environment:
    """One update's surroundings, shared by its flows.

    sources, notices: what analysis found out about the flows. analyses: analyses datasets again, on what is stored now.
    """

    spark: UpdateSession
    storage: Storage
    catalog: Catalog
    reporter: Reporter
    sources: FlowSources
    notices: FlowNotices
    analyses: Analyses
    memory: UpdateMemory = field(default_factory=UpdateMemory)

    @classmethod
    def of(cls, spark: UpdateSession, catalog: Catalog, reporter: Reporter, parameters: Mapping[str, str]) -> Environment:
        """The surroundings of an update that begins. `parameters`: the pipeline's configuration."""
        storage = reporter.storage
        sources, notices = FlowSources(spark, storage), FlowNotices()
        analyses = Analyses(spark, storage, catalog, parameters, sources, notices)
        return cls(spark, storage, catalog, reporter, sources, notices, analyses)

    def stored(self, dataset: Dataset, kind: Kind) -> StoredDataset:
        """Return the registry entry of a dataset, or a new one."""
        found = self.storage.registry().datasets.get(dataset.name.key)
        path = sink_path(dataset, self.catalog) if dataset.sink is not None else None
        if found is not None:
            return replace(found, private=dataset.private, active=True, path=found.path if path is None else path)
        path, owner = new_table_path(dataset.name) if path is None else path, self.storage.registry().owner
        return StoredDataset(name=str(dataset.name), kind=kind, path=path, private=dataset.private, owner=owner)
