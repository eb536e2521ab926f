"""Resolves the names of a query in a storage: tables at one version each, published views, the event log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lakelet.base.names import Namespace, TableName
from lakelet.files.delta_rs import open_or_none
from lakelet.files.paths import AnyPath
from lakelet.files.remote import is_s3
from lakelet.inspection.duck.delta_sources import DeltaSource, delta_source
from lakelet.inspection.duck.event_views import event_view_query
from lakelet.inspection.duck.queries import Queries, Query, Stored
from lakelet.inspection.duck.refusal import NotSame
from lakelet.inspection.duck.spark_types import INT, STRING, TIMESTAMP, Type, duck_name
from lakelet.inspection.duck.syntax import parsed
from lakelet.inspection.duck.values import text_literal
from lakelet.inspection.opened import find_stored, path_of, unknown_table, unwritten
from lakelet.storage.eventlog import views as event_views
from lakelet.storage.eventlog.reading import open_log
from lakelet.storage.information_schema import asked_for, described, rows_of
from lakelet.storage.published_views import PublishedView, load_views
from lakelet.storage.root import Storage, new_table_path

if TYPE_CHECKING:
    import pyarrow as pa

_FORMATS = ("delta", "parquet", "json", "csv", "text", "orc")


class Tables:
    """The tables of a storage under the names that a query gives them. Each table is opened once, at one version."""

    def __init__(self, storage: AnyPath) -> None:
        if is_s3(storage):
            raise NotSame("the storage is not on this machine")
        self._storage = Storage(storage)
        self._registry = self._storage.registry()
        self._opened: dict[str, DeltaSource] = {}

    @property
    def sources(self) -> list[DeltaSource]:
        """The tables that were asked for."""
        return list(self._opened.values())

    def find(self, parts: tuple[str, ...]) -> Stored | Query:
        """Return the relation of a name. Raises UNKNOWN_TABLE, and NotSame for what only Spark reads."""
        return self._find(parts, ())

    def _find(self, parts: tuple[str, ...], within: tuple[PublishedView, ...]) -> Stored | Query:
        """`within`: the published views whose query this is, the outermost first."""
        shown = ".".join(parts)
        parts = parts[1:] if len(parts) > 1 and parts[0].lower() == "live" else parts
        space = Namespace(within[-1].catalog, within[-1].schema) if within else self._registry.namespace
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

    def _of_events(self, name: str) -> Stored | Query:
        """The event log, or a view of it, in whose query names mean the event log's own views whatever the storage holds."""
        open_log(self._storage.events)  # says so if it is damaged
        log = self._source(self._storage.events, "the event log")
        return log if name == event_views.SOURCE else event_view_query(name, log)

    def _translated(self, text: str, find: Callable[[tuple[str, ...]], Stored | Query]) -> Query:
        return Queries(find).query(parsed(text))

    def _source(self, path: AnyPath, shown: str) -> Stored:
        if str(path) not in self._opened:
            table = open_or_none(path)
            if table is None:
                raise unwritten(shown)
            self._opened[str(path)] = delta_source(table, len(self._opened))
        return self._opened[str(path)].stored


# --- rows in the text of a query ----------------------------------------------------------------------------------------------------------


_KINDS = {"string": STRING, "int32": INT, "timestamp[us, tz=UTC]": TIMESTAMP}


def values_query(rows: pa.Table) -> Query:
    """The query of these rows, whose columns are texts, numbers of four bytes and moments."""
    kinds = [_KINDS[str(field.type)] for field in rows.schema]
    listed = [f"SELECT {_listed(row.values(), kinds)}" for row in rows.to_pylist()]
    nothing = f"SELECT {_listed([None] * len(kinds), kinds)} WHERE false"
    return Query(" UNION ALL ".join(listed) or nothing, tuple(zip(rows.column_names, kinds, strict=True)))


def _listed(values: Any, kinds: list[Type]) -> str:
    pairs = enumerate(zip(values, kinds, strict=True))
    return ", ".join(f"CAST({_literal(value)} AS {duck_name(kind)}) AS c{at}" for at, (value, kind) in pairs)


def _literal(value: str | int | datetime | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return text_literal(value.replace(tzinfo=None).isoformat(sep=" "))
    return text_literal(value) if isinstance(value, str) else str(value)
