"""What every flow of an update is given, and the reader that opens stored tables."""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.types import StructType

from lakelet.analysis.analyzer import AnalyzedDataset, AnalyzedFlow
from lakelet.analysis.sink_paths import sink_path
from lakelet.autoloader import AutoLoaderSource
from lakelet.autoloader.alone import SOURCE_CONFS
from lakelet.autoloader.spec import Columns, SourceSpec
from lakelet.base.errors import LakeletError
from lakelet.base.names import TableName
from lakelet.cdc import change_feed
from lakelet.config import delta_properties
from lakelet.config.properties import TOMBSTONES, look_up
from lakelet.files.paths import Place
from lakelet.flows.metrics import event_id
from lakelet.language.model import ChangeSpec, Dataset, Flow
from lakelet.language.registry import Notice
from lakelet.spark.names.catalog import Catalog
from lakelet.spark.names.file_states import STATES, dataset_states
from lakelet.spark.names.sql_queries import QueryReader
from lakelet.spark.session_clones import UpdateSession
from lakelet.storage.delta import column_mapping, schemas
from lakelet.storage.delta.declared import Declared
from lakelet.storage.delta.table_spec import CHANGE_FEED, EPOCH, TableSpec
from lakelet.storage.delta.tables import TableLog, streams_from_log
from lakelet.storage.root import Storage, StoredDataset, new_table_path

_STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Emit(Protocol):
    """Writes an event about a flow."""

    def __call__(
        self,
        event_type: str,
        message: str,
        body: Mapping[str, Any],
        *,
        dataset: str | None = None,
        flow: str | None = None,
        level: str = "INFO",
        error: BaseException | None = None,
        id: str | None = None,
        batch_id: int | None = None,
    ) -> None: ...


def _not_analysed(key: str) -> AnalyzedDataset:
    raise LakeletError("FLOW_FAILED", "a dataset it reads could not be analysed", dataset=key)


@dataclass
class Environment:
    """One update's surroundings, shared by its flows: sessions, storage, names, events."""

    spark: UpdateSession
    storage: Storage
    catalog: Catalog
    update_id: str
    emit: Emit
    sources: dict[str, tuple[SourceSpec, ...]] = field(default_factory=dict)
    inferred: dict[tuple[str, str], Columns] = field(default_factory=dict)
    notices: dict[str, dict[Notice, None]] = field(default_factory=dict)
    logs: dict[str, TableLog] = field(default_factory=dict)
    fingerprint: Callable[[str], str | None] = lambda key: None
    """Analyses a materialized view again, on the columns that its inputs have now; None if that fails."""
    analyze: Callable[[str], AnalyzedDataset] = _not_analysed
    """Analyses a dataset again, on what is stored now. Raises LakeletError."""
    unsteady: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By flow: a batch whose files changed while they were read, and how often (`attempts`)."""
    mapped: list[str] = field(default_factory=list)
    """Tables that got column mapping by themselves during this update."""
    widened: bool = False
    """Whether a table got columns during this update that its analysis did not know of."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, flow: str, notices: Iterable[Notice]) -> None:
        """Keep what is to be told about a flow, each sentence once; its query is looked at several times."""
        self.notices.setdefault(flow, {}).update(dict.fromkeys(notices))

    def note_source(self, flow: str, number: int, spec: SourceSpec) -> None:
        """Keep what analysis saw of a flow's cloudFiles sources, in the order of their numbers."""
        self.sources[flow] = (*self.sources.get(flow, ())[:number], spec)

    def open_rows(self, dataset: Dataset, jreader: Any = None) -> DataFrame | None:
        """The rows that a dataset has now, read with the options of `jreader`; None where it has no table yet."""
        path = self.storage.table_path(dataset.name)
        if TableLog(path).version() < 0:
            return None
        reader = jreader or self.spark._jsparkSession.read()
        return DataFrame(reader.format("delta").load(str(path)), self.spark)

    def log(self, path: Place) -> TableLog:
        """The log of a table, read once for all flows of the update."""
        with self._lock:
            return self.logs.setdefault(str(path), TableLog(path))

    def stored(self, dataset: Dataset, kind: str) -> StoredDataset:
        """What is stored about a dataset, or a fresh entry."""
        found = self.storage.registry().datasets.get(dataset.name.key)
        path = sink_path(dataset, self.catalog) if dataset.sink is not None else None
        if found is not None:
            return replace(found, private=dataset.private, active=True, path=found.path if path is None else path)
        path, owner = new_table_path(dataset.name) if path is None else path, self.storage.registry().owner
        return StoredDataset(name=str(dataset.name), kind=kind, path=path, private=dataset.private, owner=owner)

    def open_source(self, flow: Flow, number: int, spec: SourceSpec, *, dry: bool) -> AutoLoaderSource:
        """A cloudFiles source of a flow with its state; with `dry` nothing is written.

        What a dry analysis inferred is kept and used for the first schema version, so that the files are sampled once.
        """
        state = self.storage.source_state(flow.target, flow.name, number)
        confs = {k: v for k in SOURCE_CONFS if (v := self.spark.conf.get(k, None)) is not None}
        key = (str(state), repr((spec.path, sorted(spec.options.items()))))
        if dry and not (state / "_schemas").exists() and not (state / "ledger").exists():
            source = AutoLoaderSource.open(spec, state=None, confs=confs, seed=self.inferred.get(key))
            self.inferred[key] = source.columns()
            return source
        return AutoLoaderSource.open(spec, state=str(state), confs=confs, seed=self.inferred.get(key))


