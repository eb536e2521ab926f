"""Looks into a storage: its tables, their rows, its event log, and queries over them. Reads only.

Tables are read with delta-rs where it can (no JVM); `sql`, and tables with features it does not know, go through Spark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from lakelet.base import sentences
from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.names import Namespace, TableName, split_name
from lakelet.files.delta_rs_paths import open_table
from lakelet.files.paths import AnyPath
from lakelet.files.remote import is_s3
from lakelet.inspection.json_values import json_rows, spark_type_text
from lakelet.inspection.scripts import script
from lakelet.language.model import Kind
from lakelet.language.sql_text.spark_words import in_words_of_spark
from lakelet.storage.eventlog import views as event_views
from lakelet.storage.eventlog.failures import coded
from lakelet.storage.eventlog.reading import open_log
from lakelet.storage.eventlog.views import EVENT_LOG
from lakelet.storage.published_views import PublishedView, load_views
from lakelet.storage.root import Registry, Storage, StoredDataset, new_table_path

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from lakelet.language.sql_text.table_names import CallRef, RelationRef

Note = Callable[[str], None]


@dataclass(frozen=True)
class TableInfo:
    """One stored dataset. `rows`, `version` and `columns` are None or empty while nothing was written to it yet.

    A sink has them, and a path, if it is a Delta table. `quarantine_of`: full name of the dataset whose dropped rows it keeps.
    """

    name: str
    kind: Kind
    path: str
    rows: int | None
    version: int | None
    columns: tuple[Mapping[str, str], ...]
    private: bool
    active: bool
    quarantine_of: str | None = None

    def as_json(self) -> dict[str, Any]:
        found = {**asdict(self), "columns": [dict(column) for column in self.columns]}
        return found if self.quarantine_of else {key: value for key, value in found.items() if key != "quarantine_of"}


def list_tables(storage: AnyPath, *, private: bool = False) -> list[TableInfo]:
    """All stored datasets by name, private ones only on demand. Row counts come from the tables' logs, no data is read."""
    registry = Storage(storage).registry()
    chosen = [d for d in registry.datasets.values() if private or not d.private]
    return [_info(storage, dataset) for dataset in sorted(chosen, key=lambda d: d.name)]


def _info(storage: AnyPath, dataset: StoredDataset) -> TableInfo:
    path = _path(storage, dataset)
    rows = version = None
    columns: tuple[Mapping[str, str], ...] = ()
    table = _open(path) if dataset.path else None
    if table is not None:
        version = table.version()
        fields = json.loads(table.schema().to_json())["fields"]
        columns = tuple({"name": f["name"], "type": spark_type_text(f["type"])} for f in fields)
        rows = _count(table)
    shown = path.as_uri() if dataset.path else ""
    return TableInfo(dataset.name, dataset.kind, shown, rows, version, columns, dataset.private, dataset.active, dataset.quarantine_of)


def _path(storage: AnyPath, dataset: StoredDataset) -> AnyPath:
    return Storage(storage).at(dataset.path)


def _open(path: AnyPath) -> Any:
    """The Delta table, None where there is none."""
    from deltalake.exceptions import TableNotFoundError

    try:
        return open_table(path)
    except TableNotFoundError:
        return None


def _count(table: Any) -> int | None:
    """Rows of a table from the statistics in its log; counted where they are missing or do not know of deletions."""
    files = table.get_add_actions(flatten=True)
    counts = files.column("num_records").to_pylist() if "num_records" in files.schema.names else [None]
    if None not in counts and "deletionVectors" not in (table.protocol().reader_features or ()):
        return sum(counts)
    found = next(iter(_query(table, "SELECT count(*) AS n FROM t")), None)
    return int(found.column(0)[0].as_py()) if found is not None else 0


def _is_mapped(table: Any) -> bool:
    """Whether the table's files hold its columns under other names; delta-rs's dataset reads those as NULL, its queries do not."""
    properties: Mapping[str, str] = table.metadata().configuration or {}
    return properties.get("delta.columnMapping.mode", "none") != "none"


def _query(table: Any, sql: str) -> pa.RecordBatchReader:
    import pyarrow as pa
    from deltalake import QueryBuilder

    builder = QueryBuilder().register("t", table)
    builder.execute("SET datafusion.execution.parquet.coerce_int96 = 'us'")  # files of an older Lakelet: nanoseconds end in 2262
    return pa.RecordBatchReader.from_stream(builder.execute(sql))


