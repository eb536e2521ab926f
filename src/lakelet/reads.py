"""What user code reads while a dataset's function runs. Layer 4.

`intercepted()` wraps `table`, `read.table`, `readStream.table`, `sql` and the loading of `cloudFiles` for the life of an update. The
wrappers ask the reader that is active in the thread; without one they do what pyspark does.
"""

from __future__ import annotations

import functools
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.catalog import Catalog as SparkCatalog
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.sql_formatter import SQLStringFormatter
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StructType

from lakelet import filecalls, namedreads, sqltext
from lakelet.autoloader.alone import SOURCE_CONFS
from lakelet.autoloader.batch import open_files, read_files
from lakelet.autoloader.loading import batch_usage, given_options, pop_path, remembering, said_to, struct_of
from lakelet.autoloader.spec import SourceSpec
from lakelet.catalogfunctions import with_own_functions
from lakelet.errors import LakeletError, Location, nearest_names
from lakelet.expectations.measure import judged
from lakelet.filenames import with_file_names
from lakelet.filestates import STATES, checkpoint_states
from lakelet.kafkacalls import READ_KAFKA, kafka_options, open_kafka
from lakelet.madetables import sql_outside, wrap_tables
from lakelet.mapping import PathMap
from lakelet.model import Dataset, Definitions, Expectation, Flow, Kind
from lakelet.named import table_flag
from lakelet.names import Namespace, TableName, split_name
from lakelet.pathcalls import Wrap, homeless_log, located, located_relation, located_source, mapping_paths, open_relation, wrapping
from lakelet.registry import Notice, active_reader, caller_location, names_in, names_used
from lakelet.storage import HeldTables
from lakelet.tables import CHANGE_FEED

_MISSING_TABLE = {"TABLE_OR_VIEW_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND"}
_HARMLESS = re.compile(r"(\s|--[^\n]*\n|/\*.*?\*/)*(SET|SHOW|DESC|DESCRIBE|EXPLAIN)\b", re.IGNORECASE | re.DOTALL)
_METADATA = re.compile(r"\b(_metadata|input_file_name)\b", re.IGNORECASE)
_NOT_VARIANT = "COLUMN_IS_NOT_VARIANT_TYPE"  # in the message of the error that Spark raises for a path into text
_CHANGE_FEED = {"readchangefeed", "readchangedata"}


Options = Mapping[str, str] | None
"""Options of one read, as user code gives them."""


@dataclass(frozen=True)
class Catalog:
    """The pipeline's datasets by name, and the tables the storage holds beside them (path by key)."""

    namespace: Namespace
    datasets: Mapping[str, Dataset]
    flows: Mapping[str, tuple[Flow, ...]]
    other_tables: Mapping[str, str]
    feeds: set[str] = field(default_factory=set)
    """Keys of the datasets whose change feed the pipeline reads; analysis finds them."""

    @classmethod
    def of(cls, definitions: Definitions, namespace: Namespace, stored: HeldTables) -> Catalog:
        datasets = {d.name.key: d for d in definitions.datasets}
        flows = definitions.flows_by_target()
        return cls(namespace, datasets, flows, stored.apart_from({key for key, d in datasets.items() if d.sink is None}))

    def find(self, parts: Sequence[str]) -> TableName | None:
        """The full name meant by the parts of a name, or None if they are too many.

        Names are completed by what `USE` said in the source that reads them; views are the pipeline's, whatever it said.
        """
        text = ".".join(sqltext.quoted(p) for p in parts)
        used = names_used()
        try:
            own = self.namespace.resolve(text)
            if used is None or parts[0].lower() == "live" or (len(parts) == 1 and self._is_view(own)):
                return own
            return used.resolve(text)
        except ValueError:
            return None

    def is_foreign(self, name: TableName) -> bool:
        """Whether the name of a sink is that of a table beside the pipeline too; then reading it means the table."""
        return self.datasets[name.key].sink is not None and name.key in self.other_tables

    def _is_view(self, name: TableName) -> bool:
        return name.key in self.datasets and self.datasets[name.key].kind is Kind.VIEW

    def known_names(self) -> list[str]:
        return [str(d.name) for d in self.datasets.values() if d.sink is None] + list(self.other_tables)