@dataclass(frozen=True)
class FlowRun:
    """One flow with everything that was found out about it."""

    environment: Environment
    analyzed: AnalyzedDataset
    flow: AnalyzedFlow

    @property
    def dataset(self) -> Dataset:
        return self.analyzed.dataset

    @property
    def name(self) -> str:
        return self.flow.flow.name

    @property
    def change_specs(self) -> tuple[ChangeSpec, ...]:
        """Of all change flows into the dataset, in the order of their declaration."""
        return tuple(found.flow.changes for found in self.analyzed.flows if found.flow.changes is not None)

    @property
    def conf(self) -> Mapping[str, str]:
        """Settings of the views that are read, of the dataset, and of the flow, the flow's own last (DS-20).

        Databricks keeps state in RocksDB; Spark needs that for state of the user's own.
        """
        rocks = {_STATE_STORE: _ROCKS} if self.flow.stream is not None and self.flow.stream.processor else {}
        return {**rocks, **self.flow.of_views, **self.dataset.spark_conf, **self.flow.flow.spark_conf}

    def stored(self) -> StoredDataset:
        return self.environment.stored(self.dataset, self.analyzed.kind.value)

    def path(self) -> Place:
        return self.environment.storage.at(self.stored().path)

    def is_streamed(self) -> bool:
        """Whether a stream of the pipeline reads the rows of this change table or materialized view."""
        return self.dataset.name.key in self.environment.catalog.streamed

    def generation(self) -> str:
        """Names the flow's checkpoint: when it began again and, once a table it streams from was reset, their epochs too.

        A reset table is read again from its start, which takes a checkpoint without the old offsets (decision 5).
        """
        datasets = self.environment.storage.registry().datasets
        leaves = self.flow.stream.leaves if self.flow.stream else ()
        above = [(key, datasets[key].epoch) for key, _ in leaves if key in datasets and datasets[key].epoch]
        own = self.environment.storage.beginning(self.flow.flow.target.key, self.name)
        return f"{own}-{zlib.crc32(repr(sorted(above)).encode()):08x}" if above else own

    def checkpoint(self) -> Place:
        return self.environment.storage.checkpoint(self.flow.flow.target, self.name, self.generation())

    def change_id(self, number: int, version: int) -> str:
        """Id of the event that tells of a schema version of source `number`."""
        return event_id(self.path(), self.name, self.environment.storage.beginning(self.flow.flow.target.key, self.name), number, version)

    def _retention(self) -> Mapping[str, str]:
        """What the pipeline's configuration says for all its change tables about tombstones (CD-15)."""
        if self.flow.flow.changes is None or look_up(self.dataset.table_properties, TOMBSTONES) is not None:
            return {}
        given = self.environment.spark.conf.get(TOMBSTONES, None)
        return {} if given is None else {TOMBSTONES: given}

    def _columns(self, schema: StructType) -> StructType:
        """The columns that the flow's rows need, and those of the table's other flows: which one writes first must not decide."""
        result: StructType = schemas.storable(schema)
        if len(self.analyzed.flows) == 1 or self.flow.flow.changes is not None:
            return result
        with suppress(schemas.Incompatible):  # what was analysed is not up to date
            return schemas.common([self.analyzed.schema, schema], widen=schemas.widens(self.dataset.table_properties))
        return result

    def table_spec(self, schema: StructType) -> TableSpec:
        """How the table is made, with the columns `schema` has (or the declared ones).

        Raises SCHEMA_OUTGROWN where the table cannot take those: a column that is left out without a word is data lost.
        """
        declared = self.analyzed.schema if self.dataset.schema is not None else None
        outgrown = schemas.outgrown_error(declared, schema, dataset=str(self.dataset.name), where=self.dataset.where) if declared else None
        if outgrown is not None:
            raise outgrown
        epoch = self.stored().epoch
        feed = {CHANGE_FEED: "true"} if self.dataset.name.key in self.environment.catalog.feeds else {}
        declared_ones = delta_properties.stored(self.dataset.table_properties)
        properties = {**self._retention(), **declared_ones, **feed, **({EPOCH: str(epoch)} if epoch else {})}
        if column_mapping.automatic(self.dataset, [self.flow.flow]):
            properties = column_mapping.completed(schema, properties)
        name, where = str(self.dataset.name), self.dataset.where
        refused = column_mapping.refused(declared or schema, properties, code="SCHEMA_OUTGROWN", dataset=name, where=where)
        if refused is not None:
            raise refused
        return TableSpec(
            schema=declared or self._columns(schema),
            partition_cols=self.dataset.partition_cols,
            cluster_by=self._clustered_by(),
            properties=properties,
            comment=self.dataset.comment,
            declared=Declared.of(declared_ones, self.dataset.comment, declared, self._clustered_by()),
        )

    def _clustered_by(self) -> tuple[str, ...]:
        """The clustering columns that the table gets; rows of a change table lie as the changes leave them."""
        return () if self.flow.flow.changes is not None else self.dataset.cluster_by

    def description(self) -> str:
        """A digest of everything that the definition says about its table, with what Lakelet adds to that."""
        dataset, feeds = self.dataset, self.dataset.name.key in self.environment.catalog.feeds
        said = [delta_properties.stored(dataset.table_properties), dataset.comment, str(dataset.schema), dataset.partition_cols]
        nullable = [f.jsonValue() for f in self.analyzed.schema.fields] if dataset.schema is not None else []
        return hashlib.sha256(json.dumps([*said, nullable, self._clustered_by(), self._retention(), feeds]).encode()).hexdigest()[:16]


