"""The tables that a query of DuckDB names: Delta tables at one version each, published views, the event log and its views."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from lakelet.base.names import Namespace, TableName
from lakelet.files.delta_rs import is_mapped, open_or_none, query, schema_fields
from lakelet.files.paths import AnyPath, RemotePath
from lakelet.files.table_files import located
from lakelet.inspection.duckdb.queries import Queries, Query, StoredRelation, parsed
from lakelet.inspection.duckdb.values import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    NotSame,
    Type,
    duck_name,
    identifier,
    of_field,
    text_literal,
)
from lakelet.inspection.table_lookup import find_stored, path_of, unknown_table, unwritten
from lakelet.storage.eventlog import views as event_views
from lakelet.storage.eventlog.reading import open_log
from lakelet.storage.eventlog.views import NAMES, SOURCE, event_view
from lakelet.storage.information_schema import asked_for, described, rows_of
from lakelet.storage.published_views import PublishedView, load_views
from lakelet.storage.root import Storage, new_table_path

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


_FORMATS = ("delta", "parquet", "json", "csv", "text", "orc")


class Tables:
    """The tables of a storage under the names that a query gives them. Each table is opened once, at one version.

    `space`: completes names, in place of the storage's namespace.
    """

    def __init__(self, storage: AnyPath, space: Namespace | None = None) -> None:
        if isinstance(storage, RemotePath):
            raise NotSame("the storage is not on this machine")
        self._storage = Storage(storage)
        self._registry = self._storage.registry()
        self._space = space or self._registry.namespace
        self._opened: dict[str, DeltaSource] = {}

    @property
    def sources(self) -> list[DeltaSource]:
        """The tables that were asked for."""
        return list(self._opened.values())

    def find(self, parts: tuple[str, ...]) -> StoredRelation | Query:
        """Return the relation of a name. Raises UNKNOWN_TABLE, and NotSame for what only Spark reads."""
        return self._find(parts, ())

    def _find(self, parts: tuple[str, ...], within: tuple[PublishedView, ...]) -> StoredRelation | Query:
        """`within`: the published views whose query this is, the outermost first."""
        shown = ".".join(parts)
        parts = parts[1:] if len(parts) > 1 and parts[0].lower() == "live" else parts
        space = Namespace(within[-1].catalog, within[-1].schema) if within else self._space
        full = TableName(*(space.catalog, space.schema)[: 3 - len(parts)], *parts)
        stored = find_stored(self._registry, full)
        if stored is not None:
            return self._source(path_of(self._storage.root, stored), stored.name)
        view = load_views(self._storage).get(full.key)
        if view is not None and view not in within:
            return self._translated(view.query, lambda name: self._find(name, (*within, view)))
        if len(parts) == 2 and parts[0].lower() in _FORMATS:
            raise NotSame(f"{shown} names files")
        path = self._storage.at(new_table_path(full))
        if open_or_none(path) is not None:  # written by a sink
            return self._source(path, str(full))
        of_events, asked = event_views.relation_of(parts), asked_for(full)
        if of_events is not None:
            return self._of_events(of_events)
        if asked is not None:
            return values_query(rows_of(asked, described(self._storage)))
        raise unknown_table(shown, self._registry)

    def _of_events(self, name: str) -> StoredRelation | Query:
        """The event log, or a view of it, in whose query names mean the event log's own views whatever the storage holds."""
        open_log(self._storage.events)  # says so if it is damaged
        log = self._source(self._storage.events, "the event log")
        return log if name == event_views.SOURCE else event_view_query(name, log)

    def _translated(self, text: str, find: Callable[[tuple[str, ...]], StoredRelation | Query]) -> Query:
        return Queries(find).query(parsed(text))

    def _source(self, path: AnyPath, shown: str) -> StoredRelation:
        if str(path) not in self._opened:
            table = open_or_none(path)
            if table is None:
                raise unwritten(shown)
            self._opened[str(path)] = delta_source(table, len(self._opened))
        return self._opened[str(path)].stored


