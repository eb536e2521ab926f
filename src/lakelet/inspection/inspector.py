"""Looks into a storage: its tables, their rows, its event log, and queries over them. Reads only.

Tables are read with delta-rs and queries are answered by DuckDB where these give what Spark gives (no JVM); the rest goes to Spark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelet.base.errors import LakeletError
from lakelet.base.names import Namespace, quoted, split_name
from lakelet.base.phases import report
from lakelet.files.delta_rs import has_variants, is_mapped, open_or_none, query, row_count, schema_fields, spark_type_text
from lakelet.files.paths import AnyPath
from lakelet.files.stores import stores_of
from lakelet.inspection.json_values import field_type_text, json_rows
from lakelet.inspection.table_lookup import find_dataset, path_of, unwritten
from lakelet.language.model import Kind
from lakelet.storage.eventlog import views as event_views
from lakelet.storage.eventlog.views import EVENT_LOG
from lakelet.storage.published_views import published_view
from lakelet.storage.root import Storage, StoredDataset

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


Note = Callable[[str], None]
"""Called with the reason right before a query starts Spark."""


def first_note(note: Note) -> Note:
    """A note for several queries of one command, which is passed on once."""
    notes: list[str] = []

    def once(reason: str) -> None:
        if not notes:
            notes.append(reason)
            note(reason)

    return once


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
    return [_table_info(storage, dataset) for dataset in sorted(chosen, key=lambda d: d.name)]


def _table_info(storage: AnyPath, dataset: StoredDataset) -> TableInfo:
    path = path_of(storage, dataset)
    rows = version = None
    columns: tuple[Mapping[str, str], ...] = ()
    table = open_or_none(path) if dataset.path else None
    if table is not None:
        version = table.version()
        columns = tuple({"name": f["name"], "type": spark_type_text(f["type"])} for f in schema_fields(table))
        rows = _row_count(table)
    shown = path.as_uri() if dataset.path else ""
    return TableInfo(dataset.name, dataset.kind, shown, rows, version, columns, dataset.private, dataset.active, dataset.quarantine_of)


def _row_count(table: Any) -> int | None:
    """Rows of a table from the statistics in its log; counted where these do not say it."""
    known = row_count(table)
    if known is not None:
        return known
    found = next(iter(query(table, "SELECT count(*) AS n FROM t")), None)
    return int(found.column(0)[0].as_py()) if found is not None else 0


class Batches:
    """Record batches that are read while they are consumed, once.

    Not arrow's own reader over Python's iterator: a process that ends while one is open never ends.
    """

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        self.schema, self._batches = schema, iter(batches)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._batches

    def read_all(self) -> pa.Table:
        import pyarrow as pa

        return pa.Table.from_batches(list(self), self.schema)


@dataclass(frozen=True)
class TableRows:
    """Rows of a table or a result: its columns, their types in Spark's words, and the rows as JSON values, read while they are consumed.

    `total`: how many rows there are without a limit, None where nobody counted; `more`: there are more than these, not counted. `batches`:
    the same rows for arrow; read one or the other.
    """

    columns: tuple[str, ...]
    rows: Iterator[dict[str, Any]]
    types: tuple[str, ...] = ()
    total: int | None = None
    batches: Batches | None = None
    more: bool = False


def _table_rows(reader: Batches, limit: int | None = None, total: int | None = None) -> TableRows:
    names = tuple(reader.schema.names)
    types = tuple(map(field_type_text, reader.schema))
    return TableRows(names, islice((row for batch in reader for row in json_rows(batch)), limit), types, total, reader)


@dataclass(frozen=True)
class RowSelection:
    """Which rows and columns to show: a condition, an ORDER BY list and a list of columns, as SQL texts; None for all."""

    where: str | None = None
    order_by: str | None = None
    columns: str | None = None

    def query(self, name: str) -> str:
        """The query that selects from a table of that name."""
        text = f"SELECT {self.columns or '*'} FROM {name}"
        text += f" WHERE {self.where}" if self.where else ""
        return text + (f" ORDER BY {self.order_by}" if self.order_by else "")


def read_rows(
    storage: AnyPath, name: str, *, limit: int | None = None, selection: RowSelection = RowSelection(), note: Note = lambda text: None
) -> TableRows:
    """The rows of one stored dataset, published view, or view of the event log, in no particular order unless `selection` has one.

    `note`: see `Note`. Raises UNKNOWN_TABLE, also for a dataset without a table yet.
    """
    registry = Storage(storage).registry()
    of_events = event_views.relation_of(tuple(name.split(".")))
    if of_events is not None and registry.namespace.resolve(name).key not in registry.datasets:
        return _run_made(storage, selection.query(f"{EVENT_LOG}.{of_events}"), limit, note)
    view = published_view(Storage(storage), name)
    if view is not None:
        return _run_made(storage, selection.query(".".join(map(quoted, split_name(view.name)))), limit, note)
    dataset = find_dataset(registry, name)
    table = open_or_none(path_of(storage, dataset))
    if selection != RowSelection():
        if table is None:
            raise unwritten(dataset.name)
        selected = selection.query(".".join(quoted(part) for part in split_name(dataset.name)))
        return _run_made(storage, selected, limit, note)
    total = _row_count(table) if table is not None and limit is not None else None
    return _table_rows(_reader(path_of(storage, dataset), dataset, limit, note), limit, total)


def _run_made(storage: AnyPath, sql: str, limit: int | None, note: Note) -> TableRows:
    """Run a query that the user has not written: an error has no place in it."""
    try:
        return run_sql(storage, sql, limit=limit, note=note)
    except LakeletError as problem:
        problem.where = None
        raise


def read_arrow(storage: AnyPath, name: str, *, note: Note = lambda text: None) -> Batches:
    """The rows of one stored dataset as arrow batches; a one-part name is searched in all schemas. Raises UNKNOWN_TABLE."""
    registry = Storage(storage).registry()
    dataset = find_dataset(registry, name)
    path = path_of(storage, dataset)
    return _reader(path, dataset, None, note)


def _reader(path: AnyPath, dataset: StoredDataset, limit: int | None, note: Note) -> Batches:
    table = open_or_none(path)
    if table is None:
        raise unwritten(dataset.name)
    if not has_variants(table):
        import pyarrow as pa
        from deltalake.exceptions import DeltaError

        from lakelet.inspection.texts import readable

        with suppress(DeltaError, pa.ArrowInvalid):
            found = query(table, "SELECT * FROM t" if limit is None else f"SELECT * FROM t LIMIT {limit}")
            first = list(found) if limit is not None else list(islice(found, 1))  # here, so that Spark reads what delta-rs cannot
            return Batches(found.schema, chain(first, _checked_batches(found, dataset.name)))
        if _is_plain(table):  # texts that are not UTF-8
            files = _files(table, path)
            return all_of(readable(files.to_table() if limit is None else files.head(limit)))
    note(f"{dataset.name} uses table features that need Spark; starting it ...")
    from lakelet.inspection.spark_queries import collected
    from lakelet.spark.launch.session import start_session

    frame = start_session(app_name="lakelet show", stores=stores_of(path)).read.format("delta").load(str(path))
    report(f"Reading {dataset.name} with Spark")
    return all_of(collected(frame if limit is None else frame.limit(limit)))


def all_of(table: pa.Table) -> Batches:
    return Batches(table.schema, table.to_batches())


def _checked_batches(batches: Iterator[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    """The batches, with an error that says what to do. Raises QUERY_FAILED for a text that is not UTF-8."""
    import pyarrow as pa

    try:
        yield from batches
    except pa.ArrowInvalid as problem:
        todo = f'Type: lakelet sql "SELECT * FROM {name}", which Spark answers.'
        raise LakeletError("QUERY_FAILED", f"the rows of {name} cannot be read without Spark", why=str(problem), todo=todo) from problem


def _is_plain(table: Any) -> bool:
    """Whether the table's rows are those of its files."""
    return not table.protocol().reader_features and not is_mapped(table)