# --- rows -----------------------------------------------------------------------------------------------------------------------------


def find_dataset(registry: Registry, name: str) -> StoredDataset:
    """The stored dataset that `name` (one to three parts) means in the pipeline's namespace.

    Raises UNKNOWN_TABLE with the nearest names.
    """
    try:
        resolved = registry.namespace.resolve(name)
    except ValueError as problem:
        raise LakeletError("UNKNOWN_TABLE", str(problem)) from None
    found = _stored(registry, resolved)
    if found is None:
        raise _unknown(name, registry)
    return found


def _stored(registry: Registry, name: TableName) -> StoredDataset | None:
    """The dataset of that name, or the Delta sink that writes to one below the storage. Raises UNKNOWN_TABLE for other sinks."""
    found = registry.datasets.get(name.key)
    if found is None:
        path = new_table_path(name)
        found = next((d for d in registry.datasets.values() if d.kind is Kind.SINK and d.path == path), None)
    if found is not None and not found.path:
        todo = "Look where its options point, or at the table that is written to it."
        raise LakeletError("UNKNOWN_TABLE", f"{found.name} is a sink, whose rows are outside of the storage", todo=todo)
    return found


def _unknown(name: str, registry: Registry) -> LakeletError:
    known = [d.name for d in registry.datasets.values()]
    todo = "List all names: lakelet show" if known else "Nothing is stored there yet: lakelet run"
    nearest = nearest_names(name, [*known, EVENT_LOG, *event_views.NAMES])
    return LakeletError("UNKNOWN_TABLE", f"the storage holds no table {name}", nearest=nearest, todo=todo)


@dataclass(frozen=True)
class Rows:
    """Rows of a table or a result: its columns, and the rows as JSON values, read while they are consumed."""

    columns: tuple[str, ...]
    rows: Iterator[dict[str, Any]]


def read_rows(storage: AnyPath, name: str, *, limit: int | None = None, note: Note = lambda text: None) -> Rows:
    """The rows of one stored dataset, or of a view of the event log, in no particular order.

    `note` gets a word when Spark has to be started for it. Raises UNKNOWN_TABLE, also for a dataset without a table yet.
    """
    registry = Storage(storage).registry()
    of_events = event_views.relation_of(tuple(name.split(".")))
    if of_events is not None and registry.namespace.resolve(name).key not in registry.datasets:
        note(f"{of_events} is a view of the event log, which needs Spark; starting it ...")
        return run_sql(storage, f"SELECT * FROM {EVENT_LOG}.{of_events}" + ("" if limit is None else f" LIMIT {limit}"))
    dataset = find_dataset(registry, name)
    reader = _reader(_path(storage, dataset), dataset, limit, note)
    return Rows(tuple(reader.schema.names), islice((row for batch in reader for row in json_rows(batch)), limit))


def read_arrow(storage: AnyPath, name: str, *, note: Note = lambda text: None) -> pa.RecordBatchReader:
    """The rows of one stored dataset as arrow batches; a one-part name is looked for in all schemas. Raises UNKNOWN_TABLE."""
    from pyarrow.dataset import ParquetReadOptions

    registry = Storage(storage).registry()
    same = [d for d in registry.datasets.values() if d.name.rsplit(".", 1)[-1].lower() == name.lower()]
    dataset = same[0] if len(same) == 1 else find_dataset(registry, name)
    path = _path(storage, dataset)
    table = _open(path)
    if table is not None and not table.protocol().reader_features and not _is_mapped(table):
        microseconds = ParquetReadOptions(coerce_int96_timestamp_unit="us")
        return table.to_pyarrow_dataset(parquet_read_options=microseconds).scanner().to_reader()
    return _reader(path, dataset, None, note)


def _reader(path: AnyPath, dataset: StoredDataset, limit: int | None, note: Note) -> pa.RecordBatchReader:
    table = _open(path)
    if table is None:
        raise LakeletError("UNKNOWN_TABLE", f"{dataset.name} is known but was not written yet", todo="lakelet run")
    if '"variant"' not in table.schema().to_json():
        from deltalake.exceptions import DeltaError

        try:
            return _query(table, "SELECT * FROM t" if limit is None else f"SELECT * FROM t LIMIT {limit}")
        except DeltaError:
            pass
    note(f"{dataset.name} uses table features that need Spark; starting it ...")
    from lakelet.spark.launch.session import start_session

    frame = start_session(app_name="lakelet show", s3=is_s3(path)).read.format("delta").load(str(path))
    return _collected(frame if limit is None else frame.limit(limit)).to_reader()