@dataclass(frozen=True)
class Watch:
    """An observation in a query's plan: `name` of the metrics, the view whose rules it counts, and those rules."""

    name: str
    dataset: TableName
    rules: tuple[Expectation, ...]


@dataclass
class QueryReader(ABC):
    """Answers the reads of one call of one dataset's function; remembers what was read.

    Sub-classes say what a table is: a stand-in with the right columns (analysis), or the stored one (run).
    """

    spark: SparkSession
    catalog: Catalog
    reads: dict[tuple[str, bool], TableName] = field(default_factory=dict)
    external: dict[str, None] = field(default_factory=dict)
    sources: list[SourceSpec] = field(default_factory=list)
    watches: list[Watch] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    label: str = ""  # name of the flow
    takes_commands: ClassVar[bool] = False
    """Whether SQL text may write: in functions of sinks only."""
    _views: int = 0
    _scopes: list[dict[tuple[str, bool], TableName]] = field(default_factory=list)

    # ------------------------------------------------------------------------ to be answered by sub-classes

    @abstractmethod
    def open_table(self, dataset: Dataset, *, streaming: bool, jreader: Any, feed: bool) -> DataFrame:
        """A stored dataset. `jreader`: the JVM reader with the user's options, or None. `feed`: its change feed is asked for."""

    def streamed(self, dataset: Dataset, options: Mapping[str, str]) -> None:  # noqa: B027
        """Told before the rows of a stored dataset, not its change feed, are read as a stream with these options. May raise."""

    def opened_outside(self, key: str, frame: DataFrame) -> None:  # noqa: B027 - a run has nothing to say
        """Told about the rows of a table from outside that are read as they are, as a batch."""

    @abstractmethod
    def open_source(self, spec: SourceSpec, number: int) -> DataFrame:
        """The cloudFiles source that the function opened as its `number`-th."""

    @abstractmethod
    def file_states(self, dataset: Dataset) -> DataFrame:
        """The files that the streaming flows of a dataset have seen (`cloud_files_state`)."""

    @abstractmethod
    def entered_view(self, dataset: Dataset, frame: DataFrame, reads: Mapping[tuple[str, bool], TableName]) -> None:
        """Told about each view that is looked through, before its rules are judged."""

    def observation(self, name: str) -> Observation | str:
        """What view rules are observed under: a name, or an Observation where the query is no stream."""
        return name

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
        """The source of a change flow: a table or view of the pipeline, of the storage, or whatever Spark knows."""
        return self.spark.readStream.table(name) if streaming else self.spark.read.table(name)

    def _named(self, text: str, *, streaming: bool) -> DataFrame:
        found = self.catalog.find(_parts(text))
        dataset = self.catalog.datasets.get(found.key) if found else None
        if dataset is None:
            raise self._unknown(text)
        return self.open(dataset, streaming=streaming)

    # -------------------------------------------------------------------------------------------- spark.table and co

    def relation(
        self, text: str, *, streaming: bool, jreader: Any, otherwise: Callable[[], DataFrame], options: Options = None
    ) -> DataFrame:
        """The table called `text`, read with `options`: of the pipeline first, then of the storage, then whatever Spark knows."""
        parts = _parts(text)
        found = self.catalog.find(parts)
        if found and found.key in self.catalog.datasets and not self.catalog.is_foreign(found):
            return self.open(self.catalog.datasets[found.key], streaming=streaming, jreader=jreader, options=options)
        if parts[0].lower() == "live":
            raise self._unknown(text)
        if found and found.key in namedreads.named():
            self.external[str(found)] = None
            frame = namedreads.open_outside(self.spark, found.key, streaming=streaming, jreader=jreader)
            if not streaming and not options:
                self.opened_outside(found.key, frame)
            return frame
        if found and found.key in self.catalog.other_tables:
            self.external[str(found)] = None
            return self._stored(self.catalog.other_tables[found.key], streaming, jreader)
        self.external[text] = None
        try:
            return otherwise()
        except AnalysisException as problem:
            if (problem.getCondition() or "").split(".")[0] in _MISSING_TABLE:
                raise self._unknown(text) from None
            raise

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
        scope = self._scopes[-1] if self._scopes else self.reads
        scope.setdefault((dataset.name.key, streaming), dataset.name)
        with self.resolving(dataset):
            if dataset.kind is Kind.VIEW:
                frame = self.look_through(dataset)
            else:
                if streaming and not feed:
                    self.streamed(dataset, options or {})
                frame = self.open_table(dataset, streaming=streaming, jreader=jreader, feed=feed)
        if streaming and not frame.isStreaming:
            raise _kind_error(f"{dataset.name} is a batch view", "Read it with spark.read.table or dlt.read.")
        if not streaming and frame.isStreaming:
            raise _kind_error(f"{dataset.name} is a streaming view", "Read it with spark.readStream.table or dlt.read_stream.")
        return self.aliased(frame, dataset.name.name)

    def aliased(self, frame: DataFrame, name: str) -> DataFrame:
        return frame.alias(name)

    def look_through(self, dataset: Dataset) -> DataFrame:
        """A view is its query, put in place; its rules are judged in each flow that reads it (dlt-semantics 3.3)."""
        self._scopes.append({})
        flow = self.catalog.flows[dataset.name.key][0]
        try:
            with names_in(None):
                frame = data_frame(flow.query(), flow)
        finally:
            reads = self._scopes.pop()
        self.entered_view(dataset, frame, reads)
        return self.judged_view(dataset, frame) if dataset.expectations else frame

    def judged_view(self, dataset: Dataset, frame: DataFrame) -> DataFrame:
        """The rows of a view that its rules let pass, and what it takes to count them."""
        watch = Watch(f"lakelet_view_{len(self.watches)}", dataset.name, dataset.expectations)
        self.watches.append(watch)
        return judged(frame, dataset.expectations, self.observation(watch.name))

    def _stored(self, path: str, streaming: bool, jreader: Any) -> DataFrame:
        reader = jreader or (self.spark._jsparkSession.readStream() if streaming else self.spark._jsparkSession.read())
        return DataFrame(reader.format("delta").load(path), self.spark)

    def _unknown(self, text: str) -> LakeletError:
        return LakeletError(
            "UNKNOWN_DATASET",
            f'the query reads "{text}", which neither the pipeline nor the storage knows',
            where=caller_location(),
            nearest=nearest_names(text, self.catalog.known_names()),
            todo=_where_it_could_be(text),
        )

    # ---------------------------------------------------------------------------------------------------- spark.sql

    def sql(self, text: str, run: Callable[[str], DataFrame]) -> DataFrame:
        """Run SQL text with the pipeline's names: each becomes a temporary view of the flow's own session."""
        opened: dict[tuple[object, ...], str] = {}
        files: dict[str, DataFrame] = {}
        unknown: list[str] = []

        def replacement(ref: sqltext.RelationRef) -> str | None:
            if ref.parts[-1] in files:
                return None
            found = self.catalog.find(ref.parts)
            key = found.key if found else ""
            folder = None
            if key not in self.catalog.datasets and key not in self.catalog.other_tables and key not in namedreads.named():
                if ref.parts[0].lower() == "live":
                    raise self._unknown(".".join(ref.parts))
                folder = _streamed_folder(ref)
                if folder is None:
                    files_there = located_relation(ref.parts)
                    if files_there is not None:
                        return files_there
                    unknown.append(".".join(ref.parts))
                    return self._completed(ref.parts)
            asked = (".".join(sqltext.quoted(p) for p in ref.parts), ref.streaming, *sorted(ref.options.items()))
            if asked not in opened:
                opened[asked] = self._view(self._referred(ref, folder))
            return opened[asked]

        try:
            if not self.takes_commands and not sqltext.is_query(self.spark, text) and not _HARMLESS.match(text):
                raise _command_error(text)
            text = self._with_files(text, run, files)
            rewritten = sqltext.rewrite(self.spark, text, replacement)
            hidden = files and _METADATA.search(text)
            call = functools.partial(self._with_hidden, files=files) if hidden else run
            return with_own_functions(self.spark, rewritten, lambda query: _on_text_too(query, call))
        except AnalysisException as problem:
            if (problem.getCondition() or "").split(".")[0] in _MISSING_TABLE:
                name = (problem.getMessageParameters() or {}).get("relationName", "").replace("`", "")
                raise self._unknown(name or next(iter(unknown), "?")) from problem
            raise
        finally:
            for view in (*opened.values(), *files):
                self.spark._jsparkSession.catalog().dropTempView(view)

    def _referred(self, ref: sqltext.RelationRef, folder: str | None) -> DataFrame:
        """The table that SQL text names, or the Delta `folder`, read with the options of `WITH (…)`."""
        session = self.spark._jsparkSession
        reader: Any = session.readStream() if ref.streaming else session.read()
        for key, value in ref.options.items():
            reader.option(key, value)
        jreader = reader if ref.options else None
        name = ".".join(sqltext.quoted(p) for p in ref.parts)
        if folder is not None:
            self.external[name] = None
            return self._stored(folder, ref.streaming, jreader)
        return self.relation(name, streaming=ref.streaming, jreader=jreader, otherwise=lambda: self.spark.table(name), options=ref.options)

    def _completed(self, parts: Sequence[str]) -> str | None:
        """What Spark is asked for in the place of a name that `USE` completes; None where it is asked for the name as written."""
        used, own = names_used(), self.catalog.namespace
        if used is None or len(parts) == 3 or "/" in parts[-1]:
            return None
        if len(parts) == 1 and self.spark._jsparkSession.sessionState().catalog().getTempView(parts[0]).isDefined():
            return None
        full = (used.catalog, used.schema, *parts) if len(parts) == 1 else (used.catalog, *parts)
        return ".".join(map(sqltext.quoted, full if used.catalog != own.catalog else full[1:]))

    def _view(self, frame: DataFrame) -> str:
        """A temporary view of a frame; its name."""
        # The same in every process, because it shows in plans; unlike that of any other query, because analysis nests.
        view = f"__lakelet_{zlib.crc32(self.label.encode()):08x}_{self._views}"
        self._views += 1
        frame._jdf.createOrReplaceTempView(view)
        return view

    # --------------------------------------------------------------------------------------- files in the text of SQL

    def _with_files(self, text: str, run: Callable[[str], DataFrame], views: dict[str, DataFrame]) -> str:
        """The text with a view in the place of each call of `read_files`, `cloud_files` and `cloud_files_state`."""

        def view(call: sqltext.CallRef) -> str:
            frame = self._files_of(call, filecalls.evaluated(run))
            name = self._view(frame)
            views[name] = frame
            return name

        return filecalls.replaced(self.spark, text, view)

    def _files_of(self, call: sqltext.CallRef, evaluate: filecalls.Evaluate) -> DataFrame:
        where = caller_location()
        if call.name == filecalls.STATE:
            return self._states(filecalls.state_of(call, evaluate, where), where)
        if call.name == READ_KAFKA:
            names, texts = [name for name, _ in call.arguments], [text for _, text in call.arguments]
            options = kafka_options(names, evaluate(texts) if texts else [], where)
            return open_kafka(self.spark, options, streaming=call.streaming, where=where)
        if call.name == filecalls.EVENT_LOG:
            raise filecalls.no_event_log(where)
        spec = self._placed(filecalls.source_of(call, self.spark, evaluate, where))
        if call.name == filecalls.CLOUD_FILES or call.streaming:
            return self._stream_of(spec)
        confs = {name: value for name in SOURCE_CONFS if (value := self.spark.conf.get(name, None)) is not None}
        description, notices = open_files(spec, confs)
        self.notices += [Notice(text, where) for text in notices]
        return read_files(self.spark, description)

    def _states(self, asked: filecalls.StateOf, where: Location) -> DataFrame:
        if asked.checkpoint is not None:
            return self.spark.createDataFrame(checkpoint_states(asked.checkpoint, where).to_pylist(), STATES)
        found = self.catalog.find(_parts(asked.table or ""))
        dataset = self.catalog.datasets.get(found.key) if found else None
        if dataset is None:
            raise self._unknown(asked.table or "")
        scope = self._scopes[-1] if self._scopes else self.reads
        scope.setdefault((dataset.name.key, False), dataset.name)
        return self.file_states(dataset)

    def _with_hidden(self, text: str, files: Mapping[str, DataFrame]) -> DataFrame:
        """Run a text that names `_metadata`, which a view would not let through."""
        plan = sqltext.in_place(self.spark, text, {name: frame._jdf.queryExecution().analyzed() for name, frame in files.items()})
        dataset = getattr(self.spark._jvm, "org.apache.spark.sql.classic.Dataset")
        return DataFrame(dataset.ofRows(self.spark._jsparkSession, plan), self.spark)

    # --------------------------------------------------------------------------------------------------- cloudFiles

    def load(self, path: str | None, options: Mapping[str, str], schema: StructType | None) -> DataFrame:
        """A `cloudFiles` stream."""
        where = caller_location()
        if not path:
            raise LakeletError("CF_SOURCE_DIRECTORY_PATH_REQUIRED", "load() of a cloudFiles stream was called without a path", where=where)
        return self._stream_of(self._placed(SourceSpec(path=path, options=dict(options), schema=schema, where=where)))

    def _placed(self, spec: SourceSpec) -> SourceSpec:
        """The source with its places on this machine. Raises PATH_NOT_MAPPED or MAP_TARGET_MISSING."""
        for option, place in homeless_log(spec).items():
            text = f"{option} has no effect here: {place} is no place of this machine; the columns are kept in the storage"
            self.notices.append(Notice(text, spec.where or caller_location()))
        return located_source(spec)

    def _stream_of(self, spec: SourceSpec) -> DataFrame:
        self.sources.append(spec)
        return self.open_source(spec, len(self.sources) - 1)