def _files(table: Any, path: AnyPath) -> Any:
    """The files of a plain table, for arrow to read.

    On this machine arrow opens them itself: where its threads ask delta-rs, by Python, a process may be aborted when it ends.
    """
    from pyarrow.dataset import ParquetReadOptions
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    local = SubTreeFileSystem(str(path), LocalFileSystem()) if isinstance(path, Path) else None
    return table.to_pyarrow_dataset(filesystem=local, parquet_read_options=ParquetReadOptions(coerce_int96_timestamp_unit="us"))


def run_sql(
    storage: AnyPath,
    sql: str,
    *,
    limit: int | None = None,
    spark: SparkSession | None = None,
    note: Note = lambda text: None,
    space: Namespace | None = None,
    for_spark: str | None = None,
) -> TableRows:
    """Run one query over the stored tables, under the names the pipeline knows them by; the event log is `event_log`.

    Statements that create views may stand before it, which count for this text only; `lakelet.storage.eventlog.views` has others.
    DuckDB answers what it says the same way. Otherwise a Spark session is started, unless one is given, which then answers everything.
    No more rows than `limit` are kept; how many there are is known where DuckDB counts them quickly. `note`: see `Note`. `space`: completes
    names, in place of the storage's namespace. Names that do not exist are errors before a session is started. `for_spark`: the query that
    Spark answers, in place of this one.

    Raises SQL_FAILED (not a query, failed analysis), UNKNOWN_TABLE, UNKNOWN_COLUMN, QUERY_FAILED.
    """
    from lakelet.inspection.duckdb.values import NotSame

    if spark is None:
        try:
            return _first_rows(*_duck_answer(storage, sql, limit, space), limit)
        except NotSame as reason:
            from lakelet.inspection.unknown_names import refuse_unknown_names

            refuse_unknown_names(storage, sql, space)
            note(f"Spark answers this query ({reason}); starting it ...")
    from lakelet.inspection.spark_queries import spark_rows
    from lakelet.spark.launch.session import start_session

    spark = spark or start_session(app_name="lakelet sql", stores=stores_of(storage))
    from lakelet.spark.session_clones import quiet_pyspark

    report("Running the query with Spark")
    with quiet_pyspark():
        rows = spark_rows(spark, storage, for_spark or sql, limit=limit, space=space)
    return first_rows(rows, limit)


