"""Opens what a dataset's function reads: tables and views of the pipeline, tables beside it, `cloudFiles` streams.

A reader is active in the thread that calls the function; `spark.patches.readers` asks it for what pyspark's reading methods are asked for.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.types import StructType

from lakelet.autoloader.evolving_from_json import KEY, JsonCall, JsonColumn
from lakelet.autoloader.reader_arguments import struct_of
from lakelet.autoloader.source_spec import SourceSpec
from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.names import TableName
from lakelet.base.raised import pointed
from lakelet.base.text import listed
from lakelet.base.user_code import caller_location
from lakelet.config.named_tables import table_flag
from lakelet.jvm.frames import create_view, loaded
from lakelet.jvm.sessions import plain_reader
from lakelet.language.model import Dataset, Expectation, Flow, Kind
from lakelet.language.registry import Notice, active_reader, names_in
from lakelet.spark.errors.missing_tables import MissingTable
from lakelet.spark.expectations.measure import judged
from lakelet.spark.expectations.samples import NO_SAMPLES, SamplePolicy
from lakelet.spark.names import lookup
from lakelet.spark.names.catalog import Catalog, is_missing_table, parts_of
from lakelet.spark.names.file_metadata import with_file_names, with_metadata_if_asked
from lakelet.spark.names.from_json import ExpectedFields, Growth, JsonSchemas, call_of, without_growth
from lakelet.spark.names.lookup import NameTarget, information, resolve_name
from lakelet.spark.names.outside import outside_tables
from lakelet.spark.names.paths import located_source, unusable_schema_location
from lakelet.spark.names.repeated_calls import asked
from lakelet.storage.delta.table_spec import CHANGE_FEED

_CHANGE_FEED = {"readchangefeed", "readchangedata"}
_VERSIONS = {"versionasof", "timestampasof"}
_SHOWN_NAMES = 8


Options = Mapping[str, str] | None
"""Options of one read, as user code gives them."""


@dataclass(frozen=True)
class Watch:
    """An observation in a query's plan: `name` of the metrics, the view whose rules it counts, and those rules."""

    name: str
    dataset: TableName
    rules: tuple[Expectation, ...]
    streaming: bool = False


class FileOpener(Protocol):
    """Opens the cloudFiles sources of a flow's function: without rows (analysis), or with its state (run)."""

    def open(self, flow: Flow, number: int, spec: SourceSpec) -> DataFrame:
        """Open the source that the function reads as its `number`-th, from 0."""