def _feed_asked(options: Mapping[str, str]) -> bool:
    return any(key.lower() in _CHANGE_FEED and value.lower() == "true" for key, value in options.items())


def _streamed_folder(ref: sqltext.RelationRef) -> str | None:
    """The folder of `STREAM delta.`folder``, which Spark itself reads as a batch only; None for anything else."""
    return located(ref.parts[1]) if ref.streaming and len(ref.parts) == 2 and ref.parts[0].lower() == "delta" else None


def _on_text_too(text: str, run: Callable[[str], DataFrame]) -> DataFrame:
    """Run a query; if it takes values out of JSON text by `column:path`, which Spark does for VARIANT only, run it in Spark's words."""
    try:
        return run(text)
    except Exception as problem:
        if _NOT_VARIANT not in str(problem):
            raise
        from lakelet.sql.colons import json_paths  # here, because it loads sqlglot

        return run(json_paths(text))


def _where_it_could_be(name: str) -> str:
    listed = "List all names: lakelet graph"
    if name.lower().startswith("live."):
        return listed
    return f"If it is a table from outside, say where its folder or file lies: {table_flag(name)}. {listed}"


def _parts(text: str) -> tuple[str, ...]:
    try:
        return split_name(text)
    except ValueError:
        return (text,)


def _command_error(text: str) -> LakeletError:
    return LakeletError(
        "QUERY_FAILED_ANALYSIS",
        f"spark.sql was given a command inside a dataset's function: {' '.join(text.split())[:80]}",
        where=caller_location(),
        why="the function is called several times per update, also when nothing may be written",
        todo="Return a query; what it should write is the dataset itself. Put other commands at the file's top level.",
    )