def duck_table(storage: AnyPath, sql: str) -> pa.Table:
    """Run a query with DuckDB. Raises NotSame, with the reason, where Spark's result might differ; UNKNOWN_TABLE like `run_sql`."""
    return _duck_answer(storage, sql, None)[0]


def _duck_answer(storage: AnyPath, sql: str, limit: int | None, space: Namespace | None = None) -> tuple[pa.Table, int | None]:
    from lakelet.inspection.duckdb.answers import answer
    from lakelet.inspection.duckdb.tables import Tables

    return answer(Tables(storage, space), sql, limit=limit)


def first_rows(table: pa.Table, limit: int | None) -> TableRows:
    """The rows of a table, which has more than `limit` if there are more."""
    return _first_rows(table, table.num_rows if limit is None or table.num_rows <= limit else None, limit)


def _first_rows(table: pa.Table, total: int | None, limit: int | None) -> TableRows:
    """The rows of an answer, which has one more than `limit` if there are more."""
    shown = table if limit is None else table.slice(0, limit)
    return replace(_table_rows(all_of(shown), None, total), more=total is None)


@dataclass(frozen=True)
class QuarantinedRows:
    """Content of a quarantine. `broken`: rule → held rows that break it, most first; a row may break several.

    `name`: of the dataset; `table`: of the quarantine. `rows`: the held ones. `released`: how many have gone back.
    """

    name: str
    table: str
    held: int
    released: int
    broken: tuple[tuple[str, int], ...]
    rows: TableRows


def read_quarantine(storage: AnyPath, name: str, *, limit: int | None = None, note: Note = lambda text: None) -> QuarantinedRows:
    """The rows that are held of a dataset, `name` being its own name or that of its quarantine.

    Raises UNKNOWN_TABLE for a dataset that is not stored or has no quarantine.
    """
    dataset, quarantine = _dataset_and_quarantine(storage, name)
    counted, held, released = Counter[str](), 0, 0
    for row in read_rows(storage, quarantine.name, note=note).rows:
        if row["_released_by"] is not None:
            released += 1
            continue
        held += 1
        counted.update(row["_broken_rules"] or ())
    found = read_rows(storage, quarantine.name, note=note)
    columns = tuple(name for name in found.columns if name != "_released_by")
    shown = TableRows(columns, islice(_held_rows(found.rows), limit), total=held)
    broken = tuple(sorted(counted.items(), key=lambda item: (-item[1], item[0])))
    return QuarantinedRows(dataset, quarantine.name, held, released, broken, shown)


def _held_rows(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        if row.pop("_released_by") is None:
            yield row


def _dataset_and_quarantine(storage: AnyPath, name: str) -> tuple[str, StoredDataset]:
    """Full name of a dataset, and its quarantine."""
    registry = Storage(storage).registry()
    found = find_dataset(registry, name)
    if found.quarantine_of is not None:
        return found.quarantine_of, found
    quarantine = next((d for d in registry.datasets.values() if (d.quarantine_of or "").lower() == found.name.lower()), None)
    if quarantine is None:
        todo = 'Keep its dropped rows from now on: table_properties={"lakelet.quarantine": "true"}'
        raise LakeletError("UNKNOWN_TABLE", f"{found.name} has no quarantine", todo=todo)
    return found.name, quarantine