@dataclass
class RunReader(QueryReader):
    """Opens the stored tables. `observations`: the views' rules of a batch query, by name.

    `settled`: by number of a file source, the offset up to which the table has its rows; `changing`: see `ReaderSpec`.
    `judged`: the views with rules, as the query reads them.
    """

    environment: Any = None
    flow: Flow | None = None
    batch_query: bool = False
    opened: list[AutoLoaderSource] = field(default_factory=list)
    observations: dict[str, Observation] = field(default_factory=dict)
    settled: Sequence[str] = ()
    changing: bool = False
    judged: list[DataFrame] = field(default_factory=list)

    def open_table(self, dataset: Dataset, *, streaming: bool, jreader: Any, feed: bool) -> DataFrame:
        path = self.environment.storage.table_path(dataset.name)
        if feed:
            change_feed.keep_feed(self.spark, path)
        if streaming and jreader is None and streams_from_log(self.environment.log(path)):
            jreader = self.spark._jsparkSession.readStream().option("startingVersion", "0")
        return self.stored(str(path), streaming, jreader)

    def open_source(self, spec: SourceSpec, number: int) -> DataFrame:
        source = self.environment.open_source(self.flow, number, spec, dry=False)
        self.opened.append(source)
        settled = self.settled[number] if number < len(self.settled) else None
        rows: DataFrame = source.read_stream(self.spark, name=f"lakelet_source_{number}", settled=settled, changing=self.changing)
        return rows

    def judged_view(self, dataset: Dataset, frame: DataFrame) -> DataFrame:
        found = super().judged_view(dataset, frame)
        self.judged.append(found)
        return found

    def file_states(self, dataset: Dataset) -> DataFrame:
        return self.spark.createDataFrame(dataset_states(self.environment.storage, dataset.name).to_pylist(), STATES)

    def entered_view(self, dataset: Dataset, frame: DataFrame, reads: Mapping[tuple[str, bool], TableName]) -> None:
        """Nothing to note: analysis has recorded the views."""

    def observation(self, name: str) -> Observation | str:
        if not self.batch_query:
            return name
        self.observations[name] = Observation(f"{name}_{uuid.uuid4().hex}")  # no other flow's query finds rows that this one keeps
        return self.observations[name]


def run_reader(run: FlowRun, spark: SparkSession, *, batch_query: bool) -> RunReader:
    environment = run.environment
    return RunReader(spark, environment.catalog, label=run.name, environment=environment, flow=run.flow.flow, batch_query=batch_query)