@dataclass
class TableReader(ABC):
    """Answers the reads of one call of one dataset's function; remembers what was read.

    Sub-classes say what a table is: a placeholder with the right columns (analysis), or the stored one (run).
    `flow`: whose query the function gives, or a part of it. `files`: opens its cloudFiles sources.
    """

    spark: SparkSession
    catalog: Catalog
    flow: Flow = field(kw_only=True)
    files: FileOpener = field(kw_only=True)
    reads: dict[tuple[str, bool], TableName] = field(default_factory=dict)
    external: dict[str, None] = field(default_factory=dict)
    sources: list[SourceSpec] = field(default_factory=list)
    watches: list[Watch] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    json_columns: dict[str, JsonColumn] = field(default_factory=dict)
    takes_commands: ClassVar[bool] = False
    """Whether SQL text may write: in functions of sinks only."""
    reads_batches: ClassVar[bool] = False
    """Whether what is asked for as a stream is opened as a batch, in SQL text too."""
    kept_views: list[str] = field(default_factory=list)  # of columns whose query is still to come
    _views: int = 0
    _scopes: list[dict[tuple[str, bool], TableName]] = field(default_factory=list)

    # ------------------------------------------------------------------------ to be answered by sub-classes

    @abstractmethod
    def open_table(self, dataset: Dataset, *, streaming: bool, jreader: Any, feed: bool) -> DataFrame:
        """Open a stored dataset. `jreader`: the JVM reader with the user's options, or None. `feed`: return its change feed."""

    def streamed(self, dataset: Dataset, options: Mapping[str, str]) -> None:  # noqa: B027
        """Called before the rows of a stored dataset, not its change feed, are read as a stream with these options. May raise."""

    def opened_outside(self, key: str, frame: DataFrame) -> None:  # noqa: B027 - optional
        """Called with the frame of a table from outside that is read as a batch, unchanged."""

    @property
    @abstractmethod
    def json_schemas(self) -> JsonSchemas:
        """The schemas of the flows' calls of `from_json`."""

    def json_opened(self, column: JsonColumn) -> None:  # noqa: B027 - optional
        """Called with the schema of each such `from_json`."""

    @property
    def growth(self) -> Growth | None:
        """What takes note of new fields in the texts of these calls; None where no task runs."""
        return None

    @abstractmethod
    def file_states(self, dataset: Dataset) -> DataFrame:
        """The files that the streaming flows of a dataset have seen (`cloud_files_state`)."""

    @abstractmethod
    def view_opened(self, dataset: Dataset, frame: DataFrame, reads: Mapping[tuple[str, bool], TableName]) -> None:
        """Called with the query of each view that is read, before its rules are evaluated; `reads`: the datasets that it reads."""

    def view_failed(self, dataset: Dataset, reads: Mapping[tuple[str, bool], TableName]) -> None:  # noqa: B027 - optional
        """Called instead where the view's function fails; `reads`: what it has read until then."""

    def marked(self) -> Callable[[], None]:
        """Return what makes the reader forget all that it is asked for from now on."""
        kept = {f.name: copy(value) for f in fields(self) if isinstance(value := getattr(self, f.name), dict | list | int)}

        def forget() -> None:
            for name, value in kept.items():
                setattr(self, name, copy(value))

        return forget

    def observation(self, name: str) -> Observation | str:
        """What view rules are observed under: a name, or an Observation where the query is not a stream."""
        return name

    @property
    def samples(self) -> SamplePolicy:
        """Which rows that break the rules of views are kept with the counts; none where nothing is written."""
        return NO_SAMPLES

    @contextmanager
    def resolving(self, dataset: Dataset) -> Iterator[None]:
        """Around the resolution of each dataset that is read; finds cycles in analysis."""
        yield

    # ---------------------------------------------------------------------------------------- dlt.read, read_stream

    def batch(self, name: str) -> DataFrame:
        return self._named(name, streaming=False)

    def stream(self, name: str, options: dict[str, str]) -> DataFrame:
        return self._named(name, streaming=True)

    def table(self, name: str, *, streaming: bool) -> DataFrame:
        """The source of a change flow, or what `dlt.read` names: of the pipeline, of the storage, or whatever Spark knows."""
        return self.spark.readStream.table(name) if streaming else self.spark.read.table(name)

    def batch_or_stream(self, name: str) -> DataFrame:
        """The source of a change flow that runs once (CD-13): a view as it is, a stream or a batch; of a table, its present rows."""
        dataset = self.catalog.dataset(parts_of(name))
        if dataset is None or dataset.kind is not Kind.VIEW:
            return self.table(name, streaming=False)
        with self.resolving(dataset):
            frame = self.query_of_view(dataset)
        self.noted(dataset, streaming=frame.isStreaming)
        return self.aliased(frame, dataset.name.name)

    def _named(self, text: str, *, streaming: bool) -> DataFrame:
        dataset = self.catalog.dataset(parts_of(text))
        if dataset is None:  # a table of another pipeline or from outside, by its full name
            return self.table(text, streaming=streaming)
        return self.open(dataset, streaming=streaming)

    # -------------------------------------------------------------------------------------------- spark.table and co

    def relation(
        self, text: str, *, streaming: bool, jreader: Any, otherwise: Callable[[], DataFrame], options: Options = None
    ) -> DataFrame:
        """The table called `text`, read with `options`: of the pipeline first, then of the storage, then whatever Spark knows."""
        meant = resolve_name(parts_of(text), self.catalog, streaming=streaming, spark=self.spark)
        name = meant.name
        if meant.dataset is not None:
            return self.open(meant.dataset, streaming=streaming, jreader=jreader, options=options)
        if meant.place is NameTarget.NO_DATASET:
            raise self.unknown(text)
        if meant.place is NameTarget.QUARANTINE:
            why = "Databricks ignores the property lakelet.quarantine, so the table does not exist there"
            todo = f'To look at its rows: lakelet quarantine show, or lakelet sql "SELECT * FROM {name}"'
            raise LakeletError("QUARANTINE_READ", f"the query reads the quarantine {name}", where=caller_location(), why=why, todo=todo)
        self.external[text if meant.place in (NameTarget.INFORMATION, NameTarget.SPARK) else str(name)] = None
        if meant.place is NameTarget.OUTSIDE and name is not None:
            frame = lookup.open_outside(self.spark, name.key, streaming=streaming, jreader=jreader)
            if not streaming and not options:
                self.opened_outside(name.key, frame)
            return frame
        if meant.place is NameTarget.STORED and name is not None:
            return self.stored(self.catalog.other_tables[name.key], streaming, jreader)
        described = information(self.spark, name, streaming=streaming)
        if described is not None:
            return described
        try:
            return otherwise()
        except AnalysisException as problem:
            if is_missing_table(problem):
                raise self.unknown(text) from None
            raise

    def own_table(self, text: str) -> Callable[[], DataFrame] | None:
        """Return what opens the stored dataset of the pipeline that a name means; None for any other name."""
        dataset = self.catalog.dataset(parts_of(text))
        if dataset is None or dataset.kind is Kind.VIEW or dataset.sink is not None:
            return None
        return lambda: self.open(dataset, streaming=False)

    def open(self, dataset: Dataset, *, streaming: bool, jreader: Any = None, options: Options = None) -> DataFrame:
        """DataFrame of a dataset of the pipeline, or of its change feed."""
        feed = _feed_asked(options or {})
        if dataset.sink is not None:
            todo = "Read the table or view that is written to it; a Delta sink's table by its own name or path."
            raise LakeletError("UNKNOWN_DATASET", f"{dataset.name} is a sink, which cannot be read", where=caller_location(), todo=todo)
        if feed and dataset.kind is Kind.VIEW:
            raise _kind_error(f"{dataset.name} is a view, which has no change feed", "Read the change feed of a streaming table.")
        if feed and dataset.table_properties.get(CHANGE_FEED, "true").lower() == "false":
            what = f"{dataset.name} keeps no change feed: its property {CHANGE_FEED} is false"
            raise _kind_error(what, "Take the property away; it is set where a change feed is read.")
        if dataset.kind is Kind.VIEW and any(key.lower() in _VERSIONS for key in options or ()):
            raise _kind_error(f"{dataset.name} is a view, which has no versions", "Read a version of the table that it reads.")
        self.noted(dataset, streaming=streaming)
        with self.resolving(dataset):
            if dataset.kind is Kind.VIEW:
                frame = self.query_of_view(dataset)
            else:
                if streaming and not feed:
                    self.streamed(dataset, options or {})
                frame = self.open_table(dataset, streaming=streaming, jreader=jreader, feed=feed)
        if streaming and not frame.isStreaming:
            raise _kind_error(f"{dataset.name} is a batch view", "Read it with spark.read.table or dlt.read.")
        if not streaming and frame.isStreaming:
            raise _kind_error(f"{dataset.name} is a streaming view", "Read it with spark.readStream.table or dlt.read_stream.")
        return with_metadata_if_asked(self.aliased(frame, dataset.name.name))

    def aliased(self, frame: DataFrame, name: str) -> DataFrame:
        return frame.alias(name)

    def query_of_view(self, dataset: Dataset) -> DataFrame:
        """Return the view's query; its rules are evaluated in each flow that reads it (EP-7)."""
        self._scopes.append({})
        flow = self.catalog.flows[dataset.name.key][0]
        try:
            with names_in(None):
                frame = rows_of(flow)
        except BaseException:
            self.view_failed(dataset, self._scopes.pop())
            raise
        reads = self._scopes.pop()
        self.view_opened(dataset, frame, reads)
        return self.with_rules(dataset, frame) if dataset.expectations else frame

    def with_rules(self, dataset: Dataset, frame: DataFrame) -> DataFrame:
        """Return the rows of a view that its rules keep; the counts are observed."""
        watch = Watch(f"lakelet_view_{len(self.watches)}", dataset.name, dataset.expectations, frame.isStreaming)
        self.watches.append(watch)
        return judged(frame, dataset.expectations, self.observation(watch.name), samples=self.samples)

    def stored(self, path: str, streaming: bool, jreader: Any) -> DataFrame:
        """Open the Delta table in a folder."""
        reader = jreader or plain_reader(self.spark, streaming=streaming)
        return loaded(self.spark, reader, "delta", path)

    def unknown(self, text: str) -> MissingTable:
        """The error for a name that nobody knows."""
        itself, titles = (text.lower(), self.flow.name.lower()), outside_tables().foreign.titles
        asked = titles and not text.lower().startswith("live.")
        nobody = f"the pipeline nor the storage nor {titles} knows" if asked else "the pipeline nor the storage knows"
        return MissingTable(
            text,
            f'the query reads "{text}", which neither {nobody}',
            where=pointed(caller_location(), parts_of(text)[-1]),
            nearest=nearest_names(text, [name for name in self.catalog.known_names() if name.lower() not in itself]),
            todo=self._view_meant(text) or _where_it_could_be(text, self.catalog.known_names()),
        )

    def _view_meant(self, text: str) -> str | None:
        """The remedy for a name whose last part alone would mean a temporary view; None for other names."""
        *_, last = parts_of(text)
        view = self.catalog.dataset([last])
        if view is None or not view.is_temporary_view:
            return None
        other = f"If a table from outside is meant, say where it lies: {table_flag(text)}."
        return f'The temporary view {last} has no catalog and schema: read it as "{last}". {other}'

    def view(self, frame: DataFrame) -> str:
        """A temporary view of a frame; its name."""
        # The same in every process, because it shows in plans; unlike that of any other query, because analysis nests.
        view = f"__lakelet_{zlib.crc32(self.flow.name.encode()):08x}_{self._views}"
        self._views += 1
        create_view(frame, view)
        return view

    def close(self) -> None:
        """The function has returned its rows. A column that it keeps for its next call finds no view, not one of another call."""
        for view in self.kept_views:
            self.spark.catalog.dropTempView(view)
        self.kept_views.clear()

    def noted(self, dataset: Dataset, *, streaming: bool) -> None:
        """Remember that the query, or the view that is being looked through, reads a dataset."""
        scope = self._scopes[-1] if self._scopes else self.reads
        scope.setdefault((dataset.name.key, streaming), dataset.name)

    # ------------------------------------------------------------------------------------------- from_json, cloudFiles

    def inferred_json(self, options: Mapping[str, Any], argument: str) -> Any:
        """The UDF that a call of `from_json` without a schema becomes (JC-1); `argument`: the text of its column.

        Raises as `JsonCall.of`, and for a key that is used twice.
        """
        call = call_of(self.spark, options, argument)
        place = self.json_schemas.place(self.flow, call.key)
        known = self.json_columns.get(place)
        if known is not None and known.call != call:
            what = f"the query uses the {KEY} {call.key!r} in two calls of from_json"
            raise LakeletError("JSON_COLUMN_INVALID", what, where=call.where, todo="Give each call a key of its own: each has a schema.")
        self.notices += [Notice(text, call.where) for text in call.notices]
        column = self.json_columns[place] = self.json_column(call, place)
        self.json_opened(column)
        return without_growth(column) if self.growth is None else self.growth.function_of(column)

    def json_column(self, call: JsonCall, place: str) -> JsonColumn:
        """The schema of a call, whose log lies in the folder `place`."""
        expected = self.json_schemas.expected.get(place)
        return JsonColumn(call, place, expected=None if expected is None else expected.schema)

    def expects(self, problem: BaseException | None) -> bool:
        """Whether an error is about fields of a `from_json` without a schema, which the function gets if it is called again (JC-6)."""
        pending = [column for column in self.json_columns.values() if column.pending]
        if not pending or not isinstance(problem, AnalysisException):
            return False
        taken = [self._expected(column).take_in(problem, column.public) for column in pending]
        return any(taken)

    def expects_columns(self, names: Sequence[str]) -> bool:
        """As `expects`, for columns that the function's query does not have: the fields may be selected as `doc.*`."""
        pending = [column for column in self.json_columns.values() if column.pending]
        taken = [self._expected(column).add(names) for column in pending]
        return any(taken)

    def _expected(self, column: JsonColumn) -> ExpectedFields:
        return self.json_schemas.expected.setdefault(column.location, ExpectedFields())

    def load(self, path: str | None, options: Mapping[str, str], schema: StructType | None) -> DataFrame:
        """A `cloudFiles` stream."""
        where = caller_location()
        if not path:
            raise LakeletError("CF_SOURCE_DIRECTORY_PATH_REQUIRED", "load() of a cloudFiles stream was called without a path", where=where)
        return self.stream_of(self.placed(SourceSpec(path=path, options=dict(options), schema=schema, where=where)))

    def placed(self, spec: SourceSpec) -> SourceSpec:
        """Return the source with the paths of this machine. Raises PATH_NOT_MAPPED or MAP_TARGET_MISSING."""
        for option, path in unusable_schema_location(spec).items():
            text = f"{option} has no effect here: {path} is not a path of this machine; the columns are kept in the storage"
            self.notices.append(Notice(text, spec.where or caller_location()))
        return located_source(spec)

    def stream_of(self, spec: SourceSpec) -> DataFrame:
        """The stream of a source that the query opens."""
        self.sources.append(spec)
        return self.files.open(self.flow, len(self.sources) - 1, spec)


