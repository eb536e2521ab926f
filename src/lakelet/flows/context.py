"""One flow with everything that was found out about it, and the reader that opens stored tables for it."""

from __future__ import annotations

import functools
import hashlib
import json
import uuid
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.types import StructType

from lakelet.analysis.results import AnalyzedDataset, AnalyzedFlow
from lakelet.autoloader import AutoLoaderSource
from lakelet.autoloader.source_spec import SourceSpec
from lakelet.base.names import TableName
from lakelet.cdc import change_feed
from lakelet.config import delta_properties
from lakelet.config.properties import TOMBSTONES, look_up
from lakelet.files.delta_log import streams_from_log
from lakelet.files.paths import AnyPath
from lakelet.flows.environment import Environment
from lakelet.jvm.sessions import plain_reader
from lakelet.language.model import ChangeSpec, Dataset, Flow, Kind
from lakelet.plan.decisions import Strategy
from lakelet.spark.expectations.samples import SamplePolicy
from lakelet.spark.names.cloud_files_state import STATES, dataset_states
from lakelet.spark.names.from_json import Growth, JsonSchemas
from lakelet.spark.names.repeated_calls import FILE_METADATA
from lakelet.spark.names.sql_queries import QueryReader
from lakelet.storage.delta import column_mapping, schemas
from lakelet.storage.delta.quarantine import check_columns
from lakelet.storage.delta.table_spec import CHANGE_FEED, EPOCH, Declaration, IdentityColumn, TableSpec
from lakelet.storage.delta.tables import known_content
from lakelet.storage.root import StoredDataset

_STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def event_id(*parts: object) -> str:
    """The id of the event about just this."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "|".join(str(p) for p in parts)))


@dataclass(frozen=True)
class FlowTask:
    """One flow to bring up to date, with everything that was found out about it."""

    environment: Environment
    analyzed: AnalyzedDataset
    flow: AnalyzedFlow

    @property
    def dataset(self) -> Dataset:
        return self.analyzed.dataset

    @property
    def declared(self) -> Flow:
        return self.flow.declared

    @property
    def name(self) -> str:
        return self.flow.name

    @property
    def target(self) -> str:
        """Key of the dataset that it writes to."""
        return self.dataset.name.key

    @property
    def dataset_kind(self) -> Kind:
        return self.analyzed.kind

    @property
    def inputs(self) -> tuple[str, ...]:
        """Keys of the stored datasets that its dataset reads, views resolved to what they read."""
        return self.analyzed.inputs

    @property
    def transforms(self) -> tuple[str, ...]:
        return self.flow.transforms

    @property
    def strategy(self) -> Strategy:
        """How it is run when there is something to do."""
        return self.flow.kind.strategy

    @property
    def change_specs(self) -> tuple[ChangeSpec, ...]:
        """Specifications of all change flows into the dataset, in the order of their declaration."""
        return tuple(found.declared.changes for found in self.analyzed.flows if found.declared.changes is not None)

    @property
    def conf(self) -> Mapping[str, str]:
        """Settings of the views that are read, of the dataset, and of the flow, the flow's own last (DS-20).

        Databricks keeps state in RocksDB; Spark needs that for state of the user's own.
        """
        rocks = {_STATE_STORE: _ROCKS} if self.flow.stream.processor else {}
        return {**rocks, **self.flow.of_views, **self.dataset.spark_conf, **self.declared.spark_conf}

    @property
    def samples(self) -> SamplePolicy:
        """Which rows that break its rules are kept with the counts."""
        return self.environment.samples(self.declared)

    def stored(self) -> StoredDataset:
        return self.environment.stored(self.dataset, self.analyzed.kind)

    def path(self) -> AnyPath:
        return self.environment.storage.at(self.stored().path)

    def is_streamed(self) -> bool:
        """Whether a stream of the pipeline reads the rows of this change table or materialized view."""
        return self.dataset.name.key in self.environment.catalog.reads.streamed

    def checkpoint_name(self) -> str:
        """The name of the flow's checkpoint: when it began again and, once a table it streams from was reset, their epochs too.

        A reset table is read again from its start, which takes a checkpoint without the old offsets (decision 5).
        """
        datasets = self.environment.storage.registry().datasets
        above = [(key, datasets[key].epoch) for key, _ in self.flow.stream.leaves if key in datasets and datasets[key].epoch]
        own = self.environment.storage.reset_id(self.declared.target.key, self.name)
        return f"{own}-{zlib.crc32(repr(sorted(above)).encode()):08x}" if above else own

    def has_begun_again(self) -> bool:
        """Whether the flow reads its sources again from the start since its table got its rows."""
        return self.checkpoint_name() != str(self.stored().epoch)

    def checkpoint(self) -> AnyPath:
        return self.environment.storage.checkpoint(self.declared.target, self.name, self.checkpoint_name())

    def change_id(self, source: int | str, version: int) -> str:
        """Id of the event that reports a schema version of a source: its number, or what else tells it apart."""
        reset = self.environment.storage.reset_id(self.declared.target.key, self.name)
        return event_id(self.stored().path, self.name, reset, source, version)

    def _retention(self) -> Mapping[str, str]:
        """What the pipeline's configuration says for all its change tables about tombstones (CD-15)."""
        if not self.flow.kind.changes or look_up(self.dataset.table_properties, TOMBSTONES) is not None:
            return {}
        given = self.environment.spark.conf.get(TOMBSTONES, None)
        return {} if given is None else {TOMBSTONES: given}

    def _columns(self, schema: StructType) -> StructType:
        """The columns that the flow's rows need, and those of the table's other flows: which one writes first must not decide."""
        of_changes = self.flow.kind.changes
        result: StructType = schemas.storable(schemas.without_void(schema, self.analyzed.schema) if of_changes else schema)
        if len(self.analyzed.flows) == 1 or of_changes:
            return result
        with suppress(schemas.Incompatible):  # what was analysed is not up to date
            return schemas.common([self.analyzed.schema, schema], widen=schemas.widens(self.dataset.table_properties))
        return result

    def table_spec(self, schema: StructType) -> TableSpec:
        """How the table is made, with the columns `schema` has (or the declared ones).

        Raises SCHEMA_OUTGROWN where the table cannot take those: a column that is left out silently would be lost data.
        """
        declared = self.analyzed.schema if self.dataset.schema is not None else None
        outgrown = schemas.outgrown_error(declared, schema, dataset=str(self.dataset.name), where=self.dataset.where) if declared else None
        if outgrown is not None:
            raise outgrown
        if self.dataset.keeps_dropped:
            check_columns(schema, dataset=str(self.dataset.name), where=self.dataset.where)
        epoch = self.stored().epoch
        feed = {CHANGE_FEED: "true"} if self.dataset.name.key in self.environment.catalog.reads.feeds else {}
        declared_ones = delta_properties.stored(self.dataset.table_properties)
        properties = {**self._retention(), **declared_ones, **feed, **({EPOCH: str(epoch)} if epoch else {})}
        if column_mapping.automatic(self.dataset):
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
            declared=Declaration.of(declared_ones, self.dataset.comment, declared, self._clustered_by()),
            identities=tuple(IdentityColumn(c.name, c.identity.start, c.identity.step, c.generated) for c in self.dataset.identities),
        )

    def _clustered_by(self) -> tuple[str, ...]:
        """The clustering columns that the table gets; rows of a change table lie as the changes leave them."""
        return () if self.flow.kind.changes else self.dataset.cluster_by

    def description(self) -> str:
        """A digest of everything that the definition says about its table, with what Lakelet adds to that."""
        dataset, feeds = self.dataset, self.dataset.name.key in self.environment.catalog.reads.feeds
        said = [delta_properties.stored(dataset.table_properties), dataset.comment, str(dataset.schema), dataset.partition_cols]
        nullable = [f.jsonValue() for f in self.analyzed.schema.fields] if dataset.schema is not None else []
        return hashlib.sha256(json.dumps([*said, nullable, self._clustered_by(), self._retention(), feeds]).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class FileReads:
    """How a query reads its file sources.

    `committed`: by number of a source, the offset up to which the table has its rows. `changing`, `rounds`: see `ReaderSpec`.
    `plain`: numbers of the sources of which nothing reads `_metadata`.
    """

    committed: Mapping[int, str] = field(default_factory=dict)
    changing: bool = False
    rounds: str = ""
    plain: frozenset[int] = frozenset()


@dataclass
class RunFiles:
    """Opens the file sources of a flow with their state. `opened`: the sources, by number."""

    spark: SparkSession
    environment: Environment
    reads: FileReads = FileReads()
    opened: dict[int, AutoLoaderSource] = field(default_factory=dict)

    def open(self, flow: Flow, number: int, spec: SourceSpec) -> DataFrame:
        source = self.opened[number] = self.environment.sources.open(flow, number, spec, dry=False)
        committed, reads = self.reads.committed.get(number), self.reads
        rows: DataFrame = source.read_stream(
            self.spark,
            name=f"lakelet_source_{number}",
            committed=committed,
            changing=reads.changing,
            rounds=reads.rounds,
            texts=self.environment.samples(flow).rows > 0,
            metadata=number not in reads.plain or FILE_METADATA.on(),
        )
        return rows


@dataclass
class RunReader(QueryReader):
    """Opens the stored tables.

    Attributes:
        observations: the views' rules of a batch query, by name.
        judged: the views with rules, as the query reads them.
        versions: in which version the tables of datasets are read, by key; the newest one of others.
        bound: what a read gives instead of the rows of its table, by dataset and number of the read: a function of these rows.
        opened: by key of a dataset the number of its last read, as placeholders are numbered in analysis.
        unbound: sentences about reads that must give other rows and cannot: the code chose options for them.
    """

    environment: Environment = field(kw_only=True)
    files: RunFiles = field(kw_only=True)
    batch_query: bool = False
    observations: dict[str, Observation] = field(default_factory=dict)
    judged: list[DataFrame] = field(default_factory=list)
    versions: Mapping[str, int] = field(default_factory=dict)
    bound: Mapping[tuple[str, int], Callable[[DataFrame], DataFrame]] = field(default_factory=dict)
    opened: dict[str, int] = field(default_factory=dict)
    unbound: list[str] = field(default_factory=list)

    def open_table(self, dataset: Dataset, *, streaming: bool, jreader: Any, feed: bool) -> DataFrame:
        """The rows of the table, or what is bound to this read. Each read counts, as `PlaceholderReader.open_table` counts them."""
        key = dataset.name.key
        copy = self.opened[key] = self.opened.get(key, -1) + 1
        plain = not (streaming or feed or jreader is not None or FILE_METADATA.on())
        rows = self._rows(dataset, streaming=streaming, jreader=jreader, feed=feed, version=self.versions.get(key) if plain else None)
        if (key, copy) not in self.bound:
            return rows
        if plain:
            return self.bound[key, copy](rows)
        self.unbound.append(f"it reads {dataset.name} with options, or files of it")
        return rows

    def _rows(self, dataset: Dataset, *, streaming: bool, jreader: Any, feed: bool, version: int | None) -> DataFrame:
        path = self.environment.storage.table_path(dataset.name)
        if feed:
            change_feed.keep_feed(self.spark, path)
        if streaming and jreader is None and streams_from_log(self.environment.memory.log(path)):
            jreader = plain_reader(self.spark, streaming=True, options={"startingVersion": "0"})
        live = self.environment.memory.files(path) if self.environment.memory.queries.on else None
        whole = streaming or feed or jreader is not None or FILE_METADATA.on()
        known = None if whole else known_content(self.spark, path, live, version)
        if known is None and version is not None:  # Delta takes the newest version at the time of the job otherwise
            jreader = plain_reader(self.spark, streaming=False, options={"versionAsOf": str(version)})
        return self.stored(str(path), streaming, jreader) if known is None else known

    @property
    def samples(self) -> SamplePolicy:
        return self.environment.samples(self.flow)

    def with_rules(self, dataset: Dataset, frame: DataFrame) -> DataFrame:
        found = super().with_rules(dataset, frame)
        self.judged.append(found)
        return found

    @property
    def json_schemas(self) -> JsonSchemas:
        return self.environment.sources.json_schemas

    @functools.cached_property
    def growth(self) -> Growth:
        return Growth(self.spark)

    def file_states(self, dataset: Dataset) -> DataFrame:
        return self.spark.createDataFrame(dataset_states(self.environment.storage, dataset.name).to_pylist(), STATES)

    def view_opened(self, dataset: Dataset, frame: DataFrame, reads: Mapping[tuple[str, bool], TableName]) -> None:
        """Nothing to note: analysis has recorded the views."""

    def observation(self, name: str) -> Observation | str:
        if not self.batch_query:
            return name
        self.observations[name] = Observation(f"{name}_{uuid.uuid4().hex}")  # no other flow's query finds rows that this one keeps
        return self.observations[name]


Bindings = Mapping[tuple[str, int], Callable[[DataFrame], DataFrame]]
"""See `RunReader.bound`."""
_NO_VERSIONS: Mapping[str, int] = {}
_NO_BINDINGS: Bindings = {}


def run_reader(
    task: FlowTask,
    spark: SparkSession,
    reads: FileReads | None = None,
    *,
    versions: Mapping[str, int] = _NO_VERSIONS,
    bound: Bindings = _NO_BINDINGS,
) -> RunReader:
    """The reader for one call of the flow's function. `reads`: how a stream reads its file sources; None for a batch query.

    `versions`, `bound`: see `RunReader`.
    """
    return RunReader(
        spark,
        task.environment.catalog,
        environment=task.environment,
        flow=task.declared,
        files=RunFiles(spark, task.environment, reads or FileReads()),
        batch_query=reads is None,
        versions=versions,
        bound=bound,
    )