# --- rows in the text of a query ----------------------------------------------------------------------------------------------------------


_ARROW_KINDS = {"string": STRING, "int32": INT, "timestamp[us, tz=UTC]": TIMESTAMP}


def values_query(rows: pa.Table) -> Query:
    """The query of these rows, whose columns are texts, numbers of four bytes and moments."""
    kinds = [_ARROW_KINDS[str(field.type)] for field in rows.schema]
    listed = [f"SELECT {_listed(row.values(), kinds)}" for row in rows.to_pylist()]
    nothing = f"SELECT {_listed([None] * len(kinds), kinds)} WHERE false"
    return Query(" UNION ALL ".join(listed) or nothing, tuple(zip(rows.column_names, kinds, strict=True)))


def _listed(values: Any, kinds: list[Type]) -> str:
    pairs = enumerate(zip(values, kinds, strict=True))
    return ", ".join(f"CAST({_cell_literal(value)} AS {duck_name(kind)}) AS c{at}" for at, (value, kind) in pairs)


def _cell_literal(value: str | int | datetime | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return text_literal(value.replace(tzinfo=None).isoformat(sep=" "))
    return text_literal(value) if isinstance(value, str) else str(value)


MOST_BYTES = 256 * 1024 * 1024
"""A table that delta-rs reads for DuckDB is held in memory: a larger one goes to Spark."""
_READABLE = frozenset({"timestampNtz", "deletionVectors", "columnMapping", "v2Checkpoint", "vacuumProtocolCheck", "variantType"})
_GLOBS = frozenset("*?[]{}")
_FILE = "lakelet_file"


@dataclass
class DeltaSource:
    """One version of a table. `stored`: what queries see of it."""

    table: Any
    stored: StoredRelation

    def create(self, connection: duckdb.DuckDBPyConnection, *, by_name: bool) -> None:
        """Make the relation of that name in DuckDB. `by_name`: the files differ in their columns. Raises NotSame."""
        deleted = "deletionVectors" in (self.table.protocol().reader_features or ())
        files = None if deleted or is_mapped(self.table) else list(self._files())
        if files is None or any(file is None for file, _ in files):
            self._by_delta_rs(connection)
            return
        columns = self._columns()
        if not files:
            nothing = ", ".join(f"CAST(NULL AS {duck_name(kind)}) AS {internal}" for internal, _, kind in columns) or "1 AS one"
            connection.execute(f"CREATE TEMP VIEW {self.stored.name} AS SELECT {nothing} WHERE false")
            return
        partitions = list(self.table.metadata().partition_columns)
        shown = [
            f"CAST({'p' if name in partitions else 'f'}.{identifier(name)} AS {duck_name(kind)}) AS {internal}"
            for internal, name, kind in columns
        ]
        listed = ", ".join(text_literal(str(file)) for file, _ in files)
        by_name = by_name or (len(files) > 1 and any(kind.is_nested for _, _, kind in columns))  # else fields of later files are lost
        options = (", union_by_name = true" if by_name else "") + (f", filename = '{_FILE}'" if partitions else "")
        text = f"SELECT {', '.join(shown) or '1 AS one'} FROM read_parquet([{listed}], hive_partitioning = false{options}) AS f"
        if partitions:
            rows = ", ".join(f"({', '.join([text_literal(str(file)), *map(_partition_literal, values)])})" for file, values in files)
            heads = ", ".join([_FILE, *map(identifier, partitions)])
            text += f" JOIN (VALUES {rows}) AS p({heads}) ON f.{_FILE} = p.{_FILE}"
        connection.execute(f"CREATE TEMP VIEW {self.stored.name} AS {text}")

    def _columns(self) -> list[tuple[str, str, Type]]:
        """Name in DuckDB, name in the table, type: of the columns that the query reads."""
        all_columns = enumerate(self.stored.columns)
        return [(f"c{at}", name, kind) for at, (name, kind) in all_columns if kind is not None and f"c{at}" in self.stored.read]

    def _files(self) -> Iterator[tuple[Path | None, list[Any]]]:
        """Each data file with the values of its partition; None for a file that DuckDB would not find under its name."""
        actions = self.table.get_add_actions(flatten=True)
        names = [f"partition.{name}" for name in self.table.metadata().partition_columns]
        values = [actions.column(name).to_pylist() for name in names]
        root = Path(self.table.table_uri.removeprefix("file://"))
        for at, path in enumerate(actions.column("path").to_pylist()):
            found = next((file for file in (root / path, located(root, path)) if isinstance(file, Path) and file.is_file()), None)
            plain = found is not None and not _GLOBS & set(str(found))
            yield found if plain else None, [column[at] for column in values]

    def _by_delta_rs(self, connection: duckdb.DuckDBPyConnection) -> None:
        from deltalake.exceptions import DeltaError

        if sum(self.table.get_add_actions(flatten=True).column("size_bytes").to_pylist()) > MOST_BYTES:
            raise NotSame("a large table has deleted rows or columns of other names")
        columns = self._columns()
        listed = ", ".join(f"{identifier(name)} AS {internal}" for internal, name, _ in columns) or "1 AS one"
        try:
            rows = query(self.table, f"SELECT {listed} FROM t").read_all()
        except DeltaError:
            raise NotSame("delta-rs does not read the table") from None
        connection.register(f"{self.stored.name}_rows", rows)
        shown = ", ".join(f"CAST({internal} AS {duck_name(kind)}) AS {internal}" for internal, _, kind in columns) or "1 AS one"
        connection.execute(f"CREATE TEMP VIEW {self.stored.name} AS SELECT {shown} FROM {self.stored.name}_rows")


def delta_source(table: Any, number: int) -> DeltaSource:
    """The table as queries see it. Raises NotSame where it has features that neither engine here has."""
    features = table.protocol().reader_features or ()
    unknown = sorted(set(features) - _READABLE)
    if unknown:
        raise NotSame(f"a table has the feature {unknown[0]}")
    return DeltaSource(table, StoredRelation(f"t{number}", tuple(_column(found) for found in schema_fields(table))))


def _column(found: Mapping[str, Any]) -> tuple[str, Type | None]:
    try:
        return of_field(found)
    except NotSame:
        return str(found["name"]), None


def _partition_literal(value: Any) -> str:
    """The value of a partition."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, date) and type(value) is date:
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, (str, Decimal)):
        return text_literal(str(value))
    raise NotSame(f"a table has partitions by a {type(value).__name__}")


_COLUMN_KINDS = {
    **dict.fromkeys(("duration_s", "pass_rate", "lag_s"), DOUBLE),
    **dict.fromkeys(
        ("failed_flows", "rows_written", "table_version", "backlog_files", "backlog_bytes", "distance", "failed_updates", "line"), BIGINT
    ),
    **dict.fromkeys(("success", "is_first"), BOOLEAN),
}
_ENDINGS = {"_at": TIMESTAMP, "_rows": BIGINT, "_records": BIGINT}
_NULL_KEPT: dict[type[exp.Expr], str] = {exp.ArgMax: "arg_max_null", exp.ArgMin: "arg_min_null"}
"""Spark's `max_by` takes the row with the greatest key also where its value is NULL."""


def event_view_query(name: str, source: StoredRelation) -> Query:
    """Translate the view `name`. `source`: the event log. Raises NotSame where the text has a part that is not known here."""
    try:
        text = _text(name, source)
        columns = tuple((column, _kind(column)) for column in _parsed(name).named_selects)
    except SqlglotError:
        raise NotSame(f"the view {name} is not translated") from None
    shown = ", ".join(f"CAST({identifier(column)} AS {duck_name(kind)}) AS c{at}" for at, (column, kind) in enumerate(columns))
    return Query(f"SELECT {shown} FROM ({text}) AS v", columns)


def view_columns(name: str) -> tuple[str, ...]:
    """The columns of the view `name` of the event log. Raises NotSame where its text is not understood."""
    try:
        return tuple(_parsed(name).named_selects)
    except SqlglotError:
        raise NotSame(f"the view {name} is not translated") from None


def _kind(column: str) -> Type:
    """The type of a column: the views give one name to one thing."""
    return _COLUMN_KINDS.get(column) or next((kind for ending, kind in _ENDINGS.items() if column.endswith(ending)), STRING)


def _parsed(name: str) -> exp.Query:
    found = parse_one(event_view(name).query, dialect="spark")
    if not isinstance(found, exp.Query):
        raise NotSame(f"the view {name} is no query")
    return found


def _text(name: str, source: StoredRelation) -> str:
    """The query of a view, with the queries of the views that it reads instead of their names."""
    tree = _parsed(name).transform(_in_duckdb_sql)
    own = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in [table for table in tree.find_all(exp.Table) if table.name not in own]:
        if table.name not in (SOURCE, *NAMES):
            raise NotSame(f"the view {name} reads {table.name}")
        inner = _rows(source) if table.name == SOURCE else _text(table.name, source)
        table.replace(exp.alias_(exp.Subquery(this=parse_one(inner, dialect="duckdb")), table.alias or table.name, table=True))
    return tree.sql(dialect="duckdb", identify=True)


def _rows(source: StoredRelation) -> str:
    """The event log with the names of its columns."""
    known = [(f"c{at}", name) for at, (name, kind) in enumerate(source.columns) if kind is not None]
    source.read.update(internal for internal, _ in known)
    return f"SELECT {', '.join(f'{internal} AS {identifier(name)}' for internal, name in known)} FROM {source.name}"


def _in_duckdb_sql(node: exp.Expr) -> exp.Expr:
    """Functions that sqlglot's generator for DuckDB leaves as Spark has them, or translates to others."""
    if type(node) in _NULL_KEPT:
        return exp.Anonymous(this=_NULL_KEPT[type(node)], expressions=[node.this, node.expression])
    if isinstance(node, exp.Anonymous) and node.name.upper() == "GET":
        values, at = node.expressions
        return exp.Paren(this=exp.Anonymous(this="list_extract", expressions=[values, exp.Literal.number(int(at.name) + 1)]))
    if isinstance(node, exp.FromJson):
        text, schema = node.this, node.expression
        given = schema.name if schema.name.startswith("ARRAY") else f"STRUCT<{schema.name}>"
        shape = json.dumps(_shape(exp.DataType.build(given, dialect="spark")))
        return exp.Anonymous(this="json_transform", expressions=[text, exp.Literal.string(shape)])
    return _sum(node) if isinstance(node, exp.Reduce) else node


def _sum(node: exp.Expr) -> exp.Expr:
    """`aggregate(list, 0, (total, one) -> total + …)`: DuckDB's own takes an initial value of the list's type only."""
    merge = node.args["merge"]
    total, one = merge.expressions
    if not isinstance(merge.this, exp.Add) or merge.this.this.name != total.name or node.args.get("finish") is not None:
        raise NotSame("an aggregate over a list that is no sum")
    values = exp.Anonymous(this="list_transform", expressions=[node.this, exp.Lambda(this=merge.this.expression, expressions=[one])])
    return exp.Coalesce(this=exp.Anonymous(this="list_sum", expressions=[values]), expressions=[node.args["initial"]])


def _shape(kind: exp.DataType) -> Any:
    """A type in the form of `json_transform`."""
    if kind.is_type("struct"):
        return {field.name: _shape(field.args["kind"]) for field in kind.expressions}
    if kind.is_type("array"):
        return [_shape(kind.expressions[0])]
    return kind.sql(dialect="duckdb")