def _collected(frame: Any) -> pa.Table:
    """The rows of a Spark data frame; types that arrow does not take become text (VARIANT as JSON)."""
    from pyspark.sql import functions as F

    plain = []
    for position, (field, name) in enumerate(zip(frame.schema.fields, _distinct(frame.columns), strict=True)):
        kind = field.dataType.typeName()
        column = F.col(f"_{position}")
        converted = F.to_json(column) if kind == "variant" else column.cast("string") if "interval" in kind else column
        plain.append(converted.alias(name))
    renamed = frame.toDF(*(f"_{position}" for position in range(len(frame.columns))))
    return renamed.select(*plain).toArrow()


def _distinct(names: Sequence[str]) -> list[str]:
    """The names of columns; one that was there before gets a number, so that each has a key of its own in a JSON record."""
    found: list[str] = []
    for name in names:
        number, new = 1, name
        while new in found or (number > 1 and new in names):
            number += 1
            new = f"{name}_{number}"
        found.append(new)
    return found


# --- SQL ------------------------------------------------------------------------------------------------------------------------------


def run_sql(storage: AnyPath, sql: str, *, spark: SparkSession | None = None) -> Rows:
    """Run one query over the stored tables, under the names the pipeline knows them by; the event log is `event_log`.

    Statements that create views may stand before it, which count for this text only; `lakelet.storage.eventlog.views` has others.
    Starts a Spark session unless one is given. Raises SQL_FAILED (not a query, does not analyse), UNKNOWN_TABLE, QUERY_FAILED.
    """
    from lakelet.spark.launch.session import start_session

    spark = spark or start_session(app_name="lakelet sql", s3=is_s3(storage))
    from lakelet.spark.session_clones import quiet_pyspark

    with quiet_pyspark():
        table = _result(spark, storage, sql)
    return Rows(tuple(table.schema.names), json_rows(table))


def _result(spark: SparkSession, storage: AnyPath, sql: str) -> pa.Table:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from lakelet.language.sql_text import table_names as sqltext

    asked = script(sql)
    try:
        if not all(sqltext.is_query(spark, in_words_of_spark(query)) for query in (*(query for _, query in asked.views), asked.query)):
            raise LakeletError("SQL_FAILED", "only queries are allowed here", todo='For example: lakelet sql "SELECT * FROM …"')
        views = _Views(spark, storage)
        for name, query in asked.views:
            views.define(name, views.frame_of(query))
        frame = views.frame_of(asked.query)
    except (PySparkException, Py4JError) as problem:  # Spark raises internal errors of Java for some queries that it cannot analyse
        raise _sql_error("SQL_FAILED", "the query does not analyse", problem) from problem
    try:
        return _collected(frame)
    except (PySparkException, Py4JError) as problem:
        raise _sql_error("QUERY_FAILED", "the query failed", problem) from problem


def _sql_error(code: str, what: str, problem: Exception) -> LakeletError:
    lines = [line for line in str(problem).splitlines() if line.strip()]
    text = lines[: next((i for i, line in enumerate(lines) if sentences.PLAN.is_in(line)), 8)]
    return LakeletError(code, what, why="\n".join(text[:8]))