def _kind_error(what: str, todo: str) -> LakeletError:
    return LakeletError("QUERY_KIND", what, where=caller_location(), todo=todo)


def data_frame(result: Any, flow: Flow) -> DataFrame:
    """`result` if it is a DataFrame. Raises QUERY_RETURNED_NO_DATAFRAME naming the function."""
    if isinstance(result, DataFrame):
        return with_file_names(result)
    name = getattr(flow.query, "__name__", "the function")
    raise LakeletError(
        "QUERY_RETURNED_NO_DATAFRAME",
        f"{name}() returned {_described(result)} instead of a Spark DataFrame",
        where=flow.where,
        dataset=str(flow.target),
        todo="End the function with `return df`.",
    )


def _described(result: Any) -> str:
    if result is None:
        return "nothing"
    kind = type(result)
    return f"a {'' if kind.__module__ == 'builtins' else kind.__module__.split('.')[0] + ' '}{kind.__name__}"


# ------------------------------------------------------------------------------------------------- wrapping pyspark


@contextmanager
def intercepted(paths: PathMap | None = None, tables: namedreads.Named | None = None) -> Iterator[None]:
    """Wrap pyspark's reading methods for the life of the block; paths of user code are mapped, named tables can be read."""
    named = tables or namedreads.Named({}, Namespace())
    with wrapping() as wrap, mapping_paths(paths or PathMap(), wrap), namedreads.naming(named):
        _wrap_reads(wrap)
        yield