def _feed_asked(options: Mapping[str, str]) -> bool:
    return any(key.lower() in _CHANGE_FEED and value.lower() == "true" for key, value in options.items())


def _where_it_could_be(name: str, known: Sequence[str]) -> str:
    names = f"Known names: {listed(sorted(known), _SHOWN_NAMES)}." if known else "The pipeline and the storage have no other table."
    if name.lower().startswith("live."):
        return names
    return f"If it is a table from outside, say where its folder or file lies: {table_flag(name)}. {names}"


def _kind_error(what: str, todo: str) -> LakeletError:
    return LakeletError("QUERY_KIND", what, where=caller_location(), todo=todo)


def rows_of(flow: Flow) -> DataFrame:
    """Return the rows that the flow's function returns, for the reader that is active. Raises like `data_frame`, and what it raises."""
    reader = active_reader()
    if not isinstance(reader, TableReader):
        return data_frame(asked(flow.query, lambda: None), flow)
    forget = reader.marked()
    while True:
        try:
            return data_frame(asked(flow.query, forget), flow)
        except AnalysisException as problem:
            if not reader.expects(problem):
                raise
        forget()


def data_frame(result: Any, flow: Flow) -> DataFrame:
    """`result` if it is a DataFrame. Raises QUERY_RETURNED_NO_DATAFRAME naming the function."""
    if isinstance(result, DataFrame):
        return with_file_names(result)
    name = getattr(flow.query, "__name__", "the function")
    raise LakeletError(
        "QUERY_RETURNED_NO_DATAFRAME",
        f"{name}() returned {_described(result)} instead of a Spark DataFrame",
        where=pointed(flow.where),
        dataset=str(flow.target),
        todo=_instead(result),
    )