class _Views:
    """Makes a temporary view for each stored table that a query names, and gives the view's name."""

    def __init__(self, spark: SparkSession, storage: AnyPath, within: tuple[PublishedView, ...] = ()) -> None:
        self._spark = spark
        self._storage = Storage(storage)
        self._registry = self._storage.registry()
        self._files: set[str] = set()
        self._made: dict[str, str] = {}  # views of the event log
        self._defined: dict[str, str] = {}  # views of the text itself
        self._within = within  # the published views whose query this is, the outermost first

    def frame_of(self, query: str) -> DataFrame:
        """What a query gives. Paths into JSON text are put into Spark's words where Spark does not take the query as it is."""
        from py4j.protocol import Py4JError
        from pyspark.errors import ParseException, PySparkException

        from lakelet.spark.names.json_paths import on_text_too

        try:
            return on_text_too(self._text_of(query), self._spark.sql)
        except (PySparkException, Py4JError) as problem:
            in_words = in_words_of_spark(query)
            if in_words == query:
                raise
            if isinstance(problem, ParseException):
                return self._spark.sql(self._text_of(in_words))
            with suppress(PySparkException, Py4JError):
                return self._spark.sql(self._text_of(in_words))
            raise

    def _text_of(self, query: str) -> str:
        from lakelet.language.sql_text import table_names as sqltext
        from lakelet.spark.names import file_functions as filecalls

        return sqltext.rewrite(self._spark, filecalls.replaced(self._spark, query, self.of_files), self)

    def define(self, name: str, frame: DataFrame) -> None:
        """Let a name of one part mean the rows of a data frame."""
        view = _plain(f"view.{len(self._defined)}.{name.lower()}")
        frame.createOrReplaceTempView(view)
        self._defined[name.lower()] = view

    def of_files(self, call: CallRef) -> str:
        """The view for a call of `read_files` or `cloud_files_state`. Raises CF_UNSUPPORTED_CLOUD_FILES_SQL_FUNCTION for streams."""
        from lakelet.autoloader import register
        from lakelet.autoloader.batch import open_files, read_files
        from lakelet.spark.names import file_functions as filecalls
        from lakelet.spark.names.file_states import STATES, checkpoint_states, dataset_states

        evaluate = filecalls.evaluated(self._spark.sql)
        if call.name == filecalls.EVENT_LOG:  # of whatever it is asked for: a storage has one log
            return self._kept(self._of_events(event_views.SOURCE))
        if call.name == "read_kafka":
            raise LakeletError("SQL_FAILED", "read_kafka is a source of pipelines", todo="Declare a streaming table that reads it.")
        if call.name == filecalls.STATE:
            asked = filecalls.state_of(call, evaluate, None)
            if asked.checkpoint is not None:
                states = checkpoint_states(asked.checkpoint, None)
            else:
                stored = find_dataset(self._registry, asked.table or "")
                states = dataset_states(self._storage, TableName(*split_name(stored.name)))
            frame = self._spark.createDataFrame(states.to_pylist(), STATES)
        elif call.streaming or call.name == filecalls.CLOUD_FILES:
            what = f"{call.name} is a stream here, which only a pipeline can run"
            raise LakeletError("CF_UNSUPPORTED_CLOUD_FILES_SQL_FUNCTION", what, todo="Use read_files without STREAM.")
        else:
            register(self._spark, wrap=False)
            frame = read_files(self._spark, open_files(filecalls.source_of(call, self._spark, evaluate, None), {})[0])
        name = f"lakelet_files_{len(self._files)}"
        frame.createOrReplaceTempView(name)
        return self._kept(name)

    def _kept(self, view: str) -> str:
        """A view that stands in the query already and is no name of the storage."""
        self._files.add(view)
        return view

    def __call__(self, ref: RelationRef) -> str | None:
        from lakelet.language.sql_text.table_names import names_of

        if ref.parts[0] in self._files:
            return None
        if len(ref.parts) == 1 and ref.parts[0].lower() in self._defined:
            return self._defined[ref.parts[0].lower()]
        parts = ref.parts[1:] if len(ref.parts) > 1 and ref.parts[0].lower() == "live" else ref.parts
        if not 1 <= len(parts) <= 3:
            raise _unknown(names_of([ref])[0], self._registry)
        space = Namespace(self._within[-1].catalog, self._within[-1].schema) if self._within else self._registry.namespace
        full = TableName(*(space.catalog, space.schema)[: 3 - len(parts)], *parts)
        stored = _stored(self._registry, full)
        if stored is not None:
            return self._view(full.key, _path(self._storage.root, stored), stored.name, ref.options)
        view = load_views(self._storage).get(full.key)
        if view is not None and view not in self._within:
            if ref.travel is not None:
                raise LakeletError("SQL_FAILED", f"{full} is a view, which has no versions", todo="Name the table that it reads.")
            return self._published(full.key, view)
        if len(parts) == 2 and parts[0].lower() in ("delta", "parquet", "json", "csv", "text", "orc"):
            return None
        if _open(self._storage.at(new_table_path(full))) is not None:  # written by a sink
            return self._view(full.key, self._storage.at(new_table_path(full)), str(full), ref.options)
        of_events = event_views.relation_of(tuple(parts))
        if of_events is not None:
            return self._of_events(of_events, ref.options)
        raise _unknown(names_of([ref])[0], self._registry)

    def _published(self, key: str, view: PublishedView) -> str:
        """The query of a published view, in whose place names mean what they mean where it was declared."""
        _Views(self._spark, self._storage.root, (*self._within, view)).frame_of(view.query).createOrReplaceTempView(_plain(key))
        return _plain(key)

    def _of_events(self, name: str, options: Mapping[str, str] | None = None) -> str:
        """The event log, or a view of it, in whose query names mean the event log's own views whatever the storage holds."""
        from lakelet.language.sql_text import table_names as sqltext

        if name == event_views.SOURCE:
            open_log(self._storage.events)
            return self._view(EVENT_LOG, self._storage.events, "the event log", options)
        if name not in self._made:
            query = event_views.event_view(name).query
            text = sqltext.rewrite(self._spark, query, lambda ref: self._of_events(ref.parts[0].lower()))
            self._made[name] = _plain(f"{EVENT_LOG}.{name}")
            self._spark.sql(text).createOrReplaceTempView(self._made[name])
        return self._made[name]

    def _view(self, key: str, path: AnyPath, shown: str, options: Mapping[str, str] | None = None) -> str:
        if _open(path) is None:
            raise LakeletError("UNKNOWN_TABLE", f"{shown} is known but was not written yet", todo="lakelet run")
        asked = options or {}
        name = _plain(".".join([key, *(f"{option}={asked[option]}" for option in sorted(asked))]))
        self._spark.read.options(**asked).format("delta").load(str(path)).createOrReplaceTempView(name)
        return name