def _wrap_reads(wrap: Wrap) -> None:
    wrap(SparkSession, "table", lambda original: lambda self, name: _table(self, name, False, None, lambda: original(self, name)))
    wrap(DataFrameReader, "table", _reader_table(streaming=False))
    wrap(DataStreamReader, "table", _reader_table(streaming=True))
    wrap(SparkSession, "sql", _sql)
    wrap(DataFrameReader, "load", _batch_load)
    for name in ("format", "schema", "option", "options"):
        wrap(DataStreamReader, name, remembering(name))
    for name in ("format", "option", "options"):
        wrap(DataFrameReader, name, remembering(name))
    wrap(DataStreamReader, "load", _stream_load)
    wrap(SparkCatalog, "tableExists", _table_exists)
    wrap_tables(wrap)


def _table(
    session: Any, name: Any, streaming: bool, jreader: Any, otherwise: Callable[[], DataFrame], options: Options = None
) -> DataFrame:
    def elsewhere() -> DataFrame:
        files = open_relation(session, _parts(name), streaming=streaming, jreader=jreader)
        return otherwise() if files is None else files

    reader = active_reader()
    if not isinstance(name, str):
        return otherwise()
    if not isinstance(reader, QueryReader):
        key = namedreads.named().key_of(name)
        known = key in namedreads.named()
        return namedreads.open_outside(session, key, streaming=streaming, jreader=jreader) if known else elsewhere()
    return reader.relation(name, streaming=streaming, jreader=jreader, otherwise=elsewhere, options=options)