_INSTEAD = {
    "DataFrame": "Return a Spark DataFrame: spark.createDataFrame(df); or leave toPandas() out, and let Spark compute it.",
    "Row": "first() and head() give rows to Python: leave them out, and return the query itself.",
    "list": "collect(), take() and the like give rows to Python: leave them out, and return the query itself. "
    "Rows of your own: spark.createDataFrame(rows).",
    "Column": "A column is a part of a query: return df.select(column).",
    "GroupedData": "groupBy alone is no query: go on with .agg(...) or .count().",
    "DataFrameWriter": "Leave .write out: the dataset itself is what the query is written to.",
    "DataStreamWriter": "Leave .writeStream out: the dataset itself is what the query is written to.",
    "str": "Return the query: spark.read.table(NAME) for a table of this name, spark.sql(TEXT) for a text of SQL.",
    "function": "Call it: the function returns what the call gives.",
    "method": "Call it, with (): the function returns what the call gives.",
    "generator": "Write return in place of yield.",
}
"""What to return in place of a value, by its class."""


def _instead(result: Any) -> str:
    if result is None:
        return "End the function with `return df`; show(), display() and createOrReplaceTempView() return nothing."
    if type(result).__module__.startswith("pyspark.pandas"):
        return "Return df.to_spark()."
    return _INSTEAD.get(type(result).__name__, "End the function with `return df`.")


def _described(result: Any) -> str:
    if result is None:
        return "nothing"
    kind = type(result)
    return f"a {'' if kind.__module__ == 'builtins' else kind.__module__.split('.')[0] + ' '}{kind.__name__}"


def ddl(text: str, spark: SparkSession) -> StructType:
    """The StructType of DDL text."""
    found = struct_of(text, spark)
    assert found is not None
    return found