def _plain(key: str) -> str:
    """The name of the temporary view for a table."""
    return "lakelet_" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in key)


# --- events ---------------------------------------------------------------------------------------------------------------------------


def read_events(storage: AnyPath, *, update: str | None = None, every: bool = False, event_type: str | None = None) -> list[dict[str, Any]]:
    """Rows of the event log in sequence order, in the form of `Event.as_json`.

    Of the latest update, of the one whose id begins with `update`, or of `every` one. Raises USAGE if no update has that id, and
    EVENT_LOG_FAILED if the log is damaged.
    """
    with coded(Storage(storage).events):
        return _events(storage, update, every, event_type)


def _events(storage: AnyPath, update: str | None, every: bool, event_type: str | None) -> list[dict[str, Any]]:
    table = open_log(Storage(storage).events)
    if table is None:
        return []
    conditions = [f"event_type = {_literal(event_type)}"] if event_type else []
    if not every:
        conditions.append(f"origin['update_id'] = {_literal(_update_id(table, update))}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    rows = [row for batch in _query(table, f"SELECT * FROM t{where}") for row in batch.to_pylist()]
    began: dict[str | None, int] = {}
    for row in rows:
        update_id, moment = row["origin"]["update_id"], row["sequence"]["control_plane_seq_no"]
        began[update_id] = min(moment, began.get(update_id, moment))
    rows.sort(key=lambda row: (began[row["origin"]["update_id"]], row["origin"]["update_id"], _number(row)))
    return [_event_json(row) for row in rows]


def _number(row: Mapping[str, Any]) -> int:
    return int(row["sequence"]["data_plane_id"]["seq_no"])


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _update_id(table: Any, prefix: str | None) -> str:
    sql = "SELECT origin['update_id'] AS id, max(\"timestamp\") AS last FROM t GROUP BY origin['update_id'] ORDER BY last DESC"
    known = [str(i) for batch in _query(table, sql) for i in batch.column(0).to_pylist() if i is not None]
    found = [i for i in known if prefix is None or i.startswith(prefix)]
    if not found or (prefix is not None and len(found) > 1 and prefix not in found):
        what = f"{'several updates have' if found else 'no update has'} an id that begins with {prefix}"
        raise LakeletError("USAGE", what, todo="Known, newest first: " + ", ".join(i[:6] for i in known[:5]))
    return prefix if prefix in found else found[0]


def _event_json(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "sequence": _number(row),
        "timestamp": row["timestamp"].isoformat().replace("+00:00", "Z"),
        "event_type": row["event_type"],
        "level": row["level"],
        "message": row["message"],
        "maturity_level": row["maturity_level"],
        "origin": {k: v for k, v in row["origin"].items() if v is not None},
        "details": json.loads(row["details"] or "{}"),
        "error": row["error"],
    }