def _reader_table(*, streaming: bool) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        def table(self: Any, tableName: str) -> DataFrame:
            asked = said_to(self).get("options", {})
            jreader = self._jreader if asked or not streaming else None  # a stream reader without options is as good as a new one
            return _table(self._spark, tableName, streaming, jreader, lambda: original(self, tableName), asked)

        return table

    return make


def _sql(original: Any) -> Any:
    def sql(self: Any, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:
        reader = active_reader()
        answer = reader.sql if isinstance(reader, QueryReader) else functools.partial(sql_outside, self)
        if not kwargs:
            return answer(sqlQuery, lambda text: original(self, text, args))
        formatter = SQLStringFormatter(self)  # as pyspark does it; the text must be complete before names are looked up
        try:
            return answer(formatter.format(sqlQuery, **kwargs), lambda text: original(self, text, args))
        finally:
            formatter.clear()

    return sql


def _table_exists(original: Any) -> Any:
    def exists(self: Any, tableName: str, dbName: str | None = None) -> bool:
        name = tableName if dbName is None else f"{sqltext.quoted(dbName)}.{sqltext.quoted(tableName)}"
        reader = active_reader()
        found = reader.catalog.find(_parts(name)) if isinstance(reader, QueryReader) else None
        if isinstance(reader, QueryReader) and found and found.key in {*reader.catalog.datasets, *reader.catalog.other_tables}:
            return True
        if (found.key if found else namedreads.named().key_of(name)) in namedreads.named():
            return True
        try:
            return bool(original(self, tableName, dbName))
        except AnalysisException as problem:
            if (problem.getCondition() or "").split(".")[0] in _MISSING_TABLE:
                return False
            raise

    return exists


def _stream_load(original: Any) -> Any:
    def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:
        reader, said = active_reader(), said_to(self)
        wanted = format or said.get("format")
        if not isinstance(reader, QueryReader) or str(wanted).lower() != "cloudfiles":
            frame: DataFrame = original(self, path, format, schema, **options)
            return frame
        given = given_options(self, options)
        declared = struct_of(schema if schema is not None else said.get("schema"), reader.spark)
        return reader.load(path or pop_path(given), given, declared)

    return load


def ddl(text: str, spark: SparkSession) -> StructType:
    """The StructType of DDL text."""
    found = struct_of(text, spark)
    assert found is not None
    return found


def _batch_load(original: Any) -> Any:
    def load(self: Any, path: Any = None, format: Any = None, schema: Any = None, **options: Any) -> DataFrame:
        if str(format or said_to(self).get("format")).lower() == "cloudfiles" and isinstance(active_reader(), QueryReader):
            error = batch_usage()
            error.where = caller_location()
            raise error
        frame: DataFrame = original(self, path, format, schema, **options)
        return frame

    return load


__all__ = ["Catalog", "Location", "QueryReader", "Watch", "data_frame", "ddl", "intercepted"]
